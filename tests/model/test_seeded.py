"""Seeded bugs on the model build: each entry of seeded.toml is found in its program, with few switches.

A bug is a change of the source, which mutants.toml has under the same name or the entry brings along, or an accessor
with a weaker order. The counterexample is the first that a search by rising numbers of preemptions and stale accesses
meets; its size is in the table. `pytest -s` prints what was found.
"""

from __future__ import annotations

import itertools
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import pytest
import test_model_doorbell
import test_model_ms_queue
import test_model_pane_hive
import test_model_queue
import test_model_run_gate
import test_model_t_gate
import test_model_w_hive
import test_model_win_set
from judge import sequential_of, stronger_than_relaxed

from pystream.verify.scheduler import Program, build, explained, explore, show

CSRC = Path(__file__).parents[2] / "csrc"
BUGS = tomllib.loads(Path(__file__).with_name("seeded.toml").read_text())
MUTANTS = tomllib.loads((Path(__file__).parents[1] / "mutants.toml").read_text())
WEAKENED = [name for name, bug in BUGS.items() if "weaken" in bug]
CHANGED = [name for name in BUGS if name not in WEAKENED]

SWITCHES_MAX = 3
OPERATIONS_MAX = 4  # what a counterexample should do with; the table says where it cannot


def calls(text: str) -> list[tuple]:
    """The calls of "insert 0 1 7; get 0"."""
    each = [call.split() for call in text.split(";") if call.strip()]
    return [(name, *map(int, arguments)) for name, *arguments in each]


def program_of(bug: dict) -> Program:
    weak = "weaken" in bug
    threads = [calls(text) for text in bug["threads"]]
    before, after = calls(bug.get("before", "")), calls(bug.get("after", ""))
    talk = bug.get("talk", weak)
    return Program(bug["subject"], threads, tuple(bug.get("parameters", ())), before, after, weak=weak, talk=talk)


def bug_in(bug: dict) -> Program:
    return Program(**{**vars(program_of(bug)), "weaken": bug.get("weaken", {})})


def shortest(program, *, switches, stale=0, failures=0, library=None):
    """A wrong execution with the fewest preemptions and stale accesses, and its bounds. None: there is none."""
    for preemptions, back in sorted(itertools.product(range(switches + 1), range(stale + 1)), key=sum):
        bounds = {"preemptions": preemptions, "stale": back, "failures": failures}
        found = explore(program, executions=20_000, keep_going=True, build=library, **bounds)
        bad = found.first_bad(lambda h: explained(h, sequential_of(program)))
        if bad is not None:
            return bad, {"switches": preemptions, "stale": back, "failures": failures}
    return None


def sizes(bug: dict) -> dict[str, int]:
    return {name: bug.get(name, 0) for name in ("switches", "stale", "failures")}


def without_one_call(program):
    """The program without one of its calls, for each of them."""
    parts = {"before": [program.before], "after": [program.after], "threads": list(program.threads)}
    for part, lists in parts.items():
        for number, each in enumerate(lists):
            for i in range(len(each)):
                less = [*each[:i], *each[i + 1 :]]
                threads = [t for t in [*lists[:number], less, *lists[number + 1 :]] if t]
                if part != "threads" or threads:
                    yield Program(**{**vars(program), part: threads if part == "threads" else less})


def check_is_caught(name, library=None):
    """By the check that the table names, in an execution of the size that the table says, and with no call too many."""
    bug = BUGS[name]
    program = bug_in(bug)
    found = shortest(program, library=library, **sizes(bug))
    assert found is not None, f"{program} goes well"
    bad, bounds = found
    check = "history" if bad.fine else bad.verdict
    kinds = Counter(d.kind for d in bad.decisions)
    size = {"switches": kinds["switch"], "stale": kinds["stale"], "failures": kinds["fail"]}
    row = (name, check, *size.values(), len(program.calls()))
    print("\n|", " | ".join(map(str, row)), "|")  # noqa: T201 - the table, with pytest -s
    assert (check, size) == (bug["check"], sizes(bug)), show(bad)
    assert len(program.calls()) <= bug.get("operations", OPERATIONS_MAX)
    for less in without_one_call(program):
        assert shortest(less, library=library, **bounds) is None, f"{less} is enough"


@pytest.mark.parametrize("name", BUGS)
def test_without_the_bug_its_program_goes_well(name):
    found = shortest(program_of(BUGS[name]), **sizes(BUGS[name]))
    assert found is None, show(found[0])


@pytest.mark.parametrize("name", WEAKENED)
def test_every_weakened_order_is_caught(name):
    check_is_caught(name)


@pytest.mark.parametrize("name", CHANGED)
def test_every_seeded_bug_fits_the_source(name):
    assert name not in MUTANTS or "file" not in BUGS[name], "it stands in mutants.toml already"
    bug = {**MUTANTS.get(name, {}), **BUGS[name]}
    assert (CSRC / bug["file"]).read_text().count(bug["right"]) > 0


def test_there_are_enough_and_they_are_small():
    assert len(CHANGED) >= 20
    assert max(bug["switches"] for bug in BUGS.values()) <= SWITCHES_MAX
    assert {bug["subject"] for bug in BUGS.values()} == {
        *("t_gate", "w_hive", "win_set", "ms_queue", "run_gate", "pane_hive", "queue", "doorbell", "ledger")
    }


def test_every_order_that_is_needed_is_among_them():
    orders = {
        "t_gate": test_model_t_gate.ORDERS,
        "w_hive": test_model_w_hive.ORDERS,
        "win_set": stronger_than_relaxed(*test_model_win_set.WEAK),
        "ms_queue": stronger_than_relaxed(*test_model_ms_queue.reusing()),
        "run_gate": test_model_run_gate.ORDERS,
        "pane_hive": test_model_pane_hive.ORDERS,
        "queue": test_model_queue.ORDERS,
        "doorbell": test_model_doorbell.ORDERS,
    }
    seeded = {(BUGS[name]["subject"], *pair) for name in WEAKENED for pair in BUGS[name]["weaken"].items()}
    assert seeded == {(subject, *pair) for subject, pairs in orders.items() for pair in pairs}


@pytest.fixture(scope="module")
def sources(tmp_path_factory) -> Path:
    """A copy of the sources; what is compiled for one bug is used again for the next."""
    folder = tmp_path_factory.mktemp("seeded")
    shutil.copytree(CSRC, folder / "csrc")
    return folder


@pytest.mark.deep
@pytest.mark.parametrize("name", CHANGED)
def test_every_seeded_bug_is_caught(name, sources):
    bug = {**MUTANTS.get(name, {}), **BUGS[name]}
    target = sources / "csrc" / bug["file"]
    source = target.read_text()
    target.write_text(source.replace(bug["right"], bug["wrong"], 1))
    try:
        library = build(sources / "csrc", sources / "objects")
    finally:
        target.write_text(source)
    check_is_caught(name, library)
