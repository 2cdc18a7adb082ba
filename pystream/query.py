"""`Window` and `Query`: what is asked, checked as soon as it is written down."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pystream import _notebook
from pystream.functions import Aggregate

INT64_MAX = 2**63 - 1

#: Nanoseconds in one unit: Arrow's timestamp units and the suffixes of durations such as "30s".
NANOSECONDS = {
    "ns": 1,
    "us": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}

Duration = int | timedelta | str


def _nanoseconds(value: timedelta | str) -> int:
    if isinstance(value, timedelta):
        return (value.days * 86_400 + value.seconds) * NANOSECONDS["s"] + value.microseconds * NANOSECONDS["us"]
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]+)\s*", value)
    if not match or match[2] not in NANOSECONDS:
        raise ValueError(f"{value!r} is not a duration such as '30s'; {_unit_hint(value)}")
    return int(match[1]) * NANOSECONDS[match[2]]


def _unit_hint(text: str) -> str:
    """What was probably meant by a duration that is none."""
    number, unit = re.fullmatch(r"\s*(\d*)\s*(.*?)\s*", text, re.DOTALL).groups()  # type: ignore[union-attr] # fits all
    near = {"hour": "h", "day": "d", "minute": "m", "sec": "s", "milli": "ms", "micro": "us", "nano": "ns"}
    meant = next((short for long, short in near.items() if unit.lower().startswith(long)), unit.lower())
    if number and meant in NANOSECONDS:
        return f"did you mean '{number}{meant}'?"
    if number and not unit:
        return f"say of what, such as '{number}s', or give the integer {number} for ticks"
    return f"units are {', '.join(NANOSECONDS)}"


def _check_duration(name: str, value: Duration) -> None:
    if isinstance(value, bool) or not isinstance(value, int | timedelta | str):
        raise TypeError(f"window {name} must be an integer, a timedelta or a string such as '30s', not {value!r}")
    number = value if isinstance(value, int) else _nanoseconds(value)
    if not 0 < number <= INT64_MAX:
        raise ValueError(f"window {name} must be positive and fit into 64 bits, not {value!r}")


@dataclass(frozen=True, init=False, repr=False)
class Window:
    """Windows [n*advance, n*advance + size) for n = 0, 1, 2, ...; without `advance` they tumble.

    Integers are in the unit of the timestamps. With an Arrow timestamp column, `timedelta` and strings such as "30s",
    "5m", "250ms" work too.

    >>> ps.Window(size=30, advance=3)
    Window(30, 3)
    >>> ps.Window("5m")
    Window('5m')
    """

    size: Duration
    advance: Duration

    def __init__(self, size: Duration, advance: Duration | None = None) -> None:
        object.__setattr__(self, "size", size)
        object.__setattr__(self, "advance", size if advance is None else advance)
        _check_duration("size", self.size)
        _check_duration("advance", self.advance)

    def __repr__(self) -> str:
        advance = "" if self.advance == self.size else f", {self.advance!r}"
        return f"Window({self.size!r}{advance})"

    def ticks(self, unit: str | None) -> tuple[int, int]:
        """Size and advance in the unit of the timestamp column (None: plain integers)."""
        return _ticks("size", self.size, unit), _ticks("advance", self.advance, unit)


def _ticks(name: str, value: Duration, unit: str | None) -> int:
    if isinstance(value, int):
        return value
    if unit is None:
        raise ValueError(f"window {name} {value!r} needs an Arrow timestamp column; with integers give an integer")
    ticks, rest = divmod(_nanoseconds(value), NANOSECONDS[unit])
    if rest:
        raise ValueError(f"window {name} {value!r} is not a whole number of {unit}, the unit of the timestamps")
    return ticks


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Query:
    """A window, a key, the aggregates: one row comes out per window and key.

    `key` is a column, a list of columns or None. `ts` names the timestamp column of the inputs. Two queries are equal
    if they ask for the same columns in the same order.

    >>> query = ps.Query(ps.Window(30, 3), key="meter", aggregates={"n": ps.count(), "mean": ps.mean("cons")})
    >>> query
    Query(Window(30, 3), key='meter', aggregates={'n': count(), 'mean': avg(cons)})
    >>> query.columns
    ['ts', 'meter', 'n', 'mean']
    """

    window: Window
    key: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    ts: str

    def __init__(
        self,
        window: Window,
        key: str | Sequence[str] | None,
        aggregates: Mapping[str, Aggregate],
        ts: str = "ts",
    ) -> None:
        if not isinstance(aggregates, Mapping):
            raise TypeError(
                "aggregates is a dict from names of output columns to functions, such as {'n': ps.count()}, "
                f"not {aggregates!r}"
            )
        if key is not None and not isinstance(key, Sequence):
            raise TypeError(f"key is a column name, a list of column names or None, not {key!r}")
        keys = () if key is None else (key,) if isinstance(key, str) else tuple(key)
        for name, value in (("window", window), ("key", keys), ("aggregates", dict(aggregates)), ("ts", ts)):
            object.__setattr__(self, name, value)
        _check_query(self)

    def _content(self) -> tuple[Any, ...]:
        return self.window, self.key, tuple(self.aggregates.items()), self.ts

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Query) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())

    def __repr__(self) -> str:
        key = self.key[0] if len(self.key) == 1 else list(self.key) or None
        ts = "" if self.ts == "ts" else f", ts={self.ts!r}"
        return f"Query({self.window!r}, key={key!r}, aggregates={self.aggregates!r}{ts})"

    def _repr_html_(self) -> str:
        return _notebook.query_html(self)

    @property
    def columns(self) -> list[str]:
        """The names of the output columns."""
        return ["ts", *self.key, *self.aggregates]


def _check_query(query: Query) -> None:
    if not isinstance(query.window, Window):
        raise TypeError(f"window must be a pystream.Window, not {query.window!r}{_window_hint(query.window)}")
    if not isinstance(query.ts, str) or not all(isinstance(k, str) for k in query.key):
        raise TypeError(f"ts and key are column names, not {query.ts!r} and {query.key!r}")
    if not query.aggregates:
        raise ValueError("a query needs at least one aggregate, such as {'n': ps.count()}")
    for name, aggregate in query.aggregates.items():
        if not isinstance(name, str) or not isinstance(aggregate, Aggregate):
            raise TypeError(
                f"aggregates maps names to pystream functions, such as ps.avg('cons'), "
                f"not {name!r} to {_aggregate_hint(aggregate)}"
            )
    twice = {name for name in query.columns if query.columns.count(name) > 1}
    if twice:
        raise ValueError(
            f"output columns must have different names; more than once: {', '.join(sorted(twice))} "
            "(the window's start 'ts' and the key are columns of their own)"
        )


def _window_hint(given: object) -> str:
    """How to write a window that was given by its numbers."""
    parts = given if isinstance(given, tuple | list) else (given,)
    fits = 1 <= len(parts) <= 2 and all(isinstance(part, int | str | timedelta) for part in parts)
    return f"; write ps.Window({', '.join(map(repr, parts))})" if fits else ""


def _aggregate_hint(given: object) -> str:
    name = getattr(given, "__name__", "")
    if callable(given) and getattr(given, "__module__", "") == "pystream.functions":
        return f"ps.{name}, which has to be called: ps.{name}(...)"
    return repr(given)
