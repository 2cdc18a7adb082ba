"""Columns and C structs that lie: what a broken producer, or somebody who means harm, could hand over."""

from __future__ import annotations

import ctypes
import struct
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 3
FAR = 1 << 30


def packed(format: str, *values: int) -> pa.Buffer:
    return pa.py_buffer(struct.pack(f"<{len(values)}{format}", *values))


def made(type: pa.DataType, buffers: list[pa.Buffer | None], **named: Any) -> pa.Array:
    return pa.Array.from_buffers(type, ROWS, buffers, **named)


def strings(type: pa.DataType, format: str, offsets: list[int], data: bytes = b"abc") -> pa.Array:
    return made(type, [None, packed(format, *offsets), pa.py_buffer(data)])


def views(length: int, buffer: int, offset: int, data: list[bytes]) -> pa.Array:
    view = struct.pack("<i4sii", length, b"abcd", buffer, offset) + struct.pack("<i12x", 0) * (ROWS - 1)
    return made(pa.string_view(), [None, pa.py_buffer(view), *map(pa.py_buffer, data)])


def indices(*values: int, dictionary: pa.Array | None = None) -> pa.Array:
    words = pa.array(["a", "b"]) if dictionary is None else dictionary
    return pa.DictionaryArray.from_arrays(pa.array(values, pa.int32()), words, safe=False)


class Tagged(pa.ExtensionType):
    """Strings under another name."""

    def __init__(self) -> None:
        super().__init__(pa.string(), "tests.tagged")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, _storage: pa.DataType, _serialized: bytes) -> Tagged:
        return cls()


def bad_strings() -> pa.Array:
    return strings(pa.string(), "i", [0, FAR, 2, 3])


def bad_runs() -> pa.Array:
    """Arrow checks runs in full when it makes them: the offsets change afterwards."""
    offsets = bytearray(struct.pack("<4i", 0, 1, 2, 3))
    values = made(pa.string(), [None, pa.py_buffer(offsets), pa.py_buffer(b"abc")])
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1, 2, ROWS], pa.int32()), values)
    offsets[4:8] = struct.pack("<i", FAR)
    return runs


#: Damaged columns that Arrow makes without a word, by what is wrong with them.
STRINGS: dict[str, Callable[[], pa.Array]] = {
    "an offset far behind the data": bad_strings,
    "a large offset far behind the data": lambda: strings(pa.large_string(), "q", [0, 1 << 60, 2, 3]),
    "offsets that fall": lambda: strings(pa.string(), "i", [0, 2, 1, 3]),
    "a negative offset": lambda: strings(pa.string(), "i", [0, -FAR, 2, 3]),
    "binary offsets that fall": lambda: strings(pa.binary(), "i", [0, 2, 1, 3]),
    "no UTF-8": lambda: strings(pa.string(), "i", [0, 1, 2, 3], b"a\xffc"),
    "half a character": lambda: strings(pa.string(), "i", [0, 1, 2, 3], "aé".encode()),
    "no UTF-8, large": lambda: strings(pa.large_string(), "q", [0, 1, 2, 3], b"\xed\xa0\x80"),
    "an array offset below 0": lambda: made(
        pa.string(), [None, packed("i", 0, 0, 1, 2, 3).slice(4), pa.py_buffer(b"abc")], offset=-1
    ),
    "an index behind the dictionary": lambda: indices(0, FAR, 1),
    "an index below the dictionary": lambda: indices(0, -FAR, 1),
    "a dictionary that is damaged": lambda: indices(0, 1, 1, dictionary=bad_strings()),
    "a view of no buffer": lambda: views(100, 77, 0, []),
    "a view behind its buffer": lambda: views(100, 0, FAR, [b"abcd"]),
    "a view of negative length": lambda: views(-100, 0, 0, [b"abcd"]),
    "runs of strings that are damaged": bad_runs,
}

NUMBERS: dict[str, Callable[[], pa.Array]] = {
    "an array offset below 0": lambda: made(pa.int64(), [None, pa.py_buffer(bytes(8 * ROWS))], offset=-FAR),
    "numbers by a dictionary, an index behind it": lambda: indices(0, FAR, 1, dictionary=pa.array([1, 2])),
}

NESTED: dict[str, Callable[[], pa.Array]] = {
    "a list behind its values": lambda: made(
        pa.list_(pa.int64()), [None, packed("i", 0, FAR, 2, 3)], children=[pa.array([1, 2, 3])]
    ),
    "a list of strings that are damaged": lambda: made(
        pa.list_(pa.string()), [None, packed("i", 0, 1, 2, 3)], children=[bad_strings()]
    ),
    "a list of numbers before their buffer": lambda: made(
        pa.list_(pa.int64()), [None, packed("i", 0, 1, 2, 3)], children=[NUMBERS["an array offset below 0"]()]
    ),
    "a struct of strings that are damaged": lambda: made(
        pa.struct([("a", pa.string())]), [None], children=[bad_strings()]
    ),
    "an extension of strings that are damaged": lambda: pa.ExtensionArray.from_storage(Tagged(), bad_strings()),
}


# ---- the C data interface ----


class Schema(ctypes.Structure):
    pass


class Array(ctypes.Structure):
    pass


Schema._fields_ = [
    *((name, ctypes.c_void_p) for name in ("format", "name", "metadata")),
    *((name, ctypes.c_int64) for name in ("flags", "n_children")),
    ("children", ctypes.POINTER(ctypes.POINTER(Schema))),
    ("dictionary", ctypes.POINTER(Schema)),
    *((name, ctypes.c_void_p) for name in ("release", "private_data")),
]
Array._fields_ = [
    *((name, ctypes.c_int64) for name in ("length", "null_count", "offset", "n_buffers", "n_children")),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(Array))),
    ("dictionary", ctypes.POINTER(Array)),
    *((name, ctypes.c_void_p) for name in ("release", "private_data")),
]


class Stream(ctypes.Structure):
    _fields_ = (
        ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Schema))),
        ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(Array))),
        ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)),
        ("release", ctypes.c_void_p),
        ("private_data", ctypes.c_void_p),
    )


_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype, _capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_KEPT: list[Any] = []  # structs that capsules point to: nobody releases what lies


def exported(batch: pa.RecordBatch, lie: Any) -> tuple[Schema, Array]:
    schema, array = Schema(), Array()
    _KEPT.extend([schema, array])
    batch._export_to_c(ctypes.addressof(array), ctypes.addressof(schema))
    lie(schema, array)
    return schema, array


class LyingArray:
    """Has `__arrow_c_array__`, and something in what it gives is wrong."""

    def __init__(self, batch: pa.RecordBatch, lie: Any) -> None:
        self.batch, self.lie = batch, lie

    def __arrow_c_array__(self, _requested: Any = None) -> tuple[Any, Any]:
        schema, array = exported(self.batch, self.lie)
        return (
            _capsule(ctypes.addressof(schema), b"arrow_schema", None),
            _capsule(ctypes.addressof(array), b"arrow_array", None),
        )


class LyingStream:
    """The same as a stream of one batch, or one that fails."""

    def __init__(self, batch: pa.RecordBatch, lie: Any, code: int = 0) -> None:
        self.batch, self.lie, self.code = batch, lie, code

    def __arrow_c_stream__(self, _requested: Any = None) -> Any:
        schema, array = exported(self.batch, self.lie)
        left = [array]

        def get_schema(_stream: int, out: Any) -> int:
            ctypes.memmove(out, ctypes.addressof(schema), ctypes.sizeof(schema))
            return 0

        def get_next(_stream: int, out: Any) -> int:
            ctypes.memset(out, 0, ctypes.sizeof(Array))
            if left:
                ctypes.memmove(out, ctypes.addressof(left.pop()), ctypes.sizeof(Array))
            return self.code

        kinds = [kind for _, kind in Stream._fields_[:3]]
        text = ctypes.create_string_buffer(b"no more")
        _KEPT.append(text)
        own = get_schema, get_next, lambda _: ctypes.addressof(text)
        calls = [kind(call) for kind, call in zip(kinds, own, strict=True)]
        stream = Stream(*calls, 1, None)
        _KEPT.extend([stream, *calls])
        return _capsule(ctypes.addressof(stream), b"arrow_array_stream", None)


def _set(path: str, value: Any) -> Any:
    """A lie: what the path leads to, as in `array.children.0.length`, becomes the value."""

    def lie(schema: Schema, array: Array) -> None:
        at: Any = {"schema": schema, "array": array}
        *way, last = path.split(".")
        for step in way:
            at = at[step] if isinstance(at, dict) else at[int(step)].contents if step.isdigit() else getattr(at, step)
        if last.isdigit():
            at[int(last)] = value
        else:
            setattr(at, last, value)

    return lie


def _text(path: str, text: bytes) -> Any:
    kept = ctypes.create_string_buffer(text)
    _KEPT.append(kept)
    return _set(path, ctypes.addressof(kept))


def _own_child(schema: Schema, array: Array) -> None:
    schema.children[0].contents.children, schema.children[0].contents.n_children = schema.children, 1
    array.children[0].contents.children, array.children[0].contents.n_children = array.children, 1


#: Column 0 is int64, column 1 string. What each lie says of itself.
LIES: dict[str, Any] = {
    **{f"n_buffers {n}": _set("array.children.0.n_buffers", n) for n in (0, 1, 9, -1)},
    "n_buffers of the batch 0": _set("array.n_buffers", 0),
    **{f"n_children {n}": _set("array.n_children", n) for n in (0, 1, 9, -1)},
    "no children": _set("array.children", None),
    "a child is missing": _set("array.children.0", None),
    "no buffers": _set("array.children.0.buffers", None),
    "no buffers of the batch": _set("array.buffers", None),
    "no values": _set("array.children.0.buffers.1", None),
    "no offsets": _set("array.children.1.buffers.1", None),
    "no data": _set("array.children.1.buffers.2", None),
    **{f"length {n}": _set("array.children.0.length", n) for n in (-1, 1, 1000, 1 << 62)},
    **{f"length of strings {n}": _set("array.children.1.length", n) for n in (-1, 1, 1 << 30, 1 << 62)},
    **{f"length of the batch {n}": _set("array.length", n) for n in (-1, 1, 1000, 1 << 62)},
    **{f"offset {n}": _set("array.children.0.offset", n) for n in (-1, -FAR, 1 << 62)},
    **{f"offset of strings {n}": _set("array.children.1.offset", n) for n in (-1, -FAR, 1 << 62)},
    **{f"offset of the batch {n}": _set("array.offset", n) for n in (-1, 1 << 62)},
    **{f"null_count {n}": _set("array.children.0.null_count", n) for n in (2, 99, -7)},
    "a null in the batch": _set("array.null_count", 1),
    "released": _set("array.release", None),
    "a child is released": _set("array.children.0.release", None),
    "a dictionary": lambda _schema, array: setattr(array.children[0].contents, "dictionary", array.children[1]),
    "its own child": _own_child,
    "the type is released": _set("schema.release", None),
    **{f"n_children of the type {n}": _set("schema.n_children", n) for n in (0, 1, 9, -1)},
    "no children of the type": _set("schema.children", None),
    "a child of the type is missing": _set("schema.children.0", None),
    "no format": _set("schema.format", None),
    "no format of a child": _set("schema.children.0.format", None),
    "a format that is none": _text("schema.children.0.format", b"zz"),
    "numbers said to be strings": _text("schema.children.0.format", b"u"),
    "numbers said to be a list": _text("schema.children.0.format", b"+l"),
    "strings said to be views": _text("schema.children.1.format", b"vu"),
    "strings said to be large": _text("schema.children.1.format", b"U"),
    "strings said to be a union": _text("schema.children.1.format", b"+ud:0,1"),
    "a batch said to be a number": _text("schema.format", b"l"),
    "no name": _set("schema.children.0.name", None),
    "a name that is no text": _text("schema.children.0.name", b"\xff\xfe"),
}
