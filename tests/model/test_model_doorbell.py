"""Handing work over to a worker that sleeps, at every interleaving: no wake-up is lost."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge import SCHEDULES, judge, judge_all, judge_needed, judge_run, stronger_than_relaxed

from pystream.verify.scheduler import Program, explore

PUT, RING, TAKE, SLEEP, WAKE = ("put",), ("ring",), ("take",), ("sleep",), ("wake",)


def programs(puts, calls, ringing=(), **options):
    """An input, a worker that takes and wakes in every order, and one who rings without need; at the end both look."""
    for worker in itertools.product([TAKE, WAKE], repeat=calls):
        threads = [t for t in ([PUT] * puts, list(worker), list(ringing)) if t]
        yield Program("doorbell", threads, after=[WAKE, TAKE, WAKE], **options)


def test_all_schedules():
    assert judge_all(programs(1, 2))["programs"] == 4
    assert judge_all(programs(2, 3))["programs"] == 8
    assert judge_all(programs(1, 3, [RING]))["programs"] == 8


@pytest.mark.parametrize("weak", [False, True])
def test_who_sleeps_is_woken(weak):
    """As many puts as the worker may take, and one more for which it may sleep: it is not found asleep at the end."""
    for puts in (1, 2):
        threads = [[PUT] * puts, [TAKE, SLEEP, TAKE]]
        assert judge(Program("doorbell", threads, weak=weak, talk=weak), stale=2).whole
        assert judge(Program("doorbell", [*threads, [RING]], weak=weak, talk=weak), stale=1).whole


#: The worker sleeps first.
WOKEN = Program("doorbell", [[TAKE, SLEEP], [PUT]])


def test_who_is_never_rung_for_sleeps_for_ever():
    found = explore(Program("doorbell", [[TAKE, SLEEP], []]))
    assert (found.verdict, found.bad) == ("endless", 1)
    assert "nobody will wake it" in found.text


@pytest.mark.parametrize("talk", [False, True])
def test_weak_memory(talk):
    judge_all(programs(2, 2, weak=True, talk=talk), stale=3)
    judge_all(programs(1, 2, [RING], weak=True, talk=talk), stale=2)


def test_progress():
    assert judge_all(programs(2, 3), probe=True)["bound"] <= 9


@given(
    st.integers(0, 4),
    st.lists(st.sampled_from([TAKE, WAKE]), max_size=6),
    st.integers(0, 2),
    st.booleans(),
    SCHEDULES,
)
def test_operations_and_schedules_together(puts, worker, rings, weak, schedule):
    """Nobody stops for ever: a worker that sleeps depends on who owes it a ring."""
    kept = [decision for decision in schedule if decision.kind != "kill"]
    threads = [[PUT] * puts, worker, [RING] * rings]
    judge_run(Program("doorbell", threads, after=[WAKE, TAKE, WAKE], weak=weak), kept)


@pytest.mark.deep
def test_more_calls():
    for program in itertools.chain(programs(3, 4), programs(2, 4, [RING, RING])):
        assert judge(program, executions=10_000_000).whole


SLEEPING = [Program("doorbell", [[PUT], [TAKE, WAKE]], after=[WAKE], weak=True, talk=True)]
ORDERS = stronger_than_relaxed(*SLEEPING)


def test_which_orders_there_are():
    assert ORDERS == [
        ("merged_publish", "relaxed"),
        ("merged_read", "relaxed"),
        ("tickets_draw", "acquire"),
        ("tickets_draw", "release"),
    ]


@pytest.mark.parametrize(("accessor", "order"), ORDERS)
def test_every_order_is_needed(accessor, order):
    judge_needed(accessor, order, SLEEPING)
