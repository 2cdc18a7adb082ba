"""What the executors do for a streaming aggregate; knows Arrow and nothing of Spark.

    rows of a partition --pack--> one parcel per shard --Spark's shuffle--> Shard.step --> parcels of rows --unpack-->

Rows travel in parcels of Arrow bytes, so neither the shuffle nor pandas sees single rows, and every value arrives as
the bits that it was. A key belongs to one shard; a shard sees only its own rows, but the marks of all: with every
micro-batch each partition tells each shard the least and the greatest timestamp it has of every stream.

So all shards know the streams' latest timestamps and with them the frontier, the least of the latest. Rows below it go
into the windows, in the order (ts, stream, position); rows at it or above wait, because a later micro-batch may bring
rows that come before them. Windows that end at the frontier or below are finished. All of this follows from the rows
of the micro-batches alone: a micro-batch that is run again gives the same rows and the same state.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pystream import snapshot
from pystream.errors import DisorderError, PystreamError, SchemaError
from pystream.operator import Operator
from pystream.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pystream.query import Query

#: The design of the shards' operators: its output thread takes one step per ready run, and its snapshots hold windows.
DESIGN = "runs"

#: Held rows of a partition beyond which parcels are sent off.
PARCEL_BYTES = 1 << 25

#: Rows given to an operator at a time, and how long to wait for room before reading its output, which may need it.
SLICE_ROWS = 1 << 16
WAIT_S = 0.05

#: The form of parcels and states; a checkpoint of another one is refused.
FORMAT = 1

#: What is told of every micro-batch: rows that came, came too late, left and wait; the latest timestamp; the frontier.
COUNTS = ("rows_in", "rows_late", "rows_out", "rows_pending", "latest", "frontier")

SHARD = "__shard"
PARCELS = pa.schema([("shard", pa.int32()), ("rows", pa.binary()), ("marks", pa.binary())])


@dataclass(frozen=True)
class Layout:
    """What all shards of a streaming aggregate have in common."""

    query: Query
    schema: pa.Schema
    stream: str
    position: str | None  # None: the order of equal timestamps shows nowhere
    shards: int
    streams: tuple[int, ...] | None = None
    drop_late: bool = False

    @classmethod
    def of(cls, query: Query, schema: bytes, description: str) -> Layout:
        """The layout of a saved state, if it is that of this query."""
        saved = json.loads(description)
        layout = cls(
            query, pa.ipc.read_schema(pa.py_buffer(schema)), saved["stream"], saved["position"], saved["shards"]
        )
        check_layout(description, layout.describe())
        return layout

    @property
    def order(self) -> list[str]:
        """The columns to sort by."""
        return [self.query.ts] if self.position is None else [self.query.ts, self.stream, self.position]

    def describe(self) -> str:
        """Everything that a checkpoint depends on, as JSON."""
        window = Plan(self.query, self.schema).window
        return json.dumps(
            {
                "format": FORMAT,
                **snapshot.describe(self.query, window),
                "columns": [f"{f.name}: {f.type}" for f in self.schema],
                "stream": self.stream,
                "position": self.position,
                "shards": self.shards,
            }
        )


class Saved(NamedTuple):
    """The state of a shard between two micro-batches."""

    layout: str  # Layout.describe() of who wrote it
    schema: bytes  # of the rows
    windows: bytes  # the operator's snapshot; empty: there is none yet
    pending: bytes  # rows that are not in the windows yet
    latest: str  # JSON: pairs of stream and its latest timestamp
    frontier: int  # rows below it are in the windows; -1: none yet
    rows_late: int  # dropped so far


class Step(NamedTuple):
    """What a micro-batch did to a shard."""

    saved: Saved
    rows: list[pa.RecordBatch]
    counts: dict[str, int]  # COUNTS


# ---- parcels ----


def to_bytes(table: pa.Table | pa.RecordBatch) -> bytes:
    """Arrow's stream format."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write(table)
    result: bytes = sink.getvalue().to_pybytes()
    return result


def from_bytes(blob: bytes) -> pa.Table:
    """The table of `to_bytes`."""
    with pa.ipc.open_stream(blob) as reader:
        return reader.read_all()


def pack(layout: Layout, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sort the rows of a partition by shard, each shard's into a parcel; the last one of each carries the marks."""
    held: dict[int, list[pa.RecordBatch]] = {}
    marks, size = [], 0
    for batch in batches:
        if batch.num_rows:
            rows = _checked(layout, batch)
            marks.append(_marks(layout, rows))
            for shard, part in _split(rows, batch.column(SHARD), layout.shards):
                held.setdefault(shard, []).append(part)
            size += rows.nbytes
        if size > PARCEL_BYTES:
            yield _parcels(held, sorted(held), None)
            held, size = {}, 0
    if marks:
        yield _parcels(held, range(layout.shards), to_bytes(_merged(marks)))


def unpack(parcels: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of parcels in the first column."""
    for batch in parcels:
        for parcel in batch.column(0).drop_null():
            yield from from_bytes(parcel.as_buffer()).to_batches()


def _parcels(held: dict[int, list[pa.RecordBatch]], shards: Iterable[int], marks: bytes | None) -> pa.RecordBatch:
    numbers = list(shards)
    rows = [to_bytes(pa.Table.from_batches(held[n]).combine_chunks()) if n in held else None for n in numbers]
    columns = [pa.array(numbers, pa.int32()), pa.array(rows, pa.binary()), pa.array([marks] * len(rows), pa.binary())]
    return pa.RecordBatch.from_arrays(columns, schema=PARCELS)


def _checked(layout: Layout, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows in the types that the shards expect (Spark's batches differ in the name of the time zone)."""
    rows = batch.select(layout.schema.names).cast(layout.schema)
    for name in {layout.query.ts, layout.stream, *layout.order}:
        if rows.column(name).null_count:
            raise SchemaError(f"column {name!r} is null in some row; the order of rows depends on it")
    return rows


def _ticks(layout: Layout, rows: pa.RecordBatch | pa.Table) -> Any:
    return rows.column(layout.query.ts).cast(pa.int64())


def _marks(layout: Layout, rows: pa.RecordBatch) -> pa.Table:
    """Of every stream the least and the greatest timestamp."""
    table = pa.table({"stream": rows.column(layout.stream).cast(pa.int64()), "ts": _ticks(layout, rows)})
    marks = table.group_by("stream", use_threads=False).aggregate([("ts", "min"), ("ts", "max")])
    for stream, least in zip(marks["stream"].to_pylist(), marks["ts_min"].to_pylist(), strict=True):
        if least < 0:
            raise DisorderError(
                f"stream {stream}: timestamp {least} is negative", input=stream, row=None, ts=least, latest=-1
            )
    return marks.select(["stream", "ts_min", "ts_max"])


def _merged(marks: list[pa.Table]) -> pa.Table:
    table = pa.concat_tables(marks).group_by("stream", use_threads=False)
    return table.aggregate([("ts_min", "min"), ("ts_max", "max")]).rename_columns(["stream", "ts_min", "ts_max"])


def _split(rows: pa.RecordBatch, shard: pa.Array, shards: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    numbers = np.asarray(shard)
    order = np.argsort(numbers, kind="stable")
    grouped = rows.take(pa.array(order))
    edges = np.searchsorted(numbers[order], np.arange(shards + 1))
    for n in range(shards):
        if edges[n + 1] > edges[n]:
            yield n, grouped.slice(edges[n], edges[n + 1] - edges[n])


# ---- a shard ----


class Shard:
    """One shard in one micro-batch: its state before, and what the rows do to it."""

    def __init__(self, layout: Layout, saved: Saved | None) -> None:
        self.layout = layout
        self.description = layout.describe()
        if saved is None:
            saved = Saved(self.description, layout.schema.serialize().to_pybytes(), b"", b"", "[]", -1, 0)
        check_layout(saved.layout, self.description)
        self.saved = saved
        self.latest: dict[int, int] = dict(json.loads(saved.latest))

    def step(self, parcels: Iterable[bytes], marks: Iterable[bytes]) -> Step:
        """Take a micro-batch: its parcels, and the marks of all its partitions."""
        tables = [from_bytes(parcel) for parcel in parcels]
        extremes = _merged([from_bytes(mark) for mark in marks])
        rows_in = _rows(tables)
        tables = self._in_time(tables, extremes)
        late = rows_in - _rows(tables)
        for stream, greatest in zip(extremes["stream"].to_pylist(), extremes["ts_max"].to_pylist(), strict=True):
            self.latest[stream] = max(greatest, self._bound(stream))
        tables += [from_bytes(self.saved.pending)] if self.saved.pending else []
        frontier = self._frontier()
        out, windows, waiting = self._advance(_joined(self.layout, tables), frontier)
        saved = self.saved._replace(
            windows=windows,
            pending=to_bytes(waiting.combine_chunks()) if waiting.num_rows else b"",
            latest=json.dumps(sorted(self.latest.items())),
            frontier=frontier,
            rows_late=self.saved.rows_late + late,
        )
        numbers = rows_in, late, _rows(out), waiting.num_rows, max(self.latest.values()), frontier
        return Step(saved, out, dict(zip(COUNTS, numbers, strict=True)))

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The windows that are still open, as if all streams ended here."""
        pending = [from_bytes(self.saved.pending)] if self.saved.pending else []
        if not pending and not self.saved.windows:
            return
        with self._operator() as op:
            for table in pending:
                yield from _feed(op, _in_order(self.layout, table))
            op.close(0)
            yield from op

    # ---- lateness ----

    def _bound(self, stream: int) -> int:
        """What a stream may not fall below."""
        return self.latest.get(stream, self.saved.frontier)

    def _in_time(self, tables: list[pa.Table], extremes: pa.Table) -> list[pa.Table]:
        """The rows that do not come too late; an error if there are others and they may not be dropped."""
        declared = self.layout.streams
        for stream, least in sorted(zip(extremes["stream"].to_pylist(), extremes["ts_min"].to_pylist(), strict=True)):
            if declared is not None and stream not in declared:
                raise PystreamError(f"stream {stream} is not one of the declared: {', '.join(map(str, declared))}")
            if least < self._bound(stream):
                if not self.layout.drop_late:
                    raise self._disorder(stream, least)
                tables = [self._without_late(table, stream) for table in tables]
        return tables

    def _without_late(self, table: pa.Table, stream: int) -> pa.Table:
        others = pc.not_equal(table[self.layout.stream], stream)
        return table.filter(pc.or_(others, pc.greater_equal(_ticks(self.layout, table), self._bound(stream))))

    def _disorder(self, stream: int, ts: int) -> DisorderError:
        bound = self._bound(stream)
        if stream in self.latest:
            why = f"is below {bound}, the latest timestamp of this stream in an earlier micro-batch"
        else:
            why = f"is below {bound}, up to where windows were finished before this stream appeared: declare `streams`"
        return DisorderError(f"stream {stream}: timestamp {ts} {why}", input=stream, row=None, ts=ts, latest=bound)

    def _frontier(self) -> int:
        """No stream that counts can bring a row below it any more."""
        streams = self.latest if self.layout.streams is None else self.layout.streams
        return max(self.saved.frontier, min(map(self._bound, streams), default=-1))

    # ---- windows ----

    def _advance(self, rows: pa.Table, frontier: int) -> tuple[list[pa.RecordBatch], bytes, pa.Table]:
        """Put the rows below the frontier into the windows: the finished ones, the others, the rows that are left."""
        if frontier <= self.saved.frontier:
            return [], self.saved.windows, rows
        ready = pc.less(_ticks(self.layout, rows), frontier)
        with self._operator() as op:
            out = list(_feed(op, _in_order(self.layout, rows.filter(ready))))
            op.heartbeat(0, frontier)
            rest, windows = _settle(op, frontier)
        return out + rest, windows, rows.filter(pc.invert(ready))

    def _operator(self) -> Operator:
        if self.saved.windows:
            return Operator.restore(self.layout.query, self.saved.windows, DESIGN)
        return Operator(self.layout.query, 1, self.layout.schema, DESIGN)


def check_layout(saved: str, own: str) -> None:
    """Refuse the state of another query."""
    if saved == own:
        return
    before, now = json.loads(saved), json.loads(own)
    for name, value in now.items():
        if before.get(name) != value:
            raise PystreamError(f"the checkpoint is of another query: {name} was {before.get(name)!r}, is {value!r}")
    raise PystreamError("the checkpoint is of another query")


def _rows(tables: Iterable[pa.Table | pa.RecordBatch]) -> int:
    return sum(table.num_rows for table in tables)


def _joined(layout: Layout, tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables) if tables else layout.schema.empty_table()


def _feed(op: Operator, table: pa.Table) -> Iterator[pa.RecordBatch]:
    """Add rows; the one thread that feeds the operator must read it as well, or both sides could wait for ever."""
    for batch in table.combine_chunks().to_batches(SLICE_ROWS):
        while True:
            try:
                op.add(0, batch, timeout=WAIT_S)
            except TimeoutError:
                yield from op.poll()
            else:
                break


def _settle(op: Operator, frontier: int) -> tuple[list[pa.RecordBatch], bytes]:
    """Wait until all rows are in the windows and the finished ones are out; gives these and the operator's snapshot.

    `poll` alone would give what happens to be there. Between two snapshots the operator's thread takes at least one
    step, so this ends.
    """
    out: list[pa.RecordBatch] = []
    while True:
        saved = snapshot.from_bytes(op.snapshot())
        size = saved.query["window"][0]
        starts = saved.windows.column("start")
        waiting = any(one.tuples for one in saved.inputs)
        if not waiting and (not len(starts) or pc.min(starts).as_py() + size > frontier):
            return out + saved.rows, snapshot.to_bytes(replace(saved, rows=[]))
        out += op.poll()


def _in_order(layout: Layout, table: pa.Table) -> pa.Table:
    """Sort; refuse rows whose order is not determined, because the result would depend on chance.

    Rows with one timestamp are always sorted together: they come below the frontier together.
    """
    table = table.sort_by([(name, "ascending") for name in layout.order])
    if layout.position is not None and table.num_rows > 1:
        same = np.ones(table.num_rows - 1, bool)
        for name in layout.order:
            column = table[name].combine_chunks()
            same &= np.asarray(pc.equal(column[:-1], column[1:]))
        if same.any():
            row = table.select(layout.order).slice(int(same.argmax()), 1).to_pylist()[0]
            raise SchemaError(f"two rows have the same {', '.join(f'{k}={v}' for k, v in row.items())}")
    return table
