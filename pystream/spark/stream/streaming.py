"""`aggregate` on a streaming DataFrame; `finish`, in ending.py, gets the last windows out.

    rows -> pack (mapInArrow) -> shuffle by shard -> Shard.step (state: Saved) -> observe -> opened (mapInArrow) -> rows
            fold natively                            combine natively

Spark stores the shards' states with its own, versioned by micro-batch: after a crash the query goes on from the last
committed micro-batch, and the one that was under way is run again and gives the same rows (see shard_windows.py). With
a sink that takes a micro-batch once, each row arrives exactly once.
"""

from __future__ import annotations

import json
import operator
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from pystream._engine.plan import Plan
from pystream.errors import SchemaError
from pystream.operator import Operator
from pystream.partials import Fold, seals
from pystream.spark.rows.needed_columns import columns_used, order_columns
from pystream.spark.rows.phases import SHARDS_MAX
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.rows.spark_types import (
    arrow_schema,
    plain_names,
    quoted,
    result_schema,
    results,
    struct_type,
    to_spark,
)
from pystream.spark.rows.task_numbers import shuffle_partitions
from pystream.spark.stream.orders import orders_in
from pystream.spark.stream.outgoing import arrived, sent
from pystream.spark.stream.parcels import PARCELS, pack
from pystream.spark.stream.shard import COUNTS, Shard
from pystream.spark.stream.state import STATE, Layout, Saved
from pystream.spark.task_process import for_executors, settle, task_number

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.state import GroupState

    from pystream.query import Query
    from pystream.spark.stream.noted_files import NotedFiles

Batches = Iterator[pa.RecordBatch]

RESULTS = "rows binary, counts array<bigint>, holding string"  # few columns: pandas looks at each by itself
MOST = ("latest", "frontier")
LATE = ("error", "drop")

#: State partitions without a shard that are not worth a warning.
IDLE_MAX = 16


def aggregate(
    df: DataFrame,
    query: Query,
    stream: str,
    position: str | None,
    streams: int | Sequence[int] | None,
    late: str,
    shards: int | None,
    metrics: str,
    orders: str | os.PathLike[str] | None,
) -> DataFrame:
    """Aggregate a streaming DataFrame; see dataframes.py."""
    columns = columns_used(df.columns, query, [*order_columns(query, stream, position), stream], "the DataFrame")
    rows = df.select(*map(quoted, columns))
    schema = arrow_schema(rows.schema)
    layout = layout_of(df.sparkSession, query, schema, stream, position, streams, late, shards)

    def packed(batches: Batches) -> Batches:
        return pack(layout, (batch.rename_columns(columns) for batch in batches))

    return windows(plain_names(rows), layout, metrics, orders, packed)


def windows(
    df: DataFrame,
    layout: Layout,
    metrics: str,
    orders: str | os.PathLike[str] | None,
    packed: Callable[[Batches], Batches],
    noted: NotedFiles | None = None,
) -> DataFrame:
    """The windows of a streaming DataFrame; `packed` makes parcels of what is in it, `noted` checks which files."""
    parcels = df.mapInArrow(for_executors(_settled(packed)), struct_type(PARCELS))
    if orders is not None:
        parcels = parcels.union(orders_in(df.sparkSession, orders, layout))
    state = ", ".join(f"{name} {type}" for name, type in STATE.items())
    steps = parcels.groupBy("shard").applyInPandasWithState(_step(layout, noted), RESULTS, state, "append", "NoTimeout")
    holding = f.array_join(f.collect_list("holding"), "").alias("holding")
    counted = steps.observe(metrics, *(_total(i, name) for i, name in enumerate(COUNTS)), holding)
    return results(counted.select("rows"), _open(layout, noted), layout.query, layout.schema)


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
        shards = min(shuffle_partitions(spark), SHARDS_MAX)
    if not 1 <= operator.index(shards) <= SHARDS_MAX:
        raise ValueError(f"shards must be between 1 and {SHARDS_MAX}, not {shards}")
    place = position if len(order_columns(query, stream, position)) > 1 else None
    layout = Layout(
        query, schema, stream, place, shards if query.key else 1, _declared(streams), drop_late=late == "drop"
    )
    _check_runs(layout)
    _warn_of_idle(shuffle_partitions(spark), layout.shards)
    return layout


def _warn_of_idle(partitions: int, shards: int) -> None:
    """Spark runs a task for every state partition, also for those without a shard; only the session decides on them."""
    if partitions - shards > IDLE_MAX:
        warnings.warn(
            f"{partitions - shards} of {partitions} state partitions will have no shard, and each costs a Python task "
            f'in every micro-batch: spark.conf.set("spark.sql.shuffle.partitions", {shards}) before the first start',
            stacklevel=4,
        )


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


def _settled(packed: Callable[[Batches], Batches]) -> Callable[[Batches], Batches]:
    def settled(batches: Batches) -> Batches:
        settle()
        return packed(batches)

    return settled


def _open(layout: Layout, noted: NotedFiles | None) -> Callable[[Batches], Batches]:
    schema = Plan(layout.query, layout.schema).out_schema

    def rows(batches: Batches) -> Batches:
        settle()
        came = 0

        def counted() -> Batches:
            nonlocal came
            for batch in batches:
                came += batch.num_rows
                yield batch

        yield from map(to_spark, arrived(counted(), schema))
        if noted is not None and not came and task_number() == 0:
            noted.check_there()

    return rows


def _step(layout: Layout, noted: NotedFiles | None) -> Callable[[Any, Iterator[Any], GroupState], Iterator[Any]]:
    def step(key: Any, frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
        import pandas as pd  # type: ignore[import-untyped] # noqa: PLC0415 - an extra

        settle()
        number = shard_labels(layout.shards).index(key[0])
        parcels: list[bytes] = []
        marks: list[bytes] = []
        for frame in frames:
            parcels.extend(frame["rows"].dropna())
            marks.extend(frame["marks"].dropna())
        if noted is not None and number == 0:
            noted.check_read(blob for blob in marks if seals.is_of(blob, seals.FILES))
        marks = [blob for blob in marks if not seals.is_of(blob, seals.FILES)]
        if not parcels and not marks:
            return  # the files had no rows
        saved = Saved.of_state(layout, number, *state.get) if state.exists else None
        done = Shard(layout, number, saved).step(parcels, marks, state.getCurrentProcessingTimeMs())
        state.update(done.saved.to_state(number))
        rows = sent(done.rows, number)
        none = [None] * len(rows)
        holding = None if number else json.dumps(done.holding)
        yield pd.DataFrame(
            {"rows": [None, *rows], "counts": [[*done.counts.values()], *none], "holding": [holding, *none]}
        )

    return step
