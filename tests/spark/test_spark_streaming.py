"""Streaming aggregates on Spark: with `finish`, the rows of `ps.aggregate`, each exactly once."""

from __future__ import annotations

import datetime as dt
import math
import random

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import streaming_runs as runs
from strategies import canonical

import pystream as ps
from pystream.queries import PAPER

pytestmark = pytest.mark.spark

#: One with strings, one with an order; the others are for --deep.
QUICK = ("k-OS", "F-OI")
SC = "ts bigint, stream int, position bigint, user int, song int, cmt string"


def written(spark, folder) -> pa.Table:
    return spark.read.parquet(str(folder / "out")).toArrow()


@pytest.mark.parametrize("id", [id if id in QUICK else pytest.param(id, marks=pytest.mark.deep) for id in PAPER])
def test_the_papers_queries(id, spark, tmp_path):
    from pystream.spark import aggregate, finish  # noqa: PLC0415

    paper = PAPER[id]
    whole = runs.streams(paper.dataset)
    runs.write(tmp_path, whole.block(0), files=2)
    df = runs.rows_in(spark, tmp_path, runs.EC if paper.dataset == "EC" else SC)
    started = runs.start(aggregate(df, paper.query, position="position", streams=3), tmp_path)
    started.awaitTermination()
    streamed = written(spark, tmp_path)
    rest = finish(started, paper.query).toArrow()
    want = ps.aggregate(paper.query, whole.tables())
    assert runs.rows(pa.concat_tables([streamed, rest]), paper.query) == want.to_pylist()
    assert rest.num_rows < want.num_rows  # most of it did not wait for the end
    progress = [p["observedMetrics"]["pystream"] for p in started.recentProgress]
    assert [p["rows_in"] for p in progress] == [1500, 1500]
    assert [p["rows_late"] for p in progress] == [0, 0]
    assert sum(p["rows_out"] for p in progress) == streamed.num_rows
    assert progress[-1]["latest"] == max(whole.block(0)["ts"].to_pylist())


def test_every_bit_arrives(spark, tmp_path):
    """Nulls, NaN, both zeros, integers that no float holds, timestamps: Spark and pandas have other ideas of them."""
    from pystream.spark import aggregate, finish  # noqa: PLC0415

    dice = random.Random(4)
    start = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    floats = [0.0, -0.0, math.nan, math.inf, 0.1, None]
    made = [
        {
            "ts": start + dt.timedelta(milliseconds=250 * i),
            "stream": i % 2,
            "position": i,
            "name": dice.choice(["", "a", "é", None]),
            "x": dice.choice(floats),
            "i": dice.choice([2**60 + 1, -(2**53) - 1, None]),
            "f": dice.choice(floats),
        }
        for i in range(400)
    ]
    types = [pa.timestamp("us", "UTC"), pa.int64(), pa.int64(), pa.string(), pa.float64(), pa.int64(), pa.float64()]
    table = pa.Table.from_pylist(made, pa.schema(list(zip(made[0], types, strict=True))))
    aggregates = {
        "n": ps.count(),
        "low": ps.min("f"),
        "high": ps.max("i"),
        "first": ps.first("f"),
        "last": ps.last("i"),
        "who": ps.arg_min("name", "f"),
        "what": ps.arg_max("i", "ts"),
        "mean": ps.avg("f", pc.field("x") < 1),
        "variance": ps.var("i", ddof=0),
        "deviation": ps.std("f"),
        "together": ps.covar("f", "x"),
        "trend": ps.slope("i", "f"),
        "start": ps.intercept("i", "f"),
        "related": ps.corr("f", "x"),
    }
    query = ps.Query(ps.Window("10s", "4s"), ["name", "x"], aggregates)
    runs.write(tmp_path, table, files=2)
    schema = "ts timestamp, stream bigint, position bigint, name string, x double, i bigint, f double"
    out = aggregate(runs.rows_in(spark, tmp_path, schema), query, position="position", shards=5)
    runs.start(out, tmp_path).awaitTermination()
    rest = finish(str(tmp_path / "checkpoint"), query, spark).toArrow()
    got = pa.concat_tables([written(spark, tmp_path), rest]).to_pylist()
    want = ps.aggregate(query, [table.filter(pc.field("stream") == i) for i in range(2)]).to_pylist()
    assert sorted(map(repr, canonical(got))) == sorted(map(repr, canonical(want)))


def test_user_functions(spark, tmp_path):
    from pystream.spark import aggregate, finish  # noqa: PLC0415

    class Trace:
        def __init__(self, seen=""):
            self.seen = seen

        def process_tuple(self, row):
            self.seen += f"{row['ts']}:{row['cons']} "

        def produce_out_tuple(self):
            return self.seen

        def to_bytes(self):
            return self.seen.encode()

        @classmethod
        def from_bytes(cls, saved):
            return cls(saved.decode())

    query = ps.Query(ps.Window(50, 20), "meter", {"trace": ps.udf(Trace, type=pa.string())})
    whole = runs.streams()
    runs.write(tmp_path, whole.block(0), files=2)
    out = aggregate(runs.rows_in(spark, tmp_path), query, position="position", shards=2)
    runs.start(out, tmp_path).awaitTermination()
    rest = finish(str(tmp_path / "checkpoint"), query, spark).toArrow()
    streamed = written(spark, tmp_path)
    assert streamed.num_rows
    want = ps.aggregate(query, whole.tables()).to_pylist()
    assert runs.rows(pa.concat_tables([streamed, rest]), query) == want


def test_restart_and_finish(spark, tmp_path):
    """Goes on where it was, with another trigger; once finished it cannot be started, but gives its rest again."""
    from pystream.spark import aggregate, finish  # noqa: PLC0415

    whole = runs.streams()
    table = whole.block(0).sort_by("ts")
    runs.write(tmp_path, table.slice(0, 1000), files=1)
    runs.run(spark, tmp_path)
    with pytest.raises(Exception, match="the checkpoint is of another query: shards was 2, is 3"):
        runs.write(tmp_path, table.slice(1000, 1000), files=1, first=1)
        df = runs.rows_in(spark, tmp_path)
        runs.start(aggregate(df, runs.QUERY, position="position", shards=3), tmp_path).awaitTermination()
    with pytest.raises(ps.PystreamError, match="micro-batch 1 was cut off"):
        finish(str(tmp_path / "checkpoint"), runs.QUERY, spark)
    runs.write(tmp_path, table.slice(2000), files=1, first=2)
    out = aggregate(runs.rows_in(spark, tmp_path), runs.QUERY, position="position", shards=2)
    started = runs.start(out, tmp_path, {"processingTime": "0 seconds"})
    with pytest.raises(ps.PystreamError, match="another query: aggregates was"):
        finish(started, ps.Query(runs.QUERY.window, runs.QUERY.key, {"n": ps.count()}))
    rest = finish(started, runs.QUERY).toArrow()
    assert not started.isActive
    want = ps.aggregate(runs.QUERY, whole.tables()).to_pylist()
    assert runs.rows(pa.concat_tables([written(spark, tmp_path), rest]), runs.QUERY) == want
    assert runs.rows(finish(str(tmp_path / "checkpoint"), runs.QUERY, spark).toArrow(), runs.QUERY) == runs.rows(
        rest, runs.QUERY
    )
    with pytest.raises(Exception, match=r"ended by pystream\.spark\.finish") as refused:
        runs.run(spark, tmp_path)
    assert "JSON" not in str(refused.value)


def test_late_rows(spark, tmp_path):
    from pystream.spark import aggregate  # noqa: PLC0415

    query = ps.Query(ps.Window(10), None, {"n": ps.count()})

    def put(number: int, *ts: int) -> None:
        columns = {"ts": ts, "stream": [4] * len(ts), "position": [0] * len(ts)}
        runs.put(tmp_path, pa.table(columns), number)

    def run(late: str):
        df = runs.rows_in(spark, tmp_path, "ts bigint, stream bigint, position bigint")
        started = runs.start(aggregate(df, query, late=late, metrics="mine"), tmp_path)
        started.awaitTermination()
        return started.lastProgress["observedMetrics"]["mine"]

    put(0, 3, 12)
    put(1, 11, 25)
    with pytest.raises(Exception, match="DisorderError: stream 4: timestamp 11 is below 12"):
        run("error")
    assert run("drop").asDict() == {
        "rows_in": 2,
        "rows_late": 1,
        "rows_out": 1,
        "held": 1,
        "latest": 25,
        "frontier": 25,
        "holding": "[]",
    }
    assert runs.rows(written(spark, tmp_path), query) == [{"ts": 0, "n": 1}, {"ts": 10, "n": 1}]


def test_refused(spark, tmp_path):
    from pystream.spark import aggregate, finish  # noqa: PLC0415

    (tmp_path / "in").mkdir()
    df = runs.rows_in(spark, tmp_path)
    with pytest.raises(ValueError, match="position"):
        aggregate(df, runs.QUERY)
    with pytest.raises(ps.SchemaError, match="'nowhere' is missing"):
        aggregate(df, runs.QUERY, "nowhere", "position")
    with pytest.raises(ps.SchemaError, match="'cons' has type double; it must be an integer"):
        aggregate(df, runs.QUERY, "cons", "position")
    with pytest.raises(ValueError, match="shards must be between 1 and"):
        aggregate(df, runs.QUERY, position="position", shards=0)
    with pytest.raises(ValueError, match="late is one of"):
        aggregate(df, runs.QUERY, position="position", late="ignore")
    with pytest.raises(ValueError, match="there must be one at least"):
        aggregate(df, runs.QUERY, position="position", streams=0)
    with pytest.raises(TypeError, match="to_bytes"):
        aggregate(df, ps.Query(ps.Window(1), None, {"u": ps.udf(object, type=pa.string())}), position="position")
    with pytest.raises(ps.PystreamError, match="no micro-batch has been committed"):
        finish(str(tmp_path / "in"), runs.QUERY, spark)
    started = df.writeStream.format("noop").start()
    try:
        with pytest.raises(ps.PystreamError, match="the query has no checkpointLocation"):
            finish(started, runs.QUERY)
        assert started.isActive
    finally:
        started.stop()
