"""Timestamps in messages: ISO 8601 where the column is a timestamp."""

from __future__ import annotations

import pyarrow as pa
import pytest

from pystream._engine.time_text import time_text

MOMENTS = [
    (5, pa.int64(), "5"),
    (0, pa.timestamp("s"), "1970-01-01T00:00:00"),
    (-1, pa.timestamp("ms"), "1969-12-31T23:59:59.999"),
    (1_704_067_200_000_000_001, pa.timestamp("ns"), "2024-01-01T00:00:00.000000001"),
    (1_704_067_200_250_000, pa.timestamp("us", "UTC"), "2024-01-01T00:00:00.250000+00:00"),
    (1_720_000_000, pa.timestamp("s", "Europe/Stockholm"), "2024-07-03T11:46:40+02:00"),
    (1_720_000_000, pa.timestamp("s", "+05:30"), "2024-07-03T15:16:40+05:30"),
    (1_720_000_000, pa.timestamp("s", "No/Where"), "1720000000 s since 1970"),
    (2**62, pa.timestamp("s"), "4611686018427387904 s since 1970"),
]


@pytest.mark.parametrize(("ticks", "type", "text"), MOMENTS, ids=[text for *_, text in MOMENTS])
def test_moments(ticks, type, text):
    assert time_text(ticks, type) == text
