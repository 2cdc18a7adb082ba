"""User functions: the objects of the paper's `Window` interface, driven by the journal that C writes.

C merges the inputs and finds the windows; for every step a user's object must take it notes (window, batch, row).
Whoever reads the operator's output replays these notes before the rows that depend on them. So user code runs in a
thread of the user's, in the deterministic order, and what it raises surfaces right there.
"""

from __future__ import annotations

import sys
from operator import call
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystream._engine.time_text import time_text
from pystream.errors import SnapshotError, UdfError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pystream.functions import Aggregate, UserWindow
    from pystream.query import Query


#: Windows that are looked at to know how large all are, and parts of one of them.
SAMPLE, PARTS = 64, 1000


class Replay:
    """The steps that come with some rows, and how far the user's objects have come with them."""

    def __init__(self, journal: pa.RecordBatch, windows: list[int]) -> None:
        self.steps = list(zip(*(column.to_pylist() for column in journal.columns), strict=True))
        self.windows = windows
        self.step = 0  #: the next one
        self.udf = 0  #: aggregates that have taken it
        self.values: dict[str, list[Any]] = {}  #: results, as far as there are some
        self.in_user_code = False  #: whether an object is being changed


class UdfRunner:
    """The user's objects of one operator."""

    def __init__(self, query: Query, udfs: dict[str, Aggregate], ts_type: pa.DataType) -> None:
        self._query = query
        self._ts_type = ts_type
        self._udfs = udfs
        self._types = {name: a.type for name, a in udfs.items()}
        self._batches: dict[int, pa.RecordBatch] = {}
        self._rows: dict[int, list[dict[str, Any]]] = {}  # of batches that have been begun
        self._objects: dict[int, dict[str, UserWindow]] = {}
        self._names = list(udfs)

    def bytes_held(self) -> int:
        """About how much memory the objects take: as much as some of them do, times their number."""
        windows = list(self._objects.values())
        some = windows[:: max(1, len(windows) // SAMPLE)]
        return sum(map(_size, some)) * len(windows) // len(some) if some else 0

    def remember(self, number: int, batch: pa.RecordBatch) -> None:
        """Keep the rows of a batch that is about to be added."""
        if batch.num_rows:
            self._batches[number] = batch

    def forget(self, number: int) -> None:
        """The batch was refused after all, or is done with."""
        self._batches.pop(number, None)
        self._rows.pop(number, None)

    def batch(self, number: int) -> pa.RecordBatch:
        """A batch that is not done with."""
        return self._batches[number]

    def _row(self, number: int, row: int) -> dict[str, Any]:
        if number not in self._rows:
            self._rows[number] = self._batches[number].to_pylist()
        return self._rows[number][row]

    def run(self, replay: Replay, rows: dict[str, pa.Array]) -> dict[str, pa.Array]:
        """Take the steps that C noted, and give the results by aggregate; `rows` has the start and key of each.

        Goes on where an exception from outside stopped it.
        """
        while replay.step < len(replay.steps):
            window, start, number, row = replay.steps[replay.step]
            if window < 0:
                self.forget(number)
            else:
                self._step(replay, window, start, self._row(number, row))
            replay.step, replay.udf = replay.step + 1, 0
        return self._results(replay, rows)

    def _step(self, replay: Replay, window: int, start: int, row: dict[str, Any]) -> None:
        objects = self._objects.setdefault(window, {})
        for name in self._names[replay.udf :]:
            try:
                if name not in objects:
                    self._make(replay, name, objects)
                target = objects[name]
                replay.in_user_code = True
                target.process_tuple(row)
                replay.in_user_code, replay.udf = False, replay.udf + 1
            except Exception as error:
                if replay.in_user_code:
                    raise self._error(name, start, tuple(row[k] for k in self._query.key), error) from error
                raise

    def _make(self, replay: Replay, name: str, objects: dict[str, UserWindow]) -> None:
        factory: Any = self._udfs[name].factory
        made = map(call, (factory,))
        replay.in_user_code = True
        for target in made:  # a loop names it before an exception can come
            objects[name] = target
            replay.in_user_code = False

    def _error(self, name: str, start: int, key: Any, error: Exception) -> UdfError:
        what = f"{type(error).__name__}: {error}"
        return UdfError(
            f"{name}, window starting at {time_text(start, self._ts_type)}, key {key}: user code raised {what}"
        )

    # ---- snapshots ----

    def check_savable(self) -> None:
        """Objects can be written down and brought back, or a TypeError says what is missing."""
        for name, udf in self._udfs.items():
            sample = udf.factory()  # type: ignore[misc] # udf() sees to it that there is one
            kind = type(sample).__qualname__
            if not callable(getattr(sample, "to_bytes", None)):
                raise TypeError(f"{name} = {udf!r}: a snapshot needs {kind}.to_bytes()")
            if _loader(udf) is None:
                raise TypeError(f"{name} = {udf!r}: a snapshot needs {kind}.from_bytes(bytes)")

    def save(self, windows: list[int]) -> dict[str, list[bytes]]:
        """The objects of these windows, by aggregate."""
        return {name: [self._save(name, self._objects[w][name]) for w in windows] for name in self._udfs}

    def _save(self, name: str, target: Any) -> bytes:
        saved = target.to_bytes()
        if not isinstance(saved, bytes):
            raise TypeError(f"{name}: {type(target).__qualname__}.to_bytes() gave {type(saved).__name__}, not bytes")
        return saved

    def known_types(self) -> pa.Schema:
        """The types of results, as far as they are known."""
        return pa.schema([(name, type) for name, type in self._types.items() if type is not None])

    def load(self, objects: dict[str, list[bytes]], types: pa.Schema) -> None:
        """Make the objects of windows 0, 1, 2, ... again."""
        self._types |= dict(zip(types.names, types.types, strict=True))
        for name, saved in objects.items():
            loader = _loader(self._udfs[name])
            for window, part in enumerate(saved):
                try:
                    self._objects.setdefault(window, {})[name] = loader(part)  # type: ignore[misc] # None raises, too
                except Exception as error:
                    raise SnapshotError(f"{name}: from_bytes raised {type(error).__name__}: {error}") from error

    def _results(self, replay: Replay, rows: dict[str, pa.Array]) -> dict[str, pa.Array]:
        for name in self._names:
            values = replay.values.setdefault(name, [])
            while len(values) < len(replay.windows):
                self._produce(replay, name, values, rows)
        for window in replay.windows:  # all results are there: nobody asks for them again
            self._objects.pop(window, None)
        return {name: self._column(name, replay.values[name]) for name in self._names}

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        known = next((v for v in values if v is not None), None)
        try:
            if self._types[name] is None and known is not None:
                self._types[name] = pa.scalar(known).type
            return _array(values, self._types[name] or pa.null())
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError) as error:
            hint = f"its first result made its type {self._types[name]}; say udf(..., type=...) if that is wrong"
            raise UdfError(f"{name}: a result does not fit: {error}; {hint}") from error

    def _produce(self, replay: Replay, name: str, values: list[Any], rows: dict[str, pa.Array]) -> None:
        """The next result."""
        row = len(values)
        target = self._objects[replay.windows[row]][name]
        try:
            replay.in_user_code = True
            value = target.produce_out_tuple()
            values += (value,)
            replay.in_user_code = False
        except Exception as error:
            if replay.in_user_code:
                key = tuple(rows[k][row].as_py() for k in self._query.key)
                raise self._error(name, rows["ts"][row].cast(pa.int64()).as_py(), key, error) from error
            raise


def _loader(udf: Aggregate) -> Callable[[bytes], UserWindow] | None:
    """What makes an object of its bytes: `from_bytes` of the factory, or of the class of what it makes."""
    found = getattr(udf.factory, "from_bytes", None)
    if found is None and udf.factory is not None:
        found = getattr(type(udf.factory()), "from_bytes", None)
    return found if callable(found) else None


def _array(values: list[Any], type: pa.DataType) -> pa.Array:
    if pa.types.is_integer(type):  # given the type, pyarrow would cut off the fractions of floats; a cast does not
        return pa.array(values).cast(type)
    return pa.array(values, type=type)


def _size(target: Any) -> int:
    """About how many bytes the object and its parts take. Not all are looked into if there are very many."""
    total, met, parts = 0, {id(target)}, [target]
    while parts and len(met) <= PARTS:
        part = parts.pop()
        total += sys.getsizeof(part, 0)
        inside = _inside(part)
        parts += [one for one in inside[:PARTS] if id(one) not in met]
        met.update(map(id, inside[:PARTS]))
        total += sum(sys.getsizeof(one, 0) for one in inside[PARTS:])
    return total + sum(sys.getsizeof(part, 0) for part in parts)


def _inside(part: Any) -> list[Any]:
    if isinstance(part, dict):
        return [*part.keys(), *part.values()]
    if isinstance(part, list | tuple | set | frozenset):
        return list(part)
    return [vars(part)] if hasattr(part, "__dict__") and not isinstance(part, type) else []
