"""The explorer against brute force: reduction must not lose a history or a verdict."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from outside import seen_from_outside

from pystream.verify.scheduler import Program, explore, run, show

ORDERS = st.sampled_from([0, 1, 2, 3, 4])
CELLS = st.integers(0, 1)
VALUES = st.integers(1, 2)
LITMUS = st.one_of(
    st.tuples(st.just("load"), CELLS, ORDERS),
    st.tuples(st.just("store"), CELLS, VALUES, ORDERS),
    st.tuples(st.just("swap"), CELLS, st.integers(0, 2), VALUES, ORDERS, st.sampled_from([0, 1, 4])),
    st.tuples(st.just("add"), CELLS, VALUES, ORDERS),
    st.tuples(st.just("read"), CELLS),
    st.tuples(st.just("write"), CELLS, VALUES),
    st.just(("allocate",)),
)
#: Several accesses in a call: here steps are independent of others, and reduction has something to do.
SEVERAL = st.one_of(
    st.tuples(st.just("store_load"), CELLS, VALUES, CELLS, ORDERS),
    st.tuples(st.just("load_add_load"), CELLS, CELLS, CELLS, ORDERS),
    st.tuples(st.just("write"), CELLS, VALUES),
    st.tuples(st.just("load"), CELLS, ORDERS),
)
COUNTER = st.sampled_from([("increment",), ("get",)])
STACK = st.one_of(st.tuples(st.just("push"), VALUES), st.just(("pop",)))


def programs(subject, operation, parameters, threads=2, calls=2):
    each = st.lists(operation, min_size=1, max_size=calls)
    return st.builds(
        Program,
        st.just(subject),
        st.lists(each, min_size=1, max_size=threads),
        parameters=parameters,
        before=st.lists(operation, max_size=1) if subject != "litmus" else st.just(()),
        weak=st.booleans(),
        talk=st.booleans(),
    )


def check_against_brute_force(program, **bounds):
    """The same histories; or something wrong both times, which ends the search."""
    whole, reduced = explore(program, reduce=False, **bounds), explore(program, **bounds)
    assert whole.fine == reduced.fine
    if whole.fine:
        assert reduced.executions <= whole.executions
        outside = [{seen_from_outside(h) for h in found.histories} for found in (whole, reduced)]
        assert outside[0] == outside[1]


@given(programs("litmus", LITMUS, st.just((2,)), threads=3), st.integers(0, 2))
def test_reduction_of_litmus_programs(program, stale):
    check_against_brute_force(program, stale=stale)


@given(programs("litmus", SEVERAL, st.just((2,)), calls=2), st.integers(0, 2))
def test_reduction_of_longer_calls(program, stale):
    check_against_brute_force(program, stale=stale)


@given(programs("litmus", SEVERAL, st.just((2,)), threads=3, calls=1), st.integers(0, 1))
def test_reduction_of_three_threads(program, stale):
    check_against_brute_force(program, stale=stale)


@given(programs("litmus", st.one_of(LITMUS, SEVERAL), st.just((2,))), st.integers(0, 1), st.integers(0, 1))
def test_reduction_with_failures_and_kills(program, failures, kills):
    check_against_brute_force(program, stale=1, failures=failures, kills=kills)


@given(programs("counter", COUNTER, st.tuples(st.integers(0, 1))))
def test_reduction_of_counters(program):
    check_against_brute_force(program, stale=1)


@given(programs("stack", STACK, st.tuples(st.integers(0, 1))))
def test_reduction_of_stacks(program):
    check_against_brute_force(program)


@pytest.mark.parametrize(
    "program",
    [
        Program("t_gate", [[("insert", 0, 1, 1)], [("get", 0)]], (1, 1, 1, 1, 1, 1, -1), after=[("get", 0)]),
        Program("t_gate", [[("close", 0)], [("heartbeat", 1, 2)]], (2, 1, 1, 1, 1, 1, -1), after=[("get", 0)]),
        Program("w_hive", [[("update", 0, 1, 0, 1), ("close", 0)], [("get_next_winset",)]], (2, 2, 1, 1)),
        Program("win_set", [[("find_or_insert", 0, 1, 0)], [("find_or_insert", 2, 2, 1)], [("find", 2)]], (2, 0)),
        Program("ms_queue", [[("enqueue", 1)], [("peek",), ("is_empty",)]], after=[("dequeue",)]),
        Program("run_gate", [[("heartbeat", 0, 1)], [("get", 0)], [("get", 1)]], (1, 2)),
        Program("pane_hive", [[("heartbeat", 0, 2), ("heartbeat", 0, 4)], [("get_next_winset",)]], (2, 2, 1, 0)),
        Program("doorbell", [[("put",)], [("take",), ("sleep",)]]),
        Program("ledger", [[("wait", 1)], [("pass", 1)]], (2,), before=[("put", 2)]),
        Program("ledger", [[("put", 1)], [("wait", 1)], [("pass", 1)]], (2,), before=[("put", 1)]),
    ],
    ids=lambda program: program.subject,
)
@pytest.mark.parametrize("weak", [False, True])
def test_reduction_of_the_structures(program, weak):
    check_against_brute_force(Program(**{**vars(program), "weak": weak}), stale=1)


def test_every_history_can_be_replayed():
    program = Program("stack", [[("push", 1), ("pop",)], [("push", 2), ("pop",)]], weak=True)
    found = explore(program, stale=1, failures=1, kills=1)
    assert found.fine
    assert {d.kind for h in found.histories for d in h.decisions} == {"switch", "stale", "fail", "kill"}
    for h in found.histories:
        again = run(program, h.decisions)
        assert (again.verdict, again.history, again.after) == (h.verdict, h.history, h.after), show(again)


def test_reduction_leaves_one_execution_per_history():
    """Where everything that is ordered can be seen from outside, no two executions have the same history."""
    apart = Program("litmus", [[("load_add_load", i, i, i, 3)] for i in range(3)], parameters=(3,))
    meeting = Program("litmus", [[("load_add_load", i, 0, i, 3)] for i in range(3)], parameters=(3,))
    for program, classes in ((apart, 19), (meeting, 82)):  # 19: which of three calls overlap
        whole, reduced = explore(program, reduce=False), explore(program)
        assert (whole.executions, whole.whole) == (1680, True)  # 9! / 3!**3
        assert reduced.executions == len(reduced.histories) == len(whole.histories) == classes


@pytest.mark.parametrize("preemptions", [0, 1, 2])
def test_preemptions_are_bounded(preemptions):
    program = Program("counter", [[("increment",)] * 2] * 2, parameters=(1,))
    found = explore(program, preemptions=preemptions)
    by_hand = set()
    for switches in itertools.product((0, 1), repeat=8):
        decisions = [("switch", i, 1) for i, s in enumerate(switches) if s]
        trace = [a for a in run(program, decisions).trace if a.accessor]
        changes = [(a.thread, b.thread) for a, b in itertools.pairwise(trace) if a.thread != b.thread]
        ended = {t: max(i for i, a in enumerate(trace) if a.thread == t) for t in (1, 2)}
        places = [i for i, (a, b) in enumerate(itertools.pairwise(trace)) if a.thread != b.thread]
        forced = sum(i == ended[a] for i, (a, _) in zip(places, changes, strict=True))
        if len(changes) - forced <= preemptions:
            by_hand.add(tuple(a.thread for a in trace))
    assert found.whole
    assert found.executions == len(by_hand)


def test_a_bound_on_executions():
    program = Program("counter", [[("increment",)] * 2] * 2)
    found = explore(program, executions=7)
    assert (found.executions, found.whole, found.fine) == (7, False, False)


def test_lost_updates_are_found():
    program = Program("counter", [[("increment",)], [("increment",)]], parameters=(1,), after=[("get",)])
    found = explore(program)
    bad = found.first_bad(lambda h: h.history[-1].result == 2)
    assert bad is not None
    assert [tuple(d) for d in bad.decisions] == [("switch", 1, 1)]
    assert (
        explore(Program(**{**vars(program), "parameters": (0,)})).first_bad(lambda h: h.history[-1].result == 2) is None
    )


def test_progress_bound_and_the_spin_lock():
    """A counter's increment ends within a few steps whoever is stalled; behind a spin lock it does not."""
    lock_free = explore(Program("counter", [[("increment",)] * 2] * 2), probe=True)
    assert lock_free.fine
    assert (lock_free.gap, lock_free.bound) == (3, 3)
    locked = explore(Program("counter", [[("increment",)]] * 2, parameters=(2,)), probe=True)
    assert (locked.verdict, locked.fine) == ("endless", False)
    assert "no call ends within" in locked.text
    bad = locked.first_bad()
    assert bad is not None
    assert bad.verdict == "endless"
    assert [d.kind for d in bad.decisions] == ["only"]
