"""The window functions over multisets of values: distinct values, quantiles, the greatest and least, histograms."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Literal, get_args

from pystream.functions import Aggregate, of_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow.compute as pc

#: What a quantile is whose place is between two values: as NumPy's `method`.
Interpolation = Literal["linear", "lower", "higher", "nearest", "midpoint"]

#: Errors below it would need more buckets than there are values.
ERROR_LEAST = 1e-6
K_MAX = 1 << 31
EDGES_MAX = 1 << 20


def n_unique(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Count the different values, exactly; nulls do not count, NaN is one value, -0.0 and 0.0 are one.

    Memory: 16 to 32 bytes for each different value of a key in each open window (in `sliced` in each slice, and once
    more for all windows). Not for strings: use their dictionary indices or hashes.

    >>> query = ps.Query(ps.Window(10), None, {"users": ps.n_unique("user")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 3], "user": [7, 9, None, 7]}]).to_pylist()
    [{'ts': 0, 'users': 2}]
    """
    return of_column("n_unique", column, where)


def median(column: str, where: pc.Expression | None = None) -> Aggregate:
    """Middle value, as float64: of two the mean, rounded once. NaN is above every number; memory as of `n_unique`.

    >>> query = ps.Query(ps.Window(10), None, {"middle": ps.median("cons")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 3], "cons": [9, 1, None, 2]}]).to_pylist()
    [{'ts': 0, 'middle': 2.0}]
    """
    return replace(of_column("median", column, where), options=(("q", 0.5), ("interpolation", "middle")))


def quantile(
    column: str, q: float, interpolation: Interpolation = "linear", where: pc.Expression | None = None
) -> Aggregate:
    """Exact quantile: what is at the place q * (n - 1) of the n sorted values, counted from 0.

    Between two values `interpolation` decides, as NumPy's `method` does: `linear` and `midpoint` give float64; `lower`,
    `higher` and `nearest` (half-way: the even place) one of the values, in the column's type. NaN is above every
    number, and between a number and an infinity is the infinity. Memory as of `n_unique`; `approx_quantile` needs less.

    >>> query = ps.Query(ps.Window(10), None, {"p90": ps.quantile("ms", 0.9), "low": ps.quantile("ms", 0.1, "lower")})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 3], "ms": [20, 10, 40, 30]}]).to_pylist()
    [{'ts': 0, 'p90': 37.0, 'low': 10}]
    """
    if interpolation not in get_args(Interpolation):
        names = ", ".join(map(repr, get_args(Interpolation)))
        raise ValueError(f"quantile(interpolation=...) is one of {names}, not {interpolation!r}")
    options = ("q", _share("quantile", q)), ("interpolation", interpolation)
    return replace(of_column("quantile", column, where), options=options)


def approx_quantile(column: str, q: float, error: float = 0.01, where: pc.Expression | None = None) -> Aggregate:
    """Quantile from counts in logarithmic buckets, as float64: bounded memory, whatever the number of values.

    Each value counts as the middle of its bucket, which is within the relative `error` of it (a subnormal one: within
    twice that); between two of them the result is linear, as of `quantile`. Zero, infinities and NaN are exact. The
    result does not depend on the order of values or of merging: everything is counted in integers. Memory: 16 to 32
    bytes for each bucket that has values, at most 4200 / error in all, 35 / error for positive values of ten decades.

    >>> query = ps.Query(ps.Window(1000), None, {"p95": ps.approx_quantile("ms", 0.95)})
    >>> ps.aggregate(query, [{"ts": list(range(1000)), "ms": list(range(1000))}]).to_pylist()
    [{'ts': 0, 'p95': 948.0}]
    """
    if not _is(Real, error):
        raise TypeError(f"approx_quantile(error=...) takes a number, not {error!r}")
    if not ERROR_LEAST <= error < 1:
        raise ValueError(f"approx_quantile(error=...) takes a number from {ERROR_LEAST} to below 1, not {error}")
    options = ("q", _share("approx_quantile", q)), ("error", float(error))
    return replace(of_column("approx_quantile", column, where), options=options)


def top_k(column: str, k: int, where: pc.Expression | None = None) -> Aggregate:
    """List the k greatest values, greatest first, equal ones as often as they come; fewer if there are fewer.

    They are ordered as by `max`: NaN is above every number. Memory as of `n_unique`, not for strings.

    >>> query = ps.Query(ps.Window(10), None, {"top": ps.top_k("cons", 3)})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 3, 4], "cons": [5, 9, 1, 9, None]}]).to_pylist()
    [{'ts': 0, 'top': [9, 9, 5]}]
    """
    return _best("top_k", column, k, where)


def bottom_k(column: str, k: int, where: pc.Expression | None = None) -> Aggregate:
    """List the k least values, least first; the rest is as with `top_k`.

    >>> query = ps.Query(ps.Window(10), None, {"least": ps.bottom_k("cons", 2)})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2], "cons": [5.0, 9.0, 1.0]}]).to_pylist()
    [{'ts': 0, 'least': [1.0, 5.0]}]
    """
    return _best("bottom_k", column, k, where)


def histogram(column: str, edges: Sequence[float], where: pc.Expression | None = None) -> Aggregate:
    """Count values between edges: a list of len(edges) + 1 counts.

    The first counts the values below the first edge, the last those from the last edge on, NaN too; an edge belongs to
    the values above it. Without values all counts are 0.

    >>> query = ps.Query(ps.Window(10), None, {"counts": ps.histogram("ms", [10, 100])})
    >>> ps.aggregate(query, [{"ts": [0, 1, 2, 3], "ms": [5, 10, 99, 5000]}]).to_pylist()
    [{'ts': 0, 'counts': [1, 2, 1]}]
    """
    if isinstance(edges, str | bytes) or not hasattr(edges, "__iter__"):
        raise TypeError(f"histogram(edges=...) takes a sequence of numbers, not {edges!r}")
    numbers = tuple(_edge(edge) for edge in edges)
    if not 1 <= len(numbers) <= EDGES_MAX:
        raise ValueError(f"histogram(edges=...) takes between 1 and {EDGES_MAX} edges, not {len(numbers)}")
    for one, other in pairwise(numbers):
        if not one < other:
            raise ValueError(f"histogram(edges=...) takes ascending edges: {other} comes after {one}")
    return replace(of_column("histogram", column, where), options=(("edges", numbers),))


def _share(function: str, q: Any) -> float:
    if not _is(Real, q):
        raise TypeError(f"{function}(q=...) takes a number, not {q!r}")
    if not 0 <= q <= 1:
        raise ValueError(f"{function}(q=...) takes a number from 0 to 1, not {q}")
    return float(q)


def _best(function: str, column: str, k: int, where: pc.Expression | None) -> Aggregate:
    if not _is(Integral, k):
        raise TypeError(f"{function}(k=...) takes an integer, not {k!r}")
    if not 1 <= k <= K_MAX:
        raise ValueError(f"{function}(k=...) takes a number between 1 and {K_MAX}, not {k}")
    return replace(of_column(function, column, where), options=(("k", int(k)),))


def _is(kind: type, value: Any) -> bool:
    """Whether the value is such a number."""
    return isinstance(value, kind) and not isinstance(value, bool)


def _edge(edge: Any) -> int | float:
    if not _is(Real, edge):
        raise TypeError(f"histogram(edges=...) takes numbers, not {edge!r}")
    if _is(Integral, edge):
        return int(edge)
    if not math.isfinite(edge):
        raise ValueError(f"histogram(edges=...) takes finite numbers, not {edge}")
    return float(edge)
