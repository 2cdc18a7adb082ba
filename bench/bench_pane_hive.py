"""Throughput of the sliced design against the paper's MQ, a bare C loop and, where installed, DuckDB and Polars.

    python bench/bench_pane_hive.py [--tuples 4000000] [--rounds 7] [--inputs 4,20] [--json FILE]

What is measured: from Arrow tables in memory, one per input, to an Arrow table of all windows, on the paper's k-OI,
w-OI, W-OI and k-OS. Contestants take turns within a round, so that they meet the same load; a figure is the median of
the rounds, with the quartiles beside it, and only ratios of one run mean something. On a busy machine the processor
time per tuple, of all threads, is the steadier figure; it does not show that threads run side by side. Results are
compared first, to the bit between the designs, to 1e-9 with the others, whose sums of floats depend on the order.

    mq, sliced    ps.aggregate; mq on the first tenth of the tuples, because it is slow
    bare loop     bare_loop.c: one thread, input merged beforehand, keys as array indexes, plain double sums
    duckdb        panes by hand: group by (pane, key), then join every pane with its windows, group and sort
    polars        the same in its lazy form

What would make the numbers wrong: other work on the machine (see the quartiles); tuples much denser or sparser in time
than these, because with few tuples per window and key it is the rows put out that cost.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import os
import platform
import shutil
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

import pystream as ps
from pystream.queries import PAPER
from pystream.sample import METERS, smart_meters

if TYPE_CHECKING:
    from collections.abc import Callable

QUERIES = ("k-OI", "w-OI", "W-OI", "k-OS")
FUNCTIONS = {"count": 0, "avg": 1, "first": 2}
MQ_SHARE = 10


class BareJob(ctypes.Structure):
    """The arguments of bare_loop.c."""

    _fields_ = (
        ("function", ctypes.c_int),
        ("n", ctypes.c_int64),
        ("ts", ctypes.c_void_p),
        ("key", ctypes.c_void_p),
        ("value", ctypes.c_void_p),
        ("advance", ctypes.c_int64),
        ("panes", ctypes.c_int64),
        ("keys", ctypes.c_int64),
        ("out_ts", ctypes.c_void_p),
        ("out_key", ctypes.c_void_p),
        ("out_value", ctypes.c_void_p),
    )


def build_bare_loop(folder: str) -> ctypes.CDLL:
    cc = shutil.which("cc") or shutil.which("gcc") or "clang"
    library = Path(folder) / "bare_loop.so"
    source = Path(__file__).with_name("bare_loop.c")
    subprocess.run([cc, "-O3", "-std=c11", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)  # noqa: S603
    lib = ctypes.CDLL(str(library))
    lib.bare_loop.restype = ctypes.c_int64
    return lib


@dataclass
class Case:
    """One query on one set of inputs."""

    id: str
    inputs: list[pa.Table]

    @property
    def query(self) -> ps.Query:
        """The paper's query."""
        return PAPER[self.id].query

    @property
    def function(self) -> str:
        """Its function, which is also the name of the column."""
        return next(iter(self.query.aggregates))

    @property
    def window(self) -> tuple[int, int]:
        """Size and advance."""
        return self.query.window.ticks(None)

    def merged(self) -> tuple[Any, Any, Any]:
        """All tuples in the order (ts, input, position), as the bare loop wants them."""
        columns = [np.concatenate([t[name].to_numpy() for t in self.inputs]) for name in ("ts", "meter", "cons")]
        order = np.argsort(columns[0], kind="stable")
        return tuple(np.ascontiguousarray(c[order]) for c in columns)  # type: ignore[return-value]


def bare(lib: ctypes.CDLL, case: Case) -> Callable[[], pa.Table]:
    ts, key, value = case.merged()
    size, advance = case.window

    def run() -> pa.Table:
        rows = (int(ts[-1]) // advance + 1) * METERS
        out = [np.empty(rows, np.int64), np.empty(rows, np.int32), np.empty(rows, np.float64)]
        address = [a.ctypes.data for a in (ts, key, value, *out)]
        function = FUNCTIONS[case.function]
        job = BareJob(function, len(ts), *address[:3], advance, size // advance, METERS, *address[3:])
        n = lib.bare_loop(ctypes.byref(job))
        return pa.table({"ts": out[0][:n], "meter": out[1][:n], case.function: out[2][:n]})

    return run


SQL = """
with pane as (select ts // {advance} as pane, meter, {partial} from t group by all),
     part as (select (pane - back) * {advance} as ts, meter, pane.* exclude (pane, meter)
              from pane, range({panes}) as back(back) where pane >= back)
select ts, meter, {final} as {function} from part group by all order by ts, meter
"""
PARTIALS = {
    "count": ("count(*) as n", "sum(n)::bigint"),
    "avg": ("count(*) as n, sum(cons) as s", "sum(s) / sum(n)"),
    "first": ("min_by(cons, place) as v, min(place) as place", "min_by(v, place)"),
}


def places(case: Case) -> list[pa.Table]:
    """For first: what orders tuples, ts and then input and position, as one number."""
    out = []
    for i, t in enumerate(case.inputs):
        position = np.arange(t.num_rows)
        out.append(t.append_column("place", pa.array((t["ts"].to_numpy() << 40) + (i << 32) + position)))
    return out


def duckdb_panes(case: Case) -> Callable[[], pa.Table]:
    import duckdb  # noqa: PLC0415 - optional

    size, advance = case.window
    partial, final = PARTIALS[case.function]
    sql = SQL.format(advance=advance, panes=size // advance, partial=partial, final=final, function=case.function)
    t = pa.concat_tables(places(case) if case.function == "first" else case.inputs)

    def run() -> pa.Table:
        with duckdb.connect() as db:
            db.register("t", t)
            return db.execute(sql).to_arrow_table()

    return run


def polars_panes(case: Case) -> Callable[[], pa.Table]:
    import polars as pl  # noqa: PLC0415 - optional

    size, advance = case.window
    panes = size // advance
    t = pl.from_arrow(pa.concat_tables(places(case) if case.function == "first" else case.inputs))
    partial, final = {
        "count": ([pl.len().alias("n")], pl.col("n").sum()),
        "avg": ([pl.len().alias("n"), pl.col("cons").sum().alias("s")], pl.col("s").sum() / pl.col("n").sum()),
        "first": (
            [pl.col("cons").sort_by("place").first().alias("v"), pl.col("place").min()],
            pl.col("v").sort_by("place").first(),
        ),
    }[case.function]

    def run() -> pa.Table:
        pane = t.lazy().group_by(pane=pl.col("ts") // advance, meter=pl.col("meter")).agg(partial)
        first = pl.max_horizontal(pl.col("pane") - panes + 1, 0)
        part = pane.with_columns(window=pl.int_ranges(first, pl.col("pane") + 1)).explode("window")
        out = part.group_by(ts=pl.col("window") * advance, meter=pl.col("meter")).agg(final.alias(case.function))
        return out.sort("ts", "meter").collect().to_arrow()

    return run


def contestants(lib: ctypes.CDLL, case: Case) -> dict[str, tuple[Callable[[], pa.Table], int]]:
    """Name -> what to run and how many tuples that is."""
    tuples = sum(t.num_rows for t in case.inputs)
    tenth = [t.slice(0, t.num_rows // MQ_SHARE) for t in case.inputs]
    found: dict[str, tuple[Callable[[], pa.Table], int]] = {
        "sliced": (lambda: ps.aggregate(case.query, case.inputs, design="sliced"), tuples),
        "mq": (lambda: ps.aggregate(case.query, tenth, design="mq"), sum(t.num_rows for t in tenth)),
        "bare loop": (bare(lib, case), tuples),
    }
    for name, make in (("duckdb", duckdb_panes), ("polars", polars_panes)):
        try:
            found[name] = (make(case), tuples)
        except ImportError:
            print(f"{name} is not installed: left out")
    return found


def check(case: Case, runs: dict[str, tuple[Callable[[], pa.Table], int]]) -> dict[str, str]:
    """Whether the results are equal; a wrong one is said to be wrong."""
    tenth = [t.slice(0, t.num_rows // MQ_SHARE) for t in case.inputs]
    verdict = {"mq": "equal" if ps.aggregate(case.query, tenth, design="sliced").equals(runs["mq"][0]()) else "WRONG"}
    right = runs["sliced"][0]().combine_chunks()
    value = right[case.function].to_numpy()
    for name, (run, _) in runs.items():
        if name in ("mq", "sliced"):
            continue
        got = run().combine_chunks()
        same = got.num_rows == right.num_rows and all(
            np.array_equal(got[c].to_numpy(), right[c].to_numpy()) for c in ("ts", "meter")
        )
        same = same and np.allclose(got[case.function].to_numpy(), value, rtol=1e-9, atol=0)
        verdict[name] = "equal" if same else "WRONG"
    return verdict


Figures = dict[str, list[tuple[float, float]]]


def measure(runs: dict[str, tuple[Callable[[], pa.Table], int]], rounds: int) -> Figures:
    """Million tuples per second, and nanoseconds of all processors per tuple, by round."""
    figures: Figures = {name: [] for name in runs}
    for _ in range(rounds):
        for name, (run, tuples) in runs.items():
            begin, cpu = time.perf_counter(), time.process_time()
            run()
            end, cpu_end = time.perf_counter(), time.process_time()
            figures[name].append((tuples / (end - begin) / 1e6, (cpu_end - cpu) / tuples * 1e9))
    return figures


def report(case: Case, figures: Figures, verdict: dict[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {"query": case.id, "inputs": len(case.inputs)}
    for name, each in figures.items():
        rates, cpu = [r for r, _ in each], statistics.median(c for _, c in each)
        low, middle, high = statistics.quantiles(rates, n=4) if len(rates) > 1 else rates * 3
        ratio = statistics.median(ours / theirs for (ours, _), (theirs, _) in zip(figures["sliced"], each, strict=True))
        cpu_ratio = cpu / statistics.median(c for _, c in figures["sliced"])
        judged = verdict.get(name, "reference")
        result[name] = {"M_per_s": middle, "quartiles": [low, high], "cpu_ns": cpu, "result": judged}
        result[name] |= {"sliced_is": ratio, "sliced_is_by_cpu": cpu_ratio}
        print(
            f"{case.id:5} {len(case.inputs):3} {name:10} {middle:8.1f} M/s [{low:7.1f} {high:7.1f}]"
            f" {cpu:8.1f} cpu ns/tuple   sliced is {ratio:7.2f} x, by cpu {cpu_ratio:7.2f} x   {judged}",
            flush=True,
        )
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tuples", type=int, default=4_000_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--inputs", default="4,20")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    machine = {
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "pyarrow": pa.__version__,
    }
    results = []
    with tempfile.TemporaryDirectory() as folder:
        lib = build_bare_loop(folder)
        for inputs in map(int, arguments.inputs.split(",")):
            tables = smart_meters(inputs, arguments.tuples, seed=1)
            for id in arguments.queries.split(","):
                case = Case(id, tables)
                runs = contestants(lib, case)
                verdict = check(case, runs)
                results.append(report(case, measure(runs, arguments.rounds), verdict))
    if arguments.json:
        arguments.json.write_text(json.dumps({**machine, "load_after": os.getloadavg(), "results": results}, indent=1))


if __name__ == "__main__":
    main()
