"""The C mirrors the specs: the table of labels and C functions in spec/README.md is what csrc gives."""

from __future__ import annotations

import shutil

import pytest

from pystream.verify.tlc import CheckError, mirror
from pystream.verify.tlc.manifest import find_spec
from pystream.verify.tlc.pluscal import labels, pluscal_modules

SPEC = find_spec()


@pytest.fixture
def copy(tmp_path):
    """Specs and C sources, to be broken."""
    shutil.copytree(SPEC, tmp_path / "spec")
    shutil.copytree(SPEC.parent / "csrc", tmp_path / "csrc")
    return tmp_path / "spec"


def replace(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_the_table_of_the_readme_is_current():
    assert mirror.is_current(SPEC), "run `pystream check TGateTies --update`"


def test_every_label_has_a_row():
    steps = [(path.stem, label.name) for path in pluscal_modules(SPEC) for label in labels(path)]
    rows = mirror.rows(SPEC)
    assert [(module, label) for module, label, _ in rows] == steps
    assert ("RunGate", "insert_publish", "`run_gate_publish` (`gates/run_gate.c`)") in rows


def test_a_renamed_function_makes_the_table_stale(copy):
    replace(copy.parent / "csrc/gates/run_gate.c", "run_gate_publish(", "run_gate_show(")
    assert not mirror.is_current(copy)
    mirror.write_readme(copy)
    assert mirror.is_current(copy)
    assert "`run_gate_show`" in (copy / "README.md").read_text()


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (
            "csrc/gates/t_gate.c",
            "AT(insert_publish)",
            "AT(insert_publsh)",
            r"AT\(insert_publsh\) is a label of no module",
        ),
        ("csrc/gates/t_gate.c", "AT(insert_publish);", "", "insert_publish: no mark in its C files, and nothing in"),
        ("spec/mirror.toml", '"update_own"', '"update_mine"', "the function update_mine is in no file of csrc"),
        ("spec/mirror.toml", '"windows/w_hive.c:take"', '"take"', "the function take is in .*: write"),
        ("spec/mirror.toml", "enqueue_unlock = ", "enqueue_unlok = ", "enqueue_unlock: no mark"),
        ("spec/mirror.toml", "[MSQueue.none]\n", '[MSQueue.none]\nwait = "why"\n', "MSQueue has no label wait"),
        (
            "spec/mirror.toml",
            "[TGate.none]\n",
            '[TGate.none]\ninsert_publish = "why"\n',
            "insert_publish: .* and none: why",
        ),
        ("spec/mirror.toml", '"PaneHive.next_read"', '"PaneHive.next_reed"', "PaneHive.next_reed has no mark in C"),
        ("spec/mirror.toml", '"gates/ms_queue.c"', '"gates/ms_queues.c"', "csrc has no file gates/ms_queues.c"),
        ("spec/mirror.toml", "[RunGate]\n", "[RunWay]\nc = []\n[RunGate]\n", "the PlusCal modules differ"),
    ],
)
def test_what_does_not_fit_is_refused(copy, file, old, new, told):
    replace(copy.parent / file, old, new)
    with pytest.raises(CheckError, match=told):
        mirror.rows(copy)


def test_functions_are_found_in_formatted_c():
    text = """\
int32_t declared(int a);
static int
static inline bool small(void) { return true; }
const char *wide(int a,
                 int b) {
  if (a) {
    return 0;
  }
}
typedef int (*kind)(void);
"""
    assert list(dict.fromkeys(name for name, _ in mirror.lines_in_functions(text))) == ["small", "wide"]
    assert [line for name, line in mirror.lines_in_functions(text) if name == "wide"][-1] == "}"
