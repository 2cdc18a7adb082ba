"""Every design equals the oracle, to the bit, whatever the query, the batches and the timing."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import math
import random
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Run, canonical, runs, ways

import pystream as ps
from pystream import reference
from pystream.operator import CANNOT, DESIGNS

designs = pytest.mark.parametrize("design", DESIGNS)


@settings(max_examples=2 * settings().max_examples)
@given(run=runs())
def test_equals_the_oracle(run):
    case = run.case
    got = ps.aggregate(case.query, [case.batches(i) for i in range(len(case.rows))], **run.how)
    assert canonical(got.to_pylist()) == canonical(case.expected())
    assert got.column_names == case.query.columns


@settings(max_examples=max(settings().max_examples // 3, 10))
@given(run=runs(most=20))
def test_equals_the_oracle_with_twenty_inputs(run):
    case = run.case
    got = ps.aggregate(case.query, [case.batches(i) for i in range(len(case.rows))], **run.how)
    assert canonical(got.to_pylist()) == canonical(case.expected())


@settings(max_examples=3 * settings().max_examples)
@given(run=runs(), data=st.data())
def test_operator_equals_the_oracle_for_any_interleaving_of_calls(run, data):
    assert canonical(drive(run, data)) == canonical(run.case.expected())


def drive(run: Run, data: st.DataObject) -> list[dict]:
    """Feed batches, truthful heartbeats, polls, closes, and snapshots from which another design may go on."""
    case = run.case
    todo = {i: [("add", b) for b in case.batches(i)] + [("close", None)] for i in range(len(case.rows))}
    rows = []
    op = ps.Operator(case.query, len(case.rows), case.schema, **run.how)
    try:
        while todo:
            i = data.draw(st.sampled_from(sorted(todo)))
            what = data.draw(st.sampled_from(["go", "go", "go", "heartbeat", "poll", "snapshot"]))
            if what == "heartbeat":
                coming = [b.column("ts")[0].as_py() for kind, b in todo[i] if kind == "add" and b.num_rows]
                op.heartbeat(i, data.draw(st.integers(0, coming[0] if coming else 60)))
            elif what == "poll":
                rows += [row for batch in op.poll() for row in batch.to_pylist()]
            elif what == "snapshot":
                op = taken_over(op, data.draw(ways(run.unfit) | st.none()))
            else:
                kind, batch = todo[i].pop(0)
                if kind == "close":
                    op.close(i)
                    del todo[i]
                else:
                    op.add(i, batch)
        rows += [row for batch in op for row in batch.to_pylist()]
        assert op.poll() == []
        assert op.stats()["tuples_in"] == sum(map(len, case.rows))
        assert op.stats()["rows_out"] == len(rows)
    finally:
        op.end()
    return rows


def taken_over(op: ps.Operator, way: tuple[str, int] | None) -> ps.Operator:
    """Snapshot the operator, and go on with it (None) or with another one of this design and number of threads."""
    blob = op.snapshot()
    if way is None:
        return op
    op.end()
    return ps.Operator.restore(op.query, blob, design=way[0], threads=way[1])


LITTLE = pa.schema([("ts", pa.int64()), ("k", pa.int64())])


@pytest.mark.parametrize("seeds", [range(300), pytest.param(range(300, 20_300), marks=pytest.mark.deep)], ids=str)
def test_any_calls_with_little_room(seeds):
    """Back-pressure, heartbeats, closes, polls, statistics and snapshots in any order; every design, many times."""
    for seed in seeds:
        rng = random.Random(seed)
        query = ps.Query(ps.Window(rng.randint(1, 8), rng.randint(1, 8)), "k", {"n": ps.count()})
        inputs = [little_input(rng) for _ in range(rng.randint(1, 4))]
        assert little_room(rng, query, inputs) == reference.aggregate(query, inputs), seed


def little_input(rng: random.Random) -> list[dict]:
    steps = [rng.choice([0, 0, 1, 2, 5]) for _ in range(rng.randint(0, 6))]
    return [{"ts": ts, "k": rng.randint(0, 3)} for ts in itertools.accumulate(steps)]


def little_way(rng: random.Random) -> dict:
    return {"design": rng.choice(DESIGNS), "threads": rng.randint(1, 4), "max_pending": rng.choice([1, 3, 1000])}


def little_room(rng: random.Random, query: ps.Query, inputs: list[list[dict]]) -> list[dict]:
    op = ps.Operator(query, len(inputs), LITTLE, **little_way(rng))
    todo = {i: list(rows) for i, rows in enumerate(inputs)}
    got = []
    while todo:
        i, what = rng.choice(sorted(todo)), rng.random()
        if what < 0.25:
            op.heartbeat(i, rng.randint(0, todo[i][0]["ts"] if todo[i] else 40))
        elif what < 0.4:
            got += [row for batch in op.poll() for row in batch.to_pylist()]
        elif what < 0.45:
            blob = op.snapshot()
            op.end()
            op = ps.Operator.restore(query, blob, **little_way(rng))
        elif what < 0.5:
            assert op.stats()["pending"] >= 0
            str(op.explain_stall())
        elif todo[i]:
            with contextlib.suppress(ps.BackpressureError):
                n = rng.randint(1, len(todo[i]))
                op.add(i, pa.RecordBatch.from_pylist(todo[i][:n], schema=LITTLE), block=False)
                todo[i] = todo[i][n:]
        else:
            op.close(i)
            del todo[i]
    got += [row for batch in op for row in batch.to_pylist()]
    op.end()
    return got


def digest(table: pa.Table) -> str:
    sink = pa.BufferOutputStream()
    combined = table.combine_chunks()
    with pa.ipc.new_stream(sink, combined.schema) as writer:
        writer.write_table(combined, max_chunksize=1 << 30)
    return hashlib.sha256(sink.getvalue()).hexdigest()


def delayed(batches: list[pa.RecordBatch], rng: np.random.Generator):
    for batch in batches:
        if rng.random() < 0.1:
            time.sleep(rng.random() / 1000)  # a different timing, not a wait for anything
        yield batch


@designs
def test_same_bytes_over_twenty_runs_with_other_timings_and_batches(design):
    rng = np.random.default_rng(7)
    tables = []
    for _ in range(4):
        ts = np.sort(rng.integers(0, 300, 1500))
        tables.append(pa.table({"ts": ts, "meter": rng.integers(0, 40, 1500), "cons": rng.normal(0, 1e3, 1500)}))
    aggregates = {"n": ps.count(), "sum": ps.sum("cons"), "avg": ps.avg("cons")}
    if "first" not in CANNOT.get(design, ()):
        aggregates |= {"first": ps.first("cons"), "last": ps.last("cons")}
    query = ps.Query(ps.Window(30, 7), "meter", aggregates)
    digests = set()
    for run in range(20):
        timing = np.random.default_rng(run)
        inputs = [delayed(t.to_batches(max_chunksize=int(timing.integers(1, 400))), timing) for t in tables]
        digests.add(digest(ps.aggregate(query, inputs, design=design, threads=int(timing.integers(1, 4)))))
    assert len(digests) == 1


@designs
def test_float_sums_and_means_are_rounded_once(design):
    rng = np.random.default_rng(3)
    values = rng.normal(0, 1, 20_000) * 10.0 ** rng.integers(-12, 12, 20_000)
    ts, meter = np.sort(rng.integers(0, 1000, 20_000)), rng.integers(0, 9, 20_000)
    query = ps.Query(ps.Window(100), "meter", {"sum": ps.sum("v"), "avg": ps.avg("v")})
    inputs = [{"ts": ts[i::4], "meter": meter[i::4], "v": values[i::4]} for i in range(4)]
    result = ps.aggregate(query, inputs, design=design).to_pylist()
    assert len(result) == 90
    for row in result:
        group = values[(ts // 100 * 100 == row["ts"]) & (meter == row["meter"])].tolist()
        mean = sum(map(Fraction, group)) / len(group)
        assert (row["sum"], row["avg"]) == (math.fsum(group), float(mean))


@pytest.mark.usual_sizes  # it is about large pages; what a sanitizer keeps back would count too
def test_results_hold_little_more_than_they_need():
    """A column of some size is made in two megabytes at once; what it has left over must not stay with the result."""
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("there is no /proc")

    def held() -> int:
        (line,) = [text for text in status.read_text().splitlines() if text.startswith("VmData")]
        return int(line.split()[1]) << 10

    row = np.arange(40_000)
    query = ps.Query(ps.Window(1), "k", {"n": ps.count()})
    kept = [ps.aggregate(query, [{"ts": row * 0, "k": row}])]
    before = held()
    kept += [ps.aggregate(query, [{"ts": row * 0, "k": row}]) for _ in range(80)]
    assert held() - before < 3 * sum(table.nbytes for table in kept)


def test_large_results_share_no_memory():
    """Blocks of two megabytes and more are used again once nobody has them, and not before, whatever their size."""
    query = ps.Query(ps.Window(1), "k", {"n": ps.count(), "s": ps.sum("v"), "t": ps.last("t")})
    words = ["zero", "one", "two", "three", "four", "five", ""]

    def result(rows: int, factor: int) -> pa.Table:
        """Of one window if the factor is even, else of as many as there are rows."""
        row = np.arange(rows)
        ts, key = (row * 0, row) if factor % 2 == 0 else (row, row % 3)
        stream = {"ts": ts, "k": key, "v": row * factor, "t": pa.array(words).take(pa.array(row % 7))}
        return ps.aggregate(query, [pa.table(stream)])

    def check(table: pa.Table, rows: int, factor: int) -> None:
        row = np.arange(rows)
        assert np.array_equal(table["ts"], row * (factor % 2))
        assert np.array_equal(table["s"], row * factor)
        assert np.array_equal(table["n"], np.ones(rows))
        assert table["t"].combine_chunks().equals(pa.array(words).take(pa.array(row % 7)))

    kept = {1: result(300_000, 1), 3: result(700_000, 3)}
    check(kept[1], 300_000, 1)
    check(kept[3], 700_000, 3)
    del kept[1]
    rows = {2: 270_000, 3: 700_000, 5: 300_000, 7: 1_200_000}
    kept |= {factor: result(rows[factor], factor) for factor in rows if factor != 3}
    for factor, table in kept.items():
        check(table, rows[factor], factor)


@pytest.mark.parametrize("design", ["auto", "sliced", "runs"])
def test_inputs_that_share_a_thread_do_not_wait_for_each_other(design):
    """Some end early, begin late or are empty; some have no tuple where others have more than they may hold."""
    times = [
        np.arange(0, 90_000),
        np.full(30_000, 7),
        np.arange(80_000, 81_000),
        np.array([0, 89_999]),
        np.zeros(0, int),
    ]
    inputs = [pa.table({"ts": ts, "k": ts % 3, "v": ts * 0.25}) for ts in times]
    inputs[1] = inputs[1].to_batches(max_chunksize=999)[0]  # a batch; the others are tables, and one is
    inputs.append(inputs[0].slice(0, 50_000).to_batches(max_chunksize=7_000))  # a list, with a thread of its own
    query = ps.Query(ps.Window(1000, 500), "k", {"n": ps.count(), "s": ps.sum("v")})
    whole = ps.aggregate(query, inputs, design, max_pending=1_000)
    assert whole.equals(ps.aggregate(query, inputs, "mq"))


@pytest.mark.parametrize("design", ["sliced", "runs", "mq"])
def test_a_large_input_is_taken_in_pieces(design):
    """They end anywhere in its slices, and give the rows that batches of other sizes give; errors count all rows."""
    rows = 300_000
    ts, words = np.arange(rows) // 7, np.array(["a", "bb", "", "dddd"])
    table = pa.table({"ts": ts, "k": ts % 5, "v": ts * 0.5, "w": pa.array(words[ts % 4])})
    query = ps.Query(ps.Window(50, 20), "k", {"n": ps.count(), "s": ps.sum("v"), "w": ps.first("w")})
    inputs = [table.slice(3), table.slice(0, 200_000), table]
    whole = ps.aggregate(query, inputs, design, max_pending=10_001)
    cut = [t.to_batches(max_chunksize=997) for t in inputs]
    assert ps.aggregate(query, cut, design) == whole
    late = table.set_column(0, "ts", pa.array(np.where(np.arange(rows) == 200_123, 5, ts)))
    with pytest.raises(ps.DisorderError, match="input 1, row 200123: timestamp 5") as caught:
        ps.aggregate(query, [table, late], design)
    assert caught.value.row == 200_123
