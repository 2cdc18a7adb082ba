"""Timestamps, sizes and advances at the ends of int64, against the oracle. test_guarded.py runs this under limits."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import Collect, canonical

import pystream as ps
from pystream import reference
from pystream.operator import CANNOT, DESIGNS, designs_for
from pystream.partials import Combine, Fold

MAX = 2**63 - 1
SCHEMA = pa.schema([("ts", pa.int64()), ("id", pa.string()), ("k", pa.int64()), ("x", pa.float64())])
PLAIN = {"n": ps.count(), "mean": ps.avg("x"), "most": ps.max("x")}
PLACED = {**PLAIN, "first": ps.first("id"), "last": ps.last("x")}
ORDERED = {**PLACED, "order": ps.udf(Collect)}

#: Windows that a tuple may be in: the oracle visits each.
FEW = 6

ENDS = [0, 1, 2, 3, 7, 2**31, 2**53, *range(2**62 - 1, 2**62 + 2), *range(MAX - 3, MAX + 1)]
NUMBERS = st.one_of(st.sampled_from(ENDS), st.integers(0, MAX))


def windows_of(ts: int, size: int, advance: int) -> int:
    """How many windows cover the timestamp."""
    return ts // advance - (-1 if ts < size else (ts - size) // advance)


@dataclass
class Extreme:
    """A window, and the inputs' rows."""

    size: int
    advance: int
    rows: list[list[dict[str, Any]]]

    def query(self, aggregates: dict[str, Any]) -> ps.Query:
        return ps.Query(ps.Window(self.size, self.advance), "k", aggregates)

    def batch(self, input: int, begin: int = 0, end: int | None = None) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(self.rows[input][begin:end], schema=SCHEMA)

    def expected(self, query: ps.Query) -> list[dict[str, Any]]:
        return reference.aggregate(query, self.rows)


@st.composite
def extremes(draw: st.DrawFn) -> Extreme:
    size, advance = (draw(NUMBERS.filter(bool)) for _ in range(2))
    if draw(st.booleans()):  # of about the same size, so that windows overlap a little anywhere
        advance = min(MAX, max(1, size // draw(st.integers(1, FEW - 1)) + draw(st.integers(-1, 1))))
    beside = st.integers(-2, 2)
    edges = [k * advance + end for k in (0, 1, 2, MAX // advance) for end in (0, size)]
    times = st.one_of(NUMBERS, st.builds(lambda edge, by: edge + by, st.sampled_from(edges), beside))
    possible = times.filter(lambda ts: 0 <= ts <= MAX and windows_of(ts, size, advance) <= FEW)
    rows = []
    for i in range(draw(st.integers(1, 3))):
        stamps = sorted(draw(st.lists(possible, max_size=5)))
        values = st.sampled_from([1.0, 0.1, 1.7e308, 5e-324])
        rows.append(
            [
                {"ts": ts, "id": f"{i}.{p}", "k": draw(st.integers(0, 1)), "x": draw(values)}
                for p, ts in enumerate(stamps)
            ]
        )
    return Extreme(size, advance, rows)


def last(size: int, advance: int, *stamps: int) -> Extreme:
    return Extreme(size, advance, [[{"ts": ts, "id": "0", "k": 0, "x": 1.0} for ts in stamps]])


THE_LAST = [last(3, 1, MAX), last(MAX, MAX, 0, MAX - 1, MAX), last(1, 2**62, 0, 2**62, 2**62 + 1), last(MAX, 1, 4, 5)]


def examples(test: Any) -> Any:
    for one in THE_LAST:
        test = example(case=one, seed=1)(test)
    return test


def aggregates_for(design: str) -> dict[str, Any]:
    return ORDERED if design not in CANNOT else PLACED if design == "sliced" else PLAIN


def read(op: ps.Operator) -> list[dict[str, Any]]:
    return [row for batch in op for row in batch.to_pylist()]


def polled(op: ps.Operator) -> list[dict[str, Any]]:
    return [row for batch in op.poll() for row in batch.to_pylist()]


@pytest.mark.parametrize("design", DESIGNS)
@examples
@given(case=extremes(), seed=st.integers(0, 2**32))
def test_designs(design: str, case: Extreme, seed: int) -> None:
    """Fed in pieces, with heartbeats up to the last timestamp, snapshots on the way, and other designs after them."""
    rng, query = random.Random(seed), case.query(aggregates_for(design))
    left, out = dict.fromkeys(range(len(case.rows)), 0), []
    op = ps.Operator(query, len(case.rows), SCHEMA, design, threads=2 if design == "tuml-mc" else None)
    try:
        while left:
            i = rng.choice([*left])
            begin, rows = left[i], case.rows[i]
            end = left[i] = begin + rng.randint(1, 3)
            op.add(i, case.batch(i, begin, end))
            if rng.random() < 0.5:
                op.heartbeat(i, rows[end]["ts"] if end < len(rows) else MAX)
            if end >= len(rows):
                del left[i]
            if rng.random() < 0.3:
                out += polled(op)
                blob = op.snapshot()
                op.end()
                op = ps.Operator.restore(query, blob, rng.choice(designs_for(query)))
        expected = case.expected(query)
        if rng.random() < 0.5:  # nothing but a close can complete windows that end behind the last timestamp
            for i in range(len(case.rows)):
                op.heartbeat(i, MAX)
            complete = sum(row["ts"] + case.size <= MAX for row in expected)
            while len(out) < complete:
                out += polled(op)
        str(op.explain_stall())
        for i in range(len(case.rows)):
            op.close(i)
        assert canonical(out + read(op)) == canonical(expected)
    finally:
        op.end()


@pytest.mark.parametrize("design", ["mq", "sliced"])
def test_snapshot_behind_the_last_window(design: str) -> None:
    """No window starts behind 2**62, and all are out: the next start is beyond int64."""
    case = last(1, 2**62, 0, 2**62)
    query = case.query(PLAIN)
    with ps.Operator(query, 1, SCHEMA, "sliced") as op:
        op.add(0, case.batch(0))
        op.heartbeat(0, MAX)
        out: list[dict[str, Any]] = []
        while len(out) < 2:
            out += polled(op)
        blob = op.snapshot()
    with ps.Operator.restore(query, blob, design) as after:
        after.add(0, pa.RecordBatch.from_pylist([{"ts": MAX, "id": "0", "k": 0, "x": 1.0}], schema=SCHEMA))
        after.close(0)
        assert canonical(out + read(after)) == canonical(case.expected(query))


@examples
@given(case=extremes(), seed=st.integers(0, 2**32))
def test_partials(case: Extreme, seed: int) -> None:
    """Folded and combined: in pieces of time, with the state going through partials and back."""
    rng, query, out = random.Random(seed), case.query(PLACED), []
    schema = SCHEMA.append(pa.field("stream", pa.int64())).append(pa.field("position", pa.int64()))
    rows = [{**row, "stream": i, "position": p} for i, rows in enumerate(case.rows) for p, row in enumerate(rows)]
    whole, begin = Combine(query, schema, "stream", "position"), -1
    for until in [*sorted(rng.choices(ENDS + [row["ts"] for row in rows], k=3)), MAX + 1]:
        piece = [row for row in rows if begin <= row["ts"] < until]
        fold = Fold(query, schema, "stream", "position")
        whole.add([*fold.add(pa.RecordBatch.from_pylist(piece, schema=schema)), *fold.finish()])
        if until <= MAX:
            out += whole.advance(until)
        if rng.random() < 0.5:
            whole = Combine(query, schema, "stream", "position", start=whole.start, held=list(whole.held()))
        begin = until
    out += whole.finish()
    assert canonical([row for batch in out for row in batch.to_pylist()]) == canonical(case.expected(query))


@examples
@given(case=extremes(), seed=st.integers(0, 2**32))
def test_w_hive(case: Extreme, seed: int) -> None:
    rng, query, got = random.Random(seed), case.query({"n": ps.count()}), []
    with ps.WHive(query.window, ps.count(), len(case.rows)) as hive:
        for i, rows in enumerate(case.rows):
            for row in rows:
                hive.update_windows(row["ts"], row["k"], None, i)
            if rng.random() < 0.5:
                hive.heartbeat(i, MAX)
        for i in range(len(case.rows)):
            hive.close(i)
        while (winset := hive.get_next_winset()) is not None:
            got += [{"ts": winset[0], "k": k, "n": n} for k, n in winset[1].items()]
        assert hive.position() == MAX
    assert got == case.expected(query)


@examples
@given(case=extremes(), seed=st.integers(0, 2**32))
def test_t_gate(case: Extreme, seed: int) -> None:
    rng = random.Random(seed)
    gate = ps.TGate(len(case.rows))
    for i, rows in enumerate(case.rows):
        for row in rows:
            gate.insert_tuple(row["ts"], row["id"], i)
        if rng.random() < 0.5:
            gate.heartbeat(i, MAX)
    for i in range(len(case.rows)):
        gate.close(i)
    got = []
    while (next := gate.get_next_ready_tuple()) is not None:
        got.append(next)
    assert got == sorted((row["ts"], i, row["id"]) for i, rows in enumerate(case.rows) for row in rows)
