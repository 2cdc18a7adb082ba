"""Run-Gate: without threads against a sorted list, and the runs design on what is particular to it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tools import run

import pystream as ps

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def driver(tmp_path_factory) -> Path:
    """tests/stress/run_gate_stress.c without a sanitizer, with assertions."""
    program = tmp_path_factory.mktemp("run_gate") / "run_gate_stress"
    sources = [ROOT / "tests/stress/run_gate_stress.c", ROOT / "csrc/run_gate.c", ROOT / "csrc/memory.c"]
    cc = shutil.which("gcc") or shutil.which("clang") or "cc"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", "-I", ROOT / "csrc", "-lpthread", "-o", program]
    run(cc, *sources, *flags)
    return program


@pytest.mark.parametrize("shape", ["1 1 300", "2 1 300", "3 2 300", "20 1 100", "7 3 100"])
def test_every_reader_gets_everything_in_order(driver, shape):
    assert run(driver, *shape.split(), "10", seconds=120).startswith("10 rounds")


class Order:
    """A user window whose result is the order of its tuples."""

    def __init__(self) -> None:
        self.seen = []

    def process_tuple(self, row):
        self.seen.append(row["id"])

    def produce_out_tuple(self):
        return ",".join(map(str, self.seen))


@pytest.mark.parametrize("gaps", [(0, 1), (1, 2), (5, 60), (0, 3)])
def test_user_functions_see_one_order_whatever_the_runs(gaps):
    """Ties within and across inputs, interleaved tuples, and long stretches of one input (galloping)."""
    rng = np.random.default_rng(gaps[1])
    inputs, expected = [], []
    for i in range(4):
        ts = np.cumsum(rng.integers(*gaps, 60))
        ids = [i * 1000 + p for p in range(60)]
        inputs.append(pa.table({"ts": ts, "id": ids}))
        expected += [(t, i, p, id) for p, (t, id) in enumerate(zip(ts.tolist(), ids, strict=True))]
    query = ps.Query(ps.Window(10**6), None, {"order": ps.udf(Order)})
    for cut in (1, 7, 60):
        got = ps.aggregate(query, [t.to_batches(max_chunksize=cut) for t in inputs], design="runs")
        assert got["order"].to_pylist() == [",".join(str(id) for *_, id in sorted(expected))]


def test_runs_that_only_promise():
    """Heartbeats between tuples, none of them a tuple, carry the output on."""
    query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    with ps.Operator(query, 2, pa.schema([("ts", pa.int64())]), design="runs") as op:
        op.add(0, {"ts": [1, 2, 3]})
        for ts in range(4, 12):
            op.heartbeat(0, ts)
        op.heartbeat(1, 10)
        while not (got := op.poll()):
            pass
        assert got[0].to_pylist() == [{"ts": 0, "n": 3}]
        op.close(0)
        op.close(1)
        assert list(op) == []
