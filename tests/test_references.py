"""What comments and documents refer to exists: files, paths, and the functions and models that the maps name."""

from __future__ import annotations

import ast
import io
import json
import re
import tokenize
from pathlib import Path

import pytest

from pystream.verify.tlc.mirror import Sources

ROOT = Path(__file__).parent.parent
FOLDERS = ("csrc", "spec", "pystream", "tests", "bench")
NAMES = {path.name for folder in (*FOLDERS, "") for path in (ROOT / folder).glob("**/*" if folder else "*")}

#: A file of the system.
FOREIGN = {"Python.h"}

FILE = re.compile(r"(?<![\w.*/{}-])(?:[\w-]+/)*([A-Za-z_]\w*\.(?:c|h|py|tla|toml|md|cmake|java))\b(?![\w(=]|\.\w)")
PATH = re.compile(r"(?<![\w/.}\"-])((?:csrc|spec|pystream|tests|bench)/[\w./*-]*\w)")

#: Pages whose every name in backticks is checked, and the folders that their paths may start from.
MAPS = {
    "csrc/README.md": ("csrc", "."),
    "tests/README.md": ("tests", "tests/model", "."),
    "bench/README.md": ("bench", "."),
    "spec/PAPER.md": ("spec", "."),
    "CONTRIBUTING.md": (".", "pystream", "pystream/spark", "pystream/verify", "pystream/lab"),
}


def comments_of_c(text: str) -> str:
    return "\n".join(re.findall(r"/\*.*?\*/|//[^\n]*", text, re.DOTALL))


def comments_of_python(text: str) -> str:
    """Comments and docstrings."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    found = [token.string for token in tokens if token.type == tokenize.COMMENT]
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
    found += [ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, documented)]
    return "\n".join(found)


def prose(path: Path) -> str:
    """What people read in a file: all of a document or spec, the comments of code."""
    text = path.read_text(encoding="utf-8")
    if path.suffix in (".c", ".h"):
        return comments_of_c(text)
    return comments_of_python(text) if path.suffix == ".py" else text


def read_by_people() -> list[Path]:
    suffixes = {".c", ".h", ".tla", ".py", ".md"}
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    return sorted([*found, *ROOT.glob("*.md")])


def missing_files(text: str) -> set[str]:
    return set(FILE.findall(text)) - NAMES - FOREIGN


def missing_paths(text: str) -> set[str]:
    return {path for path in PATH.findall(text) if not any(ROOT.glob(path))}


def test_files_that_are_named_exist():
    named = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in read_by_people()
        for name in missing_files(prose(path)) | missing_paths(prose(path))
    }
    assert named == set()


def test_a_missing_file_is_found():
    assert missing_files("see snapshots.h and t_gate.c, gates/t_gate.h, Watch.tla.") == {"snapshots.h", "Watch.tla"}
    assert missing_paths("see spec/Watch.tla and `spec/TGate.tla`, csrc/*/t_gate.c.") == {"spec/Watch.tla"}
    assert comments_of_c("int a; /* b.h */ c.d; // e.h\n") == "/* b.h */\n// e.h"
    assert comments_of_python('"""a"""\nb = "c"  # d\n') == "# d\na"


def quoted(page: str) -> list[str]:
    """What stands in backticks, outside of blocks."""
    text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"`([^`]+)`", text)


def is_there(path: str, page: str) -> bool:
    return any(any((ROOT / folder).glob(path.rstrip("/"))) for folder in MAPS[page])


@pytest.mark.parametrize("page", MAPS)
def test_paths_of_the_maps_exist(page):
    named = [name for name in quoted(page) if re.fullmatch(r"[\w./*-]+(/|\.(c|h|py|md|toml|tla|json|java))", name)]
    assert len(named) > 3
    assert [name for name in named if not is_there(name, page)] == []


@pytest.mark.parametrize("page", MAPS)
def test_functions_of_the_maps_exist(page):
    """In C, or in Python: a map writes a function as `name()`."""
    python = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "pystream").rglob("*.py"))
    known = set(Sources(ROOT / "csrc").places) | set(re.findall(r"def (\w+)\(", python))
    named = {name[:-2] for name in quoted(page) if re.fullmatch(r"\w+\(\)", name)}
    assert named - known == set()
    assert len(named) > (30 if page == "csrc/README.md" else -1)


def test_models_of_the_departures_are_what_the_manifest_has():
    """Every model there is of a departure stands in its row, or the row would be long; all that stand there exist."""
    models = {model["name"]: model for model in json.loads((ROOT / "spec/models.json").read_text(encoding="utf-8"))}
    rows = re.findall(r"^\| (\d+) \|.*\|(.*)\|(.*)\|$", (ROOT / "spec/PAPER.md").read_text(), re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 11))
    for number, fails, holds in rows:
        failing, passing = (re.findall(r"`(\w+)`", cell) for cell in (fails, holds))
        assert [name for name in failing if models[name]["expected"] == "pass"] == []
        assert [name for name in passing if models[name]["expected"] != "pass"] == []
        shown = {name for name, model in models.items() if model.get("departure") == int(number)}
        assert shown & set(failing), number
        if int(number) < 10:
            assert shown == set(failing), number
    named = set(re.findall(r"`([A-Z]\w+)`", (ROOT / "spec/PAPER.md").read_text())) - {"NAME"}
    assert named <= models.keys(), named - models.keys()
