"""pystream on Spark against Spark's own `window()`, on the same files, in one session.

    python bench/bench_spark.py [--rows 10000000] [--rounds 5] [--queries k-OI,W-OI,k-OS] [--data FOLDER] [--json FILE]
    python bench/bench_spark.py --streaming [--files 4]                  # the same for streaming DataFrames
    python bench/bench_spark.py --sizes 1000000,10000000,100000000       # how the time grows with the rows
    python bench/bench_spark.py --keys 1000000 --window 3600,900 [--streaming]     # many keys, in random order

What is measured: from parquet files (generated once, 4 streams, 64 Ki rows a row group) to all rows of the result,
which Spark takes in and throws away ("noop"). Contestants warm up, each for the same time (--warmup), and then take
turns within a round, so that they meet the same load; a figure is the median of the rounds with the quartiles beside
it, and only ratios of one run mean something. Beside it stands the processor time of Java and all Python workers, which
other work on the machine disturbs less. Results are compared first, row by row: equal for count and first, to 1e-9 for
avg, because Spark adds floats in any order.

    window()          Spark: group by window("30 seconds", "3 seconds") and key; first is min_by over
                      struct(ts, stream, position). Windows before time 0, which only Spark has, are dropped
    panes             Spark, by hand: group by (pane, key), explode each pane into its windows, group again
    aggregate         pystream.spark.aggregate over the DataFrame of the files
    aggregate_files   pystream.spark.aggregate_files over the files
    ... unsorted      the same over files with the same rows in random order, so that no task has a range of time

With --streaming the files come some at a time (--files), as a query with `availableNow` takes them, each run with a new
checkpoint, with as many partitions as there are cores. States of queries that have ended are let go before each run.
Nobody gives the last windows, so results are compared as far as they go.

    window()          Spark, with a watermark of 0 seconds, in append mode, with its default state store
    aggregate         pystream.spark.aggregate over the streaming DataFrame of the files
    new_files         pystream.spark.aggregate_new_files over the folder
    no rows           Spark, with a filter that lets no row of the files through: what micro-batches cost anyone

Beside the time of a streaming query stands the size of what it left in the folder `state` of its checkpoint: what all
micro-batches wrote there and Spark has not removed.

With --keys the meters of all rows are random numbers below that, and --window gives size and advance in seconds: with
the paper's 30 seconds a million keys would come once each to a window, and folding would have nothing to do.

What would make the numbers wrong: other work on the machine (see the quartiles); data that are much denser in time than
these (--span), where fewer rows come out and there is less for everyone to do but to read.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
from pyspark.sql import functions as f

import pystream as ps
from pystream.queries import PAPER
from pystream.spark import aggregate, aggregate_files, aggregate_new_files, generate, session
from pystream.spark.data.generate import ROW_GROUP_ROWS
from pystream.whole_file import write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import Column, DataFrame, SparkSession

QUERIES = ("k-OI", "W-OI", "k-OS")
BASE = "window()"
UNSORTED = "... unsorted"
NO_ROWS = "no rows"
NEW_FILES = "new_files"

#: How many times as fast as window() is aimed at.
GOALS = {
    "k-OI": {"aggregate": 4, "aggregate_files": 20},
    "W-OI": {"aggregate": 6, "aggregate_files": 40},
    "k-OS": {"aggregate": 15, "aggregate_files": 100},
}
GOALS_STREAMING = {"aggregate": 5, NEW_FILES: 5}
GOALS_MANY_KEYS = {"aggregate": 3, "aggregate_files": 3, NEW_FILES: 3}

#: Everyone warms up for so long, because Java compiles what has run for long: after a round each, a job of 0.4 s would
#: still be interpreted in good part, and one of 14 s would not.
WARMUP_S = 40.0

#: Processor time, as the kernel counts it.
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Case:
    """One query on one folder of files."""

    spark: SparkSession
    id: str
    path: str
    unsorted: str = ""  # the folder with the rows in random order
    files: int = 0  # to a micro-batch; 0: not streaming
    size: tuple[int, ...] | None = None  # of windows, and their advance; None: those of the paper

    @property
    def query(self) -> ps.Query:
        """The query itself."""
        query = PAPER[self.id].query
        return replace(query, window=ps.Window(*self.size)) if self.size else query

    @property
    def function(self) -> str:
        """Its function, which is also the name of the column."""
        return next(iter(self.query.aggregates))

    @property
    def window(self) -> tuple[int, int]:
        """Size and advance in seconds."""
        return self.query.window.ticks(None)

    @property
    def rows(self) -> DataFrame:
        """The files as Spark reads them."""
        rows = self.spark.read.parquet(self.path)
        if not self.files:
            return rows
        return self.spark.readStream.schema(rows.schema).option("maxFilesPerTrigger", self.files).parquet(self.path)

    def sparks_window(self) -> DataFrame:
        """Spark's own."""
        size, advance = self.window
        window = f.window("at", f"{size} seconds", f"{advance} seconds")
        functions: dict[str, Column] = {
            "count": f.count("*"),
            "avg": f.avg("cons"),
            "first": f.min_by("cons", f.struct("ts", "stream", "position")),
        }
        rows = self.rows.withColumn("at", f.timestamp_seconds("ts"))
        rows = rows.withWatermark("at", "0 seconds") if self.files else rows
        grouped = rows.groupBy(window.alias("w"), "meter").agg(functions[self.function].alias(self.function))
        return grouped.select(f.unix_seconds("w.start").alias("ts"), "meter", self.function).where("ts >= 0")

    def sparks_panes(self) -> DataFrame:
        """The best that can be said to Spark by hand: a row is counted once, its pane as often as there are windows."""
        size, advance = self.window
        place = f.struct("ts", "stream", "position")
        partial: dict[str, list[Column]] = {
            "count": [f.count("*").alias("n")],
            "avg": [f.count("*").alias("n"), f.sum("cons").alias("s")],
            "first": [f.min_by("cons", place).alias("v"), f.min(place).alias("place")],
        }
        final = {"count": f.sum("n"), "avg": f.sum("s") / f.sum("n"), "first": f.min_by("v", "place")}
        panes = self.rows.groupBy(f.expr(f"ts div {advance}").alias("pane"), "meter").agg(*partial[self.function])
        first = f.greatest(f.col("pane") - (size // advance - 1), f.lit(0))
        spread = panes.withColumn("w", f.explode(f.sequence(first, f.col("pane"))))
        grouped = spread.groupBy("w", "meter").agg(final[self.function].alias(self.function))
        return grouped.select((f.col("w") * advance).alias("ts"), "meter", self.function)

    def goal(self, name: str) -> int | None:
        """How many times as fast as window() a contestant is to be."""
        few_keys = GOALS_STREAMING if self.files else GOALS.get(self.id, {})
        return (GOALS_MANY_KEYS if self.size else few_keys).get(name)

    def contestants(self) -> dict[str, Callable[[], DataFrame]]:
        """Name -> what makes the result."""
        query = self.query
        made: dict[str, Callable[[], DataFrame]] = {
            BASE: self.sparks_window,
            "aggregate": lambda: aggregate(self.rows, query, position="position"),
        }
        if self.files:
            made[NEW_FILES] = lambda: aggregate_new_files(self.spark, query, self.path, maxFilesPerTrigger=self.files)
            return made | {NO_ROWS: lambda: self.rows.where("ts < 0")}
        made["panes"] = self.sparks_panes
        made["aggregate_files"] = lambda: aggregate_files(self.spark, query, self.path)
        if self.unsorted:
            made[UNSORTED] = lambda: aggregate_files(self.spark, query, self.unsorted)
        return made


def check(case: Case) -> dict[str, str]:
    """Whether the results are equal; a wrong one is said to be wrong."""
    right = sorted_table(replace(case, files=0).sparks_window())
    return {NO_ROWS: "", BASE: "equal"} | {
        name: "equal" if same(right, sorted_table(make()), case.function, streaming=bool(case.files)) else "WRONG"
        for name, make in case.contestants().items()
        if name != NO_ROWS and (case.files or name != BASE)
    }


def sorted_table(frame: DataFrame) -> pa.Table:
    with tempfile.TemporaryDirectory() as folder:
        if frame.isStreaming:
            stream(frame, "parquet", path=f"{folder}/out")
        else:
            frame.write.parquet(f"{folder}/out")
        files = sorted(Path(folder, "out").glob("*.parquet"))
        rows = pa.concat_tables([pq.read_table(file) for file in files])
        return rows.sort_by([("ts", "ascending"), ("meter", "ascending")]).combine_chunks()


def stream(frame: DataFrame, format: str, **options: str) -> int:
    """Run a streaming DataFrame until its files are used up; gives the bytes of its state."""
    with tempfile.TemporaryDirectory() as checkpoint:
        writer = frame.writeStream.format(format).options(checkpointLocation=checkpoint, **options)
        writer.trigger(availableNow=True).start().awaitTermination()
        return sum(file.stat().st_size for file in Path(checkpoint, "state").rglob("*") if file.is_file())


def same(right: pa.Table, got: pa.Table, function: str, *, streaming: bool) -> bool:
    right = right.slice(0, got.num_rows) if streaming else right
    if got.num_rows != right.num_rows or not got.num_rows:
        return False
    keys = all(np.array_equal(got[c].to_numpy(), right[c].to_numpy()) for c in ("ts", "meter"))
    ours, theirs = got[function].to_numpy(), right[function].to_numpy()
    exact = np.array_equal(ours, theirs) if function != "avg" else np.allclose(ours, theirs, rtol=1e-9, atol=0)
    return keys and bool(exact)


class Run(NamedTuple):
    """What one run took."""

    seconds: float
    cpu_seconds: float
    state_bytes: int  # 0: not streaming


def run(spark: SparkSession, make: Callable[[], DataFrame]) -> Run:
    free_states(spark)
    begin, used = time.perf_counter(), processor_s()
    frame, state = make(), 0
    if frame.isStreaming:
        state = stream(frame, "noop")
    else:
        frame.write.format("noop").mode("overwrite").save()
    return Run(time.perf_counter() - begin, processor_s() - used, state)


def free_states(spark: SparkSession) -> None:
    """Let go the states of queries that have ended, which Spark keeps for a minute: others would pay for them."""
    java: Any = spark
    states = getattr(java._jvm.org.apache.spark.sql.execution.streaming.state, "StateStore$")  # noqa: SLF001
    getattr(states, "MODULE$").stop()


def processor_s() -> float:
    """What this process and all that came of it have used (0 where there is no /proc)."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = path.read_text().split(" (", 1)
        except OSError:  # it has ended meanwhile
            continue
        stats[pid] = rest.rsplit(") ", 1)[1].split()
    ours = {str(os.getpid())}
    while more := {pid for pid, stat in stats.items() if stat[1] in ours} - ours:
        ours |= more
    return sum(int(ticks) for pid in ours if pid in stats for ticks in stats[pid][11:15]) * TICK_S


def measure(
    spark: SparkSession, runs: dict[str, Callable[[], DataFrame]], rounds: int, warmup_s: float = 0
) -> dict[str, list[Run]]:
    """All runs by round, after everyone has run once at least and for so long."""
    for make in runs.values():
        taken = 0.0
        while not taken or taken < warmup_s:
            taken += run(spark, make).seconds
    figures: dict[str, list[Run]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, make in runs.items():
            figures[name].append(run(spark, make))
    return figures


def spread(values: list[float]) -> list[float]:
    """Lower quartile, median, upper quartile."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def report(case: Case, rows: int, figures: dict[str, list[Run]], verdict: dict[str, str]) -> dict[str, Any]:
    result: dict[str, Any] = {"query": case.id, "window": case.window, "rows": rows, "files": case.files}
    for name, each in figures.items():
        low, middle, high = spread([run.seconds for run in each])
        state = statistics.median(run.state_bytes for run in each)
        ratio, ratio_cpu = (
            statistics.median(
                theirs[i] / max(ours[i], TICK_S) for ours, theirs in zip(each, figures[BASE], strict=True)
            )
            for i in (0, 1)
        )
        cpu = statistics.median(run.cpu_seconds for run in each)
        goal = case.goal(name)
        result[name] = {"seconds": middle, "quartiles": [low, high], "rounds": each, "result": verdict[name]}
        result[name] |= {"state_bytes": state}
        result[name] |= {"M_rows_per_s": rows / middle / 1e6, "times_window": ratio, "goal": goal}
        result[name] |= {"cpu_seconds": cpu, "times_window_cpu": ratio_cpu}
        print(
            f"{case.id:5} {name:16} {middle:8.2f} s [{low:7.2f} {high:7.2f}] {rows / middle / 1e6:7.2f} M rows/s"
            f"  {ratio:6.1f} x window(){f', goal {goal}' if goal else '':10}"
            f"  cpu {cpu:7.2f} s {ratio_cpu:6.1f} x  {f'state {state / 1e6:.1f} MB  ' if state else ''}{verdict[name]}",
            flush=True,
        )
    return result


def growth(spark: SparkSession, sizes: tuple[int, ...], rounds: int, folder: str) -> list[dict[str, Any]]:
    """Nanoseconds per row of ours by the number of rows: the cost is linear if they stay."""
    results = []
    for rows in sizes:
        path = f"{folder}/rows-{rows}"
        make_files(spark, path, rows)
        for id in QUERIES:
            ours = {n: make for n, make in Case(spark, id, path).contestants().items() if n.startswith("aggregate")}
            for name, each in measure(spark, ours, rounds).items():
                low, middle, high = spread([run.seconds for run in each])
                cpu = statistics.median(run.cpu_seconds for run in each)
                results.append({"query": id, "rows": rows, "name": name, "seconds": middle, "quartiles": [low, high]})
                results[-1] |= {"cpu_seconds": cpu}
                print(
                    f"{id:5} {name:16} {rows:12,} rows {middle:8.2f} s [{low:7.2f} {high:7.2f}]"
                    f" {middle / rows * 1e9:9.1f} ns/row, {cpu / rows * 1e9:9.1f} of processor time",
                    flush=True,
                )
    return results


def make_files(spark: SparkSession, path: str, rows: int, span_s: int | None = None, keys: int | None = None) -> None:
    """Make the files unless they are there."""
    if Path(path).exists():
        return
    generate(spark, "EC", path, tuples=rows, span_s=span_s)
    rng = np.random.default_rng(1)
    for file in sorted(Path(path).glob("*.parquet")) if keys else ():
        table = pq.read_table(file)
        field = table.schema.field("meter")
        meters = pa.array(rng.integers(0, keys, len(table)), field.type)
        table = table.set_column(table.schema.get_field_index("meter"), field, meters)
        pq.write_table(table, file, row_group_size=ROW_GROUP_ROWS)


def date_files(path: str) -> None:
    """Date the files in the order of their names: a stream of files comes by date, and tasks write side by side."""
    files = sorted(Path(path).glob("*.parquet"))
    first_s = files[0].stat().st_mtime - len(files)
    for i, file in enumerate(files):
        os.utime(file, (first_s + i, first_s + i))


def shuffle_files(path: str, out: str) -> None:
    """Write the rows of the files in random order, into as many files."""
    if Path(out).exists():
        return
    Path(out).mkdir()
    files = sorted(Path(path).glob("*.parquet"))
    rows = pa.concat_tables([pq.read_table(file) for file in files])
    order = np.random.default_rng(1).permutation(len(rows))
    for file, part in zip(files, np.array_split(order, len(files)), strict=True):
        pq.write_table(rows.take(part), f"{out}/{file.name}", row_group_size=ROW_GROUP_ROWS)


def contest(spark: SparkSession, arguments: argparse.Namespace, folder: str) -> list[dict[str, Any]]:
    """Everyone on the same files."""
    size = f"{arguments.rows}-{arguments.keys}" if arguments.keys else f"{arguments.rows}"
    path, unsorted = f"{folder}/rows-{size}", f"{folder}/unsorted-{size}"
    make_files(spark, path, arguments.rows, arguments.span, arguments.keys)
    if arguments.streaming:
        date_files(path)
    else:
        shuffle_files(path, unsorted)
    results = []
    for id in arguments.queries.split(","):
        case = Case(spark, id, path, unsorted, arguments.files if arguments.streaming else 0, arguments.window)
        verdict = check(case)
        figures = measure(spark, case.contestants(), arguments.rounds, arguments.warmup)
        results.append(report(case, arguments.rows, figures, verdict))
    return results


def sizes_of(text: str) -> tuple[int, ...]:
    return tuple(int(n) for n in text.split(","))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--warmup", type=float, default=WARMUP_S, help="seconds of warming up for each contestant (40)")
    parser.add_argument("--queries", default=",".join(QUERIES))
    parser.add_argument("--span", type=int, help="seconds that the data span; by default 243 rows are a second")
    parser.add_argument("--keys", type=int, help="number of meters, in random order; by default the data's 243")
    parser.add_argument("--window", type=sizes_of, help="size and advance of windows in seconds: 3600,900")
    parser.add_argument("--sizes", help="numbers of rows: measure how the time of pystream's two grows, nothing else")
    parser.add_argument("--streaming", action="store_true", help="streaming DataFrames instead")
    parser.add_argument("--files", type=int, default=4, help="files to a micro-batch, of 2**18 rows each (4)")
    parser.add_argument("--data", type=Path, help="keep the files in this folder, or take those that are there already")
    parser.add_argument("--master", default="local[*]")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    spark = session(arguments.master, "bench_spark")
    machine = {
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg(),
        "master": arguments.master,
    }
    machine |= {"spark": pyspark.__version__, "pyarrow": pa.__version__}
    with tempfile.TemporaryDirectory() as scratch:
        folder = str(arguments.data or scratch)
        Path(folder).mkdir(exist_ok=True)
        if arguments.sizes:
            results = growth(spark, sizes_of(arguments.sizes), arguments.rounds, folder)
        else:
            results = contest(spark, arguments, folder)
    spark.stop()
    if arguments.json:
        result = {**machine, "load_after": os.getloadavg(), "results": results}
        write_whole(arguments.json, json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
