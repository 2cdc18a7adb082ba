"""`aggregate` on a streaming DataFrame, and `finish`, which gets the last windows out.

    rows -> pack (mapInArrow) -> shuffle by shard -> Shard.step (state: Saved) -> observe -> opened (mapInArrow) -> rows
            fold natively                            combine natively

Spark stores the shards' states with its own, versioned by micro-batch: after a crash the query goes on from the last
committed micro-batch, and the one that was under way is run again and gives the same rows (see shard_windows.py). With
a sink that takes a micro-batch once, each row arrives exactly once.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from pystream._engine.plan import Plan
from pystream.errors import PystreamError, SchemaError
from pystream.operator import Operator
from pystream.partials import Fold
from pystream.spark.rows.needed_columns import columns_used, order_columns
from pystream.spark.rows.phases import SHARDS_MAX
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.rows.spark_types import result_schema, results, to_spark
from pystream.spark.stream.checkpoint import Checkpoint, checkpoint_of
from pystream.spark.stream.outgoing import arrived, sent
from pystream.spark.stream.parcels import PARCELS, pack
from pystream.spark.stream.shard import COUNTS, Shard
from pystream.spark.stream.state import STATE, Layout, Saved
from pystream.spark.task_process import settle

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.state import GroupState

    from pystream.query import Query

Batches = Iterator[pa.RecordBatch]

RESULTS = "rows binary, counts array<bigint>"  # few columns: pandas looks at each by itself
MOST = ("latest", "frontier")
LATE = ("error", "drop")


def aggregate(
    df: DataFrame,
    query: Query,
    stream: str,
    position: str | None,
    streams: int | Sequence[int] | None,
    late: str,
    shards: int | None,
    metrics: str,
) -> DataFrame:
    """Aggregate a streaming DataFrame; see dataframes.py."""
    columns = columns_used(df.columns, query, [*order_columns(query, stream, position), stream], "the DataFrame")
    schema = to_arrow_schema(df.select(columns).schema, timezone="UTC")  # the session's must not show
    layout = layout_of(df.sparkSession, query, schema, stream, position, streams, late, shards)
    return windows(df.select(columns), layout, metrics)


def windows(
    df: DataFrame, layout: Layout, metrics: str, rows: Callable[[Batches], Batches] = lambda batches: batches
) -> DataFrame:
    """The windows of a streaming DataFrame; `rows` makes the rows of the layout's schema of what is in it."""
    parcels = df.mapInArrow(_pack(layout, rows), from_arrow_schema(PARCELS))
    state = ", ".join(f"{name} {type}" for name, type in STATE.items())
    steps = parcels.groupBy("shard").applyInPandasWithState(_step(layout), RESULTS, state, "append", "NoTimeout")
    counted = steps.observe(metrics, *(_total(i, name) for i, name in enumerate(COUNTS)))
    return results(counted.select("rows"), _open(layout), layout.query, layout.schema)


def _total(i: int, name: str) -> Column:
    """A count of all shards. For `sum` and `max` Spark would generate code, again with every micro-batch."""
    each = f.collect_list(f.col("counts")[i])
    total = f.array_max(each) if name in MOST else f.aggregate(each, f.lit(0).cast("bigint"), operator.add)
    return total.alias(name)


# ---- before anything runs ----


def layout_of(
    spark: SparkSession,
    query: Query,
    schema: pa.Schema,
    stream: str,
    position: str | None,
    streams: int | Sequence[int] | None,
    late: str,
    shards: int | None,
) -> Layout:
    """The layout of rows with this schema, if all of it can be done."""
    if late not in LATE:
        raise ValueError(f"late is one of {', '.join(map(repr, LATE))}, not {late!r}")
    if not pa.types.is_integer(schema.field(stream).type):
        raise SchemaError(f"column {stream!r} has type {schema.field(stream).type}; it must be an integer")
    if shards is None:
        shards = min(int(spark.conf.get("spark.sql.shuffle.partitions") or 1), SHARDS_MAX)
    if not 1 <= operator.index(shards) <= SHARDS_MAX:
        raise ValueError(f"shards must be between 1 and {SHARDS_MAX}, not {shards}")
    place = position if len(order_columns(query, stream, position)) > 1 else None
    layout = Layout(
        query, schema, stream, place, shards if query.key else 1, _declared(streams), drop_late=late == "drop"
    )
    _check_runs(layout)
    return layout


def _declared(streams: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if streams is None:
        return None
    ids = range(streams) if isinstance(streams, int) else streams
    declared = tuple(sorted({operator.index(s) for s in ids}))
    if not declared:
        raise ValueError("streams says how many streams there are, or which; there must be one at least")
    return declared


def _check_runs(layout: Layout) -> None:
    """Refuse now what the shards could not do later."""
    result_schema(layout.query, layout.schema)
    if layout.folds:
        Fold(layout.query, layout.schema, *layout.place)
    else:
        with Operator(layout.query, 1, layout.schema) as op:
            op.snapshot()


# ---- on the executors ----


def _pack(layout: Layout, rows: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    def packed(batches: Batches) -> Batches:
        settle()
        return pack(layout, rows(batches))

    return packed


def _open(layout: Layout) -> Callable[[Batches], Batches]:
    schema = Plan(layout.query, layout.schema).out_schema

    def rows(batches: Batches) -> Batches:
        settle()
        return map(to_spark, arrived(batches, schema))

    return rows


def _step(layout: Layout) -> Callable[[Any, Iterator[Any], GroupState], Iterator[Any]]:
    def step(key: Any, frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
        import pandas as pd  # type: ignore[import-untyped] # noqa: PLC0415 - an extra

        settle()
        number = shard_labels(layout.shards).index(key[0])
        parcels: list[bytes] = []
        marks: list[bytes] = []
        for frame in frames:
            parcels.extend(frame["rows"].dropna())
            marks.extend(frame["marks"].dropna())
        saved = Saved.of_state(layout, number, *state.get) if state.exists else None
        done = Shard(layout, number, saved).step(parcels, marks)
        state.update(done.saved.to_state(number))
        rows = sent(done.rows, number)
        yield pd.DataFrame({"rows": [None, *rows], "counts": [[*done.counts.values()], *[None] * len(rows)]})

    return step


# ---- the end ----


def finish(started: StreamingQuery | str, query: Query, spark: SparkSession | None = None) -> DataFrame:
    """End a streaming aggregate for good: gives the windows that are still open, as a batch DataFrame.

    `started` is the query that `start()` gave, running or stopped, or the path of its checkpoint; `query` is what it
    aggregates. A running query works off what is available and is stopped. Then all streams count as ended: what the
    sink got and the rows given here are together the result of `ps.aggregate`.

    Nothing is lost: as long as there is the checkpoint, calling finish again gives the same rows again. Nothing comes
    twice: the checkpoint of a finished query cannot be started any more. Do not write the rows into the folder of a
    file sink, whose log would hide them:

    >>> generate(spark, "EC", f"{folder}/readings", streams=2, tuples=1000)
    >>> query = ps.Query(ps.Window(3600), key=None, aggregates={"n": ps.count()})
    >>> windows = aggregate_new_files(spark, query, f"{folder}/readings", streams=2)
    >>> writer = windows.writeStream.format("parquet").option("path", f"{folder}/windows")
    >>> started = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    >>> finish(started, query).write.mode("overwrite").parquet(f"{folder}/rest")
    >>> spark.read.parquet(f"{folder}/windows", f"{folder}/rest").agg({"n": "sum"}).collect()
    [Row(sum(n)=1000)]
    """
    session = spark or SparkSession.getActiveSession()
    if session is None:
        raise PystreamError("there is no Spark session: give finish one with spark=")
    path = started if isinstance(started, str) else checkpoint_of(started)
    if not isinstance(started, str) and started.isActive:
        started.processAllAvailable()
        started.stop()
    checkpoint = Checkpoint(session, path)
    checkpoint.check_whole()
    states = checkpoint.states()
    heads = states.select("layout", "shard").collect()
    if not heads:
        raise PystreamError(f"{path}: no row has come in here, so there is nothing to finish")
    layout = Layout.of(query, heads[0][0])
    if sorted(head[1] for head in heads) != sorted(shard_labels(layout.shards)):
        raise PystreamError(f"{path}: {len(heads)} of {layout.shards} shards are there")
    checkpoint.end()
    return results(states, _rest(layout), layout.query, layout.schema)


def _rest(layout: Layout) -> Callable[[Batches], Batches]:
    def rest(batches: Batches) -> Batches:
        for batch in batches:
            for state in batch.to_pylist():
                number = shard_labels(layout.shards).index(state.pop("shard"))
                yield from map(to_spark, Shard(layout, number, Saved.of_state(layout, number, **state)).finish())

    return rest
