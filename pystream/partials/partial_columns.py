"""A query on a schema, folded: what C gets of rows, what the columns of a partial are, and what can be wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pystream import _native
from pystream._engine.plan import Plan, from_wire, storage, wire_type
from pystream._engine.time_text import too_low
from pystream._inputs.column_checks import aligned, checked_column, first_null, stored, typed
from pystream._kinds import KINDS, ORDERED, USER
from pystream.errors import ClosedError, DisorderError, PartialError, PystreamError, SchemaError, SumOverflowError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pystream.query import Query

#: The columns of every partial, besides the keys.
SLICE, ROWS = "__slice", "__rows"

#: Rows of a batch of partials or windows, about.
BATCH_ROWS = 1 << 16


def partial_schema(
    query: Query, schema: pa.Schema, stream: str | None = None, position: str | None = None
) -> pa.Schema:
    """The schema of the partials of a query over rows of a schema; see `Fold`."""
    return PartialColumns(query, schema, stream, position).schema


@dataclass(frozen=True)
class Field:
    """A column of a partial."""

    name: str
    type: pa.DataType
    nullable: bool = False

    def load(self, batch: pa.RecordBatch) -> pa.Array:
        """The column as C reads it."""
        array = typed(checked_column(batch, self.name), self.type, self.name)
        if array.null_count and not self.nullable:
            raise PartialError(f"row {first_null(array)} of the partials: {self.name} is null")
        return aligned(stored(array, storage(self.type)))


class PartialColumns:
    """A query on a schema, folded: what C gets of rows, and what partials look like."""

    def __init__(self, query: Query, schema: pa.Schema, stream: str | None, position: str | None) -> None:
        for name, aggregate in query.aggregates.items():
            if aggregate.function in USER:
                raise ValueError(f"{name} = {aggregate!r} takes tuples one by one and in order: it cannot be folded")
        self.query = query
        self.plan = Plan(query, schema)
        placed = [f"{n} = {a!r}" for n, a in query.aggregates.items() if a.function in ORDERED]
        self.placed = placed[0] if placed else None
        self.order = [stream if placed else None, position if placed else None]
        self.fields = self._fields()
        self.schema = pa.schema([(f.name, f.type) for f in self.fields])
        self.wire_schema = pa.schema([(f.name, wire_type(f.type)) for f in self.fields])
        twice = {n for n in self.schema.names if self.schema.names.count(n) > 1}
        if twice:
            raise ValueError(f"partials have a column {min(twice)!r} of their own: name the key column differently")

    def _fields(self) -> list[Field]:
        keys = [Field(c.name, c.type, nullable=True) for c in self.plan.columns[1 : 1 + len(self.query.key)]]
        fields = [Field(SLICE, pa.int64()), *keys, Field(ROWS, pa.int64())]
        for i, a in enumerate(self.plan.aggregates):
            if a.function == "count" and a.mask < 0:
                continue  # it is the number of rows
            column, by = self.plan.columns[a.column].type, self.plan.columns[a.by].type
            types = {"sum": pa.binary(), "moments": pa.binary(), "set": pa.large_binary(), "value": column, "by": by}
            fields += [
                Field(f"__{i}_{what}", types.get(what, pa.int64()), nullable=what not in ("n", "sum", "moments", "set"))
                for what in KINDS[a.function].partial
            ]
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
        known = self.plan.column_strings
        strings = known + [_native.ANY_BYTES] * (len(columns) - len(known))
        return _native.FoldHandle(
            self.plan.window, columns, strings, keys, self.plan.aggregates, stream, position, start
        )

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
            array = typed(checked_column(batch, name), pa.int64(), name)
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
        """Fold `most` prepared rows from row `start` on."""
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

    def keys_of(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The keys of rows, in the same form."""
        fields = self.fields[1 : 1 + len(self.query.key)]
        arrays = [typed(checked_column(batch, f.name), f.type, f.name) for f in fields]
        return pa.RecordBatch.from_arrays([pa.nulls(batch.num_rows), *arrays], schema=self.key_schema)

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
        """The exception for a window that could not be emitted."""
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
