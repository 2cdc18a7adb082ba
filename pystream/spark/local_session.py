"""`session`: a local Spark that just works."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.sql import SparkSession

from pystream.errors import PystreamError
from pystream.spark import java

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

#: Settings of these names count when a session starts only. Spark takes some of them later, too, to no effect.
AT_START = r"spark\.(master|app\.|submit\.|driver\.|executor|yarn\.|kubernetes\.)"

#: Writes a checkpoint through Hadoop's FileSystem. Spark's default, through its FileContext, makes some 25 processes
#: for the 5 files of a micro-batch where Hadoop has no native library: readlink and chmod.
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
CHECKPOINTS = tuple(
    f"org.apache.spark.sql.execution.streaming.{place}FileSystemBasedCheckpointFileManager"
    for place in ("checkpointing.", "")  # from 4.1 on, and before
)


def session(master: str | None = None, app: str | None = None, **settings: str | int | bool) -> SparkSession:
    """Start a local Spark session, or give the one that runs already.

    Any other session works with pystream too, one of Spark Connect included: this one only takes care of what goes
    wrong most often (which Java, which Python in the workers, the log). `master` is "local[*]" unless given. Settings
    are Spark's own, with underscores for dots: `session(spark_sql_shuffle_partitions=4)`.

    If a session runs already, the settings are applied to it. What can be said only when a session starts (`master`,
    `app`, memory, ...) and is not what it has already is refused by name; nothing is changed then.

    >>> spark = session("local[2]")
    >>> spark.range(3).count()
    3
    >>> session(spark_sql_shuffle_partitions=2) is spark, spark.conf.get("spark.sql.shuffle.partitions")
    (True, '2')
    """
    own = {name.replace("_", "."): _text(value) for name, value in settings.items()}
    running = _running()
    if running is not None:
        fixed = {"spark.master": master, "spark.app.name": app}
        _apply(running, {name: value for name, value in fixed.items() if value is not None} | own)
        return running
    return _started(master or "local[*]", app or "pystream", own)


def _text(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _running() -> SparkSession | None:
    """The session of this thread, or else of this process."""
    try:
        return SparkSession.active()
    except PySparkRuntimeError:
        return None


def _started(master: str, app: str, settings: dict[str, str]) -> SparkSession:
    os.environ["JAVA_HOME"] = str(java.home())
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_CONF_DIR", str(CONF_DIR))
    # The workers' Python, or they would take whatever `python3` is on PATH.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    own = DEFAULTS | {"spark.sql.shuffle.partitions": _partitions(master)}
    if master.startswith("local") and os.environ["PYSPARK_PYTHON"] == sys.executable:
        own |= {"spark.python.daemon.module": "pystream._spark_daemon"}
    builder = SparkSession.builder.master(master).appName(app)
    for name, value in (own | settings).items():
        builder = builder.config(name, value)
    return _with_few_processes(builder.getOrCreate())


def _apply(spark: SparkSession, settings: dict[str, str]) -> None:
    """Apply settings to a session that runs, all of them or none."""
    before = {name: spark.conf.get(name, None) for name in settings}
    refused = []
    for name in (name for name, value in settings.items() if before[name] != value):
        if re.match(AT_START, name):
            refused.append(name)
            continue
        try:
            spark.conf.set(name, settings[name])
        except PySparkException:
            refused.append(name)
    if not refused:
        return
    for name, value in before.items():
        if name not in refused and value is None:
            spark.conf.unset(name)
        elif name not in refused and value != settings[name]:
            spark.conf.set(name, value or "")
    has = ", ".join(f"{name} (it has {before[name]!r}, not {settings[name]!r})" for name in refused)
    raise PystreamError(
        f"a Spark session runs already, and these settings cannot be changed while it runs: {has}; stop it first "
        "(spark.stop()), or leave them out"
    )


def _with_few_processes(spark: SparkSession) -> SparkSession:
    """Let checkpoints on this machine cost fewer processes.

    Hadoop's checksums stay as they are. Without its .crc files a micro-batch would take a few processes less still, but
    there is one switch for all files of the machine, and those of the user are among them.
    """
    java: Any = spark  # Spark has no other door to its classes than its Java side
    is_there = java._jvm.org.apache.spark.util.Utils.classIsLoadable  # noqa: SLF001
    found = next((name for name in CHECKPOINTS if is_there(name)), None)
    if found is not None and spark.conf.get(MANAGER, None) is None:
        spark.conf.set(MANAGER, found)
    return spark


def _partitions(master: str) -> str:
    """One for each core, where the master tells: a streaming query has tasks for all of them in every micro-batch."""
    threads = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if threads is None:
        return "8"  # Spark's 200 are for large clusters
    return str(os.cpu_count() or 1) if threads[1] == "*" else threads[1] or "1"
