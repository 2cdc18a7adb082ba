"""Arrow's C data interface, looked at before Arrow trusts it.

Who has `__arrow_c_array__` or `__arrow_c_stream__` hands over structs of counts and pointers. Arrow takes them as they
are: a NULL where the children or the buffers should be, or a count that does not fit the schema, ends the process. So
the structs are checked here first, and what Arrow then makes of them is checked like every batch (column_checks.py).

What nobody can check is where a pointer leads that is not NULL, and how long the memory behind it is: the interface
does not say. Who lies about that (all columns longer than their buffers, memory that has been freed) is not caught.
A struct that is refused is not released: its release function would trust it, too.
"""

from __future__ import annotations

import ctypes
import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystream.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Deeper than any type that means something; a struct that is its own child ends here.
DEPTH_MAX = 64
COUNT_MAX = 1 << 40


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_SCHEMA, _ARRAY, _STREAM = (ctypes.POINTER(struct) for struct in (_Schema, _Array, _Stream))

_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_void_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(_SCHEMA)),
    ("dictionary", _SCHEMA),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(_ARRAY)),
    ("dictionary", _ARRAY),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, _STREAM, _SCHEMA)),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, _STREAM, _ARRAY)),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, _STREAM)),
    ("release", ctypes.c_void_p),
    ("private_data", ctypes.c_void_p),
]

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype, _pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]


@dataclass(frozen=True)
class _Shape:
    """What the structs of an array must look like to go with a schema."""

    name: str
    children: tuple[_Shape, ...]
    dictionary: _Shape | None


def batch(source: Any) -> pa.RecordBatch:
    """The record batch of an object that has `__arrow_c_array__`."""
    return pa.RecordBatch._import_from_c_capsule(*_checked(source, is_batch=True))


def array(source: Any) -> pa.Array:
    """The array of such an object."""
    return pa.Array._import_from_c_capsule(*_checked(source, is_batch=False))


def _checked(source: Any, *, is_batch: bool) -> tuple[Any, Any]:
    schema_capsule, array_capsule = source.__arrow_c_array__()
    schema = _Schema.from_address(_address(schema_capsule, b"arrow_schema"))
    found = _Array.from_address(_address(array_capsule, b"arrow_array"))
    _check(found, _shape(schema), is_batch=is_batch)
    return schema_capsule, array_capsule


def stream(source: Any) -> Iterator[pa.RecordBatch]:
    """The record batches of an object that has `__arrow_c_stream__`: at least one, which may be empty."""
    capsule = source.__arrow_c_stream__()
    own = _Stream.from_address(_address(capsule, b"arrow_array_stream"))
    if not own.release:
        raise SchemaError("an Arrow stream has been released already")
    got = _Schema()
    _raise(own, own.get_schema(own, got))
    shape = _shape(got)
    schema = pa.Schema._import_from_c(ctypes.addressof(got))
    empty = True
    while True:
        part = _Array()
        _raise(own, own.get_next(own, part))
        if not part.release:
            break
        _check(part, shape, is_batch=True)
        empty = False
        yield pa.RecordBatch._import_from_c(ctypes.addressof(part), schema)
    if empty:  # its schema still matters
        yield pa.RecordBatch.from_pylist([], schema=schema)
    del capsule  # not before: it owns the stream


def _address(capsule: Any, name: bytes) -> int:
    try:
        return int(_pointer_of(capsule, name))
    except (TypeError, ValueError) as error:
        raise SchemaError(f"an object that says it has Arrow data gives no {name.decode()}: {error}") from error


def _raise(stream: _Stream, code: int) -> None:
    """What a stream's error number stands for."""
    if not code:
        return
    text = (stream.get_last_error(stream) or b"").decode(errors="replace") or f"error {code}"
    if code == errno.ENOMEM:
        raise MemoryError(text)
    if code == errno.EINVAL:
        raise pa.ArrowInvalid(text)
    raise OSError(code, f"an Arrow stream failed: {text}")


def _refuse(what: str) -> None:
    raise SchemaError(f"Arrow data that cannot be read: {what}")


def _shape(schema: _Schema, parent: str = "", depth: int = 0) -> _Shape:
    """What arrays of the schema look like, once it is known that Arrow can read it."""
    name = parent + (schema.name or b"").decode(errors="replace")
    where = f"the type of {name!r}"
    if not schema.release:
        _refuse(f"{where} has been released already")
    if depth > DEPTH_MAX:
        _refuse(f"{where} has too many levels")
    if not schema.format:
        _refuse(f"{where} has no format")
    if not 0 <= schema.n_children <= COUNT_MAX or (schema.n_children and not schema.children):
        _refuse(f"{where} says that it has {schema.n_children} children")
    children = []
    for i in range(schema.n_children):
        if not schema.children[i]:
            _refuse(f"child {i} of {where} is missing")
        children.append(_shape(schema.children[i].contents, f"{name}." if depth else "", depth + 1))
    dictionary = _shape(schema.dictionary.contents, name, depth + 1) if schema.dictionary else None
    return _Shape(name, tuple(children), dictionary)


def _check(array: _Array, shape: _Shape, *, is_batch: bool = False) -> None:
    """Refuse what Arrow would stumble over when it reads the structs."""
    where = f"column {shape.name!r}" if shape.name else "a batch"
    _check_own(array, where)
    if array.n_children != len(shape.children) or (array.n_children and not array.children):
        _refuse(f"{where} says that it has {array.n_children} children, its type has {len(shape.children)}")
    if bool(array.dictionary) != (shape.dictionary is not None):
        _refuse(f"{where} has a dictionary and its type has none, or the other way round")
    for i, child in enumerate(shape.children):
        if not array.children[i]:
            _refuse(f"column {child.name!r} is missing")
        rows = array.children[i].contents.length
        if is_batch and rows != array.length:
            _refuse(f"column {child.name!r} has {rows} rows in a batch of {array.length}")
        _check(array.children[i].contents, child)
    if shape.dictionary is not None:
        _check(array.dictionary.contents, shape.dictionary)


def _check_own(array: _Array, where: str) -> None:
    """The same, without its children."""
    if not array.release:
        _refuse(f"{where} has been released already")
    for what in ("length", "offset", "n_buffers"):
        if not 0 <= getattr(array, what) <= COUNT_MAX:
            _refuse(f"{where} says that its {what} is {getattr(array, what)}")
    if array.n_buffers and not array.buffers:
        _refuse(f"{where} has no buffers")
