"""Aggregation on Spark: equal to `ps.aggregate` to the bit, whatever the partitions; equal to Spark's own windows."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps
from pystream.queries import PAPER
from pystream.sample import SCHEMAS, DataSet

pytestmark = pytest.mark.spark

TUPLES = 4_000


@pytest.fixture(scope="module")
def frames(spark):
    """Both data sets as DataFrames with the rows in no useful order."""
    made = {name: DataSet(name, streams=3, tuples=TUPLES, seed=3, span_s=200) for name in SCHEMAS}
    return {name: spark.createDataFrame(whole.block(0).sort_by("position")).cache() for name, whole in made.items()}


def sorted_rows(table: pa.Table, *key: str) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in ("ts", *key)]).combine_chunks()


@pytest.mark.parametrize("id", PAPER)
def test_the_papers_queries(id, frames):
    from pystream.spark import aggregate  # noqa: PLC0415

    paper = PAPER[id]
    out = aggregate(frames[paper.dataset], paper.query, position="position").toArrow()
    want = ps.aggregate(paper.query, DataSet(paper.dataset, 3, TUPLES, 3, 200).tables())
    assert sorted_rows(out, *paper.query.key).to_pylist() == want.to_pylist()
    assert out.schema.names == want.schema.names


@pytest.mark.parametrize("partitions", [1, 7, 40])
def test_partitions_do_not_show(partitions, frames):
    from pystream.spark import aggregate  # noqa: PLC0415

    functions = {
        "n": ps.count(),
        "s": ps.sum("cons"),
        "f": ps.first("cons"),
        "l": ps.last("cons", pc.field("cons") > 300),
    }
    query = ps.Query(ps.Window(30, 7), key=None, aggregates=functions)
    out = aggregate(frames["EC"].repartition(partitions), query, position="position").toArrow()
    want = ps.aggregate(query, DataSet("EC", 3, TUPLES, 3, 200).tables())
    assert sorted_rows(out).to_pylist() == want.to_pylist()


def test_user_functions(frames):
    from pystream.spark import aggregate  # noqa: PLC0415

    class Trace:
        def __init__(self):
            self.seen = []

        def process_tuple(self, row):
            self.seen.append(f"{row['ts']}:{row['user']}")

        def produce_out_tuple(self):
            return " ".join(self.seen)

    query = ps.Query(ps.Window(50, 20), "song", {"trace": ps.udf(Trace, type=pa.string())})
    out = aggregate(frames["SC"], query, position="position").toArrow()
    want = ps.aggregate(query, DataSet("SC", 3, TUPLES, 3, 200).tables())
    assert sorted_rows(out, "song").to_pylist() == want.to_pylist()


def test_sparks_own_windows(spark):
    from pyspark.sql import functions as f  # noqa: PLC0415

    from pystream.spark import aggregate  # noqa: PLC0415

    start = dt.datetime(2020, 1, 1)  # noqa: DTZ001 - a timestamp without a zone
    rows = [(start + dt.timedelta(seconds=i * 7 % 300), i % 5, float(i)) for i in range(500)]
    frame = spark.createDataFrame(rows, "ts timestamp_ntz, k int, v double")
    query = ps.Query(ps.Window("30s", "10s"), "k", {"n": ps.count(), "m": ps.max("v")})
    mine = {tuple(r) for r in aggregate(frame, query).collect()}
    theirs = frame.groupBy(f.window("ts", "30 seconds", "10 seconds"), "k").agg(f.count("*"), f.max("v"))
    assert mine == {(r[0].start, *r[1:]) for r in theirs.collect()}


def test_refused(spark, frames):
    from pystream.spark import aggregate  # noqa: PLC0415

    first = ps.Query(ps.Window(10), "meter", {"f": ps.first("cons")})
    with pytest.raises(ValueError, match="position"):
        aggregate(frames["EC"], first)
    with pytest.raises(ps.SchemaError, match="'nowhere' is missing"):
        aggregate(frames["EC"], first, position="nowhere")
    with pytest.raises(ps.SchemaError, match="'power' is missing"):
        aggregate(frames["EC"], ps.Query(ps.Window(10), "meter", {"s": ps.sum("power")}))
    twice = frames["EC"].withColumn("position", frames["EC"].position * 0)
    with pytest.raises(Exception, match="have the same ts="):
        aggregate(twice, first, position="position").collect()
    with pytest.raises(ValueError, match="type="):
        aggregate(frames["EC"], ps.Query(ps.Window(10), "meter", {"u": ps.udf(object)}), position="position")
