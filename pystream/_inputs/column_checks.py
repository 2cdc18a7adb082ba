"""Columns from outside: found by name, checked before anything trusts them, and in the type that the plan wants.

Neither C nor Arrow's own functions look where an offset or an index leads: a cast, a filter or a copy of a column that
is damaged reads and writes anywhere. So `sound` comes first, before anything else is done with a column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pystream import _native
from pystream._inputs.column_names import missing_column
from pystream._inputs.schemas import plain
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def checked_column(batch: pa.RecordBatch, name: str) -> pa.Array:
    """The one column of this name, checked."""
    found = batch.schema.get_all_field_indices(name)
    if len(found) != 1:
        raise SchemaError(
            missing_column(name, batch.schema.names) if not found else f"column {name!r} appears more than once"
        )
    return sound(batch.column(found[0]), name)


def sound(array: pa.Array, name: str) -> pa.Array:
    """The array, if whatever reads it stays within its buffers and its strings are UTF-8."""
    try:
        for part in (array,) if array.type.id in _FLAT else _parts(array):
            if part.offset < 0:  # which Arrow does not check
                raise SchemaError(f"column {name!r} is damaged: its offset is {part.offset}")
        if not _strings_sound(array):
            array.validate(full=True)
    except pa.ArrowException as error:
        raise SchemaError(f"column {name!r} is damaged: {error}") from error
    return array


def sound_items(many: Any, name: str) -> Any:
    """The elements as they came; if they are Arrow's, they are sound."""
    for chunk in many.chunks if isinstance(many, pa.ChunkedArray) else [many]:
        if isinstance(chunk, pa.Array):
            sound(chunk, name)
    return many


#: Layouts of strings that C reads: whether offsets have 64 bits, and whether it is text.
_STRINGS = {
    pa.string().id: (False, True),
    pa.large_string().id: (True, True),
    pa.binary().id: (False, False),
    pa.large_binary().id: (True, False),
}

#: Types without arrays inside: a bitmap of nulls, and values.
_NUMBERS = [*(pa.int8(), pa.int16(), pa.int32(), pa.int64()), *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())]
_OTHERS = [pa.bool_(), pa.float32(), pa.float64(), pa.timestamp("s"), pa.duration("s"), pa.date32(), pa.date64()]
_FLAT = frozenset({*_STRINGS, *(type.id for type in _NUMBERS + _OTHERS)})


def _strings_sound(array: pa.Array) -> bool:
    """Whether the array is one of strings and all of them are right: much faster than Arrow says it."""
    layout = _STRINGS.get(array.type.id)
    if layout is None:
        return False
    array.validate()
    return _native.strings_sound(array, wide=layout[0], text=layout[1])


def is_text(type: pa.DataType) -> bool:
    """Whether the values are UTF-8, in a layout that C reads."""
    return bool(pa.types.is_string(type) or pa.types.is_large_string(type))


def _parts(array: pa.Array) -> Iterator[pa.Array]:
    """The array and all arrays in it."""
    yield array
    type = array.type
    if isinstance(array, pa.ExtensionArray):
        inner = [array.storage]
    elif pa.types.is_dictionary(type):
        inner = [array.indices, array.dictionary]
    elif pa.types.is_struct(type) or pa.types.is_union(type):
        inner = [array.field(i) for i in range(type.num_fields)]
    elif pa.types.is_run_end_encoded(type):
        inner = [array.run_ends, array.values]
    elif pa.types.is_nested(type):
        inner = [array.values]
    else:
        return
    for each in inner:
        yield from _parts(each)


# ---- types ----


def _is_string(type: pa.DataType) -> bool:
    return is_text(type) or bool(pa.types.is_binary(type) or pa.types.is_large_binary(type))


#: Types between which values may be cast, because they mean the same; whether one is lost is checked besides.
_KINDS: dict[str, Callable[[pa.DataType], bool]] = {
    "null": pa.types.is_null,
    "bool": pa.types.is_boolean,
    "integer": pa.types.is_integer,
    "float": pa.types.is_floating,
    "decimal": pa.types.is_decimal,
    "text": _is_string,
    "bytes": pa.types.is_fixed_size_binary,
    "date": pa.types.is_date,
    "time": pa.types.is_time,
    "timestamp": pa.types.is_timestamp,
    "duration": pa.types.is_duration,
}

#: Besides those of one kind.
_ALLOWED = {
    ("integer", "float"),
    ("float", "integer"),
    ("decimal", "integer"),
    ("date", "timestamp"),
    ("bytes", "text"),
}


def _kind(type: pa.DataType) -> str | None:
    return next((kind for kind, is_kind in _KINDS.items() if is_kind(type)), None)


def typed(array: pa.Array, type: pa.DataType, name: str) -> pa.Array:
    """The array, which is sound, in the plan's type; a batch may bring another type if no value is lost.

    Numbers may be numbers of another width, times of another unit. Nothing is parsed, formatted or reinterpreted.
    """
    if array.type == type:
        return array
    if array.type == pa.null():
        return pa.nulls(len(array), type)
    brought, array = array.type, plain_values(array)
    if isinstance(array, pa.ExtensionArray) and array.type != type:
        array = array.storage
    if array.type == type:
        return array
    where = f"column {name!r} has type {brought} where {type} is expected"
    own, wanted = _kind(array.type), _kind(type)
    if own is None or wanted is None or (own != wanted and (own, wanted) not in _ALLOWED):
        raise SchemaError(f"{where}; cast it first")
    try:
        cast = array.cast(type)
    except pa.ArrowException as error:
        raise SchemaError(f"{where}: {error}") from error
    if own == wanted == "float" and array.type.bit_width > type.bit_width:
        _check_exact(array, cast, where)
    return cast


def plain_values(array: pa.Array) -> pa.Array:
    """The values one by one, without a dictionary, runs or views."""
    type = array.type
    if pa.types.is_dictionary(type):
        return plain_values(array.dictionary).take(array.indices)
    if pa.types.is_run_end_encoded(type):
        return plain_values(pc.run_end_decode(array))
    return array if type == plain(type) else array.cast(plain(type))


def _check_exact(array: pa.Array, cast: pa.Array, where: str) -> None:
    """Refuse floats that are others when they are narrower, which Arrow does not check."""
    lost = pc.not_equal(cast.cast(array.type), array)
    lost = pc.and_(lost, pc.invert(pc.is_nan(array)))
    row = pc.index(lost, value=True).as_py()
    if row >= 0:
        raise SchemaError(f"{where}: row {row}: {array[row].as_py()} is no {cast.type}")


def stored(array: pa.Array, type: pa.DataType) -> pa.Array:
    """The array, of a plain type, as C reads it: in its storage type."""
    return array if array.type == type else array.cast(type)


def aligned(array: pa.Array) -> pa.Array:
    """A flat array whose values, or offsets, lie where C can read them as numbers."""
    values = array.buffers()[1]
    return array if values is None or values.address % 8 == 0 else _aligned(array, values.address)


def _aligned(array: pa.Array, address: int) -> pa.Array:
    layout = _STRINGS.get(array.type.id)
    width = (array.type.bit_width if layout is None else 64 if layout[0] else 32) // 8
    return owned(array) if width and address % width else array


def owned(array: pa.Array) -> pa.Array:
    """The array with memory of its own, as much as it needs. It must be sound if it has offsets or indices."""
    return pa.concat_arrays([array])


def first_null(array: pa.Array) -> Any:
    """The row of the first null; there is one."""
    return pc.index(pc.is_null(array), value=True).as_py()
