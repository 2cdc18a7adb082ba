"""The ends of int64: every loop over windows ends there, and every window is right. See extremes.py."""

from __future__ import annotations

import pytest
from guard import assert_passes

from pystream.operator import DESIGNS

TESTS = [
    *(f"test_designs and {design}]" for design in DESIGNS),
    "test_snapshot or test_partials",
    "test_w_hive",
    "test_t_gate",
]


@pytest.mark.parametrize("test", TESTS)
def test_the_ends_of_int64(test):
    assert_passes("extremes.py", test, seconds=120)
