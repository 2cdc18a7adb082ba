"""Seeded bugs: each entry of mutants.toml breaks the C core on purpose, and the named test must go red.

A bug that no test catches is a hole in the tests. The core is built from a patched copy; nothing else changes. A test
that does not end has caught the bug only if the entry says `hangs = true`: on a loaded machine any test may be slow.
"""

from __future__ import annotations

import re
import time
import tomllib
from functools import cache
from typing import TYPE_CHECKING

import pytest
from builds import ROOT, SAID, build, copied, outcome

if TYPE_CHECKING:
    from pathlib import Path

#: A test that hangs costs this much at least; and a test that takes longer is none for a bug to be run with.
SECONDS_LEAST, SECONDS_WITHOUT_A_BUG = 60, 600

MUTANTS = tomllib.loads((ROOT / "tests/mutants.toml").read_text())


#: The build that a bug is run on, if not the usual one, and its test.
TESTS = {name: (bug.get("build", "usual"), bug["test"]) for name, bug in MUTANTS.items()}


def named(test: str) -> list[str]:
    """What runs it: a test that is named alone may be one of --full."""
    return [test, "--full"] if "::" in test else [test]


@pytest.fixture(scope="module")
def sound(tmp_path_factory):
    """A copy of the project without a bug, for each build."""

    @cache
    def of(kind: str) -> Path:
        folder = copied(tmp_path_factory.mktemp(f"sound-{kind}"))
        build(folder, *(["_core", "_model"] if kind == "usual" else ["_core"]), kind=kind)
        return folder

    return of


@pytest.fixture(scope="module")
def broken(tmp_path_factory) -> Path:
    """Another one, which is built again for each bug."""
    return copied(tmp_path_factory.mktemp("mutants"))


@pytest.fixture(scope="module")
def seconds_max(sound):
    """How long a test may take: five times as long as without a bug. Longer means that everything waits for ever."""

    @cache
    def of(kind: str, test: str) -> float:
        start = time.monotonic()
        code = outcome(sound(kind), *named(test), seconds=SECONDS_WITHOUT_A_BUG, kind=kind)
        assert code == 0, (sound(kind) / SAID).read_text()
        return max(SECONDS_LEAST, 5 * (time.monotonic() - start))

    return of


@pytest.mark.deep
@pytest.mark.parametrize(("kind", "test"), sorted(set(TESTS.values())))
def test_without_a_bug_the_tests_pass(kind, test, seconds_max):
    seconds_max(kind, test)


@pytest.mark.deep
@pytest.mark.parametrize("name", MUTANTS)
def test_every_seeded_bug_is_caught(name, broken, seconds_max):
    bug, (kind, test) = MUTANTS[name], TESTS[name]
    target = broken / "csrc" / bug["file"]
    source = target.read_text()
    target.write_text(source.replace(bug["right"], bug["wrong"], 1))
    try:
        build(broken, "_core", *(["_model"] if test.startswith("model/") else []), kind=kind)
        code = outcome(broken, *named(test), seconds=seconds_max(kind, test), kind=kind)
        assert code != 0, f"{test} did not notice"
        assert (code is None) == bug.get("hangs", False), f"{test} ended with {code}; a bug that makes it hang says so"
        assert code is None or code < 0 or code == pytest.ExitCode.TESTS_FAILED, (broken / SAID).read_text()
    finally:
        target.write_text(source)


@pytest.mark.parametrize("name", MUTANTS)
def test_every_seeded_bug_still_fits_the_source(name):
    bug = MUTANTS[name]
    assert bug["right"] in (ROOT / "csrc" / bug["file"]).read_text()


@pytest.mark.parametrize("test", sorted({test for _, test in TESTS.values()}))
def test_every_test_that_catches_a_bug_is_there(test):
    """The parameters in brackets are seen by the deep run only."""
    file, _, name = test.partition("::")
    text = (ROOT / "tests" / file).read_text()
    each = [one for one in name.partition("[")[0].split("::") if one]
    assert all(re.search(rf"^\s*(?:async )?(?:def|class) {one}\b|^{one} = ", text, re.MULTILINE) for one in each)
