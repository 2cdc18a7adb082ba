"""Partial aggregates against a bare loop: folding rows, and combining partials into windows.

    pytest bench/bench_partials.py --benchmark-only [--benchmark-timer=time.thread_time]

Data: the stand-in for the paper's EC set (data/sample.py), one stream of it, about three rows per slice and key.
Queries: the paper's k-OI (count), w-OI (avg, 10 windows a tuple) and k-OS (first).

    bare fold   bare_fold.c: sorted rows to partials in plain arrays, keys that are array indexes, plain double sums
    fold        sorted rows to partials, not yet as Arrow columns; the same rows nearly sorted (each up to 2,000 places
                from its own) and in random order
    export      partials to Arrow columns
    combine     partials to windows as Arrow columns

Fold and export together do what the bare loop does. What limits the fold of sorted rows is memory: a new entry
per slice and key, into memory that was not touched before; in random order it is the two cache misses of the hash table
and the entry. What would make the numbers wrong: other work on the machine (the second timer counts processor time
alone, which is steadier then); only ratios within one run mean something.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from pystream.data.sample import METERS, smart_meters
from pystream.partials import Combine, Fold
from pystream.queries import PAPER

if TYPE_CHECKING:
    from collections.abc import Callable

    from pytest_benchmark.fixture import BenchmarkFixture

TUPLES = 1_000_000
QUERIES = ("k-OI", "w-OI", "k-OS")
FUNCTIONS = {"count": 0, "avg": 1, "first": 2}
ORDERS = ("sorted", "nearly sorted", "random")


@pytest.fixture(scope="module")
def rows() -> pa.RecordBatch:
    table = smart_meters(1, TUPLES, seed=1)[0]
    return table.append_column("position", pa.array(np.arange(TUPLES))).combine_chunks().to_batches()[0]


@pytest.fixture(scope="module")
def bare_fold(tmp_path_factory: pytest.TempPathFactory) -> Any:
    cc = shutil.which("cc") or shutil.which("gcc") or "clang"
    library, source = tmp_path_factory.mktemp("bare") / "bare_fold.so", Path(__file__).with_name("bare_fold.c")
    subprocess.run([cc, "-O3", "-std=c11", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)  # noqa: S603
    function = ctypes.CDLL(str(library)).bare_fold
    function.restype = ctypes.c_int64
    return function


class BareRows(ctypes.Structure):
    """The arguments of bare_fold.c."""

    _fields_ = (
        ("function", ctypes.c_int),
        ("n", ctypes.c_int64),
        ("ts", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("advance", ctypes.c_int64),
        ("keys", ctypes.c_int64),
        ("out_slice", ctypes.c_void_p),
        ("out_key", ctypes.c_void_p),
        ("out_rows", ctypes.c_void_p),
        ("out_value", ctypes.c_void_p),
    )


def in_order(rows: pa.RecordBatch, order: str) -> pa.RecordBatch:
    rng = np.random.default_rng(1)
    places = {"sorted": np.arange(TUPLES), "nearly sorted": np.arange(TUPLES) + rng.integers(0, 2000, TUPLES)}
    return rows.take(pa.array(np.argsort(places.get(order, rng.random(TUPLES)), kind="stable")))


def measure(benchmark: BenchmarkFixture, group: str, run: Callable[..., Any], setup: Callable[[], Any]) -> Any:
    benchmark.group = group
    result = benchmark.pedantic(run, setup=lambda: ((setup(),), {}), rounds=7, warmup_rounds=1)
    benchmark.extra_info["million_tuples_per_second"] = round(TUPLES / benchmark.stats.stats.median / 1e6, 1)
    return result


@pytest.mark.parametrize("id", QUERIES)
def bench_bare_fold(benchmark: BenchmarkFixture, rows: pa.RecordBatch, bare_fold: Any, id: str) -> None:
    query = PAPER[id].query
    advance = query.window.ticks(None)[1]
    columns = [rows.column(name).to_numpy() for name in ("ts", "meter", "cons")]
    most = (int(columns[0][-1]) // advance + 1) * METERS
    out = [np.empty(most, type) for type in (np.int64, np.int32, np.int64, np.float64)]
    address = [a.ctypes.data for a in (*columns, *out)]
    function = FUNCTIONS[next(iter(query.aggregates))]
    job = BareRows(function, TUPLES, *address[:3], advance, METERS, *address[3:])
    partials = measure(benchmark, id, bare_fold, lambda: ctypes.byref(job))
    assert out[2][:partials].sum() == TUPLES


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("id", QUERIES)
def bench_fold(benchmark: BenchmarkFixture, rows: pa.RecordBatch, id: str, order: str) -> None:
    ordered = in_order(rows, order)
    measure(benchmark, id, lambda f: f.add(ordered), lambda: Fold(PAPER[id].query, rows.schema, position="position"))


@pytest.mark.parametrize("id", QUERIES)
def bench_export(benchmark: BenchmarkFixture, rows: pa.RecordBatch, id: str) -> None:
    def full() -> Fold:
        fold = Fold(PAPER[id].query, rows.schema, position="position")
        fold.add(rows)
        return fold

    partials = measure(benchmark, id, lambda fold: list(fold.finish()), full)
    benchmark.extra_info["partials"] = sum(p.num_rows for p in partials)


@pytest.mark.parametrize("id", QUERIES)
def bench_combine(benchmark: BenchmarkFixture, rows: pa.RecordBatch, id: str) -> None:
    fold = Fold(PAPER[id].query, rows.schema, position="position")
    partials = [*fold.add(rows), *fold.finish()]

    def run(combine: Combine) -> int:
        combine.add(partials)
        return sum(windows.num_rows for windows in combine.finish())

    rows_out = measure(benchmark, id, run, lambda: Combine(PAPER[id].query, rows.schema))
    benchmark.extra_info["rows_out"] = rows_out
