"""The checkpoint of a streaming query: whether it is whole, the shards' states in it, and how it is ended for good."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]

from pystream.errors import PystreamError
from pystream.spark.error_causes import cause_of
from pystream.spark.stream.state import STATE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

#: How Spark calls the operator that keeps our states.
OPERATOR = "applyInPandasWithState"

#: Stands at the beginning of the checkpoint's file `metadata` once it is ended. Spark reads that file as JSON when it
#: starts a query, and refuses with a message that quotes this word.
ENDED = "ended_by_pystream_spark_finish"

#: How the checkpoints are called that Spark makes itself, and deletes when the query stops.
TEMPORARY = "temporary-"


class Checkpoint:
    """A checkpoint by its path, on any file system that Spark knows."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        self._spark = spark
        java: Any = spark  # Spark has no other door to its file systems than its Java side
        self._jvm, self._gateway = java._jvm, java._sc._gateway  # noqa: SLF001
        self._root = self._jvm.org.apache.hadoop.fs.Path(path)
        self._files = self._root.getFileSystem(java._jsparkSession.sessionState().newHadoopConf())  # noqa: SLF001

    def check_whole(self) -> None:
        """Refuse a checkpoint in the midst of a micro-batch: the sink may have its rows, the states have not."""
        begun, done = self._last("offsets"), self._last("commits")
        if done < 0:
            raise PystreamError(f"{self.path}: no micro-batch has been committed here, so there is nothing to finish")
        if begun != done:
            raise PystreamError(
                f"{self.path}: micro-batch {begun} was cut off; let the query run once more (availableNow) first"
            )

    def states(self) -> DataFrame:
        """The states of the shards, one row each, with the columns of STATE and the shard's label."""
        operators = self._spark.read.format("state-metadata").load(self.path).where(f"operatorName = '{OPERATOR}'")
        found = []
        for row in operators.select("operatorId").collect():
            states = self._spark.read.format("statestore").option("operatorId", row[0]).load(self.path)
            held = states.select("value.groupState.*", "key.*")
            found += [held] if held.columns == [*STATE, "shard"] else []
        if len(found) != 1:
            raise PystreamError(f"{self.path} has {len(found)} streaming aggregates of pystream in it, not one")
        return found[0]

    def end(self) -> None:
        """Make sure that no query goes on from here. Doing it again changes nothing."""
        try:
            stream = self._files.open(self._path("metadata"))
            text = bytes(stream.readAllBytes()).decode()
            stream.close()
            if not text.startswith(ENDED):
                self._replace("metadata", f"{ENDED} {text}")
        except Py4JJavaError as error:
            raise PystreamError(
                f"{self.path}: finish could not mark the checkpoint as ended: {cause_of(error)}; nothing has changed, "
                "call it again once that is mended"
            ) from error

    def _replace(self, name: str, text: str) -> None:
        """Put a file in the place of another: there is never half a one."""
        hidden, file = self._path(f".{name}.ended.tmp"), self._path(name)
        try:
            out = self._files.create(hidden, True)
            out.write(text.encode())
            out.close()
            rename = getattr(self._jvm.org.apache.hadoop.fs, "Options$Rename")
            how = self._gateway.new_array(rename, 1)
            how[0] = rename.OVERWRITE
            self._context().rename(hidden, file, how)
        finally:
            self._files.delete(hidden, False)

    def _context(self) -> Any:
        """Hadoop's other view of file systems, the only one that puts a file in the place of another at once."""
        of = self._jvm.org.apache.hadoop.fs.FileContext.getFileContext
        return of(self._files.getUri(), self._files.getConf())

    def _last(self, log: str) -> int:
        """The number of the last micro-batch in a log, -1 if there is none."""
        folder = self._path(log)
        if not self._files.exists(folder):
            return -1
        names = (status.getPath().getName() for status in self._files.listStatus(folder))
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def _path(self, name: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path(self._root, name)


def checkpoint_of(started: StreamingQuery) -> str:
    """Where a query has its checkpoint."""
    path = str(started._jsq.streamingQuery().resolvedCheckpointRoot())  # noqa: SLF001 - the progress does not tell
    if path.rstrip("/").rpartition("/")[2].startswith(TEMPORARY):
        raise PystreamError("the query has no checkpointLocation, so what it holds is lost when it stops; give it one")
    return path
