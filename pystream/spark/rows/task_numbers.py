"""How many tasks: as many as run at once, or as few as the data needs; on any session, Spark Connect included.

A task with Python in it costs far more than what it has to do for a few rows. Spark's default of 200 partitions for
shuffles is no matter while adaptive execution joins small ones. Where it is switched off, we join them here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Adaptive execution joins partitions if both are on.
ADAPTIVE = ("spark.sql.adaptive.enabled", "spark.sql.adaptive.coalescePartitions.enabled")

#: More rows than any cluster has cores: Spark deals them out to as many partitions as it runs tasks at once.
ROWS = 1 << 17


def parallelism(spark: SparkSession) -> int:
    """How many tasks run at once, as far as Spark says. Over Spark Connect only a small job tells."""
    if hasattr(spark, "_jsparkSession"):
        return spark.sparkContext.defaultParallelism
    last = spark.range(ROWS).select(f.spark_partition_id().alias("part")).agg({"part": "max"}).first()
    return 1 if last is None else int(last[0]) + 1


def shuffle_partitions(spark: SparkSession) -> int:
    """Into how many partitions Spark shuffles."""
    return int(spark.conf.get("spark.sql.shuffle.partitions") or 1)


def is_adaptive(spark: SparkSession) -> bool:
    """Whether Spark joins small partitions by itself."""
    return all(spark.conf.get(name) == "true" for name in ADAPTIVE)


def joined(frame: DataFrame) -> DataFrame:
    """A frame that was just shuffled, with no more tasks than run at once; its partitions are read one by one."""
    spark = frame.sparkSession
    if is_adaptive(spark):
        return frame
    tasks = parallelism(spark)
    return frame if shuffle_partitions(spark) <= tasks else frame.coalesce(tasks)
