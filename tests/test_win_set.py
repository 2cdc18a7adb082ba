"""The winset under W-Hive: one window per key, whoever comes first, and nothing added is lost."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import pytest
from threads import run_together

import pystream as ps
from pystream import _native

pytestmark = pytest.mark.usefixtures("nothing_left")


def only_winset(hive) -> dict:
    start, winset = hive.get_next_winset()
    assert start == 0
    assert hive.get_next_winset() is None
    return winset


def race(threads: int, keys: int, rows: int, seed: int) -> None:
    """All threads bring the same keys to one winset, each in its own order."""
    hive = ps.WHive(ps.Window(1), ps.count(), threads)
    plans = [random.Random(seed + t).choices(range(keys), k=rows) for t in range(threads)]

    def bring(t):
        for start in range(0, rows, 50):
            some = plans[t][start : start + 50]
            hive.update_windows_batch([0] * len(some), some, [None] * len(some), t)
        hive.close(t)

    run_together(*(partial(bring, t) for t in range(threads)))
    expected = Counter(key for plan in plans for key in plan)
    assert only_winset(hive) == expected


@pytest.mark.usefixtures("many_switches")
@pytest.mark.parametrize(("keys", "rows", "rounds"), [(1, 60, 30), (20, 200, 20), (3000, 6000, 2)])
def test_threads_that_meet_in_a_winset(keys, rows, rounds):
    for seed in range(rounds):
        race(3, keys, rows, seed)


@pytest.mark.usual_sizes
def test_memory_follows_the_tuples_not_the_threads():
    threads, keys = 20, 2000
    hive = ps.WHive(ps.Window(1), ps.sum("value"), threads)
    before = _native.memory_live()
    hive.update_windows_batch([0] * keys, range(keys), [1.5] * keys, 7)
    hive.update_windows_batch([0] * keys, range(keys), [0.25] * keys, 19)
    assert _native.memory_live() - before < keys + 100  # a key each, and blocks of windows and states
    for t in range(threads):
        hive.close(t)
    assert only_winset(hive) == dict.fromkeys(range(keys), 1.75)


def test_many_keys_in_a_row_of_winsets():
    """The first winset has too few buckets for them, the later ones have not."""
    keys = 20_000
    hive = ps.WHive(ps.Window(1), ps.count(), 1)
    for ts in range(4):
        hive.update_windows_batch([ts] * keys, range(keys), [None] * keys, 0)
    hive.close(0)
    for ts in range(4):
        assert hive.get_next_winset() == (ts, dict.fromkeys(range(keys), 1))
