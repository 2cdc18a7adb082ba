"""A query on a schema: which columns C gets, as what, and how its output becomes Arrow columns again.

Everything that C trusts is checked here: column names, types, nulls in timestamps, and by column_checks.py what
is in the buffers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import acero

from pystream import _native
from pystream._engine.set_options import SetOptions, set_options
from pystream._engine.time_text import time_text
from pystream._inputs.column_checks import aligned, checked_column, first_null, is_text, sound, stored, typed
from pystream._inputs.column_names import missing_column
from pystream._inputs.schemas import mentions, plain, plain_schema
from pystream._kinds import KINDS, Kind
from pystream.errors import SchemaError, UdfError

if TYPE_CHECKING:
    from pystream.functions import Aggregate, Native
    from pystream.query import Query

JOURNAL = pa.schema([("window", pa.int64()), ("start", pa.int64()), ("batch", pa.int64()), ("row", pa.int64())])

#: Arrow types that C reads in place, and how it calls their layout.
_LAYOUTS = {
    pa.bool_(): "BOOL",
    pa.int8(): "I8",
    pa.int16(): "I16",
    pa.int32(): "I32",
    pa.int64(): "I64",
    pa.uint8(): "U8",
    pa.uint16(): "U16",
    pa.uint32(): "U32",
    pa.uint64(): "U64",
    pa.float32(): "F32",
    pa.float64(): "F64",
    pa.string(): "BYTES32",
    pa.binary(): "BYTES32",
    pa.large_string(): "BYTES64",
    pa.large_binary(): "BYTES64",
    pa.date32(): "I32",
    pa.date64(): "I64",
}

#: The plainest Arrow type of each layout.
_PLAIN = {layout: type for type, layout in reversed(_LAYOUTS.items())} | {
    "BYTES32": pa.binary(),
    "BYTES64": pa.large_binary(),
}

#: Of a value in a list, as C writes it.
_VALUE_BYTES = 8

#: Types that are turned into another one first, because C does not read them in place.
_READ_AS = {
    pa.float16(): pa.float32(),
    pa.null(): pa.int64(),
}


def storage(type: pa.DataType) -> pa.DataType:
    """The type in which values of a plain type are handed to C."""
    if isinstance(type, pa.BaseExtensionType):
        return storage(type.storage_type)
    return pa.binary() if pa.types.is_fixed_size_binary(type) else _READ_AS.get(type, type)


def _fixed_size(type: pa.DataType) -> int | None:
    """How many bytes each value of a fixed-size binary type has."""
    if isinstance(type, pa.BaseExtensionType):
        return _fixed_size(type.storage_type)
    return int(type.byte_width) if pa.types.is_fixed_size_binary(type) else None


def _layout(type: pa.DataType) -> str | None:
    if pa.types.is_timestamp(type) or pa.types.is_duration(type) or pa.types.is_time64(type):
        return "I64"
    return "I32" if pa.types.is_time32(type) else _LAYOUTS.get(type)


def wire_type(type: pa.DataType) -> pa.DataType:
    """What C writes for a value of this output type: 64-bit values or byte strings, which lists of values are, too."""
    if pa.types.is_list(type):
        return pa.large_binary()
    layout = _layout(storage(type)) or "I64"
    if layout.startswith("BYTES"):
        return pa.large_binary()
    return {"U": pa.uint64(), "B": pa.uint64(), "F": pa.float64()}.get(layout[0], pa.int64())


@dataclass(frozen=True)
class Column:
    """A column that C gets: a column of the input, or the mask of a `where`."""

    name: str
    type: pa.DataType  # plain; bool for a mask
    where: pc.Expression | None = None

    @cached_property
    def storage(self) -> pa.DataType:
        """The type in which values are handed to C."""
        return storage(self.type)

    @cached_property
    def layout(self) -> str:
        """How C reads it."""
        layout = _layout(self.storage)
        if layout is None:
            raise SchemaError(
                f"column {self.name!r} has type {self.type}, which pystream cannot aggregate; cast it first"
            )
        return layout

    @cached_property
    def strings(self) -> int:
        """What its strings are, for C: UTF-8, any bytes, or so many of them."""
        if is_text(self.storage):
            return int(_native.UTF8)
        size = _fixed_size(self.type)
        return int(_native.ANY_BYTES) if size is None else size


@dataclass(frozen=True)
class AggregatePlan:
    """An aggregate as C wants it: numbers of the columns it works on, -1 for none."""

    function: str
    column: int = -1
    mask: int = -1
    native: Native | None = None
    native_columns: tuple[int, ...] = ()
    by: int = 0  # a second column; 0: none
    parameter: int = 0
    set: SetOptions | None = None


class Plan:
    """The columns of a query, in the order in which C numbers them: timestamp, keys, values and masks."""

    def __init__(self, query: Query, schema: pa.Schema) -> None:
        self.query = query
        self.schema = plain_schema(schema)
        self.ts_type = self._ts_type()
        self.window = query.window.ticks(self.ts_type.unit if pa.types.is_timestamp(self.ts_type) else None)
        self.columns = [Column(query.ts, self.ts_type), *(Column(k, self.type_of(k)) for k in query.key)]
        self.udfs = {name: a for name, a in query.aggregates.items() if a.function == "udf"}
        self._natives = {name for name, a in query.aggregates.items() if a.native}
        self.aggregates = [self._aggregate(n, a) for n, a in query.aggregates.items() if n not in self.udfs]
        if self.udfs:  # C sees one: the number of the window; pystream/_engine/user_windows.py does the rest
            self.aggregates.append(AggregatePlan("udf"))
        self._numbers = [str(i) for i in range(len(self.columns))]
        self.column_types = ["I64", *(c.layout for c in self.columns[1:])]
        self.column_strings = [c.strings for c in self.columns]
        self.out_schema = self._out_schema()
        self.wire_schema = self._wire_schema()
        self.journal_schema = JOURNAL if self.udfs else pa.schema([])
        self.reads = self._reads()

    # ---- making the plan ----

    def type_of(self, name: str) -> pa.DataType:
        """The type of a column of the input."""
        found = self.schema.get_all_field_indices(name)
        if len(found) != 1:
            raise SchemaError(
                missing_column(name, self.schema.names) if not found else f"column {name!r} appears more than once"
            )
        return self.schema.field(found[0]).type

    def _ts_type(self) -> pa.DataType:
        type = self.type_of(self.query.ts)
        if not (pa.types.is_integer(type) or pa.types.is_timestamp(type)):
            raise SchemaError(
                f"timestamp column {self.query.ts!r} has type {type}; it must be an integer or a timestamp: "
                f"{_time_hint(type)}"
            )
        return type if pa.types.is_timestamp(type) else pa.int64()

    def _aggregate(self, name: str, aggregate: Aggregate) -> AggregatePlan:
        value = (
            -1 if aggregate.column is None else self._index(Column(aggregate.column, self.type_of(aggregate.column)))
        )
        if value >= 0 and not _takes(KINDS[aggregate.function], self.columns[value].type):
            can = "; only columns of fixed width have one" if KINDS[aggregate.function].takes == "fixed" else ""
            raise SchemaError(
                f"{name} = {aggregate!r}: column of type {self.columns[value].type} has no {aggregate.function}{can}"
            )
        mask = -1 if aggregate.where is None else self._index(Column(str(aggregate.where), pa.bool_(), aggregate.where))
        if aggregate.native is not None:
            numbers = tuple(self._native_column(column) for column in aggregate.native.columns)
            return AggregatePlan(aggregate.function, -1, mask, aggregate.native, numbers)
        by = 0 if aggregate.by is None else self._second(name, aggregate.by)
        of_set = "set" in KINDS[aggregate.function].partial
        options = set_options(dict(aggregate.options), self.columns[value].storage) if of_set else None
        return AggregatePlan(aggregate.function, value, mask, by=by, parameter=aggregate.parameter, set=options)

    def _native_column(self, column: str) -> int:
        """The number of a column for a native udf."""
        return 0 if column == self.query.ts else self._index(Column(column, self.type_of(column)))

    def _second(self, name: str, column: str) -> int:
        """The number of the second column of a function."""
        number = self._index(Column(column, self.type_of(column)))
        function = self.query.aggregates[name]
        if self.columns[number].layout.startswith("BYTES") and KINDS[function.function].by == "order":
            raise SchemaError(
                f"{name} = {function!r}: column {column!r} is a string, where a number, a boolean or a time is needed"
            )
        if KINDS[function.function].by == "numbers" and not _is_number(self.columns[number].type):
            raise SchemaError(
                f"{name} = {function!r}: column {column!r} has type {self.columns[number].type}; it must be a number"
            )
        return number

    def _index(self, column: Column) -> int:
        """The number of the column, which is added unless it is there. Keys and timestamps are read as values too."""
        for i, known in enumerate(self.columns[1:], 1):
            if known.where is None and column.where is None and known.name == column.name:
                return i
            if known.where is not None and column.where is not None and known.where.equals(column.where):
                return i
        self.columns.append(column)
        return len(self.columns) - 1

    def _out_field(self, name: str, aggregate: Aggregate) -> pa.Field:
        kind = KINDS[aggregate.function]
        if kind.takes == "user":
            return pa.field(name, aggregate.type or pa.null())
        column = pa.null() if aggregate.column is None else self.type_of(aggregate.column)
        return pa.field(name, kind.result_type(column, storage(column), aggregate.options))

    def _out_schema(self) -> pa.Schema:
        keys = [pa.field(k, self.type_of(k)) for k in self.query.key]
        return pa.schema(
            [pa.field("ts", self.ts_type), *keys, *(self._out_field(n, a) for n, a in self.query.aggregates.items())],
        )

    def _wire_schema(self) -> pa.Schema:
        fields = [pa.field(f.name, wire_type(f.type)) for f in self.out_schema if f.name not in self.udfs]
        return pa.schema([*fields, *([pa.field("", pa.int64())] if self.udfs else [])])

    def _reads(self) -> dict[str, pa.DataType]:
        """The columns of the input that are read and their types, in the order of the schema."""
        empty = pa.RecordBatch.from_pylist([], schema=self.schema)
        once = [name for name in self.schema.names if self.schema.names.count(name) == 1]
        needed = {column.name for column in self.columns if column.where is None}
        for where in (column.where for column in self.columns if column.where is not None):
            mentioned = [name for name in once if mentions(where, name)]
            try:
                _mask(empty.select(mentioned), where)
            except SchemaError:
                _mask(empty, where)
                mentioned = self.schema.names  # it names columns in some other way
            needed.update(mentioned)
        return {name: self.type_of(name) for name in self.schema.names if name in needed}

    # ---- using it ----

    def sound(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The columns of the batch that are read, checked, in the types of the schema; with user objects all of them.

        The others are not looked at.
        """
        if self.udfs:
            return self._carried(batch)
        read = self._read(batch)
        return pa.RecordBatch.from_arrays(list(read.values()), list(read))

    def _read(self, batch: pa.RecordBatch) -> dict[str, pa.Array]:
        return {name: typed(checked_column(batch, name), type, name) for name, type in self.reads.items()}

    def _carried(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch, if every value in it can be read by user code."""
        for name, array in zip(batch.schema.names, batch.columns, strict=True):
            sound(array, name)
            try:
                if not _reads_as_python(array.type):
                    array.to_pylist()
            except (ValueError, OverflowError, pa.ArrowException) as error:
                raise SchemaError(f"column {name!r} has a value that Python cannot hold: {error}") from error
        return batch

    def prepare(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Give the batch's columns as C reads them, without a copy where none is needed."""
        if self.udfs:
            self._carried(batch)
        read = self._read(batch)
        arrays = [self._timestamps(read[self.query.ts]), *(self._column(read, c) for c in self.columns[1:])]
        return pa.RecordBatch.from_arrays([aligned(array) for array in arrays], self._numbers)

    def _timestamps(self, array: pa.Array) -> pa.Array:
        array = typed(array, self.ts_type, self.query.ts)
        if array.null_count:
            raise SchemaError(f"row {first_null(array)}: timestamp {self.query.ts!r} is null")
        return array.view(pa.int64())

    def _column(self, read: dict[str, pa.Array], column: Column) -> pa.Array:
        if column.where is not None:
            return _mask(pa.RecordBatch.from_arrays(list(read.values()), list(read)), column.where)
        array = typed(read[column.name], column.type, column.name)
        return stored(array, column.storage)

    @property
    def saved_schema(self) -> pa.Schema:
        """The columns of a pending tuple as C gives them for a snapshot."""
        types = [pa.int64(), *(wire_type(c.type) for c in self.columns[1:])]
        return pa.schema([(str(i), type) for i, type in enumerate(types)])

    def unsaved(self, saved: pa.RecordBatch) -> pa.RecordBatch:
        """Pending tuples of a snapshot, again as C reads them."""
        for column, array in zip(self.columns, saved.columns, strict=True):
            if array.null_count and (column is self.columns[0] or column.where is not None):
                raise SchemaError(f"column {column.name!r} has nulls")
            if column.strings >= 0:
                array.cast(pa.binary(column.strings))  # if each has that size
        types = [c.storage if is_text(c.storage) else _PLAIN[c.layout] for c in self.columns]
        types[0] = pa.int64()
        arrays = [array.cast(type) for array, type in zip(saved.columns, types, strict=True)]  # text: if it is UTF-8
        return pa.RecordBatch.from_arrays(arrays, saved.schema.names)

    def typed(self, wire: pa.RecordBatch) -> dict[str, pa.Array]:
        """C's output in the types of the output schema, without the results of user functions."""
        return {f.name: self._typed(wire, f) for f in self.out_schema if f.name not in self.udfs}

    def _typed(self, wire: pa.RecordBatch, field: pa.Field) -> pa.Array:
        try:
            return from_wire(wire.column(field.name), field.type, safe=field.name in self._natives)
        except pa.ArrowInvalid as error:
            raise UdfError(f"{field.name}: a result does not fit: {error}") from error

    def window_name(self, name: pa.RecordBatch) -> str:
        """Name a window for people. `name` is one row of C's output: its start and its key."""
        fields = [self.out_schema.field(i) for i in range(1, name.num_columns)]
        key = [from_wire(array, f.type)[0].as_py() for array, f in zip(name.columns[1:], fields, strict=True)]
        return f"window starting at {time_text(name.column(0)[0].as_py(), self.ts_type)}, key {tuple(key)}"

    def finish(self, columns: dict[str, pa.Array]) -> pa.RecordBatch:
        """Put all columns in their order."""
        return pa.RecordBatch.from_arrays([columns[name] for name in self.query.columns], self.query.columns)


def _time_hint(type: pa.DataType) -> str:
    """How a column of this type becomes one of timestamps."""
    if is_text(type):
        return "parse it first (pyarrow.compute.strptime, pandas.to_datetime, Polars' str.to_datetime)"
    if pa.types.is_date(type):
        return "declare it as pa.timestamp('s'), which dates fit into"
    if pa.types.is_null(type):
        return "it has no values that would tell"
    return "cast it first"


def _takes(kind: Kind, type: pa.DataType) -> bool:
    """Whether a function can be of a column of this type."""
    if kind.takes == "booleans":
        return bool(pa.types.is_boolean(storage(type)))
    if kind.takes == "fixed":
        return not (_layout(storage(type)) or "").startswith("BYTES")
    return kind.takes != "numbers" or _is_number(type)


def _is_number(type: pa.DataType) -> bool:
    """Booleans are 0 and 1."""
    type = storage(type)
    return bool(pa.types.is_integer(type) or pa.types.is_floating(type) or pa.types.is_boolean(type))


def _reads_as_python(type: pa.DataType) -> bool:
    """Whether every value of the type is one of Python's."""
    type = plain(type)
    return not isinstance(type, pa.BaseExtensionType) and bool(_layout(type) and not pa.types.is_temporal(type))


def _mask(batch: pa.RecordBatch, where: pc.Expression) -> pa.Array:
    """Where the expression is true; null counts as false."""
    source = acero.TableSourceNodeOptions(pa.Table.from_batches([batch]))
    steps = [
        acero.Declaration("table_source", source),
        acero.Declaration("project", acero.ProjectNodeOptions([where], ["m"])),
    ]
    try:
        column = acero.Declaration.from_sequence(steps).to_table(use_threads=False).column("m")
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowKeyError) as error:
        unknown = re.search(r"No match for FieldRef.Name\((.*?)\) in ", str(error))
        what = (
            f": {missing_column(unknown[1], batch.schema.names)}" if unknown else f" does not fit the columns: {error}"
        )
        raise SchemaError(f"where={where}{what}") from error
    if column.type != pa.bool_():
        raise SchemaError(f"where={where} is of type {column.type}; it must be true or false")
    return pc.fill_null(column, fill_value=False).combine_chunks()


def from_wire(array: pa.Array, type: pa.DataType, *, safe: bool = False) -> pa.Array:
    """The array in an output type. Not `safe`: the values came from such a column, or are as wide as they can be."""
    if pa.types.is_temporal(type):
        return array.cast(pa.int32() if _layout(type) == "I32" else pa.int64(), safe=safe).view(type)
    if type == pa.null():
        return pa.nulls(len(array))
    if pa.types.is_list(type):
        return _lists(array, type, safe=safe)
    if isinstance(type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type, from_wire(array, type.storage_type, safe=safe))
    return array.cast(type, safe=safe)


def _lists(array: pa.Array, type: pa.ListType, *, safe: bool) -> pa.Array:
    """Lists that C writes as strings of bytes, 8 for each value."""
    lengths = pc.fill_null(pc.binary_length(array), 0).to_numpy(zero_copy_only=False) // _VALUE_BYTES
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    first = int.from_bytes(array.buffers()[1][8 * array.offset :][:8].to_pybytes(), "little") if len(array) else 0
    data = array.buffers()[2]
    values = pa.Array.from_buffers(
        wire_type(type.value_type),
        ends[-1].as_py(),
        [None, data if data is not None else pa.py_buffer(b"")],
        offset=first // _VALUE_BYTES,
    )
    return pa.ListArray.from_arrays(
        ends, from_wire(values, type.value_type, safe=safe), type=type, mask=array.is_null()
    )
