"""Arrow arrays on their way into C and out of it."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from pystream._native.extension import ffi, lib
from pystream._native.faults import raise_if_broken


def new_array() -> Any:
    """An Arrow array for C to read or fill. What is not moved out is released with it, even after Ctrl-C."""
    return ffi.gc(ffi.new("struct ArrowArray *"), lib.ps_arrow_release)


def imported(array: Any, schema: pa.Schema) -> pa.RecordBatch:
    """The array as a batch. The array is left as it is, so that it can be imported again after an exception."""
    reference = new_array()
    raise_if_broken(lib.ps_arrow_share(array, reference))
    return pa.RecordBatch._import_from_c(int(ffi.cast("uintptr_t", reference)), schema)


def exported(batch: pa.RecordBatch) -> Any:
    """The batch for C to read."""
    array = new_array()
    batch._export_to_c(int(ffi.cast("uintptr_t", array)))
    return array


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
