"""`prepare`: raw records into timestamp-sorted streams.

    judged (time, reason) -> those without a reason -> to partitions by stream -> equal records once -> numbered
                                                       the only shuffle          hashed, not sorted     sorted

All of it is one pass, and nothing runs before the rows are asked for. The numbers are left out by Spark where a query
does not look at `position`; then nothing is sorted either.
"""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, TypeVar

from pyspark.errors import PySparkException
from pyspark.sql import Observation
from pyspark.sql import functions as f
from pyspark.sql.window import Window

from pystream.data.raw_records import EARLY, FAR, MISSING, POSITION, STREAM, TS, TWICE, UNREADABLE, Rules, told
from pystream.errors import PystreamError
from pystream.spark.data.raw_keys import Keys, stream_number
from pystream.spark.data.raw_times import before_1970, beyond_9999, kind_of, time_of
from pystream.spark.error_causes import cause_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame

    T = TypeVar("T")

#: Columns on the way; those of the records are called c0, c1, ... meanwhile, whatever their names.
_TIME, _WHY, _COPIES = "time", "why", "copies"


class Prepared:
    """The streams, and what was left out on the way.

    `rows` is computed when it is used. `dropped` (reason -> number of rows) and `examples` (reason -> up to two of the
    rows, as JSON) take a pass over the records when one of them is first asked for.
    """

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps
        self._found: tuple[dict[str, int], dict[str, list[str]]] | None = None
        self.rows: DataFrame = steps.rows()

    @property
    def dropped(self) -> dict[str, int]:
        """Reason -> number of rows."""
        return self._report()[0]

    @property
    def examples(self) -> dict[str, list[str]]:
        """Reason -> up to two of the rows, as JSON: the least and the greatest as text."""
        return self._report()[1]

    def counting(self, action: Callable[[DataFrame], T]) -> T:
        """Run something that goes over all rows, and count on the way what is dropped: one pass instead of two.

        >>> raw = spark.createDataFrame([("2024-01-01T00:00:09Z", 1), ("2024-01-01T00:00:09Z", 1)], ["ts", "meter"])
        >>> prepared = prepare(raw, stream="meter")
        >>> prepared.counting(lambda rows: rows.count())
        1
        >>> prepared.dropped
        {'twice': 1}
        """
        bad, kept = Observation(), Observation()
        try:
            done = action(self._steps.rows(bad, kept))
        except PySparkException as error:
            raise PystreamError(cause_of(error)) from error
        self._found = self._steps.found(_seen(bad) or self._steps.counted(), kept.get)
        return done

    def _report(self) -> tuple[dict[str, int], dict[str, list[str]]]:
        if self._found is None:
            self.counting(lambda rows: rows.drop(POSITION).write.format("noop").mode("overwrite").save())
        assert self._found is not None  # noqa: S101 - counting has set it
        return self._found

    def __str__(self) -> str:
        return told(self.dropped)


def prepare(
    df: DataFrame,
    ts: str = TS,
    stream: str | Sequence[str] | None = None,
    streams: int = 4,
    format: str | None = None,
    require: Sequence[str] = (),
    *,
    unit: str | None = None,
    tz: str | None = None,
) -> Prepared:
    """Turn raw, unsorted records into streams: the same columns with `ts`, `stream` and `position`.

    `ts` names the column with the time, which keeps its resolution (Spark's: microseconds) and comes out as `ts`:

    - a timestamp stays one; one without a zone, or a date, becomes an instant if `tz` says where the clock hung;
    - text is ISO 8601, or in Spark's `format`. Without a zone in it `tz` is needed, or it is refused;
    - an integer counts what `unit` says since 1970 ("s", "ms", "us", "ns") and becomes a timestamp. Without `unit` it
      stays an integer of seconds; what cannot be one, such as milliseconds of today, is refused.

    `stream` names the column or columns whose values decide to which of `streams` streams a row goes; without it all
    columns of text, integers, booleans, dates and bytes do. Columns of your own that are called `stream`, `position` or
    `ts` are refused, not overwritten. Other columns stay as they are, nested ones too.

    Rows are dropped, and counted, when the time is missing or unreadable, before 1970 (the engine does not take those
    yet) or after the year 9999, when a column of `require` is null, or when the very same record came before: equal in
    every column before anything was converted. `position` numbers the rows of a stream by time, those with equal
    times by their contents, so the result does not depend on how `df` is partitioned.

    >>> raw = spark.createDataFrame([("2024-01-01T00:00:09.25Z", "x"), ("some day", "y")], ["time", "meter"])
    >>> prepared = prepare(raw, ts="time", stream="meter", streams=1)
    >>> print(prepared)
    1 rows dropped: 1 with unreadable timestamp
    >>> prepared.examples
    {'with unreadable timestamp': ['{"time":"some day","meter":"y"}']}
    >>> prepared.rows.columns
    ['ts', 'stream', 'position', 'meter']
    """
    if df.isStreaming:
        raise ValueError("prepare takes a batch DataFrame, such as the one that foreachBatch gives")
    by = (stream,) if isinstance(stream, str) else None if stream is None else tuple(stream)
    rules = Rules(ts, by or None, operator.index(streams), format, tuple(require), unit, tz)
    rules.check_names(df.columns)
    rules.check_time(kind_of(df.schema[ts].dataType), df.schema[ts].dataType.simpleString())
    return Prepared(_Steps(df, rules))


class _Steps:
    """The steps from records to rows."""

    def __init__(self, df: DataFrame, rules: Rules) -> None:
        self._rules = rules
        self._names = df.columns
        self._raw = df.toDF(*(f"c{i}" for i in range(len(self._names))))
        self._at = {name: f"c{i}" for i, name in enumerate(self._names)}
        self._kind = kind_of(df.schema[rules.ts].dataType)
        time = self._at[rules.ts]
        others = [field for field in self._raw.schema if field.name != time]
        self._keys = Keys(others if self._kind == "instant" else [self._raw.schema[time], *others])

    def rows(self, bad: Observation | None = None, kept: Observation | None = None) -> DataFrame:
        """The streams; `bad` and `kept` get what `found` needs, if they are given."""
        judged = self._judged()
        if bad is not None:
            judged = judged.observe(bad, *self._counts())
        good = judged.where(f.col(_WHY).isNull()).withColumn(STREAM, self._number())
        once = self._keys.once(good.repartition(STREAM), [STREAM, _TIME], _COPIES)
        if kept is not None:
            once = once.observe(kept, *_of_copies(self._record()))
        place = Window.partitionBy(STREAM).orderBy(_TIME, *self._keys.order())
        placed = once.withColumn(POSITION, f.row_number().over(place).cast("long") - 1)
        others = [f.col(self._at[n]).alias(n) for n in self._names if n != self._rules.ts]
        return placed.select(f.col(_TIME).alias(TS), STREAM, POSITION, *others)

    def _judged(self) -> DataFrame:
        """The records with their times, and why they are dropped: null if they are not."""
        rules, raw = self._rules, f.col(self._at[self._rules.ts])
        time = f.col(_TIME)
        blank = raw.isNull() | (f.trim(raw) == "") if self._kind == "text" else raw.isNull()
        why = f.when(blank, MISSING).when(time.isNull(), UNREADABLE)
        why = why.when(before_1970(time, self._kind, rules), EARLY).when(beyond_9999(raw, self._kind, rules), FAR)
        for name in rules.require:
            why = why.when(f.col(self._at[name]).isNull(), f"without {name}")
        return self._raw.withColumn(_TIME, time_of(raw, self._kind, rules)).withColumn(_WHY, why)

    def _number(self) -> Column:
        chosen = [self._at[n] for n in self._rules.stream or self._names if n != self._rules.ts or self._rules.stream]
        fields = [self._raw.schema[name] for name in chosen]
        return stream_number(fields, self._rules.streams, self._rules.stream)

    def _record(self) -> Column:
        """A record as JSON, under its own names. The time is what it was, or what it became if it was a timestamp."""
        own = {self._at[self._rules.ts]: _TIME} if self._kind == "instant" else {}
        columns = [f.col(own.get(c, c)).alias(n) for n, c in self._at.items()]
        return f.to_json(f.struct(*columns), {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"})

    # ---- what was dropped ----

    def _counts(self) -> list[Column]:
        counts = []
        for i, reason in enumerate(self._rules.reasons):
            this = f.col(_WHY) == reason
            counts.append(f.count_if(this).alias(f"n{i}"))
            counts += _ends(this, self._record(), str(i))
        return counts

    def counted(self) -> dict[str, Any]:
        """What an observation of the judged records would have seen."""
        return self._judged().agg(*self._counts()).collect()[0].asDict()

    def found(self, bad: dict[str, Any], kept: dict[str, Any]) -> tuple[dict[str, int], dict[str, list[str]]]:
        """The numbers and the examples, of what the observations saw."""
        reasons = dict(enumerate(self._rules.reasons))
        dropped = {why: bad[f"n{i}"] for i, why in reasons.items() if bad[f"n{i}"]}
        examples = {why: _examples(bad, str(i)) for i, why in reasons.items() if bad[f"n{i}"]}
        if kept["n"]:
            examples[TWICE] = _examples(kept, "")
        return dict(sorted(dropped.items())) | {TWICE: kept["n"] or 0}, examples


def _seen(observation: Observation) -> dict[str, Any] | None:
    """What was observed; None where no row was left and Spark, which noticed, dropped that part of its plan."""
    try:
        return observation.get
    except Exception:  # noqa: BLE001 - an assertion of Spark's, as an error of py4j's, which Connect does not have
        return None


def _of_copies(record: Column) -> list[Column]:
    copies = f.col(_COPIES) - 1
    return [f.sum(copies).alias("n"), *_ends(copies > 0, record, "")]


def _ends(chosen: Column, record: Column, mark: str) -> list[Column]:
    """The least and the greatest text: the same ones however the rows are partitioned."""
    text = f.when(chosen, record)
    return [f.min(text).alias(f"least{mark}"), f.max(text).alias(f"greatest{mark}")]


def _examples(seen: dict[str, Any], mark: str) -> list[str]:
    return sorted({seen[f"least{mark}"], seen[f"greatest{mark}"]})
