"""The numbers of the oracle: exact, in fractions, and rounded once."""

from __future__ import annotations

import math
import statistics
from fractions import Fraction
from typing import Any

#: What it computes.
NUMBERS = ("sum", "avg", "var", "std", "covar", "slope", "intercept", "corr")


def number(function: str, values: list[Any], others: list[Any], ddof: int) -> Any:
    """A sum, mean, variance or deviation of one value or more; or with a second column, what is of pairs."""
    if others:
        return _of_pairs(function, values, others, ddof)
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


def _of_pairs(function: str, ours: list[Any], others: list[Any], ddof: int) -> float | None:
    """A covariance, a correlation, or slope or intercept of the line of `ours` over `others`, rounded once."""
    n = len(ours)
    if n <= (ddof if function == "covar" else 1):
        return None
    if not all(map(math.isfinite, ours + others)):
        return math.nan
    y, x = list(map(Fraction, ours)), list(map(Fraction, others))
    xy, xx, yy = _deviations(x, y), _deviations(x, x), _deviations(y, y)
    if function == "covar":
        return _nearest(xy / (n - ddof))
    if xx == 0 or (function == "corr" and yy == 0):
        return None
    if function == "corr":
        return (-1 if xy < 0 else 1) * _nearest_root(xy * xy / (xx * yy))
    return _nearest(xy / xx if function == "slope" else (sum(y) - xy / xx * sum(x)) / n)


def _deviations(x: list[Fraction], y: list[Fraction]) -> Fraction:
    """The sum of the products of deviations from the means."""
    x_mean, y_mean = sum(x) / Fraction(len(x)), sum(y) / Fraction(len(y))
    return sum(((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)), Fraction(0))


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
