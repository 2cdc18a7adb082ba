"""The ledger at every interleaving: the count is right, and who waits for room is woken."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge import SCHEDULES, judge, judge_all, judge_needed, judge_run, stronger_than_relaxed

from pystream.verify.scheduler import Program

MOST = (2,)
HELD = ("held",)


def put(rows):
    return ("put", rows)


def wait(rows):
    return ("wait", rows)


def pass_(n):
    return ("pass", n)


def ready(ts):
    return ("ready", ts)


PASSES = (pass_(1), pass_(2))


def programs(adds, passes, before=(), passer=PASSES, **options):
    """Every program of an adder that puts and waits, and a passer."""
    adder = [put(1), put(2), wait(1), wait(2)]
    for calls in itertools.product(adder, repeat=adds):
        for passed in itertools.product(passer, repeat=passes):
            threads = [list(calls), list(passed)]
            yield Program("ledger", threads, MOST, before=before, after=[HELD, pass_(9), HELD], **options)


def test_all_schedules():
    for before in ([], [put(1)], [put(2)], [put(3)]):
        assert judge_all(programs(1, 2, before))["programs"] == 16
        assert judge_all(programs(2, 1, before))["programs"] == 32


def test_rows_are_read_while_more_are_gathered():
    """The passer looks at the timestamps of a batch to which the adder adds rows."""
    looks = [ready(1), ready(2), pass_(1)]
    for before in ([], [put(1)]):
        assert judge_all(programs(2, 2, before, looks))["programs"] == 144


#: One row behind another, which the passer has had: its call begins with what it hears of the adder, and that is less.
GATHERING = [Program("ledger", [[put(1)], [ready(2)]], MOST, before=[put(1)], weak=True)]
ORDERS = [pair for pair in stronger_than_relaxed(*GATHERING) if pair[0].startswith("last_rows")]


def test_which_orders_there_are():
    assert [name for name, _ in ORDERS] == ["last_rows_publish", "last_rows_read"]


@pytest.mark.parametrize(("accessor", "order"), ORDERS)
def test_every_order_is_needed(accessor, order):
    judge_needed(accessor, order, GATHERING)


def test_two_who_wait():
    """For different room: the one who needs less is woken first, and who is woken too early waits again."""
    for first, second in itertools.product([1, 2], repeat=2):
        program = Program("ledger", [[wait(first)], [wait(second)], [pass_(1), pass_(1)]], MOST, before=[put(2)])
        assert judge(program).whole


@pytest.mark.parametrize("talk", [False, True])
def test_weak_memory(talk):
    """The count may look too large to who has not heard of a pass: so nobody looks at it from outside here."""
    threads = [[wait(1)], [pass_(1)]]
    judge_all([Program("ledger", threads, MOST, before=[put(2)], weak=True, talk=talk)], stale=2)


@given(
    st.integers(0, 3),
    st.lists(st.one_of(st.builds(put, st.integers(1, 3)), st.builds(wait, st.integers(1, 3))), max_size=4),
    st.lists(st.builds(pass_, st.integers(1, 3)) | st.builds(ready, st.integers(1, 6)), max_size=4),
    st.lists(st.builds(wait, st.integers(1, 3)), max_size=2),
    SCHEDULES,
)
def test_operations_and_schedules_together(held, adder, passer, other, schedule):
    """Nobody stops for ever: it might be while it has the lock."""
    kept = [decision for decision in schedule if decision.kind not in ("kill", "fail")]
    before = [put(held)] if held else []
    judge_run(Program("ledger", [adder, passer, other], MOST, before=before, after=[HELD]), kept)
