"""Partial aggregates: fold rows where they lie, send only the partials, combine them into windows elsewhere.

    fold = Fold(query, schema, stream="stream", position="position")      # wherever there are rows, in any order
    for batch in rows:
        send(fold.add(batch))
    send(fold.finish())

    combine = Combine(query, schema)                                      # whoever gets all partials of a key
    for batch in received:
        combine.add(batch)
    for windows in combine.finish():                                      # the rows of ps.aggregate, to the bit
        ...

A partial is one row: a slice of time (`__slice`, where it begins), a key, how many rows (`__rows`), and per aggregate
what it takes to go on. Slices begin and end where windows do, so a window is made of whole slices, whatever its size
and advance. How rows are spread over folds, how often a fold gives partials for the same slice and key, and in which
order partials arrive shows nowhere: sums are exact, and `first` and `last` carry the (ts, stream, position) of their
row.

csrc/partials/fold.h says how it works, csrc/partials/fold_export.c what the columns of a partial are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pystream import _native
from pystream.columns import aligned, first_null, named, stored, typed
from pystream.errors import ClosedError, DisorderError, PartialError, PystreamError, SchemaError, SumOverflowError
from pystream.handover import Outbox
from pystream.ingest import batches
from pystream.moments import too_low
from pystream.plan import Plan, from_wire, storage, wire_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pystream.query import Query

#: The columns of every partial, besides the keys.
SLICE, ROWS = "__slice", "__rows"

#: What a fold holds at most before it gives its partials away: little beside what a Spark task has, and so much that
#: the same slice and key are given away rarely.
MAX_BYTES = 1 << 27

#: Rows that are folded in one call: between two calls the memory in use is looked at.
PIECE_ROWS = 1 << 16

#: Rows of a batch of partials or windows, about.
BATCH_ROWS = 1 << 16

#: Keys without partials that a Combine may know: so few that they do not matter.
KEYS_SPARE = 1 << 12

_PLACED = ("first", "last")
_PLACE = ("ts", "stream", "position")


def partial_schema(
    query: Query, schema: pa.Schema, stream: str | None = None, position: str | None = None
) -> pa.Schema:
    """The schema of the partials of a query over rows of a schema; see `Fold`."""
    return _Partials(query, schema, stream, position).schema


Given = TypeVar("Given")


@dataclass
class _Rest:
    """A batch that a fold has taken: the rows from `start` on are not folded yet, or `done` says that a piece is."""

    rows: pa.RecordBatch
    start: int = 0
    done: _native.Done = field(default_factory=_native.Done)


class Folding(Generic[Given]):
    """Folds rows, in any order and of any streams, into one partial per (slice, key).

    `stream` names the integer column that says which input a row belongs to (None: all belong to one), `position` the
    integer column that orders the rows of one stream with equal timestamps. Only `first` and `last` need them. Rows
    with equal timestamp, stream and position between which `first` or `last` would have to choose are refused.

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
        self._partials = _Partials(query, schema, stream, position)
        self._partials.check_order()
        self._max_bytes = max_bytes
        self._handle = self._partials.handle()
        self._out: Outbox[Given] = Outbox("fold")
        self._rest: _Rest | None = None

    def add(self, batch: pa.RecordBatch) -> list[Given]:
        """Fold the rows of a batch; gives partials, usually none."""
        rows = self._partials.prepare(batch)
        self._partials.check_time(rows)
        return self._out.take(lambda: self._fold(rows), None)

    def finish(self) -> Iterator[Given]:
        """Give all partials that are left; the fold is empty then, and may be used again."""
        self._out.hold(self._fold_all)
        while True:
            out = self._out.take(lambda: None)
            if not out:
                return
            yield from out

    def _fold(self, rows: pa.RecordBatch) -> None:
        self._go_on()  # with the batch before, if an exception from outside stopped it
        self._rest = _Rest(rows)
        self._go_on()

    def _fold_all(self) -> None:
        self._go_on()
        self._flush()

    def _go_on(self) -> None:
        """Fold what is left of the batch that has been taken."""
        rest = self._rest
        while rest is not None and rest.start < rest.rows.num_rows:
            self._fold_piece(rest)
            if self._handle.bytes > self._max_bytes:
                self._flush()
            rest.start, rest.done = rest.start + PIECE_ROWS, _native.Done()
        self._rest = None

    def _fold_piece(self, rest: _Rest) -> None:
        if rest.done.is_ok:
            return
        try:
            self._partials.fold(self._handle, rest.rows, rest.start, PIECE_ROWS, rest.done)
        finally:
            if rest.done.is_refused:
                self._rest = None

    def _flush(self) -> None:
        out, empty = list(self._export()), self._partials.handle()
        self._out.put(out)
        self._handle = empty

    def _export(self) -> Iterator[Given]:
        """All partials, in the form in which they are given."""
        raise NotImplementedError


class Fold(Folding[pa.RecordBatch]):
    """A Folding that gives partials as rows of Arrow columns."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of the partials."""
        return self._partials.schema

    def _export(self) -> Iterator[pa.RecordBatch]:
        return self._partials.export(self._handle)


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
        self._partials = _Partials(query, schema, stream, position)
        self._handle = self._partials.handle(start)
        self._finished = False
        self._out: Outbox[pa.RecordBatch] = Outbox("combine")
        for batch in held:
            self._add(batch, held=True)

    @property
    def schema(self) -> pa.Schema:
        """The schema of the windows."""
        return self._partials.plan.out_schema

    @property
    def partial_schema(self) -> pa.Schema:
        """The schema of the partials."""
        return self._partials.schema

    @property
    def start(self) -> int:
        """Windows that start before this have been given, or are about to be."""
        return self._handle.start

    def add(self, partials: Any) -> None:
        """Take partials: a batch, a table or an iterable of batches. A batch is taken whole or not at all."""
        for batch in batches(partials):
            self._add(batch, held=False)

    def _add(self, batch: pa.RecordBatch, *, held: bool) -> None:
        wire = self._partials.load(batch)
        try:
            self._out.hold(lambda: self._add_wire(wire, held=held))
        except _native.Fault as fault:
            raise self._partials.partial_error(fault, batch) from None

    def _add_wire(self, wire: pa.RecordBatch, *, held: bool) -> None:
        if self._finished:
            raise ClosedError("all windows have been given: no partial can come any more")
        self._handle.add_partials(wire, held=held)

    def add_rows(self, batch: pa.RecordBatch) -> None:
        """Take rows themselves, as a `Fold` does: for who has all rows of some keys, or of some windows, at hand."""
        rows = self._partials.prepare(batch)
        self._out.hold(lambda: self._fold_rows(rows))

    def _fold_rows(self, rows: pa.RecordBatch) -> None:
        if self._finished:
            raise ClosedError("all windows have been given: no row can come any more")
        self._partials.fold(self._handle, rows, 0, rows.num_rows)

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

    # Whoever calls what follows holds the outbox.

    def _bring(self, until: int | None) -> None:
        """See to it that windows wait, if there are any."""
        if not self._out and not self._fetch(until):
            self._forget_keys()

    def _fetch(self, until: int | None) -> bool:
        plan = self._partials.plan
        self._finished = self._finished or until is None
        if self._out.stage is None:
            self._out.stage = _native.Windows()
        try:
            wire = self._handle.get_windows(self._out.stage, until, BATCH_ROWS, plan.wire_schema)
        except _native.Fault as fault:
            raise self._partials.window_error(fault) from None
        if wire is not None:
            self._out.put([plan.finish(plan.typed(wire))])
        return wire is not None

    def _forget_keys(self) -> None:
        """Begin anew with what is held, if most keys that C knows are not among it."""
        if self._finished or self._handle.keys < KEYS_SPARE + 4 * self._handle.entries:
            return
        handle = self._partials.handle(self._handle.start)
        for batch in self._partials.export(self._handle):
            handle.add_partials(self._partials.load(batch), held=True)
        self._handle = handle

    def held(self) -> Iterator[pa.RecordBatch]:
        """What is held for windows to come, as partials, one per (slice, key)."""
        yield from self._out.hold(self._held)

    def _held(self) -> list[pa.RecordBatch]:
        return list(self._partials.export(self._handle))


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


@dataclass(frozen=True)
class _Field:
    """A column of a partial."""

    name: str
    type: pa.DataType
    nullable: bool = False

    def load(self, batch: pa.RecordBatch) -> pa.Array:
        """The column as C reads it."""
        array = typed(named(batch, self.name), self.type, self.name)
        if array.null_count and not self.nullable:
            raise PartialError(f"row {first_null(array)} of the partials: {self.name} is null")
        return aligned(stored(array, storage(self.type)))


class _Partials:
    """A query on a schema, folded: what C gets of rows, and what partials look like."""

    def __init__(self, query: Query, schema: pa.Schema, stream: str | None, position: str | None) -> None:
        for name, aggregate in query.aggregates.items():
            if aggregate.function in ("udf", "native_udf"):
                raise ValueError(f"{name} = {aggregate!r} takes tuples one by one and in order: it cannot be folded")
        self.query = query
        self.plan = Plan(query, schema)
        placed = [f"{n} = {a!r}" for n, a in query.aggregates.items() if a.function in _PLACED]
        self.placed = placed[0] if placed else None
        self.order = [stream if placed else None, position if placed else None]
        self.fields = self._fields()
        self.schema = pa.schema([(f.name, f.type) for f in self.fields])
        self.wire_schema = pa.schema([(f.name, wire_type(f.type)) for f in self.fields])
        twice = {n for n in self.schema.names if self.schema.names.count(n) > 1}
        if twice:
            raise ValueError(f"partials have a column {min(twice)!r} of their own: name the key column differently")

    def _fields(self) -> list[_Field]:
        keys = [_Field(c.name, c.type, nullable=True) for c in self.plan.columns[1 : 1 + len(self.query.key)]]
        fields = [_Field(SLICE, pa.int64()), *keys, _Field(ROWS, pa.int64())]
        for i, a in enumerate(self.plan.aggregates):
            if (a.function == "count" and a.mask >= 0) or a.function in ("sum", "avg"):
                fields.append(_Field(f"__{i}_n", pa.int64()))
            if a.function in ("sum", "avg"):
                fields.append(_Field(f"__{i}_sum", pa.binary()))
            if a.function in ("min", "max", *_PLACED):
                fields.append(_Field(f"__{i}_value", self.plan.columns[a.column].type, nullable=True))
            if a.function in _PLACED:
                fields += [_Field(f"__{i}_{what}", pa.int64(), nullable=True) for what in _PLACE]
        return fields

    def handle(self, start: int = 0) -> _native.FoldHandle:
        """A fold in C."""
        if not 0 <= start < 2**63:
            raise ValueError(f"start must be between 0 and 2**63 - 1, not {start}")
        columns = list(self.plan.column_types)
        numbers = {}
        for name in (n for n in self.order if n is not None):
            numbers[name] = len(columns)
            columns.append("I64")
        stream, position = (numbers.get(name or "", -1) for name in self.order)
        keys = len(self.query.key)
        text = self.plan.column_text + [False] * (len(columns) - len(self.plan.column_text))
        return _native.FoldHandle(self.plan.window, columns, text, keys, self.plan.aggregates, stream, position, start)

    def first_start(self, begin: int) -> int:
        """The start of the first window that covers a slice; see csrc/windows/edges.h."""
        size, advance = self.plan.window
        return 0 if begin < size else ((begin - size) // advance + 1) * advance

    # ---- rows ----

    def check_order(self) -> None:
        """Refuse what leaves the order of rows open."""
        if self.placed is None:
            return
        if self.order[1] is None:
            raise ValueError(
                f"{self.placed} depends on the order of rows with equal timestamps: name a `position` column"
            )
        for name in self.order:
            if name is not None and not pa.types.is_integer(self.plan.type_of(name)):
                raise SchemaError(f"column {name!r} has type {self.plan.type_of(name)}; it must be an integer")

    def prepare(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of rows as C reads them."""
        if not isinstance(batch, pa.RecordBatch):
            raise SchemaError(f"rows are record batches, not {type(batch).__name__}")
        rows = self.plan.prepare(batch)
        arrays = list(rows.columns)
        for name in self.order:
            if name is None:
                continue
            array = typed(named(batch, name), pa.int64(), name)
            if array.null_count:
                raise SchemaError(f"row {first_null(array)}: column {name!r} is null; the order of rows depends on it")
            arrays.append(aligned(array))
        return pa.RecordBatch.from_arrays(arrays, [str(i) for i in range(len(arrays))])

    def check_time(self, rows: pa.RecordBatch) -> None:
        """Refuse prepared rows that begin before time does. C does so as well, but piece by piece."""
        least = pc.min(rows.column(0)).as_py()
        if least is not None and least < 0:
            raise self._negative(rows, pc.index(pc.less(rows.column(0), 0), value=True).as_py())

    def fold(
        self,
        handle: _native.FoldHandle,
        rows: pa.RecordBatch,
        start: int,
        most: int,
        done: _native.Done | None = None,
    ) -> None:
        """Fold so many prepared rows, from one on."""
        try:
            handle.add_rows(rows.slice(start, most), done)
        except _native.Fault as fault:
            raise self.row_error(fault, rows, start + fault.row) from None

    def row_error(self, fault: _native.Fault, rows: pa.RecordBatch, row: int) -> PystreamError:
        """The exception for rows that could not be folded."""
        if _native.is_closed(fault):
            return ClosedError("the fold has failed before and cannot go on")
        if _native.is_disorder(fault):
            return self._negative(rows, row)
        return _twice({self.query.ts: rows.column(0)[row].as_py(), **self._place(rows, row)}, self.placed)

    def _place(self, rows: pa.RecordBatch, row: int) -> dict[str, int]:
        """Stream and position of a row, as far as they matter."""
        columns = iter(rows.columns[len(self.plan.columns) :])
        return {name: next(columns)[row].as_py() for name in self.order if name is not None}

    def _negative(self, rows: pa.RecordBatch, row: int) -> DisorderError:
        ts, stream = rows.column(0)[row].as_py(), self._place(rows, row).get(self.order[0] or "", 0)
        return DisorderError(
            f"row {row}: {too_low(ts, 0, self.plan.ts_type, '')}", input=stream, row=row, ts=ts, latest=0
        )

    # ---- partials ----

    def export(self, handle: _native.FoldHandle) -> Iterator[pa.RecordBatch]:
        """What a fold holds."""
        rows = 0
        while True:
            try:
                wire = handle.get_partials(rows, BATCH_ROWS, self.wire_schema)
            except _native.Fault:
                raise ClosedError("the fold has failed before and cannot go on") from None
            if wire is None:
                return
            rows += wire.num_rows
            arrays = [from_wire(array, f.type) for array, f in zip(wire.columns, self.fields, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def load(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Partials as C reads them."""
        if not isinstance(batch, pa.RecordBatch):
            raise SchemaError(f"partials are record batches, not {type(batch).__name__}")
        odd = [name for name in batch.schema.names if name not in self.schema.names]
        if odd:
            raise SchemaError(f"column {odd[0]!r} is none of a partial of this query, which has {self.schema.names}")
        arrays = [field.load(batch) for field in self.fields]
        return pa.RecordBatch.from_arrays(arrays, self.schema.names)

    def keys(self, handle: _native.FoldHandle) -> pa.RecordBatch:
        """The keys that a fold has met, by number; the first column takes no room, it says how many there are."""
        fields = self.fields[1 : 1 + len(self.query.key)]
        try:
            wire = handle.get_keys(pa.schema([("", pa.int64()), *((f.name, wire_type(f.type)) for f in fields)]))
        except _native.Fault:
            raise ClosedError("the fold has failed before and cannot go on") from None
        arrays = [from_wire(array, f.type) for array, f in zip(wire.columns[1:], fields, strict=True)]
        return pa.RecordBatch.from_arrays([pa.nulls(wire.num_rows), *arrays], schema=self.key_schema)

    @property
    def key_schema(self) -> pa.Schema:
        """The columns of `keys`."""
        return pa.schema([("", pa.null()), *(self.schema.field(name) for name in self.query.key)])

    def load_keys(self, keys: pa.RecordBatch) -> pa.RecordBatch:
        """Keys as C reads them."""
        arrays = [field.load(keys) for field in self.fields[1 : 1 + len(self.query.key)]]
        numbers = pa.array(np.zeros(keys.num_rows, np.int64))  # C does not look at them
        return pa.RecordBatch.from_arrays([numbers, *arrays], self.key_schema.names)

    def partial_error(self, fault: _native.Fault, batch: pa.RecordBatch | None) -> PystreamError:
        """The exception for partials that could not be taken; without a batch they were packed."""
        if _native.is_closed(fault):
            return ClosedError("it has failed before and cannot go on")
        if _native.is_twice(fault):
            place = {self.query.ts: fault.ts, "stream": fault.stream, "position": fault.position}
            return _twice(place, self.placed)
        what, why = _native.PARTIAL_FAULTS[fault.user_code]
        name = f"__{what}" if fault.aggregate < 0 else f"__{fault.aggregate}_{what}"
        if batch is None:
            return PartialError(f"packed partials: {name} {why}")
        value = batch.column(name)[fault.row].as_py()
        return PartialError(f"row {fault.row} of the partials: {name} = {_short(value)} {why}")

    def window_error(self, fault: _native.Fault) -> PystreamError:
        """The exception for a window that could not be put out."""
        if fault.window is None:
            return ClosedError("it has failed before and cannot go on")
        name = list(self.query.aggregates)[fault.aggregate]
        window = self.plan.window_name(fault.window)
        return SumOverflowError(f"{name} = {self.query.aggregates[name]!r} does not fit into int64 in the {window}")


def _twice(place: dict[str, int], function: str | None) -> SchemaError:
    same = ", ".join(f"{name}={value}" for name, value in place.items())
    return SchemaError(f"two rows have the same {same}: {function} would depend on chance")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
