"""The checkpoint of a streaming query, read through Spark: how far it has come, and the shards' states in it.

Only DataFrames read it, so this works in every session, one of Spark Connect too, and on any file system that Spark
knows. The files are those of Spark:

    metadata        the query's id; a query that `finish` has ended has a sentence there, see ending.py
    offsets/N       micro-batch N was begun: up to where it reads, one line of JSON per source
    commits/N       micro-batch N is done: the sink has its rows, and the states after it are those of version N + 1
    sources/I/K     the files that source I has found, if it is one of files
    state/O/P/V.*   the state of partition P after V micro-batches
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from pyspark.errors import AnalysisException
from pyspark.sql import functions as f

from pystream.errors import PystreamError
from pystream.spark.stream.state import STATE

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: How Spark calls the operator that keeps our states.
OPERATOR = "applyInPandasWithState"

#: The query's id once it is ended: Spark refuses it when it starts a query, and quotes it. It shows 36 characters.
ENDED = "ended by pystream.spark.finish"

#: Folders of files that were read which are searched for others, at most.
FOLDERS_MAX = 20

#: Unread files that a message names.
NAMED_MAX = 3


@dataclass(frozen=True)
class Progress:
    """How far a streaming query has come, as its checkpoint has it; see `pystream.spark.progress`.

    >>> print(Progress(7, ({"logOffset": 3},), None, ("in/9.parquet",)))
    read up to micro-batch 7: [{"logOffset": 3}]; not read: in/9.parquet
    """

    #: The last micro-batch that is done.
    micro_batch: int
    #: Up to where it read, one for each source, as Spark writes it: a number, a dict, None (nothing yet).
    offsets: tuple[Any, ...]
    #: The micro-batch that was begun and is not done: it runs, or was cut off.
    cut_off: int | None = None
    #: Files that no micro-batch has read that is done: noted by Spark, or beside those that were read.
    unread: tuple[str, ...] = ()
    #: Whether `finish` has ended the query.
    ended: bool = False

    def __str__(self) -> str:
        text = f"read up to micro-batch {self.micro_batch}: {json.dumps(self.offsets)}"
        return text + (f"; not read: {self.rest()}" if self.rest() else "")

    def rest(self) -> str:
        """What was not read, for people; empty if that is nothing."""
        parts = [] if self.cut_off is None else [f"micro-batch {self.cut_off}, which was cut off"]
        parts += self.unread[:NAMED_MAX]
        more = len(self.unread) - NAMED_MAX
        return ", ".join(parts) + (f" and {more} more files" if more > 0 else "")


class Checkpoint:
    """A checkpoint by its path."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.path = path
        self.spark = spark

    @cached_property
    def ended(self) -> int | None:
        """The micro-batch after which `finish` ended the query; None: it did not."""
        try:
            told = json.loads(next(iter(self._texts("metadata").values()), "{}"))
        except ValueError as error:
            raise PystreamError(f"{self.path}/metadata is not readable: {error}") from error
        return int(told["micro_batch"]) if told.get("id") == ENDED else None

    @cached_property
    def begun(self) -> int:
        """The last micro-batch that was begun; -1: none."""
        return max(self._numbers("offsets"), default=-1)

    @cached_property
    def done(self) -> int:
        """The last micro-batch that is done, or that counts as the last: finish has ended the query there."""
        if self.ended is not None:
            return self.ended
        done = max(self._numbers("commits"), default=-1)
        if done < 0:
            raise PystreamError(f"{self.path}: no micro-batch has been committed here, so there is nothing to finish")
        return done

    def progress(self, *, beside: bool = True) -> Progress:
        """How far the query has come; `beside`: look for files that nobody has read."""
        cut = self.begun if self.begun > self.done else None
        offsets = self._offsets(self.done)
        return Progress(
            self.done, offsets, cut, self._unread_files(offsets) if beside else (), ended=self.ended is not None
        )

    def is_untold(self, batch: int) -> bool:
        """Whether a micro-batch that was cut off has surely given nothing to the sink.

        A task saves its state once all its rows are taken, and a sink that takes a micro-batch as a whole does so
        after the last of them. So there is nothing as long as a state is missing.
        """
        operator, partitions = self._operator
        saved = self._listed(f"{self.path}/state/{operator}", f"{batch + 1}[._]*")
        return len({PurePosixPath(file).parent.name for file in saved}) < partitions

    def states(self) -> DataFrame:
        """The states of the shards after the last micro-batch, one row each: the columns of STATE and the label."""
        reader = self.spark.read.format("statestore").option("operatorId", self._operator[0])
        return reader.option("batchId", self.done).load(self.path).select("value.groupState.*", "key.*")

    @cached_property
    def _operator(self) -> tuple[int, int]:
        """The number of our operator, and how many partitions it has."""
        every = self.spark.read.format("state-metadata").load(self.path).where(f"operatorName = '{OPERATOR}'")
        found = []
        for number, partitions in every.select("operatorId", "numPartitions").distinct().collect():
            reader = self.spark.read.format("statestore").option("operatorId", number).option("batchId", self.done)
            held = reader.load(self.path).select("value.groupState.*", "key.*")
            found += [(number, partitions)] if held.columns == [*STATE, "shard"] else []
        if len(found) != 1:
            raise PystreamError(f"{self.path} has {len(found)} streaming aggregates of pystream in it, not one")
        return found[0]

    # ---- the sources ----

    def _offsets(self, batch: int) -> tuple[Any, ...]:
        lines = next(iter(self._texts(f"offsets/{batch}").values()), "").splitlines()[2:]
        return tuple(None if line == "-" else _json_or_text(line) for line in lines)

    def _unread_files(self, offsets: tuple[Any, ...]) -> tuple[str, ...]:
        """Files that the sources have noted for later, and others beside those that were read."""
        later: set[str] = set()
        read: set[str] = set()
        for place, text in self._texts("sources", "[0-9]*").items():
            source = int(PurePosixPath(place).parent.name)
            offset = offsets[source] if source < len(offsets) else None
            if isinstance(offset, dict) and "logOffset" in offset:
                for entry in map(json.loads, text.splitlines()[1:]):
                    (read if entry["batchId"] <= offset["logOffset"] else later).add(unquote(entry["path"]))
        return tuple(sorted({plain_path(path) for path in later} | self._beside(read)))

    def _beside(self, read: set[str]) -> set[str]:
        endings = {PurePosixPath(path).suffix for path in read}
        folders = sorted({path.rpartition("/")[0] for path in read})[-FOLDERS_MAX:]
        there = {plain_path(path) for folder in folders for path in self._listed(folder)}
        inside = {path for path in there if path.rpartition("/")[0] in map(plain_path, folders)}
        return {path for path in inside if PurePosixPath(path).suffix in endings} - {plain_path(path) for path in read}

    # ---- files ----

    def _numbers(self, log: str) -> list[int]:
        names = (PurePosixPath(path).name for path in self._listed(f"{self.path}/{log}", "[0-9]*"))
        return [int(name) for name in names if name.isdigit()]

    def _listed(self, folder: str, names: str = "*") -> list[str]:
        found = self._files(folder, names)
        return [] if found is None else [row[0] for row in found.select("path").collect()]

    def _texts(self, place: str, names: str = "*") -> dict[str, str]:
        """The contents of files by their paths: of one, or of those below a folder that have such names."""
        found = self._files(f"{self.path}/{place}", names)
        rows = [] if found is None else found.select("path", f.col("content").cast("string")).collect()
        return {str(path): str(text) for path, text in rows}

    def _files(self, place: str, names: str) -> DataFrame | None:
        literal = re.sub(r"([\[\]{}*?\\])", r"\\\1", place)
        reader = self.spark.read.format("binaryFile").option("recursiveFileLookup", "true")
        try:
            return reader.option("pathGlobFilter", names).load(literal)
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return None


def _json_or_text(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return line


def plain_path(path: str) -> str:
    """A path of the machine without the scheme; others as they are."""
    return re.sub(r"^file:(//[^/]*)?", "", path)
