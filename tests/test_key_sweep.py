"""Keys that no open slice needs any more give back their numbers and memory: the result stays, memory stays bounded."""

from __future__ import annotations

import operator
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import with_failing_memory
from strategies import bits
from streams import ALL, stream
from threads import patience, run_together

import pystream as ps
from pystream import _native

LEAST = 1024  # keys: fewer are not swept


def canonical(batches) -> list[tuple]:
    """Rows in which all NaN are equal."""
    rows = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    return [tuple(bits(value) for value in row) for row in rows]


def passing(rng: np.random.Generator, rows: int, span: int, back: float, nulls: float = 0.0) -> pa.Table:
    """Keys that live for a moment; some of them come back much later, when their numbers may be others'.

    Nulls come in the first quarter, so that their number, too, becomes another's.
    """
    table = stream(rng, rows, span, keys=1)
    ts = table["ts"].to_numpy()
    when = np.where(rng.random(rows) < back, rng.integers(0, span, rows), ts)
    keys = when * 10 + rng.integers(0, 10, rows)
    return table.set_column(1, "k", pa.array(keys, mask=(rng.random(rows) < nulls) & (ts < span // 4)))


SHAPES = {
    "close together": lambda k: k,
    "far apart": lambda k: pc.multiply(k, 10**12),
    "strings": lambda k: pc.binary_join_element_wise("session", pc.cast(k, pa.string()), "-"),
    "strings of all sizes": lambda k: pa.array(
        [None if v is None else f"{v}" + "x" * (v % 700 if v % 5 == 0 else v % 40) for v in k.to_pylist()]
    ),
    "strings with zero bytes": lambda k: pa.array([None if v is None else f"a\0{v}" for v in k.to_pylist()]),
}


def play(op: ps.Operator, inputs: list[pa.Table], rng: np.random.Generator, cut: int) -> tuple[list, int]:
    """Add all, the slowest input first, so that windows go out all the time; gives rows and the most keys known."""
    got, most, at = [], 0, [0] * len(inputs)
    ends = [t["ts"].to_numpy() for t in inputs]
    while any(a < len(e) for a, e in zip(at, ends, strict=True)):
        open_inputs = [i for i, e in enumerate(ends) if at[i] < len(e)]
        i = min(open_inputs, key=lambda i: ends[i][at[i]])
        n = int(rng.integers(1, cut))
        op.add(i, inputs[i].slice(at[i], n))
        at[i] += n
        if at[i] >= len(ends[i]):
            op.close(i)
        got += op.poll()
        most = max(most, op.stats()["keys"])
    return [*got, *op], most


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("nulls", [0.0, 0.05])
def test_the_result_is_that_of_mq(shape, nulls, nothing_left):
    rng = np.random.default_rng(3)
    inputs = [passing(rng, 3000, 1200, back=0.1, nulls=nulls).combine_chunks() for _ in range(3)]
    inputs = [t.set_column(1, "k", SHAPES[shape](t["k"].combine_chunks())) for t in inputs]
    functions = {n: a for n, a in ALL.items() if "strings" not in shape or a.by != "k"}  # `by` is no text
    query = ps.Query(ps.Window(12, 4), "k", functions)
    with ps.Operator(query, 3, inputs[0].schema, "sliced") as op:
        got, _ = play(op, inputs, rng, 100)
    assert canonical(got) == canonical(ps.aggregate(query, inputs, design="mq").to_batches())


@settings(max_examples=max(settings().max_examples // 6, 10))
@given(
    seed=st.integers(0, 2**32 - 1),
    size=st.integers(1, 20),
    advance=st.integers(3, 25),
    inputs=st.integers(1, 3),
    cut=st.sampled_from([20, 100, 400]),
    back=st.sampled_from([0.0, 0.05, 0.5]),
    columns=st.sampled_from(["k", ["s", "k"]]),
    save=st.sampled_from([0, 1, 3]),
)
def test_any_stream_gives_what_mq_gives(seed, size, advance, inputs, cut, back, columns, save):
    """Snapshots come in between, while sweeps are under way; inputs close when they have nothing more."""
    rng = np.random.default_rng(seed)
    tables = [passing(rng, 1200, 600, back, nulls=0.02).combine_chunks() for _ in range(inputs)]
    functions = {name: ALL[name] for name in ("n", "sum_i", "avg_f", "min_i", "first_i", "last_f", "max_s", "last_s")}
    query = ps.Query(ps.Window(size, advance), columns, functions)
    op, got = ps.Operator(query, inputs, tables[0].schema, "sliced"), []
    edges = [int(600 * (i + 1) / (save + 1)) for i in range(save)]
    at = [0] * inputs
    for edge in edges:
        stop = [int(np.searchsorted(t["ts"].to_numpy(), edge)) for t in tables]
        while any(map(operator.lt, at, stop)):
            i = int(rng.choice([i for i in range(inputs) if at[i] < stop[i]]))
            n = min(int(rng.integers(1, 4 * cut)), stop[i] - at[i])
            op.add(i, tables[i].slice(at[i], n))
            at[i] += n
            got += op.poll()
        blob = op.snapshot()
        if rng.random() < 0.3:
            op.end()
            op = ps.Operator.restore(query, blob, "sliced")
    with op:
        rest, _ = play(op, [t.slice(a) for t, a in zip(tables, at, strict=True)], rng, cut)
        assert canonical([*got, *rest]) == canonical(ps.aggregate(query, tables, design="mq").to_batches())


QUERY = ps.Query(ps.Window(2), "k", {"n": ps.count(), "f": ps.sum("f")})
INTEGER = pa.int64()
SCHEMA = pa.schema([("ts", INTEGER), ("k", INTEGER), ("f", pa.float64())])


def tick(ts: int, keys: int, kind: pa.DataType = INTEGER) -> pa.RecordBatch:
    """So many keys that were never there before."""
    numbers = np.arange(ts * keys, (ts + 1) * keys)
    names = [f"session {n:09d}" + "-" * (n % 400) for n in numbers] if kind == pa.string() else numbers
    columns = {"ts": np.full(keys, ts), "k": pa.array(names, kind), "f": np.ones(keys)}
    return pa.RecordBatch.from_pydict(columns)


def rows_come(op: ps.Operator, n: int) -> int:
    """Wait until so many rows have been put out."""
    taken = 0
    for _ in patience():
        taken += sum(batch.num_rows for batch in op.poll())
        if op.stats()["rows_out"] >= n:
            break
    return taken


@pytest.mark.usual_sizes
@pytest.mark.parametrize("kind", [INTEGER, pa.string()])
@pytest.mark.parametrize("inputs", [1, 3])
def test_memory_stays_bounded_when_every_key_is_new(kind, inputs, nothing_left):
    """Each key is in one window. What is known is a few times what a window needs, and allocations stay the same."""
    schema, known, alive = SCHEMA.set(1, pa.field("k", kind)), [], []
    with ps.Operator(QUERY, inputs, schema, "sliced") as op:
        for ts in range(300):
            for i in range(inputs):
                op.add(i, tick(ts, 400, kind))
            rows_come(op, ts // 2 * 2 * 400)
            known.append(op.stats()["keys"])
            alive.append(_native.memory_live())
    assert max(known) <= LEAST + 10 * 800  # of 120,000
    assert max(alive[150:]) <= max(alive[:150]) + 8  # 15 and more if no memory of keys were used again


def test_keys_that_the_window_needs_stay():
    with ps.Operator(QUERY, 1, SCHEMA, "sliced") as op:
        for ts in range(100):
            op.add(0, tick(ts, 3000).set_column(1, "k", pa.array(np.arange(3000) + ts % 2 * 3000)))
            rows_come(op, ts // 2 * 6000)
            assert op.stats()["keys"] == (3000 if ts == 0 else 6000)


def swept(op: ps.Operator, begin: int, end: int, others) -> list[int]:
    """Input 0 goes on alone with new keys: how many were known after each tick."""
    known = []
    for ts in range(begin, end):
        op.add(0, tick(ts, 400))
        others(ts)
        rows_come(op, ts // 2 * 2 * 400)
        known.append(op.stats()["keys"])
    return known


def test_an_input_that_is_ahead_and_silent_holds_no_sweep_up(nothing_left):
    """It has promised much and sends nothing: its turn is taken for it. One that has closed is not asked at all."""
    with ps.Operator(QUERY, 3, SCHEMA, "sliced") as op:
        op.heartbeat(1, 10**9)
        op.close(2)
        assert max(swept(op, 0, 100, lambda _: None)) < 100 * 400 / 3


def test_an_input_that_only_beats_keeps_up():
    with ps.Operator(QUERY, 2, SCHEMA, "sliced") as op:
        assert max(swept(op, 0, 100, lambda ts: op.heartbeat(1, ts))) < 100 * 400 / 3


def test_an_input_that_is_idle_holds_everything_up_until_it_comes_back(nothing_left):
    """What waits for it is needed. When it has come back, all goes as if nothing had been."""
    with ps.Operator(QUERY, 2, SCHEMA, "sliced") as op:
        for ts in range(60):
            op.add(0, tick(ts, 400))
        op.add(1, tick(0, 400))
        for ts in range(1, 60):
            op.add(1, tick(ts, 400))
        rows_come(op, 58 * 400)
        known = swept(op, 60, 300, lambda ts: op.add(1, tick(ts, 400)))
        assert max(known) < 3 * 60 * 400
        assert max(known[-60:]) < 60 * 400
        op.close(0)
        op.close(1)
        for _ in op:
            pass
        assert op.stats()["rows_out"] == 300 * 400


def test_a_snapshot_after_an_input_has_closed_and_keys_have_gone():
    """Tuples of the closed input are not ready and looked up once more, long after it knew their numbers."""
    inputs = [pa.table({"ts": np.arange(0, 4000), "k": np.arange(4000), "f": np.ones(4000)})]
    ahead = np.concatenate([np.arange(0, 40), np.arange(3000, 3040)])
    inputs.append(pa.table({"ts": ahead, "k": ahead * 7, "f": np.ones(80)}))
    expected = canonical(ps.aggregate(QUERY, inputs, design="mq").to_batches())
    op, got = ps.Operator(QUERY, 2, SCHEMA, "sliced"), []
    op.add(1, inputs[1])
    op.close(1)
    for begin in range(0, 4000, 50):
        op.add(0, inputs[0].slice(begin, 50))
        got += op.poll()
        if begin % 500 == 450:
            blob = op.snapshot()
            for restore in (False, begin % 1000 == 950):
                if restore:
                    op.end()
                    op = ps.Operator.restore(QUERY, blob, "sliced")
    with op:
        op.close(0)
        assert canonical([*got, *op]) == expected


def test_a_snapshot_in_which_much_waits_to_be_put_out():
    """The keys of windows behind the next one are in no slice that is held, and must stay until their turn comes."""
    op, ts = ps.Operator(QUERY, 1, SCHEMA, "sliced", max_pending=4000), 0
    for _ in patience():  # nobody reads: in the end some windows are out, and as many wait
        with suppress(ps.BackpressureError):
            op.add(0, tick(ts, 400), block=False)
            ts += 1
        stats = op.stats()
        if stats["rows_out"] >= 4000 and stats["pending"] == 4000:
            break
    blob = op.snapshot()
    op.end()
    with ps.Operator.restore(QUERY, blob, "sliced") as op:
        op.heartbeat(0, ts // 2 * 2)
        got = []
        for _ in patience():
            got += op.poll()
            if op.stats()["rows_out"] >= ts // 2 * 800:
                break
        op.close(0)
        got = canonical([*got, *op])
    assert got == [(n // 800 * 2, n, 1, bits(1.0)) for n in range(ts * 400)][-len(got) :]
    assert len(got) >= 4000


def fed_by_threads(op: ps.Operator, inputs: list[pa.Table], rows: int) -> list[pa.RecordBatch]:
    """Everything, each input in a thread of its own, so many rows at a time, while another thread reads."""
    got: list[pa.RecordBatch] = []

    def feed(i: int) -> None:
        for batch in inputs[i].to_batches(max_chunksize=rows):
            op.add(i, batch)
        op.close(i)

    run_together(*(lambda i=i: feed(i) for i in range(len(inputs))), lambda: got.extend(op))
    return got


def test_many_threads_and_ever_new_keys(many_switches, nothing_left):
    rng = np.random.default_rng(5)
    inputs = [passing(rng, 20_000, 5000, back=0.02) for _ in range(4)]
    query = ps.Query(ps.Window(6, 3), "k", {"n": ps.count(), "f": ps.sum("f"), "s": ps.first("s")})
    with ps.Operator(query, 4, inputs[0].schema, "sliced", max_pending=2000) as op:
        got = fed_by_threads(op, inputs, 100)
        assert op.stats()["keys"] < 25_000
    assert canonical(got) == canonical(ps.aggregate(query, inputs, design="mq").to_batches())


def rows_until_memory_ends(op: ps.Operator, ticks: int) -> int:
    """The rows that come out of so many ticks; without memory the operator ends, or, in a sweep, some keys stay."""
    with op:
        with suppress(ps.ClosedError):  # the reader gets the reason
            for ts in range(ticks):
                op.add(0, tick(ts, 400))
                rows_come(op, ts // 2 * 2 * 400)
            op.close(0)
        for _ in op:
            pass
        return op.stats()["rows_out"]


def test_memory_may_end_at_any_time(nothing_left):
    rows, _ = with_failing_memory(lambda: rows_until_memory_ends(ps.Operator(QUERY, 1, SCHEMA, "sliced"), 12))
    assert rows == 12 * 400
