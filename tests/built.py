"""Copies of the project that are built with other options or from a changed source, and tests run against them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
from tools import run, tool

ROOT = Path(__file__).parent.parent

SAID = "said.txt"  # by the tests that ran last

#: Run pytest with the copy in front, and without the editable install, which -S hides.
RUN = """
import sys
sys.path[:0] = {paths!r}
sys.path.append({packages!r})
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def copy(folder: Path) -> None:
    """The project's sources and tests, to be built there."""
    for name in ("csrc", "pystream", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def build(folder: Path, *targets: str, options: tuple[str, ...] = ()) -> None:
    """Build these targets of a copy; extensions go where Python looks for them."""
    cmake = tool("cmake")
    run(cmake, "-S", "csrc", "-B", "build", f"-DPython_EXECUTABLE={sys.executable}", *options, cwd=folder)
    run(cmake, "--build", "build", "--parallel", "2", "--target", *targets, cwd=folder)
    for extension in (folder / "build").glob("_*.so"):
        shutil.copy(extension, folder / "pystream")


def start(folder: Path, *arguments: str, said: str = SAID) -> subprocess.Popen[bytes]:
    """Pytest with the copy, in a session of its own; what it says goes to a file."""
    paths = [str(folder), str(folder / "tests")]
    code = RUN.format(paths=paths, packages=str(Path(pa.__file__).parent.parent))
    command = [sys.executable, "-S", "-c", code, *arguments]
    with (folder / said).open("w") as out:
        return subprocess.Popen(command, cwd=folder, stdout=out, stderr=out, start_new_session=True)


def finish(child: subprocess.Popen[bytes], seconds: float) -> bool:
    """Whether it goes well in that time. What it has started ends with it."""
    try:
        return child.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        with suppress(ProcessLookupError):  # it has left nobody behind
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()
