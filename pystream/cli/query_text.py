"""Queries as people write them: options of the command line, and small TOML files.

window = "1h"           # or an integer, in the unit of the timestamps
every = "15m"           # without it the windows tumble
key = "meter"           # a column or a list of columns; without it there is one row per window
ts = "time"             # without it `ts`, or the only timestamp column

[aggregates]            # name = "FUNCTION[:COLUMN[:COLUMN]] [where CONDITION]", as in --agg
                        # p95 = "quantile:cons:0.95", top = "top_k:cons:3", h = "histogram:cons:1,2.5"
n = "count"
mean = "mean:cons"
high = "count where cons > 2.5"
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

import pystream as ps
from pystream._kinds import KINDS, OF_COLUMN, OF_MORE, OF_TWO
from pystream.cli.conditions import condition
from pystream.errors import PystreamError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from pystream.functions import Aggregate

#: What `--agg` and TOML files call the functions of a column.
FUNCTIONS_OF_COLUMN: dict[str, Callable[..., Aggregate]] = {
    **{name: getattr(ps, name) for name in OF_COLUMN},
    "mean": ps.mean,
}
FUNCTIONS_OF_TWO: dict[str, Callable[..., Aggregate]] = {name: getattr(ps, name) for name in OF_TWO}
FUNCTIONS_OF_MORE: dict[str, Callable[..., Aggregate]] = {name: getattr(ps, name) for name in OF_MORE}
FUNCTIONS = ("count", *FUNCTIONS_OF_COLUMN, *FUNCTIONS_OF_MORE, *FUNCTIONS_OF_TWO)

_FIELDS = ("window", "every", "key", "ts", "aggregates")


@dataclass(frozen=True)
class Asked:
    """A query of which the timestamp column may not be known before the files are opened."""

    window: ps.Window
    key: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    ts: str | None

    def query(self, schemas: Sequence[pa.Schema]) -> ps.Query:
        """The query over inputs of these columns."""
        return ps.Query(self.window, list(self.key), self.aggregates, self.ts or _found_ts(schemas))


def asked(window: str | None, every: str | None, key: Sequence[str], agg: Sequence[str], ts: str | None) -> Asked:
    """The query of the command line's options."""
    if window is None:
        raise PystreamError("which windows? Say --window 1h, or name a query: one of the paper's or a TOML file")
    if not agg:
        raise PystreamError(
            f"compute what? Say --agg n=count or --agg mean=mean:COLUMN; there are {', '.join(FUNCTIONS)}"
        )
    aggregates: dict[str, Aggregate] = {}
    for text in agg:
        name, found = _named(text)
        if name in aggregates:
            raise PystreamError(f"--agg {text!r}: there are two columns named {name!r}")
        aggregates[name] = found
    size = duration(window)
    return Asked(ps.Window(size, size if every is None else duration(every)), tuple(key), aggregates, ts)


def from_toml(path: Path) -> Asked:
    """The query in a TOML file."""
    try:
        return from_fields(tomllib.loads(path.read_text()))
    except (PystreamError, ValueError, TypeError) as error:  # TOML's own and those of decoding are ValueErrors
        raise PystreamError(f"{path}: {error}") from error


def from_fields(content: dict[str, Any]) -> Asked:
    """The query in a table of a TOML file."""
    unknown = [name for name in content if name not in _FIELDS]
    if unknown:
        raise PystreamError(f"{unknown[0]!r} is not known; there are {', '.join(_FIELDS)}")
    aggregates = content.get("aggregates")
    if not isinstance(aggregates, dict) or not aggregates:
        raise PystreamError('a table [aggregates] is missing, with lines such as: mean = "mean:cons"')
    if "window" not in content:
        raise PystreamError('`window` is missing, such as: window = "1h"')
    key = content.get("key", [])
    keys = [key] if isinstance(key, str) else key
    if not isinstance(keys, list) or not all(isinstance(each, str) for each in keys):
        raise PystreamError(f"`key` is the name of a column or a list of names, not {key!r}")
    ts = content.get("ts")
    if ts is not None and not isinstance(ts, str):
        raise PystreamError(f"`ts` is the name of a column, not {ts!r}")
    window = ps.Window(content["window"], content.get("every"))
    return Asked(window, tuple(keys), {name: _toml_aggregate(name, text) for name, text in aggregates.items()}, ts)


def _toml_aggregate(name: str, text: Any) -> Aggregate:
    if not isinstance(text, str):
        raise PystreamError(f'[aggregates] {name} is text such as "mean:cons", not {text!r}')
    return aggregate(text)


def duration(text: str) -> int | str:
    """An integer in the unit of the timestamps, or a duration such as "15m" that Window checks."""
    return int(text) if re.fullmatch(r"\d+", text.strip()) else text


def _named(text: str) -> tuple[str, Aggregate]:
    """`NAME=FUNCTION[:COLUMN]...`; without a name, the function and the column make one."""
    match = re.match(r"\s*(?:(?P<name>[^=:]+?)\s*=)?(?P<rest>[^=<>!].*)", text, re.DOTALL)
    if match is None:
        raise PystreamError(f"--agg {text!r} is not of the form NAME=FUNCTION[:COLUMN], such as mean=mean:cons")
    name, rest = match["name"], match["rest"]
    if name is not None and re.search(r"\swhere(\s|$)", name):  # the = of a condition
        name, rest = None, text
    return name or re.sub(r"\W+", "_", rest.split(" where ")[0].strip()), aggregate(rest)


def aggregate(text: str) -> Aggregate:
    """`FUNCTION[:COLUMN[:COLUMN]] [where CONDITION]`."""
    what, _, where = re.sub(r"\s+where\s+", "\0", text.strip(), count=1).partition("\0")
    function, colon, column = (part.strip() for part in what.partition(":"))
    chosen = condition(where) if where else None
    if function not in FUNCTIONS:
        raise PystreamError(f"{text!r}: there is no function {function!r}; there are {', '.join(FUNCTIONS)}")
    if function == "count":
        if column:
            raise PystreamError(f"{text!r}: count takes no column; `count where {column} is not null` counts values")
        return ps.count(chosen)
    if not colon or not column:
        raise PystreamError(f"{text!r}: of which column? Say {function}:COLUMN")
    if function in FUNCTIONS_OF_TWO:
        value, _, by = (part.strip() for part in column.rpartition(":"))
        if not value or not by:
            ordered = KINDS[function].by == "order"
            missing = ("ordered by which column?", "BY") if ordered else ("with which other column?", "COLUMN")
            raise PystreamError(f"{text!r}: {missing[0]} Say {function}:COLUMN:{missing[1]}")
        return FUNCTIONS_OF_TWO[function](value, by, where=chosen)
    if function in FUNCTIONS_OF_MORE:
        return _of_more(text, function, column, chosen)
    return FUNCTIONS_OF_COLUMN[function](column, where=chosen)


def _of_more(text: str, function: str, column: str, chosen: Any) -> Aggregate:
    """`FUNCTION:COLUMN:NUMBER`, or numbers with commas between them."""
    (asked,) = KINDS[function].asks
    value, _, last = (part.strip() for part in column.rpartition(":"))
    numbers = [_number(number) for number in last.split(",")]
    if not value or None in numbers or (len(numbers) > 1 and asked != "edges"):
        raise PystreamError(f"{text!r}: with which {asked}? Say {function}:COLUMN:{asked.upper()}")
    try:
        return FUNCTIONS_OF_MORE[function](value, numbers if asked == "edges" else numbers[0], where=chosen)
    except (TypeError, ValueError) as error:
        raise PystreamError(f"{text!r}: {error}") from error


def _number(text: str) -> float | None:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return None


def _found_ts(schemas: Sequence[pa.Schema]) -> str:
    """`ts` if there is such a column, else the only one with times."""
    if all("ts" in schema.names for schema in schemas):
        return "ts"
    times = [
        [f.name for f in schema if pa.types.is_timestamp(f.type) or pa.types.is_date(f.type)] for schema in schemas
    ]
    if len(times[0]) == 1 and all(names == times[0] for names in times):
        return str(times[0][0])
    there = ", ".join(map(repr, schemas[0].names)) or "no columns"
    raise SchemaError(f"which column has the time? There is no 'ts' among {there}; say --ts COLUMN (in TOML: ts = ...)")
