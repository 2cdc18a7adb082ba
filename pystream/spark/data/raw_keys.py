"""Which records are equal, in which order equal times come, and to which stream a record goes.

Spark neither groups nor orders maps, and grouping turns -0.0 into 0.0. So columns with floats or maps in them are told
apart by a key that has what Spark can compare, and keep their own values.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame

#: Types of which text, the same everywhere, can be made: what may decide the stream.
DECIDING = (t.StringType, t.ByteType, t.ShortType, t.IntegerType, t.LongType, t.BooleanType, t.DateType, t.BinaryType)

_ZEROS = "zeros"
_FLOATS = (t.FloatType, t.DoubleType)
#: Bits of `zeros`, one for a column; floats beyond are compared as nested ones are.
_BITS = 63


class Keys:
    """How records with these columns are compared."""

    def __init__(self, fields: Sequence[t.StructField]) -> None:
        self._floats = [x.name for x in fields if isinstance(x.dataType, _FLOATS)][:_BITS]
        others = [x for x in fields if x.name not in self._floats]
        self._odd = {x.name: x.dataType for x in others if _is_odd(x.dataType, inside=True)}
        self._plain = [x.name for x in fields if x.name not in self._odd]
        self._names = [x.name for x in fields]

    def once(self, df: DataFrame, more: list[str], copies: str) -> DataFrame:
        """Each record once, with the number of its copies; `more` are columns that follow from the others."""
        keyed = df.select("*", *(_comparable(f.col(n), d).alias(f"key_{n}") for n, d in self._odd.items()))
        keys = [*more, *self._plain, *(f"key_{n}" for n in self._odd)]
        if self._floats:
            keyed, keys = keyed.withColumn(_ZEROS, self._zeros()), [*keys, _ZEROS]
        found = keyed.groupBy(*keys).agg(f.count(f.lit(1)).alias(copies), *(f.first(n).alias(n) for n in self._odd))
        for i, name in enumerate(self._floats):
            negative = f.col(_ZEROS).bitwiseAND(f.lit(1 << i)) != 0
            found = found.withColumn(name, f.when(negative, -f.col(name)).otherwise(f.col(name)))
        return found

    def order(self) -> list[Column]:
        """The order of records with equal times: column by column, null first, NaN last, -0.0 before 0.0 at the end."""
        columns = [f.col(f"key_{n}") if n in self._odd else f.col(n) for n in self._names]
        return [*columns, *([f.col(_ZEROS).desc()] if self._floats else [])]

    def _zeros(self) -> Column:
        """A bit for each column of floats that is -0.0."""
        bits = [f.shiftleft(_is_negative_zero(f.col(n)).cast("long"), i) for i, n in enumerate(self._floats)]
        return reduce(lambda a, b: a.bitwiseOR(b), bits)


def _is_odd(type: t.DataType, *, inside: bool = False) -> bool:
    """Whether values of this type have to be compared by something else."""
    if isinstance(type, t.ArrayType):
        return _is_odd(type.elementType, inside=True)
    if isinstance(type, t.StructType):
        return any(_is_odd(field.dataType, inside=True) for field in type)
    return isinstance(type, t.MapType | t.VariantType) or (isinstance(type, _FLOATS) and inside)


def _comparable(value: Column, type: t.DataType) -> Column:
    """What Spark can group and order, equal where the value is."""
    if isinstance(type, _FLOATS):
        return f.when(value.isNotNull(), f.struct(value, ~_is_negative_zero(value)))
    if isinstance(type, t.VariantType):
        return f.to_json(value)
    if isinstance(type, t.ArrayType):
        return f.transform(value, lambda each: _comparable(each, type.elementType))
    if isinstance(type, t.StructType):
        parts = [_comparable(value[x.name], x.dataType).alias(f"f{i}") for i, x in enumerate(type)]
        return f.when(value.isNotNull(), f.struct(*parts))
    if isinstance(type, t.MapType):
        entry = t.StructType([t.StructField("key", type.keyType), t.StructField("value", type.valueType)])
        return f.array_sort(f.transform(f.map_entries(value), lambda each: _comparable(each, entry)))
    return value


def _is_negative_zero(value: Column) -> Column:
    """Arithmetic does not tell in Spark, which adds 0.0 where it could; the text does, and is made of zeros only."""
    return f.coalesce((value == 0) & value.cast("string").startswith("-"), f.lit(False))


def stream_number(fields: Sequence[t.StructField], streams: int, chosen: Sequence[str] | None) -> Column:
    """The stream of a record: checksums of its values as text, which any program can compute.

    `chosen` are the names that the user gave; without them, columns of other types do not count.
    """
    for field, name in zip(fields, chosen or [], strict=False):
        if not isinstance(field.dataType, DECIDING):
            raise TypeError(
                f"column {name!r} of type {field.dataType.simpleString()} cannot decide the stream: "
                "text, integers, booleans, dates and bytes can"
            )
    deciding = [field for field in fields if isinstance(field.dataType, DECIDING)]
    parts = [_checksum(field) * (2 * i + 1) for i, field in enumerate(deciding)]
    return f.pmod(reduce(lambda a, b: a + b, parts, f.lit(0).cast("long")), f.lit(streams)).cast("int")


def _checksum(field: t.StructField) -> Column:
    column = f.col(field.name)
    if isinstance(field.dataType, t.DateType):
        column = f.unix_date(column)
    text = column if isinstance(field.dataType, t.StringType | t.BinaryType) else column.cast("string")
    return f.coalesce(f.crc32(text.cast("binary")), f.lit(0))
