"""Files that Spark has noted for a micro-batch and that are gone when it reads them: an error instead of nothing.

Spark's source of files finds files, notes them in the checkpoint (sources/I/K) and takes them up later: after a
restart, or one by one with maxFilesPerTrigger. A file that has gone meanwhile it leaves out without a word. So the
tasks tell the first shard which files they have read, and it compares them with what is noted for the micro-batch.

Tasks are not told where the checkpoint is. In a classic session a listener puts it into the settings of each query
when it starts, which Spark hands to the tasks; with Spark Connect, `aggregate_new_files` has to be told.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote
from weakref import WeakSet

import pyarrow as pa
from pyarrow import fs
from pyspark import TaskContext

from pystream.errors import PystreamError
from pystream.partials import seals
from pystream.partials.seals import Seal
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.stream.parcels import PARCELS
from pystream.spark.task_process import task_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

    from pystream.spark.stream.state import Layout

#: The setting that has a query's checkpoint. Spark hands those to tasks that begin like this.
CHECKPOINT = "spark.sql.pystream.checkpoint"

#: How Spark tells a task which micro-batch it is in.
BATCH = "streaming.sql.batchId"

#: Schemes whose authority says where the files are; that of the others is part of pyarrow's path, as a bucket is.
WITH_HOST = ("file:", "hdfs:", "viewfs:")


def place_of(path: str) -> str:
    """The path in pyarrow's file system of what Spark calls scheme://authority/path; neither quotes anything."""
    if path.startswith(WITH_HOST):
        return re.sub(r"^\w+:(//[^/]*)?", "", path)
    return re.sub(r"^[A-Za-z][\w+.-]*://", "", path)


@dataclass(frozen=True)
class NotedFiles:
    """The files below a folder that Spark notes for the micro-batches of a query."""

    folder: str
    checkpoint: str | None = None  # None: the tasks' setting has it

    def parcel(self, layout: Layout, read: list[str]) -> pa.RecordBatch:
        """What a task tells the first shard: the files that it has read."""
        told = seals.sealed(seals.FILES, Seal(0, sender=task_number()), json.dumps(read).encode())
        return pa.RecordBatch.from_pylist(
            [{"shard": shard_labels(layout.shards)[0], "rows": None, "marks": told}], PARCELS
        )

    def check_read(self, blobs: Iterable[bytes]) -> None:
        """In the first shard: refuse the micro-batch if a file that is noted was not read."""
        read = {path for blob in blobs for path in json.loads(bytes(seals.opened(blob, seals.FILES, 0)[1]))}
        if read:
            self._refuse([path for path in self._noted()[1] if path not in read])

    def check_there(self) -> None:
        """In a task without any rows: refuse the micro-batch if the files that are noted are gone."""
        files, noted = self._noted()
        if noted and files is not None:
            self._refuse([info.path for info in files.get_file_info(noted) if info.type == fs.FileType.NotFound])

    def _refuse(self, gone: list[str]) -> None:
        if gone:
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            raise PystreamError(
                f"{gone[0]}{more}: the file is gone since Spark noted it for this micro-batch, of which nothing is "
                "written yet; put it back under its name, or one without rows, and start the query again"
            )

    def _noted(self) -> tuple[fs.FileSystem | None, list[str]]:
        """The files of this micro-batch; none where tasks cannot tell, or cannot open the checkpoint with pyarrow."""
        task = TaskContext.get()
        root = self.checkpoint or (task and task.getLocalProperty(CHECKPOINT))
        batch = task and task.getLocalProperty(BATCH)
        if not root or not batch:
            return None, []
        try:
            files, place = _opened(root)
            noted = list(_entries(files, place, int(batch)))
        except (FileNotFoundError, pa.ArrowInvalid, pa.ArrowNotImplementedError):
            return None, []
        return files, sorted(path for path in noted if path.startswith(self.folder))


def _opened(root: str) -> tuple[fs.FileSystem, str]:
    if root.startswith(("/", "file:")):
        return fs.LocalFileSystem(), place_of(root)
    opened: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(root)
    return opened


def _entries(files: fs.FileSystem, root: str, batch: int) -> Iterator[str]:
    """What all sources of files have noted for a micro-batch."""
    before = _log_offsets(files, root, batch - 1) if batch else {}
    for source, last in _log_offsets(files, root, batch).items():
        for number in range(before.get(source, -1) + 1, last + 1):
            for entry in _noted_in(files, f"{root}/sources/{source}/{number}"):
                if entry["batchId"] == number:
                    yield place_of(unquote(entry["path"]))


def _log_offsets(files: fs.FileSystem, root: str, batch: int) -> dict[int, int]:
    lines = _lines(files, f"{root}/offsets/{batch}")[2:]
    told = {source: json.loads(line) for source, line in enumerate(lines) if line.startswith('{"logOffset"')}
    return {source: int(offset["logOffset"]) for source, offset in told.items()}


def _noted_in(files: fs.FileSystem, place: str) -> list[dict[str, Any]]:
    """A log's entries; every tenth file has those of all before it, too."""
    there = place if files.get_file_info(place).is_file else f"{place}.compact"
    return [json.loads(line) for line in _lines(files, there)[1:]]


def _lines(files: fs.FileSystem, place: str) -> list[str]:
    with files.open_input_stream(place) as stream:
        return [str(line) for line in stream.read().decode().splitlines()]


# ---- on the driver ----


class _Listener:
    """Puts the checkpoint of each query that starts into its settings; by way of Spark's Java side."""

    def __init__(self, spark: Any) -> None:
        self._streams = spark._jsparkSession.streams()  # noqa: SLF001

    def onQueryStarted(self, event: Any) -> None:  # noqa: N802 - Spark calls it so, before the first micro-batch
        """Tell the query's own session."""
        query = self._streams.get(event.id()).streamingQuery()
        query.sparkSessionForStream().conf().set(CHECKPOINT, query.resolvedCheckpointRoot())

    def onQueryProgress(self, event: Any) -> None:  # noqa: N802
        """Nothing."""

    def onQueryIdle(self, event: Any) -> None:  # noqa: N802
        """Nothing."""

    def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
        """Nothing."""

    class Java:
        """What py4j asks for."""

        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


_listening: WeakSet[SparkSession] = WeakSet()


def tell_tasks(spark: SparkSession) -> None:
    """From now on the tasks of streaming queries of a session know their checkpoint, if it is a classic one."""
    java: Any = spark
    if not hasattr(java, "_jsparkSession") or spark in _listening:
        return
    from pyspark.java_gateway import ensure_callback_server_started  # noqa: PLC0415 - classic sessions only

    ensure_callback_server_started(java._sc._gateway)  # type: ignore[no-untyped-call] # noqa: SLF001
    wrapper = java._jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(_Listener(spark))  # noqa: SLF001
    streams = java._jsparkSession.streams()  # noqa: SLF001
    streams.addListener(wrapper)
    _listening.add(spark)
    atexit.register(_remove, streams, wrapper)  # or Java would go on calling a Python that has ended


def _remove(streams: Any, wrapper: Any) -> None:
    with contextlib.suppress(Exception):  # Java may have ended first
        streams.removeListener(wrapper)
