"""Columns that folders of the form name=value give, typed as Spark types them.

| all values of a column are ...                      | type |
|-----------------------------------------------------|---|
| whole numbers of 32 bits, of 64 bits                | int32, int64 |
| larger ones, or such as 1e5 and "1."; up to 38 digits | decimal |
| other numbers, as Java reads them                   | double |
| 2024-01-31, 2024-01-31 12:30:59[.5]                 | date, timestamp in the session's time zone |
| anything else, or what has no type in common        | string |
"""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterable

STRING = pa.string()
INSTANT = pa.timestamp("us", "UTC")

#: The digits that Spark takes an integer for where it meets a decimal.
DIGITS = {pa.int32(): 10, pa.int64(): 20}
DIGITS_MAX = 38

#: What holds both, where it is not a string.
_WIDER = {
    frozenset([pa.int32(), pa.int64()]): pa.int64(),
    frozenset([pa.int32(), pa.float64()]): pa.float64(),
    frozenset([pa.date32(), INSTANT]): INSTANT,
}

_WHOLE = re.compile(r"[+-]?[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_JAVAS = re.compile(r"\s*[+-]?(NaN|Infinity|([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[fFdD]?)\s*")
_HEX = re.compile(r"\s*(?P<number>[+-]?0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+)[fFdD]?\s*")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d)?", re.ASCII)


def common_type(texts: Iterable[str]) -> pa.DataType:
    """The type of a column with these values, nulls left out.

    >>> common_type(["01", "2"]), common_type(["1", "1.5"]), common_type(["1", "x"]), common_type(["2024-02-29"])
    (DataType(int32), DataType(double), DataType(string), DataType(date32[day]))
    """
    types = [_type(text) for text in texts]
    return reduce(_together, types) if types else STRING


def value_of(text: str | None, type: pa.DataType, zone: str = "UTC") -> pa.Scalar:
    """The value of a folder's name in the type of its column.

    >>> value_of("007", pa.int32()), value_of(" 1d", pa.float64())
    (<pyarrow.Int32Scalar: 7>, <pyarrow.DoubleScalar: 1.0>)
    """
    if text is None or pa.types.is_string(type):
        return pa.scalar(text, type)
    if pa.types.is_floating(type):
        return pa.scalar(_float(text), type)
    if pa.types.is_date(type):
        return pa.scalar(dt.date.fromisoformat(text), type)
    if pa.types.is_timestamp(type):
        return pa.scalar(dt.datetime.fromisoformat(text).replace(tzinfo=_zone(zone)), type)
    number = int(Decimal(text))
    return pa.scalar(Decimal(number) if pa.types.is_decimal(type) else number, type)


def _zone(name: str) -> dt.tzinfo | None:
    """A time zone by its name, or by its offset such as +02:00, which Spark takes, too."""
    return dt.datetime.fromisoformat(f"2000-01-01T00:00{name}").tzinfo if name[0] in "+-" else ZoneInfo(name)


def _type(text: str) -> pa.DataType:
    """What Spark would take one value for."""
    if _WHOLE.fullmatch(text):
        bits = int(text).bit_length() if int(text) >= 0 else (-int(text) - 1).bit_length()
        if bits < 64:
            return pa.int32() if bits < 32 else pa.int64()
    if _NUMBER.fullmatch(text) and (digits := _digits(Decimal(text))):
        return pa.decimal128(digits, 0)
    if _JAVAS.fullmatch(text) or _HEX.fullmatch(text):
        return pa.float64()
    if _TIME.fullmatch(text) and _is_date(dt.datetime, text):
        return INSTANT
    return pa.date32() if _DATE.fullmatch(text) and _is_date(dt.date, text) else STRING


def _digits(number: Decimal) -> int:
    """How many digits a decimal needs for a number without a fraction that is written down; 0 if it is not one."""
    _, digits, exponent = number.as_tuple()
    if not isinstance(exponent, int) or exponent < 0:
        return 0
    needed = max(1, len(digits)) + exponent
    return needed if needed <= DIGITS_MAX else 0


def _is_date(kind: type[dt.date], text: str) -> bool:
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


def _float(text: str) -> float:
    found = _HEX.fullmatch(text)
    return float.fromhex(found["number"]) if found else float(text.strip().rstrip("fFdD"))


def _together(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type that values of both have in common."""
    if a == b:
        return a
    pair = {a, b}
    decimals = [t for t in pair if pa.types.is_decimal(t)]
    if decimals and all(pa.types.is_decimal(t) or t in DIGITS for t in pair):
        return pa.decimal128(max(t.precision if t in decimals else DIGITS[t] for t in pair), 0)
    return _WIDER.get(frozenset(pair), STRING)
