"""An operator in C, what it takes and what it gives."""

from __future__ import annotations

import atexit
import os
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystream import errors
from pystream._native.arrow import exported, imported, new_array
from pystream._native.calls import new_object, query_struct, struct_fields
from pystream._native.extension import DESIGNS, WAIT_MS, ffi, lib
from pystream._native.faults import Fault, raise_if_broken

if TYPE_CHECKING:
    from pystream._engine.plan import AggregatePlan

#: What C gives of a window, and what comes before the columns of a pending tuple.
SAVED_WINDOWS = pa.schema(
    [("start", pa.int64()), ("key", pa.large_binary()), ("state", pa.large_binary()), ("number", pa.int64())],
)
SAVED_TUPLE = pa.schema([("batch", pa.int64()), ("row", pa.int64())])

#: Operators that may have threads. No weakref callback removes them: an interrupt in one would be swallowed.
_handles: set[weakref.ref[OperatorHandle]] = set()

#: Above this size, dead references are removed.
_HANDLES_MANY = 256


def _end_at_exit(handle: OperatorHandle) -> None:
    _handles.add(weakref.ref(handle))
    if len(_handles) > _HANDLES_MANY:
        _handles.difference_update([one for one in tuple(_handles) if one() is None])


@atexit.register
def _end_all() -> None:
    """End all operators, so that no thread of theirs runs while Python shuts down."""
    for one in tuple(_handles):
        if (handle := one()) is not None:
            handle.end()


class OperatorHandle:
    """An operator in C. Calls release the GIL, and any thread may make any call at any time.

    `end` stops the operator's thread. The memory is freed with the last reference, so a late call, or one still
    running, finds a valid operator, which answers that it has ended.

    What undoes something is C alone, and can be called in a `finally` (handover.py): `resume` after `pause`, whether
    that came through or not; `unwatch` with the descriptor of `watch`; `cancel`, which makes every call that waits, now
    or later, return.
    """

    def __init__(
        self,
        window: tuple[int, int],
        column_types: list[str],
        strings: list[int],
        keys: int,
        aggregates: list[AggregatePlan],
        inputs: int,
        design: str,
        threads: int,
        levels: int,
        max_pending: int,
    ) -> None:
        query, _alive = query_struct(window, column_types, strings, keys, aggregates)
        arguments = (query, inputs, DESIGNS[design], threads, levels, max_pending)
        self.pointer = new_object(lib.ps_operator_new, lib.ps_operator_free, "ps_operator", *arguments)
        self._pid = os.getpid()
        self._ended = False
        _end_at_exit(self)
        self.resume = partial(lib.ps_operator_resume, self.pointer)
        self.unwatch = partial(lib.ps_operator_unwatch, self.pointer)
        self.cancel = partial(lib.ps_operator_cancel, self.pointer)

    @property
    def live(self) -> Any:
        """The operator, for one call; ClosedError once it has ended."""
        if self._ended or self._pid != os.getpid():  # its thread does not live in a forked child
            raise errors.ClosedError("the operator has ended")
        return self.pointer

    def add(self, input: int, number: int, offer: Offer) -> bool:
        """Hand the batch over; False when the input has no room for it."""
        fault = ffi.new("ps_fault *")
        code = lib.ps_operator_add_view(self.live, input, number, offer.bytes, offer.array, fault)
        raise_if_broken(code)
        if code not in (lib.PS_OK, lib.PS_FULL):
            raise Fault(code, fault)
        return bool(code == lib.PS_OK)

    def feed(self, inputs: list[int]) -> Feed:
        """For handing over large batches of these inputs, by one thread."""
        return Feed(self, inputs)

    def wait_space(self, input: int, rows: int, ms: int) -> bool:
        """Wait until the input has room for `rows` rows; False when the time is over."""
        code = lib.ps_operator_wait_space(self.live, input, rows, ms)
        if code == lib.PS_CLOSED:
            raise Fault(code, ffi.new("ps_fault *"))
        return bool(code == lib.PS_OK)

    def heartbeat(self, input: int, ts: int) -> None:
        """Promise that the input sends nothing below `ts` any more."""
        fault = ffi.new("ps_fault *")
        code = lib.ps_operator_heartbeat(self.live, input, ts, fault)
        raise_if_broken(code)
        if code != lib.PS_OK:
            raise Fault(code, fault)

    def close(self, input: int) -> None:
        """Promise that the input sends nothing more."""
        lib.ps_operator_close(self.live, input)

    def take(self, taken: Taken, ms: int, schema: pa.Schema) -> bool:
        """Fill `taken`, unless it is filled; False when there is nothing in time; StopIteration at the end."""
        op = self.live
        if taken.is_filled:
            return True
        fault = ffi.new("ps_fault *")
        code = lib.ps_operator_take(op, ms, taken.rows, taken.journal, fault)
        if code == lib.PS_END:
            raise StopIteration
        raise_if_broken(code)
        if code not in (lib.PS_OK, lib.PS_EMPTY):
            raise self._window_fault(code, fault, schema)
        return bool(code == lib.PS_OK)

    def _window_fault(self, code: int, fault: Any, schema: pa.Schema) -> Fault:
        """What went wrong in a window, with the window's name."""
        error = Fault(code, fault)
        if code in (lib.PS_OVERFLOW, lib.PS_UDF_FAILED):
            name = new_array()
            raise_if_broken(lib.ps_operator_fault_key(self.live, fault, name))
            fields = [schema.field(i) for i in range(name.n_children)]
            error.window = imported(name, pa.schema(fields))
        return error

    def watch(self, descriptor: int) -> bool:
        """Have a byte written to the descriptor once `take` has something to say; False when another one has that."""
        return bool(lib.ps_operator_watch(self.live, descriptor) == lib.PS_OK)

    def end(self) -> None:
        """Cancel, and wait until the operator's thread is gone."""
        self._ended = True
        lib.ps_operator_end(self.pointer)

    def stats(self) -> dict[str, int]:
        """Counters."""
        return struct_fields("ps_stats", lambda out: lib.ps_operator_stats(self.live, out))

    def input_stats(self, input: int) -> dict[str, int]:
        """What is known of one input."""
        return struct_fields("ps_input_stats", lambda out: lib.ps_operator_input_stats(self.live, input, out))

    def stall(self) -> dict[str, int]:
        """Which input is furthest behind, and what waits for it."""
        return struct_fields("ps_stall", lambda out: lib.ps_operator_stall(self.live, out))

    def unread(self, ms: int = 0) -> dict[str, int]:
        """What waits for the reader; waits itself while nothing does and something may soon."""
        return struct_fields("ps_unread", lambda out: lib.ps_operator_unread(self.live, ms, out))

    # ---- snapshots ----

    def pause(self) -> None:
        """Let everything stand still until `resume`, which the same thread must call even if this raises."""
        code = lib.PS_EMPTY
        while code == lib.PS_EMPTY:
            code = lib.ps_operator_pause(self.live, WAIT_MS)
        if code != lib.PS_OK:
            raise Fault(code, ffi.new("ps_fault *"))

    def save_windows(self) -> pa.RecordBatch:
        """The open windows."""
        out = new_array()
        raise_if_broken(lib.ps_operator_save_windows(self.pointer, out))
        return imported(out, SAVED_WINDOWS)

    def save_slices(self) -> tuple[pa.RecordBatch, int]:
        """The slices, in the same columns, and the lowest start of a window that is not out yet."""
        out, start_next = new_array(), ffi.new("int64_t *")
        raise_if_broken(lib.ps_operator_save_slices(self.pointer, out, start_next))
        return imported(out, SAVED_WINDOWS), start_next[0]

    def save_pending(self, input: int, schema: pa.Schema) -> pa.RecordBatch:
        """The tuples of an input that are in no window yet: batch number, row, and the columns that C has."""
        out = new_array()
        raise_if_broken(lib.ps_operator_save_pending(self.pointer, input, out))
        return imported(out, pa.schema([*SAVED_TUPLE, *schema]))

    def load_windows(self, windows: pa.RecordBatch, slices: pa.RecordBatch, start_next: int) -> None:
        """Put saved windows and slices into an operator that is new."""
        arrays, fault = (exported(windows), exported(slices)), ffi.new("ps_fault *")
        code = lib.ps_operator_load_windows(self.pointer, *arrays, start_next, fault)
        raise_if_broken(code)
        if code != lib.PS_OK:
            raise Fault(code, fault)

    def limit(self, max_pending: int) -> None:
        """Change max_pending."""
        lib.ps_operator_limit(self.live, max_pending)

    def bulk(self, rows: int) -> None:
        """Let `take` wait for `rows` rows or the end, however long it takes."""
        lib.ps_operator_bulk(self.live, rows)

    def keep(self, rows: int) -> None:
        """Count `rows` rows as not taken yet."""
        lib.ps_operator_keep(self.pointer, rows)


class Offer:
    """A batch for `Handle.add`, which moves it out when it takes it."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.array = exported(batch)
        self.bytes: int = batch.get_total_buffer_size()  #: of its buffers, of which it may view only some

    @property
    def is_taken(self) -> bool:
        """Whether the batch is the operator's, as far as there is one: of no rows nothing is taken."""
        return bool(self.array.release == ffi.NULL)


class Taken:
    """What `Handle.take` took: it stays here, whatever is raised meanwhile, as long as this object."""

    def __init__(self) -> None:
        self.rows, self.journal = new_array(), new_array()
        self.replay: Any = None  #: how far the user's objects have come with it

    @property
    def is_filled(self) -> bool:
        """Whether there is anything."""
        return bool(self.rows.release != ffi.NULL)

    @property
    def num_rows(self) -> int:
        """How many rows are here."""
        return int(self.rows.length) if self.is_filled else 0

    def batches(self, schema: pa.Schema, journal_schema: pa.Schema) -> tuple[pa.RecordBatch, pa.RecordBatch]:
        """Finished rows and the journal of user objects."""
        return imported(self.rows, schema), imported(self.journal, journal_schema)


class Feed:
    """Batches of some inputs that are taken in pieces, the input that has come least far in time first.

    `end` must be called at last, in a `finally`: nothing more will be handed over. It is C alone, like what undoes
    something in `Handle`.
    """

    def __init__(self, operator: OperatorHandle, inputs: list[int]) -> None:
        self._operator = operator
        self._inputs = inputs
        self._feeds = ffi.new("ps_feed[]", [{"input": i} for i in inputs])
        self._arrays: dict[int, Any] = {}  # what the feeds point to
        self.at = inputs[0]  #: the input that `run` was at
        self.end = partial(lib.ps_operator_feed_end, operator.pointer, len(inputs), self._feeds)

    def put(self, input: int, batch: pa.RecordBatch) -> None:
        """Give an input that has none its next batch."""
        array = self._arrays[input] = exported(batch)
        feed = self._feeds[self._inputs.index(input)]
        feed.row, feed.batch = 0, array

    def run(self, cut: int) -> int:
        """Add batches in pieces of `cut` rows, waiting for room, until one is taken whole; gives its input.

        A Fault leaves the pieces before it there.
        """
        which, fault = ffi.new("int32_t *"), ffi.new("ps_fault *")
        code = lib.ps_operator_feed(self._operator.live, len(self._inputs), self._feeds, cut, which, fault)
        self.at = self._inputs[which[0]]
        raise_if_broken(code)
        if code != lib.PS_OK:
            raise Fault(code, fault)
        return self.at
