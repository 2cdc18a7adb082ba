"""Throughput of the designs on the paper's k-OI (count per meter, window 30, advance 3), end to end.

    pytest bench/bench_operator.py --benchmark-only

Measures `ps.aggregate` from Arrow tables in memory to an Arrow table: input threads, merge, windows, output rows. The
data is the stand-in for the paper's EC set (data/sample.py). What would make the number wrong: other work on the
machine (two rounds of warm-up, then the median counts; see the spread beside it), and tuples that are much denser or
sparser in time than these, because a design that updates every window of every tuple also pays for every row put out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import pystream as ps
from pystream.data.sample import smart_meters
from pystream.operator import DESIGNS
from pystream.queries import PAPER

if TYPE_CHECKING:
    from pytest_benchmark.fixture import BenchmarkFixture

TUPLES = 400_000


@pytest.mark.parametrize("inputs", [1, 2, 5, 10, 20])
@pytest.mark.parametrize("design", DESIGNS)
def bench_k_oi(benchmark: BenchmarkFixture, design: str, inputs: int) -> None:
    streams = smart_meters(inputs, TUPLES, seed=1)
    query = PAPER["k-OI"].query
    benchmark.group = "k-OI, tuples per second"
    table = benchmark.pedantic(
        ps.aggregate, args=(query, streams), kwargs={"design": design}, rounds=7, warmup_rounds=2
    )
    tuples = sum(s.num_rows for s in streams)
    benchmark.extra_info["tuples_per_second"] = round(tuples / benchmark.stats.stats.median)
    benchmark.extra_info["rows_out"] = table.num_rows
