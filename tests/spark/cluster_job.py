"""What test_spark_cluster.py runs on a cluster: where the executors have pystream from, and what they compute."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import streaming_runs as runs


def origins(spark) -> list[str]:
    """The files from which the executors import pystream."""

    def look(batches):
        import pyarrow as pa  # noqa: PLC0415 - on the executor

        import pystream  # noqa: PLC0415

        for _ in batches:
            yield pa.RecordBatch.from_pydict({"file": [pystream.__file__]})

    frame = spark.range(0, 4, numPartitions=4).mapInArrow(look, "file string")
    return sorted({row.file for row in frame.collect()})


def main(master: str, folder: Path, settings: dict[str, str]) -> None:
    from pystream.spark import aggregate, finish, session  # noqa: PLC0415 - an extra

    spark = session(master, **settings)
    frame = spark.read.schema(runs.EC).parquet(str(folder / "in"))
    batch = aggregate(frame, runs.QUERY, position="position").toArrow()
    runs.run(spark, folder)
    rest = finish(str(folder / "checkpoint"), runs.QUERY).toArrow()
    streamed = spark.read.parquet(str(folder / "out")).toArrow()
    found = {"origins": origins(spark), "batch": batch.to_pylist(), "stream": streamed.to_pylist() + rest.to_pylist()}
    (folder / "found.json").write_text(json.dumps(found))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3]))
