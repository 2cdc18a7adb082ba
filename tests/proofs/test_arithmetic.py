"""Ring 6: arithmetic for all values, proved on the text of csrc; and each claim is refuted where the text is wrong."""

from __future__ import annotations

import shutil

import pytest
import z3
from builds import ROOT

from pystream.verify.arithmetic import CLAIMS, prove, prove_goal, readiness

EDGES = "windows/edges.h"
VALUES = "base/value.h"
SUMS = "base/exact_sum.h"

#: A wrong text, and the claim that must not be provable on it.
BREAKS = {
    "the last edge is one window too late": (
        EDGES,
        "(ts - w.size) / w.advance * w.advance + w.size;\n  return start > end",
        "((ts - w.size) / w.advance + 1) * w.advance + w.size;\n  return start > end",
        "the last edge is the last one",
    ),
    "the earlier of start and end": (
        EDGES,
        "return start > end ? start : end",
        "return start < end ? start : end",
        "the last edge is the last one",
    ),
    "an end at the edge itself is next": (
        EDGES,
        "edge < w.size ? w.size",
        "edge <= w.size ? w.size",
        "the next edge is the next one",
    ),
    "the next end is forgotten": (
        EDGES,
        "return start < end ? start : end",
        "return start",
        "a window has all of a slice or nothing of it",
    ),
    "a gap begins one late": (
        EDGES,
        "begin % w.advance < w.size",
        "begin % w.advance <= w.size",
        "a window has all of a slice or nothing of it",
    ),
    "a gap is covered": (
        EDGES,
        "w.size >= w.advance ||",
        "w.size <= w.advance ||",
        "a window has all of a slice or nothing of it",
    ),
    "a window that ends at ts is its first": (
        EDGES,
        "return ts < w.size ? 0",
        "return ts <= w.size ? 0",
        "the windows of a timestamp are those from the first start to the last",
    ),
    "a window is complete one too early": (
        EDGES,
        "start + w.size <= (uint64_t)ts",
        "start + w.size <= (uint64_t)ts + 1",
        "a window is complete exactly if nothing can come into it",
    ),
    "a window is complete one too late": (
        EDGES,
        "start + w.size <= (uint64_t)ts",
        "start + w.size < (uint64_t)ts",
        "a window is complete exactly if nothing can come into it",
    ),
    "nothing received counts as received": (
        EDGES,
        "return ts >= 0 &&",
        "return ts >= -1 &&",
        "a window is complete exactly if nothing can come into it",
    ),
    "the limit is one too high": (
        EDGES,
        "w.advance * PS_WINDOWS_MAX - 1",
        "w.advance * PS_WINDOWS_MAX",
        "the limit of windows per tuple is exact",
    ),
    "the limit wraps": (
        EDGES,
        "(w.size - 1) / w.advance >= PS_WINDOWS_MAX",
        "w.size >= PS_WINDOWS_MAX",
        "the limit of windows per tuple is exact",
    ),
    "negative doubles are not turned round": (
        VALUES,
        "type_is_float(type) && (bits & VALUE_SIGN) ? ~bits",
        "type_is_float(type) && (bits & VALUE_SIGN) ? bits",
        "words are ordered as the values",
    ),
    "NaNs differ": (
        VALUES,
        "isnan(bits_double(bits)) ? VALUE_NAN : bits",
        "isnan(bits_double(bits)) ? bits : bits",
        "words are ordered as the values",
    ),
    "bool is signed": (
        VALUES,
        "return t == PS_BOOL || (t >= PS_U8 && t <= PS_U64)",
        "return t >= PS_U8 && t <= PS_U64",
        "words are ordered as the values",
    ),
    "the inverse takes the other half": (
        VALUES,
        "return type_is_float(type) && !(bits & VALUE_SIGN) ? ~bits",
        "return type_is_float(type) && (bits & VALUE_SIGN) ? ~bits",
        "a word gives back its value",
    ),
    "zeros are two keys": (
        VALUES,
        "bits == VALUE_SIGN) bits = 0",
        "bits == VALUE_SIGN) bits = VALUE_SIGN",
        "keys are equal exactly if their words are",
    ),
    "the narrow range is one too wide": (
        SUMS,
        "return shift <= EXACT_SUM_SHIFT_MAX",
        "return shift <= EXACT_SUM_SHIFT_MAX + 1",
        "a double in the narrow range is its units, to the bit",
    ),
    "the second factor is forgotten": (
        SUMS,
        "(shift - some) & 63",
        "shift & 63",
        "a double in the narrow range is its units, to the bit",
    ),
    "the sign is that of the units": (
        SUMS,
        "((m << some) ^ sign) - sign",
        "(m << some) ^ sign",
        "a double in the narrow range is its units, to the bit",
    ),
}


@pytest.mark.parametrize("name", CLAIMS)
def test_for_all_values(name):
    assert prove(CLAIMS[name], ROOT / "csrc") == []


@pytest.mark.parametrize("name", CLAIMS)
def test_no_claim_is_about_nothing(name):
    """What a claim supposes is not a contradiction, or it would show anything."""
    seen = set()
    for goal in CLAIMS[name].state(ROOT / "csrc"):
        supposed = z3.And(*goal.given) if goal.given else z3.BoolVal(val=True)
        if supposed.sexpr() in seen:
            continue
        seen.add(supposed.sexpr())
        solver = z3.Solver()
        solver.set("timeout", 2_000)
        solver.add(supposed)
        assert solver.check() != z3.unsat, goal.what


@pytest.mark.full
@pytest.mark.parametrize("name", BREAKS)
def test_a_wrong_text_is_refuted(name, tmp_path):
    file, right, wrong, claim = BREAKS[name]
    shutil.copytree(ROOT / "csrc", tmp_path / "csrc", ignore=shutil.ignore_patterns("model"))
    source = tmp_path / "csrc" / file
    assert right in source.read_text()
    source.write_text(source.read_text().replace(right, wrong, 1))
    refuted = prove(CLAIMS[claim], tmp_path / "csrc")
    assert refuted, "proved all the same"
    assert refuted[0].values is not None, str(refuted[0])


def test_a_counterexample_is_told(tmp_path):
    """In words, with the values: a person can try them."""
    shutil.copytree(ROOT / "csrc", tmp_path / "csrc", ignore=shutil.ignore_patterns("model"))
    source = tmp_path / "csrc" / EDGES
    source.write_text(source.read_text().replace("w.advance * PS_WINDOWS_MAX - 1", "w.advance * PS_WINDOWS_MAX", 1))
    told = str(prove(CLAIMS["the limit of windows per tuple is exact"], tmp_path / "csrc")[0])
    assert "up to it a tuple is in no more windows: not for advance = " in told


NO_READER_PASSES = "no reader passes a published node, for any number of inputs"
EXACT = "the test of readiness is exact and stays true, for any number of inputs"


RULE = readiness.State.may_advance


def _any(_state):
    return z3.BoolVal(val=True)


def _strict(state):
    """Hold back the node that an input has published last, as the paper's test does."""
    node = z3.Const("held", readiness.Input)
    return z3.And(RULE(state), z3.Not(z3.Exists([node], state.is_next(state.written(node)))))


@pytest.mark.parametrize(
    ("rule", "claim", "what"),
    [
        (_any, NO_READER_PASSES, "advance: head is not past"),
        (_any, EXACT, "the next node is ready"),
        (_strict, EXACT, "who may not advance misses nothing"),
    ],
)
def test_another_test_of_readiness_is_refuted(rule, claim, what, monkeypatch):
    monkeypatch.setattr(readiness.State, "may_advance", rule)
    first = next(refuted for goal in CLAIMS[claim].state(ROOT / "csrc") for refuted in prove_goal(goal))
    assert what in first.what
