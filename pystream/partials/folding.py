"""Rows in any order, folded into one partial per (slice, key)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, TypeVar

import pyarrow as pa

from pystream import _native
from pystream._engine.handover import Outbox
from pystream.partials.partial_columns import PartialColumns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pystream.query import Query

#: What a fold holds at most before it gives its partials away: little beside what a Spark task has, and so much that
#: the same slice and key are given away rarely.
MAX_BYTES = 1 << 27

#: Rows that are folded in one call: between two calls the memory in use is looked at.
PIECE_ROWS = 1 << 16

Given = TypeVar("Given")

#: Batches by the number of the first row.
Kept = dict[int, pa.RecordBatch]


@dataclass
class _Rest:
    """A batch that a fold has taken: the rows from `start` on are not folded yet, or `done` says that a piece is."""

    rows: pa.RecordBatch
    batch: pa.RecordBatch  # as it came
    start: int = 0
    done: _native.Done = field(default_factory=_native.Done)


class Folding(Generic[Given]):
    """Folds rows, in any order and of any streams, into one partial per (slice, key).

    `stream` names the integer column that says which input a row belongs to (None: all belong to one), `position` the
    integer column that orders the rows of one stream with equal timestamps. Only `first`, `last`, `arg_min` and
    `arg_max` need them. Rows with equal timestamp, stream and position between which these would have to choose are
    refused.

    `max_bytes` bounds, about, the memory held: when there is more, `add` gives the partials away and begins anew.
    A fold that has run out of memory or has refused such rows cannot go on. After an exception from outside, such as
    Ctrl-C, it can: the batch has been taken whole or not at all, and partials that were not handed over come with the
    next call.
    """

    def __init__(
        self,
        query: Query,
        schema: pa.Schema,
        stream: str | None = None,
        position: str | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        if max_bytes < 1:
            raise ValueError(f"max_bytes must be positive, not {max_bytes}")
        self._columns = PartialColumns(query, schema, stream, position)
        self._columns.check_order()
        self._max_bytes = max_bytes
        self._handle = self._columns.handle()
        self._kept: Kept | None = None  # None: rows are folded, and nothing is kept of them
        self._out: Outbox[Given] = Outbox("fold")
        self._rest: _Rest | None = None

    def add(self, batch: pa.RecordBatch) -> list[Given]:
        """Fold the rows of a batch; gives partials, usually none."""
        rows = self._columns.prepare(batch)
        self._columns.check_time(rows)
        return self._out.take(lambda: self._fold(_Rest(rows, batch)), None)

    def finish(self) -> Iterator[Given]:
        """Give all partials that are left; the fold is empty then, and may be used again."""
        self._out.hold(self._fold_all)
        while True:
            out = self._out.take(lambda: None)
            if not out:
                return
            yield from out

    def _fold(self, rest: _Rest) -> None:
        self._go_on()  # with the batch before, if an exception from outside stopped it
        self._rest = rest
        self._go_on()

    def _fold_all(self) -> None:
        self._go_on()
        self._flush()

    def _go_on(self) -> None:
        """Fold what is left of the batch that has been taken."""
        rest = self._rest
        while rest is not None and rest.start < rest.rows.num_rows:
            self._fold_piece(rest)
            if self._is_full():
                self._flush()
            rest.start, rest.done = rest.start + PIECE_ROWS, _native.Done()
        self._rest = None

    def _is_full(self) -> bool:
        """Whether to give the partials away."""
        return self._handle.bytes > self._max_bytes

    def _fold_piece(self, rest: _Rest) -> None:
        if rest.done.is_ok:
            return
        self._keep(rest.batch.slice(rest.start, PIECE_ROWS))
        try:
            self._columns.fold(self._handle, rest.rows, rest.start, PIECE_ROWS, rest.done)
        finally:
            if rest.done.is_refused:
                self._rest = None

    def _keep(self, batch: pa.RecordBatch) -> None:
        """Keep what `_export` will need of rows that are about to be folded: nothing."""

    def _flush(self) -> None:
        out, empty = list(self._export()), self._empty()
        self._out.put(out)
        self._handle, self._kept = empty

    def _empty(self) -> tuple[_native.FoldHandle, Kept | None]:
        """What takes the rows to come, and `_kept` for it."""
        return self._columns.handle(), None

    def _export(self) -> Iterator[Given]:
        """All partials, in the form in which they are given."""
        raise NotImplementedError


class Fold(Folding[pa.RecordBatch]):
    """A Folding that gives partials as rows of Arrow columns."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the partials."""
        return self._columns.schema

    def _export(self) -> Iterator[pa.RecordBatch]:
        return self._columns.export(self._handle)
