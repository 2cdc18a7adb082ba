"""Every design forgets the keys that no open window and no pending tuple refers to, and no others."""

from __future__ import annotations

import math
import statistics

import numpy as np
import pyarrow as pa
import pytest
from memory import with_failing_memory
from test_key_sweep import (
    INTEGER,
    QUERY,
    SCHEMA,
    SHAPES,
    canonical,
    fed_by_threads,
    passing,
    play,
    rows_come,
    rows_until_memory_ends,
    swept,
    tick,
)

import pystream as ps
from pystream import _native, reference
from pystream._native import DESIGNS

ORDERED = ("mq", "mq-lf", "runs", "tuml-sc", "tuml-mc")
OTHERS = (*ORDERED, "wiml")  # but sliced, which has tests of its own
LEAST = 1024  # keys: fewer are not swept
THREADS = {"tuml-mc": 3}

assert set(OTHERS) == set(DESIGNS) - {"sliced"}


def operator(query: ps.Query, inputs: int, schema: pa.Schema, design: str, **options) -> ps.Operator:
    return ps.Operator(query, inputs, schema, design, threads=THREADS.get(design, 1), **options)


@pytest.mark.parametrize("design", OTHERS)
@pytest.mark.parametrize(("kind", "inputs"), [(INTEGER, 1), (pa.string(), 3)])
def test_memory_stays_bounded_when_every_key_is_new(design, kind, inputs, nothing_left):
    """Each key is in one window. What is known is a few times what a window needs, and allocations stay the same."""
    schema, known, alive = SCHEMA.set(1, pa.field("k", kind)), [], []
    with operator(QUERY, inputs, schema, design) as op:
        for ts in range(150):
            for i in range(inputs):
                op.add(i, tick(ts, 400, kind))
            rows_come(op, ts // 2 * 2 * 400)
            known.append(op.stats()["keys"])
            alive.append(_native.memory_live())
    assert max(known) <= LEAST + 12 * 800  # of 60,000
    assert statistics.median(alive[75:]) <= max(alive[:75]) + 40  # a worker that lags behind for a while holds more


@pytest.mark.parametrize("design", OTHERS)
def test_keys_of_tuples_in_no_window_go_as_well(design):
    """No window ever completes: what has passed between two of them is forgotten all the same."""
    query = ps.Query(ps.Window(1, 10**9), "k", {"n": ps.count()})
    known = []
    with operator(query, 1, SCHEMA, design) as op:
        for ts in range(1, 100):
            op.add(0, tick(ts, 400))
            while op.stats()["pending"] > 400:
                pass
            known.append(op.stats()["keys"])
    assert max(known) <= LEAST + 12 * 800  # of 39,600


def plain(tables: list[pa.Table]) -> list[list[dict]]:
    return [table.to_pylist() for table in tables]


def as_rows(query: ps.Query, tables: list[pa.Table]) -> list[tuple]:
    """What the oracle says."""
    rows = reference.aggregate(query, plain(tables))
    return [tuple("nan" if isinstance(v, float) and math.isnan(v) else v for v in row.values()) for row in rows]


FUNCTIONS = {"n": ps.count(), "sum_i": ps.sum("i"), "max_s": ps.max("s")}
IN_ORDER = FUNCTIONS | {"first_i": ps.first("i"), "last_s": ps.last("s")}


@pytest.mark.parametrize("design", OTHERS)
@pytest.mark.parametrize("shape", ["far apart", "strings of all sizes"])
def test_the_result_is_that_of_the_oracle(design, shape, nothing_left):
    """Keys come back when their memory is long another's; snapshots are taken while sweeps are under way."""
    rng = np.random.default_rng(3)
    inputs = [passing(rng, 2000, 800, back=0.1, nulls=0.05).combine_chunks() for _ in range(3)]
    inputs = [t.set_column(1, "k", SHAPES[shape](t["k"].combine_chunks())) for t in inputs]
    query = ps.Query(ps.Window(12, 4), "k", IN_ORDER if design in ORDERED else FUNCTIONS)
    expected = as_rows(query, inputs)
    with operator(query, 3, inputs[0].schema, design) as op:
        got, most = play(op, inputs, rng, 60)
    assert canonical(got) == expected
    assert most < 5000  # of 6,600: some have gone
    got, half = [], [int(np.searchsorted(t["ts"].to_numpy(), 400)) for t in inputs]
    op = operator(query, 3, inputs[0].schema, design)
    for i, table in enumerate(inputs):
        for at in range(0, half[i], 40):
            op.add(i, table.slice(at, min(40, half[i] - at)))
        got += op.poll()
    blob = op.snapshot()
    op.end()
    with ps.Operator.restore(query, blob, design) as op:
        got += play(op, [t.slice(h) for t, h in zip(inputs, half, strict=True)], rng, 60)[0]
    assert canonical(got) == expected


@pytest.mark.parametrize("design", OTHERS)
def test_silent_inputs_hold_no_sweep_up(design, nothing_left):
    """One has promised much and sends nothing, one is closed: their turn is taken for them."""
    with operator(QUERY, 3, SCHEMA, design) as op:
        op.add(1, tick(0, 400))
        op.heartbeat(1, 10**9)
        op.close(2)
        assert max(swept(op, 0, 100, lambda _: None)) < 100 * 400 / 3


@pytest.mark.parametrize("design", OTHERS)
def test_what_waits_for_an_idle_input_stays(design, nothing_left):
    """Its tuples are pending, with keys that nobody asks for again; then it comes back."""
    with operator(QUERY, 2, SCHEMA, design) as op:
        for ts in range(30):
            op.add(0, tick(ts, 400))
        for ts in range(30):
            op.add(1, tick(ts, 400))
        rows_come(op, 28 * 400)
        known = swept(op, 30, 130, lambda ts: op.add(1, tick(ts, 400)))
        assert max(known[-40:]) < 30 * 400
        op.close(0)
        op.close(1)
        for _ in op:
            pass
        assert op.stats()["rows_out"] == 130 * 400


@pytest.mark.parametrize("design", OTHERS)
def test_keys_that_windows_need_stay(design):
    """Each is asked for once and stays in a long window, while others come and go."""
    query = ps.Query(ps.Window(1000, 500), "k", {"n": ps.count()})
    ts = np.repeat(np.arange(2000), 4)
    table = pa.table({"ts": ts, "k": np.arange(len(ts)), "f": np.ones(len(ts))})
    with operator(query, 1, table.schema, design) as op:
        got = [b for at in range(0, len(ts), 100) for b in (op.add(0, table.slice(at, 100)), *op.poll())[1:]]
        op.close(0)
        rows = [row for b in [*got, *op] for row in b.to_pylist()]
    assert [(r["ts"], r["k"]) for r in rows] == sorted(
        (start, k) for k, t in enumerate(ts.tolist()) for start in range(0, 2000, 500) if start <= t < start + 1000
    )


class Keys:
    """A user's object that remembers what it was given."""

    def __init__(self) -> None:
        self.rows: list[tuple] = []

    def process_tuple(self, row) -> None:
        self.rows.append((row["ts"], row["k"]))

    def produce_out_tuple(self) -> str:
        return repr(self.rows)


@pytest.mark.parametrize("design", ORDERED)
def test_user_objects(design, nothing_left):
    query = ps.Query(ps.Window(4), "k", {"u": ps.udf(Keys, pa.string())})
    with operator(query, 1, SCHEMA, design) as op:
        got = []
        for ts in range(40):
            op.add(0, tick(ts, 100))
            got += op.poll()
        op.close(0)
        rows = [row for b in [*got, *op] for row in b.to_pylist()]
    assert [r["u"] for r in rows] == [repr([(k // 100, k)]) for k in range(4000)]


@pytest.mark.parametrize("design", OTHERS)
def test_many_threads_and_ever_new_keys(design, many_switches, nothing_left):
    rng = np.random.default_rng(5)
    inputs = [passing(rng, 4000, 1500, back=0.02) for _ in range(3)]
    query = ps.Query(ps.Window(6, 3), "k", {"n": ps.count(), "f": ps.sum("f")})
    with operator(query, 3, inputs[0].schema, design, max_pending=500) as op:
        got = fed_by_threads(op, inputs, 50)
        assert op.stats()["keys"] < 8000  # of 10,000
    assert canonical(got) == canonical(ps.aggregate(query, inputs, design="sliced").to_batches())


@pytest.mark.parametrize("design", ["mq", "wiml"])
def test_memory_may_end_at_any_time(design, nothing_left):
    rows, _ = with_failing_memory(lambda: rows_until_memory_ends(operator(QUERY, 1, SCHEMA, design), 8))
    assert rows == 8 * 400


# ---- ps.WHive ----


def test_a_hive_forgets_keys_that_are_in_no_winset():
    hive, most = ps.WHive(ps.Window(2), ps.sum("v"), threads=2), 0
    for ts in range(200):
        names = [f"session {n}" for n in range(ts * 100, ts * 100 + 100)]
        for thread in range(2):
            hive.update_windows_batch([ts] * 100, names, [thread + 1] * 100, thread)
        for start, winset in iter(hive.get_next_winset, None):
            assert winset == {f"session {n}": 3 for n in range(start * 100, start * 100 + 200)}
        most = max(most, len(hive._numbers), len(hive._keys))
    assert most <= 4 * LEAST  # of 20,000


def test_a_hive_keeps_the_keys_that_come_back():
    """Keys that are in a winset to come stay, however long ago they were given."""
    rng = np.random.default_rng(1)
    hive, got, expected = ps.WHive(ps.Window(30, 10), ps.count(), threads=2), [], {}
    for ts in range(300):
        keys = rng.integers(ts * 30, ts * 30 + 60, 40).tolist() + rng.integers(0, ts * 30 + 1, 4).tolist()
        for n in range(max(0, ts // 10 - 2), ts // 10 + 1):
            for key in keys:
                counts = expected.setdefault(n * 10, {})
                counts[key] = counts.get(key, 0) + 1
        hive.update_windows_batch([ts] * len(keys), keys, [1] * len(keys), ts % 2)
        hive.heartbeat(1 - ts % 2, ts)
        got += iter(hive.get_next_winset, None)
    hive.close(0)
    hive.close(1)
    got += iter(hive.get_next_winset, None)
    assert got == sorted(expected.items())
