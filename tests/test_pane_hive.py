"""What is particular to the sliced design: slices and stacks over long streams, dense key numbers, what it keeps."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from strategies import bits
from streams import ALL, stream
from threads import patience

import pystream as ps
from pystream import _native


def same(query: ps.Query, inputs: list[pa.Table], cut: int = 1 << 16) -> pa.Table:
    """The result, which must be the same bytes as that of MQ."""
    parts = [t.to_batches(max_chunksize=cut) for t in inputs]
    got = ps.aggregate(query, parts, design="sliced")
    want = ps.aggregate(query, inputs, design="mq")
    assert got.combine_chunks().equals(want.combine_chunks()) or canonical(got) == canonical(want)
    return got


def canonical(table: pa.Table) -> list[tuple]:
    """Rows in which all NaN are equal."""
    rows = zip(*(c.to_pylist() for c in table.columns), strict=True)
    return [tuple(bits(value) for value in row) for row in rows]


@pytest.mark.parametrize(
    ("size", "advance"), [(7, 1), (30, 3), (10, 10), (5, 8), (17, 4), (64, 1), (300, 1), (1, 1), (50, 49), (400, 400)]
)
def test_long_streams_equal_mq(size, advance):
    """Many slices enter and leave, so that both stacks of every key turn over and wide sums come and go."""
    rng = np.random.default_rng(size * 1000 + advance)
    inputs = [stream(rng, 150, 300, keys=4) for _ in range(3)]
    same(ps.Query(ps.Window(size, advance), "k", ALL), inputs, cut=int(rng.integers(1, 60)))


SUMS = {"n": ps.count(), "i": ps.sum("i"), "j": ps.avg("j"), "f": ps.sum("f"), "g": ps.avg("g")}


def sums_stream(
    rng: np.random.Generator, rows: int, span: int, keys: int, rare: float = 0, nulls: float = 0
) -> pa.Table:
    """Few tuples of a key in a slice: most slices are handed over loose, if there are no nulls and no rare values."""
    f, odd = rng.normal(0, 1e6, rows), rng.random(rows)
    f = np.select([odd < rare / 2, odd < rare, odd < 0.2], [math.nan, 2.0**45, -0.0], f)
    columns = {
        "ts": np.sort(rng.integers(0, span, rows)),
        "k": rng.integers(0, keys, rows),
        "i": pa.array(rng.integers(-(2**50), 2**50, rows), mask=rng.random(rows) < nulls),
        "j": rng.integers(0, 200, rows).astype(np.uint8),
        "f": f,
        "g": rng.normal(0, 1, rows).astype(np.float32),
    }
    return pa.table(columns)


NUMBERS = {name: f for name, f in ALL.items() if not name.endswith("_s")}


@pytest.mark.parametrize("keys", [5, 100])
@pytest.mark.parametrize("functions", ["numbers", "sums"])
@pytest.mark.parametrize("size", [150, 400])
def test_many_slices_held_equal_mq(size, functions, keys):
    """So many that those of one edge are merged, now and then: the stacks turn over with both kinds in them.

    With few keys some are added up instead.
    """
    rng = np.random.default_rng(size)
    query = ps.Query(ps.Window(size, 1), "k", NUMBERS if functions == "numbers" else SUMS)
    if functions == "numbers":
        same(query, [stream(rng, 1000, 1000, keys) for _ in range(6)], cut=100)
    else:  # among them loose ones
        same(query, [sums_stream(rng, 2000, 1000, keys) for _ in range(6)], cut=100)


def test_slices_of_values_that_own_no_memory_are_added_up():
    """Few keys and many inputs; the other functions, which own memory, keep slices from being added up."""
    own = ("var", "std", "covar", "slope", "intercept", "corr", "n_unique", "median", "quantile", "approx_quantile")
    own += ("top_k", "bottom_k", "histogram")
    query = ps.Query(ps.Window(150, 1), "k", {name: f for name, f in NUMBERS.items() if f.function not in own})
    rng = np.random.default_rng(7)
    same(query, [stream(rng, 1000, 1000, keys=5) for _ in range(6)], cut=100)


def settle(op: ps.Operator, added: list[pa.Table]) -> None:
    """Wait until the output thread has come as far as it can with what was added, which is something of each input."""
    ts, input = min((t["ts"][-1].as_py(), i) for i, t in enumerate(added))
    behind = [np.sum(t["ts"].to_numpy() > (ts if i <= input else ts - 1)) for i, t in enumerate(added)]
    for _ in patience():
        if op.stats()["pending"] == sum(behind):
            return


@pytest.mark.parametrize("keys", [4, 100])
def test_snapshots_while_many_slices_are_held_equal_mq(keys):
    """Inputs are apart, so that what was merged of the last edge is not all of it."""
    rng = np.random.default_rng(1)
    inputs = [stream(rng, 1500, 700, keys).combine_chunks() for _ in range(3)]
    query = ps.Query(ps.Window(400, 1), "k", NUMBERS)
    op, rows = ps.Operator(query, 3, inputs[0].schema, "sliced"), []
    for begin in range(0, 1500, 100):
        for i in range(3):
            op.add(i, inputs[i].slice(begin, 100))
            rows += op.poll()
            if begin > 900 and i == 1:
                settle(op, [t.slice(0, begin + 100 * (k <= i)) for k, t in enumerate(inputs)])
                blob = op.snapshot()
                op.end()
                op = ps.Operator.restore(query, blob, "sliced")
    with op:
        for i in range(3):
            op.close(i)
        rows += op
    assert canonical(pa.Table.from_batches(rows)) == canonical(ps.aggregate(query, inputs, design="mq"))


def same_with_snapshots(rng: np.random.Generator, query: ps.Query, inputs: list[pa.Table]) -> None:
    """Rows of any input come, some dozen batches in all; after every other one the operator goes on in another."""
    op, rows, at = ps.Operator(query, 3, inputs[0].schema, "sliced"), [], [0, 0, 0]
    length = len(inputs[0])
    while min(at) < length:
        i, n = int(rng.integers(3)), int(rng.integers(1, length // 6))
        op.add(i, inputs[i].slice(at[i], n))
        at[i] += n
        rows += op.poll()
        if rng.random() < 0.5:
            blob = op.snapshot()
            op.end()
            op = ps.Operator.restore(query, blob, str(rng.choice(["sliced", "sliced", "mq", "runs"])))
    with op:
        for i in range(3):
            op.close(i)
        rows += op
    assert canonical(pa.Table.from_batches(rows)) == canonical(ps.aggregate(query, inputs, design="mq"))


@pytest.mark.parametrize("functions", ["all", "sums"])
@pytest.mark.parametrize(("size", "advance"), [(7, 1), (30, 3), (5, 8), (17, 4), (64, 1), (50, 49)])
def test_snapshots_of_long_streams_equal_mq(size, advance, functions):
    """Taken while stacks are half used up and inputs apart; from slices and windows of others to slices and back."""
    rng = np.random.default_rng(size * 1000 + advance)
    if functions == "all":
        inputs, query = [stream(rng, 150, 300, keys=4) for _ in range(3)], ps.Query(ps.Window(size, advance), "k", ALL)
    else:
        inputs = [sums_stream(rng, 150, 40, keys=4) for _ in range(3)]
        query = ps.Query(ps.Window(size, advance), "k", SUMS)
    same_with_snapshots(rng, query, [t.combine_chunks() for t in inputs])


@pytest.mark.parametrize(("rare", "nulls"), [(0, 0), (0.02, 0), (0, 0.1)])
@pytest.mark.parametrize(("size", "advance"), [(7, 1), (30, 3), (5, 8), (64, 1), (50, 49)])
def test_slices_that_are_not_folded_equal_mq(size, advance, rare, nulls):
    """Loose and folded slices of the same windows; the float that has to be folded comes anywhere."""
    rng = np.random.default_rng(size * 1000 + advance)
    inputs = [sums_stream(rng, 900, 300, int(rng.choice([5, 60])), rare, nulls) for _ in range(3)]
    same(ps.Query(ps.Window(size, advance), "k", SUMS), inputs, cut=int(rng.choice([3, 50, 900])))


#: Everything that slices of one edge can be added up for, and what may be handed over loose.
CROWD = SUMS | {"first": ps.first("f"), "least": ps.min("g"), "most": ps.max("i")}


def crowd(rng: np.random.Generator, rare: float = 0, nulls: float = 0) -> list[pa.Table]:
    """Of an edge there is more than there are keys; now and then nothing for long, and new keys come."""
    inputs = []
    for _ in range(6):
        table = sums_stream(rng, 6000, 300, 20, rare, nulls)
        ts, keys = table["ts"].to_numpy(), table["k"].to_numpy()
        jump, more = int(rng.integers(100, 200)), np.where(ts < 180, 1, 5)
        inputs.append(table.set_column(0, "ts", [ts + (ts > 150) * jump]).set_column(1, "k", [keys * more]))
    return inputs


@pytest.mark.parametrize("functions", [CROWD, CROWD | {"last": ps.last("i"), "some": ps.count(pc.field("i") > 0)}])
@pytest.mark.parametrize(("rare", "nulls"), [(0, 0), (0.002, 0), (0, 0.002)])
@pytest.mark.parametrize(("size", "advance"), [(7, 1), (30, 3), (5, 8), (64, 1)])
def test_slices_that_are_added_up_equal_mq(size, advance, rare, nulls, functions):
    """Beside them are some that cannot be: a sum is wide, a value is null, a key is new."""
    rng = np.random.default_rng(size * 1000 + advance)
    same(ps.Query(ps.Window(size, advance), "k", functions), crowd(rng, rare, nulls), cut=int(rng.choice([50, 900])))


def test_sums_that_become_wide_as_they_are_added_up_equal_mq():
    """Each is narrow, and so are those of an input; those of all inputs are not."""
    rng = np.random.default_rng(1)
    inputs = [
        table.set_column(4, "f", [np.full(6000, 2.0**44 * (1 if i < 4 else -1))]) for i, table in enumerate(crowd(rng))
    ]
    same(ps.Query(ps.Window(30, 3), "k", CROWD | {"h": ps.avg("f")}), inputs, cut=900)


def test_snapshots_while_slices_are_added_up_equal_mq():
    """Inputs are apart, so that what was added up of the last edge is not all of it."""
    rng = np.random.default_rng(1)
    inputs = [t.combine_chunks() for t in crowd(rng)]
    query = ps.Query(ps.Window(30, 3), "k", CROWD)
    op, rows = ps.Operator(query, 6, inputs[0].schema, "sliced"), []
    for begin in range(0, 6000, 300):
        for i in range(6):
            op.add(i, inputs[i].slice(begin, 300))
            rows += op.poll()
            if begin % 900 == 600 and i == 3:
                settle(op, [t.slice(0, begin + 300 * (k <= i)) for k, t in enumerate(inputs)])
                blob = op.snapshot()
                op.end()
                op = ps.Operator.restore(query, blob, "sliced")
    with op:
        for i in range(6):
            op.close(i)
        rows += op
    assert canonical(pa.Table.from_batches(rows)) == canonical(ps.aggregate(query, inputs, design="mq"))


FIRSTS = {"f": ps.first("f"), "g": ps.first("g"), "j": ps.first("j")}


@pytest.mark.parametrize("nulls", [0, 0.01])
@pytest.mark.parametrize(("size", "advance"), [(7, 1), (30, 3), (5, 8), (700, 100)])
def test_firsts_alone_equal_mq(size, advance, nulls):
    """Slices of a few rows to some thousand, within a batch and across."""
    rng = np.random.default_rng(size * 1000 + advance)
    inputs = [sums_stream(rng, 9000, 900, int(rng.choice([5, 60])), nulls=nulls) for _ in range(3)]
    query = ps.Query(ps.Window(size, advance), "k", FIRSTS | {"i": ps.first("i")})
    same(query, inputs, cut=int(rng.choice([7, 300, 9000])))


def test_snapshots_of_firsts_alone_equal_mq():
    """Some tuples of a key are ready and some are not, or none is."""
    rng = np.random.default_rng(1)
    inputs = [sums_stream(rng, 3000, 300, keys=30).combine_chunks() for _ in range(3)]
    query = ps.Query(ps.Window(30, 3), "k", FIRSTS)
    same_with_snapshots(rng, query, inputs)


def test_large_slices_of_values_that_lie_far_apart_leave_no_memory_behind(nothing_left):
    """Such a slice is begun loose, taken back and folded, and then does not fit where it was begun."""
    rows, slices = 4000, 20
    ts, keys = np.repeat(np.arange(slices) * 10, rows), np.tile(np.arange(rows), slices)
    table = pa.table({"ts": ts, "k": keys, "f": np.tile([1e300, 1.0], rows * slices // 2)})
    same(ps.Query(ps.Window(10), "k", {"f": ps.sum("f")}), [table])


@pytest.mark.usual_sizes
def test_a_key_with_many_tuples_in_a_slice_is_folded():
    """What is held for windows to come is as large as the keys are many, whatever was loose before."""
    query = ps.Query(ps.Window(10_000, 10), "k", {"n": ps.count()})
    with ps.Operator(query, 1, pa.schema([("ts", pa.int64()), ("k", pa.int64())]), "sliced") as op:
        op.add(0, {"ts": np.arange(300), "k": np.arange(300)})  # thirty slices, of ten keys
        op.add(
            0, {"ts": np.repeat(np.arange(300, 1300, 10), 1000), "k": np.zeros(100_000, np.int64)}
        )  # a hundred, of one
        op.heartbeat(0, 1400)
        for _ in patience():
            stats = op.stats()
            if stats["pending"] == 0 and stats["windows_open"] >= 300 + 100:  # which is counted after that
                break
        assert op.stats()["windows_open"] == 300 + 100


def one_row(ts: int, v: int | None, s: str | None) -> pa.RecordBatch:
    """A row of an input in which no `by` is less than another."""
    types = {"ts": pa.int64(), "v": pa.int64(), "s": pa.string(), "by": pa.int8()}
    return pa.RecordBatch.from_pydict({"ts": [ts], "v": [v], "s": [s], "by": [7]}, schema=pa.schema(types))


@pytest.mark.parametrize("design", ["sliced", "runs"])
def test_a_first_that_is_not_ready_is_not_saved(design):
    """Tuple 5 is folded before 3 comes; the only tuple of the key that is ready has no value."""
    functions = {"first": ps.first("v"), "last": ps.last("v"), "word": ps.first("s")}
    functions |= {"arg": ps.arg_max("v", "by"), "arg_word": ps.arg_min("s", "by")}
    query = ps.Query(ps.Window(10), None, functions)
    with ps.Operator(query, 2, one_row(0, 0, "").schema, "sliced") as op:
        op.add(0, one_row(1, None, None))
        op.add(1, one_row(5, 50, "five"))
        blob = op.snapshot()
    with ps.Operator.restore(query, blob, design) as op:
        op.add(0, one_row(3, 30, "three"))
        op.close(0)
        op.close(1)
        (row,) = [row for b in op for row in b.to_pylist()]
    assert row == {"ts": 0, "first": 30, "last": 50, "word": "three", "arg": 30, "arg_word": "three"}


def test_a_window_of_a_snapshot_comes_before_its_slices():
    """The first snapshot gives the window as mq left it, the second has a slice beside it, and both are from 0."""
    functions = {"first": ps.first("v"), "last": ps.last("v"), "early": ps.first("s"), "late": ps.last("s")}
    functions |= {"arg": ps.arg_min("v", "by"), "arg_word": ps.arg_max("s", "by")}
    query = ps.Query(ps.Window(10), None, functions)
    op = ps.Operator(query, 1, one_row(0, 0, "").schema, "mq")
    for value in (1, 2):
        op.add(0, one_row(0, value, str(value)))
        for _ in patience():
            if op.stats()["pending"] == 0:  # else it is saved as a tuple to come
                break
        blob = op.snapshot()
        op.end()
        op = ps.Operator.restore(query, blob, "sliced")
    with op:
        op.close(0)
        (row,) = [row for b in op for row in b.to_pylist()]
    assert row == {"ts": 0, "first": 1, "last": 2, "early": "1", "late": "2", "arg": 1, "arg_word": "1"}


def test_a_snapshot_is_as_large_as_the_slices_are():
    """One tuple is in a thousand windows."""
    query = ps.Query(ps.Window(1000, 1), "k", {"n": ps.count(), "last": ps.last("k")})
    with ps.Operator(query, 1, pa.schema([("ts", pa.int64()), ("k", pa.int64())]), "sliced") as op:
        op.add(0, {"ts": np.arange(5000, 5010), "k": np.arange(10)})
        blob = op.snapshot()
        assert len(blob) < 8000
        op.close(0)
        expected = canonical(pa.Table.from_batches(list(op)))
    for design in ("sliced", "tuml-mc"):
        with ps.Operator.restore(query, blob, design) as op:
            op.close(0)
            assert canonical(pa.Table.from_batches(list(op))) == expected


def test_a_wide_sum_leaves_no_trace():
    """Infinity, NaN and sums beyond 128 bits pass through a sliding window; what comes after is exact again."""
    values = [1.0, math.inf, 0.1, 1e300, -1e300, math.nan, 0.2, 0.3, 5e-324, 0.4, 2.0**46, 0.5, 0.25]
    table = pa.table({"ts": np.arange(len(values)), "v": values})
    query = ps.Query(ps.Window(2, 1), None, {"sum": ps.sum("v")})
    got = same(query, [table])["sum"].to_pylist()
    assert got[0] == math.inf
    assert got[-3:] == [2.0**46 + 0.5, 0.75, 0.25]


KEYS = {
    "close together": np.arange(-50, 50),
    "far apart": np.arange(-50, 50) * 10**15,
    "first apart, then close": np.concatenate([[0, 10**6], np.arange(10**6)[:: 10**6 // 70]]),
    "growing downwards": np.arange(100)[::-1] * 100,
    "the ends of int64": np.array([-(2**63), 2**63 - 1, 0, -1, 1]),
    "unsigned": np.array([0, 2**64 - 1, 2**63, 5], dtype=np.uint64),
    "bytes": np.arange(-100, 100).astype(np.int8),
    "floats": np.array([0.0, -0.0, math.nan, -math.nan, math.inf, -math.inf, 1.5]),
    "booleans": np.array([True, False]),
    "strings": np.array(["", "a", "a\0", "a\0\0", "é", "zz" * 50, "b"]),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_become_dense_numbers(name):
    """Whatever the map from keys to numbers: array, hash table, from one to the other and back."""
    rng = np.random.default_rng(1)
    values = KEYS[name]
    inputs = []
    for i in range(3):
        keys = values if i == 0 else values[rng.integers(0, len(values), 400)]
        ts = np.sort(rng.integers(0, 100, len(keys)))
        inputs.append(pa.table({"ts": ts, "k": keys, "v": rng.integers(0, 9, len(keys))}))
    same(ps.Query(ps.Window(20, 5), "k", {"n": ps.count(), "v": ps.sum("v")}), inputs, cut=50)
    both = [t.append_column("l", t["v"]) for t in inputs]
    same(ps.Query(ps.Window(20, 5), ["l", "k"], {"n": ps.count()}), both, cut=50)


def test_nulls_among_the_keys_from_some_batch_on():
    table = pa.table({"ts": [1, 2, 3, 4, 5], "k": pa.array([7, 8, None, 7, None])})
    got = same(ps.Query(ps.Window(10), "k", {"n": ps.count()}), [table, table], cut=2)
    assert got["k"].to_pylist() == [7, 8, None]
    assert got["n"].to_pylist() == [4, 2, 4]


def test_many_keys_that_come_and_go():
    rng = np.random.default_rng(2)
    ts = np.sort(rng.integers(0, 50, 60_000))
    tables = [pa.table({"ts": ts, "k": ts // 3 * 1000 + rng.integers(0, 5000, len(ts))}) for _ in range(2)]
    same(ps.Query(ps.Window(4, 2), "k", {"n": ps.count(), "t": ps.max("ts")}), tables)


def test_a_window_that_never_ends_takes_no_room():
    """All tuples are in one slice of one input, which is far longer than max_pending."""
    schema = pa.schema([("ts", pa.int64())])
    with ps.Operator(ps.Query(ps.Window(10**6), None, {"n": ps.count()}), 2, schema, "sliced", max_pending=10) as op:
        op.heartbeat(1, 10**5)
        for ts in range(200):
            op.add(0, {"ts": [ts] * 10}, timeout=20)
        op.close(0)
        op.close(1)
        assert [row["n"] for b in op for row in b.to_pylist()] == [2000]


def test_memory_stays_flat(nothing_left):
    """Slabs go back to their input, and dropped slices leave nothing."""
    query = ps.Query(ps.Window(5, 1), "k", {"n": ps.count(), "s": ps.last("s"), "f": ps.sum("f")})
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string()), ("f", pa.float64())])
    alive = []
    with ps.Operator(query, 2, schema, design="sliced") as op:
        for ts in range(400):
            for i in range(2):
                op.add(i, {"ts": [ts] * 3, "k": [1, 2, ts % 7], "s": ["x" * 100] * 3, "f": [1e300, -1e300, 1.0]})
            while op.stats()["pending"] > 6:
                op.poll()
            alive.append(_native.memory_live())
        assert max(alive[200:]) <= max(alive[50:200]) + 20
        assert op.stats()["windows_open"] <= 2 * 5 * 9
        op.end(discard=True)


def test_user_functions_are_refused_and_auto_knows():
    plain = ps.Query(ps.Window(5), None, {"n": ps.count(), "first": ps.first("v")})
    user = ps.Query(ps.Window(5), None, {"u": ps.udf(dict)})
    schema = pa.schema([("ts", pa.int64()), ("v", pa.int64())])
    with pytest.raises(ValueError, match=r"u = udf\(dict\) depends on the order of tuples, .*'runs' do"):
        ps.Operator(user, 1, schema, design="sliced")
    for query, design in ((plain, "sliced"), (user, "runs")):
        with ps.Operator(query, 1, schema) as op:
            assert op.design == design
