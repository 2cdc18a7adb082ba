"""The queue of Michael and Scott at every interleaving."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge import SCHEDULES, judge, judge_all, judge_needed, judge_run, stronger_than_relaxed

from pystream.verify.scheduler import Program

OTHERS = [("dequeue",), ("peek",), ("is_empty",)]


def programs(*counts, **options):
    """Every program of enqueue and dequeue calls, so many in each thread; every value is another one."""
    each = [[("enqueue", 0), ("dequeue",)]] * sum(counts)
    for flat in itertools.product(*each):
        numbered = [("enqueue", i + 1) if c[0] == "enqueue" else c for i, c in enumerate(flat)]
        threads = [numbered[sum(counts[:t]) : sum(counts[: t + 1])] for t in range(len(counts))]
        yield Program("ms_queue", threads, after=[("dequeue",)] * (sum(counts) + 1), **options)


def test_two_threads_of_two_calls():
    assert judge_all(programs(2, 1))["programs"] == 8
    for program in programs(2, 2):
        judge(program, executions=2_000)


def test_three_threads():
    for program in programs(1, 1, 1):
        judge(program, executions=2_000)


def test_all_schedules_with_up_to_two_preemptions():
    program = Program("ms_queue", [[("enqueue", 1), ("dequeue",)], [("enqueue", 2), ("dequeue",)]])
    assert judge(program, preemptions=2).whole


@pytest.mark.parametrize("talk", [False, True])
def test_weak_memory(talk):
    for program in programs(1, 1, weak=True, talk=talk):
        judge(program, stale=2, executions=20_000)
    for program in programs(2, 1, weak=True, talk=talk):
        judge(program, stale=1, executions=2_000)


def test_stopped_threads_and_progress():
    judge_all(programs(1, 1), kills=1)
    assert judge_all(programs(1, 1), probe=True)["bound"] <= 19


CALLS = st.one_of(st.tuples(st.just("enqueue"), st.integers(1, 9)), st.sampled_from(OTHERS))


@given(st.lists(st.lists(CALLS, max_size=4), min_size=1, max_size=3), st.booleans(), SCHEDULES)
def test_operations_and_schedules_together(threads, weak, schedule):
    judge_run(Program("ms_queue", threads, weak=weak, after=[("dequeue",)] * 3), schedule)


@pytest.mark.deep
def test_two_threads_of_two_calls_whole():
    assert judge_all(programs(2, 2), executions=10_000_000)["programs"] == 16


def reusing():
    """Programs in which a node is used again under somebody who looks at it."""
    options = {"weak": True, "talk": True}
    some = [("enqueue", 1), ("enqueue", 2), ("enqueue", 3)]
    turn = [("dequeue",), ("dequeue",), ("enqueue", 4)]  # 4 goes into the node of 1 and is never first
    yield Program("ms_queue", [[("peek",)], turn], before=some, **options)
    yield Program("ms_queue", [[("is_empty",)], turn[1:]], before=some[:2], **options)
    yield from programs(2, 2, **options)


@pytest.mark.parametrize(("accessor", "order"), stronger_than_relaxed(*reusing()))
def test_every_order_is_needed(accessor, order):
    judge_needed(accessor, order, reusing(), preemptions=2)


def test_programs_that_show_the_orders_are_right():
    for program in reusing():
        judge(program, stale=2, preemptions=2, executions=20_000)
