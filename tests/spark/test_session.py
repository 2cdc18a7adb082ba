"""The session that just works: what it sets by itself."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark.session import CHECKPOINTS, MANAGER, _partitions, _with_few_processes


@pytest.mark.parametrize(
    ("master", "partitions"),
    [
        ("local", 1),
        ("local[3]", 3),
        ("local[3,2]", 3),
        ("local[*]", os.cpu_count()),
        ("local[*,4]", os.cpu_count()),
        ("local-cluster[2,1,1024]", 8),
        ("spark://host:7077", 8),
    ],
)
def test_a_partition_for_each_core(master, partitions):
    assert _partitions(master) == str(partitions)


@pytest.mark.spark
def test_files_cost_few_processes(spark, tmp_path):
    """None for .crc, and Spark still has the class that writes checkpoints without readlink where we say."""
    assert spark.conf.get(MANAGER) == CHECKPOINTS
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    started = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(once=True).start()
    started.awaitTermination()
    assert (tmp_path / "commits" / "0").exists()
    assert not [*tmp_path.rglob("*.crc")]


@pytest.mark.spark
def test_what_the_user_says_counts(spark):
    other = spark.newSession()
    other.conf.set(MANAGER, "mine")
    assert _with_few_processes(other).conf.get(MANAGER) == "mine"
