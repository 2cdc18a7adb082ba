"""`Operator`: a multiway aggregate that is fed and read while it runs."""

from __future__ import annotations

import os
import sys
import warnings
import weakref
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa

from pystream import _native, _notebook
from pystream._engine import snapshot
from pystream._engine.arguments import a_number, a_query, a_schema
from pystream._engine.async_batches import AsyncBatches
from pystream._engine.engine import INPUTS_MAX, Engine
from pystream._engine.reading import GRACE_S
from pystream.designs import CANNOT, DESIGNS, UNORDERED_DESIGNS, Design, design_for, designs_for
from pystream.errors import BackpressureError, PystreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from pystream._engine.reading import Output, Unread
    from pystream._engine.stall import Stall, Stats
    from pystream.query import Query

THREADS_MAX = 1 << 10
MAX_PENDING_MAX = 1 << 40

#: Windows that one tuple may fall into in designs that keep every window by itself (all but "sliced"), 2**20. Each is
#: about 1 KB and takes some microseconds to make: 1 GB and some seconds for such a tuple. More would not work for long.
WINDOWS_MAX = _native.WINDOWS_MAX

__all__ = ["CANNOT", "DESIGNS", "UNORDERED_DESIGNS", "Operator", "designs_for"]


class Operator:
    """Aggregates `inputs` timestamp-sorted streams in one pass; rows come out as soon as their window is complete.

    Use it as a context manager: leaving the block ends the operator, its threads and every call that waits on it.

    `design` says how (`designs.py`); the result does not depend on it. "auto" is "sliced", or "runs" where there is a
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

    >>> query = ps.Query(ps.Window(10), key="meter", aggregates={"n": ps.count()})
    >>> schema = pa.schema([("ts", pa.int64()), ("meter", pa.string())])
    >>> with ps.Operator(query, inputs=2, schema=schema) as op:
    ...     op.add(0, {"ts": [3, 4], "meter": ["a", "b"]})
    ...     op.add(1, {"ts": [7], "meter": ["a"]})
    ...     op.close(0)
    ...     op.close(1)
    ...     [row for batch in op for row in batch.to_pylist()]
    [{'ts': 0, 'meter': 'a', 'n': 2}, {'ts': 0, 'meter': 'b', 'n': 1}]
    """

    def __init__(
        self,
        query: Query,
        inputs: int,
        schema: pa.Schema,
        design: Design = "auto",
        max_pending: int = 1_000_000,
        threads: int | None = None,
        levels: int | None = None,
    ) -> None:
        self.query = a_query(query, "Operator(query, inputs, schema)")
        self.inputs = _in_range("inputs", inputs, INPUTS_MAX)
        self.design = design_for(design, query)
        max_pending = _in_range("max_pending", max_pending, MAX_PENDING_MAX)
        threads = _in_range("threads", _half_the_cores() if threads is None else threads, THREADS_MAX)
        levels = 0 if levels is None else _in_range("levels", levels, _native.LEVELS_MAX)
        #: What does the work. For pystream's own modules (aggregation.py, Spark): it promises nothing.
        self.engine = Engine(query, self.inputs, a_schema(schema), self.design, max_pending, threads, levels)
        self._if_dropped = weakref.finalize(self, _warn_dropped, self.engine.output)  # at exit too

    @property
    def schema(self) -> pa.Schema:
        """The schema of the output. The type of a `udf` without `type=` is known only once it has given a result.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
        ...     op.schema.names
        ['ts', 'n']
        """
        return self.engine.plan.out_schema

    # ---- feeding ----

    def add(self, input: int, data: Any, *, block: bool = True, timeout: float | None = None) -> None:
        """Add tuples to an input, all of them or, if anything is wrong with one, none.

        While the input holds `max_pending` tuples, `add` waits, at most `timeout` seconds (then TimeoutError); with
        `block=False` it raises BackpressureError at once. A batch larger than `max_pending` waits for an empty input.

        Errors of pystream and TimeoutError mean that nothing was taken. After any other exception, such as Ctrl-C, the
        batch has been taken whole or not at all: `positions()` tells.

        The rows that are finished take room too: without a thread that reads, read now and then between adds.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
        ...     op.add(0, {"ts": [3, 4]})
        ...     op.add(0, pa.table({"ts": [12]}))
        ...     op.read().to_pylist()
        [{'ts': 0, 'n': 2}]
        """
        self.engine.check_input(input)
        batch = self.engine.one_batch(input, data)
        if batch is not None and not self.engine.add(input, batch, block=block, timeout=timeout):
            raise BackpressureError(
                f"input {input} holds too many tuples to take {batch.num_rows} more: {self.engine.why_no_room()}"
            )

    async def add_async(self, input: int, data: Any) -> None:
        """Add as `add` does, and let the event loop run while the input has no room.

        Cancelling it while it waits leaves the input as it was. Only the waiting takes a thread, one of the loop's
        default executor.

        >>> import asyncio
        >>> async def main():
        ...     query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        ...     with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
        ...         await op.add_async(0, {"ts": [3, 4]})
        ...         op.close(0)
        ...         return [batch.to_pylist() async for batch in op]
        >>> asyncio.run(main())
        [[{'ts': 0, 'n': 2}]]
        """
        self.engine.check_input(input)
        batch = self.engine.one_batch(input, data)
        while batch is not None and not self.engine.add(input, batch, block=False):
            await self.engine.wait_space_async(input, batch.num_rows)

    def heartbeat(self, input: int, ts: Any) -> None:
        """Promise that the input sends nothing below `ts` any more: an integer, or a datetime for timestamp columns.

        A promise already made does nothing.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=2, schema=[("ts", "int64")]) as op:
        ...     op.add(0, {"ts": [3, 12]})
        ...     op.heartbeat(1, ts=12)  # nothing below 12 will come: the window [0, 10) is complete
        ...     op.read().to_pylist()
        [{'ts': 0, 'n': 1}]
        """
        self.engine.check_input(input)
        try:
            ticks = pa.scalar(ts, self.engine.plan.ts_type).cast(pa.int64()).as_py()
        except (pa.ArrowInvalid, pa.ArrowTypeError, TypeError, OverflowError) as error:
            what = f"a timestamp of type {self.engine.plan.ts_type}, as column {self.query.ts!r} has"
            raise TypeError(f"heartbeat wants {what}, not {ts!r}") from error
        if ticks is None:
            raise TypeError("heartbeat wants a timestamp, not None")
        try:
            self.engine.handle.heartbeat(input, ticks)
        except _native.Fault as fault:
            raise self.engine.error(fault, input, None) from None

    def close(self, input: int) -> None:
        """Promise that the input sends nothing more at all. Closing it again does nothing.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
        ...     op.close(0)
        ...     list(op)
        []
        """
        self.engine.check_input(input)
        self.engine.handle.close(input)

    # ---- reading ----

    def poll(self) -> list[pa.RecordBatch]:
        """The rows that are finished now; never blocks. Right after `add` or `close` that may be none yet: see `read`.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
        ...     op.poll()
        []
        """
        return self.engine.output.poll()

    def read(self, timeout: float | None = None) -> pa.Table | None:
        """The rows that are finished, as a table; waits for the first of them.

        None means the end: all inputs are closed and all rows are out. If no row is finished within `timeout` seconds,
        the table is empty.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
        ...     op.add(0, {"ts": [3, 4]})
        ...     print(op.read(timeout=0).num_rows)  # the window [0, 10) is not complete
        ...     op.close(0)
        ...     while (rows := op.read()) is not None:
        ...         print(rows.to_pylist())
        0
        [{'ts': 0, 'n': 2}]
        """
        return self.engine.output.read(timeout)

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """Finished rows as they come, until all inputs are closed and all rows are out."""
        yield from self.engine.output.batches()  # which keeps the operator, too

    def __aiter__(self) -> AsyncBatches:
        """The same for `async for`: waits without blocking the event loop. User functions run in the loop's thread."""
        return AsyncBatches(lambda: self.engine.output.take(0), self.engine.output.box, self.engine.handle)

    def stats(self) -> Stats:
        """What the operator has done and what it holds: `Stats` says what the numbers are.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=2, schema=[("ts", "int64")]) as op:
        ...     op.add(0, {"ts": [3, 4]})
        ...     op.stats()["pending"]
        2
        """
        engine = self.engine
        counters, stall = engine.counters(), engine.handle.stall()
        return {
            "tuples_in": counters["tuples_in"],
            "pending": counters["pending"],
            "windows_open": counters["windows"],
            "keys": counters["keys"],
            "rows_out": counters["rows_out"],
            "rows_unread": engine.output.rows_unread(),
            "latest": [None if one["latest"] < 0 else one["latest"] for one in engine.input_stats()],
            "position": None if min(stall["input"], stall["latest"]) < 0 else (stall["latest"], stall["input"]),
            "bytes_held": counters["bytes"] + engine.user_windows.bytes_held(),
        }

    def positions(self) -> list[int]:
        """How many rows each input has taken since its beginning: its feeder goes on at row `positions()[input]`.

        A snapshot holds the positions of the state in it, and they count on after `restore`, so that a feeder need not
        keep offsets of its own. A batch that `add` refused, or that an exception kept from it, does not count.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=2, schema=[("ts", "int64")]) as op:
        ...     op.add(0, {"ts": [3, 4]})
        ...     op.positions()
        [2, 0]
        """
        positions = self.engine.positions()
        if positions is None:
            raise PystreamError("the snapshot that was restored is of a version without positions; take new ones")
        return positions

    def explain_stall(self) -> Stall | None:
        """Why no more comes out, what waits for it and what would release it; None: nothing holds the output back.

        That is an input that has fallen behind the others, or output that nobody reads: see `Stall`.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=2, schema=[("ts", "int64")]) as op:
        ...     op.add(0, {"ts": [3, 4]})
        ...     stall = op.explain_stall()
        >>> stall.reason, stall.input, stall.waiting
        ('input', 1, 2)
        """
        return self.engine.explain_stall()

    # ---- snapshots ----

    def snapshot(self) -> bytes:
        """The whole state as bytes, from which `restore` goes on as if nothing had happened.

        Calls that add wait meanwhile; the operator goes on afterwards. The bytes hold pending tuples, open windows and
        rows that are finished and not read. Objects of a `udf` must have `to_bytes()`, and the factory or their class
        `from_bytes(bytes)`.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> with ps.Operator(query, inputs=1, schema=[("ts", "int64")]) as op:
        ...     op.add(0, {"ts": [3, 4]})
        ...     blob = op.snapshot()
        >>> type(blob)
        <class 'bytes'>
        """
        try:
            return snapshot.take(self.engine)
        except _native.Fault as fault:
            output = self.engine.output
            output.box.hold(output.gather)  # says why, if it has ended by a failure
            raise self.engine.error(fault, None, None) from None

    @classmethod
    def restore(
        cls,
        query: Query,
        blob: bytes,
        design: Design = "auto",
        threads: int | None = None,
        max_pending: int = 1_000_000,
    ) -> Self:
        """An operator that goes on where the snapshot was taken, with any design and number of threads.

        Bytes that are damaged, or of another query, are refused with a SnapshotError.

        >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
        >>> rows = pa.table({"ts": [3, 4, 5]})
        >>> with ps.Operator(query, inputs=1, schema=rows.schema) as op:
        ...     op.add(0, rows.slice(0, 2))
        ...     blob = op.snapshot()
        >>> with ps.Operator.restore(query, blob) as op:
        ...     for input, position in enumerate(op.positions()):
        ...         op.add(input, rows.slice(position))
        ...     op.close(0)
        ...     op.read().to_pylist()
        [{'ts': 0, 'n': 3}]
        """
        max_pending = _in_range("max_pending", max_pending, MAX_PENDING_MAX)
        saved = snapshot.from_bytes(blob)
        snapshot.check(saved, query)
        op = cls(query, len(saved.inputs), saved.schema, design, MAX_PENDING_MAX, threads)
        try:
            snapshot.put(op.engine, saved)
            op.engine.handle.limit(max_pending)
        except BaseException:
            op.end()
            raise
        return op

    # ---- ending ----

    def end(self, *, discard: bool = False) -> None:
        """End the operator now: its thread, every call that waits on it, and what it holds.

        Finished rows that nobody has read are lost, with a ResourceWarning, unless a snapshot has them, an exception is
        on its way, or `discard` says that nobody wants them. So it is when the `with` block is left, and when the last
        reference to the operator is dropped.

        >>> op = ps.Operator(ps.Query(ps.Window(10), None, {"n": ps.count()}), inputs=1, schema=[("ts", "int64")])
        >>> op.end()
        >>> op.add(0, {"ts": [3]})
        Traceback (most recent call last):
        pystream.errors.ClosedError: the operator has ended
        """
        self._end(is_orderly=not discard and sys.exc_info()[0] is None)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, error_type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self._end(is_orderly=error_type is None)

    def _end(self, *, is_orderly: bool) -> None:
        lost = None
        try:
            if is_orderly:
                lost = self.engine.output.unread(GRACE_S)
        finally:
            self.engine.handle.end()
        self._if_dropped.detach()
        if lost is not None and any(lost):
            _warn_lost(lost, stacklevel=4)

    def __repr__(self) -> str:
        return f"<pystream.Operator: {', '.join(_notebook.operator_facts(self))}>"

    def _repr_html_(self) -> str:
        return _notebook.operator_html(self)


def _warn_dropped(output: Output) -> None:
    """Somebody has dropped an operator without ending it."""
    lost = output.unread()
    if any(lost):
        _warn_lost(lost, stacklevel=2)


def _warn_lost(lost: Unread, stacklevel: int) -> None:
    warnings.warn(str(lost), ResourceWarning, stacklevel=stacklevel)


def _half_the_cores() -> int:
    return max((os.cpu_count() or 1) // 2, 1)


def _in_range(name: str, value: int, most: int) -> int:
    number = a_number(value, f"{name} must be an integer between 1 and {most}")
    if not 1 <= number <= most:
        raise ValueError(f"{name} must be between 1 and {most}, not {value}")
    return number
