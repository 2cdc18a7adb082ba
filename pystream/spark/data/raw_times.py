"""The time of a raw record as an expression of Spark's: null if it cannot be read. The session's zone does not show."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql import types as t

from pystream.data.raw_records import (
    END_S,
    SECONDS_MAX,
    SHORT_WITH_ZONE,
    UNITS,
    WITH_ZONE,
    WITHOUT_ZONE,
    ZONE,
    has_zone,
)

if TYPE_CHECKING:
    from pyspark.sql import Column

    from pystream.data.raw_records import Rules

#: Microseconds in a second.
MICROS = 1_000_000


def kind_of(type: t.DataType) -> str:
    """What kind of time a column has, as Rules.check_time calls it."""
    if isinstance(type, t.TimestampType):
        return "instant"
    if isinstance(type, t.TimestampNTZType | t.DateType):
        return "local"
    if isinstance(type, t.ByteType | t.ShortType | t.IntegerType | t.LongType):
        return "integer"
    return "text" if isinstance(type, t.StringType) else "other"


def time_of(column: Column, kind: str, rules: Rules) -> Column:
    """The time: a timestamp, or the integer itself where no unit says what it counts."""
    if kind == "integer":
        return _of_integer(column.cast("long"), rules)
    if kind == "text":
        return _of_text(column, rules) if rules.format is None else _of_format(column, rules.format, rules.tz)
    if kind == "local":
        local = column.cast("timestamp_ntz")
        return local if rules.tz is None else _in_zone(local.cast("string"), rules.tz)
    return column


def before_1970(time: Column, kind: str, rules: Rules) -> Column:
    """Whether a time is one of those that the engine does not take."""
    if kind == "integer" and rules.unit is None:
        return time < 0
    if kind == "local" and rules.tz is None:
        return time < f.lit("1970-01-01").cast("timestamp_ntz")
    return time < f.timestamp_seconds(f.lit(0))


def beyond_9999(column: Column, kind: str, rules: Rules) -> Column:
    """Whether an integer counts more than there are years."""
    if kind != "integer" or rules.unit is None:
        return f.lit(False)
    return column.cast("long") >= _end(rules.unit)


def _end(unit: str) -> int:
    return min(END_S * UNITS[unit], (1 << 63) - 1)


def _of_integer(number: Column, rules: Rules) -> Column:
    if rules.unit is None:
        refused = f.raise_error(f.printf(f.lit(rules.no_seconds()), number.cast("string"))).cast("long")
        return f.when(number >= SECONDS_MAX, refused).otherwise(number)
    end = _end(rules.unit)
    far = f.when(number >= end, f.timestamp_seconds(f.lit(END_S - 1))).otherwise(f.timestamp_seconds(f.lit(-1)))
    inside = (number > -end) & (number < end)
    return f.when(inside, f.timestamp_micros(_micros(number, UNITS[rules.unit]))).when(number.isNotNull(), far)


def _micros(number: Column, a_second: int) -> Column:
    """Whole microseconds, all that Spark has; what is below decides the order of rows only."""
    if a_second <= MICROS:
        return number * (MICROS // a_second)
    return f.call_function("div", number - f.pmod(number, f.lit(a_second // MICROS)), f.lit(a_second // MICROS))


def _of_text(text: Column, rules: Rules) -> Column:
    """ISO 8601. Spark's own parser takes more, some of it with today's date, and the session's zone where none is."""
    core = f.trim(text)
    short = _whole(f.regexp_replace(core, rf" ?{ZONE}\z", ""), f.regexp_extract(core, rf"{ZONE}\z", 0))
    read = f.when(core.rlike(WITH_ZONE), core.try_cast("timestamp"))
    if rules.tz is None:
        refused = f.raise_error(f.printf(f.lit(rules.no_zone()), core)).cast("timestamp")
    else:
        refused = _whole(core, f.lit(f" {rules.tz}"))
    return read.when(core.rlike(WITHOUT_ZONE), refused).when(core.rlike(SHORT_WITH_ZONE), short)


def _whole(body: Column, zone: Column) -> Column:
    """The time of a text of which parts may be missing."""
    rest = f.when(f.length(body) == 10, " 00:00:00").when(f.length(body) == 13, ":00:00")
    rest = rest.when(f.length(body) == 16, ":00").otherwise("")
    return f.concat(body, rest, zone).try_cast("timestamp")


def _of_format(text: Column, format: str, tz: str | None) -> Column:
    if has_zone(format):
        return f.try_to_timestamp(text, f.lit(format))
    return f.try_to_timestamp(f.concat(text, f.lit(f" {tz}")), f.lit(f"{format} VV"))


def _in_zone(text: Column, tz: str) -> Column:
    return f.concat(text, f.lit(f" {tz}")).try_cast("timestamp")
