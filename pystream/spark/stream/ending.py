"""`finish`, which ends a streaming query for good and gives its last windows, and `progress`, which says how far it is.

`stop` of Spark interrupts whatever runs. What it leaves:

- between two micro-batches: everything of the last one is there;
- in a micro-batch: offsets/N says that it was begun, commits/N that it is done is missing. A restart runs it again
  with the same input. Whether the sink has its rows is known in one case only: not all of its states are saved, so it
  has not (Checkpoint.is_untold). Then the micro-batch counts as not read, and the windows of the states before it are
  exactly what the sink does not have. Otherwise the query has to run once more.

So a query that has to be stopped is stopped right after a micro-batch is done, when the next one has just begun.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from pystream.errors import PystreamError
from pystream.spark.error_causes import cause_of
from pystream.spark.files.listing import open_path
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.rows.spark_types import results, to_spark
from pystream.spark.stream.checkpoint import ENDED, Checkpoint, Progress
from pystream.spark.stream.shard import Shard
from pystream.spark.stream.state import Layout, Saved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from pystream.query import Query

    Batches = Iterator[pa.RecordBatch]

#: How the checkpoints are called that Spark makes itself, and deletes when the query stops.
TEMPORARY = "temporary-"

#: How long a running query may take to work off its input; and how long to end a micro-batch and to stop.
TIMEOUT_S = 60.0
STOP_S = 60.0

#: How often a running query is asked whether a micro-batch is done.
LOOK_S = 0.02


class UnreadInputWarning(UserWarning):
    """`finish` has ended a query whose source had more to give; the message says up to where it was read.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", UnreadInputWarning)  # where a source that never ends is the rule
    """


def finish(
    started: StreamingQuery | str,
    query: Query,
    spark: SparkSession | None = None,
    *,
    timeout: float = TIMEOUT_S,
    leave_unread: bool = False,
) -> DataFrame:
    """End a streaming aggregate for good: gives the windows that are still open, as a batch DataFrame.

    `started` is the query that `start()` gave, running or stopped, or the path of its checkpoint; `query` is what it
    aggregates. Then all streams count as ended: what the sink got and the rows given here are together the result of
    `ps.aggregate` over the rows that were read. `progress` says which these are, before and after.

    A running query works off what is available and is stopped. If its source keeps sending (Kafka, rate) for `timeout`
    seconds, it is stopped after a micro-batch, and an UnreadInputWarning says up to where the input was read.

    A query that has stopped and has not read everything is refused: a micro-batch was cut off, or there are files that
    nobody has read. Let it run once more (`trigger(availableNow=True)`), or end it all the same with
    `leave_unread=True`. Spark alone knows what else is in a source that is not a folder.

    Nothing is lost: as long as there is the checkpoint, calling finish again gives the same rows again. Nothing comes
    twice: a finished query cannot be started any more, Spark refuses with "ended by pystream.spark.finish"; a new query
    needs a new checkpointLocation. Do not write the rows into the folder of a file sink, whose log would hide them:

    >>> generate(spark, "EC", f"{folder}/readings", streams=2, tuples=1000)
    >>> query = ps.Query(ps.Window(3600), key=None, aggregates={"n": ps.count()})
    >>> windows = aggregate_new_files(spark, query, f"{folder}/readings", streams=2)
    >>> writer = windows.writeStream.format("parquet").option("path", f"{folder}/windows")
    >>> started = writer.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True).start()
    >>> finish(started, query).write.mode("overwrite").parquet(f"{folder}/rest")
    >>> spark.read.parquet(f"{folder}/windows", f"{folder}/rest").agg({"n": "sum"}).collect()
    [Row(sum(n)=1000)]
    """
    session, path = spark or session_of(started), checkpoint_of(started)
    runs = not isinstance(started, str) and started.isActive
    sent_on = runs and not _worked_off(started, timeout)  # type: ignore[arg-type] # it is no path
    checkpoint = Checkpoint(session, path)
    done = checkpoint.progress(beside=not runs)
    layout = _layout(checkpoint, query)
    if not done.ended:
        _check_read(checkpoint, done, leave=runs or leave_unread)
        _end(checkpoint, done)
        if sent_on or done.rest():
            warnings.warn(f"{path}: ended with unread input: {done}", UnreadInputWarning, stacklevel=2)
    return results(checkpoint.states(), _rest(layout), layout.query, layout.schema)


def progress(started: StreamingQuery | str, spark: SparkSession | None = None) -> Progress:
    """How far a streaming query has come: the last micro-batch that is done, and up to where it read its sources.

    `started` is a query or the path of its checkpoint; it may run, have stopped or be finished. The offsets are Spark's
    own, so a query over Kafka can go on from them as `startingOffsets` under a new checkpoint.

    >>> generate(spark, "EC", f"{folder}/some", streams=2, tuples=1000)
    >>> query = ps.Query(ps.Window(3600), key=None, aggregates={"n": ps.count()})
    >>> writer = aggregate_new_files(spark, query, f"{folder}/some").writeStream.format("noop")
    >>> started = writer.option("checkpointLocation", f"{folder}/done").trigger(availableNow=True).start()
    >>> started.awaitTermination()
    >>> print(progress(started))
    read up to micro-batch 0: [{"logOffset": 0}]
    """
    return Checkpoint(spark or session_of(started), checkpoint_of(started)).progress()


# ---- the query ----


def session_of(started: StreamingQuery | str) -> SparkSession:
    """The session of a query, whichever thread asks; for a path the one that there is."""
    inner: Any = started
    if hasattr(inner, "_session"):  # Spark Connect
        return inner._session  # type: ignore[no-any-return] # noqa: SLF001
    try:
        session = SparkSession.active()
    except PySparkException as error:
        raise PystreamError("there is no Spark session: give one with spark=") from error
    if isinstance(started, str):
        return session
    return SparkSession(session.sparkContext, inner._jsq.sparkSession())  # noqa: SLF001


def checkpoint_of(started: StreamingQuery | str) -> str:
    """Where a query has its checkpoint."""
    if isinstance(started, str):
        return started
    inner: Any = started
    path = _root(inner) if hasattr(inner, "_jsq") else _explained(inner)
    if path.rstrip("/").rpartition("/")[2].startswith(TEMPORARY):
        raise PystreamError("the query has no checkpointLocation, so what it holds is lost when it stops; give it one")
    return path


def _root(started: Any) -> str:
    return str(started._jsq.streamingQuery().resolvedCheckpointRoot())  # noqa: SLF001 - the progress does not tell


def _explained(started: Any) -> str:
    """The checkpoint out of the plan: a client of Spark Connect has no other way to it."""
    with contextlib.redirect_stdout(io.StringIO()) as text:
        started.explain()
    found = re.search(r"state info \[ checkpoint = (.+?)/state, runId", text.getvalue())
    if found is None:
        raise PystreamError("the query has not run a micro-batch yet; give the path of its checkpoint instead of it")
    return found[1]


def _worked_off(started: StreamingQuery, timeout: float) -> bool:
    """Let a query work off what is available, and stop it; False: its source kept sending for too long."""
    idle = _within(timeout, started.processAllAvailable)
    if not idle:
        _await_border(started)
    if not _within(STOP_S, started.stop):
        raise PystreamError(
            f"the query did not stop within {STOP_S:g} s, its sink may hang; it is not ended: call finish again once "
            "it has stopped"
        )
    return idle


def _within(seconds: float, call: Callable[[], object]) -> bool:
    """Whether a call of Spark's returns in time; Spark has no way to wait for these with a limit."""
    errors: list[Exception] = []

    def run() -> None:
        try:
            call()
        except Exception as error:  # noqa: BLE001 - raised below, in the thread that asked
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True, name="pystream-finish")
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    return not thread.is_alive()


def _await_border(started: StreamingQuery) -> None:
    """Wait until a micro-batch is done: what a stop cuts off then has just begun."""
    before, until = _batch(started), time.monotonic() + STOP_S
    while started.isActive and _batch(started) == before and time.monotonic() < until:
        time.sleep(LOOK_S)


def _batch(started: StreamingQuery) -> int:
    last = started.lastProgress
    return -1 if last is None else int(last["batchId"])


# ---- the checkpoint ----


def _layout(checkpoint: Checkpoint, query: Query) -> Layout:
    """What the states are of, if it is this query and all are there."""
    heads = checkpoint.states().select("layout", "shard").collect()
    if not heads:
        raise PystreamError(f"{checkpoint.path}: no row has come in here, so there is nothing to finish")
    layout = Layout.of(query, heads[0][0])
    if sorted(head[1] for head in heads) != sorted(shard_labels(layout.shards)):
        raise PystreamError(f"{checkpoint.path}: {len(heads)} of {layout.shards} shards are there")
    return layout


def _check_read(checkpoint: Checkpoint, done: Progress, *, leave: bool) -> None:
    """Refuse to end a query that has not read all its input, unless that is wanted."""
    again = "let the query run once more (availableNow) first"
    if done.cut_off is not None and not checkpoint.is_untold(done.cut_off):
        raise PystreamError(
            f"{checkpoint.path}: micro-batch {done.cut_off} was cut off when the sink may have got its rows already; "
            + again
        )
    if done.rest() and not leave:
        what = f"micro-batch {done.cut_off} was cut off" if done.cut_off is not None else "there is unread input"
        raise PystreamError(f"{checkpoint.path}: {what}; {again}, or leave it out with leave_unread=True: {done}")


def _end(checkpoint: Checkpoint, done: Progress) -> None:
    """Make sure that no query goes on from here: Spark reads the file `metadata` first and refuses what is no id."""
    why = "the last windows are given out: begin with a new checkpointLocation"
    text = json.dumps({"id": ENDED, "why": why, "micro_batch": done.micro_batch})
    try:
        if hasattr(checkpoint.spark, "_jsparkSession"):
            from pystream.spark.stream.hadoop_files import replace  # noqa: PLC0415 - not there with Connect alone

            replace(checkpoint.spark, checkpoint.path, "metadata", text)
        else:
            _replace_by_task(checkpoint, "metadata", text)
    except Exception as error:
        raise PystreamError(
            f"{checkpoint.path}: finish could not mark the checkpoint as ended: {cause_of(error)}; nothing has "
            "changed, call it again once that is mended"
        ) from error


def _replace_by_task(checkpoint: Checkpoint, name: str, text: str) -> None:
    """Put a file in the place of another, from an executor: a client of Spark Connect reaches no files itself."""
    path = checkpoint.path

    def replace(_: Batches) -> Batches:
        files, folder = open_path(path, None)
        hidden, file, checksum = (f"{folder}/{n}" for n in (f".{name}.ended.tmp", name, f".{name}.crc"))
        with files.open_output_stream(hidden) as out:
            out.write(text.encode())
        if files.get_file_info(checksum).is_file:  # of the old content, which Hadoop would compare with the new one
            files.delete_file(checksum)
        files.move(hidden, file)
        yield pa.RecordBatch.from_pydict({"done": [True]})

    checkpoint.spark.range(0, 1, 1, 1).mapInArrow(replace, "done boolean").collect()


def _rest(layout: Layout) -> Callable[[Batches], Batches]:
    def rest(batches: Batches) -> Batches:
        for batch in batches:
            for state in batch.to_pylist():
                number = shard_labels(layout.shards).index(state.pop("shard"))
                yield from map(to_spark, Shard(layout, number, Saved.of_state(layout, number, **state)).finish())

    return rest
