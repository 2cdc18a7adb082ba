"""The manifest, the choice of models, what is written back."""

from __future__ import annotations

import json

import pytest

from pystream.verify.tlc import CheckError, update
from pystream.verify.tlc.manifest import THEOREMS, Model, find_spec, load, parse_model
from pystream.verify.tlc.result import Kind, Result
from pystream.verify.tlc.selection import SelectionError, override, parse_settings, select

ENTRY = {
    "name": "GateTies",
    "module": "MCGate",
    "shows": "ties come out by input",
    "expected": "pass",
    "spec": "FairSpec",
    "constants": {"Levels": 2, "Script": "<- ScriptTies", "ReadRule": '"exact"', "Locked": False},
    "invariants": ["TypeOK", "Sorted"],
    "properties": ["Ends"],
    "symmetry": "Threads",
}


def model(name, **fields):
    return Model(**{"name": name, "module": "MC", "shows": "s", "expected": "pass", **fields})


def test_the_configuration_file():
    assert parse_model(ENTRY).cfg().splitlines() == [
        "SPECIFICATION FairSpec",
        "CONSTANTS",
        "  Levels = 2",
        "  Script <- ScriptTies",
        '  ReadRule = "exact"',
        "  Locked = FALSE",
        "INVARIANTS",
        "  TypeOK",
        "  Sorted",
        "PROPERTIES",
        "  Ends",
        "SYMMETRY Threads",
    ]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"name": None}, "name must be str, not None"),
        ({"depth": True}, "depth must be int or null, not True"),
        ({"invariant": ["TypeOK"]}, "invariant is not a field of a model"),
        ({"expected": "Sortd"}, "expected is 'Sortd', but only pass, Deadlock, Assert, TypeOK, Sorted, Ends"),
        ({"module": ...}, "module is missing"),
        ({"name": "../Gate"}, "name must be one word, not '../Gate'"),
        ({"theorem": ["4"]}, "theorem 4 is not in the paper; there are 1, 2, 3, L1, L2"),
    ],
)
def test_a_wrong_manifest_is_refused(tmp_path, change, told):
    entry = {key: value for key, value in {**ENTRY, **change}.items() if value is not ...}
    (tmp_path / "models.json").write_text(json.dumps([entry]))
    with pytest.raises(CheckError, match="models") as error:
        load(tmp_path)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [("[", "Expecting value"), ("{}", "a list of models"), ("[1]", "model 0: an object is expected")],
)
def test_what_is_no_manifest_is_refused(tmp_path, text, told):
    (tmp_path / "models.json").write_text(text)
    with pytest.raises(CheckError, match=told):
        load(tmp_path)


def test_names_are_unique(tmp_path):
    (tmp_path / "models.json").write_text(json.dumps([ENTRY, ENTRY]))
    with pytest.raises(CheckError, match="two models are called GateTies"):
        load(tmp_path)


def test_the_folder_is_found_by_option_then_variable(tmp_path, monkeypatch):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "models.json").write_text("[]")
    monkeypatch.setenv("PYSTREAM_SPEC", str(tmp_path / "b"))
    assert find_spec(tmp_path / "a") == tmp_path / "a"
    assert find_spec() == tmp_path / "b"
    monkeypatch.setenv("PYSTREAM_SPEC", str(tmp_path / "c"))
    with pytest.raises(CheckError, match="name the folder of the specs with --spec DIR or PYSTREAM_SPEC"):
        find_spec()


@pytest.mark.parametrize("place", ["pystream/spec", "spec"])
def test_the_folder_is_found_in_a_wheel_and_in_a_checkout(tmp_path, monkeypatch, place):
    (tmp_path / place).mkdir(parents=True)
    (tmp_path / place / "models.json").write_text("[]")
    monkeypatch.delenv("PYSTREAM_SPEC", raising=False)
    monkeypatch.setattr("pystream.verify.tlc.manifest.__file__", str(tmp_path / "pystream/verify/tlc/manifest.py"))
    assert find_spec() == tmp_path / place


def test_a_module_of_large_models_is_covered_by_its_smallest(tmp_path):
    """Else no model would show that its labels are reached, and the whole check would fail for that."""
    sizes = {"A1": ("MCA", 9), "A2": ("MCA", 10**6), "B1": ("MCB", 10**6), "B2": ("MCB", 10**5), "B3": ("MCB", 10**7)}
    entries = [{**ENTRY, "name": name, "module": m, "distinct_states": n} for name, (m, n) in sizes.items()]
    entries += [{**ENTRY, "name": "B4", "module": "MCB", "distinct_states": 20_000, "expected": "Sorted"}]
    entries += [{**ENTRY, "name": "B5", "module": "MCB", "distinct_states": 20_000, "deep": True}]
    (tmp_path / "models.json").write_text(json.dumps(entries))
    assert [model.name for model in load(tmp_path) if model.covers] == ["A1", "B2"]


MODELS = [model("GateTies"), model("GateTiesLong"), model("GateBig", deep=True), model("HiveTies")]


@pytest.mark.parametrize(
    ("names", "deep", "chosen"),
    [
        ([], False, "GateTies GateTiesLong HiveTies"),
        ([], True, "GateTies GateTiesLong GateBig HiveTies"),
        (["GateTies"], False, "GateTies"),
        (["Gate"], False, "GateTies GateTiesLong"),
        (["Gate"], True, "GateTies GateTiesLong GateBig"),
        (["GateBig"], False, "GateBig"),
        (["HiveTies", "*Ties"], False, "GateTies HiveTies"),
    ],
)
def test_selection(names, deep, chosen):
    assert [model.name for model in select(MODELS, names, deep=deep)] == chosen.split()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("GateTis", "no model is called GateTis; did you mean GateTies"),
        ("gatebig", "did you mean GateBig"),
        ("Xyzzy", "no model is called Xyzzy; see --list"),
        ("GateB*", "GateB* means only deep models: add --deep"),
    ],
)
def test_what_is_not_there(name, told):
    with pytest.raises(SelectionError) as error:
        select(MODELS, [name], deep=False)
    assert told in str(error.value)


def test_constants_by_hand():
    given = parse_model(ENTRY)
    changed = override(given, parse_settings(["ReadRule=printed", "Levels = 3", "Script=<- Other"]))
    assert changed.constants == {"Levels": "3", "Script": "<- Other", "ReadRule": '"printed"', "Locked": "FALSE"}
    with pytest.raises(SelectionError, match="GateTies has no constant ReadRul; did you mean ReadRule"):
        override(given, {"ReadRul": "1"})
    with pytest.raises(SelectionError, match="'Levels' is not NAME=VALUE"):
        parse_settings(["Levels"])


def result(of, **fields):
    measured = {"outcome": "pass", "kind": Kind.PASSES, "distinct_states": 1234, "depth": 7, "seconds": 9.9, **fields}
    return Result(model=of, detail="", messages=(), processor_s=1.26, **measured)


def test_update_writes_what_came_out_as_it_must(tmp_path):
    entries = [
        ENTRY,
        {**ENTRY, "name": "Bad", "depth": 3},
        {**ENTRY, "name": "Fails", "expected": "Sorted"},
    ]
    (tmp_path / "models.json").write_text(json.dumps(entries))
    ties, bad, fails = load(tmp_path)
    failed = result(fails, outcome="Sorted", kind=Kind.INVARIANT)
    update.write_manifest(tmp_path, [result(ties), result(bad, outcome="Sorted"), failed])
    written = json.loads((tmp_path / "models.json").read_text())
    assert written[0] == {**ENTRY, "distinct_states": 1234, "depth": 7, "seconds": 1.3}
    assert written[1] == entries[1]
    assert written[2] == {**entries[2], "distinct_states": 1234, "depth": None, "seconds": 1.3}
    assert '    "invariants": ["TypeOK", "Sorted"],\n' in (tmp_path / "models.json").read_text()


def test_the_table_of_the_readme(tmp_path):
    models = [
        model("A", bounds="2 x 3", distinct_states=1234, depth=7, seconds=1.3),
        model("B", shows="a | b\nc", expected="Sorted", deep=True, departure=4),
    ]
    readme = tmp_path / "README.md"
    readme.write_text("# Specs\n<!-- models -->\nold\n<!-- /models -->\nend\n")
    assert not update.readme_is_current(tmp_path, models)
    update.write_readme(tmp_path, models)
    assert update.readme_is_current(tmp_path, models)
    assert readme.read_text().splitlines() == [
        "# Specs",
        "<!-- models -->",
        "| model | shows | bounds | must | distinct states | depth | seconds |",
        "|---|---|---|---|--:|--:|--:|",
        "| `A` | s | 2 x 3 | pass | 1,234 | 7 | 1.3 |",
        r"| `B` (deep) | a \| b c (departure 4) |  | fail `Sorted` | - | - | - |",
        "<!-- /models -->",
        "end",
    ]


def test_a_readme_without_markers_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("<!-- models -->")
    with pytest.raises(CheckError, match="needs the lines <!-- models --> and <!-- /models -->"):
        update.check_readme(tmp_path)


def test_models_of_a_theorem():
    models = [
        model("A", theorem=("1",)),
        model("B", theorem=("1", "L1"), deep=True),
        model("C", theorem=("2",)),
        model("D"),
    ]

    def chosen(*names, deep=False, theorems=()):
        return [m.name for m in select(models, names, deep=deep, theorems=theorems)]

    assert chosen(theorems=("1",)) == ["A"]
    assert chosen(theorems=("1",), deep=True) == ["A", "B"]
    assert chosen(theorems=("L1", "2"), deep=True) == ["B", "C"]
    assert chosen("B", theorems=("1",)) == ["B"]
    with pytest.raises(SelectionError, match="no model is called D"):
        chosen("D", theorems=("1",))


@pytest.mark.parametrize("theorem", THEOREMS)
def test_every_theorem_has_models_that_show_it_and_that_refute_it_as_printed(theorem):
    models = select(load(find_spec()), (), deep=True, theorems=(theorem,))
    assert {m.must_pass for m in models} == {True, False}
    assert [m for m in models if not m.must_pass and m.departure is None] == []
    assert [m for m in models if m.must_pass and not m.deep] != []
