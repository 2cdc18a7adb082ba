"""Labels are paths: what stands in C behind AT(label), and in which order, is what the PlusCal module does."""

from __future__ import annotations

import re
import shutil
from functools import cache

import pytest
from c_flow import Sources, cell_name
from label_paths import all_paths, swaps
from spec_flow import steps

from pystream.verify.tlc import mirror
from pystream.verify.tlc.manifest import find_spec

SPEC = find_spec()
CSRC = SPEC.parent / "csrc"
MODULES = [name for name, declared in mirror.declared(SPEC).items() if declared.c]

#: Labels that may be swapped unnoticed, by module: the two make the same access, and no path tells which comes first.
LIKE_EACH_OTHER = {
    "WHive": {("window_process", "window_carry"), ("window_process", "window_swap")},  # all change a window's words
    "Reclaim": {("insert_take_node", "reclaim_free")},  # the first reads of two stacks that are one cell
    "WakeMarks": {("output_arm", "output_sleep")},  # the output thread comes round from either to the other
    "Promises": {("output_arm", "output_sleep")},
    "Operator": {("output_arm", "output_sleep"), ("add_enqueue", "add_room")},  # both read and change what is held
}


@cache
def paths(spec=SPEC):
    return {one.module: one for one in all_paths(spec, Sources(spec.parent / "csrc"))}


@pytest.mark.parametrize("module", MODULES)
def test_marks_in_c_are_paths_of_the_spec(module):
    assert paths()[module].problems() == []


@pytest.mark.parametrize("module", MODULES)
def test_swapped_labels_are_noticed(module):
    one = paths()[module]
    unnoticed = {(a.label, b.label) for a, b in swaps(one.marks) if not one.problems({a: b.label, b: a.label})}
    assert unnoticed == LIKE_EACH_OTHER.get(module, set())


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(SPEC, tmp_path / "spec")
    shutil.copytree(CSRC, tmp_path / "csrc")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "module", "told"),
    [
        (
            "csrc/gates/t_gate.c",
            r"AT\(next_read_written\);(.*?)AT\(next_read_next\);",
            r"AT(next_read_next);\1AT(next_read_written);",
            "TGate",
            "a load of written; next_read_next of TGate.tla has none",
        ),
        (
            "csrc/gates/t_gate.c",
            r"AT\(insert_publish\);",
            "AT(insert_link_cas);",
            "TGate",
            "a store of written; insert_link_cas of TGate.tla has none",
        ),
        (
            "csrc/gates/ms_queue.c",
            r"AT\(enqueue_check_tail\);",
            "AT(enqueue_read_tail);",
            "MSQueue",
            r"AT\(enqueue_read_tail\) follows .*AT\(enqueue_read_next\): in MSQueue.tla",
        ),
        ("spec/mirror.toml", 'next = "next", written', "written", "TGate", "next is no cell of TGate in mirror.toml"),
        (
            "spec/mirror.toml",
            r"\[WHive.jumps\]",
            '[WHive.jumps]\n"next_read -> publish" = "why"',
            "WHive",
            "the jump next_read -> publish is not needed",
        ),
    ],
)
def test_what_does_not_fit_is_named(copy, file, old, new, module, told):
    text = (copy / file).read_text(encoding="utf-8")
    broken = re.sub(old, new, text, count=1, flags=re.DOTALL)
    assert broken != text
    (copy / file).write_text(broken, encoding="utf-8")
    problems = all_paths(copy / "spec", Sources(copy / "csrc"))
    assert any(re.search(told, problem) for one in problems if one.module == module for problem in one.problems())


# ---- the two readers alone ----


def order(tmp_path, *bodies):
    """The labels that follow each other; START is before the first one."""
    (tmp_path / "base").mkdir()
    (tmp_path / "base/atomics.h").write_text("")
    names = iter("fgh")
    text = "".join(f"static int {next(names)}(void) {{\n{body}\n}}\n" for body in bodies)
    (tmp_path / "base/one.c").write_text(text)
    sources = Sources(tmp_path)
    edges = sources.flow("base/one.c", "f", sources.marks).edges
    return {f"{a.label if a else 'START'} {b.label}" for a, b in edges}


@pytest.mark.parametrize(
    ("bodies", "edges"),
    [
        (["AT(a); AT(b);"], {"START a", "a b"}),
        (["if (x) AT(a); else AT(b); AT(c);"], {"START a", "START b", "a c", "b c"}),
        (["if (x) { AT(a); return 0; } AT(b);"], {"START a", "START b"}),
        (["while (x) AT(a); AT(b);"], {"START a", "START b", "a a", "a b"}),
        (["for (int i = 0; i < n; i++) AT(a); AT(b);"], {"START a", "a a", "a b"}),
        (["for (;;) { AT(a); if (x) break; AT(b); if (y) continue; AT(c); } AT(d);"],
         {"START a", "a b", "b a", "b c", "c a", "a d"}),
        (["do { AT(a); } while (x); AT(b);"], {"START a", "a a", "a b"}),
        (["switch (x) { case 1: AT(a); break; case 2: AT(b); default: AT(c); } AT(d);"],
         {"START a", "START b", "START c", "b c", "a d", "c d"}),
        (["if (g() && h()) AT(c);", "AT(a); return 1;", "AT(b); return 1;"], {"START a", "a b", "b c"}),
        (["if (g() || h()) AT(c); AT(d);", "AT(a); return 1;", "AT(b); return 1;"],
         {"START a", "a b", "a c", "b c", "c d", "b d"}),
        (["if (!(g() && h())) AT(c);", "AT(a); return 1;", "AT(b); return 1;"], {"START a", "a b", "a c", "b c"}),
        (["return x ? g() : h();", "AT(a); return 1;", "AT(b); return 1;"], {"START a", "START b"}),
        (["g(); g();", "AT(a); return 1;"], {"START a", "a a"}),
    ],
)  # fmt: skip
def test_the_flow_through_c(tmp_path, bodies, edges):
    assert order(tmp_path, *bodies) == edges


def test_accessors_and_cells():
    sources = Sources(CSRC)
    found = sources.accessors
    assert {found[name] for name in ("link_read", "written_publish", "link_swap", "tickets_draw")} == {
        "load", "store", "swap", "add",
    }  # fmt: skip
    assert sources.no_steps == {"held_count": "load"}
    cells = {"&r->passed[reader].word": "passed", "&node_at(q, node_of(last))->next": "next", "word": "word"}
    assert {text: cell_name(text) for text in cells} == cells


def test_a_step_of_a_spec():
    step = steps(SPEC / "TGate.tla")["next_read_written"]
    assert step.follows == {"next_read_next", "next_peek_next", "next_read_written"}
    assert "written" in step.reads  # through IsLatest
    assert "next" not in step.reads
    assert "written" not in step.writes
