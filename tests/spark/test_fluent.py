"""`window_aggregate` as a step of a chain: the rows of `ps.aggregate`, usable as any DataFrame is."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

import pystream as ps
from pystream.spark import window_aggregate
from pystream.spark.fluent import _ours

pytestmark = pytest.mark.spark

START = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
TABLE = pa.table(
    {
        "time": pa.array([START + dt.timedelta(minutes=7 * i) for i in range(60)], pa.timestamp("us", "UTC")),
        "meter": ["ab"[i % 2] for i in range(60)],
        "cons": [i / 8 for i in range(60)],
    }
)
FUNCTIONS = {"n": ps.count(), "mean": ps.mean("cons")}
HOURLY = ps.Query(ps.Window("1h", "15m"), "meter", FUNCTIONS, ts="time")


@pytest.fixture(scope="module")
def readings(spark):
    return spark.createDataFrame(TABLE).repartition(3)


@pytest.mark.parametrize(
    "step",
    [
        window_aggregate(HOURLY),
        window_aggregate("1 hour", "15 minutes", key="meter", aggregates=FUNCTIONS, ts="time"),
        window_aggregate(dt.timedelta(hours=1), "15m", key=["meter"], aggregates=FUNCTIONS, ts="time"),
        window_aggregate(ps.Window("60m", "900 s"), key="meter", aggregates=FUNCTIONS, ts="time"),
    ],
)
def test_ways_to_say_it(step, readings):
    out = readings.transform(step).toArrow().sort_by([("ts", "ascending"), ("meter", "ascending")])
    assert out.to_pylist() == ps.aggregate(HOURLY, [TABLE]).to_pylist()


def test_the_result_is_a_frame_like_any_other(spark, readings):
    """In SQL, joined, cached, and in the middle of a chain."""
    names = spark.createDataFrame([("a", "Ada"), ("b", "Bob")], "meter string, owner string")
    chain = readings.where("cons > 1").transform(window_aggregate(HOURLY)).join(names, "meter").cache()
    try:
        chain.createOrReplaceTempView("hourly")
        counted = spark.sql("select owner, sum(n) as n from hourly group by owner order by owner").collect()
        rows = ps.aggregate(HOURLY, [TABLE.filter(pa.compute.field("cons") > 1)]).to_pylist()
        want = [
            (owner, sum(r["n"] for r in rows if r["meter"] == meter)) for meter, owner in (("a", "Ada"), ("b", "Bob"))
        ]
        assert [tuple(row) for row in counted] == want
        assert chain.count() == len(rows) == chain.dropDuplicates(["ts", "meter"]).count()
    finally:
        chain.unpersist()
        spark.catalog.dropTempView("hourly")


def test_order_within_one_stream(spark):
    """`first` needs a position, and no stream."""
    rows = spark.createDataFrame([(5, i, 10 - i) for i in range(10)], "ts long, at long, v long").repartition(4)
    out = rows.transform(window_aggregate(10, aggregates={"f": ps.first("v"), "l": ps.last("v")}, position="at"))
    assert [tuple(row) for row in out.collect()] == [(0, 10, 1)]


def test_a_stream_stays_one(spark):
    rows = spark.readStream.format("rate").load().selectExpr("value as ts", "value % 3 as k")
    assert rows.transform(window_aggregate(10, key="k", aggregates={"n": ps.count()})).isStreaming


def test_state_partitions_without_a_shard(spark):
    """Spark takes their number from the session, whatever `shards` says."""
    rows = spark.readStream.format("rate").load().selectExpr("value as ts", "value % 3 as k")
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    try:
        with pytest.warns(UserWarning, match=r'^198 of 200 .*spark\.conf\.set\("spark\.sql\.shuffle\.partitions", 2\)'):
            rows.transform(window_aggregate(10, key="k", aggregates={"n": ps.count()}, shards=2))
        rows.transform(window_aggregate(10, key="k", aggregates={"n": ps.count()}))  # all have one
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def test_durations_in_sparks_words():
    assert [_ours(d) for d in ("1 hour", "90 minutes", "2 days", "1 second", "5 milliseconds", "7 microseconds")] == [
        *("1h", "90m", "2d", "1s", "5ms", "7us")
    ]
    assert [_ours(d) for d in ("30s", "5 m", 7)] == ["30s", "5 m", 7]


@pytest.mark.parametrize(
    ("arguments", "options", "error", "said"),
    [
        (("1h",), {}, TypeError, "say what to compute"),
        ((HOURLY, "15m"), {}, ValueError, "a Query says"),
        ((HOURLY,), {"key": "meter"}, ValueError, "a Query says"),
        ((ps.Window(5), 1), {"aggregates": FUNCTIONS}, ValueError, "a Window has its advance"),
        (("1 parsec",), {"aggregates": FUNCTIONS}, ValueError, "not a duration"),
    ],
)
def test_refused(arguments, options, error, said):
    with pytest.raises(error, match=said):
        window_aggregate(*arguments, **options)
