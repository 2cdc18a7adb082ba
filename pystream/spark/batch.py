"""`aggregate`: a query over a DataFrame, the same rows to the bit whatever its partitions.

Rows go to partitions by key, are sorted there in the contract's order (ts, stream, position), and each partition runs
the native operator over its rows as one input that is merged already.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from pystream.errors import SchemaError
from pystream.operator import ORDERED, Operator
from pystream.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame

    from pystream.query import Query

#: How long to wait for room before looking for output, which may be what keeps the room.
WAIT_S = 0.05


def aggregate(df: DataFrame, query: Query, stream: str = "stream", position: str | None = None) -> DataFrame:
    """Aggregate a batch DataFrame; one row per window and key comes out, in no particular order.

    `stream` names the integer column that says which input a row belongs to, `position` the column that orders the rows
    of one stream with equal timestamps; `first`, `last` and udfs need both, because a DataFrame has no order.
    """
    order = _order(df, query, stream, position)
    columns = _columns_used(df, query, order)
    schema = to_arrow_schema(df.select(columns).schema)
    out = from_arrow_schema(_out_schema(query, schema))
    rows = df.select(columns)
    rows = rows.repartition(*query.key) if query.key else rows.coalesce(1)
    return rows.sortWithinPartitions(*order).mapInArrow(_run(query, schema, order), out)


def _order(df: DataFrame, query: Query, stream: str, position: str | None) -> list[str]:
    """The columns to sort by. Where the order of equal timestamps shows nowhere, the timestamp is enough."""
    sensitive = [f"{n} = {a!r}" for n, a in query.aggregates.items() if a.function in ORDERED]
    if not sensitive:
        return [query.ts]
    if position is None:
        raise ValueError(f"{sensitive[0]} depends on the order of rows with equal timestamps: name a `position` column")
    for name in (stream, position):
        if name not in df.columns:
            raise SchemaError(f"column {name!r} is missing; the DataFrame has {', '.join(map(repr, df.columns))}")
    return [query.ts, stream, position]


def _columns_used(df: DataFrame, query: Query, order: list[str]) -> list[str]:
    """The fewest columns that have to cross from Spark to Python: each of them costs."""
    aggregates = query.aggregates.values()
    if any(a.function == "udf" for a in aggregates):  # user code gets whole rows
        return list(df.columns)
    used = {*order, *query.key, *(c for a in aggregates for c in a.columns)}
    missing = used - set(df.columns)
    if missing:
        raise SchemaError(f"column {min(missing)!r} is missing; the DataFrame has {', '.join(map(repr, df.columns))}")
    filters = " ".join(str(a.where) for a in aggregates if a.where is not None)
    return [c for c in df.columns if c in used or c in filters]


def _out_schema(query: Query, schema: pa.Schema) -> pa.Schema:
    untyped = [n for n, a in query.aggregates.items() if a.function == "udf" and a.type is None]
    if untyped:
        raise ValueError(f"Spark must know all types beforehand: say udf(..., type=...) for {untyped[0]}")
    return Plan(query, schema).out_schema


def _run(
    query: Query, schema: pa.Schema, order: list[str]
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What a task does with its partition."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        previous = None
        with Operator(query, 1, schema) as op:
            for batch in batches:
                previous = _check_order(batch, order, previous)
                yield from _add(op, batch)
                yield from op.poll()
            op.close(0)
            yield from op

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
