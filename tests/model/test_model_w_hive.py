"""W-Hive at every interleaving: the C code of the release build under the model's scheduler."""

from __future__ import annotations

import pytest
from frame import SIX_CALLS, in_order, side_by_side
from judge import judge, judge_all, judge_deep, judge_needed, stronger_than_relaxed

from pystream.verify.scheduler import Program

#: size, advance, threads, levels
SMALL = (2, 2, 2, 1)
OVERLAPPING = (3, 2, 2, 2)
#: Sums in lanes; sums and the greatest value in words that all threads share.
LANES, SUMS, GREATEST = (0, 0), (1, 0), (1, 1)
GET = ("get_next_winset",)


def update(thread, ts, key=0):
    """Of the second thread's value all high bits are set: with another one it carries from word to word."""
    return ("update", thread, ts, key, (-10) ** thread * (ts + 1))


# ---- all schedules of all small programs ----


def updater_calls(thread, calls):
    """Every sequence of so many calls, none below the one before: two windows, in the first two keys of one hash."""
    each = [update(thread, 1), update(thread, 1, 2), update(thread, 2), ("heartbeat", thread, 2), ("close", thread)]
    return in_order(each, calls)


def programs(*calls, gets, parameters=(*SMALL, *LANES), closing=True, **options):
    """Every program in which thread k makes calls[k] calls and a reader `gets` gets; then all close, and more gets."""
    for threads in side_by_side(updater_calls, calls, [GET] * gets):
        after = [("close", k) for k in range(2) if closing] + [GET] * 3
        yield Program("w_hive", threads, parameters=parameters, after=after, **options)


def test_two_threads_of_two_calls():
    assert judge_all(programs(2, 2, gets=0))["programs"] == 256
    assert judge_all(programs(2, gets=2))["programs"] == 16


@pytest.mark.parametrize("held", [SUMS, GREATEST])
def test_two_threads_in_one_window(held):
    parameters = (*SMALL, *held)
    assert judge_all(programs(2, 1, gets=0, parameters=parameters))["programs"] == 80
    assert judge_all(programs(2, gets=1, parameters=parameters))["programs"] == 16


@pytest.mark.full
def test_two_threads_of_two_calls_in_one_window():
    assert judge_all(programs(2, 2, gets=0, parameters=(*SMALL, *SUMS)))["programs"] == 256


@pytest.mark.parametrize("held", [LANES, SUMS, GREATEST])
def test_three_threads(held):
    assert judge_all(programs(1, 1, gets=1, parameters=(*SMALL, *held)))["programs"] == 25
    if held == LANES:
        assert judge_all(programs(1, 1, gets=1, parameters=(*OVERLAPPING, *held)))["programs"] == 25


@pytest.mark.parametrize("talk", [False, True])
@pytest.mark.parametrize("held", [LANES, SUMS])
def test_weak_memory(talk, held):
    for parameters in (SMALL, OVERLAPPING) if held == LANES else (SMALL,):
        judge_all(programs(1, 1, gets=1, parameters=(*parameters, *held), weak=True, talk=talk), stale=2)
    judge_all(programs(2, gets=2, parameters=(*SMALL, *held), weak=True, talk=talk), stale=2)


@pytest.mark.parametrize("held", [LANES, SUMS])
def test_stopped_threads_and_failing_allocations(held):
    parameters = (*SMALL, *held)
    judge_all(
        programs(1, 1, gets=1, parameters=parameters, closing=False), kills=1
    )  # nobody can close for a stopped one
    judge_all(programs(1, 1, gets=1, parameters=parameters), failures=1)
    judge_all(programs(2, gets=1, parameters=parameters, closing=False), kills=1, failures=1)


def bound(parameters):
    return judge_all(programs(1, 1, gets=1, parameters=parameters), probe=True)["bound"]


def test_lock_freedom():
    """From every state, whoever is stalled, some call of the others ends within B steps."""
    assert bound((*SMALL, *LANES)) <= 11
    assert bound((*OVERLAPPING, *LANES)) <= 25


@pytest.mark.parametrize(("held", "most"), [(SUMS, 20), (GREATEST, 23)])
def test_lock_freedom_in_words(held, most):
    assert bound((*SMALL, *held)) <= most


@pytest.mark.deep
@SIX_CALLS
@pytest.mark.parametrize("held", [LANES, SUMS, GREATEST])
def test_every_program_of_six_calls_on_three_threads(calls, held):
    """Two updaters and a reader, up to three calls each.

    Every schedule up to so many executions; for the programs that have more, every schedule of up to two preemptions.
    """
    first, second, gets = calls
    parameters = (*SMALL, *held)
    judge_deep(programs(first, second, gets=gets, parameters=parameters), executions=20_000, preemptions=2)
    weak = programs(first, second, gets=gets, parameters=parameters, weak=True)
    judge_deep(weak, executions=5_000, preemptions=1, stale=1)


# ---- every memory order is needed ----


def delivering(talk):
    """Programs in which winsets are delivered and nodes freed while others insert."""
    options = {"weak": True, "talk": talk, "after": [GET] * 3}
    both = [[update(0, 1), ("close", 0)], [update(1, 1), ("close", 1)]]
    moving = [update(0, 1), update(1, 1), update(0, 3), update(1, 3)]
    yield Program("w_hive", [*both, [GET]], SMALL, **options)
    yield Program("w_hive", [*both, [GET]], (*SMALL, *SUMS), **options)
    yield Program("w_hive", [[update(0, 5)], [update(1, 5)], [GET, GET]], SMALL, before=moving, **options)
    yield Program("w_hive", [[update(0, 7), update(0, 9)], [GET] * 3], (2, 2, 1, 1), before=moving[::2], **options)


ORDERS = stronger_than_relaxed(*delivering(talk=True))


def test_which_orders_there_are():
    names = ["anchor_move", "anchor_read", "link_read", "link_swap", "position_publish", "position_read"]
    assert [name for name, _ in ORDERS] == names


@pytest.mark.parametrize(("accessor", "order"), ORDERS)
def test_every_order_is_needed(accessor, order):
    judge_needed(accessor, order, delivering(talk=True))


def test_programs_that_show_the_orders_are_right():
    for talk in (False, True):
        for program in delivering(talk):
            judge(program, stale=2, executions=20_000)
