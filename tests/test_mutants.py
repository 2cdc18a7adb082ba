"""Seeded bugs: each entry of mutants.toml breaks the C core on purpose, and the named test must go red.

A bug that no test catches is a hole in the tests. The core is built from a patched copy; nothing else changes.
"""

from __future__ import annotations

import shutil
import time
import tomllib
from functools import cache
from typing import TYPE_CHECKING

import pytest
from built import ROOT, SAID, build, copy, finish, start

if TYPE_CHECKING:
    from pathlib import Path

#: A test that hangs costs this much at least; and a test that takes longer is none for a bug to be run with.
SECONDS_LEAST, SECONDS_WITHOUT_A_BUG = 60, 600

MUTANTS = tomllib.loads((ROOT / "tests/mutants.toml").read_text())


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A copy of the project without a bug."""
    folder = tmp_path_factory.mktemp("sound")
    copy(folder)
    build(folder, "_core", "_model")
    return folder


@pytest.fixture(scope="module")
def broken(sound, tmp_path_factory) -> Path:
    """Another one, which is built again for each bug."""
    folder = tmp_path_factory.mktemp("mutants") / "tree"
    shutil.copytree(sound, folder, ignore=shutil.ignore_patterns("build", "__pycache__"))
    return folder


@pytest.fixture(scope="module")
def seconds_max(sound):
    """How long a test may take: five times as long as without a bug. Longer means that everything waits for ever."""

    @cache
    def of(test: str) -> float:
        start = time.monotonic()
        assert passes(sound, test, SECONDS_WITHOUT_A_BUG), (sound / SAID).read_text()
        return max(SECONDS_LEAST, 5 * (time.monotonic() - start))

    return of


def passes(folder: Path, test: str, seconds: float) -> bool:
    return finish(start(folder, "-x", str(folder / "tests" / test)), seconds)


@pytest.mark.deep
@pytest.mark.parametrize("test", sorted({bug["test"] for bug in MUTANTS.values()}))
def test_without_a_bug_the_tests_pass(test, seconds_max):
    seconds_max(test)


@pytest.mark.deep
@pytest.mark.parametrize("name", MUTANTS)
def test_every_seeded_bug_is_caught(name, broken, seconds_max):
    bug = MUTANTS[name]
    target = broken / "csrc" / bug["file"]
    source = target.read_text()
    target.write_text(source.replace(bug["right"], bug["wrong"], 1))
    try:
        build(broken, "_core", *(["_model"] if bug["test"].startswith("model/") else []))
        assert not passes(broken, bug["test"], seconds_max(bug["test"])), f"{bug['test']} did not notice"
    finally:
        target.write_text(source)


@pytest.mark.parametrize("name", MUTANTS)
def test_every_seeded_bug_still_fits_the_source(name):
    bug = MUTANTS[name]
    assert bug["right"] in (ROOT / "csrc" / bug["file"]).read_text()
