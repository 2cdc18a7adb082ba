"""`var` and `std` are the doubles nearest to the exact values, in every design and on every way to a result."""

from __future__ import annotations

import math
import struct

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from exact_moments import same, std_of, var_of
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
    st.sampled_from([1e308, LARGEST, -LARGEST, 5e-324, -5e-324, 0.0, -0.0, 2.0**45, 2.0**-29]),
)
VALUES = st.lists(FLOATS, min_size=1, max_size=9) | st.lists(FAR, min_size=1, max_size=9)
DDOF = st.integers(0, 2)


def query(ddof: int = 1, window: ps.Window | None = None, key: str | None = None) -> ps.Query:
    return ps.Query(window or ps.Window(10), key, {"var": ps.var("x", ddof), "std": ps.std("x", ddof=ddof)})


def table_of(values: list, type: pa.DataType) -> pa.Table:
    return pa.table({"ts": pa.array([1] * len(values), pa.int64()), "x": pa.array(values, type)})


def agrees(row: dict, values: list, ddof: int) -> bool:
    return same(row["var"], var_of(values, ddof)) and same(row["std"], std_of(values, ddof))


def folded(query: ps.Query, table: pa.Table) -> list[pa.RecordBatch]:
    fold = Fold(query, table.schema)
    return [partial for batch in table.to_batches() for partial in fold.add(batch)] + list(fold.finish())


@pytest.mark.parametrize("design", DESIGNS)
@given(values=VALUES, ddof=DDOF)
@example(values=[LARGEST, -LARGEST], ddof=1)
@example(values=[5e-324, 0.0], ddof=0)
@example(values=[0.1, 0.2, 0.3], ddof=1)
def test_floats(design, values, ddof):
    halves = [table_of(values[0::2], pa.float64()), table_of(values[1::2], pa.float64())]
    assert agrees(ps.aggregate(query(ddof), halves, design=design).to_pylist()[0], values, ddof)


@given(values=VALUES, ddof=DDOF)
def test_floats_in_partials(values, ddof):
    table = table_of(values, pa.float64())
    whole = Combine(query(ddof), table.schema)
    for part in (table[: table.num_rows // 2], table[table.num_rows // 2 :]):
        whole.add(folded(query(ddof), part))
    assert agrees(next(whole.finish()).to_pylist()[0], values, ddof)


@pytest.mark.parametrize("type", [pa.int64(), pa.uint64(), pa.bool_(), pa.int8(), pa.float32()], ids=str)
@given(data=st.data(), ddof=DDOF)
def test_other_types(type, data, ddof):
    values = {
        pa.int64(): st.integers(-(2**63), 2**63 - 1) | st.sampled_from([-(2**63), 2**63 - 1, 2**53 + 1]),
        pa.uint64(): st.integers(0, 2**64 - 1) | st.just(2**64 - 1),
        pa.bool_(): st.booleans(),
        pa.int8(): st.integers(-128, 127),
        pa.float32(): st.floats(-1e6, 1e6, width=32),
    }[type]
    table = table_of(data.draw(st.lists(values, min_size=1, max_size=9)), type)
    expected = reference.aggregate(query(ddof), [table.to_pylist()])
    for design in ("sliced", "mq"):
        assert ps.aggregate(query(ddof), [table], design=design).to_pylist() == expected
    whole = Combine(query(ddof), table.schema)
    whole.add(folded(query(ddof), table))
    assert next(whole.finish()).to_pylist() == expected


@pytest.mark.parametrize("design", DESIGNS)
def test_what_has_left_the_window_leaves_no_trace(design):
    """Values that need wide sums, infinities and NaN, with everyday ones before and behind them."""
    everyday = [1.5, 0.25, 3.0, 1e15, 1e15 + 0.125]
    rare = [1e300, 5e-324, math.inf, math.nan, -math.inf, 2.0**44, LARGEST]
    values = [v for x in rare for v in (*everyday, x, *everyday)] + everyday
    rows = [{"ts": ts, "k": ts % 3, "x": x} for ts, x in enumerate(values)]
    inputs = [rows[0::2], rows[1::2]]
    for window in (ps.Window(4, 1), ps.Window(9, 2), ps.Window(5)):
        asked = query(1, window, "k")
        got = ps.aggregate(asked, [pa.Table.from_pylist(r) for r in inputs], design=design).to_pylist()
        expected = reference.aggregate(asked, inputs)
        assert len(got) == len(expected)
        for one, other in zip(got, expected, strict=True):
            assert (one["ts"], one["k"]) == (other["ts"], other["k"])
            assert same(one["var"], other["var"])
            assert same(one["std"], other["std"])


def test_many_keys():
    """Results are made in blocks of keys: some of which have too few values, all the same, or wide sums."""
    rng, keys, rows = np.random.default_rng(7), 150, 4_000
    ts, key = np.sort(rng.integers(0, 30, rows)), rng.integers(0, keys, rows)
    kinds = [rng.normal(0, 1, rows), rng.integers(0, 30, rows) / 10, 1e15 + rng.integers(0, 9, rows) / 8]
    kinds += [np.full(rows, 0.1), rng.normal(0, 1e300, rows), rng.uniform(2.0**36, 2.0**44, rows)]
    values = np.select([key % len(kinds) == i for i in range(len(kinds))], kinds)
    table = pa.table({"ts": ts, "k": key, "x": pa.array(values, mask=(key % 7 == 0) & (rng.random(rows) < 0.9))})
    asked = query(2, ps.Window(6, 2), "k")
    got, expected = (
        ps.aggregate(asked, [table], design="sliced").to_pylist(),
        reference.aggregate(asked, [table.to_pylist()]),
    )
    assert got == expected
    assert {row["var"] is None for row in expected} == {True, False}


def test_few_values_and_nan():
    table = pa.table({"ts": [0, 1, 10, 20, 21], "x": [1.0, 3.0, math.nan, 2.0, None]})
    rows = ps.aggregate(query(1), [table]).to_pylist()
    assert [row["var"] for row in rows] == [2.0, None, None]
    most = ps.aggregate(query(2**31 - 1), [table]).to_pylist()
    assert {row["std"] for row in most} == {None}
    zero = ps.aggregate(query(0), [table]).to_pylist()
    assert zero[0] == {"ts": 0, "var": 1.0, "std": 1.0}
    assert math.isnan(zero[1]["var"])
    assert math.isnan(zero[1]["std"])
    assert zero[2] == {"ts": 20, "var": 0.0, "std": 0.0}


# ---- in Python ----


def test_ddof_is_part_of_the_function():
    assert ps.var("x") == ps.var("x", 1) == ps.var("x", ddof=1) != ps.var("x", ddof=0)
    assert ps.std("x", 2) != ps.std("x", 1)
    assert len({ps.var("x"), ps.var("x", 1), ps.var("x", 0), ps.std("x")}) == 3
    assert repr(ps.var("x")) == "var(x)"
    assert repr(ps.std("x", ddof=0, where=pc.field("x") > 1)) == "std(x, ddof=0, where=(x > 1))"


@pytest.mark.parametrize("ddof", [-1, 2**31])
def test_ddof_out_of_range(ddof):
    with pytest.raises(ValueError, match=f"takes a number between 0 and 2147483647, not {ddof}"):
        ps.std("x", ddof=ddof)


@pytest.mark.parametrize("ddof", [1.0, True, "1", None, pc.field("x") > 1])
def test_ddof_that_is_no_integer(ddof):
    with pytest.raises(TypeError, match=r"var\(ddof=\.\.\.\) takes an integer"):
        ps.var("x", ddof)


def test_on_the_command_line():
    assert query_text.aggregate("std:cons") == ps.std("cons")
    assert query_text.aggregate("var:cons where cons > 2") == ps.var("cons", where=pc.field("cons") > 2)


# ---- as bytes ----

STATE = struct.Struct("<q??qq5q")  # n, what follows, the narrow sum, the words of the squares
WIDE, SQUARES = struct.Struct("<35q3q"), struct.Struct("<67q")
SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.float64())])
IMPOSSIBLE = {
    "fewer bytes": STATE.pack(2, False, False, 0, 0, *[0] * 5)[:-1],
    "a negative count": STATE.pack(-2, False, False, 0, 0, *[0] * 5),
    "too many": STATE.pack(2**62 + 1, False, False, 0, 0, *[0] * 5),
    "a sum of nothing": STATE.pack(0, False, False, 1, 0, *[0] * 5),
    "squares of nothing": STATE.pack(0, False, False, 0, 0, 1, 0, 0, 0, 0),
    "negative squares": STATE.pack(2, False, False, 0, 0, *[-1] * 5),
    "squares below the sum's": STATE.pack(2, False, False, 2**62, 0, 2**20, 0, 0, 0, 0),
    "squares beyond": STATE.pack(2, False, False, 0, 0, 0, 0, 0, 0, 2**40),
    "squares of a third value": STATE.pack(2, False, False, 0, 0, 0, 0, 0, 2**59, 0),
    "half a wide sum": STATE.pack(2, True, False, 0, 0, *[0] * 5) + WIDE.pack(*[0] * 38)[:-8],
    "a wide sum without squares": STATE.pack(2, True, False, 0, 0, *[0] * 5) + WIDE.pack(*[0] * 20, 1, *[0] * 17),
    "many NaN": STATE.pack(2, True, False, 0, 0, *[0] * 5) + WIDE.pack(*[0] * 35, 3, 0, 0),
    "few infinities": STATE.pack(2, True, False, 0, 0, *[0] * 5) + WIDE.pack(*[0] * 35, 0, -1, 0),
    "many specials": STATE.pack(2, True, False, 0, 0, *[0] * 5) + WIDE.pack(*[0] * 35, 1, 1, 1),
    "values of none": STATE.pack(2, True, False, 0, 0, 1, *[0] * 4) + WIDE.pack(*[0] * 35, 2, 0, 0),
    "negative wide squares": STATE.pack(2, False, True, 0, 0, *[0] * 5) + SQUARES.pack(*[-1] * 67),
    "wide squares beyond": STATE.pack(2, False, True, 0, 0, *[0] * 5) + SQUARES.pack(*[0] * 66, 1),
    "wide squares of a third": STATE.pack(2, False, True, 0, 0, *[0] * 5) + SQUARES.pack(*[0] * 65, 2**37, 0),
    "a flag that is none": b"\2".join((STATE.pack(2, False, False, 0, 0, *[0] * 5)[:8], bytes(57))),
}


def open_window(asked: ps.Query, schema: pa.Schema = SCHEMA, design: str = "mq") -> bytes:
    with ps.Operator(asked, 1, schema, design=design) as op:
        op.add(0, pa.RecordBatch.from_pylist([{"ts": 1, "x": 3}, {"ts": 2, "x": 5}], schema=schema))
        op.heartbeat(0, 3)
        for _ in patience():
            if op.stats()["pending"] == 0:
                break
        return op.snapshot()


@pytest.mark.parametrize("design", ["mq", "sliced"])
@pytest.mark.parametrize("what", IMPOSSIBLE)
def test_states_that_cannot_be_are_refused(what, design, nothing_left):
    asked = ps.Query(ps.Window(10), None, {"var": ps.var("x")})
    blob = open_window(asked)
    with pytest.raises(ps.SnapshotError, match="damaged"):
        ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _: [IMPOSSIBLE[what]]), design=design)


def test_states_that_can_be_are_not():
    asked = ps.Query(ps.Window(10), None, {"var": ps.var("x")})
    blob = open_window(asked)
    same_values = STATE.pack(
        2, False, False, 2 << 40, 0, 0, 2 << 16, 0, 0, 0
    )  # two times 2^40 units: exactly their square
    most = STATE.pack(2, True, False, 0, 0, *[0] * 5) + WIDE.pack(*[0] * 35, 1, 1, 0)
    for state, expected in ((same_values, 0.0), (most, math.nan)):
        with ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _, s=state: [s])) as op:
            op.close(0)
            assert same(op.read()["var"][0].as_py(), expected)


def test_integers_have_no_wide_sums():
    asked = ps.Query(ps.Window(10), None, {"std": ps.std("x")})
    blob = open_window(asked, pa.schema([("ts", pa.int64()), ("x", pa.int64())]))
    wide = STATE.pack(2, True, False, 0, 0, *[0] * 5) + WIDE.pack(*[0] * 38)
    beyond = STATE.pack(2, False, False, 0, 0, 0, 0, 2, 0, 0)
    for state in (wide, beyond):
        with pytest.raises(ps.SnapshotError, match="damaged"):
            ps.Operator.restore(asked, changed(blob, "windows", "state", lambda _, s=state: [s]))


def test_a_snapshot_is_of_one_ddof():
    with pytest.raises(ps.SnapshotError):
        ps.Operator.restore(query(0), open_window(query(1)))


def test_a_fold_counts_wide_sums():
    rng = np.random.default_rng(3)
    table = pa.table({"ts": np.arange(2000) // 100, "k": np.arange(2000) % 50, "x": rng.normal(0, 1, 2000)})
    wide = table.set_column(2, "x", pa.array(rng.normal(0, 1e300, 2000)))
    sizes = []
    for rows in (table, wide):
        fold = Fold(query(1, ps.Window(5), "k"), rows.schema)
        assert [p for batch in rows.to_batches() for p in fold.add(batch)] == []
        sizes.append(fold._handle.bytes)
        list(fold.finish())
        assert fold._handle.bytes == 0
    assert sizes[1] - sizes[0] == 2 * 200 * (35 * 8 + 24 + 67 * 8)  # of var and std, in 4 slices with 50 keys


@pytest.mark.parametrize("design", ["sliced", "mq"])
def test_many_inputs_of_few_keys(design, nothing_left):
    """What is handed over at one edge is more than there are keys; some of it has wide sums."""
    rng, inputs = np.random.default_rng(11), []
    for i in range(8):
        ts = np.sort(rng.integers(0, 200, 600))
        x = np.where(ts % 37 == i, rng.normal(0, 1e300, 600), rng.normal(100, 10, 600))
        inputs.append(pa.table({"ts": ts, "k": rng.integers(0, 4, 600), "x": x}))
    asked = query(1, ps.Window(20, 10), "k")
    got = ps.aggregate(asked, inputs, design=design).to_pylist()
    assert got == reference.aggregate(asked, [t.to_pylist() for t in inputs])


def test_a_total_that_is_empty_holds_nothing(nothing_left):
    """Keys that had wide sums once have no blocks of their own afterwards."""
    asked = query(1, ps.Window(2), "k")
    with ps.Operator(asked, 1, [("ts", "int64"), ("k", "int64"), ("x", "double")], design="sliced") as op:
        before = _native.memory_live()
        op.add(0, {"ts": np.zeros(200, np.int64), "k": np.arange(200), "x": np.full(200, 1e300)})
        op.add(0, {"ts": [5], "k": [0], "x": [1.0]})
        op.heartbeat(0, 10)
        for _ in patience():
            if op.stats()["rows_out"] == 201:
                break
        rows, left = op.poll(), _native.memory_live() - before
        op.close(0)
        assert sum(batch.num_rows for batch in rows) == 201
        assert left < 200  # of 800
        assert not any(batch.num_rows for batch in op)
