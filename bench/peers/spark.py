"""Spark, on all cores of this machine.

Plain and panes: a DataFrame made from the Arrow table, which is timed, because Spark's executors live in another
process. Streaming: Spark has no streaming source over memory, so it reads parquet files, one per input, written
beforehand to memory (/dev/shm where there is one), as one micro-batch, the fastest way; windows leave in append mode
once the watermark, which a last row far in the future moves, has passed them.

Spark's windows may start before 0; those are dropped. The session is started once and not timed.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - its usual name

if TYPE_CHECKING:
    from collections.abc import Callable

    from peers.case import Case

PACKAGES = ("pyspark",)

#: A second after all data, in which the row lies that moves the watermark.
LAST_TS = 1 << 22
LOCAL = {
    "spark.ui.enabled": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",
    "spark.driver.memory": "4g",
    "spark.network.timeout": "1h",  # it stands still while others have their turns
}


@cache
def session() -> SparkSession:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    cores = os.cpu_count() or 1
    builder = SparkSession.builder.master(f"local[{cores}]").config("spark.sql.shuffle.partitions", str(cores))
    for name, value in LOCAL.items():
        builder = builder.config(name, value)
    spark: SparkSession = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def over_rows(case: Case) -> Any:
    if case.function == "count":
        return F.count_if(F.col("cmt").rlike(case.pattern)) if case.pattern else F.count("*")
    return F.avg(case.column) if case.function == "avg" else F.min_by(case.column, "place")


def windowed(case: Case, rows: DataFrame) -> DataFrame:
    """Spark's own windows; `at` is the timestamp."""
    window = F.window("at", f"{case.size} seconds", f"{case.advance} seconds")
    out = rows.groupBy(window, case.key).agg(over_rows(case).alias(case.function))
    start = F.unix_seconds("window.start").alias("ts")
    return out.select(start, case.key, case.function).where("ts >= 0")


def sorted_table(case: Case, out: pa.Table) -> pa.Table:
    return out.sort_by([("ts", "ascending"), (case.key, "ascending")])


def plain(case: Case) -> Callable[[], pa.Table]:
    spark, table = session(), case.whole()

    def run() -> pa.Table:
        rows = spark.createDataFrame(table).withColumn("at", F.timestamp_seconds("ts"))
        return sorted_table(case, windowed(case, rows).toArrow())

    return run


def aggregates(case: Case) -> tuple[list[Any], Any]:
    """Over rows of a pane; over panes."""
    if case.function == "count":
        return [over_rows(case).alias("n")], F.sum("n")
    if case.function == "avg":
        return [F.count("*").alias("n"), F.sum(case.column).alias("s")], F.sum("s") / F.sum("n")
    return [over_rows(case).alias("v"), F.min("place").alias("place")], F.min_by("v", "place")


def panes(case: Case) -> Callable[[], pa.Table]:
    spark, table = session(), case.whole()
    partial, final = aggregates(case)

    def run() -> pa.Table:
        rows = spark.createDataFrame(table)
        pane = rows.groupBy(F.expr(f"ts div {case.advance}").alias("pane"), case.key).agg(*partial)
        windows = F.sequence(F.greatest(F.lit(0), F.col("pane") - case.panes + 1), F.col("pane"))
        part = pane.withColumn("window", F.explode(windows))
        out = part.groupBy((F.col("window") * case.advance).alias("ts"), case.key).agg(final.alias(case.function))
        return sorted_table(case, out.toArrow())

    return run


def write_files(case: Case, folder: Path) -> None:
    """A file for each input, and one with the last row."""
    whole, first = case.whole(), 0
    for i, t in enumerate(case.inputs):
        pq.write_table(whole.slice(first, t.num_rows), folder / f"{i}.parquet")
        first += t.num_rows
    last = whole.slice(0, 1)
    last = last.set_column(0, whole.schema.field("ts"), pa.array([LAST_TS], pa.int64()))
    pq.write_table(last, folder / "last.parquet")


def streaming(case: Case) -> Callable[[], pa.Table]:
    spark = session()
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None  # noqa: S108 - memory, not a file of a known name
    scratch = tempfile.TemporaryDirectory(dir=memory, prefix="peers-")
    folder = Path(scratch.name) / "data"
    folder.mkdir()
    write_files(case, folder)
    schema = spark.read.parquet(str(folder)).schema

    def run() -> pa.Table:
        checkpoint = Path(scratch.name) / "checkpoint"
        shutil.rmtree(checkpoint, ignore_errors=True)
        found: list[pa.Table] = []
        rows = spark.readStream.schema(schema).parquet(str(folder))
        rows = rows.withColumn("at", F.timestamp_seconds("ts")).withWatermark("at", "0 seconds")
        writer = windowed(case, rows).writeStream.outputMode("append").trigger(availableNow=True)
        writer = writer.option("checkpointLocation", str(checkpoint))
        writer.foreachBatch(lambda batch, _id: found.append(batch.toArrow())).start().awaitTermination()
        return sorted_table(case, pa.concat_tables(found))

    return run


FORMS = {"": plain, "panes": panes, "streaming": streaming}
