"""WinSet at every interleaving."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from judge import SCHEDULES, broken_by, judge_all, judge_run, stronger_than_relaxed

from pystream.verify.scheduler import Program

ONE_BUCKET = (3, 0)  # threads, bucket_bits


def calls(thread, count, keys=(0, 2)):
    """Every sequence of so many calls; keys 0 and 2 have the same hash."""
    each = [("find_or_insert", key, 10 * thread + key, thread) for key in keys] + [("find", keys[0])]
    return [list(sequence) for sequence in itertools.product(each, repeat=count)]


def programs(*counts, **options):
    after = [("find", 0), ("find", 2)]
    for sequences in itertools.product(*(calls(t, n) for t, n in enumerate(counts))):
        yield Program("win_set", sequences, ONE_BUCKET, after=after, **options)


def test_two_threads_of_two_calls():
    assert judge_all(programs(2, 2))["programs"] == 81


def test_three_threads():
    assert judge_all(programs(1, 1, 1))["programs"] == 27


@pytest.mark.parametrize("talk", [False, True])
def test_weak_memory(talk):
    assert judge_all(programs(2, 1, weak=True, talk=talk), stale=3)["programs"] == 27


def test_stopped_threads_failing_allocations_and_progress():
    judge_all(programs(1, 1, 1), kills=1, failures=1)
    assert judge_all(programs(2, 1), probe=True)["bound"] <= 5


@given(
    st.lists(st.lists(st.sampled_from(calls(0, 1) + calls(1, 1, (1, 3))), max_size=3), min_size=1, max_size=3),
    SCHEDULES,
)
def test_operations_and_schedules_together(threads, schedule):
    named = [
        [(*c[:2], 100 * t + i, t) if c[0] == "find_or_insert" else c for i, (c,) in enumerate(thread)]
        for t, thread in enumerate(threads)
    ]
    judge_run(Program("win_set", named, ONE_BUCKET), schedule)


@pytest.mark.deep
def test_two_calls_on_three_threads():
    assert judge_all(programs(2, 2, 2))["programs"] == 729


WEAK = list(programs(1, 1, weak=True, talk=True))


@pytest.mark.parametrize(("accessor", "order"), stronger_than_relaxed(*WEAK))
def test_every_order_is_needed(accessor, order):
    assert accessor in ("link_read", "link_swap")
    assert broken_by(accessor, order, WEAK, stale=1) is not None
