"""Arrow types on their way into Spark, which has fewer: no unsigned integers, microseconds only."""

from __future__ import annotations

import pyarrow as pa

from pystream.errors import SchemaError

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
    if pa.types.is_timestamp(type):
        return pa.timestamp("us", None if type.tz is None else "UTC")
    if pa.types.is_duration(type):
        return pa.duration("us")
    if pa.types.is_time(type):
        return pa.time64("ns")
    return _WIDER.get(type, type)


def spark_schema(schema: pa.Schema) -> pa.Schema:
    """The schema in Spark's types."""
    return pa.schema([pa.field(f.name, spark_type(f.type)) for f in schema])


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
