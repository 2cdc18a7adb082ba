"""The oracle's functions over multisets: of all values of a window, sorted, as plainly as Python can say it."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable


MULTISETS = ("n_unique", "median", "quantile", "approx_quantile", "top_k", "bottom_k", "histogram")


def multiset(function: str, options: dict[str, Any], values: list[Any], order: Callable[[Any], Any]) -> Any:
    """The result over the values that are not null; `order` is their sort key."""
    if function == "n_unique":
        return len({"nan" if _is_nan(v) else v for v in values})
    if function == "histogram":
        edges = list(options["edges"])
        places = [len(edges) if _is_nan(v) else bisect_right(edges, v) for v in values]
        return [places.count(i) for i in range(len(edges) + 1)]
    if not values:
        return None
    values = sorted(values, key=order, reverse=function == "top_k")
    if function in ("top_k", "bottom_k"):
        return values[: options["k"]]
    if function == "approx_quantile":
        values = [_middle_of_bucket(float(v), options["error"]) for v in values]
    return _quantile(values, options["q"], options.get("interpolation", "linear"))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _quantile(values: list[Any], q: float, interpolation: str) -> Any:
    """NumPy's definitions, over sorted values."""
    place = (len(values) - 1) * q
    low, high = math.floor(place), math.ceil(place)
    if interpolation in ("lower", "higher", "nearest"):
        return values[{"lower": low, "higher": high, "nearest": round(place)}[interpolation]]
    start, end, rest = values[low], values[high], place - low
    if interpolation == "middle" and rest:
        return _mean(start, end)
    return _between(start, end, 0.5 if interpolation == "midpoint" and rest else rest)


def _mean(start: Any, end: Any) -> float:
    if not isinstance(start, float):
        return float(start + end) / 2
    return float(start / 2 + end / 2) if math.isinf(start + end) else float(start + end) / 2


def _between(start: Any, end: Any, rest: float) -> float:
    a, b, span = float(start), float(end), float(end - start)
    if not rest or a == b:
        return a
    if math.isinf(a) or math.isinf(b):
        return a + b
    if math.isinf(span):
        return a * (1 - rest) + b * rest
    return a + span * rest if rest < 0.5 else b - span * (1 - rest)


def _middle_of_bucket(x: float, error: float) -> float:
    """The middle of all doubles of the same sign, exponent and first bits: as many as keep it within the error."""
    if x == 0 or not math.isfinite(x):
        return abs(x) if x == 0 else x
    bits = next(b for b in range(52) if 2.0 ** -(b + 1) < error)
    mantissa, exponent = math.frexp(abs(x))
    part = math.floor((2 * mantissa - 1) * 2**bits)
    return math.copysign(math.ldexp(1 + (part + 0.5) / 2**bits, exponent - 1), x)
