"""The oracle: what the contract says, as plainly as Python can say it. Inputs and output are lists of dicts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from pystream._exact import NUMBERS, number
from pystream._multisets import MULTISETS, multiset

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pystream.query import Query

Row = dict[str, Any]


def aggregate(query: Query, inputs: Sequence[list[Row]], keep: Callable[[str, Row], bool] | None = None) -> list[Row]:
    """Run the query. `keep(name, row)` stands in for the `where` of aggregate `name`."""
    size, advance = query.window.ticks(None)
    merged = sorted((row[query.ts], i, p, row) for i, rows in enumerate(inputs) for p, row in enumerate(rows))
    windows: dict[tuple[int, Any], list[Row]] = {}
    for ts, _, _, row in merged:
        for start in range(ts // advance * advance, max(ts - size, -1), -advance):
            windows.setdefault((start, tuple(_order(_key(row[k])) for k in query.key)), []).append(row)
    out = []
    for (start, _), rows in sorted(windows.items(), key=lambda item: item[0]):
        result: Row = {"ts": start, **{k: _key(rows[0][k]) for k in query.key}}
        for name, function in query.aggregates.items():
            kept = [r for r in rows if function.where is None or keep is None or keep(name, r)]
            result[name] = _apply(function, kept)
        out.append(result)
    return out


def _key(value: Any) -> Any:
    return abs(value) if value == 0 else value  # -0.0 and 0.0 are one key


def _order(value: Any) -> tuple[Any, ...]:
    """Sort key: nulls last, NaN above every number, -0.0 below 0.0, strings by their UTF-8 bytes."""
    if value is None:
        return (2,)
    if isinstance(value, float):
        return (1,) if math.isnan(value) else (0, value, math.copysign(1, value))
    return (0, value.encode() if isinstance(value, str) else value)


def _apply(function: Any, rows: list[Row]) -> Any:
    """One aggregate over the rows of one window, in order."""
    if function.function == "udf":
        window = function.factory()
        for row in rows:
            window.process_tuple(row)
        return window.produce_out_tuple()
    if function.function == "count":
        return len(rows)
    rows = [r for r in rows if None not in [r[c] for c in function.columns]]
    return _of_values(function, rows, [r[function.column] for r in rows])


def _of_values(function: Any, rows: list[Row], values: list[Any]) -> Any:
    """One aggregate over rows without nulls, and their values."""
    if function.function in MULTISETS:
        return multiset(function.function, dict(function.options), values, _order)
    if not values:
        return None
    if function.function in NUMBERS:
        others = [r[function.by] for r in rows] if function.by else []
        return number(function.function, values, others, function.parameter)
    if function.function in ("min", "max", "all", "any", "arg_min", "arg_max"):
        best = min if function.function in ("min", "all", "arg_min") else max  # of equals the first
        return best(rows, key=lambda r: _order(r[function.by or function.column]))[function.column]
    return values[0] if function.function == "first" else values[-1]
