"""The times of raw records without Spark, by the rules of Spark's half: microseconds, and which could be read."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pystream.data.raw_records import END_S, SECONDS_MAX, UNITS, ZONE, Rules
from pystream.errors import PystreamError

if TYPE_CHECKING:
    from numpy.typing import NDArray

MICROS = 1_000_000

#: No zone has changed its clock since 1970 but at a full quarter of an hour: times between share an offset.
_QUARTER_S = 900

_ISO = (
    r"^(?P<y>\d{4})-(?P<M>\d\d)-(?P<d>\d\d)"
    r"(?:[T ](?P<H>\d\d)(?::(?P<m>\d\d)(?::(?P<s>\d\d)(?:\.(?P<S>\d{1,9}))?)?)?(?P<zone> ?" + ZONE + r")?)?\z"
)

#: Letters of Spark's formats, as often as they stand there, that are read without it.
_LETTERS = frozenset("yMdHmsS")
_ZONES = {"X": r"Z|[+-]\d\d(?:\d\d)?", "XX": r"Z|[+-]\d{4}", "XXX": r"Z|[+-]\d\d:\d\d"}


def kind_of(type: pa.DataType) -> str:
    """What kind of time a column has, as Rules.check_time calls it."""
    if pa.types.is_timestamp(type):
        return "local" if type.tz is None else "instant"
    if pa.types.is_date(type):
        return "local"
    if pa.types.is_integer(type):
        return "integer"
    is_text = pa.types.is_string(type) or pa.types.is_large_string(type) or pa.types.is_string_view(type)
    return "text" if is_text else "other"


def times_of(column: pa.Array, rules: Rules) -> tuple[NDArray[np.int64], NDArray[np.bool_], pa.DataType]:
    """The times as integers, which of them could be read, and what type they are."""
    kind = kind_of(column.type)
    zoned, there = pa.timestamp("us", "UTC"), np.asarray(column.is_valid())
    if kind == "integer":
        return _of_integers(_filled(column.cast(pa.int64())), there, rules)
    if kind == "text":
        text = column.cast(pa.string())
        pattern = _ISO if rules.format is None else _pattern(rules.format)
        core = pc.utf8_trim(text, " ") if rules.format is None else text
        return (*_of_text(core, pattern, rules), zoned)
    floored = pc.cast(column, pa.timestamp("us", getattr(column.type, "tz", None)), safe=False)
    ticks = _filled(floored.cast(pa.int64()))
    if kind == "local" and rules.tz is not None:
        return ticks - _offsets_s(ticks // MICROS, rules.tz) * MICROS, there, zoned
    return ticks, there, pa.timestamp("us") if kind == "local" else zoned


def _filled(column: pa.Array) -> NDArray[np.int64]:
    values: NDArray[np.int64] = pc.fill_null(column, 0).to_numpy(zero_copy_only=False)
    return values


def _of_integers(
    numbers: NDArray[np.int64], there: NDArray[np.bool_], rules: Rules
) -> tuple[NDArray[np.int64], NDArray[np.bool_], pa.DataType]:
    if rules.unit is None:
        odd = there & (numbers >= SECONDS_MAX)
        if odd.any():
            raise PystreamError(rules.no_seconds(str(numbers[odd][0])))
        return numbers, there, pa.int64()
    a_second = UNITS[rules.unit]
    end = min(END_S * a_second, (1 << 63) - 1)
    inside = np.clip(numbers, -end, end)
    micros = inside * (MICROS // a_second) if a_second <= MICROS else inside // (a_second // MICROS)
    return micros, there, pa.timestamp("us", "UTC")


# ---- text ----


def _pattern(format: str) -> str:
    """A regular expression for a format of Spark's."""
    pattern = ""
    for token in re.finditer(r"'([^']*)'|(([A-Za-z])\3*)|(.)", format):
        pattern += _of_letters(token[2], format) if token[2] else re.escape(token[1] or token[4] or "")
    return rf"^{pattern}\z"


def _of_letters(letters: str, format: str) -> str:
    if letters in _ZONES:
        return f"(?P<zone>{_ZONES[letters]})"
    letter = letters[0]
    if letter not in _LETTERS or (letter == "y" and letters != "yyyy"):
        raise PystreamError(
            f"format {format!r}: {letters!r} is read on Spark only; here there are yyyy M d H m s S X, two or one"
        )
    width = "1,2" if len(letters) == 1 and letter != "S" else str(len(letters))
    return f"(?P<{letter}>\\d{{{width}}})"


def _of_text(text: pa.Array, pattern: str, rules: Rules) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    found = pc.extract_regex(text, pattern)
    part = {name: found.field(i) for i, name in enumerate(x.name for x in found.type)}
    readable = np.asarray(found.is_valid())
    y, month, day = (_number(part[name], readable) for name in "yMd")
    h, minute, second = (_number(part.get(name), readable) for name in "Hms")
    days, valid = _days(y, month, day)
    readable = readable & valid & (h < 24) & (minute < 60) & (second < 60)
    seconds = days * 86_400 + h * 3_600 + minute * 60 + second
    zones = part.get("zone")
    has_zone = (
        np.asarray(pc.fill_null(pc.not_equal(zones, ""), False)) if zones is not None else np.zeros(len(text), bool)
    )
    bare = readable & ~has_zone
    if bare.any() and rules.tz is None:
        raise PystreamError(rules.no_zone(text[int(np.argmax(bare))].as_py()))
    offsets = np.zeros(len(text), np.int64)
    if zones is not None:
        offsets = _zone_offsets_s(zones)
    if rules.tz is not None and bare.any():
        offsets = np.where(bare, _offsets_s(np.where(bare, seconds, 0), rules.tz), offsets)
    micros = (seconds - offsets) * MICROS + _fraction(part.get("S"), len(text))
    return np.where(readable, micros, 0), readable


def _number(column: pa.Array | None, readable: NDArray[np.bool_]) -> NDArray[np.int64]:
    if column is None:
        return np.zeros(len(readable), np.int64)
    return _filled(pc.if_else(pc.equal(column, ""), "0", column).cast(pa.int64()))


def _days(
    y: NDArray[np.int64], m: NDArray[np.int64], d: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Days since 1970, and whether there is such a day."""
    valid = (m >= 1) & (m <= 12) & (d >= 1)
    months = np.where(valid, (y - 1970) * 12 + m - 1, 0).astype("datetime64[M]")
    first = months.astype("datetime64[D]").astype(np.int64)
    length = (months + 1).astype("datetime64[D]").astype(np.int64) - first
    return first + d - 1, valid & (d <= length)


def _fraction(digits: pa.Array | None, rows: int) -> NDArray[np.int64]:
    """Microseconds; what is below them is left out."""
    if digits is None:
        return np.zeros(rows, np.int64)
    return _filled(pc.utf8_slice_codeunits(pc.utf8_rpad(pc.fill_null(digits, "0"), 6, "0"), 0, 6).cast(pa.int64()))


def _zone_offsets_s(zones: pa.Array) -> NDArray[np.int64]:
    encoded = pc.fill_null(zones, "").dictionary_encode()
    known = np.array([_zone_offset_s(text.strip()) for text in encoded.dictionary.to_pylist()], np.int64)
    found: NDArray[np.int64] = known[encoded.indices.to_numpy()]
    return found


def _zone_offset_s(text: str) -> int:
    if text in ("", "Z"):
        return 0
    digits = text[1:].replace(":", "")
    offset = int(digits[:2]) * 3_600 + int(digits[2:] or 0) * 60
    return -offset if text[0] == "-" else offset


def _offsets_s(local_s: NDArray[np.int64], tz: str) -> NDArray[np.int64]:
    """What to take from the seconds of a clock in a zone. Of a time that is there twice it is the first."""
    quarters, back = np.unique(local_s // _QUARTER_S, return_inverse=True)
    zone, start = ZoneInfo(tz), datetime(1970, 1, 1)  # noqa: DTZ001 - the time of a clock on a wall
    known = [_offset_s(start + timedelta(seconds=int(q) * _QUARTER_S), zone) for q in quarters]
    return np.array(known, np.int64)[back] if known else np.zeros(0, np.int64)


def _offset_s(local: datetime, zone: ZoneInfo) -> int:
    offset = local.replace(tzinfo=zone).utcoffset()
    return 0 if offset is None else int(offset.total_seconds())
