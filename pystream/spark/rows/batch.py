"""`aggregate`: a query over a DataFrame, the same rows to the bit whatever its partitions.

Rows are folded where they lie and partial aggregates are shuffled (phases.py). User code needs the rows themselves:
they go to partitions by key, are sorted there in the contract's order (ts, stream, position), and each partition runs
the native operator over its rows as one input that is merged already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pystream.errors import SchemaError
from pystream.operator import Operator
from pystream.spark.rows.needed_columns import columns_used, has_udf, order_columns
from pystream.spark.rows.phases import Phases
from pystream.spark.rows.spark_types import arrow_schema, plain_names, quoted, results, to_spark
from pystream.spark.rows.task_numbers import joined
from pystream.spark.task_process import settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from pystream.query import Query

#: How long to wait for room before looking for output, which may be what keeps the room.
WAIT_S = 0.05


def aggregate(df: DataFrame, query: Query, stream: str = "stream", position: str | None = None) -> DataFrame:
    """Aggregate a batch DataFrame; one row per window and key comes out, in no particular order.

    `stream` names the integer column that says which input a row belongs to, `position` the column that orders the rows
    of one stream with equal timestamps; `first`, `last`, `arg_min`, `arg_max` and udfs need both, because
    a DataFrame has no order.
    """
    order = order_columns(query, stream, position)
    rows = df.select(*map(quoted, columns_used(df.columns, query, order, "the DataFrame")))
    schema = arrow_schema(rows.schema)
    if has_udf(query):
        return _sorted(rows, query, schema, order)
    phases = Phases(query, schema, *(order[1:] or (None, None)))
    return phases.shuffle(plain_names(rows), _as(schema))


def _as(schema: pa.Schema) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Batches in this schema: they come with the session's time zone, which must not show, and maybe other names."""
    return lambda batches: (batch.rename_columns(schema.names).cast(schema) for batch in batches)


def _sorted(rows: DataFrame, query: Query, schema: pa.Schema, order: list[str]) -> DataFrame:
    """The path with the shuffle of rows."""
    rows = joined(rows.repartition(*map(quoted, query.key))) if query.key else rows.coalesce(1)
    rows = rows.sortWithinPartitions(*map(quoted, order))
    return results(plain_names(rows), _run(query, schema, order), query, schema)


def _run(
    query: Query, schema: pa.Schema, order: list[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does with its partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        settle()
        previous = None
        with Operator(query, 1, schema) as op:
            for batch in _as(schema)(batches):
                previous = _check_order(batch, order, previous)
                yield from map(to_spark, _add(op, batch))
                yield from map(to_spark, op.poll())
            op.close(0)
            yield from map(to_spark, op)

    return run


def _add(op: Operator, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Add a batch; the one thread that feeds the operator must read it as well, or both sides could wait for ever."""
    while True:
        try:
            op.add(0, batch, timeout=WAIT_S)
        except TimeoutError:
            yield from op.poll()
        else:
            return


def _check_order(batch: pa.RecordBatch, order: list[str], previous: pa.RecordBatch | None) -> pa.RecordBatch:
    """Refuse rows whose order is not determined: the result would depend on chance. Gives the batch's last row."""
    columns = batch.select(order)
    if len(order) > 1 and batch.num_rows:
        for name in order:
            if columns.column(name).null_count:
                raise SchemaError(f"column {name!r} is null in some row; the order of rows depends on it")
        with_previous = pa.Table.from_batches([b for b in (previous, columns) if b is not None]).combine_chunks()
        same = _equal_to_next(with_previous)
        if pc.any(same).as_py():
            row = with_previous.slice(pc.index(same, value=True).as_py(), 1).to_pylist()[0]
            raise SchemaError(
                f"two rows of one partition have the same {', '.join(f'{k}={v}' for k, v in row.items())}"
            )
    return columns.slice(batch.num_rows - 1) if batch.num_rows else previous


def _equal_to_next(table: pa.Table) -> pa.ChunkedArray:
    size = table.num_rows - 1
    same = pa.chunked_array([pa.array([True] * size, pa.bool_())])
    for column in table.columns:
        same = pc.and_(same, pc.equal(column.slice(0, size), column.slice(1)))
    return same
