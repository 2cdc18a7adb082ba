"""Tuples in very many windows: operators can be ended, count what they hold, and refuse what they cannot hold."""

from __future__ import annotations

import pytest
from guard import assert_passes

TESTS = [
    "test_end or test_count",
    "test_snapshot",
    "test_interrupted_aggregate",
    "test_refusal or test_a_day or test_user",
    "test_slices or test_partials or test_w_hive",
]


@pytest.mark.parametrize("tests", TESTS)
def test_very_many_windows(tests):
    assert_passes("overlap.py", tests, seconds=100)
