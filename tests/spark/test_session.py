"""The session that just works: what it sets by itself."""

from __future__ import annotations

import os
import threading

import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.errors import PystreamError
from pystream.spark import session
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
    assert spark.conf.get(MANAGER) in CHECKPOINTS
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


PARTITIONS, WIDTH = "spark.sql.shuffle.partitions", "spark.sql.debug.maxToStringFields"


@pytest.mark.spark
def test_settings_of_a_session_that_runs(spark):
    """They are applied, all or none; what can be said only at the start is refused by name."""
    before = {name: spark.conf.get(name) for name in (PARTITIONS, WIDTH)}
    try:
        assert session(spark_sql_shuffle_partitions=7) is spark
        assert spark.conf.get(PARTITIONS) == "7"
        with pytest.raises(
            PystreamError, match=r"runs already.* spark\.driver\.memory \(it has '2g', not '9g'\)"
        ) as said:
            session("local[7]", spark_sql_debug_maxToStringFields="3", spark_driver_memory="9g")
        assert "spark.master (it has 'local[2]', not 'local[7]')" in str(said.value)
        assert {name: spark.conf.get(name) for name in (PARTITIONS, WIDTH)} == before | {PARTITIONS: "7"}
        assert session("local[2]", spark_driver_memory="2g") is spark  # what it has already
    finally:
        spark.conf.set(PARTITIONS, before[PARTITIONS])


@pytest.mark.spark
def test_the_session_is_found_from_any_thread(spark):
    found = []
    thread = threading.Thread(target=lambda: found.append(session(spark_sql_ansi_enabled=True)))
    thread.start()
    thread.join()
    assert found == [spark]
