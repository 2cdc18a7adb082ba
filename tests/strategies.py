"""Random queries and inputs, and the comparison with the oracle to the bit."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import strategies as st

import pystream as ps
from pystream import reference
from pystream._kinds import KINDS, OF_COLUMN, OF_MORE, OF_TWO
from pystream.operator import CANNOT, DESIGNS

TYPES = {
    "i": pa.int64(),
    "small": pa.int8(),
    "u": pa.uint32(),
    "f": pa.float64(),
    "g": pa.float32(),
    "far": pa.float64(),
    "s": pa.string(),
    "flag": pa.bool_(),
    "day": pa.date32(),
}
NUMBERS = ("i", "small", "u", "f", "g", "far", "flag")
BOOLEANS = ("flag",)
FIXED_WIDTH = [name for name in TYPES if name != "s"]
SPECIAL = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e300, -1e300, 5e-324]
TEXT = st.text(st.sampled_from("ab\0zé😀"), max_size=4)
VALUES = {
    "i": st.integers(-(2**55), 2**55),
    "small": st.integers(-128, 127),
    "u": st.integers(0, 2**32 - 1),
    "f": st.one_of(st.floats(-1000, 1000), st.sampled_from(SPECIAL)),
    "g": st.one_of(st.floats(-1000, 1000, width=32), st.sampled_from([0.0, -0.0, math.inf, math.nan])),
    "far": st.integers(-8, 8).map(lambda i: 1e15 + i / 8),  # the variance is all that differs
    "s": TEXT,
    "flag": st.booleans(),
    "day": st.dates(),
}
KEYS = {"k": pa.int64(), "name": pa.string(), "bit": pa.bool_(), "x": pa.float64()}
KEY_VALUES = {
    "k": st.integers(-2, 2),
    "name": st.sampled_from(["", "a", "a\0", "ab", "b", "é", "zz", "😀"]),
    "bit": st.booleans(),
    "x": st.sampled_from([0.0, -0.0, 1.5, -1.5, math.nan, math.inf, -math.inf]),
}

#: name -> (expression for pystream, the same predicate in Python for the oracle)
FILTERS = {
    "none": (None, None),
    "positive": (pc.field("i") > 0, lambda row: row["i"] is not None and row["i"] > 0),
    "nothing": (pc.field("i") > 2**60, lambda row: row["i"] is not None and row["i"] > 2**60),
    "ends": (pc.ends_with(pc.field("s"), "a"), lambda row: row["s"] is not None and row["s"].endswith("a")),
}
FUNCTIONS = [
    (name, column)
    for column in TYPES
    for name in (*OF_COLUMN, *OF_MORE, *OF_TWO)
    if column in {"numbers": NUMBERS, "booleans": BOOLEANS, "fixed": FIXED_WIDTH}.get(KINDS[name].takes, TYPES)
]

#: What else functions take.
Q = st.sampled_from([0.0, 0.25, 0.5, 0.95, 1.0]) | st.floats(0, 1)
K = st.fixed_dictionaries({"k": st.integers(1, 9)})
EDGES = st.sampled_from([-(10**400), -1e300, -1000, -2.5, 0, 0.5, 1, 100, 1e15, 2**53 + 1, 2.0**62, 2**64, 1e300])
MORE = {
    "var": st.fixed_dictionaries({"ddof": st.integers(0, 2)}),
    "std": st.fixed_dictionaries({"ddof": st.integers(0, 2)}),
    "covar": st.fixed_dictionaries({"ddof": st.integers(0, 2)}),
    "quantile": st.fixed_dictionaries(
        {"q": Q, "interpolation": st.sampled_from(["linear", "lower", "higher", "nearest", "midpoint"])}
    ),
    "approx_quantile": st.fixed_dictionaries({"q": Q, "error": st.sampled_from([0.01, 0.9, 0.25, 1e-6])}),
    "top_k": K,
    "bottom_k": K,
    "histogram": st.fixed_dictionaries({"edges": st.lists(EDGES, min_size=1, unique=True).map(sorted)}),
}


class Collect:
    """A user window whose result shows the order in which the tuples came."""

    def __init__(self, seen: tuple[str, ...] = ()) -> None:
        self.seen = list(seen)

    def process_tuple(self, row: dict[str, Any]) -> None:
        self.seen.append(f"{row['ts']}:{row['id']}")

    def produce_out_tuple(self) -> str:
        return " ".join(self.seen)

    def to_bytes(self) -> bytes:
        return " ".join(self.seen).encode()

    @classmethod
    def from_bytes(cls, saved: bytes) -> Collect:
        return cls(tuple(saved.decode().split(" ")))


@dataclass
class Case:
    """A query, its inputs, and how they are cut into batches."""

    query: ps.Query
    rows: list[list[dict[str, Any]]]
    cuts: list[list[int]]
    filters: dict[str, Any]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([("ts", pa.int64()), ("id", pa.string()), *KEYS.items(), *TYPES.items()])

    def batches(self, input: int) -> list[pa.RecordBatch]:
        whole = pa.RecordBatch.from_pylist(self.rows[input], schema=self.schema)
        edges = [0, *sorted({c % (whole.num_rows + 1) for c in self.cuts[input]}), whole.num_rows]
        return [whole.slice(a, b - a) for a, b in pairwise(edges)]

    def expected(self) -> list[dict[str, Any]]:
        as_read = [[row for batch in self.batches(i) for row in batch.to_pylist()] for i in range(len(self.rows))]
        return reference.aggregate(self.query, as_read, lambda name, row: self.filters[name](row))


def bits(value: Any) -> Any:
    """A value that is equal only to the same bits; every NaN counts as the same."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else struct.pack("<d", value)
    if isinstance(value, list):
        return [bits(one) for one in value]
    return value


def canonical(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: bits(value) for name, value in row.items()} for row in rows]


def nullable(values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.one_of(values, values, values, st.none())


@st.composite
def inputs(draw: st.DrawFn, most: int = 5) -> list[list[dict[str, Any]]]:
    gap = st.sampled_from([0, 0, 0, 1, 1, 2, 7])
    columns = {**KEY_VALUES, **VALUES}
    result = []
    for i in range(draw(st.one_of(st.integers(1, most), st.just(most)))):
        ts, rows = draw(st.sampled_from([0, 0, 3, 40])), []
        for position in range(draw(st.integers(0, 8))):
            ts += draw(gap)
            row = {name: draw(nullable(values)) for name, values in columns.items()}
            rows.append({"ts": ts, "id": f"{i}.{position}", **row})
        result.append(rows)
    return result


@st.composite
def cases(draw: st.DrawFn, most: int = 5, without: tuple[str, ...] = ()) -> Case:
    """Any query on any input, without some functions."""
    functions = [(name, column) for name, column in FUNCTIONS if name not in without]
    window = ps.Window(draw(st.integers(1, 12)), draw(st.integers(1, 15)))
    keys = draw(st.lists(st.sampled_from(sorted(KEYS)), unique=True, max_size=3))
    aggregates, filters = {}, {}
    for name, column in draw(st.lists(st.sampled_from(functions), unique=True, max_size=5)):
        by = [draw(st.sampled_from(NUMBERS if KINDS[name].by == "numbers" else FIXED_WIDTH))] if KINDS[name].by else []
        where, filters[f"{name}_{column}"] = FILTERS[draw(st.sampled_from(sorted(FILTERS)))]
        more = draw(MORE[name]) if name in MORE else {}
        aggregates[f"{name}_{column}"] = getattr(ps, name)(column, *by, where=where, **more)
    if draw(st.booleans()) or not aggregates:
        where, filters["n"] = FILTERS[draw(st.sampled_from(sorted(FILTERS)))]
        aggregates["n"] = ps.count(where=where)
    if "udf" not in without and draw(st.booleans()):
        aggregates["order"] = ps.udf(Collect)
    query = ps.Query(window, draw(st.permutations(keys)) or None, aggregates)
    rows = draw(inputs(most))
    cuts = [draw(st.lists(st.integers(0, 20), max_size=3)) for _ in rows]
    return Case(query, rows, cuts, filters)


@dataclass
class Run:
    """A case, and how to run it."""

    case: Case
    design: str
    threads: int

    @property
    def how(self) -> dict[str, Any]:
        return {"design": self.design, "threads": self.threads}

    @property
    def unfit(self) -> tuple[str, ...]:
        """The designs that cannot go on with it from a snapshot."""
        used = {a.function for a in self.case.query.aggregates.values()}
        return tuple(d for d, functions in CANNOT.items() if used & set(functions))


@st.composite
def ways(draw: st.DrawFn, but: tuple[str, ...] = ()) -> tuple[str, int]:
    """A design, but for some, and a number of threads."""
    design = draw(st.sampled_from([d for d in DESIGNS if d not in but]))
    return design, draw(st.integers(1, 4)) if design == "tuml-mc" else 1


@st.composite
def runs(draw: st.DrawFn, most: int = 5) -> Run:
    design, threads = draw(ways())
    return Run(draw(cases(most, without=CANNOT.get(design, ()))), design, threads)
