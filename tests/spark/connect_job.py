"""What test_spark_connect_streaming.py runs: a streaming aggregate from its start to its end in a client of Connect."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import streaming_runs as runs
from pyspark.sql import SparkSession

from pystream.spark import Orders, aggregate, aggregate_new_files, explain_stall, finish, java, progress


def rows_written(spark, folder: Path) -> pa.Table:
    return spark.read.parquet(str(folder / "out")).toArrow()


def silent_stream(spark, folder: Path) -> dict:
    """One stream of three says nothing, is named and let go; then the query, which runs, is finished."""
    whole = runs.streams().block(0)
    runs.write(folder, whole.filter(pc.less(whole["stream"], 2)), files=2)
    df = runs.rows_in(spark, folder)
    out = aggregate(df, runs.QUERY, position="position", streams=3, shards=2, orders=folder / "orders")
    started = runs.start(out, folder, {"processingTime": "0 seconds"})
    started.processAllAvailable()
    stall = explain_stall(started)
    assert explain_stall(str(folder / "checkpoint"), spark) == stall
    Orders(spark, folder / "orders").let_go(2)
    started.processAllAvailable()
    assert explain_stall(started) is None
    rest = finish(started, runs.QUERY).toArrow()
    again = finish(str(folder / "checkpoint"), runs.QUERY, spark).toArrow()
    assert runs.rows(again, runs.QUERY) == runs.rows(rest, runs.QUERY)
    return {
        "stall": [one.stream for one in stall.streams],
        "rows": runs.rows(pa.concat_tables([rows_written(spark, folder), rest]), runs.QUERY),
        "streamed": rows_written(spark, folder).num_rows,
        "progress": str(progress(str(folder / "checkpoint"), spark)),
        "start": refused(lambda: runs.start(out, folder).awaitTermination()),
    }


def gone_file(spark, folder: Path) -> dict:
    """A micro-batch has to run again, and a file of it is not there any more."""
    runs.write(folder, runs.streams().block(0), files=4)

    def run() -> None:
        path, checkpoint = folder / "in", folder / "checkpoint"
        out = aggregate_new_files(spark, runs.QUERY, path, shards=2, checkpoint=checkpoint, maxFilesPerTrigger=2)
        runs.start(out, folder).awaitTermination()

    run()
    runs.undo(folder, 1)
    file = folder / "in" / "0003.parquet"
    file.rename(folder / file.name)
    said = refused(run)
    (folder / file.name).rename(file)
    run()
    rest = finish(str(folder / "checkpoint"), runs.QUERY, spark).toArrow()
    return {"gone": said, "rows": runs.rows(pa.concat_tables([rows_written(spark, folder), rest]), runs.QUERY)}


def refused(call) -> str:
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever Spark makes of it
        return str(error)
    return ""


def main(folder: Path) -> None:
    os.environ["JAVA_HOME"] = str(java.home())
    os.environ |= {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    spark = SparkSession.builder.remote("local[2]").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    assert not hasattr(spark, "_jsparkSession")
    found = {"silent": silent_stream(spark, folder / "silent"), "gone": gone_file(spark, folder / "gone")}
    (folder / "found.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
