"""Partials, combined into windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream import _native
from pystream._engine.handover import Outbox
from pystream._inputs.ingest import batches
from pystream.errors import ClosedError
from pystream.partials import partial_columns
from pystream.partials.partial_columns import PartialColumns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from pystream.query import Query

#: Keys without partials that a Combine may know: so few that they do not matter.
KEYS_SPARE = 1 << 12


class Combine:
    """Makes windows out of partials: those of all rows of its keys, in any order, any number per (slice, key).

    `schema`, `stream` and `position` are those of the rows, as for `Fold`. Windows come out once each, sorted by
    (ts, key), as `ps.aggregate` gives them.

    It can go on for ever: `advance(ts)` gives the windows that are complete once everything below `ts` is in, and what
    later windows do not need is dropped. `held()` and `start` are its whole state: `Combine(..., start=start,
    held=held)` goes on from there, with the same results, once all that `advance` gives has been read.

    After an exception from outside, such as Ctrl-C, a batch that was to be added has been taken whole or not at all,
    and windows that were not handed over come first when `advance` or `finish` is called again.
    """

    def __init__(
        self,
        query: Query,
        schema: pa.Schema,
        stream: str | None = None,
        position: str | None = None,
        start: int = 0,
        held: Iterable[pa.RecordBatch] = (),
    ) -> None:
        self._columns = PartialColumns(query, schema, stream, position)
        self._handle = self._columns.handle(start)
        self._finished = False
        self._out: Outbox[pa.RecordBatch] = Outbox("combine")
        for batch in held:
            self._add(batch, held=True)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the windows."""
        return self._columns.plan.out_schema

    @property
    def partial_schema(self) -> pa.Schema:
        """The schema of the partials."""
        return self._columns.schema

    @property
    def start(self) -> int:
        """Windows that start before this have been given, or are about to be."""
        return self._handle.start

    def add(self, partials: Any) -> None:
        """Take partials: a batch, a table or an iterable of batches. A batch is taken whole or not at all."""
        for batch in batches(partials):
            self._add(batch, held=False)

    def _add(self, batch: pa.RecordBatch, *, held: bool) -> None:
        wire = self._columns.load(batch)
        try:
            self._out.hold(lambda: self._add_wire(wire, held=held))
        except _native.Fault as fault:
            raise self._columns.partial_error(fault, batch) from None

    def _add_wire(self, wire: pa.RecordBatch, *, held: bool) -> None:
        if self._finished:
            raise ClosedError("all windows have been given: no partial can come any more")
        self._handle.add_partials(wire, held=held)

    def add_rows(self, batch: pa.RecordBatch) -> None:
        """Take rows themselves, as a `Fold` does: for who has all rows of some keys, or of some windows, at hand."""
        rows = self._columns.prepare(batch)
        self._out.hold(lambda: self._fold_rows(rows))

    def _fold_rows(self, rows: pa.RecordBatch) -> None:
        if self._finished:
            raise ClosedError("all windows have been given: no row can come any more")
        self._columns.fold(self._handle, rows, 0, rows.num_rows)

    def advance(self, ts: int) -> Iterator[pa.RecordBatch]:
        """Everything below `ts` (in ticks) is in: give the windows that end there or before, as they are asked for."""
        if not 0 <= ts < 2**63:
            raise ValueError(f"ts must be between 0 and 2**63 - 1, not {ts}")
        return self._windows(ts)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Everything is in: give all windows that are left, as they are asked for."""
        return self._windows(None)

    def _windows(self, until: int | None) -> Iterator[pa.RecordBatch]:
        while True:
            out = self._out.take(lambda: self._bring(until))
            if not out:
                return
            yield from out

    # Guarded by the outbox.

    def _bring(self, until: int | None) -> None:
        """Fetch windows if none wait and there are some."""
        if not self._out and not self._fetch(until):
            self._forget_keys()

    def _fetch(self, until: int | None) -> bool:
        plan = self._columns.plan
        self._finished = self._finished or until is None
        if self._out.stage is None:
            self._out.stage = _native.Windows()
        try:
            wire = self._handle.get_windows(self._out.stage, until, partial_columns.BATCH_ROWS, plan.wire_schema)
        except _native.Fault as fault:
            raise self._columns.window_error(fault) from None
        if wire is not None:
            self._out.put([plan.finish(plan.typed(wire))])
        return wire is not None

    def _forget_keys(self) -> None:
        """Begin anew with what is held, if most keys that C knows are not among it."""
        if self._finished or self._handle.keys < KEYS_SPARE + 4 * self._handle.entries:
            return
        handle = self._columns.handle(self._handle.start)
        for batch in self._columns.export(self._handle):
            handle.add_partials(self._columns.load(batch), held=True)
        self._handle = handle

    def held(self) -> Iterator[pa.RecordBatch]:
        """What is held for windows to come, as partials, one per (slice, key)."""
        yield from self._out.hold(self._held)

    def _held(self) -> list[pa.RecordBatch]:
        return list(self._columns.export(self._handle))


def combine(
    query: Query,
    schema: pa.Schema,
    partials: Any,
    stream: str | None = None,
    position: str | None = None,
) -> Iterator[pa.RecordBatch]:
    """Make all windows out of all partials of their keys; see `Combine`."""
    whole = Combine(query, schema, stream, position)
    whole.add(partials)
    yield from whole.finish()
