"""`WHive`: the paper's windows that several threads update, on its own."""

from __future__ import annotations

import itertools
import operator
import threading
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa

from pystream import _native
from pystream._engine.handover import Outbox
from pystream._engine.structures import INT64_MAX, MOST, in_range, refusal, timestamp, timestamps
from pystream._inputs.column_checks import sound_items
from pystream.errors import ClosedError, SumOverflowError
from pystream.functions import Aggregate
from pystream.query import Window

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import TracebackType

    import numpy.typing as npt

#: What a key may be: an int, a string, None, or a tuple of these.
Key = int | str | None | tuple[int | str | None, ...]

FUNCTIONS = ("count", "sum", "avg", "min", "max")
NULL, INTEGER, REAL = range(3)

#: Keys known, above which it may pay to forget some.
KEYS_LEAST = 1024


class WHive:
    """Windows that `threads` threads update at the same time; a winset comes out once it is complete.

    A winset is all windows of one start, by key. It is complete when no thread can add to it any more: each has been
    given, or has promised, a timestamp at or behind its end, or is closed. Winsets come out in order, each once, and
    only if a tuple fell into them. Use one Python thread per `thread` to have them run in parallel.

    The hive itself is lock-free, and its calls release the GIL: threads add to the same windows in atomic steps. Around
    it there are locks: one per `thread` and one for the reader, each held for a call, so that several Python threads
    that use the same number take turns; and one that all share, for the moment in which keys become numbers.

    `function` is `ps.count()`, or `ps.sum`, `ps.avg`, `ps.min`, `ps.max` of any column name: there is only one value,
    so the name says nothing. `first`, `last`, `arg_min`, `arg_max` and `udf` depend on an order that several
    threads do not have.

    After an exception from outside, such as Ctrl-C, tuples that were to be added are in the hive, all of them, or not
    at all; a winset that was not handed over comes with the next call.

    >>> hive = ps.WHive(ps.Window(size=10), ps.sum("value"), threads=2)
    >>> hive.update_windows(3, "a", 5, thread=0)
    >>> hive.update_windows(4, "a", 6, thread=1)
    >>> hive.update_windows(12, "b", 1, thread=0)
    >>> hive.get_next_winset()  # nothing: thread 1 may still add to the window [0, 10)
    >>> hive.heartbeat(1, ts=10)
    >>> hive.get_next_winset()
    (0, {'a': 11})
    """

    def __init__(self, window: Window, function: Aggregate, threads: int) -> None:
        if not isinstance(window, Window):
            raise TypeError(f"window must be a pystream.Window, not {window!r}")
        self.function = _checked(function)
        self.threads = in_range("threads", threads, 1, MOST)
        self._handle: _native.WHiveHandle | None
        self._handle = _native.WHiveHandle(window.ticks(None), self.function, self.threads)
        self._schema = _schema(self.function)
        self._out: Outbox[tuple[int, dict[Key, Any]]] = Outbox("W-Hive")
        # C knows keys as numbers. Both ways, for the keys that may be in a winset to come.
        self._numbers: dict[Key, int] = {}
        self._keys: dict[int, Key] = {}
        self._latest: dict[int, int] = {}  # the greatest timestamp that a number was given with
        self._next = itertools.count()
        self._spare: list[int] = []  # numbers whose keys were forgotten
        self._kept = 0  # keys that were left when some were forgotten last
        self._lock = threading.Lock()  # of all these

    # ---- threads ----

    def update_windows(self, ts: int, key: Key, value: float | None, thread: int) -> None:
        """Add a tuple to all windows that cover `ts`, which must not be below the thread's latest (DisorderError).

        `value` is an int (of 64 bits) or a float; None counts as a row without a value, like SQL's null. A window with
        integers only has the results of an integer column, else those of a column of floats.
        """
        which = in_range("thread", thread, 0, self.threads - 1)
        kind, integer, real = _value(value)
        when = timestamp(ts)
        rows = [np.array([x], np.int64) for x in (when, *self._number_all([key], when), integer)]
        self._update(which, rows, np.array([real]), np.array([kind], np.int8), one=True)

    def update_windows_batch(
        self, ts: npt.ArrayLike, keys: Iterable[Key], values: Iterable[float | None], thread: int
    ) -> None:
        """Add a tuple per row: all of them or, if anything is wrong with one, none.

        >>> hive = ps.WHive(ps.Window(size=10), ps.sum("value"), threads=1)
        >>> hive.update_windows_batch([3, 3, 4], ["a", "b", "a"], [1, 2, 3], thread=0)
        >>> hive.close(0)
        >>> hive.get_next_winset()
        (0, {'a': 4, 'b': 2})
        """
        which = in_range("thread", thread, 0, self.threads - 1)
        times = timestamps(ts)
        numbers = self._number_all(_items(keys, "keys"), int(times.max(initial=-1)))
        kinds, integers, reals = _values(values)
        if not len(times) == len(numbers) == len(kinds):
            raise ValueError(f"{len(times)} timestamps, {len(numbers)} keys and {len(kinds)} values")
        if numbers:
            self._update(which, [times, np.array(numbers, np.int64), integers], reals, kinds, one=False)

    def _update(self, thread: int, numbers: list[Any], reals: Any, kinds: Any, *, one: bool) -> None:
        bitmaps = [np.packbits(b, bitorder="little") for b in (kinds == INTEGER, kinds == REAL, kinds != NULL)]
        try:
            self._open().update_windows(thread, len(kinds), [*numbers, reals, *bitmaps])
        except _native.Fault as fault:
            raise refusal(fault, "thread", thread, None if one else fault.row) from None

    def heartbeat(self, thread: int, ts: int) -> None:
        """Promise that the thread adds nothing below `ts` any more. A promise already made does nothing."""
        which = in_range("thread", thread, 0, self.threads - 1)
        try:
            self._open().heartbeat(which, timestamp(ts))
        except _native.Fault as fault:
            raise refusal(fault, "thread", which, None) from None

    def close(self, thread: int) -> None:
        """Promise that the thread adds nothing more at all. Closing it again does nothing."""
        self._open().close(in_range("thread", thread, 0, self.threads - 1))

    # ---- the reader ----

    def get_next_winset(self) -> tuple[int, dict[Key, Any]] | None:
        """The next complete winset as (start, {key: result}), keys in order; None when there is none; never blocks.

        A sum of integers that leaves int64 is a SumOverflowError; the next call goes on with the next winset.
        """
        handle = self._open()
        for winset in self._out.take(lambda: self._bring(handle)):
            return winset
        return None

    def _bring(self, handle: _native.WHiveHandle) -> None:
        """Fetch a winset if none waits and there is one."""
        if self._out:
            return
        if self._out.stage is None:
            self._out.stage = _native.Winset()
        try:
            rows = handle.get_next_winset(self._out.stage, self._schema)
        except _native.Fault as fault:
            what = "a sum of integers does not fit into int64; give the values as floats"
            error = SumOverflowError(f"window {fault.ts}: {what}")
            self._out.stage = None  # it is told now
            raise error from None
        if rows is not None:
            start = rows.column("ts")[0].as_py()
            found = zip(rows.column("key").to_pylist(), _results(rows), strict=True)
            with self._lock:
                winset = [(self._keys[number], result) for number, result in found]
            self._out.put([(start, dict(sorted(winset, key=lambda row: _order(row[0]))))])
            with self._lock:  # not before: an exception until here makes the next call look the keys up once more
                self._forget(start)

    def position(self) -> int:
        """Every window that starts before this is complete; the largest int64 when all threads are closed."""
        return min(self._open().limit(), INT64_MAX)

    def finished(self) -> bool:
        """Whether the last `get_next_winset` gave None because all threads are closed and everything is out."""
        return self._open().ended

    # ---- ending ----

    def end(self) -> None:
        """Drop everything that the hive holds; every later call is a ClosedError."""
        self._handle = None  # a call that is under way in another thread keeps it until it returns
        self._out = Outbox("W-Hive")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _error: BaseException | None, _tb: TracebackType | None
    ) -> None:
        self.end()

    def _open(self) -> _native.WHiveHandle:
        handle = self._handle
        if handle is None:
            raise ClosedError("the W-Hive has ended")
        return handle

    def _number_all(self, given: list[Any], ts: int) -> list[int]:
        """The numbers of keys that come with timestamps up to `ts`."""
        keys = [_key(key) for key in given]
        with self._lock:
            return [self._number(key, ts) for key in keys]

    def _number(self, key: Key, ts: int) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._spare.pop() if self._spare else next(self._next)
            self._keys[number] = key  # first: who finds a number must find its key
            self._numbers[key] = number
        self._latest[number] = max(ts, self._latest.get(number, -1))
        return number

    def _forget(self, start: int) -> None:
        """Forget keys that were last given before `start`, where a winset begins that has been taken.

        Those that start before it have been taken too, and later ones have only tuples behind it. A call under way has
        a timestamp that is not before it either, or it is refused: its thread has not promised so much yet.
        """
        if len(self._numbers) <= 2 * self._kept + KEYS_LEAST:
            return
        for number in [number for number, ts in self._latest.items() if ts < start]:
            key = self._keys[number]
            if self._numbers.get(key) == number:
                del self._numbers[key]
            del self._keys[number], self._latest[number]
            self._spare.append(number)
        self._kept = len(self._numbers)


def _checked(function: Aggregate) -> str:
    if not isinstance(function, Aggregate):
        raise TypeError(f"function must be one of pystream's, such as ps.count() or ps.sum('value'), not {function!r}")
    if function.function not in FUNCTIONS:
        raise ValueError(
            f"{function!r} depends on the order of tuples, which a W-Hive does not keep; use one of "
            f"{', '.join(FUNCTIONS)} here, or an Operator with design='mq'"
        )
    if function.where is not None:
        raise ValueError(
            f"{function!r}: where= needs columns, and a W-Hive has only values; give it the tuples that count"
        )
    return function.function


def _schema(function: str) -> pa.Schema:
    """What C puts out: see ps_w_hive_get_next_winset in pystream.h."""
    columns = [("ts", pa.int64()), ("key", pa.int64())]
    if function == "count":
        return pa.schema([*columns, ("result", pa.int64())])
    integer = pa.float64() if function == "avg" else pa.int64()
    return pa.schema([*columns, ("integer", integer), ("real", pa.float64()), ("reals", pa.int64())])


def _results(rows: pa.RecordBatch) -> list[Any]:
    if rows.num_columns == 3:
        return list(rows.column("result").to_pylist())
    each = zip(*(rows.column(name).to_pylist() for name in ("integer", "real", "reals")), strict=True)
    return [real if reals else integer for integer, real, reals in each]


def _value(value: Any) -> tuple[int, int, float]:
    """What kind the value is, and the value as an integer and as a float."""
    if value is None:
        return NULL, 0, 0.0
    if isinstance(value, float | np.floating):
        return REAL, 0, float(value)
    if isinstance(value, bool | np.bool_) or not hasattr(value, "__index__"):
        raise TypeError(f"a value is an int, a float or None, not {value!r}")
    number = operator.index(value)
    if not -INT64_MAX - 1 <= number <= INT64_MAX:
        raise ValueError(f"value {number} does not fit into int64; give it as a float")
    return INTEGER, number, float(number)


def _values(values: Any) -> tuple[Any, Any, Any]:
    """The same for many: kinds, integers, floats."""
    if isinstance(values, np.ndarray) and values.ndim == 1 and values.dtype.kind in "if":
        kind = INTEGER if values.dtype.kind == "i" else REAL
        integers = values if kind == INTEGER else np.zeros(len(values))
        return np.full(len(values), kind), np.ascontiguousarray(integers, np.int64), np.ascontiguousarray(values, float)
    each = [_value(value) for value in _items(values, "values")]
    types = (np.int8, np.int64, np.float64)
    columns = zip(*each, strict=True) if each else ((), (), ())
    kinds, integers, reals = (np.array(column, type) for column, type in zip(columns, types, strict=True))
    return kinds, integers, reals


def _items(many: Any, name: str) -> list[Any]:
    """The elements as Python values; Arrow's nulls as None."""
    if hasattr(many, "to_pylist"):
        return list(sound_items(many, name).to_pylist())
    return list(many.tolist()) if isinstance(many, np.ndarray) else list(many)


def _key(key: Any) -> Key:
    if isinstance(key, tuple):
        return tuple(_part(part) for part in key)
    return _part(key)


def _part(key: Any) -> int | str | None:
    if key is None or isinstance(key, str):
        return key
    if isinstance(key, bool | np.bool_) or not hasattr(key, "__index__"):
        raise TypeError(f"a key is an int, a string, None or a tuple of these, not {key!r}")
    return operator.index(key)


def _order(key: Key) -> tuple[Any, ...]:
    """Sorts numbers before strings, strings by their bytes, tuples part by part, None last."""
    if key is None:
        return (3,)
    if isinstance(key, int):
        return 0, key
    if isinstance(key, str):
        return 1, key.encode("utf-8", "surrogatepass")
    return 2, tuple(_order(part) for part in key)
