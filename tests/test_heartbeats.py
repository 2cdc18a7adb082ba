"""Heartbeats hold no memory, however many there are and whoever else is silent; and each does what it promises."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from threads import patience

import pystream as ps
from pystream import _native
from pystream._native import DESIGNS

QUERY = ps.Query(ps.Window(2), "k", {"n": ps.count()})
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
BEATS = 30_000


def rows(*pairs: tuple[int, int]) -> pa.RecordBatch:
    ts, k = zip(*pairs, strict=True)
    return pa.RecordBatch.from_pydict({"ts": list(ts), "k": list(k)}, schema=SCHEMA)


def taken(op: ps.Operator, n: int) -> list[tuple]:
    """So many rows."""
    got: list[tuple] = []
    for _ in patience():
        got += [tuple(row.values()) for batch in op.poll() for row in batch.to_pylist()]
        if len(got) >= n:
            return got
    raise AssertionError(got)


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("idle", [0, 1])
def test_a_storm_while_another_input_is_idle_holds_nothing(design, begun, idle, nothing_left):
    """The idle input has sent nothing, or something long ago. When it comes back, all promises hold."""
    busy = 1 - idle
    with ps.Operator(QUERY, 2, SCHEMA, design) as op:
        for i in (busy, idle) if begun else ():
            op.add(i, rows((0, i)))
        for ts in range(1, 500):
            op.heartbeat(busy, ts)
        before = _native.memory_live()
        for ts in range(500, BEATS):
            op.heartbeat(busy, ts)
        assert _native.memory_live() <= before + 10
        op.add(idle, rows((BEATS - 1, 7)))
        if begun:
            assert sorted(taken(op, 2)) == [(0, 0, 1), (0, 1, 1)]
        op.heartbeat(idle, BEATS + 2)
        op.heartbeat(busy, BEATS + 2)
        assert taken(op, 1) == [((BEATS - 1) // 2 * 2, 7, 1)]


@pytest.mark.parametrize("design", DESIGNS)
def test_a_storm_between_tuples_that_wait(design, nothing_left):
    """What was sent and promised ahead of a silent input comes out in its order, as far as that one lets it."""
    with ps.Operator(QUERY, 2, SCHEMA, design) as op:
        for ts in range(0, 1000, 10):
            op.add(0, rows((ts, 0)))
            for beat in range(ts + 1, ts + 10):
                op.heartbeat(0, beat)
        op.heartbeat(1, 502)
        assert taken(op, 51) == [(ts, 0, 1) for ts in range(0, 510, 10)]
        op.close(1)
        op.heartbeat(0, 1000)
        assert taken(op, 49) == [(ts, 0, 1) for ts in range(510, 1000, 10)]


@pytest.mark.parametrize("design", DESIGNS)
def test_a_storm_of_all_inputs_while_nobody_reads(design, nothing_left):
    """The output thread stands still, because its rows are not taken: promises pile up nowhere."""
    with ps.Operator(QUERY, 2, SCHEMA, design, max_pending=4) as op:
        ts = 0
        for _ in patience():  # until the sink is full and everything behind it too
            try:
                op.add(0, rows((ts, 0)), block=False)
                op.heartbeat(1, ts + 2)
                ts += 2
            except ps.BackpressureError:
                if op.stats()["rows_out"] >= 4:
                    break
        for beat in range(500):
            op.heartbeat(0, ts + beat)
            op.heartbeat(1, ts + 2 + beat)
        before = _native.memory_live()
        for beat in range(500, BEATS // 2):
            op.heartbeat(0, ts + beat)
            op.heartbeat(1, ts + 2 + beat)
        assert _native.memory_live() <= before + 10
        op.close(0)
        op.close(1)
        got = [row for batch in op for row in batch.to_pylist()]
        assert got == [{"ts": t, "k": 0, "n": 1} for t in range(0, ts, 2)]


@pytest.mark.parametrize("design", DESIGNS)
def test_any_mix_of_promises_is_kept(design, nothing_left):
    """After each call, exactly the windows are out that the least promise completes."""
    rng = np.random.default_rng(11)
    inputs = 3
    with ps.Operator(QUERY, inputs, SCHEMA, design) as op:
        latest, sent, out = [-1] * inputs, set(), []
        for _ in range(400):
            i = int(rng.integers(inputs))
            ts = max(latest[i], 0) + int(rng.integers(0, 7))
            if rng.random() < 0.4:
                op.add(i, rows((ts, i)))
                sent.add((ts // 2 * 2, i))
            else:
                op.heartbeat(i, ts)
            latest[i] = max(latest[i], ts)
            complete = sorted(w for w in sent if w[0] + 2 <= min(latest))
            out += taken(op, len(complete) - len(out)) if len(complete) > len(out) else []
            assert [row[:2] for row in out] == complete


@pytest.mark.parametrize("design", DESIGNS)
def test_an_input_that_owes_is_not_waited_for(design, nothing_left):
    """It came last, and has promised since to go beyond the window: it is the other one's edge that matters."""
    query = ps.Query(ps.Window(10), "k", {"n": ps.count()})
    with ps.Operator(query, 2, SCHEMA, design) as op:
        for base in range(0, 2000, 20):
            op.add(0, rows((base + 3, 0)))
            op.add(1, rows((base + 5, 1)))
            for _ in patience():  # until the output thread has seen both
                if op.stats()["pending"] == 1:
                    break
            op.heartbeat(1, base + 12)
            assert not any(op.poll() for _ in range(20))
            op.add(0, rows((base + 15, 2)))
            assert taken(op, 2) == [(base, 0, 1), (base, 1, 1)]
            op.heartbeat(1, base + 20)
            op.heartbeat(0, base + 20)
            assert taken(op, 1) == [(base + 10, 2, 1)]
