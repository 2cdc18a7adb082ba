"""Timestamps for people: ISO 8601 where the column is a timestamp, the number where it is one."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa

from pystream.errors import DisorderError

if TYPE_CHECKING:
    from pystream import _native

#: Digits after the second.
_DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def time_text(ticks: int, type: pa.DataType) -> str:
    """A timestamp, in ticks, of a column of this type."""
    if not pa.types.is_timestamp(type):
        return str(ticks)
    digits = _DIGITS[type.unit]
    seconds, rest = divmod(ticks, 10**digits)
    fraction = f".{rest:0{digits}}" if rest else ""
    try:
        at = _EPOCH + timedelta(seconds=seconds)
        at = at.astimezone(pa.lib.string_to_tzinfo(type.tz)) if type.tz else at
    except (OverflowError, ValueError, LookupError):  # beyond what Python holds, or a zone that is not known here
        return f"{ticks} {type.unit} since 1970"
    text = at.isoformat()
    return text[:19] + fraction + (text[19:] if type.tz else "")


def too_low(ts: int, latest: int, type: pa.DataType, of: str) -> str:
    """Why a timestamp is refused; `of` names what it is below."""
    if ts >= 0:
        return f"timestamp {time_text(ts, type)} is below {time_text(latest, type)}, {of}"
    if pa.types.is_timestamp(type):
        return f"timestamp {time_text(ts, type)} is before 1970, where time begins"
    return f"timestamp {ts} is negative; time begins at 0"


def disorder_error(
    fault: _native.Fault, where: str, type: pa.DataType, column: str, input: int | None, row: int | None
) -> DisorderError:
    """The error for a timestamp that an input may not send any more."""
    what = too_low(fault.ts, fault.latest, type, "the latest timestamp of this input")
    advice = (
        ""
        if fault.ts < 0
        else (
            f"; sort the rows by {column!r} first (ps.aggregate does with sort=True), "
            "and give rows of several sources an input each"
        )
    )
    return DisorderError(f"{where}: {what}{advice}", input=input or 0, row=row, ts=fault.ts, latest=fault.latest)
