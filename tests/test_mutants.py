"""Seeded bugs: each entry of mutants.toml breaks the C core on purpose, and the named test must go red.

A bug that no test catches is a hole in the tests. The core is built from a patched copy; nothing else changes.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from tools import run, tool

ROOT = Path(__file__).parent.parent

#: A test that hangs costs this much at least; and a test that takes longer is none for a bug to be run with.
SECONDS_LEAST, SECONDS_WITHOUT_A_BUG = 60, 600

SAID = "said.txt"  # by the test that ran last

MUTANTS = tomllib.loads((ROOT / "tests/mutants.toml").read_text())

#: Run pytest with the patched package in front, and without the editable install, which -S hides.
RUN = """
import sys
sys.path[:0] = {paths!r}
sys.path.append({packages!r})
import pytest
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", {test!r}]))
"""


def build(folder: Path, *targets: str) -> None:
    cmake = tool("cmake")
    run(cmake, "-S", "csrc", "-B", "build", f"-DPython_EXECUTABLE={sys.executable}", cwd=folder)
    run(cmake, "--build", "build", "--parallel", "2", "--target", *targets, cwd=folder)
    for extension in (folder / "build").glob("_*.so"):
        shutil.copy(extension, folder / "pystream")


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A copy of the project without a bug."""
    folder = tmp_path_factory.mktemp("sound")
    for name in ("csrc", "pystream", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
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
    """Whether the test goes well in that time. What it has started ends with it."""
    packages = str(Path(pa.__file__).parent.parent)
    paths = [str(folder), str(folder / "tests")]
    code = RUN.format(paths=paths, packages=packages, test=str(folder / "tests" / test))
    with (folder / SAID).open("w") as said:
        command = [sys.executable, "-S", "-c", code]
        child = subprocess.Popen(command, cwd=folder, stdout=said, stderr=said, start_new_session=True)
    try:
        return child.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):  # it has left nobody behind
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


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
