"""`session`: a local Spark that just works."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pystream.errors import PystreamError
from pystream.spark import java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CONF_DIR = Path(__file__).parent / "conf"

#: What differs from Spark's own defaults, and why.
DEFAULTS = {
    "spark.ui.enabled": "false",  # no port taken for a page that nobody opens
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.session.timeZone": "UTC",  # the same result on every machine
    "spark.driver.memory": "2g",
    # No limit, or Spark would measure what goes to Python anew with every row: longer than it takes to write the row.
    "spark.sql.execution.arrow.maxBytesPerBatch": str((1 << 31) - 1),
    # Fewer and larger batches than Spark's 10,000 rows: each costs a call into Python.
    "spark.sql.execution.arrow.maxRecordsPerBatch": str(1 << 16),
    # Workers are on the same machine, where small tasks wait for TCP, probably for late acknowledgements.
    "spark.python.unix.domain.socket.enabled": "true",
}

#: Writes a checkpoint through Hadoop's FileSystem. Spark's default, through its FileContext, makes some 25 processes
#: for the 5 files of a micro-batch where Hadoop has no native library: readlink and chmod.
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINTS = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"


def session(master: str = "local[*]", app: str = "pystream", **settings: str) -> SparkSession:
    """Start a local Spark session, or give the one that runs already.

    Any other session works with pystream too: this one only takes care of what goes wrong most often (which Java, which
    Python in the workers, the log). Settings are Spark's own, with underscores for dots:
    `session(spark_sql_shuffle_partitions="4")`.

    >>> spark = session("local[2]")
    >>> spark.range(3).count()
    3
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise PystreamError('Spark is not installed: pip install "pystream-core[spark]"') from error
    running = SparkSession.getActiveSession()
    if running is None:
        os.environ["JAVA_HOME"] = str(java.home())
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("SPARK_CONF_DIR", str(CONF_DIR))
        # The workers' Python, or they would take whatever `python3` is on PATH.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    builder = SparkSession.builder.master(master).appName(app)
    own = DEFAULTS | {"spark.sql.shuffle.partitions": _partitions(master)}
    for name, value in (own | {k.replace("_", "."): v for k, v in settings.items()}).items():
        builder = builder.config(name, value)
    return running or _with_few_processes(builder.getOrCreate())


def _with_few_processes(spark: SparkSession) -> SparkSession:
    """Let checkpoints on this machine cost fewer processes.

    Hadoop's checksums stay as they are. Without its .crc files a micro-batch would take a few processes less still, but
    there is one switch for all files of the machine, and those of the user are among them.
    """
    java: Any = spark  # Spark has no other door to its classes than its Java side
    known = java._jvm.org.apache.spark.util.Utils.classIsLoadable(CHECKPOINTS)  # noqa: SLF001 - it may have moved
    if known and spark.conf.get(MANAGER, None) is None:
        spark.conf.set(MANAGER, CHECKPOINTS)
    return spark


def _partitions(master: str) -> str:
    """One for each core, where the master tells: a streaming query has tasks for all of them in every micro-batch."""
    threads = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if threads is None:
        return "8"  # Spark's 200 are for large clusters
    return str(os.cpu_count() or 1) if threads[1] == "*" else threads[1] or "1"
