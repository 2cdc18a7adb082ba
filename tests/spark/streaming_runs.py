"""A streaming aggregate over files that come one after the other; run as a program, it is there to be killed."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import pystream as ps
from pystream.data.sample import DataSet

EC = "ts bigint, stream int, position bigint, meter int, cons double"
QUERY = ps.Query(
    ps.Window(30, 7), "meter", {"n": ps.count(), "s": ps.sum("cons"), "f": ps.first("cons"), "l": ps.last("cons")}
)


def streams(name: str = "EC", tuples: int = 3000) -> DataSet:
    return DataSet(name, streams=3, tuples=tuples, seed=5, span_s=200)


def write(folder: Path, table: pa.Table, files: int, first: int = 0) -> None:
    """Cut rows by time into files, whose rows are in no useful order. Rows of one timestamp may be in two files."""
    table = table.sort_by([("ts", "ascending"), ("position", "descending")])
    rows = -(-table.num_rows // files)
    for i in range(files):
        put(folder, table.slice(i * rows, rows).sort_by("position"), first + i)


def put(folder: Path, table: pa.Table, number: int) -> None:
    """Write a file that Spark takes in its turn: it goes by the time of the last change."""
    (folder / "in").mkdir(parents=True, exist_ok=True)
    hidden, file = (folder / "in" / f"{dot}{number:04d}.parquet" for dot in (".", ""))
    pq.write_table(table, hidden)
    os.utime(hidden, (number, number))
    hidden.rename(file)


def rows(table: pa.Table, query: ps.Query) -> list[dict]:
    """In the order of `ps.aggregate`."""
    return table.sort_by([(name, "ascending") for name in ("ts", *query.key)]).to_pylist()


def rows_in(spark, folder: Path, schema: str = EC):
    source = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).option("latestFirst", "false")
    return source.parquet(str(folder / "in"))


def start(out, folder: Path, trigger: dict | None = None):
    """Write a streaming DataFrame to files, with the checkpoint beside them."""
    writer = out.writeStream.format("parquet").option("path", str(folder / "out"))
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**(trigger or {"availableNow": True})).start()


def undo(folder: Path, batch: int) -> None:
    """As if the query was killed in its last micro-batch: it has to run again, and the sink takes its rows again."""
    for log in (folder / "checkpoint" / "commits", folder / "out" / "_spark_metadata"):
        (log / str(batch)).unlink()
        (log / f".{batch}.crc").unlink(missing_ok=True)


def run(spark, folder: Path, who: str = "spark", trigger: dict | None = None) -> None:
    """Aggregate what is in the folder, read by Spark or by the executors themselves."""
    from pystream.spark import aggregate, aggregate_new_files  # noqa: PLC0415 - an extra

    if who == "spark":
        out = aggregate(rows_in(spark, folder), QUERY, position="position", shards=2)
    else:
        out = aggregate_new_files(spark, QUERY, folder / "in", shards=2, maxFilesPerTrigger=1)
    start(out, folder, trigger).awaitTermination()


if __name__ == "__main__":
    from pystream.spark import session

    # It lives for a few micro-batches: they are over before quick code is compiled or more Python workers have started.
    quick = {"spark_driver_extraJavaOptions": "-XX:TieredStopAtLevel=1", "spark_driver_memory": "1g"}
    started = session("local[1]", spark_sql_shuffle_partitions="2", **quick)
    sys.stdin.readline()  # whoever kills it says when to begin
    run(started, Path(sys.argv[1]), sys.argv[2], {"processingTime": "0 seconds"})  # until it is killed
