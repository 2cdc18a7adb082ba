"""What users of other systems reported about windows (OTHERS.md), and what we give: a test for each."""

from __future__ import annotations

import math
import random
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from others import PAGE, REPORTS, page
from threads import patience

import pystream as ps
from pystream.operator import designs_for

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.float64())])


def test_the_page_is_made_of_the_table():
    assert PAGE.read_text() == page(), "python tests/others.py writes it anew"


def test_every_report_has_a_test():
    files = (Path(__file__), Path(__file__).parent / "spark/test_spark_others.py")
    tests = {name for file in files for name in re.findall(r"^def test_(\w+_\d+)\(", file.read_text(), re.MULTILINE)}
    assert tests == set(REPORTS)


def rows(*tuples: tuple) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([dict(zip(SCHEMA.names, t, strict=True)) for t in tuples], schema=SCHEMA)


def come(op: ps.Operator, number: int) -> list[tuple]:
    """The rows, once there are so many."""
    got: list[tuple] = []
    for _ in patience():
        got += [tuple(row.values()) for batch in op.poll() for row in batch.to_pylist()]
        if len(got) >= number:
            break
    return got


def column(query: ps.Query, inputs: list, name: str, **options) -> list:
    return ps.aggregate(query, inputs, **options).column(name).to_pylist()


def sliding(values: list[float], size: int, function) -> list:
    """The results of all whole windows of `size` values, one value a tick, in every design that there is."""
    query = ps.Query(ps.Window(size, 1), None, {"out": function})
    table = {"ts": np.arange(size, size + len(values)), "v": np.array(values)}  # the first windows are not whole
    results = {design: column(query, [table], "out", design=design) for design in designs_for(query)}
    first = next(iter(results.values()))
    assert all(_bits(result) == _bits(first) for result in results.values())
    return first[size - 1 :][: len(values) - size + 1]


def _bits(values: list[float]) -> list[str]:
    return [float.hex(v) for v in values]


# ---- rows that are missing, values that change ----


def test_polars_27484():
    """The frame of the report: two windows a tuple, three groups."""
    frame = {"ts": [91, 91, 92, 92], "k": ["a", "b", "a", "c"], "v": [5, 10, 5, 20]}
    query = ps.Query(ps.Window(2, 1), "k", {"qty": ps.sum("v")})
    for design in designs_for(query):
        got = [tuple(row.values()) for row in ps.aggregate(query, [frame], design).to_pylist()]
        assert got == [
            (90, "a", 5),
            (90, "b", 10),
            (91, "a", 10),
            (91, "b", 10),
            (91, "c", 20),
            (92, "a", 5),
            (92, "c", 20),
        ]


@pytest.mark.usefixtures("many_switches")
def test_polars_24278():
    """Many equal timestamps, three inputs read by three threads, batches of any size: one result."""
    rng = random.Random(1)
    tables = [
        pa.table({"ts": [0] * 300, "k": [rng.randrange(40) for _ in range(300)], "v": list(range(300))})
        for _ in range(3)
    ]
    query = ps.Query(ps.Window(1), "k", {"first": ps.first("v"), "last": ps.last("v")})
    want = ps.aggregate(query, tables)
    for number in range(30):
        batches = [t.to_batches(max_chunksize=rng.choice([1, 7, 300])) for t in tables]
        design = designs_for(query)[number % len(designs_for(query))]
        assert ps.aggregate(query, [iter(b) for b in batches], design) == want


def test_polars_27231():
    query = ps.Query(ps.Window(2, 1), None, {"sum": ps.sum("values")}, ts="orderby")
    for design in designs_for(query):
        with pytest.raises(ps.DisorderError) as error:
            ps.aggregate(query, [{"orderby": [1, 2, 4, 2], "values": [1, 2, 3, 4]}], design)
        assert (error.value.input, error.value.row, error.value.ts, error.value.latest) == (0, 3, 2, 4)


def test_polars_21772():
    """A sliding window and a window on its own give the same, NaN or not."""
    values = [1.0, math.nan, 3.0, 2.0, math.nan, math.nan]
    assert str(sliding(values, 2, ps.min("v"))) == str([1.0, 3.0, 2.0, 2.0, math.nan])
    assert str(sliding(values, 2, ps.max("v"))) == str([math.nan, math.nan, 3.0, math.nan, math.nan])
    for function in (ps.min("v"), ps.max("v")):
        query = ps.Query(ps.Window(9), None, {"out": function})
        alone = [column(query, [{"ts": [0, 1], "v": values[i : i + 2]}], "out")[0] for i in range(5)]
        assert str(alone) == str(sliding(values, 2, function))


def test_polars_24755():
    """Amounts and their negatives in any order, over one to four inputs: exactly nothing is left."""
    rng = random.Random(2)
    amounts = [round(rng.uniform(-1e4, 1e4), 2) for _ in range(500)]
    amounts += [-a for a in amounts]
    query = ps.Query(ps.Window(1), None, {"sum": ps.sum("v")})
    for inputs in (1, 2, 4):
        rng.shuffle(amounts)
        tables = [{"ts": np.zeros(len(part), int), "v": np.array(part)} for part in np.array_split(amounts, inputs)]
        for design in designs_for(query):
            assert column(query, tables, "sum", design=design) == [0.0]


def test_duckdb_9731():
    """Open, high, low and close of five minutes, from a table in one batch or in many."""
    table = pa.table({"ts": [60 * (i // 3) for i in range(90)], "v": [100 + (i * 7919 % 97) / 10 for i in range(90)]})
    functions = {"open": ps.first("v"), "high": ps.max("v"), "low": ps.min("v"), "close": ps.last("v")}
    query = ps.Query(ps.Window(300), None, functions)
    values = table["v"].to_pylist()
    parts = [values[i : i + 15] for i in range(0, 90, 15)]
    want = [{"ts": 300 * i, "open": p[0], "high": max(p), "low": min(p), "close": p[-1]} for i, p in enumerate(parts)]
    for size in (1, 4, 90):
        for design in designs_for(query):
            assert ps.aggregate(query, [iter(table.to_batches(max_chunksize=size))], design).to_pylist() == want


def test_duckdb_4270():
    """Rows that `where=` leaves out are there or not, before, between and after the others, on any number of inputs."""
    rng = random.Random(3)
    chosen = [(i, "in", rng.uniform(0, 5000)) for i in range(300)]
    others = [(i, "out", rng.uniform(0, 1e9)) for i in range(300)]
    query = ps.Query(ps.Window(300), None, {"avg": ps.avg("v", pc.field("k") == "in")})
    want = column(query, [rows(*chosen)], "avg")
    assert want == [math.fsum(v for _, _, v in chosen) / 300]
    for inputs in (1, 3):
        mixed = [[] for _ in range(inputs)]
        for i, each in enumerate(sorted(chosen + others)):
            mixed[i % inputs].append(each)
        assert column(query, [rows(*part) for part in mixed], "avg") == want


# ---- windows that do not come ----

COUNT = ps.Query(ps.Window(10), "k", {"n": ps.count()})


@pytest.mark.usefixtures("nothing_left")
def test_ksql_9840():
    with ps.Operator(COUNT, 1, SCHEMA) as op:
        op.add(0, rows((1, "a", 0.0), (2, "a", 0.0)))
        assert op.poll() == []
        op.heartbeat(0, 10)  # no message: only the word that there will be none before 10
        assert come(op, 1) == [(0, "a", 2)]


@pytest.mark.usefixtures("nothing_left")
def test_flink_29037():
    with ps.Operator(COUNT, 2, SCHEMA) as op:
        op.add(0, rows((1, "a", 0.0)))
        op.close(0)
        op.close(1)  # idle from the beginning to the end
        assert [tuple(row.values()) for batch in op for row in batch.to_pylist()] == [(0, "a", 1)]


@pytest.mark.usefixtures("nothing_left")
def test_beam_39822():
    """Input 1 is idle while input 0 runs far ahead; what it sends then counts like all else."""
    with ps.Operator(COUNT, 2, SCHEMA) as op:
        op.add(1, rows((1, "b", 0.0)))
        for ts in range(0, 1000, 100):
            op.add(0, rows((ts, "a", 0.0)))
        stall = op.explain_stall()
        assert stall is not None
        assert stall.input == 1
        assert op.poll() == []
        op.add(1, rows((5, "b", 0.0), (500, "b", 0.0)))
        assert come(op, 6) == [(0, "a", 1), (0, "b", 2), *((ts, "a", 1) for ts in (100, 200, 300, 400))]


@pytest.mark.usefixtures("nothing_left")
def test_bytewax_138():
    with ps.Operator(COUNT, 1, SCHEMA) as op:
        op.add(0, rows((1, "a", 0.0), (2, "b", 0.0)))
        blob = op.snapshot()
    with ps.Operator.restore(COUNT, blob) as op:
        op.add(0, rows((12, "c", 0.0)))  # neither "a" nor "b"
        assert come(op, 2) == [(0, "a", 1), (0, "b", 1)]


def test_risingwave_2469():
    """20 every 15: some tuples are in two windows, some in one."""
    query = ps.Query(ps.Window(20, 15), None, {"n": ps.count()})
    for design in designs_for(query):
        got = ps.aggregate(query, [{"ts": np.arange(60)}], design).to_pylist()
        assert got == [{"ts": 0, "n": 20}, {"ts": 15, "n": 20}, {"ts": 30, "n": 20}, {"ts": 45, "n": 15}]


# ---- late rows ----


@pytest.mark.usefixtures("nothing_left")
def test_risingwave_23270():
    with ps.Operator(COUNT, 1, SCHEMA) as op:
        op.add(0, rows((25, "a", 0.0)))
        with pytest.raises(ps.DisorderError, match="input 0, row 1"):
            op.add(0, rows((26, "a", 0.0), (3, "late", 0.0)))
        op.add(0, rows((26, "a", 0.0)))
        op.close(0)
        assert [tuple(row.values()) for batch in op for row in batch.to_pylist()] == [(20, "a", 2)]


# ---- memory ----


@pytest.mark.usefixtures("nothing_left")
def test_flink_26321():
    """A day by a millisecond: a tuple is in 86 million windows."""
    day_ms = 86_400_000
    query = ps.Query(ps.Window(day_ms, 1), None, {"n": ps.count()})
    schema = pa.schema([("ts", pa.int64())])
    with ps.Operator(query, 1, schema, design="sliced") as op:
        op.add(0, {"ts": np.full(1000, 10 * day_ms)})  # so that no window is complete
        assert op.stats()["bytes_held"] < 64 << 20
        op.end(discard=True)
    refusing = ps.Query(ps.Window(2**62, 1), None, {"n": ps.count()})
    with ps.Operator(refusing, 1, schema, design="mq") as op, pytest.raises(ps.OverlapError):
        op.add(0, {"ts": [2**62]})


@pytest.mark.usefixtures("nothing_left")
def test_risingwave_13907():
    """Every key is new; each is in one window."""
    with ps.Operator(COUNT, 1, SCHEMA) as op:
        known = []
        for window in range(60):
            keys = [f"{window}/{i}" for i in range(1000)]
            op.add(0, {"ts": np.full(1000, 10 * window), "k": pa.array(keys), "v": np.zeros(1000)})
            if window:
                assert len(come(op, 1000)) == 1000
            known.append(op.stats()["keys"])
    assert max(known) <= 20_000  # of 60,000


# ---- numbers ----


def exact_mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def test_pandas_37113():
    """The largest doubles at the beginning; all windows after them, and those over them, are right."""
    values = [1.7e308] * 30 + [float(i % 50) for i in range(270)]
    got = sliding(values, 20, ps.avg("v"))
    assert got[:11] == [1.7e308] * 11
    assert all(map(math.isfinite, got))
    assert got[30:] == [exact_mean(values[i : i + 20]) for i in range(30, 281)]


def test_pandas_57549():
    values = [1.0, 2.0, math.inf, 3.0, 4.0, 5.0]
    assert sliding(values, 2, ps.sum("v")) == [3.0, math.inf, math.inf, 7.0, 9.0]
    assert sliding(values, 2, ps.avg("v")) == [1.5, math.inf, math.inf, 3.5, 4.5]


def test_pandas_61071():
    """The numbers of the report."""
    values = [-3.333333e-01, 0.0, 1e15, -4.874588e14, 6.103516e-05, 0.0, 1.1, 0.0, 0.0, -8.581237e14, 0.0, 1e15]
    values += [0.0, 0.0, 0.0, 0.0, 0.0, -5.96e-03, 0.0, 0.0]
    got = sliding(values, 8, ps.avg("v"))
    assert got[-1] == -0.000745
    assert got == [exact_mean(values[i : i + 8]) for i in range(13)]


def test_tidb_28489():
    assert sliding([1e308, 1e308], 2, ps.avg("v")) == [1e308]
    assert sliding([1e308, 1e308], 2, ps.sum("v")) == [math.inf]


def test_trino_30600():
    most = 2**63 - 1
    query = ps.Query(ps.Window(10), None, {"sum": ps.sum("v")})
    for design in designs_for(query):
        assert column(query, [{"ts": [1, 2, 3], "v": [most, 1, -1]}], "sum", design=design) == [most]
        with pytest.raises(ps.SumOverflowError):
            ps.aggregate(query, [{"ts": [1, 2], "v": [most, 1]}], design)
