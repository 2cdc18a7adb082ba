"""Codes of C as exceptions: those that mean the same everywhere, and `Fault` for the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream import errors
from pystream._native.extension import lib

if TYPE_CHECKING:
    import pyarrow as pa


class Fault(Exception):  # noqa: N818 - not an error for users: the operator turns it into one
    """A C call failed: the code and the numbers that go with it."""

    def __init__(self, code: int, fault: Any) -> None:
        super().__init__(code)
        self.code = code
        self.row = fault.row
        self.ts = fault.ts
        self.latest = fault.latest
        self.aggregate = fault.aggregate
        self.user_code = fault.code
        self.stream, self.position = fault.stream, fault.position
        self.window: pa.RecordBatch | None = None  # start and key of the window, one row


def raise_if_broken(code: int) -> None:
    """Turn the codes that mean the same everywhere into exceptions."""
    if code == lib.PS_NO_MEMORY:
        raise MemoryError("pystream could not allocate memory")
    if code == lib.PS_NO_THREAD:
        raise errors.PystreamError("the system refused to start a thread")


def raise_fault(code: int, fault: Any) -> None:
    """Whatever is not PS_OK as an exception."""
    raise_if_broken(code)
    if code != lib.PS_OK:
        raise Fault(code, fault)


def is_closed(fault: Fault) -> bool:
    """Whether the call came too late."""
    return bool(fault.code == lib.PS_CLOSED)


def is_disorder(fault: Fault) -> bool:
    """Whether a timestamp was below what it had to be."""
    return bool(fault.code == lib.PS_DISORDER)


def is_overlap(fault: Fault) -> bool:
    """Whether a tuple falls into more than WINDOWS_MAX windows."""
    return bool(fault.code == lib.PS_OVERLAP)


def is_twice(fault: Fault) -> bool:
    """Whether a row turned up twice."""
    return bool(fault.code == lib.PS_TWICE)


def is_udf_failure(fault: Fault) -> bool:
    """Whether a native udf gave a code other than 0."""
    return bool(fault.code == lib.PS_UDF_FAILED)


#: What can be wrong with a partial, by Fault.user_code: which of its columns, and how.
PARTIAL_FAULTS = {
    lib.PS_BAD_SLICE: ("slice", "is where no slice of a window begins"),
    lib.PS_BAD_LATE: ("slice", "is in a window that has been put out already"),
    lib.PS_BAD_ROWS: ("rows", "is not a possible number of rows"),
    lib.PS_BAD_COUNT: ("n", "is below 0 or above the number of rows"),
    lib.PS_BAD_SUM: ("sum", "is not the sum of so many values"),
    lib.PS_BAD_MOMENTS: ("moments", "is not what that many values lead to"),
    lib.PS_BAD_SET: ("set", "is not a set of so many values of its column"),
    lib.PS_BAD_VALUE: ("value", "is not a value of its column"),
    lib.PS_BAD_BY: ("by", "is missing, or not a value of its column"),
    lib.PS_BAD_PLACE: ("ts", "is not in the slice, or the stream or position is missing"),
    lib.PS_BAD_PACK: ("pack", "is not what packing gives"),
}
LATE = PARTIAL_FAULTS[lib.PS_BAD_LATE]
