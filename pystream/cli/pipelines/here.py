"""A pipeline in this process: prepared with Arrow and NumPy, aggregated by the core."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

import pystream as ps
from pystream.aggregation import results
from pystream.cli.console import progress
from pystream.cli.pipelines.intake import Intake
from pystream.cli.pipelines.sinks import REST, part_of, user_function, write_file
from pystream.cli.pipelines.summary import Summary
from pystream.data.local_prepare import prepare_table
from pystream.data.raw_files import open_raw, raw_paths
from pystream.data.raw_records import TS
from pystream.errors import PystreamError
from pystream.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pystream.cli.pipelines.described import Pipeline
    from pystream.data.local_prepare import LocalPrepared

#: How long to wait for the threads to finish more rows. What comes later is in the snapshot, and out with the next run.
WAIT_S = 0.05

#: Rows that an input may hold: what is in memory already.
_PENDING = 1 << 30


def run_here(pipeline: Pipeline) -> Summary:
    """Run it: all files at once, or those that are new."""
    return _all(pipeline) if pipeline.checkpoint is None else _new(pipeline, pipeline.checkpoint)


def _all(pipeline: Pipeline) -> Summary:
    summary = Summary()
    made = _prepared(pipeline, pipeline.paths, summary)
    with (
        progress(f"{pipeline.name}: aggregate", None),
        results(pipeline.query, made.streams, "auto", None, _PENDING) as (schema, batches),
    ):
        summary.rows = _written(pipeline, 0, schema, batches, pipeline.out)
    return summary


def _prepared(
    pipeline: Pipeline, paths: Sequence[str], summary: Summary, intake: Intake | None = None
) -> LocalPrepared:
    with progress(f"{pipeline.name}: prepare", None):
        types = pipeline.types if intake is None else intake.types(pipeline.types)
        raw = open_raw(paths, pipeline.rules.ts, pipeline.format, types)
        table = raw.table()
        made = prepare_table(table, pipeline.rules)
    if intake is not None:
        intake.keep_types(raw.schema)
    summary.add(len(raw.files), table.num_rows, made.dropped, made.examples)
    return made


def _written(
    pipeline: Pipeline, batch: int, schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: Path | None
) -> int:
    if out is not None:
        return write_file(out, schema, batches)
    table = pa.Table.from_batches(batches, schema)
    user_function(pipeline)(table, batch)
    return int(table.num_rows)


# ---- a stream of files ----


def _new(pipeline: Pipeline, checkpoint: Path) -> Summary:
    summary = Summary()
    intake, state = Intake(checkpoint), _State(pipeline, checkpoint)
    for number, files in intake.batches(raw_paths(pipeline.paths), state.taken):
        made = _prepared(pipeline, files, summary, intake)
        summary.late += state.take(made.streams)
        summary.rows += state.emit(number)
        state.save(number + 1)
    if pipeline.finish:
        summary.rows += state.finish()
    return summary


class _State:
    """The operator between two runs: its snapshot, after a line of JSON about it."""

    def __init__(self, pipeline: Pipeline, checkpoint: Path) -> None:
        self._pipeline = pipeline
        self._file = checkpoint / "local.state"
        self.taken = 0
        self._latest: list[int | None] = [None] * pipeline.rules.streams
        self._op: ps.Operator | None = None
        if self._file.exists():
            self._restore(*self._file.read_bytes().split(b"\n", maxsplit=1))

    def _restore(self, about: bytes, snapshot: bytes) -> None:
        found = json.loads(about)
        if found["finished"]:
            raise PystreamError(f"{self._file.parent}: this stream was finished; a new one needs another checkpoint")
        if found["streams"] != len(self._latest):
            raise PystreamError(f"{self._file.parent}: the stream was begun with streams = {found['streams']}")
        self.taken, self._latest = found["taken"], found["latest"]
        self._op = ps.Operator.restore(self._pipeline.query, snapshot, max_pending=_PENDING)

    def take(self, streams: Sequence[pa.Table]) -> int:
        """Feed the rows; gives the number of those that were late and dropped."""
        if self._op is None:
            self._op = ps.Operator(self._pipeline.query, len(streams), streams[0].schema, max_pending=_PENDING)
        late = 0
        for i, stream in enumerate(streams):
            rows = stream if self._pipeline.late == "error" else self._in_time(stream, self._latest[i])
            late += stream.num_rows - rows.num_rows
            if rows.num_rows:
                self._op.add(i, rows)
                self._latest[i] = rows[TS].cast(pa.int64())[-1].as_py()
        return late

    def _in_time(self, stream: pa.Table, latest: int | None) -> pa.Table:
        return stream if latest is None else stream.filter(pc.greater_equal(stream[TS].cast(pa.int64()), latest))

    def emit(self, batch: int) -> int:
        """Write what is finished. Streams that have had no row yet are not waited for."""
        known = [latest for latest in self._latest if latest is not None]
        if self._op is None or not known:
            return 0
        for i, latest in enumerate(self._latest):
            if latest is None:
                self._op.heartbeat(i, min(known))
        parts = []
        while (rows := self._op.read(timeout=WAIT_S)) is not None and rows.num_rows:
            parts += rows.to_batches()
        return self._write(batch, parts)

    def _write(self, batch: int, parts: list[pa.RecordBatch]) -> int:
        """Write a part, also an empty one: a run that was killed may have left another in its place."""
        out, op = self._pipeline.out, self._op
        assert op is not None  # noqa: S101 - there are no rows without one
        return _written(self._pipeline, batch, op.schema, parts, out and part_of(out, batch))

    def save(self, taken: int, *, finished: bool = False) -> None:
        """Store the operator: from here on the batch counts as taken."""
        about = {"taken": taken, "latest": self._latest, "streams": len(self._latest), "finished": finished}
        snapshot = b"" if self._op is None or finished else self._op.snapshot()
        self.taken = taken
        write_whole(self._file, json.dumps(about).encode() + b"\n" + snapshot)

    def finish(self) -> int:
        """End the stream: what is open comes out."""
        if self._op is None:
            raise PystreamError(f"{self._file.parent}: no row has come in here, so there is nothing to finish")
        for i in range(len(self._latest)):
            self._op.close(i)
        parts: list[pa.RecordBatch] = []
        while (rows := self._op.read()) is not None:
            parts += rows.to_batches()
        written = self._write(REST, parts)
        self.save(self.taken, finished=True)
        return written
