"""spec/PAPER.md is whole: every part of the paper stands in it, and what it names exists.

Paths and functions are checked by test_references.py, as in every map.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pystream.queries import PAPER
from pystream.verify.tlc import manifest, paper_map

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "spec/PAPER.md").read_text(encoding="utf-8")

#: Lines of the algorithms 1 to 6, without blank ones and comments.
LINES = {1: 9, 2: 21, 3: 27, 4: 38, 5: 45, 6: 7}

STATUS = ("literal", "repaired", "improved", "different", "not done")


def section(title: str) -> str:
    (found,) = re.findall(rf"^## {re.escape(title)}.*?\n(.*?)(?=^## |\Z)", TEXT, re.MULTILINE | re.DOTALL)
    return found


def rows(title: str) -> list[list[str]]:
    """The cells of a section's first table, without its head."""
    table = re.search(r"^(\|.*\n)+", section(title), re.MULTILINE)
    lines = table.group().splitlines() if table else []
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def covered(cell: str) -> list[int]:
    """The lines that "5.6-9, 12" means."""
    parts = [part.partition("-") for part in cell.split(".")[1].split(", ")]
    return [n for first, _, last in parts for n in range(int(first), int(last or first) + 1)]


@pytest.mark.parametrize("algorithm", LINES)
def test_every_line_of_an_algorithm_stands_in_one_row(algorithm):
    cells = [row[0] for row in rows("Algorithms") if row[0].startswith(f"{algorithm}.")]
    assert sorted(n for cell in cells for n in covered(cell)) == list(range(1, LINES[algorithm] + 1))


def test_a_line_that_is_left_out_is_seen():
    assert covered("5.6-9, 12") == [6, 7, 8, 9, 12]


TABLES = {
    "Definitions and interfaces": 9,
    "Algorithms": 31,
    "Optimisations, parameters, environment": 12,
    "Queries and data sets": 6,
    "Experiments, figures and tables": 11,
}


@pytest.mark.parametrize("title", TABLES)
def test_every_row_has_a_status(title):
    found = rows(title)
    assert len(found) >= TABLES[title]
    assert [row for row in found if not any(word in row[-1] for word in STATUS)] == []
    assert len({len(row) for row in found}) == 1


def test_every_definition_lemma_theorem_query_data_set_and_table_is_there():
    parts = [f"Definition {n}" for n in (1, 2)] + [paper_map.name_of(t) for t in manifest.THEOREMS]
    parts += [*PAPER, "EC:", "SC:", "Table 1", "Table 2", "maxlevels = 3", "MQ_LF"]
    parts += ["skip list", "durations", "latency evolution", "number of keys", "scaling", "function cost"]
    assert [part for part in parts if part not in TEXT] == []


def test_theorems_and_traces_are_what_the_manifest_has():
    spec = ROOT / "spec"
    assert paper_map.is_current(spec, manifest.load(spec)), "run `pystream check MODEL --update`"


def test_repaired_lines_name_departures_that_exist():
    numbers = {
        int(n)
        for row in rows("Algorithms")
        for group in re.findall(r"repaired \(([\d, to]+)\)", row[-1])
        for n in re.findall(r"\d+", group)
    }
    departures = {int(n) for n in re.findall(r"^\| (\d+) \|", TEXT, re.MULTILINE)}
    assert {1, 4, 5, 6, 7, 8, 9} <= numbers <= departures


def test_a_page_that_is_not_current_is_written(tmp_path):
    models = [
        manifest.Model(name="A", module="M", shows="", expected="pass", bounds="2 inputs", theorem=("1",)),
        manifest.Model(
            name="B", module="M", shows="", expected="Deadlock", bounds="1", theorem=("L2",), departure=3, trace="x | y"
        ),
    ]
    page = tmp_path / paper_map.PAGE
    paper_map.write(tmp_path, models)
    assert not page.exists()
    page.write_text("a\n<!-- theorems -->\n<!-- /theorems -->\n<!-- traces -->\n<!-- /traces -->\n")
    assert not paper_map.is_current(tmp_path, models)
    paper_map.write(tmp_path, models)
    assert paper_map.is_current(tmp_path, models)
    assert "| Theorem 1 | `A` | 2 inputs |\n| Lemma 2 | `B` | refuted, departure 3: 1 |" in page.read_text()
    assert "- 3, `B`: x \\| y\n" in page.read_text()
