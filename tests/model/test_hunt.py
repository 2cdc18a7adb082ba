"""The state machines find what HUNT.md says: seeded bugs, in 100 examples under a fixed seed.

Each row of the table says how small the bug got; known is what seeded.toml has. What the table calls found is found
again here: some of it in every run, more with --full and all with --deep. Which structures reach nine of ten is said
here and checked against the table. On the sources as they are the machines find nothing: with a fixed seed, and with
--full under another one in each run, which is printed before the tests and which PYSTREAM_HUNT_SEED repeats.
"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import hunt_table
import pytest
from hunt import EXAMPLES, STRUCTURES, hunt
from hunt_table import PAGE, Row, by_structure, known, nine_of_ten, put, read
from test_seeded import BUGS, CHANGED, CSRC, MUTANTS, WEAKENED

from pystream.verify.scheduler import build

FIXED = 1
#: The structures of which nine of ten bugs are found and small; the others are below the goal.
NINE_OF_TEN = {
    *("t_gate", "w_hive", "win_set", "run_gate", "pane_hive"),
    *("queue", "mutex_queue", "doorbell"),
}
TABLE = read(PAGE.read_text())
FOUND = [row for row in TABLE if row.example]
#: These need no compiler; with --full some that do, of those that a few examples find.
QUICK = [row for row in FOUND if row.name in WEAKENED and row.example <= 10]
FULL = [row for row in FOUND if row.name in CHANGED and row.example <= 10][::5]


class Builds:
    """Model builds of changed sources; what is compiled for one is used again for the next."""

    def __init__(self, folder: Path) -> None:
        self._csrc, self._objects = folder / "csrc", folder / "objects"
        shutil.copytree(CSRC, self._csrc)

    @classmethod
    @contextlib.contextmanager
    def temporary(cls):
        with tempfile.TemporaryDirectory() as folder:
            yield cls(Path(folder))

    def of(self, name):
        """The sources with this bug in them; nothing for a weaker order, which needs no build."""
        bug = {**MUTANTS.get(name, {}), **BUGS[name]}
        if "weaken" in bug:
            return None
        target = self._csrc / bug["file"]
        source = target.read_text()
        target.write_text(source.replace(bug["right"], bug["wrong"], 1))
        try:
            return build(self._csrc, self._objects)
        finally:
            target.write_text(source)


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    return Builds(tmp_path_factory.mktemp("hunt"))


def structure_of(bug):
    """The state machine that hunts it: the queue has one for each of its kinds."""
    return "mutex_queue" if bug["subject"] == "queue" and bug.get("parameters") else bug["subject"]


def hunted(name, builds, number=FIXED) -> Row:
    """Hunt one bug."""
    bug = BUGS[name]
    wrong, seen = hunt(structure_of(bug), number, library=builds.of(name), weaken=bug.get("weaken"))
    row = Row(structure_of(bug), name, known(bug))
    return row._replace(example=seen["found"], found=wrong.size) if wrong and seen["found"] <= EXAMPLES else row


def name_of(row):
    return row.name


def check_is_found(row, builds):
    """As small as the table says, if that is small."""
    again = hunted(row.name, builds)
    assert again.example, f"not found: {row}"
    assert again.small or not row.small, f"{again} instead of {row}"


@pytest.mark.parametrize("row", QUICK, ids=name_of)
def test_a_weaker_order_is_found(row, builds):
    check_is_found(row, builds)


@pytest.mark.full
@pytest.mark.parametrize("row", FULL, ids=name_of)
def test_a_seeded_bug_is_found(row, builds):
    check_is_found(row, builds)


@pytest.mark.deep
@pytest.mark.parametrize("row", FOUND, ids=name_of)
def test_what_the_table_calls_found_is_found(row, builds):
    check_is_found(row, builds)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_sources_as_they_are(structure):
    wrong, _ = hunt(structure, FIXED, examples=20)
    assert wrong is None, wrong


@pytest.mark.full
@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_sources_as_they_are_under_another_seed(structure):
    """What fails here is wrong: the seed only says where we look."""
    number = int(os.environ["PYSTREAM_HUNT_SEED"])  # conftest.py draws it, and prints it before the tests
    wrong, _ = hunt(structure, number)
    assert wrong is None, f"PYSTREAM_HUNT_SEED={number}{wrong}"


@pytest.mark.parametrize("structure", STRUCTURES)
def test_the_same_seed_gives_the_same_hunt(structure):
    assert hunt(structure, 3, examples=3) == hunt(structure, 3, examples=3)


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_hunt_is_over_when_its_steps_are_spent(structure, monkeypatch):
    """The execution that spends them ends, and has at most as many as any."""
    monkeypatch.setattr(sys.modules["hunt"], "STEPS_MAX", 1000)
    wrong, seen = hunt(structure, FIXED)
    assert wrong is None
    assert 1000 <= seen["steps"] < 1000 + 4096
    assert seen["examples"] < EXAMPLES


@pytest.mark.parametrize("structure", STRUCTURES)
def test_programs_are_crowded(structure):
    """Two busy threads at least; often something that ties, where there are timestamps and several inputs."""
    programs = [STRUCTURES[structure][0](random.Random(number)) for number in range(200)]
    busy = [sum(bool(calls) for calls in program.threads) for program in programs]
    assert min(busy) >= 2
    if structure in ("t_gate", "run_gate", "w_hive", "pane_hive"):
        assert sum(map(tied, programs)) >= 40


def tied(program):
    """Whether two inputs have a timestamp in common."""
    stamps = defaultdict(set)
    for _, call in program.calls():
        if len(call) > 2:
            stamps[call[2]].add(call[1])
    return any(len(inputs) > 1 for inputs in stamps.values())


# ---- the page ----


def test_the_page_is_generated_and_has_every_seeded_bug():
    page = PAGE.read_text()
    rows = read(page)
    assert put(page, rows) == page
    assert [(r.structure, r.name, r.known) for r in rows] == [(structure_of(b), n, known(b)) for n, b in BUGS.items()]


def test_the_structures_that_reach_nine_of_ten():
    assert {structure for structure, rows in by_structure(TABLE).items() if nine_of_ten(rows)} == NINE_OF_TEN
    assert set(by_structure(TABLE)) == set(STRUCTURES)


def test_nine_of_ten_is_not_rounded():
    found, missed = Row("t_gate", "a bug", (3, 0), 1, (3, 0)), Row("t_gate", "a bug", (3, 0))
    assert nine_of_ten([found] * 9 + [missed])
    assert not nine_of_ten([found] * 8 + [missed])
    assert not nine_of_ten([found] * 89 + [missed] * 10)


def test_a_row_is_read_as_it_was_written():
    rows = [Row("t_gate", "a bug", (3, 1), 7, (2, 1)), Row("t_gate", "another", (3, 0))]
    assert read(hunt_table.told(rows)) == rows
    assert [row.small for row in rows] == [True, False]
    assert [Row("t_gate", "a bug", (3, 1), 7, (3, n)).small for n in (1, 2, 3)] == [True, True, False]
