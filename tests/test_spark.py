"""pystream inside Spark's Python workers. The data pipeline itself comes later; this shows that the ground holds."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys

import pyarrow as pa
import pytest

import pystream as ps

HOW = "Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless, or another package manager's openjdk"


def java_version() -> int:
    """The major version of the Java that Spark would start; 0 if there is none."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")  # noqa: PTH118
    if not java:
        return 0
    out = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    match = re.search(r'version "(\d+)', out)
    return int(match[1]) if match else 0


@pytest.fixture(scope="session")
def spark():
    if java_version() < 17:
        pytest.skip(HOW)
    sql = pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")
    os.environ.update(PYSPARK_PYTHON=sys.executable, PYSPARK_DRIVER_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
    session = (
        sql.SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    yield session
    session.stop()


@pytest.mark.spark
def test_the_operator_runs_in_spark_workers(spark):
    query = ps.Query(ps.Window(10), "k", {"n": ps.count(), "total": ps.sum("v")})

    def run(batches):
        yield from ps.aggregate(query, [list(batches)]).to_batches()

    frame = spark.range(0, 100, numPartitions=1).selectExpr("id AS ts", "id % 3 AS k", "id / 8 AS v")
    rows = frame.mapInArrow(run, "ts long, k long, n long, total double").collect()
    table = pa.table({"ts": range(100), "k": [i % 3 for i in range(100)], "v": [i / 8 for i in range(100)]})
    assert [row.asDict() for row in rows] == ps.aggregate(query, [table]).to_pylist()
