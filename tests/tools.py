"""For tests that run programs: finding those of this environment, and running them to a good end."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

CSRC = Path(__file__).parent.parent / "csrc"

#: The sources of the core: all rooms but the model build's own.
CORE_SOURCES = sorted(path for path in CSRC.glob("*/*.c") if path.parent.name != "model")


def tool(name: str) -> str:
    """A tool of the `test` extra: the one beside this Python, even if the environment is not activated.

    The system's may be too old. Python started with -S does not know where its environment has its scripts; where it
    was started from, it does.
    """
    folders = [str(Path(sys.executable).parent), sysconfig.get_path("scripts")]
    found = shutil.which(name, path=os.pathsep.join(folders)) or shutil.which(name)
    assert found, f"{name} is missing: pip install '.[test]'"
    return found


def run(*command: object, cwd: Path | None = None, seconds: float | None = None) -> str:
    """What the command prints. That it fails is a failure, with all that it said."""
    words = [str(c) for c in command]
    done = subprocess.run(words, cwd=cwd, timeout=seconds, capture_output=True, text=True, check=False)
    assert done.returncode == 0, "\n" + done.stdout + done.stderr
    return done.stdout
