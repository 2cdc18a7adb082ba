"""`Operator`: a multiway aggregate that is fed and read while it runs."""

from __future__ import annotations

import asyncio
import itertools
import os
import time
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from pystream import _native, snapshot
from pystream.arguments import a_number, a_query, a_schema
from pystream.async_batches import AsyncBatches
from pystream.errors import (
    BackpressureError,
    ClosedError,
    OverlapError,
    PystreamError,
    SchemaError,
    SumOverflowError,
    UdfError,
)
from pystream.handover import Outbox
from pystream.ingest import one_batch
from pystream.moments import disorder, moment
from pystream.plan import Plan
from pystream.stall import Stall, explain
from pystream.user_windows import Replay, UdfRunner

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from pystream.query import Query

#: Rows of an input, and the number of the first of them.
Part = tuple[pa.RecordBatch, int]

INPUTS_MAX = 1 << 16
THREADS_MAX = 1 << 10
MAX_PENDING_MAX = 1 << 40
DESIGNS = tuple(_native.DESIGNS)

#: Windows that one tuple may fall into in designs that keep every window by itself (all but "sliced"), 2**20. Each is
#: about 1 KB and takes some microseconds to make: 1 GB and some seconds for such a tuple. More would not work for long.
WINDOWS_MAX = _native.WINDOWS_MAX

#: Designs that do not hand tuples to the windows in their order, and the functions for which that will not do.
#: (In "sliced", `first` and `last` remember when their tuple came.)
ORDERED = ("first", "last", "udf", "native_udf")
CANNOT = {"wiml": ORDERED, "sliced": ("udf", "native_udf")}
UNORDERED_DESIGNS = tuple(CANNOT)

#: What "auto" stands for, fastest first (bench/bench_peers.py): the first that can run all functions.
AUTO = ("sliced", "runs")


class Operator:
    """Aggregates `inputs` timestamp-sorted streams in one pass; rows come out as soon as their window is complete.

    Use it as a context manager: leaving the block ends the operator, its threads and every call that waits on it.

    `design` says how (see the README); the result does not depend on it. "auto" is "sliced", or "runs" where there is a
    `udf` or `native_udf`, which must get tuples in their order. `threads` is the number of update threads of
    "tuml-mc", half of the cores unless given; `levels` is the height of the lists in "tuml-sc", "tuml-mc" and "wiml"
    (the paper's is 3); the other designs ignore them. `max_pending` bounds the tuples held per input and the rows that
    wait to be read.

    All designs but "sliced" keep every open window by itself, size / advance of them for each key, and refuse a tuple
    that falls into more than 2**20 (OverlapError, a ValueError; nothing of the batch is taken). "sliced" keeps slices,
    of which it makes the windows when they are read: there one tuple may be in 2**40 windows.

    An exception that comes from outside at any moment (Ctrl-C, one that a signal handler raises, MemoryError) leaves
    the operator in order: no call holds anything, and rows that were taken out and not handed over come with the next
    read. Only one that strikes the user's own code while it runs for a `udf` ends the operator, as every exception
    there.

    User code that the operator runs (a `udf`, its `to_bytes`) must not call the operator that runs it: every call but
    `end`, `stats` and `explain_stall` is a ReentryError there, which ends the operator like any other exception of user
    code, unless that catches it. Other threads may call; those that read wait.

    >>> with ps.Operator(query, inputs=2, schema=schema) as op:
    ...     op.add(0, batch)
    ...     op.close(0)
    ...     op.close(1)
    ...     for out in op:
    ...         print(out)
    """

    def __init__(
        self,
        query: Query,
        inputs: int,
        schema: pa.Schema,
        design: str = "auto",
        max_pending: int = 1_000_000,
        threads: int | None = None,
        levels: int | None = None,
    ) -> None:
        self.query = a_query(query, "Operator(query, inputs, schema)")
        self.inputs = _in_range("inputs", inputs, INPUTS_MAX)
        self.design = _design(design, query)
        max_pending = _in_range("max_pending", max_pending, MAX_PENDING_MAX)
        threads = _in_range("threads", _half_the_cores() if threads is None else threads, THREADS_MAX)
        self._plan = Plan(query, a_schema(schema))
        self._udf = UdfRunner(query, self._plan.udfs, self._plan.ts_type)
        self._numbers = itertools.count()
        self._out: Outbox[pa.RecordBatch] = Outbox("operator")
        self._kept = 0  # rows in it that count as not taken: those that a snapshot took out before they were asked for
        self._before = {"tuples_in": 0, "rows_out": 0}  # counters of the operator that this one goes on from
        self._taken_before: list[int] | None = [0] * self.inputs  # its positions; None: its snapshot had none
        self._handle = _native.Handle(
            self._plan.window,
            self._plan.column_types,
            self._plan.column_text,
            len(query.key),
            self._plan.aggregates,
            self.inputs,
            self.design,
            threads,
            0 if levels is None else _in_range("levels", levels, _native.LEVELS_MAX),
            max_pending,
        )

    @property
    def schema(self) -> pa.Schema:
        """The schema of the output. The type of a `udf` without `type=` is known only once it has given a result."""
        return self._plan.out_schema

    # ---- feeding ----

    def add(self, input: int, data: Any, *, block: bool = True, timeout: float | None = None) -> None:
        """Add tuples to an input, all of them or, if anything is wrong with one, none.

        While the input holds `max_pending` tuples, `add` waits, at most `timeout` seconds (then TimeoutError); with
        `block=False` it raises BackpressureError at once. A batch larger than `max_pending` waits for an empty input.

        Errors of pystream and TimeoutError mean that nothing was taken. After any other exception, such as Ctrl-C, the
        batch has been taken whole or not at all: `positions()` tells.
        """
        self._check_input(input)
        batch = self._one_batch(input, data)
        if batch is not None:
            self._add_batch(input, batch, block, timeout)

    async def add_async(self, input: int, data: Any) -> None:
        """Add as `add` does, and let the event loop run while the input has no room.

        Cancelling it while it waits leaves the input as it was. Only the waiting takes a thread, one of the loop's
        default executor.
        """
        self._check_input(input)
        batch = self._one_batch(input, data)
        while batch is not None:
            try:
                self._add_batch(input, batch, False, None)
            except BackpressureError:
                await self._space(input, batch.num_rows)
            else:
                return

    async def _space(self, input: int, rows: int) -> None:
        try:
            while not await asyncio.to_thread(self._handle.wait_space, input, rows, _native.WAIT_MS):
                pass
        except _native.Fault as fault:
            raise self._error(fault, input, None) from None

    def _add_batch(
        self, input: int, batch: pa.RecordBatch, block: bool, timeout: float | None, first_row: int = 0
    ) -> None:
        offer = _native.Offer(self._prepare(input, batch))
        deadline = None if timeout is None else time.monotonic() + timeout
        number = next(self._numbers)
        try:
            if self._plan.udfs:
                self._udf.remember(number, batch)
            while not self._handle.add(input, number, offer):
                self._wait_space(input, batch.num_rows, block, deadline)
        except _native.Fault as fault:
            raise self._error(fault, input, first_row) from None
        finally:
            if self._plan.udfs and not offer.is_taken:
                self._udf.forget(number)

    def _feed(self, inputs: dict[int, Iterator[Part]], rows: int) -> None:
        """Add all parts of these inputs in pieces of so many rows, waiting for room, and close the inputs.

        Always goes on with the input that has come least far in time. User objects: one input only.
        """
        if self._plan.udfs:
            self._feed_objects(inputs, rows)
            return
        feed, first_row = self._handle.feed(list(inputs)), dict.fromkeys(inputs, 0)
        try:
            ready = list(inputs)
            left = len(inputs)
            while left:
                for i in ready:
                    left -= not self._give(feed, i, inputs[i], first_row)
                ready = [feed.run(rows)] if left else []
        except _native.Fault as fault:
            raise self._error(fault, feed.at, first_row[feed.at]) from None
        finally:
            feed.end()

    def _give(self, feed: _native.Feed, input: int, parts: Iterator[Part], first_row: dict[int, int]) -> bool:
        """Give the input its next part, or close it."""
        part = next(parts, None)
        if part is None:
            self.close(input)
            return False
        batch, first_row[input] = part
        feed.put(input, self._prepare(input, batch))
        return True

    def _feed_objects(self, inputs: dict[int, Iterator[Part]], rows: int) -> None:
        ((input, parts),) = inputs.items()
        for batch, first_row in parts:
            for start in range(0, batch.num_rows, rows):
                self._add_batch(input, batch.slice(start, rows), True, None, first_row + start)
        self.close(input)

    def _prepare(self, input: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        try:
            return self._plan.prepare(batch)
        except (SchemaError, pa.ArrowException) as error:
            raise SchemaError(f"input {input}: {error}") from error

    def _one_batch(self, input: int, data: Any) -> pa.RecordBatch | None:
        try:
            return one_batch(data, self._plan.sound, self.query)
        except SchemaError as error:
            raise SchemaError(f"input {input}: {error}") from error

    def _wait_space(self, input: int, rows: int, block: bool, deadline: float | None) -> None:
        if not block:
            raise BackpressureError(f"input {input} holds too many tuples to take {rows} more; read the output or wait")
        left = _native.WAIT_MS if deadline is None else int((deadline - time.monotonic()) * 1000)
        if left < 0:
            raise TimeoutError(f"input {input} had no room for {rows} tuples in time")
        self._handle.wait_space(input, rows, min(left, _native.WAIT_MS))

    def heartbeat(self, input: int, ts: Any) -> None:
        """Promise that the input sends nothing below `ts` any more: an integer, or a datetime for timestamp columns.

        A promise already made does nothing.
        """
        self._check_input(input)
        try:
            ticks = pa.scalar(ts, self._plan.ts_type).cast(pa.int64()).as_py()
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
            what = f"a timestamp of type {self._plan.ts_type}, as column {self.query.ts!r} has"
            raise TypeError(f"heartbeat wants {what}, not {ts!r}") from error
        if ticks is None:
            raise TypeError("heartbeat wants a timestamp, not None")
        try:
            self._handle.heartbeat(input, ticks)
        except _native.Fault as fault:
            raise self._error(fault, input, None) from None

    def close(self, input: int) -> None:
        """Promise that the input sends nothing more at all. Closing it again does nothing."""
        self._check_input(input)
        self._handle.close(input)

    # ---- reading ----

    def poll(self) -> list[pa.RecordBatch]:
        """The rows that are finished now; never blocks."""
        try:
            return self._out.take(lambda: self._bring(0, None), None)
        except StopIteration:
            return []

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Finished rows as they come, until all inputs are closed and all rows are out."""
        while True:
            try:
                out = self._take(_native.WAIT_MS)
            except StopIteration:
                return
            yield from out

    def __aiter__(self) -> AsyncBatches:
        """The same for `async for`: waits without blocking the event loop. User functions run in the loop's thread."""
        return AsyncBatches(lambda: self._take(0), self._out, self._handle)

    def _take(self, ms: int) -> list[pa.RecordBatch]:
        """The next batch, if there is one in time; StopIteration at the end."""
        return self._out.take(lambda: self._bring(ms, 1))

    # Whoever calls what follows holds the outbox.

    def _bring(self, ms: int, most: int | None) -> None:
        """See to it that there is a batch in the outbox, if one comes in time; `most` of them are about to go."""
        if not self._out:  # alone, so that no failure after them can take them along
            self._fetch(ms)
        self._keep([] if most is None else self._out.waiting()[most:])

    def _fetch(self, ms: int) -> bool:
        """Bring what is finished; False when there is nothing in time; StopIteration at the end."""
        if self._out.stage is None:
            self._out.stage = _native.Taken()
        taken = self._out.stage
        try:
            if not self._handle.take(taken, ms, self._plan.wire_schema):
                return False
        except _native.Fault as fault:
            raise self._error(fault, None, None) from None
        self._out.put(self._finish(taken))
        return True

    def _gather(self) -> None:
        """Bring all that is finished, for whoever reads next; it counts as not taken. Raises what poll would."""
        try:
            while self._fetch(0):
                self._keep(self._out.waiting())
        except StopIteration:
            return

    def _keep(self, batches: list[pa.RecordBatch]) -> None:
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
                self._out.stage = None
                self._handle.cancel()  # the user's objects are half-way through: nothing right could follow
            raise

    def stats(self) -> dict[str, Any]:
        """What the operator has done and what it holds.

        `tuples_in` tuples taken so far, `pending` of them not merged yet; `windows_open`, one per window and key;
        `keys`, distinct keys that are known; `rows_out` rows finished, read or not; `latest` timestamp of each input
        (None: nothing sent), in ticks; `position`, the (timestamp, input) up to which everything is ready (None: an
        input has sent nothing, or all are closed); `bytes_held`, about how much memory it holds, the added batches
        included.
        """
        counters, stall = self._counters(), self._handle.stall()
        return {
            "tuples_in": counters["tuples_in"],
            "pending": counters["pending"],
            "windows_open": counters["windows"],
            "keys": counters["keys"],
            "rows_out": counters["rows_out"],
            "latest": [None if one["latest"] < 0 else one["latest"] for one in self._input_stats()],
            "position": None if min(stall["input"], stall["latest"]) < 0 else (stall["latest"], stall["input"]),
            "bytes_held": counters["bytes"] + self._udf.bytes_held(),
        }

    def _counters(self) -> dict[str, int]:
        counters = self._handle.stats()
        return counters | {name: counters[name] + before for name, before in self._before.items()}

    def _input_stats(self) -> list[dict[str, int]]:
        return [self._handle.input_stats(i) for i in range(self.inputs)]

    def positions(self) -> list[int]:
        """How many rows each input has taken since its beginning: its feeder goes on at row `positions()[input]`.

        A snapshot holds the positions of the state in it, and they count on after `restore`, so that a feeder need not
        keep offsets of its own. A batch that `add` refused, or that an exception kept from it, does not count.

        >>> op = ps.Operator.restore(query, blob)
        >>> for i, at in enumerate(op.positions()):
        ...     op.add(i, tables[i].slice(at))
        """
        if self._taken_before is None:
            raise PystreamError("the snapshot that was restored is of a version without positions; take new ones")
        return [taken + one["tuples_in"] for taken, one in zip(self._taken_before, self._input_stats(), strict=True)]

    def explain_stall(self) -> Stall | None:
        """Which input holds the output back, since when, what waits for it and what would release it; None: nothing."""
        stall = self._handle.stall()
        return explain(stall, self._input_stats(), self._handle.stats()["windows"], self._plan.window)

    # ---- snapshots ----

    def snapshot(self) -> bytes:
        """The whole state as bytes, from which `restore` goes on as if nothing had happened.

        Calls that add wait meanwhile; the operator goes on afterwards. The bytes hold pending tuples, open windows and
        rows that are finished and not read. Objects of a `udf` must have `to_bytes()`, and the factory or their class
        `from_bytes(bytes)`.
        """
        try:
            return snapshot.take(self)
        except _native.Fault as fault:
            self._out.hold(self._gather)  # says why, if it has ended by a failure
            raise self._error(fault, None, None) from None

    @classmethod
    def restore(
        cls,
        query: Query,
        blob: bytes,
        design: str = "auto",
        threads: int | None = None,
        max_pending: int = 1_000_000,
    ) -> Self:
        """An operator that goes on where the snapshot was taken, with any design and number of threads.

        Bytes that are damaged, or of another query, are refused with a SnapshotError.
        """
        max_pending = _in_range("max_pending", max_pending, MAX_PENDING_MAX)
        saved = snapshot.from_bytes(blob)
        snapshot.check(saved, query)
        op = cls(query, len(saved.inputs), saved.schema, design, MAX_PENDING_MAX, threads)
        try:
            snapshot.put(op, saved)
            op._handle.limit(max_pending)
        except BaseException:
            op.end()
            raise
        return op

    # ---- ending ----

    def end(self) -> None:
        """End the operator now: its thread, every call that waits on it, and what it holds. Rows not read are lost."""
        self._handle.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.end()

    # ---- errors ----

    def _check_input(self, input: int) -> None:
        self._out.check()
        if not 0 <= a_number(input, "the first argument is the number of an input") < self.inputs:
            raise ValueError(f"input must be between 0 and {self.inputs - 1}, not {input}")

    def _error(self, fault: _native.Fault, input: int | None, first_row: int | None) -> PystreamError:
        """The exception for a failed call."""
        if fault.window is not None:
            return self._window_error(fault, self._plan.window_name(fault.window))
        if _native.is_closed(fault):
            return self._closed_error(input)
        row = None if first_row is None else first_row + fault.row
        where = f"input {input}" if row is None else f"input {input}, row {row}"
        if _native.is_overlap(fault):
            return self._overlap_error(where, fault)
        return disorder(fault, where, self._plan.ts_type, self.query.ts, input, row)

    def _overlap_error(self, where: str, fault: _native.Fault) -> OverlapError:
        can = "use design='sliced', or" if "sliced" in designs_for(self.query) else "a user function needs"
        return OverlapError(
            f"{where}: timestamp {moment(fault.ts, self._plan.ts_type)} falls into more than {WINDOWS_MAX:,} windows, "
            f"and {self.design!r} keeps each of them; {can} a larger advance"
        )

    def _closed_error(self, input: int | None) -> ClosedError:
        if input is None:
            return ClosedError("the operator has ended")
        if self._handle.input_stats(input)["closed"]:
            return ClosedError(f"input {input} is closed: it takes nothing more")
        return ClosedError(f"input {input} takes nothing more: the operator cannot go on; reading its output tells why")

    def _window_error(self, fault: _native.Fault, window: str) -> PystreamError:
        name = [n for n in self.query.aggregates if n not in self._plan.udfs][fault.aggregate]
        if _native.is_udf_failure(fault):
            return UdfError(f"{name}, {window}: user code gave {fault.user_code}")
        return SumOverflowError(f"{name} = {self.query.aggregates[name]!r} does not fit into int64 in the {window}")


def _half_the_cores() -> int:
    return max((os.cpu_count() or 1) // 2, 1)


def _in_range(name: str, value: int, most: int) -> int:
    number = a_number(value, f"{name} must be an integer between 1 and {most}")
    if not 1 <= number <= most:
        raise ValueError(f"{name} must be between 1 and {most}, not {value}")
    return number


def _design(design: str, query: Query) -> str:
    """The design by its name, if it can run the query's functions."""
    if design == "auto":
        return next(d for d in AUTO if not _unfit(d, query))
    if design not in DESIGNS:
        raise ValueError(f"unknown design {design!r}; there are 'auto', {', '.join(map(repr, DESIGNS))}")
    for name in _unfit(design, query):
        can = ", ".join(map(repr, designs_for(query)))
        what = f"{name} = {query.aggregates[name]!r}"
        raise ValueError(f"{what} depends on the order of tuples, which {design!r} does not keep; {can} do")
    return design


def designs_for(query: Query) -> list[str]:
    """The designs that can run the query's functions."""
    return [d for d in DESIGNS if not _unfit(d, query)]


def _unfit(design: str, query: Query) -> list[str]:
    """The aggregates that the design cannot run."""
    return [name for name, a in query.aggregates.items() if a.function in CANNOT.get(design, ())]
