"""Other builds of the C core, made from a copy of the project, and its tests run on them."""

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

SAID = "said.txt"  #: by the tests that ran last

#: Options of CMake by name of a build: see csrc/CMakeLists.txt.
OPTIONS = {
    "usual": (),
    "coverage": ("-DPYSTREAM_COVERAGE=ON", "-DPYSTREAM_MODEL_BUILD=OFF"),
    "small": ("-DPYSTREAM_SMALL=ON", "-DPYSTREAM_POISON=ON"),
    "address": ("-DPYSTREAM_SANITIZE=address,undefined", "-DPYSTREAM_SANITIZE_EXTENSION=ON"),
    "address-small": (
        "-DPYSTREAM_SANITIZE=address,undefined",
        "-DPYSTREAM_SANITIZE_EXTENSION=ON",
        "-DPYSTREAM_SMALL=ON",
        "-DPYSTREAM_POISON=ON",
    ),
}

#: Run pytest with the package of the copy in front, and without the editable install, which -S hides.
RUN = """
import sys
sys.path[:0] = {paths!r}
sys.path.append({packages!r})
import pytest
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", *{arguments!r}]))
"""


def copied(folder: Path) -> Path:
    """A copy of what is built and tested."""
    for name in ("csrc", "pystream", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def build(folder: Path, *targets: str, kind: str = "usual") -> None:
    cmake, made = tool("cmake"), folder / f"build-{kind}"
    run(cmake, "-S", "csrc", "-B", made, f"-DPython_EXECUTABLE={sys.executable}", *OPTIONS[kind], cwd=folder)
    run(cmake, "--build", made, "--parallel", "2", "--target", *targets, cwd=folder)
    for extension in made.glob("_*.so"):
        shutil.copy(extension, folder / "pystream")


def runtime(name: str) -> str:
    """A library that comes with the compiler."""
    return run("gcc", f"-print-file-name={name}").strip()


def environment(kind: str) -> dict[str, str]:
    """What a build's tests need: fewer examples, as they run a second time; and a sanitizer in front of all else. To
    count branches they take all examples, and the same tables of keys each time.

    Python and Arrow get their memory from the allocator that the sanitizer watches. What Python itself keeps at its end
    would drown any leak of ours: those are told by `ps_memory_live`.
    """
    if kind == "coverage":
        return os.environ | {"PYSTREAM_HASH_SEED": "coverage"}
    found = {"PYSTREAM_EXAMPLES": "10"} | os.environ
    if kind.startswith("address"):
        found["LD_PRELOAD"] = f"{runtime('libasan.so')} {runtime('libstdc++.so')}"
        found["ASAN_OPTIONS"] = "detect_leaks=0:abort_on_error=1"
        found["PYTHONMALLOC"] = "malloc"
        found["ARROW_DEFAULT_MEMORY_POOL"] = "system"
    return found


def start(folder: Path, *arguments: str, kind: str = "usual", said: str = SAID) -> subprocess.Popen[bytes]:
    """Pytest on a copy with these files, or options, in a session of its own; what it says goes to a file."""
    packages = str(Path(pa.__file__).parent.parent)
    paths = [str(folder), str(folder / "tests")]
    given = [one if one.startswith("-") else str(folder / "tests" / one) for one in arguments]
    code = RUN.format(paths=paths, packages=packages, arguments=given)
    env = os.environ if kind == "usual" else environment(kind)
    with (folder / said).open("w") as out:
        command = [sys.executable, "-S", "-c", code]
        return subprocess.Popen(command, cwd=folder, env=env, stdout=out, stderr=out, start_new_session=True)


def finish(child: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Its exit code; None if it is still running after that time. What it has started ends with it."""
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(ProcessLookupError):  # it has left nobody behind
            os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def outcome(folder: Path, *files: str, seconds: float, kind: str = "usual") -> int | None:
    """Run these tests until one fails, for that long at most: `finish`. What they say is in SAID."""
    usual_sizes = ["-mnot usual_sizes"] if kind.endswith("small") else []
    return finish(start(folder, "-x", *files, *usual_sizes, kind=kind), seconds)
