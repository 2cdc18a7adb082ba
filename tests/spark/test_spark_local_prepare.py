"""`prepare` with Spark and without it: the same streams in the same order, to the bit."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from test_spark_prepare import BERLIN, NESTED, RECORDS, UNREADABLE, made

from pystream.data.local_prepare import prepare_table
from pystream.data.raw_records import Rules

pytestmark = pytest.mark.spark

FLAT = "t string, k string, n int, b boolean, d date, v double, f float"


def messy(rows: int) -> list[tuple]:
    """Records of which many have equal times, and some are equal."""
    rng = random.Random(7)
    texts = [*BERLIN, *UNREADABLE, None, "", "1969-12-31T23:59:59.999Z"]
    floats = [0.0, -0.0, 1.5, float("nan"), float("inf"), None]
    return [
        (
            rng.choice(texts),
            rng.choice(["a", "ä", "z", "", None]),
            rng.choice([1, -1, 2, None]),
            rng.choice([True, False, None]),
            None,
            rng.choice(floats),
            rng.choice(floats),
        )
        for _ in range(rows)
    ]


def both(frame, **options):
    """What both make of a frame: rows as text, which tells -0.0 from 0.0 and takes NaN for itself, and the counts."""
    on_spark = made(frame, **options)
    table = frame.toArrow()
    here = prepare_table(table, Rules(**{k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}))
    theirs = on_spark.rows.orderBy("stream", "position").toArrow()
    ours = [
        {"stream": i, "position": j, **row}
        for i, stream in enumerate(here.streams)
        for j, row in enumerate(stream.to_pylist())
    ]
    names = theirs.column_names
    return (
        ([_text({n: row[n] for n in names}) for row in ours], here.dropped, here.examples.keys()),
        ([_text(row) for row in theirs.to_pylist()], on_spark.dropped, on_spark.examples.keys()),
    )


def _text(row: dict) -> str:
    return repr({n: sorted(v) if n == "m" and v is not None else v for n, v in row.items()})


@pytest.mark.parametrize(
    ("options"),
    [
        {"stream": ["k", "n"], "tz": "Europe/Berlin"},
        pytest.param({"tz": "America/New_York", "streams": 3, "require": ["v"]}, marks=pytest.mark.full),
        pytest.param({"stream": ["b"], "tz": "UTC", "streams": 2, "require": ["k", "n"]}, marks=pytest.mark.full),
    ],
)
def test_messy_records(options, spark):
    here, there = both(spark.createDataFrame(messy(2_000), FLAT), ts="t", **options)
    assert here == there
    assert len(here[0]) > 100
    assert here[1]["twice"] > 5


@pytest.mark.full
def test_many_columns_of_floats(spark):
    """More than there are bits for their -0.0."""
    records = [(1, *[0.0] * 66), (1, *[0.0] * 65, -0.0), (1, -0.0, *[0.0] * 65), (1, *[0.0] * 66)]
    columns = ", ".join(f"v{i} double" for i in range(66))
    here, there = both(spark.createDataFrame(records, f"t long, {columns}"), ts="t", streams=1)
    assert here == there
    assert here[1] == {"twice": 1}


@pytest.mark.full
def test_nested_records(spark):
    here, there = both(spark.createDataFrame(RECORDS, NESTED), ts="t", stream=["a.b"], streams=2)
    assert here == there


@pytest.mark.full
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns", None])
def test_integers(unit, spark):
    numbers = [0, 1, -1, 5, 999, 1_000, 1_001, 10**10, None]
    numbers += [10**12, 253_402_300_799, 253_402_300_800, 2**63 - 1, -(2**63)] if unit else []
    here, there = both(spark.createDataFrame([(n,) for n in numbers], "t long"), ts="t", unit=unit)
    assert here == there


@pytest.mark.full
@pytest.mark.parametrize("format", ["dd/MM/yyyy HH:mm", "d/M/yyyy H:mm:ss.SSS", "yyyyMMdd'T'HHmmssXXX"])
def test_formats(format, spark):
    texts = ["01/02/2024 08:00", "1/2/2024 8:00", "30/02/2024 08:00", "1/2/2024 8:00:01.250", "20240102T030405+01:00"]
    texts += ["20240102T030405Z", "20240102T030405", "31/03/2024 02:30", "x"]
    frame = spark.createDataFrame([(t,) for t in texts], "t string")
    here, there = both(frame, ts="t", format=format, tz="Europe/Berlin")
    assert here == there
    assert here[0]


@pytest.mark.full
@pytest.mark.parametrize("type", ["timestamp_ntz", "date", "timestamp"])
def test_times_that_are_times_already(type, spark):
    days = spark.createDataFrame([("2024-03-31",), ("2024-10-27",), ("1960-01-01",)], "t string")
    frame = days.selectExpr(f"CAST(t AS {type}) AS t")
    for tz in (None, "Europe/Berlin") if type != "timestamp" else (None,):
        here, there = both(frame, ts="t", tz=tz)
        assert here == there


def test_a_table_in_pieces_is_the_table_as_a_whole():
    table = pa.table({"ts": [3, 1, 2, 1], "k": pa.array(["a", "b", "a", "b"]).dictionary_encode()})
    pieces = pa.concat_tables([table.slice(0, 1), table.slice(1)])
    whole, split = (prepare_table(t, Rules(stream=("k",), streams=2)) for t in (table, pieces))
    assert whole == split
    assert whole.dropped == {"twice": 1}


def test_nanoseconds_tell_readings_apart():
    """Two readings within a microsecond are two, in the order of time; the column before does not decide."""
    ns = pa.timestamp("ns", "UTC")
    table = pa.table({"v": [2.0, 1.0, 1.0, 1.0], "t": pa.array([100, 900, 200, 200], ns)})
    made = prepare_table(table, Rules("t", streams=1))
    assert made.dropped == {"twice": 1}
    assert made.streams[0]["v"].to_pylist() == [2.0, 1.0, 1.0]
