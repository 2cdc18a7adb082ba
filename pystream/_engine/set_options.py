"""What functions over multisets take besides a column, as C wants it: see ps_set in csrc/pystream.h."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

#: As in csrc/pystream.h.
CHOICES = ("linear", "lower", "higher", "nearest", "midpoint", "middle")

_SIGN = 1 << 63


@dataclass(frozen=True)
class SetOptions:
    """The fields of a ps_set. `edges`: those that some value of the column reaches, as words in the order of values."""

    q: float = 0.0
    choice: int = 0
    bits: int = 0
    k: int = 1
    bins: int = 1
    edges: tuple[int, ...] = ()


def set_options(options: dict[str, Any], stored: pa.DataType) -> SetOptions:
    """The options of an aggregate, for a column whose values C gets as `stored`."""
    edges = options.get("edges", ())
    words = (_word(edge, stored) for edge in edges)
    return SetOptions(
        q=options.get("q", 0.0),
        choice=CHOICES.index(options.get("interpolation", "linear")),
        bits=bucket_bits(options["error"]) if "error" in options else 0,
        k=options.get("k", 1),
        bins=len(edges) + 1,
        edges=tuple(word for word in words if word is not None),
    )


def bucket_bits(error: float) -> int:
    """How many bits of the mantissa a bucket shares, so that its middle is within the relative error."""
    return next(bits for bits in range(52) if 2.0 ** -(bits + 1) < error)


def _word(edge: float, stored: pa.DataType) -> int | None:
    """The least word of a value that is at the edge or above; None: there is none (csrc/base/value.h)."""
    if pa.types.is_floating(stored):
        return _float_word(edge)
    unsigned = pa.types.is_unsigned_integer(stored) or pa.types.is_boolean(stored)
    least, most = (0, 2**64 - 1) if unsigned else (-(2**63), 2**63 - 1)
    value = max(math.ceil(edge), least)
    if value > most:
        return None
    return value if unsigned else value + _SIGN


def _float_word(edge: float) -> int:
    try:
        value = float(edge)
    except OverflowError:  # an integer beyond all doubles
        value = math.inf if edge > 0 else -math.inf
    if value < edge:  # an integer between two doubles
        value = math.nextafter(value, math.inf)
    (bits,) = struct.unpack("<Q", struct.pack("<d", value or -0.0))  # both zeros reach an edge of 0
    return int(bits) ^ (2**64 - 1 if bits & _SIGN else _SIGN)
