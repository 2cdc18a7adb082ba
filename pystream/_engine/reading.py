"""The reading end of an operator: rows come out of C, are finished here, and belong to it until the caller has them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from pystream import _native
from pystream._engine.handover import Outbox
from pystream._engine.user_windows import Replay
from pystream.errors import ClosedError, PystreamError, SumOverflowError, UdfError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pystream._engine.plan import Plan
    from pystream._engine.user_windows import UdfRunner
    from pystream.query import Query

#: How long the end of an operator whose inputs are all closed waits for its first rows, to know whether it loses some.
GRACE_S = 1.0


class Unread(NamedTuple):
    """What nobody has read."""

    rows: int = 0  # finished
    windows: int = 0  # that would be finished next: every input is closed, and only the reader is missing

    def __str__(self) -> str:
        rows = f"{self.rows:,} finished row{'s were' if self.rows != 1 else ' was'}"
        what = rows if self.rows else f"the rows of {self.windows:,} window{'s' if self.windows != 1 else ''} were"
        lost = "is lost" if self.rows == 1 else "are lost"
        return f"{what} not read and {lost}: read with `for batch in op` or `op.read()`, or `op.end(discard=True)`"


class Output:
    """The finished rows of one operator; each goes to one reader."""

    def __init__(self, handle: _native.OperatorHandle, inputs: int, query: Query, plan: Plan, udf: UdfRunner) -> None:
        self.box: Outbox[pa.RecordBatch] = Outbox("operator")
        self._handle, self._inputs, self._query, self._plan, self._udf = handle, inputs, query, plan, udf
        self._kept = 0  # rows in the box that count as not taken: a snapshot took them out before they were asked for
        self._saved: list[tuple[int, int, int]] | None = None  # what the latest snapshot has of the inputs

    def poll(self) -> list[pa.RecordBatch]:
        """What is finished now."""
        try:
            return self.box.take(lambda: self._bring(0, None), None)
        except StopIteration:
            return []

    def read(self, timeout: float | None) -> pa.Table | None:
        """What is finished, waiting for the first rows; an empty table if none come in time; None at the end."""
        deadline = None if timeout is None else time.monotonic() + timeout
        ms = _native.WAIT_MS
        while True:
            if deadline is not None:
                ms = int(max(0, min(_native.WAIT_MS, (deadline - time.monotonic()) * 1000)))
            try:
                rows = self._rows(ms)
            except StopIteration:
                return None
            if rows is not None:
                return rows
            if deadline is not None and time.monotonic() >= deadline:
                return self._plan.out_schema.empty_table()

    def _rows(self, ms: int) -> pa.Table | None:
        return self.box.take_as(self._table, lambda: self._bring(ms, None), None)

    def _table(self, batches: list[pa.RecordBatch]) -> pa.Table | None:
        return table(self._plan.out_schema, batches) if batches else None

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What is finished as it comes, to the end."""
        while True:
            try:
                out = self.take(_native.WAIT_MS)
            except StopIteration:
                return
            yield from out

    def take(self, ms: int) -> list[pa.RecordBatch]:
        """The next batch, if there is one in time; StopIteration at the end."""
        return self.box.take(lambda: self._bring(ms, 1))

    # Guarded by the box.

    def _bring(self, ms: int, most: int | None) -> None:
        """Fetch a batch into the box if it is empty and one is ready in time; the caller takes `most` of them."""
        if not self.box:  # alone, so that no failure after them can take them along
            self.fetch(ms)
        self.keep([] if most is None else self.box.waiting()[most:])

    def fetch(self, ms: int) -> bool:
        """Bring what is finished; False when there is nothing in time; StopIteration at the end."""
        if self.box.stage is None:
            self.box.stage = _native.Taken()
        taken = self.box.stage
        try:
            if not self._handle.take(taken, ms, self._plan.wire_schema):
                return False
        except _native.Fault as fault:
            raise self._error(fault) from None
        self.box.put(self._finish(taken))
        return True

    def gather(self) -> None:
        """Fetch all that is finished, for the next reader; it counts as not taken. Raises what poll would."""
        try:
            while self.fetch(0):
                self.keep(self.box.waiting())
        except StopIteration:
            return

    def keep(self, batches: list[pa.RecordBatch]) -> None:
        """Count these as not taken."""
        rows = sum(batch.num_rows for batch in batches)
        if rows != self._kept:
            self._handle.keep(rows)
            self._kept = rows

    def _finish(self, taken: _native.Taken) -> list[pa.RecordBatch]:
        """The batch that was taken, if it has rows. Whatever is raised, it can be done again, but for user code."""
        wire, journal = taken.batches(self._plan.wire_schema, self._plan.journal_schema)
        columns = self._plan.typed(wire)
        if self._plan.udfs:
            columns |= self._user_columns(taken, wire, journal, columns)
        return [self._plan.finish(columns)] if wire.num_rows else []

    def _user_columns(
        self, taken: _native.Taken, wire: pa.RecordBatch, journal: pa.RecordBatch, rows: dict[str, pa.Array]
    ) -> dict[str, pa.Array]:
        if taken.replay is None:
            taken.replay = Replay(journal, wire.column(wire.num_columns - 1).to_pylist())
        try:
            return self._udf.run(taken.replay, rows)
        except BaseException as error:
            if taken.replay.in_user_code or isinstance(error, UdfError):
                self.box.stage = None
                self._handle.cancel()  # the user's objects are half-way through: nothing right could follow
            raise

    def _error(self, fault: _native.Fault) -> PystreamError:
        """Why nothing more comes."""
        if fault.window is None:
            return ClosedError("the operator has ended")
        window = self._plan.window_name(fault.window)
        name = [n for n in self._query.aggregates if n not in self._plan.udfs][fault.aggregate]
        if _native.is_udf_failure(fault):
            return UdfError(f"{name}, {window}: user code gave {fault.user_code}")
        return SumOverflowError(f"{name} = {self._query.aggregates[name]!r} does not fit into int64 in the {window}")

    # Any thread.

    def rows_unread(self) -> int:
        """Rows that are finished and that no caller has."""
        return self._handle.unread()["rows"] + self._rows_at_hand()

    def _rows_at_hand(self) -> int:
        """Of those the rows that have left C; 0 while somebody reads, who will have them."""
        stage = self.box.stage
        staged = stage.num_rows if stage is not None and not self.box.is_held else 0
        return int(staged + sum(batch.num_rows for batch in self.box.waiting()))

    def mark_saved(self) -> None:
        """There is a snapshot of the state as it is now."""
        self._saved = self._given()

    def _given(self) -> list[tuple[int, int, int]]:
        """What each input has been given."""
        inputs = map(self._handle.input_stats, range(self._inputs))
        return [(one["tuples_in"], one["latest"], one["closed"]) for one in inputs]

    def unread(self, grace_s: float = 0) -> Unread:
        """What is lost if the operator ends now: it could still be read, and no snapshot has it."""
        try:
            if self._saved is not None and self._saved == self._given():
                return Unread()
            is_closed = self._handle.stall()["input"] < 0
            state = self._first_rows(grace_s if is_closed else 0)
            rows = state["rows"] + max(0, self._rows_at_hand() - self._kept)
            # Unless it waits for a reader, it may have emitted its last window without having counted it.
            waits = is_closed and state["full"]
            return Unread(rows, self._handle.stats()["windows"] if waits else 0)
        except ClosedError:
            return Unread()

    def _first_rows(self, grace_s: float) -> dict[str, int]:
        """What waits for the reader, as soon as something does."""
        until = time.monotonic() + grace_s
        state = self._handle.unread()
        while not any(state.values()) and time.monotonic() < until:
            state = self._handle.unread(_native.WAIT_MS)
        return state


def table(schema: pa.Schema, batches: list[pa.RecordBatch]) -> pa.Table:
    """The batches as one table. The type of a `udf` without `type=` may change from null to another on the way."""
    if not batches:
        return schema.empty_table()
    return pa.concat_tables([pa.Table.from_batches([b]) for b in batches], promote_options="permissive")
