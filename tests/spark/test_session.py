"""The session that just works: what it sets by itself."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark.local_session import CHECKPOINTS, MANAGER, _partitions, _with_few_processes


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
@pytest.mark.full
def test_files_have_checksums(spark, tmp_path):
    """A byte of the user's file that changed on the disk is an error, and not another value."""
    spark.range(1000).repartition(1).write.csv(str(tmp_path / "out"))
    (file,) = (tmp_path / "out").glob("part-*.csv")
    stored = bytearray(file.read_bytes())
    stored[100] ^= 1
    file.write_bytes(stored)
    with pytest.raises(Exception, match=r"ChecksumException|[Cc]hecksum error"):
        spark.read.csv(str(tmp_path / "out")).collect()


@pytest.mark.spark
def test_checkpoints_cost_few_processes(spark, tmp_path):
    """Spark still has the class that writes checkpoints without readlink where we say, with checksums."""
    assert spark.conf.get(MANAGER) == CHECKPOINTS
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 1).load()
    started = rows.writeStream.format("noop").option("checkpointLocation", str(tmp_path)).trigger(once=True).start()
    started.awaitTermination()
    assert (tmp_path / "commits" / "0").exists()
    assert (tmp_path / "commits" / ".0.crc").exists()


@pytest.mark.spark
def test_what_the_user_says_counts(spark):
    other = spark.newSession()
    other.conf.set(MANAGER, "mine")
    assert _with_few_processes(other).conf.get(MANAGER) == "mine"
