"""Seeded bugs: each entry of mutants.toml breaks the C core on purpose, and the named test must go red.

A bug that no test catches is a hole in the tests. The core is built from a patched copy; nothing else changes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pyarrow as pa
import pytest

ROOT = Path(__file__).parent.parent

MUTANTS = tomllib.loads((ROOT / "tests/mutants.toml").read_text())

#: Run pytest with the patched package in front, and without the editable install, which -S hides.
RUN = """
import sys
sys.path[:0] = {paths!r}
sys.path.append({packages!r})
import pytest
sys.exit(pytest.main(["-x", "-q", "-p", "no:cacheprovider", {test!r}]))
"""


def build(folder: Path) -> None:
    define = f"-DPython_EXECUTABLE={sys.executable}"
    for command in (["cmake", "-S", "csrc", "-B", "build", define], ["cmake", "--build", "build", "--parallel", "2"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for extension in (folder / "build").glob("_*.so"):
        shutil.copy(extension, folder / "pystream")


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of the project that is built once and then again for each bug."""
    folder = tmp_path_factory.mktemp("mutants")
    for name in ("csrc", "pystream", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    build(folder)
    return folder


def passes(folder: Path, test: str) -> subprocess.CompletedProcess:
    packages = str(Path(pa.__file__).parent.parent)
    paths = [str(folder), str(folder / "tests")]
    code = RUN.format(paths=paths, packages=packages, test=str(folder / "tests" / test))
    command = [sys.executable, "-S", "-c", code]
    try:
        return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    except subprocess.TimeoutExpired:  # a bug that makes everything wait for ever shows as that
        return subprocess.CompletedProcess(command, 124, "timed out", "")


@pytest.mark.deep
def test_without_a_bug_the_copy_passes(tree):
    done = passes(tree, "test_operator.py")
    assert done.returncode == 0, done.stdout


@pytest.mark.deep
@pytest.mark.parametrize("name", MUTANTS)
def test_every_seeded_bug_is_caught(name, tree):
    bug = MUTANTS[name]
    target = tree / "csrc" / bug["file"]
    source = target.read_text()
    target.write_text(source.replace(bug["right"], bug["wrong"], 1))
    try:
        build(tree)
        done = passes(tree, bug["test"])
    finally:
        target.write_text(source)
    assert done.returncode != 0, f"{bug['test']} did not notice"


@pytest.mark.parametrize("name", MUTANTS)
def test_every_seeded_bug_still_fits_the_source(name):
    bug = MUTANTS[name]
    assert bug["right"] in (ROOT / "csrc" / bug["file"]).read_text()
