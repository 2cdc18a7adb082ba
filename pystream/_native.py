"""The only module that touches the compiled extension: handles, codes, and what they mean in Python."""

from __future__ import annotations

import atexit
import os
import struct
import weakref
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystream import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import numpy as np
    from numpy.typing import NDArray

    from pystream.plan import AggregatePlan

try:
    from pystream._core import ffi, lib
except ImportError as error:  # a source tree without a build
    raise ImportError(
        "the compiled part of pystream is missing; install the package with `pip install .` in its source tree",
    ) from error

ABI = 15
if lib.PS_ABI != ABI:
    raise ImportError("the compiled part of pystream is of another version; install again with `pip install .`")

#: How long one C call may wait before Python looks for signals such as Ctrl-C.
WAIT_MS = 50

#: How high the lists of T-Gate and W-Hive can be.
LEVELS_MAX = lib.PS_LEVELS_MAX
WINDOWS_MAX = lib.PS_WINDOWS_MAX

DESIGNS = {
    "mq": lib.PS_MQ,
    "mq-lf": lib.PS_MQ_LF,
    "tuml-sc": lib.PS_TUML_SC,
    "tuml-mc": lib.PS_TUML_MC,
    "wiml": lib.PS_WIML,
    "sliced": lib.PS_SLICED,
    "runs": lib.PS_RUNS,
}
FUNCTIONS = {
    name: getattr(lib, f"PS_{name.upper()}") for name in ("count", "sum", "avg", "min", "max", "first", "last", "udf")
} | {"native_udf": lib.PS_NATIVE}
TYPES = {
    name: getattr(lib, f"PS_{name}")
    for name in ("BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64", "F32", "F64", "BYTES32", "BYTES64")
}


class Fault(Exception):  # noqa: N818 - not an error for users: the operator turns it into one
    """A C call failed: the code and the numbers that go with it."""

    def __init__(self, code: int, fault: Any) -> None:
        super().__init__(code)
        self.code = code
        self.row = fault.row
        self.ts = fault.ts
        self.latest = fault.latest
        self.aggregate = fault.aggregate
        self.user_code = fault.code
        self.stream, self.position = fault.stream, fault.position
        self.window: pa.RecordBatch | None = None  # start and key of the window, one row


class Done:
    """Whether a C call has been made, and what it answered: known even if an exception comes right behind it.

    When a call returns, Python may raise an exception from outside (handover.py) before the result has a name. A loop
    over a C iterator names it first.
    """

    code: int | None = None

    def call(self, function: Any, *arguments: Any) -> int:
        """Make the call, once."""
        code: int = lib.PS_EMPTY
        for self.code in map(function, *((a,) for a in arguments)):
            code = self.code
        return code

    @property
    def is_ok(self) -> bool:
        """Whether it has done what it should."""
        return bool(self.code == lib.PS_OK)

    @property
    def is_refused(self) -> bool:
        """Whether it has failed."""
        return self.code is not None and not self.is_ok


def _made(new: Any, free: Any, kind: str, *arguments: Any) -> Any:
    """An object that C makes and that is freed with the last reference, also if an exception comes right behind."""
    out = ffi.new(f"{kind} **")
    code = lib.PS_OK
    for code in map(new, *((a,) for a in (*arguments, out))):  # noqa: B007 - used afterwards
        made = ffi.gc(out[0], free)
    _raise_fault(code, ffi.new("ps_fault *"))
    return made


def _raise_if_broken(code: int) -> None:
    """Turn the codes that mean the same everywhere into exceptions."""
    if code == lib.PS_NO_MEMORY:
        raise MemoryError("pystream could not allocate memory")
    if code == lib.PS_NO_THREAD:
        raise errors.PystreamError("the system refused to start a thread")


#: Operators that may have threads. No callback takes them out: an interrupt in one would be swallowed.
_handles: set[weakref.ref[Handle]] = set()

#: More than these, and the dead ones are taken out.
_HANDLES_MANY = 256


def _end_at_exit(handle: Handle) -> None:
    _handles.add(weakref.ref(handle))
    if len(_handles) > _HANDLES_MANY:
        _handles.difference_update([one for one in tuple(_handles) if one() is None])


@atexit.register
def _end_all() -> None:
    """Let no thread of ours run on while Python is taken down."""
    for one in tuple(_handles):
        if (handle := one()) is not None:
            handle.end()


class Handle:
    """An operator in C. Calls release the GIL, and any thread may make any call at any time.

    `end` stops the operator's thread; the memory goes with the last reference, so a call that comes late or is still
    under way finds a valid operator, which answers that it has ended.

    What undoes something is C alone, and can be called in a `finally` (handover.py): `resume` after `pause`, whether
    that came through or not; `unwatch` with the descriptor of `watch`; `cancel`, which makes every call that waits, now
    or later, return.
    """

    def __init__(
        self,
        window: tuple[int, int],
        column_types: list[str],
        text: list[bool],
        keys: int,
        aggregates: list[AggregatePlan],
        inputs: int,
        design: str,
        threads: int,
        levels: int,
        max_pending: int,
    ) -> None:
        types = ffi.new("ps_type[]", [TYPES[t] for t in column_types])
        alive: list[Any] = []  # what `each` points to
        each = ffi.new("ps_aggregate[]", [_aggregate(a, alive) for a in aggregates])
        texts = ffi.new("uint8_t[]", text)
        query = ffi.new("ps_query *", (*window, len(column_types), types, keys, len(aggregates), each, texts))
        arguments = (query, inputs, DESIGNS[design], threads, levels, max_pending)
        self._operator = _made(lib.ps_operator_new, lib.ps_operator_free, "ps_operator", *arguments)
        self._pid = os.getpid()
        self._ended = False
        _end_at_exit(self)
        self.resume = partial(lib.ps_operator_resume, self._operator)
        self.unwatch = partial(lib.ps_operator_unwatch, self._operator)
        self.cancel = partial(lib.ps_operator_cancel, self._operator)

    @property
    def _op(self) -> Any:
        """The operator, for one call."""
        if self._ended or self._pid != os.getpid():  # its thread does not live in a forked child
            raise errors.ClosedError("the operator has ended")
        return self._operator

    def add(self, input: int, number: int, offer: Offer) -> bool:
        """Hand the batch over; False when the input has no room for it."""
        fault = ffi.new("ps_fault *")
        code = lib.ps_operator_add_view(self._op, input, number, offer.bytes, offer.array, fault)
        _raise_if_broken(code)
        if code not in (lib.PS_OK, lib.PS_FULL):
            raise Fault(code, fault)
        return bool(code == lib.PS_OK)

    def feed(self, inputs: list[int]) -> Feed:
        """For handing over large batches of these inputs, by one thread."""
        return Feed(self, inputs)

    def wait_space(self, input: int, rows: int, ms: int) -> bool:
        """Wait until the input has room for so many rows; False when the time is over."""
        code = lib.ps_operator_wait_space(self._op, input, rows, ms)
        if code == lib.PS_CLOSED:
            raise Fault(code, ffi.new("ps_fault *"))
        return bool(code == lib.PS_OK)

    def heartbeat(self, input: int, ts: int) -> None:
        """Promise that the input sends nothing below `ts` any more."""
        fault = ffi.new("ps_fault *")
        code = lib.ps_operator_heartbeat(self._op, input, ts, fault)
        _raise_if_broken(code)
        if code != lib.PS_OK:
            raise Fault(code, fault)

    def close(self, input: int) -> None:
        """Promise that the input sends nothing more."""
        lib.ps_operator_close(self._op, input)

    def take(self, taken: Taken, ms: int, schema: pa.Schema) -> bool:
        """Fill `taken`, unless it is filled; False when there is nothing in time; StopIteration at the end."""
        op = self._op
        if taken.is_filled:
            return True
        fault = ffi.new("ps_fault *")
        code = lib.ps_operator_take(op, ms, taken.rows, taken.journal, fault)
        if code == lib.PS_END:
            raise StopIteration
        _raise_if_broken(code)
        if code not in (lib.PS_OK, lib.PS_EMPTY):
            raise self._window_fault(code, fault, schema)
        return bool(code == lib.PS_OK)

    def _window_fault(self, code: int, fault: Any, schema: pa.Schema) -> Fault:
        """What went wrong in a window, with the window's name."""
        error = Fault(code, fault)
        if code in (lib.PS_OVERFLOW, lib.PS_UDF_FAILED):
            name = _new_array()
            _raise_if_broken(lib.ps_operator_fault_key(self._op, fault, name))
            fields = [schema.field(i) for i in range(name.n_children)]
            error.window = _import(name, pa.schema(fields))
        return error

    def watch(self, descriptor: int) -> bool:
        """Have a byte written to the descriptor once `take` has something to say; False when another one has that."""
        return bool(lib.ps_operator_watch(self._op, descriptor) == lib.PS_OK)

    def end(self) -> None:
        """Cancel, and wait until the operator's thread is gone."""
        self._ended = True
        lib.ps_operator_end(self._operator)

    def stats(self) -> dict[str, int]:
        """Counters."""
        return _fields("ps_stats", lambda out: lib.ps_operator_stats(self._op, out))

    def input_stats(self, input: int) -> dict[str, int]:
        """What is known of one input."""
        return _fields("ps_input_stats", lambda out: lib.ps_operator_input_stats(self._op, input, out))

    def stall(self) -> dict[str, int]:
        """Which input is furthest behind, and what waits for it."""
        return _fields("ps_stall", lambda out: lib.ps_operator_stall(self._op, out))

    def unread(self, ms: int = 0) -> dict[str, int]:
        """What waits for the reader; waits itself while nothing does and something may soon."""
        return _fields("ps_unread", lambda out: lib.ps_operator_unread(self._op, ms, out))

    # ---- snapshots ----

    def pause(self) -> None:
        """Let everything stand still until `resume`, which the same thread must call even if this raises."""
        code = lib.PS_EMPTY
        while code == lib.PS_EMPTY:
            code = lib.ps_operator_pause(self._op, WAIT_MS)
        if code != lib.PS_OK:
            raise Fault(code, ffi.new("ps_fault *"))

    def save_windows(self) -> pa.RecordBatch:
        """The open windows."""
        out = _new_array()
        _raise_if_broken(lib.ps_operator_save_windows(self._operator, out))
        return _import(out, SAVED_WINDOWS)

    def save_slices(self) -> tuple[pa.RecordBatch, int]:
        """The slices, in the same columns, and the lowest start of a window that is not out yet."""
        out, start_next = _new_array(), ffi.new("int64_t *")
        _raise_if_broken(lib.ps_operator_save_slices(self._operator, out, start_next))
        return _import(out, SAVED_WINDOWS), start_next[0]

    def save_pending(self, input: int, schema: pa.Schema) -> pa.RecordBatch:
        """The tuples of an input that are in no window yet: batch number, row, and the columns that C has."""
        out = _new_array()
        _raise_if_broken(lib.ps_operator_save_pending(self._operator, input, out))
        return _import(out, pa.schema([*SAVED_TUPLE, *schema]))

    def load_windows(self, windows: pa.RecordBatch, slices: pa.RecordBatch, start_next: int) -> None:
        """Put saved windows and slices into an operator that is new."""
        arrays, fault = (_exported(windows), _exported(slices)), ffi.new("ps_fault *")
        code = lib.ps_operator_load_windows(self._operator, *arrays, start_next, fault)
        _raise_if_broken(code)
        if code != lib.PS_OK:
            raise Fault(code, fault)

    def limit(self, max_pending: int) -> None:
        """Change max_pending."""
        lib.ps_operator_limit(self._op, max_pending)

    def bulk(self, rows: int) -> None:
        """Let `take` wait for so many rows, or the end, however long it takes."""
        lib.ps_operator_bulk(self._op, rows)

    def keep(self, rows: int) -> None:
        """Count so many rows as not taken yet."""
        lib.ps_operator_keep(self._operator, rows)


#: What C gives of a window, and what comes before the columns of a pending tuple.
SAVED_WINDOWS = pa.schema(
    [("start", pa.int64()), ("key", pa.large_binary()), ("state", pa.large_binary()), ("number", pa.int64())],
)
SAVED_TUPLE = pa.schema([("batch", pa.int64()), ("row", pa.int64())])


def _fields(struct: str, fill: Callable[[Any], None]) -> dict[str, int]:
    """The numbers of a struct that C fills in, by name."""
    out = ffi.new(f"{struct} *")
    fill(out)
    return {name: getattr(out, name) for name, _ in ffi.typeof(struct).fields}


class Offer:
    """A batch for `Handle.add`, which moves it out when it takes it."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.array = _exported(batch)
        self.bytes: int = batch.get_total_buffer_size()  #: of its buffers, of which it may view only some

    @property
    def is_taken(self) -> bool:
        """Whether the batch is the operator's, as far as there is one: of no rows nothing is taken."""
        return bool(self.array.release == ffi.NULL)


class Taken:
    """What `Handle.take` took: it stays here, whatever is raised meanwhile, as long as this object."""

    def __init__(self) -> None:
        self.rows, self.journal = _new_array(), _new_array()
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
        return _import(self.rows, schema), _import(self.journal, journal_schema)


class Feed:
    """Batches of some inputs that are taken in pieces, the input that has come least far in time first.

    `end` must be called at last, in a `finally`: nothing more will be handed over. It is C alone, like what undoes
    something in `Handle`.
    """

    def __init__(self, operator: Handle, inputs: list[int]) -> None:
        self._operator = operator
        self._inputs = inputs
        self._feeds = ffi.new("ps_feed[]", [{"input": i} for i in inputs])
        self._arrays: dict[int, Any] = {}  # what the feeds point to
        self.at = inputs[0]  #: the input that `run` was at
        self.end = partial(lib.ps_operator_feed_end, operator._operator, len(inputs), self._feeds)

    def put(self, input: int, batch: pa.RecordBatch) -> None:
        """Give an input that has none its next batch."""
        array = self._arrays[input] = _exported(batch)
        feed = self._feeds[self._inputs.index(input)]
        feed.row, feed.batch = 0, array

    def run(self, cut: int) -> int:
        """Hand batches over in pieces of so many rows, waiting for room, until one is taken whole: the input's number.

        A Fault leaves the pieces before it there.
        """
        which, fault = ffi.new("int32_t *"), ffi.new("ps_fault *")
        code = lib.ps_operator_feed(self._operator._op, len(self._inputs), self._feeds, cut, which, fault)
        self.at = self._inputs[which[0]]
        _raise_if_broken(code)
        if code != lib.PS_OK:
            raise Fault(code, fault)
        return self.at


def _aggregate(plan: AggregatePlan, alive: list[Any]) -> tuple[Any, ...]:
    """The fields of a ps_aggregate."""
    if plan.native is None:
        return FUNCTIONS[plan.function], plan.column, plan.mask, ffi.NULL
    columns = ffi.new("int32_t[]", plan.native_columns)
    process = ffi.cast("ps_native_process", plan.native.process)
    produce = ffi.cast("ps_native_produce", plan.native.produce)
    native = ffi.new("ps_native *", (process, produce, plan.native.state_size, len(plan.native_columns), columns))
    alive += [columns, native]
    return FUNCTIONS[plan.function], 0, plan.mask, native


def _new_array() -> Any:
    """An Arrow array for C to read or fill. What nobody moves out is released with it, even if Ctrl-C comes between."""
    return ffi.gc(ffi.new("struct ArrowArray *"), lib.ps_arrow_release)


def _import(array: Any, schema: pa.Schema) -> pa.RecordBatch:
    """The array as a batch. It stays as it is, so that it can be imported again if an exception comes on the way."""
    reference = _new_array()
    _raise_if_broken(lib.ps_arrow_share(array, reference))
    return pa.RecordBatch._import_from_c(int(ffi.cast("uintptr_t", reference)), schema)


def is_closed(fault: Fault) -> bool:
    """Whether the call came too late."""
    return bool(fault.code == lib.PS_CLOSED)


def is_overflow(fault: Fault) -> bool:
    """Whether a sum of integers left int64."""
    return bool(fault.code == lib.PS_OVERFLOW)


def is_overlap(fault: Fault) -> bool:
    """Whether a tuple falls into more than WINDOWS_MAX windows."""
    return bool(fault.code == lib.PS_OVERLAP)


def is_udf_failure(fault: Fault) -> bool:
    """Whether a native udf gave a code other than 0."""
    return bool(fault.code == lib.PS_UDF_FAILED)


def strings_sound(array: pa.Array, *, wide: bool, text: bool) -> bool:
    """Whether all strings lie in their data, and are UTF-8 if they have to be; False: let Arrow look closer.

    The array is one that Arrow has found valid as far as it does so without looking at its values.
    """
    _, offsets, data = array.buffers()
    if offsets is None or offsets.address % (8 if wide else 4):
        return len(array) == 0
    start, size = (data.address, data.size) if data is not None else (0, 0)
    where = ffi.new(
        "ps_strings *",
        (ffi.cast("void *", offsets.address), wide, text, array.offset, len(array), ffi.cast("uint8_t *", start), size),
    )
    return bool(lib.ps_strings_sound(where))


class ExactSum:
    """The exact sum of floats, whatever the order; see csrc/base/exact_sum.h."""

    def __init__(self) -> None:
        self._sum = ffi.gc(lib.ps_exact_sum_new(), lib.ps_exact_sum_free)

    def add(self, values: list[float]) -> None:
        """Add all values."""
        _raise_if_broken(lib.ps_exact_sum_add_all(self._sum, ffi.new("double[]", values), len(values)))

    def combine(self, other: ExactSum) -> None:
        """Add another sum."""
        _raise_if_broken(lib.ps_exact_sum_combine(self._sum, other._sum))

    def round(self) -> float:
        """Give the double nearest to the exact sum."""
        return float(lib.ps_exact_sum_round(self._sum))

    def mean(self, n: int) -> float:
        """Give the double nearest to the exact sum divided by n."""
        return float(lib.ps_exact_sum_mean(self._sum, n))


def memory_live() -> int:
    """How many allocations of the C core are alive."""
    return int(lib.ps_memory_live())


def memory_fail_after(allocations: int) -> None:
    """Let so many allocations minus one succeed and then fail all; 0 switches it off. For tests."""
    lib.ps_memory_fail_after(allocations)


#: How a ps_t_gate_tuple lies in memory: many are read faster at once than field by field.
T_GATE_TUPLE = struct.Struct("=qQi4x")


class TGateHandle:
    """A T-Gate in C; tuples carry tokens. Calls release the GIL, and any thread may make any call at any time."""

    def __init__(self, inputs: int, readers: int) -> None:
        self._gate = _made(lib.ps_t_gate_new, lib.ps_t_gate_free, "ps_t_gate", inputs, readers)

    def insert_tuples(self, done: Done, input: int, ts: Any, token: int) -> None:
        """Insert one tuple per timestamp, with the tokens token, token + 1, ...: all of them or none.

        `ts` is a list of integers, or a buffer of int64 that is contiguous.
        """
        times = ffi.new("int64_t[]", ts) if isinstance(ts, list) else ffi.from_buffer("int64_t[]", ts)
        fault = ffi.new("ps_fault *")
        arguments = (self._gate, input, len(times), times, token, fault)
        _raise_fault(done.call(lib.ps_t_gate_insert_tuples, *arguments), fault)

    def heartbeat(self, input: int, ts: int) -> None:
        """Promise that the input sends nothing below `ts` any more."""
        fault = ffi.new("ps_fault *")
        _raise_fault(lib.ps_t_gate_heartbeat(self._gate, input, ts, fault), fault)

    def close(self, input: int) -> None:
        """Promise that the input sends nothing more."""
        lib.ps_t_gate_close(self._gate, input)

    def get_ready_tuples(self, reader: int, ready: ReadyTuples) -> None:
        """Fill `ready`, unless there is something in it."""
        if not ready.got[0]:
            lib.ps_t_gate_get_ready_tuples(self._gate, reader, ready.most, ready.out, ready.got)

    def position(self, reader: int) -> int:
        """The least timestamp that can still reach the reader, as far as it has looked."""
        return int(lib.ps_t_gate_position(self._gate, reader))

    def finished(self, reader: int) -> bool:
        """Whether the reader has come to the end of all inputs."""
        return bool(lib.ps_t_gate_ended(self._gate, reader))


class ReadyTuples:
    """What a reader of a T-Gate was given, up to `most` tuples: it stays here as long as this object."""

    def __init__(self, most: int) -> None:
        self.most, self.out, self.got = most, ffi.new("ps_t_gate_tuple[]", most), ffi.new("int64_t *")

    def tuples(self) -> list[tuple[int, int, int]]:
        """As (ts, token, input)."""
        return list(T_GATE_TUPLE.iter_unpack(ffi.buffer(self.out, self.got[0] * T_GATE_TUPLE.size)))


def _raise_fault(code: int, fault: Any) -> None:
    """Whatever is not PS_OK as an exception."""
    _raise_if_broken(code)
    if code != lib.PS_OK:
        raise Fault(code, fault)


class WHiveHandle:
    """A W-Hive in C; keys are numbers. Calls release the GIL, and any thread may make any call at any time."""

    def __init__(self, window: tuple[int, int], function: str, threads: int) -> None:
        arguments = (*window, FUNCTIONS[function], threads)
        self._hive = _made(lib.ps_w_hive_new, lib.ps_w_hive_free, "ps_w_hive", *arguments)
        self.ended = False

    def update_windows(self, thread: int, rows: int, columns: list[Any]) -> None:
        """Add rows: int64 timestamps, key numbers and values, doubles, and the bitmaps of ps_w_hive_tuples."""
        held = [ffi.from_buffer(f"{type}[]", c) for type, c in zip(_TUPLES, columns, strict=True)]
        tuples, fault = ffi.new("ps_w_hive_tuples *", (rows, *held)), ffi.new("ps_fault *")
        code = lib.ps_w_hive_update_windows(self._hive, thread, tuples, fault)
        if code == lib.PS_NO_MEMORY and rows > 1:
            raise MemoryError(f"pystream could not allocate memory; the rows before row {fault.row} have been taken")
        _raise_fault(code, fault)

    def heartbeat(self, thread: int, ts: int) -> None:
        """Promise that the thread adds nothing below `ts` any more."""
        fault = ffi.new("ps_fault *")
        _raise_fault(lib.ps_w_hive_heartbeat(self._hive, thread, ts, fault), fault)

    def close(self, thread: int) -> None:
        """Promise that the thread adds nothing more."""
        lib.ps_w_hive_close(self._hive, thread)

    def get_next_winset(self, winset: Winset, schema: pa.Schema) -> pa.RecordBatch | None:
        """The rows of `winset`, filled first unless it is; None when there are none: `ended`, if that is for good."""
        code = lib.PS_EMPTY if winset.done.code is None else winset.done.code
        if code not in (lib.PS_OK, lib.PS_OVERFLOW):
            code = winset.done.call(lib.ps_w_hive_get_next_winset, self._hive, winset.rows, winset.fault)
        self.ended = bool(code == lib.PS_END)
        if code in (lib.PS_EMPTY, lib.PS_END):
            return None
        _raise_fault(code, winset.fault)
        return _import(winset.rows, schema)

    def limit(self) -> int:
        """The windows that start before this are complete; 2**64 - 1 when all threads have closed."""
        return int(lib.ps_w_hive_limit(self._hive))


class Winset:
    """What the reader of a W-Hive was given, rows or the failure of a winset: it stays here as long as this object."""

    def __init__(self) -> None:
        self.rows, self.fault, self.done = _new_array(), ffi.new("ps_fault *"), Done()


_TUPLES = ("int64_t", "int64_t", "int64_t", "double", "uint8_t", "uint8_t", "uint8_t")


class FoldHandle:
    """A fold in C (csrc/partials/fold.h). Calls release the GIL; one thread at a time may make them."""

    def __init__(
        self,
        window: tuple[int, int],
        column_types: list[str],
        text: list[bool],
        keys: int,
        aggregates: list[AggregatePlan],
        stream: int,
        position: int,
        start: int,
    ) -> None:
        types = ffi.new("ps_type[]", [TYPES[t] for t in column_types])
        each = ffi.new("ps_aggregate[]", [_aggregate(a, []) for a in aggregates])
        texts = ffi.new("uint8_t[]", text)
        query = ffi.new("ps_query *", (*window, len(column_types), types, keys, len(aggregates), each, texts))
        self._fold = _made(lib.ps_fold_new, lib.ps_fold_free, "ps_fold", query, stream, position, start)

    def add_rows(self, rows: pa.RecordBatch, done: Done | None = None) -> None:
        """Fold rows."""
        array, fault = _exported(rows), ffi.new("ps_fault *")
        _raise_fault((done or Done()).call(lib.ps_fold_add_rows, self._fold, array, fault), fault)

    def add_partials(self, partials: pa.RecordBatch, *, held: bool) -> None:
        """Fold partials; `held`: they are what another fold with the same start held."""
        array, fault = _exported(partials), ffi.new("ps_fault *")
        _raise_fault(lib.ps_fold_add_partials(self._fold, array, held, fault), fault)

    def get_partials(self, start: int, most: int, schema: pa.Schema) -> pa.RecordBatch | None:
        """Up to so many entries from number `start` on; None at the end."""
        out = _new_array()
        code = lib.ps_fold_get_partials(self._fold, start, most, out)
        if code == lib.PS_END:
            return None
        _raise_fault(code, ffi.new("ps_fault *"))
        return _import(out, schema)

    def get_keys(self, schema: pa.Schema) -> pa.RecordBatch:
        """The keys by number: the first column says it, the others are theirs."""
        out = _new_array()
        _raise_fault(lib.ps_fold_get_keys(self._fold, out), ffi.new("ps_fault *"))
        return _import(out, schema)

    def pack(self, shards: NDArray[np.uint16], count: int) -> Iterator[tuple[int, bytes]]:
        """All entries as bytes: each shard that has some. `shards` has the shard of each key by number."""
        data, length = ffi.new("uint8_t **"), ffi.new("int64_t *")
        arguments = (self._fold, ffi.from_buffer("uint16_t[]", shards), count)
        pack = _made(lib.ps_pack_new, lib.ps_pack_free, "ps_pack", *arguments)
        for shard in range(count):
            _raise_if_broken(lib.ps_pack_get(pack, shard, data, length))
            if length[0]:
                yield shard, ffi.buffer(data[0], length[0])[:]

    def number_keys(self, keys: pa.RecordBatch) -> Any:
        """The numbers of keys here, for `add_packed`; the first column does not count."""
        numbers = ffi.new("uint32_t[]", keys.num_rows)
        _raise_fault(lib.ps_fold_number_keys(self._fold, _exported(keys), numbers), ffi.new("ps_fault *"))
        return numbers

    def add_packed(self, done: Done, numbers: Any, packed: memoryview) -> None:
        """Fold what `pack` gave, whole blocks of it; the keys have these numbers here."""
        fault = ffi.new("ps_fault *")
        data = ffi.from_buffer("uint8_t[]", packed)
        arguments = (self._fold, numbers, len(numbers), data, len(packed), fault)
        _raise_fault(done.call(lib.ps_fold_add_packed, *arguments), fault)

    def get_windows(self, windows: Windows, until: int | None, most: int, schema: pa.Schema) -> pa.RecordBatch | None:
        """What is in `windows`, filled first unless it is; None at the end.

        It is filled with the next windows that end at `until` or before (None: all of them), so many rows or more.
        """
        if windows.rows.release == ffi.NULL:
            fault = ffi.new("ps_fault *")
            last = 2**64 - 1 if until is None else until
            code = lib.ps_fold_get_windows(self._fold, last, most, windows.rows, fault)
            if code == lib.PS_END:
                return None
            _raise_if_broken(code)
            if code != lib.PS_OK:
                raise self._window_fault(code, fault, schema)
        return _import(windows.rows, schema)

    def _window_fault(self, code: int, fault: Any, schema: pa.Schema) -> Fault:
        """What went wrong in a window, with the window's name."""
        error = Fault(code, fault)
        if code == lib.PS_OVERFLOW:
            name = _new_array()
            _raise_if_broken(lib.ps_fold_fault_key(self._fold, fault, name))
            error.window = _import(name, pa.schema([schema.field(i) for i in range(name.n_children)]))
        return error

    @property
    def start(self) -> int:
        """The lowest start of a window that has not been put out."""
        return int(lib.ps_fold_start(self._fold))

    @property
    def entries(self) -> int:
        """How many (slice, key) are held."""
        return int(lib.ps_fold_entries(self._fold))

    @property
    def keys(self) -> int:
        """How many keys are known, held or not."""
        return int(lib.ps_fold_keys(self._fold))

    @property
    def bytes(self) -> int:
        """About how much memory is held."""
        return int(lib.ps_fold_bytes(self._fold))


class Windows:
    """What a fold was asked for: it stays here as long as this object."""

    def __init__(self) -> None:
        self.rows = _new_array()


def _exported(batch: pa.RecordBatch) -> Any:
    """The batch for C to read."""
    array = _new_array()
    batch._export_to_c(int(ffi.cast("uintptr_t", array)))
    return array


def is_disorder(fault: Fault) -> bool:
    """Whether a timestamp was below what it had to be."""
    return bool(fault.code == lib.PS_DISORDER)


def is_twice(fault: Fault) -> bool:
    """Whether a row turned up twice."""
    return bool(fault.code == lib.PS_TWICE)


#: What can be wrong with a partial, by Fault.user_code: which of its columns, and how.
PARTIAL_FAULTS = {
    lib.PS_BAD_SLICE: ("slice", "is where no slice of a window begins"),
    lib.PS_BAD_LATE: ("slice", "is in a window that has been put out already"),
    lib.PS_BAD_ROWS: ("rows", "is not a possible number of rows"),
    lib.PS_BAD_COUNT: ("n", "is below 0 or above the number of rows"),
    lib.PS_BAD_SUM: ("sum", "is not the sum of so many values"),
    lib.PS_BAD_VALUE: ("value", "is not a value of its column"),
    lib.PS_BAD_PLACE: ("ts", "is not in the slice, or the stream or position is missing"),
    lib.PS_BAD_PACK: ("pack", "is not what packing gives"),
}
LATE = PARTIAL_FAULTS[lib.PS_BAD_LATE]
