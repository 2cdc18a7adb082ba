"""What `TGate` and `WHive` share: checks of arguments, and the errors of refused calls."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from pystream import _native
from pystream._inputs.column_checks import sound_items
from pystream.errors import ClosedError, DisorderError, OverlapError, PystreamError

if TYPE_CHECKING:
    import numpy.typing as npt

MOST = 1 << 16  #: inputs, readers, threads
INT64_MAX = (1 << 63) - 1


def in_range(name: str, value: int, least: int, most: int) -> int:
    """The number, if it lies between the two."""
    number = operator.index(value)
    if not least <= number <= most:
        raise ValueError(f"{name} must be between {least} and {most}, not {value}")
    return number


def timestamp(ts: int) -> int:
    """The timestamp, if it fits into int64."""
    number = operator.index(ts)
    if not -INT64_MAX - 1 <= number <= INT64_MAX:
        raise ValueError(f"timestamp {number} does not fit into int64")
    return number


def timestamps(ts: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The timestamps as a contiguous array."""
    times = np.asarray(sound_items(ts, "ts"))
    if times.ndim != 1:
        raise ValueError(f"timestamps must be a list or an array of one dimension, not of {times.ndim}")
    if times.size == 0:
        return np.empty(0, np.int64)
    if times.dtype.kind not in "iu":
        raise TypeError(f"timestamps must be integers that fit into int64, not {times.dtype}")
    if times.dtype == np.uint64 and times.max() > INT64_MAX:
        raise ValueError(f"timestamp {times.max()} does not fit into int64")
    return np.ascontiguousarray(times, np.int64)


def refusal(fault: _native.Fault, what: str, number: int, row: int | None) -> PystreamError:
    """The exception for a refused call of input or thread `number`."""
    if _native.is_closed(fault):
        return ClosedError(f"{what} {number} is closed")
    where = f"{what} {number}" if row is None else f"{what} {number}, row {row}"
    if _native.is_overlap(fault):
        return OverlapError(
            f"{where}: timestamp {fault.ts} falls into more than {_native.WINDOWS_MAX:,} windows, and a W-Hive keeps "
            "each of them; use an Operator with design='sliced', or a larger advance"
        )
    why = "is negative" if fault.ts < 0 else f"is below {fault.latest}, the latest timestamp of this {what}"
    return DisorderError(
        f"{where}: timestamp {fault.ts} {why}", input=number, row=row, ts=fault.ts, latest=fault.latest
    )
