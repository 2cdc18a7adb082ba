"""The lock-free queue of one input, with its promises, at every interleaving."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge import SCHEDULES, judge_all, judge_needed, judge_run, stronger_than_relaxed

from pystream.verify.scheduler import Program

TAKE = ("take",)


def producer_calls(calls):
    """Every sequence of so many calls; timestamps rise by one, and only the last call closes."""
    for names in itertools.product(["enqueue", "promise", "close"], repeat=calls):
        if "close" not in names[:-1]:
            yield [(name,) if name == "close" else (name, ts) for ts, name in enumerate(names, 1)]


def programs(calls, takes, **options):
    for sequence in producer_calls(calls):
        yield Program("queue", [sequence, [TAKE] * takes], after=[TAKE] * 3, **options)


def test_all_schedules():
    assert judge_all(programs(2, 2))["programs"] == 6
    assert judge_all(programs(3, 1))["programs"] == 12


@pytest.mark.parametrize("talk", [False, True])
def test_weak_memory(talk):
    judge_all(programs(2, 2, weak=True, talk=talk), stale=2)


def test_stopped_threads_and_progress():
    judge_all((Program("queue", p.threads) for p in programs(2, 2)), kills=1)
    assert judge_all(programs(2, 1), probe=True)["bound"] <= 20


@given(st.integers(1, 4), st.data(), st.booleans(), SCHEDULES)
def test_operations_and_schedules_together(calls, data, weak, schedule):
    sequence = data.draw(st.sampled_from(list(producer_calls(calls))))
    stopped = any(decision.kind == "kill" for decision in schedule)
    after = [] if stopped else [TAKE] * 3  # nobody can go on for a consumer that stopped in a call
    judge_run(Program("queue", [sequence, [TAKE] * 3], weak=weak, after=after), schedule)


#: The consumer learns of the tuple through the promise alone: its call begins with reading that.
CLOSING = [Program("queue", [[("enqueue", 1), ("close",)], [TAKE]], after=[TAKE] * 2, weak=True)]
ORDERS = [pair for pair in stronger_than_relaxed(*CLOSING) if pair[0].startswith("promise")]


def test_which_orders_there_are():
    assert [name for name, _ in ORDERS] == ["promise_read", "promise_write"]


@pytest.mark.parametrize(("accessor", "order"), ORDERS)
def test_every_order_is_needed(accessor, order):
    judge_needed(accessor, order, CLOSING)
