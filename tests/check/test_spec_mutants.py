"""Mistakes that a program makes in the specs: each is noticed by a model that passes, or explained."""

from __future__ import annotations

import datetime as dt
import sys
import time
from typing import TYPE_CHECKING

import pytest
from spec_kills import LIVES, MODULES, Verdict, all_mutants, explained, judge, judges, read_table, run, table, told
from spec_mutants import Mutant, mutants

from pystream.verify.tlc.java import find_tools
from pystream.verify.tlc.manifest import find_spec, load

if TYPE_CHECKING:
    from pathlib import Path

SAMPLE_S = 60.0
SAMPLE_AT_ONCE = 4
LIVING_SHARE_MAX = 0.25

MODULE = """---- MODULE Small ----
EXTENDS Naturals
VARIABLES x, y, pc
Ready(n) == n < 3 /\\ y # 0
Other == \\/ x = 1
         \\/ y = 2
a(self) == /\\ pc[self] = "a"
           /\\ IF x > 0
                 THEN /\\ x' = [x EXCEPT ![self] = 1]
                 ELSE /\\ x' = x
           /\\ pc' = [pc EXCEPT ![self] = "b"]
b(self) == /\\ pc[self] = "b"
           /\\ y' = 1
           /\\ pc' = [pc EXCEPT ![self] = "c"]
c(self) == /\\ pc[self] = "c"
           /\\ pc' = [pc EXCEPT ![self] = "Done"]
Fair == WF_x(a(1)) /\\ Ready(1)
====
"""


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "Small.tla"
    path.write_text(MODULE)
    return path


def changes(path: Path, kind: str) -> list[tuple[str, str, str]]:
    return [(one.place, one.old, one.new) for one in mutants(path) if one.kind == kind]


def test_what_a_program_can_mistake(small):
    assert ("a", "x > 0", "~(x > 0)") in changes(small, "guard flipped")
    assert ("Ready", " < ", " <= ") in changes(small, "compared otherwise")
    assert ("Ready", " /\\ y # 0", "") in changes(small, "conjunct dropped")
    assert ("Other", "x = 1", "FALSE") in changes(small, "disjunct dropped")
    assert ("b", "1", "y") in changes(small, "assignment lost")
    assert ("Fair", "WF_x(a(1))", "TRUE") in changes(small, "fairness weakened")


def test_swapped_labels_do_each_others_work(small):
    (swapped,) = [one for one in mutants(small) if one.kind == "labels swapped" and one.place == "a"]
    text = swapped.text(MODULE)
    first, second = text.split("a(self) ==")[1].split("b(self) ==")
    assert 'pc[self] = "b"' in first
    assert '![self] = "c"]' in first
    assert 'pc[self] = "a"' in second.split("c(self) ==")[0]
    assert '![self] = "b"]' in second.split("c(self) ==")[0]


def test_each_mutant_has_a_name_of_its_own_and_changes_the_text():
    texts = {path: path.read_text() for path in find_spec().glob("*.tla")}
    found = [(one, text) for path, text in texts.items() for one in mutants(path)]
    assert len({one.name for one, _ in found}) == len(found) > 1000
    assert [one.name for one, text in found if one.text(text) == text] == []


def test_the_table_has_every_mutant():
    spec = find_spec()
    known = read_table(spec)
    assert [one.name for one in all_mutants(spec)] == list(known), "run `python tests/check/spec_kills.py`"
    verdicts = [Verdict(one, *known[one.name]) for one in all_mutants(spec)]
    assert table(verdicts) == (spec / "MUTANTS.md").read_text(), "run `python tests/check/spec_kills.py`"


def test_every_survivor_is_explained():
    living = {name for name, (_, how) in read_table(find_spec()).items() if how == LIVES}
    assert {name for name, why in explained().items() if why} == living
    assert len(living) <= LIVING_SHARE_MAX * len(read_table(find_spec()))


def test_judges_pass():
    models = load(find_spec())
    assert [model.name for module in MODULES for model in judges(models, module) if not model.must_pass] == []


def noticed(of: list[Mutant]) -> list[tuple[str, str, str]]:
    """The mutants that their model of the table does not notice as the table says."""
    spec = find_spec()
    models, known = {model.name: model for model in load(spec)}, read_table(spec)
    wanted = [(one, models[known[one.name][0]]) for one in of]
    results = run(spec, wanted, find_tools())
    return [(one.name, model.name, told(result)) for (one, model), result in zip(wanted, results, strict=True)
            if told(result) != known[one.name][1]]  # fmt: skip


@pytest.mark.full
def test_some_of_them_again(capsys: pytest.CaptureFixture[str]):
    """As many as fit, beginning at another place every day: it is printed."""
    known = read_table(find_spec())
    killed = [one for one in all_mutants(find_spec()) if known[one.name][1] not in (LIVES, "no end")]
    start = dt.datetime.now(tz=dt.UTC).toordinal() * SAMPLE_AT_ONCE % len(killed)
    with capsys.disabled():
        sys.stdout.write(f"\nspec mutants from {killed[start].name} on\n")
    begun, number = time.monotonic(), 0
    while number < len(killed) and time.monotonic() - begun < SAMPLE_S * 3 / 4:
        part = [killed[(start + number + i) % len(killed)] for i in range(SAMPLE_AT_ONCE)]
        assert noticed(part) == []
        number += SAMPLE_AT_ONCE
    assert number


@pytest.mark.deep
@pytest.mark.parametrize("module", MODULES)
def test_all_of_them(module: str):
    spec = find_spec()
    known = read_table(spec)
    verdicts = judge(spec, load(spec), all_mutants(spec, [module]), find_tools())
    found = {one.mutant.name: ("" if one.lives else one.model, one.how) for one in verdicts}
    assert found == {name: known[name] for name in found}
