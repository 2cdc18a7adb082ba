"""T-Gate and W-Hive on their own, through Python.

    pytest bench/bench_structures.py --benchmark-only

Measures what a user of ps.TGate and ps.WHive pays: EC's tuples (data/sample.py) go in in batches, one input or thread
after the other, and everything comes out, in one Python thread. So it shows the cost of the structures and of the
border to Python, not how inputs run side by side: bench_t_gate.py and `pystream bench` do, in C. What would make the
number wrong: other work on the machine (the median counts, see the spread beside it); Python objects, which cost more
than either structure. `pytest bench` runs this and the other benchmarks of pytest-benchmark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pystream as ps
from pystream.data.sample import smart_meters

if TYPE_CHECKING:
    import pyarrow as pa
    from pytest_benchmark.fixture import BenchmarkFixture

TUPLES, BATCH = 100_000, 500


def batches(inputs: int) -> list[tuple[int, pa.Table]]:
    """Batches of all inputs in turn, each with its input's number."""
    streams = smart_meters(inputs, TUPLES, seed=1)
    ends = range(0, len(streams[0]), BATCH)
    return [(i, stream.slice(at, BATCH)) for at in ends for i, stream in enumerate(streams)]


@pytest.mark.parametrize("inputs", [1, 5, 20])
def bench_t_gate(benchmark: BenchmarkFixture, inputs: int) -> None:
    fed = [(i, b["ts"].to_numpy(), range(len(b))) for i, b in batches(inputs)]

    def merge() -> int:
        out = 0
        with ps.TGate(inputs) as gate:
            for i, ts, payloads in fed:
                gate.insert_tuples(ts, payloads, i)
                out += len(gate.get_ready_tuples(TUPLES))
            for i in range(inputs):
                gate.close(i)
            return out + len(gate.get_ready_tuples(TUPLES))

    benchmark.group = "T-Gate, tuples per second"
    assert benchmark.pedantic(merge, rounds=5, warmup_rounds=1) == TUPLES
    benchmark.extra_info["tuples_per_second"] = round(TUPLES / benchmark.stats.stats.median)


@pytest.mark.parametrize("threads", [1, 5, 20])
def bench_w_hive(benchmark: BenchmarkFixture, threads: int) -> None:
    fed = [(i, b["ts"].to_pylist(), b["meter"].to_pylist(), b["cons"].to_pylist()) for i, b in batches(threads)]

    def aggregate() -> int:
        windows = 0
        with ps.WHive(ps.Window(30, 3), ps.count(), threads) as hive:
            for i, ts, keys, values in fed:
                hive.update_windows_batch(ts, keys, values, i)
                windows += sum(1 for _ in iter(hive.get_next_winset, None))
            for i in range(threads):
                hive.close(i)
            return windows + sum(1 for _ in iter(hive.get_next_winset, None))

    benchmark.group = "W-Hive, window 30/3, tuples per second"
    windows = benchmark.pedantic(aggregate, rounds=5, warmup_rounds=1)
    assert windows > TUPLES // 243 // 3 - 5
    benchmark.extra_info["tuples_per_second"] = round(TUPLES / benchmark.stats.stats.median)
