"""The limits: bare_loop.c, and one pass over memory.

The loop's input is merged beforehand. Where only some tuples count, the regular expression is Arrow's and is timed.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.case import Case

PACKAGES = ("numpy",)
FUNCTIONS = {"count": 0, "avg": 1, "first": 2}

#: Keys up to which panes are arrays.
DENSE_KEYS = 4_096


class Job(ctypes.Structure):
    """The arguments of bare_loop.c."""

    _fields_ = (
        ("function", ctypes.c_int),
        ("n", ctypes.c_int64),
        ("ts", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("counts", ctypes.c_void_p),
        ("advance", ctypes.c_int64),
        ("panes", ctypes.c_int64),
        ("keys", ctypes.c_int64),
        ("out_ts", ctypes.c_void_p),
        ("out_key", ctypes.c_void_p),
        ("out_value", ctypes.c_void_p),
    )


@cache
def library() -> ctypes.CDLL:
    cc = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if cc is None:
        raise ImportError("no C compiler")
    source = Path(__file__).parents[1] / "bare_loop.c"
    with tempfile.TemporaryDirectory() as folder:
        built = Path(folder) / "bare_loop.so"
        subprocess.run([cc, "-O3", "-std=c11", "-shared", "-fPIC", source, "-o", built], check=True)  # noqa: S603
        lib = ctypes.CDLL(str(built))
    lib.bare_loop.restype = lib.bare_sparse.restype = ctypes.c_int64
    lib.bare_memory.argtypes = (ctypes.c_void_p, ctypes.c_int64)
    return lib


def address(array: Any) -> int | None:
    return None if array is None else array.ctypes.data


def most_rows(case: Case, ts: Any, keys: int) -> int:
    """No more windows and keys come out than there are, nor than every tuple could make."""
    return min((int(ts[-1]) // case.advance + 1) * keys, len(ts) * case.panes)


def loop(case: Case) -> Callable[[], pa.Table]:
    whole = pa.concat_tables([t.select(case.needed) for t in case.inputs])
    whole = whole.take(np.argsort(whole["ts"].to_numpy(), kind="stable")).combine_chunks()
    ts, key = (whole[name].to_numpy() for name in ("ts", case.key))
    value = whole[case.column].to_numpy() if case.column else None
    keys = int(key.max()) + 1
    work = library().bare_loop if keys <= DENSE_KEYS and not case.pattern else library().bare_sparse

    def run() -> pa.Table:
        counts = None
        if case.pattern:
            match = pc.match_substring_regex(whole["cmt"], case.pattern)
            counts = match.cast(pa.uint8()).to_numpy()
        rows = most_rows(case, ts, keys)
        out = [np.empty(rows + keys, t) for t in (np.int64, np.int32, np.float64)]
        arrays = [address(a) for a in (ts, key, value, counts)]
        job = Job(FUNCTIONS[case.function], len(ts), *arrays, case.advance, case.panes, keys, *map(address, out))
        n = work(ctypes.byref(job))
        return case.result(*(a[:n] for a in out))

    return run


def memory(case: Case) -> Callable[[], None]:
    columns = [t[name].combine_chunks() for t in case.inputs for name in case.needed]
    buffers = [b for c in columns for b in c.buffers() if b is not None]
    words = [np.frombuffer(b, np.uint64, b.size // 8) for b in {b.address: b for b in buffers}.values()]

    def run() -> None:
        for w in words:
            library().bare_memory(address(w), len(w))

    return run


FORMS = {"loop": loop, "memory": memory}
