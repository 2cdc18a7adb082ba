"""Arrow types on their way into Spark, which has fewer: no unsigned integers, microseconds only.

A schema also says which columns have no nulls (`nullable`). Spark, told so, does not look for them: a third of the time
that it needs to take a row in. Whoever looks at a result finds that its columns may have nulls all the same: a query
has one schema, whatever is known of the rows.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.pandas import types as pandas_types

from pystream._engine.plan import Plan
from pystream._kinds import KINDS
from pystream.errors import SchemaError
from pystream.spark.task_process import for_executors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

    from pystream.query import Query

    Task = Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]

#: The narrowest type of Spark's that holds every value, as Spark's own parquet reader has it.
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.large_string(): pa.string(),
    pa.string_view(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.binary_view(): pa.binary(),
    pa.date64(): pa.date32(),
}


def spark_type(type: pa.DataType) -> pa.DataType:
    """The Arrow type in which Spark takes values of this one."""
    if pa.types.is_dictionary(type):
        return spark_type(type.value_type)
    if pa.types.is_list(type):
        return pa.list_(spark_type(type.value_type))
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", None if type.tz is None else "UTC")
    if pa.types.is_duration(type):
        return pa.duration("us")
    if pa.types.is_time(type):
        return pa.time64("ns")
    return _WIDER.get(type, type)


#: Until 4.2 PySpark always gives UTC, then it wants to be told, or takes the session's zone.
_ZONE: dict[str, Any] = (
    {"timezone": "UTC"} if "timezone" in inspect.signature(pandas_types.to_arrow_schema).parameters else {}
)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The columns of a DataFrame in Arrow's types; instants are in UTC, whatever the session's zone."""
    return pandas_types.to_arrow_schema(schema, **_ZONE)


def struct_type(schema: pa.Schema) -> StructType:
    """The columns as Spark wants to be told; a timestamp without a zone stays one."""
    return pandas_types.from_arrow_schema(schema, prefer_timestamp_ntz=True)


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in Spark's types."""
    return pa.schema([pa.field(f.name, spark_type(f.type), f.nullable) for f in schema])


def result_schema(query: Query, schema: pa.Schema) -> StructType:
    """The columns of the result, for rows of this schema, as Spark wants to be told."""
    untyped = [n for n, a in query.aggregates.items() if a.function == "udf" and a.type is None]
    if untyped:
        raise ValueError(f"Spark must know all types beforehand: say udf(..., type=...) for {untyped[0]}")
    out = Plan(query, schema).out_schema
    full = _never_null(query, schema)
    return struct_type(spark_schema(pa.schema([f.with_nullable(f.name not in full) for f in out])))


def results(frame: DataFrame, task: Task, query: Query, schema: pa.Schema) -> DataFrame:
    """The result, from tasks that give its batches; they are made of rows of this schema."""
    told = result_schema(query, schema)
    rows, names = frame.mapInArrow(for_executors(task), told), told.names
    if len({name.lower() for name in names}) < len(names):  # Spark takes "n" and "N" for one name
        names = [str(i) for i in range(len(names))]
        rows = rows.toDF(*names)
    columns = zip(names, told.names, strict=True)
    # Text, because a call for every part of it takes the driver five times as long, which small queries feel.
    return rows.selectExpr(
        *(f"CASE WHEN false THEN null ELSE {quoted(n)} END AS {quoted(name)}" for n, name in columns)
    )


def quoted(name: str) -> str:
    """The name of a column as Spark reads it, whatever is in it: dots, say, would lead into a struct."""
    return "`" + name.replace("`", "``") + "`"


def plain_names(frame: DataFrame) -> DataFrame:
    """The frame with names that mapInArrow takes, which does not quote them: their order tells which is which."""
    odd = any(c in name for name in frame.columns for c in ".`")
    return frame.toDF(*map(str, range(len(frame.columns)))) if odd else frame


def _never_null(query: Query, schema: pa.Schema) -> set[str]:
    """The columns of the result without nulls: there is a row only for a window and key with tuples.

    With a ddof (var, std, covar) one value is not enough, and a line wants points that differ.
    """

    def full(columns: Iterable[str]) -> bool:
        return not any(schema.field(c).nullable for c in columns)

    keys = {name for name in query.key if full([name])}
    aggregates = {
        name
        for name, a in query.aggregates.items()
        if a.function == "count"
        or (a.column and not (a.where is not None or a.parameter or KINDS[a.function].gaps) and full(a.columns))
    }
    return {"ts"} | keys | aggregates


def to_spark(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch in Spark's types; a value that has none there is refused."""
    schema = spark_schema(batch.schema)
    arrays = [_cast(c, f) for c, f in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _cast(array: pa.Array, field: pa.Field) -> pa.Array:
    if array.type == field.type:
        return array
    try:
        return array.cast(field.type)
    except pa.ArrowInvalid as error:
        raise SchemaError(f"column {field.name!r} of type {array.type} does not fit Spark's: {error}") from error
