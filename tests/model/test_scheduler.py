"""One execution at a time: decisions, verdicts, what is told, and that everything can be run again."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import find, given, settings
from hypothesis import strategies as st

from pystream.errors import PystreamError
from pystream.verify.scheduler import Decision, Program, build, library, load, replay, run, show

CSRC = Path(__file__).parents[2] / "csrc"

LOST = Program("counter", [[("increment",)], [("increment",)]], parameters=(1,), after=[("get",)])
KINDS = st.sampled_from(["switch", "stale", "fail", "kill", "stall"])
DECISIONS = st.lists(st.builds(Decision, KINDS, st.integers(0, 20), st.integers(0, 3)), max_size=5)


def order_of(execution):
    return [a.thread for a in execution.trace if a.accessor and a.step >= 0]


def test_by_default_a_thread_runs_to_its_end():
    execution = run(LOST)
    assert execution.fine
    assert order_of(execution) == [1, 1, 2, 2]
    assert [str(c) for c in execution.history] == ["increment() = 0", "increment() = 1", "get() = 2"]


def test_threads_without_calls():
    assert run(Program("counter", [])).fine
    assert run(Program("counter", [[], []], after=[("get",)])).history[0].result == 0


def test_switches():
    assert order_of(run(LOST, [("switch", 1)])) == [1, 2, 2, 1]
    assert order_of(run(LOST, [("switch", 1), ("switch", 2)])) == [1, 2, 1, 2]
    assert order_of(run(LOST, [("switch", 0)])) == [2, 2, 1, 1]
    assert order_of(run(LOST, [("switch", 1, 2)])) == [1, 1, 2, 2]  # the second other of two: itself
    three = Program("counter", [[("increment",)]] * 3, parameters=(1,))
    assert order_of(run(three, [("switch", 1, 2)])) == [1, 3, 3, 1, 2, 2]


def test_a_stalled_thread_waits_for_all_others():
    three = Program("counter", [[("increment",)]] * 3, parameters=(1,))
    assert order_of(run(three, [("stall", 1)])) == [1, 2, 2, 3, 3, 1]


def test_a_killed_thread_leaves_its_call_pending():
    execution = run(LOST, [("kill", 1)])
    assert order_of(execution) == [1, 2, 2]
    assert [(c.thread, c.pending, c.result) for c in execution.history] == [
        (1, True, None),
        (2, False, 0),
        (0, False, 1),
    ]


def test_failing_allocations():
    program = Program("stack", [[("push", 1), ("push", 2)], [("push", 3)]], after=[("pop",)] * 3)
    assert [c.result for c in run(program, [("fail", 3)]).history] == [1, 0, 1, 3, 1, None]
    execution = run(program, [("fail", 1), ("fail", 2), ("fail", 3)])
    assert [c.result for c in execution.history] == [0, 0, 0, None, None, None]


def test_times_tell_which_calls_overlap():
    first, second, get = run(LOST, [("switch", 1)]).history
    assert first.invoked < second.invoked < second.returned < first.returned < get.invoked
    first, second, get = run(LOST).history
    assert first.returned < second.invoked


@given(DECISIONS, st.booleans())
def test_the_same_decisions_give_the_same_execution(decisions, weak):
    program = Program("stack", [[("push", 1), ("pop",)], [("push", 2), ("pop",)]], weak=weak, after=[("pop",)])
    once, again = run(program, decisions), run(program, decisions)
    assert once == again
    assert once.fine, show(once)


def test_a_lost_update_shrinks_to_one_switch():
    def loses(decisions):
        return run(LOST, decisions).history[-1].result == 1

    smallest = find(
        DECISIONS.filter(lambda ds: all(d.kind != "kill" for d in ds)), loses, settings=settings(max_examples=2000)
    )
    assert [d for d in smallest if d.kind != "switch"] == []
    assert smallest == [("switch", 1, 1)]


def test_program_and_schedule_shrink_together():
    """A stack that frees too early: what is left of any failing program and schedule is the classic."""
    calls = st.one_of(st.tuples(st.just("push"), st.integers(1, 3)), st.just(("pop",)))
    programs = st.builds(
        Program,
        st.just("stack"),
        st.lists(st.lists(calls, max_size=4), min_size=2, max_size=3),
        parameters=st.just((1,)),
        before=st.lists(calls, max_size=3),
    )

    def uses_freed_memory(case):
        return run(*case).verdict == "freed"

    program, schedule = find(st.tuples(programs, DECISIONS), uses_freed_memory, settings=settings(max_examples=5000))
    assert len(program.calls()) == 3
    assert len(schedule) == 1


PUBLISHED = [("write", 0, 1), ("store", 0, 1, 2)]


@pytest.mark.parametrize(
    ("threads", "decisions", "verdict", "text"),
    [
        ([[("write", 0, 1)], [("read", 0)]], [], "race", "thread 2 reads"),
        ([[("write", 0, 1)], [("write", 0, 2)]], [("switch", 0)], "race", "thread 1 writes"),
        ([[("read", 0)], [("read", 0)]], [], "fine", ""),
        ([PUBLISHED, [("load", 0, 1), ("read", 0)]], [], "fine", ""),
        ([PUBLISHED, [("load", 0, 0), ("read", 0)]], [], "race", "nothing orders the two"),
        ([PUBLISHED, [("load", 0, 1), ("read", 0)]], [("switch", 0)], "race", "nothing orders the two"),
        ([[("free_shared",)], [("read", 0)]], [], "freed", "which thread 1 freed"),
        ([[("load", 0, 0), ("free_shared",)], [("read", 0)]], [], "freed", "nothing orders this after thread 2's use"),
        ([[("free_shared",), ("free_shared",)]], [], "twice", "frees"),
        ([[("load", 1 << 40, 0)]], [], "crash", "which is not allocated"),
        ([[("read", 1 << 50)]], [], "crash", "which is not allocated"),
        ([[("load", 0, 9)]], [], "assertion", "does not hold"),
        ([[("load", 0, 0), ("unlabelled", 0)]], [], "assertion", "an access without a label of its own"),
        ([[("load", 0, 0)]] * 8, [], "misuse", ""),
    ],
)
def test_verdicts(threads, decisions, verdict, text):
    execution = run(Program("litmus", threads, parameters=(2,)), decisions)
    assert execution.verdict == verdict, execution.text
    assert text in execution.text


def test_a_wild_pointer_is_a_verdict():
    assert run(Program("litmus", [[("wild", 8)]], parameters=(1,))).verdict == "crash"
    assert run(LOST).fine  # and the process goes on


def test_memory_left_behind_is_a_verdict():
    execution = run(Program("litmus", [[("leak",)]], parameters=(1,)))
    assert (execution.verdict, execution.text) == ("leak", "1 blocks are left")


def test_freed_memory_of_a_naive_stack():
    """Freeing what was popped while another pop still looks at it: the classic, in one switch."""
    naive = Program("stack", [[("pop",)], [("pop",)]], parameters=(1,), before=[("push", 1)])
    execution = run(naive, [("switch", 1)])
    assert execution.verdict == "freed"
    assert run(Program(**{**vars(naive), "parameters": (0,)}), [("switch", 1)]).fine


def test_the_report():
    text = show(run(LOST, [("switch", 1)]))
    lines = text.splitlines()
    assert lines[0] == "fine"
    assert lines[2].split() == ["step", "thread", "0", "thread", "1", "thread", "2"]
    assert "subject_litmus.c" in text
    assert "increment_set: counter_set n0.1 <- 1" in text
    assert lines[-1] == f"replay: {replay(run(LOST, [('switch', 1)]))}"
    again = eval(replay(run(LOST, [("switch", 1)])), {"Program": Program, "run": run, "show": show})  # noqa: S307
    assert again == text


def test_stale_loads_are_told():
    program = Program("litmus", [[("store", 0, 1, 0)], [("load", 0, 0)]], parameters=(1,), weak=True)
    execution = run(program, [("stale", 1)])
    assert [c.result for c in execution.history if c.name == "load"] == [0]
    assert "[1 back]" in show(execution)


def test_what_the_library_offers():
    assert library().subjects()["counter"] == {"increment": (), "get": ()}
    run(LOST)
    assert library().accessors()["counter_set"] == "release"
    with pytest.raises(ValueError, match="there is no subject 'counters'"):
        run(Program("counters", []))
    with pytest.raises(ValueError, match="is none of increment"):
        run(Program("counter", [[("increment", 1)]]))


@pytest.mark.full
def test_another_build_can_be_loaded(tmp_path):
    """Seeded bugs are built this way."""
    same = load(library().path)
    assert same is not library()
    assert run(LOST, [("switch", 1)], build=same) == run(LOST, [("switch", 1)])
    shutil.copytree(CSRC, tmp_path / "csrc")
    source = tmp_path / "csrc/model/subject_litmus.c"
    source.write_text(
        source.read_text().replace("counter_set(&o->value, found + 1)", "counter_set(&o->value, found + 2)")
    )
    changed = build(tmp_path / "csrc", tmp_path / "objects")
    assert [run(LOST, build=b).history[-1].result for b in (changed, None)] == [4, 2]
    source.write_text("int broken = ;\n")
    with pytest.raises(PystreamError, match="does not compile"):
        build(tmp_path / "csrc", tmp_path / "objects")


def test_import_pystream_does_not_load_the_model():
    tools = ("pystream.verify", "pystream._model")
    code = f"import pystream, sys; sys.exit(any(m.startswith({tools!r}) for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
