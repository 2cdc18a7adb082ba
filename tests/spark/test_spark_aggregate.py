"""Aggregation on Spark: equal to `ps.aggregate` to the bit, whatever the partitions; equal to Spark's own windows."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps
from pystream.data.sample import SCHEMAS, DataSet
from pystream.queries import PAPER

pytestmark = pytest.mark.spark

TUPLES = 4_000


@pytest.fixture(scope="module")
def frames(spark):
    """Both data sets as DataFrames with the rows in no useful order."""
    made = {name: DataSet(name, streams=3, tuples=TUPLES, seed=3, span_s=200) for name in SCHEMAS}
    return {name: spark.createDataFrame(whole.block(0).sort_by("position")).cache() for name, whole in made.items()}


def sorted_rows(table: pa.Table, *key: str) -> pa.Table:
    return table.sort_by([(name, "ascending") for name in ("ts", *key)]).combine_chunks()


CHEAP = ("k-OS", "F-OS", "W-OI", "K-OI")


@pytest.mark.parametrize("id", [id if id in CHEAP else pytest.param(id, marks=pytest.mark.deep) for id in PAPER])
def test_the_papers_queries(id, frames):
    from pystream.spark import aggregate  # noqa: PLC0415

    paper = PAPER[id]
    out = aggregate(frames[paper.dataset], paper.query, position="position").toArrow()
    want = ps.aggregate(paper.query, DataSet(paper.dataset, 3, TUPLES, 3, 200).tables())
    assert sorted_rows(out, *paper.query.key).to_pylist() == want.to_pylist()
    assert out.schema.names == want.schema.names


@pytest.mark.parametrize("partitions", [1, 20, pytest.param(200, marks=pytest.mark.deep)])
def test_partitions_do_not_show(partitions, frames):
    from pystream.spark import aggregate  # noqa: PLC0415

    functions = {
        "n": ps.count(),
        "s": ps.sum("cons"),
        "d": ps.std("cons"),
        "v": ps.var("cons", ddof=0),
        "f": ps.first("cons"),
        "l": ps.last("cons", pc.field("cons") > 300),
        "who": ps.arg_max("meter", "cons"),
        "equals": ps.arg_min("cons", "meter"),
        "c": ps.covar("cons", "meter"),
        "trend": ps.slope("cons", "ts"),
        "start": ps.intercept("cons", "ts"),
        "r": ps.corr("cons", "meter", where=pc.field("cons") > 300),
        "unique": ps.n_unique("meter"),
        "middle": ps.median("cons"),
        "p95": ps.quantile("cons", 0.95, "higher", pc.field("cons") > 300),
        "about": ps.approx_quantile("cons", 0.95),
        "top": ps.top_k("cons", 3),
        "least": ps.bottom_k("meter", 2, where=pc.field("cons") > 1e9),
        "counts": ps.histogram("cons", [100, 200.5, 300]),
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
    rows = [(start + dt.timedelta(seconds=i * 7 % 300), i % 3, i, i % 5, i / 4) for i in range(500)]
    frame = spark.createDataFrame(rows, "ts timestamp_ntz, stream int, position int, k int, v double")
    functions = {"n": ps.count(), "m": ps.max("v"), "a": ps.avg("v"), "f": ps.first("v"), "l": ps.last("v")}
    query = ps.Query(ps.Window("30s", "10s"), "k", functions)
    mine = {tuple(r) for r in aggregate(frame, query, position="position").collect()}
    place = f.struct("ts", "stream", "position")
    theirs = frame.groupBy(f.window("ts", "30 seconds", "10 seconds"), "k").agg(
        f.count("*"), f.max("v"), f.avg("v"), f.min_by("v", place), f.max_by("v", place)
    )
    assert mine == {(r[0].start, *r[1:]) for r in theirs.collect()}


@pytest.fixture
def settings(spark):
    """Set Spark's settings until the test ends."""
    before = {}

    def set(name, value):
        before.setdefault(name, spark.conf.get(name))
        spark.conf.set(name, value)

    yield set
    for name, value in before.items():
        spark.conf.set(name, value)


def test_the_sessions_settings_do_not_show(spark, settings):
    """Instants as timestamps and keys, in a session of another time zone and with Arrow's large types."""
    from pystream.spark import aggregate  # noqa: PLC0415

    zone = pa.timestamp("us", "UTC")
    hours = [i * 3_600_000_000 for i in range(40)]
    keys = pa.array([None if i % 7 == 0 else i % 3 for i in range(40)], pa.int64()).cast(zone)
    table = pa.table({"ts": pa.array(hours, zone), "k": keys, "text": [str(i) for i in range(40)]})
    night = pc.hour(pc.field("ts")) < 6
    functions = {"n": ps.count(night), "m": ps.max("text"), "t": ps.min("ts")}
    query = ps.Query(ps.Window("12h", "5h"), "k", functions)
    settings("spark.sql.session.timeZone", "America/New_York")
    settings("spark.sql.execution.arrow.useLargeVarTypes", "true")
    rows = aggregate(spark.createDataFrame(table).repartition(3), query)
    out = rows.selectExpr("unix_micros(ts) ts", "unix_micros(k) k", "n", "m", "unix_micros(t) t").toArrow()
    want = ps.aggregate(query, [table])
    micros = [want[c].cast(pa.int64()) if c in ("ts", "k", "t") else want[c] for c in want.column_names]
    assert sorted_rows(out, "k").to_pylist() == pa.table(micros, want.column_names).to_pylist()


@pytest.mark.parametrize("function", ["count", "udf"])
def test_few_tasks(function, spark, settings):
    """With 200 partitions and no adaptive execution no more tasks than run at once; each has many shards."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    from pystream.spark import aggregate  # noqa: PLC0415
    from pystream.spark.rows import task_numbers  # noqa: PLC0415

    class Rows:
        def __init__(self):
            self.seen = []

        def process_tuple(self, row):
            self.seen.append(row)

        def produce_out_tuple(self):
            return len(self.seen)

    settings("spark.sql.adaptive.enabled", "false")
    settings("spark.sql.shuffle.partitions", "200")
    frame = spark.range(0, 500, numPartitions=3).selectExpr("id div 10 as ts", "0 as stream", "id as p", "id % 90 as k")
    count = ps.count() if function == "count" else ps.udf(Rows, type=pa.int64())
    query = ps.Query(ps.Window(20, 7), "k", {"n": count})
    rows = aggregate(frame, query, position="p")
    tasks = {row[0] for row in rows.select(f.spark_partition_id()).distinct().collect()}
    assert len(tasks) == task_numbers.parallelism(spark) == 2
    assert sorted_rows(rows.toArrow(), "k").to_pylist() == ps.aggregate(query, [frame.toArrow()]).to_pylist()


def test_one_heavy_key_and_empty_partitions(spark):
    from pystream.spark import aggregate  # noqa: PLC0415

    frame = spark.range(0, 3_000, numPartitions=6).where("id < 2000")  # the last partitions are empty
    frame = frame.selectExpr("id div 10 as ts", "if(id % 100 = 0, cast(id as string), 'heavy') as k", "id as v")
    query = ps.Query(ps.Window(20, 7), "k", {"n": ps.count(), "s": ps.sum("v")})
    want = ps.aggregate(query, [frame.toArrow()]).to_pylist()
    assert sorted_rows(aggregate(frame, query).toArrow(), "k").to_pylist() == want
    nothing = aggregate(frame.where("id < 0"), query).toArrow()
    assert (nothing.num_rows, nothing.schema.names) == (0, ["ts", "k", "n", "s"])


def test_the_fewest_columns_cross():
    from pystream.spark.rows.needed_columns import columns_used, order_columns  # noqa: PLC0415

    names = ["ts", "stream", "position", "k", "v", "w", *(f"c{i}" for i in range(500))]
    count = ps.Query(ps.Window(9), "k", {"n": ps.count(), "s": ps.sum("v", pc.field("c77") > 0)})
    used = columns_used(names, count, order_columns(count, "stream", None), "it")
    assert {"ts", "k", "v", "c77"} <= {*used} <= {"ts", "k", "v", "c7", "c77"}
    first = ps.Query(ps.Window(9), "k", {"f": ps.first("v")})
    used = columns_used(names, first, order_columns(first, "stream", "position"), "it")
    assert used == ["ts", "stream", "position", "k", "v"]


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
    nowhere = frames["EC"].withColumn("position", frames["EC"].position * None)
    with pytest.raises(Exception, match="'position' is null"):
        aggregate(nowhere, first, position="position").collect()
    compiled = ps.native_udf(1, 1, state_size=0, columns="cons", type=pa.int64())
    with pytest.raises(ValueError, match="executors are others"):
        aggregate(frames["EC"], ps.Query(ps.Window(10), "meter", {"u": compiled}), position="position")
    with pytest.raises(ValueError, match="type="):
        aggregate(frames["EC"], ps.Query(ps.Window(10), "meter", {"u": ps.udf(object)}), position="position")
