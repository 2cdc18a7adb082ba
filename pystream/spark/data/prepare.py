"""`prepare`: raw records into timestamp-sorted streams."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.sql import functions as f
from pyspark.sql.window import Window

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import Column, DataFrame


@dataclass(frozen=True)
class Prepared:
    """The streams, and what was left out on the way: reason -> number of rows."""

    rows: DataFrame
    dropped: dict[str, int]

    def __str__(self) -> str:
        total = sum(self.dropped.values())
        reasons = ", ".join(f"{n} {why}" for why, n in self.dropped.items() if n)
        return f"{total} rows dropped{': ' if total else ''}{reasons}"


def prepare(
    df: DataFrame,
    ts: str = "ts",
    stream: str | Sequence[str] | None = None,
    streams: int = 4,
    format: str | None = None,
    require: Sequence[str] = (),
) -> Prepared:
    """Turn raw, unsorted records into streams: the same columns with `ts` (long), `stream` and `position`.

    `ts` is a number, a timestamp or text (ISO 8601, or in Spark's `format`) and becomes seconds since 1970. `stream`
    names the column or columns whose values decide to which of `streams` streams a row goes; without it all columns do.
    Rows are dropped, and counted, when the timestamp is missing, unreadable or before 1970, when a column of `require`
    is null, or when the same row came before. Rows of one stream with equal timestamps are put in the order of their
    contents, so the result does not depend on how `df` is partitioned.

    >>> raw = spark.createDataFrame([("2024-01-01T00:00:09", "x"), ("some day", "y")], ["time", "meter"])
    >>> prepared = prepare(raw, ts="time", stream="meter", streams=1)
    >>> print(prepared)
    1 rows dropped: 1 with unreadable timestamp
    >>> prepared.rows.columns
    ['ts', 'stream', 'position', 'meter']
    """
    columns = [c for c in df.columns if c != ts]
    seconds = _seconds(df, ts, format)
    judged = df.withColumn("__ts", seconds).withColumn("__why", _reason(ts, require))
    whole = judged.where(f.col("__why").isNull()).drop(ts, "__why").withColumnRenamed("__ts", "ts")
    kept = whole.dropDuplicates()
    by = [stream] if isinstance(stream, str) else list(stream or ["ts", *columns])
    number = f.pmod(f.xxhash64(*by), f.lit(streams)).cast("int")
    place = Window.partitionBy("stream").orderBy("ts", *columns)
    placed = kept.withColumn("stream", number).withColumn("position", f.row_number().over(place).cast("long") - 1)
    counts = {row["__why"]: row["count"] for row in judged.groupBy("__why").count().collect()}
    twice = counts.pop(None, 0) - kept.count()
    return Prepared(
        placed.select("ts", "stream", "position", *columns), dict(sorted(counts.items())) | {"twice": twice}
    )


def _seconds(df: DataFrame, ts: str, format: str | None) -> Column:
    """Seconds since 1970, null where there is no such thing."""
    kind = dict(df.dtypes)[ts]
    if kind in ("tinyint", "smallint", "int", "bigint"):
        return f.col(ts).cast("long")
    if kind == "string":
        return f.unix_timestamp(f.try_to_timestamp(f.col(ts), *([f.lit(format)] if format else [])))
    if kind in ("timestamp", "timestamp_ntz", "date"):
        return f.unix_timestamp(f.col(ts).cast("timestamp"))
    raise TypeError(f"column {ts!r} of type {kind} is not a timestamp: give text, a timestamp or a whole number")


def _reason(ts: str, require: Sequence[str]) -> Column:
    """Why a row is dropped; null if it is not."""
    why = f.when(f.col(ts).isNull(), "without timestamp")
    why = why.when(f.col("__ts").isNull(), "with unreadable timestamp").when(f.col("__ts") < 0, "before 1970")
    for name in require:
        why = why.when(f.col(name).isNull(), f"without {name}")
    return why
