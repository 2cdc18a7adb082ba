"""One execution at a time: decisions, verdicts, what is told, and that everything can be run again."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
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


def test_a_call_that_never_ends_after_the_threads_is_a_verdict():
    """A thread was killed with a spin lock, which a later call wants."""
    program = Program("counter", [[("increment",)]], parameters=(2,), after=[("increment",)])
    execution = run(program, [("kill", 1)])
    assert run(program).fine
    assert execution.verdict == "endless"
    assert "with no other thread" in execution.text


def test_a_sleep_with_a_limit_ends_where_nobody_else_is():
    program = Program("ledger", [[("pass", 1)]], parameters=(2,), before=[("put", 2), ("wait", 2)])
    assert run(program).fine


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
    assert "increment_set: counter_set counter of counter 0.1 <- 1" in text
    assert lines[-1] == f"replay: {replay(run(LOST, [('switch', 1)]))}"


#: Two inserts that tie: with this weaker order the reader sees `written` of the second one, and not its node.
TIED = Program(
    "t_gate",
    [[("insert", 1, 1, 101)], [("insert", 0, 1, 1)], [("get", 0)]],
    (2, 1, 1, 1, 1, 1, -1),
    weak=True,
    talk=True,
    weaken={"written_read": "relaxed"},
)
UNSEEN = [("switch", 16, 1), ("stale", 24, 1)]


def test_the_report_begins_with_the_call_that_is_wrong_and_why():
    lines = show(run(TIED, UNSEEN)).splitlines()
    assert lines[0] == "not linearizable: get(0) = (1, 1, 101) by thread 3 is wrong first"
    assert "  get answered (1, 1, 101) where (1, 0, 1) is ready and next" in lines[1:4]
    assert "get(0) = (1, 1, 101) by thread 3   <-- wrong first" in lines


def test_the_report_names_what_is_accessed():
    text = show(run(TIED, UNSEEN))
    assert "link_read next[0] of t_gate 0.8 -> (1, input 1) [1 back]" in text
    assert "written_publish written[0] of t_gate 0.2 <- (1, input 0)" in text
    early = Program("t_gate", [[("insert", 0, 2, 2)], [("insert", 1, 3, 103)]], TIED.parameters)
    assert "link_read next[0] of (2, input 0) -> 0" in show(run(early, [("switch", 7)]))


def test_the_report_marks_departures_and_folds_what_was_before():
    lines = show(run(TIED, UNSEEN)).splitlines()
    step = {line.split()[0]: number for number, line in enumerate(lines) if line[:4].strip().isdigit()}
    assert lines[step["16"] - 2] == "      ---- switch: thread 2 waits, thread 3 goes on ----"
    assert lines[step["24"] - 1] == "      ---- thread 3 sees 1 back, or writes behind as many ----"
    assert "0" not in step  # the first call ended before the switch
    assert any(line.strip().startswith("insert(1, 1, 101) = None [8 accesses]") for line in lines)
    whole = show(run(LOST, [("fail", 1), ("kill", 1)]))
    assert "---- allocation 1 fails ----" in whole
    assert "---- kill: thread 1 stops for ever, thread 2 goes on ----" in whole


def test_without_an_order_in_time_the_report_names_the_first_call_that_nothing_explains():
    apart = Program("queue", [[("enqueue", 1), ("close",)], [("take",)]], weak=True, weaken={"promise_read": "relaxed"})
    assert show(run(apart)).startswith("fine")  # this package has no model of it
    alone = Program("ms_queue", [[("enqueue", 1)], [("dequeue",)]], after=[("dequeue",)], weak=True)
    execution = run(alone)
    assert show(execution).startswith("fine")
    wrong = replace(execution, history=[replace(c, result=7) if c.name == "dequeue" else c for c in execution.history])
    assert show(wrong).splitlines()[0] == "not linearizable: dequeue() = 7 by thread 2 is wrong first"


@pytest.mark.parametrize("execution", [run(TIED, UNSEEN), run(LOST, [("switch", 1)])])
def test_the_replay_line_runs_when_pasted(execution):
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(replay(execution), shell=True, capture_output=True, text=True, check=True, env=env)  # noqa: S602
    assert done.stdout == show(execution) + "\n"


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
