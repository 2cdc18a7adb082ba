"""Results on their way through Java: every value arrives as the bits that it was, in parts that are not too large."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark.stream.outgoing import PART_BYTES, arrived, sent

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]


def there(batch: pa.RecordBatch, *, most: int | None = None) -> pa.Table:
    parts = sent([batch], 3)
    assert most is None or all(len(part) <= most for part in parts)
    column = pa.record_batch([pa.array([None, *parts, None], pa.binary())], ["rows"])
    return pa.Table.from_batches(arrived([column], batch.schema), batch.schema)


@st.composite
def integers(draw):
    """Columns of integers around the edges of the narrow types."""
    type = draw(st.sampled_from(INTEGERS))
    low, high = (0, 1 << type.bit_width) if pa.types.is_unsigned_integer(type) else (-1 << type.bit_width - 1,) * 2
    high = high if high > 0 else -low
    edges = [e for bits in (7, 8, 15, 16, 31, 32, 63) for e in (-(1 << bits), (1 << bits) - 1, 1 << bits)]
    near = st.sampled_from([e for e in [-1, 0, 1, low, high - 1, *edges] if low <= e < high])
    return pa.array(draw(st.lists(st.one_of(near, st.none()), min_size=1, max_size=8)), type)


@given(column=integers(), cut=st.integers(0, 3))
def test_integers_of_any_size(column, cut):
    batch = pa.record_batch([pa.array([3 * (i // 2) for i in range(len(column))]), column], ["ts", "x"])
    batch = batch.slice(min(cut, len(column)))  # batches need not begin where their memory does
    assert there(batch).equals(pa.Table.from_batches([batch]))


def test_all_other_types():
    names = ["ts", "text", "float", "day", "decimal", "flag", "nothing", "bytes"]
    columns = [
        pa.array([dt.datetime(2020, 1, 1, tzinfo=dt.UTC)] * 2 + [dt.datetime(2020, 1, 2, tzinfo=dt.UTC)]),
        pa.array(["", "é", None]),
        pa.array([-0.0, math.inf, None]),
        pa.array([dt.date(1960, 1, 1), None, dt.date(2020, 1, 1)]),
        pa.array([Decimal("1.5"), Decimal("-2.5"), None], pa.decimal128(20, 1)),
        pa.array([True, None, False]),
        pa.array([None, None, None], pa.int64()),
        pa.array([b"", None, b"\0"]),
    ]
    batch = pa.record_batch(columns, names)
    table = there(batch)
    assert table.equals(pa.Table.from_batches([batch]))
    assert math.copysign(1, table["float"][0].as_py()) == -1


def test_the_bits_of_nan():
    odd = pa.array([0x7FF8000000000001, -1]).view(pa.float64())  # two NaNs that differ
    table = there(pa.record_batch([pa.array([0, 0]), odd], ["ts", "x"]))
    assert table["x"].combine_chunks().view(pa.int64()).to_pylist() == [0x7FF8000000000001, -1]


@pytest.mark.parametrize("rows", [0, 1, 100_000])
def test_parts(rows):
    """Many values that differ, in parts of bounded size and in their order, the starts of windows across the cuts."""
    values = [i * 0x9E3779B97F4A7C15 % (1 << 63) for i in range(rows)]
    batch = pa.record_batch({"ts": [i // 1000 for i in range(rows)], "x": pa.array(values, pa.int64())})
    assert there(batch, most=2 * PART_BYTES).equals(pa.Table.from_batches([batch]))
    assert len(sent([batch], 3)) == -(-rows * 8 // PART_BYTES)


def test_few_bytes_for_counts():
    """Windows that count, with keys that are small: less than two bytes a row, of twenty."""
    batch = pa.record_batch(
        {
            "ts": [3 * (i // 100) for i in range(50_000)],
            "meter": pa.array([i % 100 for i in range(50_000)], pa.int32()),
            "n": [i * 7 % 50 for i in range(50_000)],
        }
    )
    assert sum(len(part) for part in sent([batch], 3)) < 100_000
