"""Every property can fail: a model that must fail violates it, with a rule or with a piece of text changed."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from pystream.cli.check import check_command
from pystream.verify.tlc import CheckError
from pystream.verify.tlc.changed import changed
from pystream.verify.tlc.check import Silent, Wish, run_check
from pystream.verify.tlc.falsified import Property, falsified
from pystream.verify.tlc.manifest import find_spec, load, parse_model

TEXT = """---- MODULE Adder ----
Limit == 2
(* --algorithm adder
a: total := total + 1;
end algorithm *)
\\* BEGIN TRANSLATION
a == total' = total + 1
\\* END TRANSLATION
Small == total < 9
"""


def test_every_property_is_violated_by_a_model_that_must_fail():
    spec = find_spec()
    found = falsified(spec, load(spec))
    assert len(found.checked) > 150
    assert [str(one) for one in found.never] == []


@pytest.mark.parametrize("name", ["TGateLeavesLatest", "WHiveNotHanded", "ReadyOrderClosedHolds"])
def test_without_its_model_that_must_fail_a_property_is_named(name):
    spec = find_spec()
    models = [model for model in load(spec) if model.name != name]
    gone = next(model.expected for model in load(spec) if model.name == name)
    assert [one.name for one in falsified(spec, models).never] == [gone]


def test_a_property_is_known_by_the_module_that_defines_it(adder):
    models = load(adder)
    assert Property("MCAdder", "NoLoss") in falsified(adder, models).checked
    direct = [model for model in models if model.name in ("AdderDirect", "AdderLoses")]
    assert falsified(adder, direct).never == (Property("MCDirect", "NoLoss"),)


def test_the_whole_check_refuses_a_property_that_nothing_violates(spec):
    path = spec / "models.json"
    kept = [entry for entry in json.loads(path.read_text()) if entry["name"] in ("AdderPasses", "AdderLoses")]
    path.write_text(json.dumps(kept))
    done = CliRunner().invoke(check_command, ["--spec", str(spec)])
    assert done.exit_code == 1
    assert "properties: 1 of 2 are violated by a model that must fail" in done.stdout
    assert "no model violates MCAdder.Ends: one that must fail has to" in done.stdout


def test_a_change_is_made_in_what_tlc_reads():
    assert "a == total' = total + 2\n" in changed(TEXT, "total + 1", "total + 2", "M")
    assert "a: total := total + 1;" in changed(TEXT, "total + 1", "total + 2", "M")
    assert "Limit == 3" in changed(TEXT, "== 2", "== 3", "M")


@pytest.mark.parametrize(("old", "times"), [("total := total", 0), ("total", 3)])
def test_a_change_that_is_not_there_once_is_refused(old, times):
    with pytest.raises(CheckError, match=f"model M changes '{old}', which is there {times} times, not once"):
        changed(TEXT, old, "x", "M")


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"change": ["A", "b"]}, "change must be three texts"),
        ({"change": ["A", "b", "c"], "expected": "pass"}, "change is for models that must fail"),
    ],
)
def test_a_wrong_change_is_refused(fields, told):
    entry = {"name": "M", "module": "A", "shows": "s", "expected": "X", "invariants": ["X"], **fields}
    with pytest.raises(ValueError, match=told):
        parse_model(entry)


def test_a_model_runs_with_its_change(tools, adder):
    models = load(adder)
    passing = next(model for model in models if model.name == "AdderDirect")
    fields = {"name": "AdderTwice", "expected": "NoLoss", "invariants": ["NoLoss"], "module": "MCDirect", "shows": "s"}
    change = ["Adder", "total + 1", "total + 2"]
    twice = parse_model({**fields, "constants": dict(passing.constants), "spec": "Spec", "change": change})
    done = run_check(tools, adder, models, Wish([passing, twice]), Silent())
    assert [result.outcome for result in done.results] == ["pass", "NoLoss"]
