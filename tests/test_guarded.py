"""Tests that hang, or take all memory, if the library is wrong; each group in a process of its own (guard.py).

`extremes.py`: at the ends of int64 every loop over windows ends, and every window is right. `overlap.py`: operators on
tuples in very many windows can be ended, count what they hold, and refuse what they cannot hold.
"""

from __future__ import annotations

import pytest
from guard import assert_passes

from pystream.operator import DESIGNS

SHOWN = ("sliced", "mq")  #: the designs that run without --full

EXTREMES = [
    *(pytest.param(f"test_designs and {d}]", marks=[] if d in SHOWN else pytest.mark.full) for d in DESIGNS),
    "test_snapshot or test_partials",
    "test_w_hive",
    "test_t_gate",
]
OVERLAP = [
    "test_end or test_count",
    "test_snapshot",
    pytest.param("test_interrupted_aggregate", marks=pytest.mark.full),
    "test_refusal or test_a_day or test_user",
    "test_slices or test_partials or test_w_hive",
]


@pytest.mark.parametrize("tests", EXTREMES)
def test_extremes(tests):
    assert_passes("extremes.py", tests, seconds=120)


@pytest.mark.parametrize("tests", OVERLAP)
def test_overlap(tests):
    assert_passes("overlap.py", tests, seconds=100)
