"""The windows of one shard between and during micro-batches, in the two ways that there are.

`Folded`: rows come as packed partial aggregates (partials/packed.py), which carry all that matters of the rows'
order, so nothing waits and the state is one partial per slice and key. For all functions but those of users.

`Ordered`: user code takes the rows one by one, in the order (ts, stream, position). Rows below the frontier go into an
operator, the others wait: a later micro-batch may bring rows that come before them. The state is the operator's
snapshot and the rows that wait.

Both give with a frontier exactly the windows that end there or before, whatever the timing: a micro-batch that is run
again gives the same rows.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pystream._engine import snapshot
from pystream.errors import PartialError, SchemaError, SnapshotError
from pystream.operator import Operator
from pystream.partials import PackedCombine, seals
from pystream.partials.seals import Seal
from pystream.spark.stream.parcels import ticks
from pystream.spark.stream.table_bytes import table_of, to_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pystream.designs import Design
    from pystream.spark.stream.state import Layout, Saved

#: The design of the operators: its output thread takes one step per ready run, and its snapshots hold windows.
DESIGN: Design = "runs"

#: Rows given to an operator at a time, and how long to wait for room before reading its output, which may need it.
SLICE_ROWS = 1 << 16
WAIT_S = 0.05


class Windows(Protocol):
    """What a shard does with its rows."""

    def advance(self, parcels: list[Any], frontier: int) -> list[pa.RecordBatch]:
        """Take rows, or packed partials; gives the windows that end at the frontier or before. Once only."""

    def saved(self) -> Saved:
        """The state afterwards."""

    @property
    def held(self) -> int:
        """How many rows or partials are in the state for windows to come, besides an operator's snapshot."""

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All windows that are open, as if nothing more came."""


def windows_of(layout: Layout, shard: int, saved: Saved) -> Windows:
    """The windows in a shard's state."""
    return Folded(layout, shard, saved) if layout.folds else Ordered(layout, shard, saved)


class Folded:
    """Windows out of partials."""

    def __init__(self, layout: Layout, shard: int, saved: Saved) -> None:
        self._before = saved
        self._layout = layout
        place = layout.place
        try:
            self._combine = PackedCombine(layout.query, layout.schema, *place, saved.start, packed=saved.windows)
        except PartialError as error:
            raise SnapshotError(f"{Seal(shard).name(seals.STATE)}: damaged, {error}") from error
        self._packed = saved.windows

    def advance(self, parcels: list[Any], frontier: int) -> list[pa.RecordBatch]:
        """Take packed partials, or rows where late ones had to be sorted out first."""
        for parcel in parcels:
            if self._layout.packs:
                self._combine.take(parcel)
            else:
                self._add_rows(parcel)
        out = list(self._combine.advance(max(frontier, 0)))
        self._packed = self._combine.pack()
        return out

    def _add_rows(self, table: pa.Table) -> None:
        for batch in table.to_batches():
            self._combine.add_rows(batch)

    def saved(self) -> Saved:
        """The partials that are held."""
        return self._before._replace(windows=self._packed, start=self._combine.start)

    @property
    def held(self) -> int:
        """The number of partials."""
        return self._combine.partials

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All windows that are open."""
        yield from self._combine.finish()


class Ordered:
    """Windows of user code."""

    def __init__(self, layout: Layout, shard: int, saved: Saved) -> None:
        self._layout = layout
        self._before = saved
        self._snapshot = saved.windows
        self._waiting = layout.schema.empty_table()
        if saved.pending:
            self._waiting = table_of(seals.STATE, Seal(shard), saved.pending, layout.schema)

    def advance(self, parcels: list[Any], frontier: int) -> list[pa.RecordBatch]:
        """Put the rows below the frontier into the windows."""
        rows = pa.concat_tables([*parcels, self._waiting])
        self._waiting = rows
        if frontier <= self._before.frontier:
            return []
        ready = pc.less(ticks(self._layout, rows), frontier)
        with self._operator() as op:
            out = list(_feed(op, _in_order(self._layout, rows.filter(ready))))
            op.heartbeat(0, frontier)
            rest, self._snapshot = _settle(op, frontier)
        self._waiting = rows.filter(pc.invert(ready))
        return out + rest

    def saved(self) -> Saved:
        """The operator's snapshot and the rows that wait."""
        waiting = to_bytes(self._waiting.combine_chunks()) if self.held else b""
        return self._before._replace(windows=self._snapshot, pending=waiting)

    @property
    def held(self) -> int:
        """The number of rows that wait."""
        return int(self._waiting.num_rows)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """All windows that are open, and those of the rows that wait."""
        with self._operator() as op:
            yield from _feed(op, _in_order(self._layout, self._waiting))
            op.close(0)
            yield from op

    def _operator(self) -> Operator:
        if self._snapshot:
            return Operator.restore(self._layout.query, self._snapshot, DESIGN)
        return Operator(self._layout.query, 1, self._layout.schema, DESIGN)


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
    if table.num_rows > 1:
        same = np.ones(table.num_rows - 1, bool)
        for name in layout.order:
            column = table[name].combine_chunks()
            same &= np.asarray(pc.equal(column[:-1], column[1:]))
        if same.any():
            row = table.select(layout.order).slice(int(same.argmax()), 1).to_pylist()[0]
            raise SchemaError(f"two rows have the same {', '.join(f'{k}={v}' for k, v in row.items())}")
    return table
