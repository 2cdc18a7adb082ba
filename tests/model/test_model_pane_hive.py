"""Pane-Hive at every interleaving: the C code of the release build under the model's scheduler."""

from __future__ import annotations

import itertools

import pytest
from frame import SIX_CALLS, in_order, side_by_side
from judge import judge, judge_all, judge_deep, judge_needed, stronger_than_relaxed

from pystream.verify.scheduler import Program

#: size, advance, inputs, function (0: sum, 1: first). Every node is a slab of its own, which is freed, or used again.
SMALL = (2, 2, 2, 0)
OVERLAPPING = (3, 2, 2, 0)
FIRST = (3, 2, 2, 1)
GET = ("get_next_winset",)


def update(input, ts, key=0):
    return ("update", input, ts, key, 10**input * (ts + 1))


# ---- all schedules of all small programs ----


def input_calls(input, calls):
    """Every sequence of so many calls, none below the one before: two windows, in the first two keys."""
    each = [update(input, 1), update(input, 1, 2), update(input, 2), ("heartbeat", input, 3), ("close", input)]
    for sequence in in_order(each, calls):
        if ("heartbeat", "heartbeat") not in itertools.pairwise(call[0] for call in sequence):
            yield sequence


def programs(*calls, gets, parameters=SMALL, after=3, **options):
    """Every program in which input k makes calls[k] calls and a reader `gets` gets; then all close, and more gets."""
    for threads in side_by_side(input_calls, calls, [GET] * gets):
        closes = [("close", k) for k in range(parameters[2]) if ("close", k) not in itertools.chain(*threads)]
        last = closes + [GET] * after if after else []
        yield Program("pane_hive", threads, parameters=parameters, after=last, **options)


def test_two_threads_of_two_calls():
    assert judge_all(programs(2, 2, gets=0))["programs"] == 196
    assert judge_all(programs(2, gets=2, parameters=(2, 2, 1, 0)))["programs"] == 14
    assert judge_all(programs(2, 0, gets=2))["programs"] == 14


@pytest.mark.parametrize("parameters", [SMALL, OVERLAPPING, FIRST])
def test_three_threads(parameters):
    assert judge_all(programs(1, 1, gets=1, parameters=parameters))["programs"] == 25
    assert judge_all(programs(2, 1, gets=2, parameters=parameters))["programs"] == 70


@pytest.mark.parametrize("talk", [False, True])
def test_weak_memory(talk):
    for parameters in (SMALL, OVERLAPPING):
        judge_all(programs(1, 1, gets=1, parameters=parameters, weak=True, talk=talk), stale=3)
        judge_all(programs(2, 0, gets=2, parameters=parameters, weak=True, talk=talk), stale=3)


def test_stopped_threads_and_failing_allocations():
    judge_all(programs(1, 1, gets=2, after=0), kills=1)  # nobody can go on for a reader that stopped in a call
    judge_all(programs(2, gets=1, parameters=(2, 2, 1, 0), after=0), kills=1, failures=1)
    judge_all(programs(1, 1, gets=1), failures=1)


def test_lock_freedom():
    """From every state, whoever is stalled, some call of the others ends within B steps."""
    assert judge_all(programs(1, 1, gets=1), probe=True)["bound"] <= 7
    assert judge_all(programs(2, 1, gets=2), probe=True)["bound"] <= 9
    assert judge_all(reusing(talk=True), probe=True)["bound"] <= 13


@pytest.mark.deep
@SIX_CALLS
def test_every_program_of_six_calls_on_three_threads(calls):
    """Two inputs and a reader, up to three calls each.

    Every schedule up to so many executions; for the programs that have more, every schedule of up to two preemptions.
    """
    first, second, gets = calls
    for parameters in (SMALL, OVERLAPPING):
        judge_deep(programs(first, second, gets=gets, parameters=parameters), executions=20_000, preemptions=2)
    judge_deep(programs(first, second, gets=gets, weak=True), executions=5_000, preemptions=1, stale=1)


# ---- every memory order is needed ----


def reusing(talk):
    """Programs in which slabs come back to their input while it goes on."""
    options = {"weak": True, "talk": talk, "after": [GET] * 2}
    early = [update(0, 1), update(0, 3), update(0, 5)]
    yield Program("pane_hive", [[update(0, 2)], [("close", 1)], [GET]], SMALL, **options)
    yield Program("pane_hive", [[update(0, 7), update(0, 9)], [GET, GET]], (2, 2, 1, 0), before=early, **options)
    early = [("heartbeat", 0, 2), ("heartbeat", 0, 4)]  # one get goes over both
    yield Program("pane_hive", [[update(0, 6), update(0, 8)], [GET]], (2, 2, 1, 0), before=early, **options)


ORDERS = stronger_than_relaxed(*reusing(talk=True))


def test_which_orders_there_are():
    assert [name for name, _ in ORDERS] == ["pane_link_publish", "pane_link_read", "returned_push", "returned_take"]


@pytest.mark.parametrize(("accessor", "order"), ORDERS)
def test_every_order_is_needed(accessor, order):
    judge_needed(accessor, order, reusing(talk=True))


def test_programs_that_show_the_orders_are_right():
    for talk in (False, True):
        for program in reusing(talk):
            assert judge(program, stale=2).whole
