"""A pipeline in this process: prepared with Arrow and NumPy, aggregated by the core."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

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
    with Intake(checkpoint, "local") as intake:
        return _next(pipeline, intake, _State(pipeline, checkpoint))


def _next(pipeline: Pipeline, intake: Intake, state: _State) -> Summary:
    summary = Summary()
    summary.rows += state.deliver()
    if state.finished:
        return summary
    for number, files in intake.batches(raw_paths(pipeline.paths), state.taken):
        made = _prepared(pipeline, files, summary, intake)
        summary.late += state.take(made.streams)
        state.emit(number)
        summary.rows += state.deliver()
    if pipeline.finish:
        state.finish()
        summary.rows += state.deliver()
    return summary


class _Rows(NamedTuple):
    """Rows of a batch that are out of the operator, and that the sink may not have yet."""

    batch: int
    table: pa.Table


class _State:
    """The operator between two runs.

    Its file is a line of JSON, the rows that are to be delivered, and the operator's snapshot. Rows are stored before
    the sink gets them: after a kill it gets the very same ones again, under the same number. That it has them is stored
    afterwards. How many windows a batch finishes is a matter of how fast the operator's threads are; this is not.
    """

    def __init__(self, pipeline: Pipeline, checkpoint: Path) -> None:
        self._pipeline = pipeline
        self._file = checkpoint / "local.state"
        self.taken = 0
        self.finished = False
        self._latest: list[int | None] = [None] * pipeline.rules.streams
        self._op: ps.Operator | None = None
        self._rows: _Rows | None = None
        if self._file.exists():
            self._restore(*self._file.read_bytes().split(b"\n", maxsplit=1))

    def _restore(self, about: bytes, rest: bytes) -> None:
        found = json.loads(about)
        self.finished = found["finished"]
        if self.finished and found.get("rows") is None:
            raise PystreamError(f"{self._file.parent}: this stream was finished; a new one needs another checkpoint")
        if found["streams"] != len(self._latest):
            raise PystreamError(f"{self._file.parent}: the stream was begun with streams = {found['streams']}")
        self.taken, self._latest = found["taken"], found["latest"]
        if found.get("rows") is not None:
            batch, size = found["rows"]
            self._rows = _Rows(batch, pa.ipc.open_stream(rest[:size]).read_all())
            rest = rest[size:]
        if not self.finished:
            self._op = ps.Operator.restore(self._pipeline.query, rest, max_pending=_PENDING)

    # ---- rows in ----

    def take(self, streams: Sequence[pa.Table]) -> int:
        """Feed the rows; gives the number of those that were late and dropped."""
        if self._op is None:
            self._op = ps.Operator(self._pipeline.query, len(streams), streams[0].schema, max_pending=_PENDING)
        late, frontier = 0, self._frontier
        for i, stream in enumerate(streams):
            if not stream.num_rows:
                continue
            latest = self._latest[i]
            bound = frontier if latest is None else max(frontier, latest)
            rows = stream if self._pipeline.late == "error" else _in_time(stream, bound)
            late += stream.num_rows - rows.num_rows
            if rows.num_rows:
                self._op.add(i, rows)
            self._latest[i] = max(bound, stream[TS].cast(pa.int64())[-1].as_py())
        return late

    @property
    def _frontier(self) -> int:
        """No stream brings rows below it any more. Streams that have had no row yet are not waited for."""
        return min((latest for latest in self._latest if latest is not None), default=-1)

    def emit(self, batch: int) -> None:
        """Take what is finished out of the operator. From here on the batch counts as taken."""
        op, frontier = self._op, self._frontier
        assert op is not None  # noqa: S101 - rows were taken
        if frontier >= 0:
            for i, latest in enumerate(self._latest):
                op.heartbeat(i, frontier if latest is None else latest)
            parts = []
            while (rows := op.read(timeout=WAIT_S)) is not None and rows.num_rows:
                parts += rows.to_batches()
            self._rows = _Rows(batch, pa.Table.from_batches(parts, op.schema))
        self.taken = batch + 1
        self._save()

    def finish(self) -> None:
        """End the stream: what is open comes out."""
        if self._op is None:
            raise PystreamError(f"{self._file.parent}: no row has come in here, so there is nothing to finish")
        for i in range(len(self._latest)):
            self._op.close(i)
        parts: list[pa.RecordBatch] = []
        while (rows := self._op.read()) is not None:
            parts += rows.to_batches()
        self._rows = _Rows(REST, pa.Table.from_batches(parts, self._op.schema))
        self.finished = True
        self._save()

    # ---- rows out ----

    def deliver(self) -> int:
        """Give the sink the rows that it may not have yet; gives their number."""
        if self._rows is None:
            return 0
        batch, table = self._rows
        out = self._pipeline.out
        written = _written(self._pipeline, batch, table.schema, table.to_batches(), out and part_of(out, batch))
        self._rows = None
        self._save()
        return written

    def _save(self) -> None:
        rows, snapshot = b"", b""
        if self._rows is not None:
            rows = _stored(self._rows.table)
        if self._op is not None and not self.finished:
            snapshot = self._op.snapshot()
        about = {
            "taken": self.taken,
            "latest": self._latest,
            "streams": len(self._latest),
            "finished": self.finished,
            "rows": None if self._rows is None else (self._rows.batch, len(rows)),
        }
        write_whole(self._file, json.dumps(about).encode() + b"\n" + rows + snapshot)


def _in_time(stream: pa.Table, bound: int) -> pa.Table:
    return stream.filter(pc.greater_equal(stream[TS].cast(pa.int64()), bound))


def _stored(table: pa.Table) -> bytes:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, table.schema) as writer:
        writer.write_table(table)
    return bytes(out.getvalue().to_pybytes())
