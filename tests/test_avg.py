"""`avg` is the double nearest to the exact mean, in every design and on every way to a result."""

from __future__ import annotations

import math
import struct
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pystream as ps
from pystream.operator import DESIGNS
from pystream.partials import Combine, Fold

LARGEST = 1.7976931348623157e308
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e6, 1e6),
    st.floats(-1e-300, 1e-300),
    st.sampled_from([1e308, LARGEST, -LARGEST, 5e-324, -5e-324]),
)
INTEGERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**63 - 1, -(2**63), 2**53 + 1, 0, 1]))
UNSIGNED = st.one_of(st.integers(0, 2**64 - 1), st.just(2**64 - 1))
QUERY = ps.Query(ps.Window(10), None, {"mean": ps.avg("x")})


def table_of(values: list, type: pa.DataType) -> pa.Table:
    return pa.table({"ts": pa.array([1] * len(values), pa.int64()), "x": pa.array(values, type)})


def bits(x: float) -> bytes:
    return struct.pack("<d", x)


def nearest(values: list) -> float:
    return float(sum(map(Fraction, values)) / len(values))


def combined(table: pa.Table) -> float:
    """Folded in two parts, which a combiner joins."""
    whole = Combine(QUERY, table.schema)
    for part in (table[: table.num_rows // 2], table[table.num_rows // 2 :]):
        fold = Fold(QUERY, table.schema)
        for batch in part.to_batches():
            whole.add(fold.add(batch))
        whole.add(fold.finish())
    return next(whole.finish()).column("mean")[0].as_py()


@pytest.mark.parametrize("design", DESIGNS)
@given(values=st.lists(FLOATS, min_size=1, max_size=9))
@example(values=[LARGEST] * 3)
@example(values=[1e308, 1e308])
@example(values=[LARGEST, LARGEST, -LARGEST])
@example(values=[5e-324, 0.0])
@example(values=[5e-324, 1e-323])
@example(values=[0.1, 0.2, 0.3])  # the nearest quotient of the nearest sum is one too low
def test_floats(design, values):
    halves = [table_of(values[0::2], pa.float64()), table_of(values[1::2], pa.float64())]
    assert bits(ps.aggregate(QUERY, halves, design=design)["mean"][0].as_py()) == bits(nearest(values))


@given(values=st.lists(FLOATS, min_size=1, max_size=9))
@example(values=[LARGEST] * 3)
def test_floats_in_partials_and_in_a_w_hive(values):
    assert bits(combined(table_of(values, pa.float64()))) == bits(nearest(values))
    hive = ps.WHive(ps.Window(10), ps.avg("x"), threads=2)
    for i, x in enumerate(values):
        hive.update_windows(1, "k", x, i % 2)
    for thread in range(2):
        hive.close(thread)
    assert bits(hive.get_next_winset()[1]["k"]) == bits(nearest(values))


#: What one meter reads: sums of any size, those whose means lie halfway between two doubles one time in 150 among them.
READINGS = {
    "one decimal": lambda rng, n: rng.integers(500, 3500, n) / 10,
    "one decimal, negative": lambda rng, n: rng.integers(-3500, -500, n) / 10,
    "few bits": lambda rng, n: rng.integers(-(2**53), 2**53, n) * 0.125,
    "around zero": lambda rng, n: rng.normal(0, 1, n),
    "small": lambda rng, n: rng.normal(0, 1e-6, n),
    "thousandths": lambda rng, n: rng.uniform(2.0**-17, 2.0**-16, n),  # sums below what blocks decide, yet narrow ones
    "billions": lambda rng, n: rng.uniform(2.0**36, 2.0**37, n),  # above
    "large": lambda rng, n: rng.normal(0, 1e15, n),
    "huge": lambda rng, n: rng.normal(0, 1e300, n),
    "zeros": lambda rng, n: rng.integers(0, 2, n) * 0.1,
}


@pytest.mark.parametrize("kinds", [*([kind] for kind in READINGS), [*READINGS]], ids=lambda kinds: "+".join(kinds)[:30])
def test_many_keys(kinds):
    """Means are made in blocks of keys; one key, in the last block, has nothing but nulls."""
    rng, keys, rows = np.random.default_rng(7), 70, 16_000
    ts, key = np.sort(rng.integers(0, 60, rows)), rng.integers(0, keys, rows)
    values = np.select([key % len(kinds) == i for i in range(len(kinds))], [READINGS[k](rng, rows) for k in kinds])
    table = pa.table({"ts": ts, "k": key, "x": pa.array(values, mask=key == keys - 1)})
    query = ps.Query(ps.Window(10), "k", {"mean": ps.avg("x")})
    groups: dict[tuple[int, int], list[float]] = {}
    for row in zip((ts // 10 * 10).tolist(), key.tolist(), table["x"].to_pylist(), strict=True):
        groups.setdefault(row[:2], []).extend([] if row[2] is None else [row[2]])
    want = {group: nearest(given) if given else None for group, given in groups.items()}
    whole = Combine(query, table.schema)
    fold = Fold(query, table.schema)
    whole.add([*fold.add(table.combine_chunks().to_batches()[0]), *fold.finish()])
    for got in (
        ps.aggregate(query, [table]),
        ps.aggregate(query, [table], design="mq"),
        pa.Table.from_batches(whole.finish()),
    ):
        assert {(row["ts"], row["k"]): row["mean"] for row in got.to_pylist()} == want


#: Counts by which a reciprocal does not give 1 again: quotients that are made with it are a little wrong.
AWKWARD = [n for n in range(3, 1000) if n * (1.0 / n) != 1.0]


def halfway(low: float, n: int) -> list[float]:
    """`n` doubles between 1 and 2 or less whose mean lies in the middle between `low` and the next one."""
    step = 2.0**-52
    pairs = [low, low + step] * (n // 2 - 1)
    rest = [low / 2 + step / 2 * k for k in (1, 2)] + [2 * low] if n % 2 else [low, low + step]
    return [*pairs, *rest]


def test_means_in_the_middle_between_two_doubles():
    """They are told from those just beside only by the last bit of all: blocks must not decide them."""
    groups = {}
    for n in AWKWARD:
        for i in range(4):
            values = halfway(1.25 + i * 2.0**-52, n)
            assert sum(map(Fraction, values)) / n == Fraction(1.25) + (2 * i + 1) * Fraction(1, 2**53)
            groups[len(groups)] = values
    key = np.repeat(list(groups), [len(values) for values in groups.values()])
    table = pa.table({"ts": np.zeros(len(key), np.int64), "k": key, "x": np.concatenate(list(groups.values()))})
    got = ps.aggregate(ps.Query(ps.Window(10), "k", {"mean": ps.avg("x")}), [table])
    assert got["mean"].to_pylist() == [nearest(values) for values in groups.values()]


@given(
    values=st.lists(INTEGERS, min_size=1, max_size=9).map(lambda v: (v, pa.int64()))
    | st.lists(UNSIGNED, min_size=1, max_size=9).map(lambda v: (v, pa.uint64()))
)
@example(values=([2**64 - 1] * 3, pa.uint64()))
@example(values=([-(2**63)] * 3, pa.int64()))
def test_integers(values):
    table = table_of(*values)
    for design in ("mq", "sliced"):
        assert bits(ps.aggregate(QUERY, [table], design=design)["mean"][0].as_py()) == bits(nearest(values[0]))
    assert bits(combined(table)) == bits(nearest(values[0]))


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize(
    "values", [[math.inf, 1.0], [-math.inf, LARGEST, LARGEST], [math.nan, 1.0], [math.inf, -math.inf]]
)
def test_infinities_and_nan_decide_alone(design, values):
    expected = sum(x for x in values if not math.isfinite(x))
    got = ps.aggregate(QUERY, [table_of(values, pa.float64())], design=design)["mean"][0].as_py()
    assert bits(got) == bits(expected) or (math.isnan(got) and math.isnan(expected))
