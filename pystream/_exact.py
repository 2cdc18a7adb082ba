"""The numbers of the oracle: exact, in fractions, and rounded once."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from typing import Any


def number(function: str, values: list[Any], ddof: int) -> Any:
    """A sum, mean, variance or deviation of one value or more."""
    if function in ("var", "std"):
        return _variance(values, ddof, root=function == "std")
    return _total(values, None if function == "sum" else len(values))


def _total(values: list[Any], n: int | None = None) -> Any:
    """The sum, divided by n if there is one; floats are rounded once, at the end."""
    if not isinstance(values[0], float):
        return sum(values) if n is None else sum(values) / n
    if not all(map(math.isfinite, values)):
        return sum(v for v in values if not math.isfinite(v))  # NaN and infinities decide alone
    return _nearest(sum(map(Fraction, values), Fraction(0)) / (n or 1))


def _variance(values: list[Any], ddof: int, *, root: bool) -> float | None:
    """The variance, or its root, rounded once; there is none of fewer than ddof + 1 values."""
    n = len(values)
    if n <= ddof:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    exact = statistics.pvariance(map(Fraction, values)) * n / (n - ddof)
    return _nearest_root(exact) if root else _nearest(exact)


def _nearest(x: Fraction) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _nearest_root(x: Fraction) -> float:
    """Of the root a hundred bits or more, and below them a last one: whether anything follows."""
    shifted = x * 4**1200
    root = math.isqrt(math.floor(shifted))
    return _nearest(Fraction(2 * root + (root * root != shifted), 2**1201))
