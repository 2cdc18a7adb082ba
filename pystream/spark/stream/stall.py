"""`explain_stall` for streaming queries: which streams hold windows back, and since when."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pystream.errors import PystreamError
from pystream.partials import seals
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.stream.checkpoint import Checkpoint
from pystream.spark.stream.ending import session_of
from pystream.spark.stream.state import BODY, described
from pystream.spark.stream.streams import Streams
from pystream.spark.stream.table_bytes import table_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


@dataclass(frozen=True)
class Silent:
    """A stream that windows wait for.

    >>> print(Silent(3, 40, "2026-11-18T12:00:00+00:00"))
    stream 3 is at 40, silent since 2026-11-18T12:00:00+00:00
    """

    stream: int
    #: Its latest timestamp in ticks, or what was promised for it; None: it has sent nothing.
    at: int | None
    #: The time of the micro-batch with its last rows, of the first one if there are none; None: not known.
    since: str | None

    def __str__(self) -> str:
        where = "has sent nothing" if self.at is None else f"is at {self.at}"
        return f"stream {self.stream} {where}" + ("" if self.since is None else f", silent since {self.since}")


@dataclass(frozen=True)
class StreamStall:
    """What `explain_stall` found: windows that other streams have passed wait for these.

    >>> from pystream.spark.stream.stall import Silent
    >>> print(StreamStall((Silent(3, None, None),), frontier=-1, latest=900))
    stream 3 has sent nothing; rows up to 900 are there, windows up to -1 are finished. What releases them: rows of \
it, Orders.promise or Orders.let_go
    """

    #: Those that are furthest behind first, ten at most.
    streams: tuple[Silent, ...]
    #: Windows up to here are finished; -1: none.
    frontier: int
    #: The greatest timestamp of all rows.
    latest: int

    def __str__(self) -> str:
        state = f"rows up to {self.latest} are there, windows up to {self.frontier} are finished"
        them = "it" if len(self.streams) == 1 else "them"
        release = f"What releases them: rows of {them}, Orders.promise or Orders.let_go"
        return f"{'; '.join(map(str, self.streams))}; {state}. {release}"


def explain_stall(
    started: StreamingQuery | Mapping[str, Any] | str, spark: SparkSession | None = None, *, metrics: str = "pystream"
) -> StreamStall | None:
    """Which streams a streaming aggregate waits for: None if no window does.

    `started` is the running query, one of its progresses (as a listener gets them) or the path of its checkpoint;
    `metrics` the name that `aggregate` was given. It tells the state after the last micro-batch.

    >>> generate(spark, "EC", f"{folder}/two-of-three", streams=2, tuples=1000, span_s=3600)
    >>> query = ps.Query(ps.Window(60), key=None, aggregates={"n": ps.count()})
    >>> writer = aggregate_new_files(spark, query, f"{folder}/two-of-three", streams=3).writeStream.format("noop")
    >>> started = writer.option("checkpointLocation", f"{folder}/waits").trigger(availableNow=True).start()
    >>> started.awaitTermination()
    >>> stall = explain_stall(started)
    >>> [(one.stream, one.at) for one in stall.streams], stall.frontier
    ([(2, None)], -1)
    """
    if isinstance(started, str):
        return _of_checkpoint(Checkpoint(spark or session_of(started), started))
    query: Any = started
    every = query.recentProgress if hasattr(query, "recentProgress") else [query]
    for progress in reversed(every):
        found = progress["observedMetrics"].get(metrics)
        if found is not None:
            told = _by_name(found)
            return _stall(json.loads(told["holding"] or "[]"), told["frontier"], told["latest"])
    if not any(progress["observedMetrics"] for progress in every):
        return None  # no micro-batch had rows yet
    raise PystreamError(
        f"the progress has no metrics of the name {metrics!r}; aggregate was given another with metrics="
    )


def _by_name(row: Any) -> dict[str, Any]:
    """The metrics; a client of Spark Connect gets names and values apart."""
    told: dict[str, Any] = row if isinstance(row, dict) else row.asDict()
    if set(told) == {"values", "schema"}:
        return dict(zip([one["name"] for one in told["schema"]["fields"]], told["values"], strict=True))
    return told


def _of_checkpoint(checkpoint: Checkpoint) -> StreamStall | None:
    """The same out of the state of a shard: all know it."""
    row = checkpoint.states().first()
    if row is None:
        return None
    told = described(row["layout"])
    shard = shard_labels(told["shards"]).index(row["shard"])
    seal, data = seals.opened(bytes(row["body"]), seals.STATE, shard, also=row["layout"].encode())
    saved = table_of(seals.STATE, seal, data, BODY).to_pylist()[0]
    streams = Streams.of_text(saved["latest"], shard, saved["frontier"])
    size, advance = told["window"]
    return _stall(streams.holding(size, advance), streams.frontier, streams.foremost)


def _stall(holding: list[dict[str, Any]], frontier: int, latest: int) -> StreamStall | None:
    silent = tuple(Silent(one["stream"], one["at"], _time(one["since_ms"])) for one in holding)
    return StreamStall(silent, frontier, latest) if silent else None


def _time(ms: int | None) -> str | None:
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC).isoformat()
