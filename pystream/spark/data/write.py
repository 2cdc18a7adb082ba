"""`write_sorted`: a result into a folder of files, written by the executors, in the order of `pystream.aggregate`.

Spark sorts the rows into ranges; each task writes its range as one file, so the files in the order of their names hold
the rows in order. They are written into a hidden folder beside, which gets its name when all of them are whole: a
folder of which something is missing is never taken for a result.
"""

from __future__ import annotations

import itertools
import os
import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from pystream.errors import PystreamError
from pystream.spark.error_causes import cause_of
from pystream.spark.rows.spark_types import plain_names, quoted
from pystream.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from pystream.query import Query

    #: Makes a writer of record batches, from a path and a schema.
    Open = Callable[[str, pa.Schema], Any]


def write_sorted(frame: DataFrame, query: Query, out: Path, schema: pa.Schema, open_writer: Open) -> int:
    """Write the result of `query` into the new folder `out`, in the types of `schema`; gives the number of rows.

    What is at `out` is replaced, once the new folder is whole. The folder has to be one that the driver and all
    executors see under the same path.
    """
    target = Path(os.path.realpath(out))
    hidden = hidden_beside(target)
    try:
        hidden.mkdir()
    except OSError as error:
        raise PystreamError(f"{out} cannot be written: {error.strerror}") from error
    try:
        rows = _write_parts(frame, query, hidden, schema, open_writer, target.suffix)
        replace_folder(hidden, target)
    except OSError as error:
        raise PystreamError(f"{out} cannot be written: {error.strerror}") from error
    except PySparkException as error:
        raise PystreamError(cause_of(error)) from error
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return rows


def write_streams(rows: DataFrame, out: Path) -> int:
    """Write prepared streams, each whole in one file and in order, into the folder `out`; gives the number of rows."""
    target = out.absolute()
    hidden = hidden_beside(target)
    try:
        with _whole_timestamps(rows.sparkSession):
            rows.sortWithinPartitions("stream", "position").write.parquet(str(hidden))
        counted: int = sum(pq.read_metadata(file).num_rows for file in hidden.glob("*.parquet"))
        replace_folder(hidden, target)
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
    return counted


@contextmanager
def _whole_timestamps(spark: SparkSession) -> Iterator[None]:
    """Let Spark write timestamps that say what they are: its default, INT96, has no zone for others who read it."""
    name = "spark.sql.parquet.outputTimestampType"
    before = spark.conf.get(name)
    spark.conf.set(name, "TIMESTAMP_MICROS")
    try:
        yield
    finally:
        spark.conf.set(name, before or "INT96")


def hidden_beside(target: Path) -> Path:
    """Where a folder is written before it gets its name."""
    return target.with_name(f".{target.name}.{os.getpid()}.writing")


def sort_columns(query: Query, names: list[str]) -> list[Any]:
    """The order of a result's rows: window, then key, null last. The first column is the window's start."""
    return [f.col(quoted(name)).asc_nulls_last() for name in (names[0], *query.key)]


def _write_parts(
    frame: DataFrame, query: Query, folder: Path, schema: pa.Schema, open_writer: Open, suffix: str
) -> int:
    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        task = TaskContext.get()
        if task is None:
            raise PystreamError("a part of the result is written by a task of Spark's only")
        first = next(batches, None)
        if first is None:
            yield _count(0)  # and no file
        else:
            name = folder / f"part-{task.partitionId():06d}{suffix}"
            yield _count(_write_part(itertools.chain([first], batches), name, schema, open_writer))

    ordered = plain_names(frame.orderBy(*sort_columns(query, schema.names)))
    counted = ordered.mapInArrow(write, "rows long").toArrow()
    if not any(folder.iterdir()):
        _write_part(iter([]), folder / f"part-000000{suffix}", schema, open_writer)
    return sum(counted.column("rows").to_pylist())


def _write_part(batches: Iterator[pa.RecordBatch], name: Path, schema: pa.Schema, open_writer: Open) -> int:
    """Write one file. A task that Spark runs twice writes the same rows twice, each time whole."""
    rows = 0
    with whole_file(name) as scratch, open_writer(str(scratch), schema) as writer:
        for batch in batches:
            writer.write(batch.rename_columns(schema.names).cast(schema))
            rows += batch.num_rows
    return rows


def write_one(frame: DataFrame, query: Query, out: Path, schema: pa.Schema, open_writer: Open) -> int:
    """Write the rows of `query` in order into one file, which gets its name when it is whole; gives their number."""

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield _count(_write_part(batches, out, schema, open_writer))

    whole = frame.repartition(1).sortWithinPartitions(*sort_columns(query, schema.names))
    return sum(plain_names(whole).mapInArrow(write, "rows long").toArrow().column("rows").to_pylist())


def _count(rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"rows": pa.array([rows], pa.int64())})


def replace_folder(folder: Path, target: Path) -> None:
    """Give the folder its name; what has it goes, as late as possible."""
    old = target.with_name(f".{target.name}.{os.getpid()}.old")
    if target.exists():
        target.replace(old)
    folder.replace(target)
    if old.is_dir():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
