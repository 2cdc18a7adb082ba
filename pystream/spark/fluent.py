"""`window_aggregate`: a query as a step of a chain of DataFrames, `df.transform(window_aggregate(...))`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from pystream.query import Query, Window
from pystream.spark.dataframes import aggregate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import timedelta

    from pyspark.sql import DataFrame

    from pystream.functions import Aggregate

#: The stream of all rows where no column names one.
ONE = "__stream"

#: Spark's words for units of time, and ours.
UNITS = {"day": "d", "hour": "h", "minute": "m", "second": "s", "millisecond": "ms", "microsecond": "us"}


def window_aggregate(
    window: Query | Window | int | str | timedelta,
    every: int | str | timedelta | None = None,
    *,
    key: str | Sequence[str] | None = None,
    aggregates: Mapping[str, Aggregate] | None = None,
    ts: str = "ts",
    stream: str | None = None,
    position: str | None = None,
    streams: int | Sequence[int] | None = None,
    late: str = "error",
    shards: int | None = None,
    metrics: str = "pystream",
) -> Callable[[DataFrame], DataFrame]:
    """Make a step for `DataFrame.transform`: one row per window and key comes out, with the window's start as `ts`.

    The window is said as Spark's `window()` has it, size and slide ("1 hour", "15 minutes"; also "1h", a timedelta, or
    a number in the unit of an integer column `ts`), or it is a `ps.Window`; `key` names the columns to group by.
    Instead of all these, a `ps.Query` may be given. `stream` names the column that says which input a row belongs to;
    without it all rows are one stream. The rest is that of `aggregate`.

    What comes out is a DataFrame like any other: it can be joined, cached, written and used in SQL. A chain that begins
    with `readStream` stays a stream.

    >>> rows = [("2024-01-01 00:05:00", "a", 1.0), ("2024-01-01 00:50:00", "a", 4.0), ("2024-01-01 01:10:00", "b", 2.0)]
    >>> readings = spark.createDataFrame(rows, "time string, meter string, cons double")
    >>> readings = readings.withColumn("time", readings.time.cast("timestamp_ntz"))
    >>> hourly = window_aggregate("1 hour", key="meter", aggregates={"mean": ps.mean("cons")}, ts="time")
    >>> readings.transform(hourly).where("mean > 2").show()
    +-------------------+-----+----+
    |                 ts|meter|mean|
    +-------------------+-----+----+
    |2024-01-01 00:00:00|    a| 2.5|
    +-------------------+-----+----+
    <BLANKLINE>
    """
    query = window if isinstance(window, Query) else _query(window, every, key, aggregates, ts)
    if query is window and (every, key, aggregates, ts) != (None, None, None, "ts"):
        raise ValueError("a Query says window, key, aggregates and ts itself: leave out every=, key=, aggregates=, ts=")

    def step(df: DataFrame) -> DataFrame:
        rows = df if stream is not None else df.withColumn(ONE, f.lit(0))
        return aggregate(
            rows, query, stream or ONE, position, streams=streams, late=late, shards=shards, metrics=metrics
        )

    return step


def _query(
    window: Window | int | str | timedelta,
    every: int | str | timedelta | None,
    key: str | Sequence[str] | None,
    aggregates: Mapping[str, Aggregate] | None,
    ts: str,
) -> Query:
    if aggregates is None:
        raise TypeError("say what to compute: aggregates={'mean': ps.mean('cons')}")
    if not isinstance(window, Window):
        return Query(Window(_ours(window), None if every is None else _ours(every)), key, aggregates, ts)
    if every is not None:
        raise ValueError("a Window has its advance: leave out every=")
    return Query(window, key, aggregates, ts)


def _ours(duration: int | str | timedelta) -> int | str | timedelta:
    """A duration as `ps.Window` takes it: "15 minutes" is "15m" there."""
    found = re.fullmatch(r"\s*(\d+)\s*([a-z]+?)s?\s*", duration) if isinstance(duration, str) else None
    return f"{found[1]}{UNITS[found[2]]}" if found and found[2] in UNITS else duration
