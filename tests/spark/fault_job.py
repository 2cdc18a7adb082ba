"""What test_spark_kills.py runs on a cluster: queries under faults (fault_daemon.py), one after the other."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pyarrow as pa
import streaming_runs as runs
from fault_daemon import FOLDER


def batch(spark, folder: Path) -> list[dict]:
    from pystream.spark import aggregate  # noqa: PLC0415 - an extra

    frame = spark.read.schema(runs.EC).parquet(str(folder / "in"))
    return runs.rows(aggregate(frame, runs.QUERY, position="position").toArrow(), runs.QUERY)


def stream(spark, folder: Path) -> list[dict]:
    from pystream.spark import finish  # noqa: PLC0415

    runs.run(spark, folder)
    streamed = spark.read.parquet(str(folder / "out")).toArrow()
    rest = finish(str(folder / "checkpoint"), runs.QUERY, spark).toArrow()
    return runs.rows(pa.concat_tables([streamed, rest]), runs.QUERY)


KINDS = {"batch": batch, "stream": stream}


def main(folder: Path, faults: list[str]) -> None:
    from pystream.spark import session  # noqa: PLC0415

    settings = {"spark_executor_memory": "512m", "spark_sql_shuffle_partitions": "2"}
    spark = session("local-cluster[2,1,1024]", spark_python_daemon_module="fault_daemon", **settings)
    found = {}
    for fault in faults:
        kind, armed = fault.split(":")
        place = folder / fault.replace(":", "-")
        runs.write(place, runs.streams().block(0), files=3)
        Path(os.environ[FOLDER], armed).touch()
        found[fault] = KINDS[kind](spark, place)
    (folder / "found.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
