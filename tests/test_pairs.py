"""`covar`, `slope`, `intercept` and `corr` are exact and rounded once, in every design and on every way to a result."""

from __future__ import annotations

import math
import statistics
import struct
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from exact_moments import Pairs, covar_of, line_of, nearest, ratio, root, same
from hypothesis import example, given
from hypothesis import strategies as st
from test_snapshot import changed
from threads import patience

import pystream as ps
from pystream import _native, reference
from pystream.cli import query_text
from pystream.operator import DESIGNS
from pystream.partials import Combine, Fold

LARGEST = 1.7976931348623157e308
FAR = st.integers(-8, 8).map(lambda i: 1e15 + i / 8)
FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-1e6, 1e6),
    st.sampled_from([1e308, LARGEST, -LARGEST, 5e-324, -5e-324, 0.0, -0.0, 2.0**45, 2.0**-29, 1.0, 2.0]),
)
POINTS = st.one_of(*(st.lists(st.tuples(y, x), min_size=1, max_size=8) for y in (FLOATS, FAR) for x in (FLOATS, FAR)))
INTEGERS = {
    "i64": st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, 0, 1]),
    "u64": st.integers(0, 2**64 - 1) | st.sampled_from([2**64 - 1, 0, 1]),
}
VALUES = {"f64": FLOATS | FAR} | INTEGERS
KINDS = st.tuples(st.sampled_from(sorted(VALUES)), st.sampled_from(sorted(VALUES)))
ARROW = {"f64": pa.float64(), "i64": pa.int64(), "u64": pa.uint64()}
DDOF = st.integers(0, 2)
FOUR = ("covar", "slope", "intercept", "corr")


def query(ddof: int = 1, window: ps.Window | None = None, key: str | None = None) -> ps.Query:
    line = {"slope": ps.slope("y", "x"), "intercept": ps.intercept("y", "x"), "corr": ps.corr("y", "x")}
    return ps.Query(window or ps.Window(10), key, {"covar": ps.covar("y", "x", ddof)} | line)


def table_of(points: list, y: str = "f64", x: str = "f64") -> pa.Table:
    columns = {"y": pa.array([p[0] for p in points], ARROW[y]), "x": pa.array([p[1] for p in points], ARROW[x])}
    return pa.table({"ts": pa.array([1] * len(points), pa.int64())} | columns)


def agrees(row: dict, points: list, ddof: int) -> bool:
    return all(
        same(row[name], want) for name, want in zip(FOUR, (covar_of(points, ddof), *line_of(points)), strict=True)
    )


def folded(query: ps.Query, table: pa.Table) -> list[pa.RecordBatch]:
    fold = Fold(query, table.schema)
    return [partial for batch in table.to_batches() for partial in fold.add(batch)] + list(fold.finish())


# ---- the states alone ----


@given(st.data(), KINDS, DDOF)
def test_states_of_any_kinds(data, kinds, ddof):
    points = data.draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), max_size=7))
    p = Pairs(points, *kinds)
    assert agrees({name: getattr(p, name)(*([ddof] if name == "covar" else [])) for name in FOUR}, points, ddof)


@given(st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=2, max_size=9))
def test_the_oracle_is_pythons(points):
    y, x = [float(p[0]) for p in points], [float(p[1]) for p in points]
    assert covar_of(points) == pytest.approx(statistics.covariance(y, x))
    if len(set(x)) > 1:
        line = statistics.linear_regression(x, y)
        assert line_of(points)[:2] == pytest.approx((line.slope, line.intercept))
    if len(set(x)) > 1 and len(set(y)) > 1:
        assert line_of(points)[2] == pytest.approx(statistics.correlation(y, x))


@given(st.lists(st.lists(st.tuples(FLOATS | st.just(math.nan), FLOATS), max_size=3), min_size=2, max_size=6))
def test_states_slide(parts):
    """What enters and leaves leaves no trace."""
    states, window = [Pairs(part) for part in parts], Pairs()
    for i, state in enumerate(states):
        window.combine(state)
        if i > 1:
            window.subtract(states[i - 2])
        inside = [p for part in parts[max(0, i - 1) : i + 1] for p in part]
        assert agrees({name: getattr(window, name)() for name in FOUR}, inside, 1)


@given(st.integers(0, 2**700), st.integers(2**128, 2**700), st.integers(-80, 80), st.booleans())
@example(2**640 - 1, 2**320, 0, False)
@example(2**400, 2**200 - 1, 0, False)
@example((2**192 - 1) * 2**250, 2**192 - 2**64, 1, False)  # the guess of a digit is too large
@example(3**300, 3**298, 0, True)
@example((2**53 + 1) ** 2 * 3**200, 3**200, 0, True)  # a tie
@example((2**53 + 1) ** 2 * 3**200 + 1, 3**200, 0, True)
@example((2**53 + 1) * 7**100, 7**100, 0, False)  # one of a quotient, and what is just beside it
@example((2**53 + 1) * 7**100 + 1, 7**100, 0, False)
@example((2**53 + 1) * 7**100 - 1, 7**100, 0, False)
@example((2**53 + 3) * 7**100 - 1, 7**100, 0, False)
def test_ratios_by_many_limbs(a, d, exponent, of_root):
    exact = Fraction(a, d) * Fraction(2) ** exponent
    assert same(ratio(a, d, exponent, of_root=of_root), root(exact) if of_root else nearest(exact))


@pytest.mark.parametrize("value", [1e300, 5e-324, math.inf, 2.0**44, 1.0, 0.0])
def test_out_of_memory_while_adding(value, failing_memory, nothing_left):
    """All or nothing, also for the sums of squares."""
    before = [*[(2.0**44, -(2.0**44))] * 7, (0.1, 3.0), (0.5, 7.0)]
    p = Pairs(before)
    for attempt in range(1, 20):
        failing_memory(attempt)
        try:
            p.add([(value, -value)])
        except MemoryError:
            failing_memory(0)
            assert agrees({name: getattr(p, name)() for name in FOUR}, before, 1)
        else:
            failing_memory(0)
            break
    assert agrees({name: getattr(p, name)() for name in FOUR}, [*before, (value, -value)], 1)


# ---- in queries ----


@pytest.mark.parametrize("design", DESIGNS)
@given(points=POINTS, ddof=DDOF)
@example(points=[(LARGEST, -LARGEST), (-LARGEST, LARGEST)], ddof=1)
@example(points=[(5e-324, 1.0), (0.0, 0.0)], ddof=0)
@example(points=[(0.1, 3.0), (0.2, 5.0), (0.3, 1e15)], ddof=1)
@example(points=[(1.0, 3.0), (2.0, 3.0)], ddof=1)  # a line that stands upright
@example(points=[(1.0, 3.0), (1.0, 4.0)], ddof=1)  # one that lies
def test_floats(design, points, ddof):
    halves = [table_of(points[0::2]), table_of(points[1::2])]
    assert agrees(ps.aggregate(query(ddof), halves, design=design).to_pylist()[0], points, ddof)


@given(points=POINTS, ddof=DDOF)
def test_floats_in_partials(points, ddof):
    table = table_of(points)
    whole = Combine(query(ddof), table.schema)
    for part in (table[: table.num_rows // 2], table[table.num_rows // 2 :]):
        whole.add(folded(query(ddof), part))
    assert agrees(next(whole.finish()).to_pylist()[0], points, ddof)


@given(data=st.data(), kinds=KINDS, ddof=DDOF)
def test_other_types(data, kinds, ddof):
    points = data.draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), min_size=1, max_size=6))
    table = table_of(points, *kinds)
    for design in ("sliced", "mq"):
        assert agrees(ps.aggregate(query(ddof), [table], design=design).to_pylist()[0], points, ddof)
    whole = Combine(query(ddof), table.schema)
    whole.add(folded(query(ddof), table))
    assert agrees(next(whole.finish()).to_pylist()[0], points, ddof)


@pytest.mark.parametrize("design", DESIGNS)
def test_what_has_left_the_window_leaves_no_trace(design):
    """Values that need wide sums, infinities and NaN, with everyday ones before and behind them, on both sides."""
    everyday = [1.5, 0.25, 3.0, 1e15, 1e15 + 0.125]
    rare = [1e300, 5e-324, math.inf, math.nan, -math.inf, 2.0**44, LARGEST]
    values = [v for x in rare for v in (*everyday, x, *everyday)] + everyday
    rows = [{"ts": ts, "k": ts % 3, "y": y, "x": values[(ts * 7) % len(values)]} for ts, y in enumerate(values)]
    inputs = [rows[0::2], rows[1::2]]
    for window in (ps.Window(4, 1), ps.Window(9, 2), ps.Window(5)):
        asked = query(1, window, "k")
        got = ps.aggregate(asked, [pa.Table.from_pylist(r) for r in inputs], design=design).to_pylist()
        expected = reference.aggregate(asked, inputs)
        assert [(row["ts"], row["k"]) for row in got] == [(row["ts"], row["k"]) for row in expected]
        for one, other in zip(got, expected, strict=True):
            assert all(same(one[name], other[name]) for name in FOUR)


def test_nulls_and_too_few():
    table = pa.table(
        {
            "ts": [0, 1, 2, 10, 20, 21, 30, 31],
            "y": [1.0, 3.0, 7.0, math.nan, 2.0, None, 4.0, 4.0],
            "x": [2, 4, None, 7, None, 1, 1, 2],
        }
    )
    got = ps.aggregate(query(), [table]).to_pylist()
    assert got[0] == {"ts": 0, "covar": 2.0, "slope": 1.0, "intercept": -1.0, "corr": 1.0}
    assert got[1] == got[2] | {"ts": 10} == {"ts": 10} | dict.fromkeys(FOUR)
    assert got[3] == {"ts": 30, "covar": 0.0, "slope": 0.0, "intercept": 4.0, "corr": None}
    all_there = ps.aggregate(query(0), [table]).to_pylist()
    assert all_there[0]["covar"] == 1.0
    assert math.isnan(all_there[1]["covar"])


def test_of_one_column_they_are_its_variance():
    rows = pa.table({"ts": [0, 1, 2], "x": [1e15, 1e15 + 0.5, 7.0]})
    functions = {"c": ps.covar("x", "x", 0), "v": ps.var("x", 0), "s": ps.slope("x", "x"), "r": ps.corr("x", "x")}
    (row,) = ps.aggregate(ps.Query(ps.Window(10), None, functions), [rows]).to_pylist()
    assert row["c"] == row["v"]
    assert row["s"] == row["r"] == 1.0


# ---- in Python ----


def test_what_is_part_of_the_function():
    assert ps.covar("y", "x") == ps.covar("y", "x", 1) != ps.covar("y", "x", ddof=0)
    assert ps.slope("y", "x") != ps.slope("x", "y")
    assert repr(ps.covar("y", "x", 0, where=pc.field("x") > 1)) == "covar(y, x, ddof=0, where=(x > 1))"
    assert repr(ps.corr("y", "x")) == "corr(y, x)"


def test_what_is_refused():
    with pytest.raises(ValueError, match="takes a number between 0 and 2147483647, not -1"):
        ps.covar("y", "x", -1)
    with pytest.raises(TypeError, match=r"covar\(ddof=\.\.\.\) takes an integer"):
        ps.covar("y", "x", pc.field("x") > 1)
    with pytest.raises(TypeError, match=r"slope\(\) takes the names of two columns: x must be a str, not int"):
        ps.slope("y", 3)
    rows = {"ts": [1], "y": [1.0], "name": ["a"], "day": pa.array([1], pa.date32())}
    for column, type in (("name", "string"), ("day", "date32")):
        with pytest.raises(ps.SchemaError, match=f"r = corr.y, {column}.: column '{column}' has type {type}"):
            ps.aggregate(ps.Query(ps.Window(10), None, {"r": ps.corr("y", column)}), [rows])
        with pytest.raises(ps.SchemaError, match=f"column of type {type}.* has no corr"):
            ps.aggregate(ps.Query(ps.Window(10), None, {"r": ps.corr(column, "y")}), [rows])


def test_on_the_command_line():
    assert query_text.aggregate("slope:cons:ts") == ps.slope("cons", "ts")
    assert query_text.aggregate("covar:a:b where a > 2") == ps.covar("a", "b", where=pc.field("a") > 2)


# ---- as bytes ----

HEAD, SUMS, WORDS = struct.Struct("<qB"), struct.Struct("<4q"), struct.Struct("<5q")
WIDE, LIMBS = struct.Struct("<35q3q"), struct.Struct("<67q")
ZERO = WORDS.pack(*[0] * 5)
SCHEMA = pa.schema([("ts", pa.int64()), ("y", pa.float64()), ("x", pa.float64())])


def state(
    n: int, parts: int = 0, sums: tuple = (0, 0, 0, 0), words: tuple = (ZERO, ZERO, ZERO), more: bytes = b""
) -> bytes:
    """Of `corr`: n, which wide parts, the narrow sums of y and x, the words of xy, xx, yy, and the wide parts."""
    return HEAD.pack(n, parts) + SUMS.pack(*sums) + b"".join(words) + more


ONE, BIG = WORDS.pack(1, 0, 0, 0, 0), WORDS.pack(0, 0, 0, 1, 0)
IMPOSSIBLE = {
    "fewer bytes": state(2)[:-1],
    "more bytes": state(2) + b"\0",
    "a negative count": state(-2),
    "too many": state(2**62 + 1),
    "a sum of nothing": state(0, sums=(1, 0, 0, 0)),
    "another sum of nothing": state(0, sums=(0, 0, 1, 0)),
    "products of nothing": state(0, words=(ONE, ZERO, ZERO)),
    "products beyond": state(2, words=(WORDS.pack(0, 0, 0, 0, 2**40), ZERO, ZERO)),
    "negative products beyond": state(2, words=(WORDS.pack(0, 0, 0, 0, -(2**40)), ZERO, ZERO)),
    "negative squares": state(2, words=(ZERO, WORDS.pack(*[-1] * 5), ZERO)),
    "other negative squares": state(2, words=(ZERO, ZERO, WORDS.pack(*[-1] * 5))),
    "squares below the sum's": state(2, sums=(0, 0, 2**62, 0), words=(ZERO, ONE, ZERO)),
    "a correlation above 1": state(2, words=(WORDS.pack(3, 0, 0, 0, 0), ONE, ONE)),
    "a correlation below -1": state(2, words=(WORDS.pack(-3, -1, -1, -1, -1), ONE, ONE)),
    "a part that is none": state(2, 32),
    "half a wide sum": state(2, 1, more=WIDE.pack(*[0] * 38)[:-8]),
    "a wide sum without squares": state(2, 1, more=WIDE.pack(*[0] * 20, 1, *[0] * 17)),
    "many NaN": state(2, 2, more=WIDE.pack(*[0] * 35, 3, 0, 0)),
    "few infinities": state(2, 1, more=WIDE.pack(*[0] * 35, 0, -1, 0)),
    "many specials": state(2, 1, more=WIDE.pack(*[0] * 35, 1, 1, 1)),
    "wide products beyond": state(2, 4, words=(ZERO, BIG, BIG), more=LIMBS.pack(*[0] * 66, 1)),
    "negative wide squares": state(2, 8, more=LIMBS.pack(*[-1] * 67)),
    "other negative wide squares": state(2, 16, more=LIMBS.pack(*[-1] * 67)),
    "a wide correlation above 1": state(2, 4, words=(ZERO, BIG, BIG), more=LIMBS.pack(*[0] * 60, 1, *[0] * 6)),
}


def open_window(asked: ps.Query, schema: pa.Schema = SCHEMA, design: str = "mq") -> bytes:
    with ps.Operator(asked, 1, schema, design=design) as op:
        op.add(0, pa.RecordBatch.from_pylist([{"ts": 1, "y": 3, "x": 1}, {"ts": 2, "y": 5, "x": 2}], schema=schema))
        op.heartbeat(0, 3)
        for _ in patience():
            if op.stats()["pending"] == 0:
                break
        return op.snapshot()


@pytest.mark.parametrize("design", ["mq", "sliced"])
@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_states_that_cannot_be_are_refused(what, design, nothing_left):
    asked = ps.Query(ps.Window(10), None, {"r": ps.corr("y", "x")})
    blob = open_window(asked)
    with pytest.raises(ps.SnapshotError, match="damaged"):
        ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _: [IMPOSSIBLE[what]]), design=design)


def test_states_that_can_be_are_not():
    asked = ps.Query(ps.Window(10), None, {"r": ps.corr("y", "x")})
    blob = open_window(asked)
    exact = state(2, words=(WORDS.pack(-1, -1, -1, -1, -1), ONE, ONE))  # as far down as it goes
    special = state(2, 3, more=WIDE.pack(*[0] * 35, 1, 1, 0) + WIDE.pack(*[0] * 35, 0, 0, 2))
    wide = state(2, 28, more=LIMBS.pack(*[0] * 30, 1, *[0] * 36) * 3)
    for made, expected in ((exact, -1.0), (special, math.nan), (wide, 1.0)):
        with ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _, s=made: [s])) as op:
            op.close(0)
            assert same(op.read()["r"][0].as_py(), expected)


def test_integers_have_no_wide_sums():
    asked = ps.Query(ps.Window(10), None, {"c": ps.covar("y", "x")})
    blob = open_window(asked, pa.schema([("ts", pa.int64()), ("y", pa.int64()), ("x", pa.uint8())]))
    for parts, more in ((1, WIDE.pack(*[0] * 38)), (2, WIDE.pack(*[0] * 38)), (4, LIMBS.pack(*[0] * 67))):
        with pytest.raises(ps.SnapshotError, match="damaged"):
            wide = state(2, parts, words=(ZERO,), more=more)
            ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _, s=wide: [s]))
    for sums in ((0, 3, 0, 0), (0, 0, 0, -3)):
        with pytest.raises(ps.SnapshotError, match="damaged"):
            beyond = state(2, sums=sums, words=(ZERO,))
            ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _, s=beyond: [s]))


def test_a_snapshot_is_of_one_function():
    blob = open_window(query(1))
    with pytest.raises(ps.SnapshotError):
        ps.Operator.restore(query(0), blob)
    functions = query(1).aggregates | {"slope": ps.slope("x", "y")}
    with pytest.raises(ps.SnapshotError):
        ps.Operator.restore(ps.Query(ps.Window(10), None, functions), blob)


def test_a_fold_counts_wide_sums():
    rng = np.random.default_rng(3)
    table = pa.table({"ts": np.arange(2000) // 100, "k": np.arange(2000) % 50, "x": rng.normal(0, 1, 2000)})
    asked, sizes = query(1, ps.Window(5), "k"), []
    for scale in (1, 1e300):
        rows = table.append_column("y", pa.array(rng.normal(0, scale, 2000)))
        fold = Fold(asked, rows.schema)
        assert [p for batch in rows.to_batches() for p in fold.add(batch)] == []
        sizes.append(fold._handle.bytes)
        list(fold.finish())
        assert fold._handle.bytes == 0
    assert sizes[1] - sizes[0] == 200 * (4 * (35 * 8 + 24) + 5 * 67 * 8)  # y; xy four times, and yy in `corr`


@pytest.mark.parametrize("design", ["sliced", "mq"])
def test_many_inputs_of_few_keys(design, nothing_left):
    """What is handed over at one edge is more than there are keys; some of it has wide sums."""
    rng, inputs = np.random.default_rng(11), []
    for i in range(8):
        ts = np.sort(rng.integers(0, 200, 600))
        y = np.where(ts % 37 == i, rng.normal(0, 1e300, 600), rng.normal(100, 10, 600))
        inputs.append(pa.table({"ts": ts, "k": rng.integers(0, 4, 600), "y": y, "x": rng.normal(5, 1, 600)}))
    asked = query(1, ps.Window(20, 10), "k")
    got = ps.aggregate(asked, inputs, design=design).to_pylist()
    assert got == reference.aggregate(asked, [t.to_pylist() for t in inputs])


def test_a_total_that_is_empty_holds_nothing(nothing_left):
    """Keys that had wide sums once have no blocks of their own afterwards."""
    asked = query(1, ps.Window(2), "k")
    schema = [("ts", "int64"), ("k", "int64"), ("y", "double"), ("x", "double")]
    with ps.Operator(asked, 1, schema, design="sliced") as op:
        before = _native.memory_live()
        wide = np.full(200, 1e300)
        op.add(0, {"ts": np.zeros(200, np.int64), "k": np.arange(200), "y": wide, "x": wide})
        op.add(0, {"ts": [5], "k": [0], "y": [1.0], "x": [1.0]})
        op.heartbeat(0, 10)
        for _ in patience():
            if op.stats()["rows_out"] == 201:
                break
        rows, left = op.poll(), _native.memory_live() - before
        op.close(0)
        assert sum(batch.num_rows for batch in rows) == 201
        assert left < 200  # of 3,400
        assert not any(batch.num_rows for batch in op)
