"""`generate`: the made-up data sets as parquet, made by as many tasks as there are blocks.

A task makes one block of pystream.data.sample and writes it as one file under a hidden name; when all are written, the
driver gives them their names. A data set of which something is missing is not taken for a whole one: what is there of
it is hidden, and the next `generate` into the folder removes it. A task that Spark runs twice writes the same bytes,
and how many run side by side shows nowhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs
from pyspark.errors import PySparkException

from pystream.data.sample import DataSet
from pystream.errors import PystreamError
from pystream.spark.error_causes import cause_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

ROW_GROUP_ROWS = 1 << 16

#: How the files are called until all are there.
HIDDEN, ENDING = ".part-", ".writing"


def generate(
    spark: SparkSession,
    dataset: str,
    path: str,
    streams: int = 4,
    tuples: int = 1_000_000,
    seed: int = 1,
    span_s: int | None = None,
) -> None:
    """Write a data set, "EC" or "SC", as parquet files into the folder `path`, which must be empty or not there.

    Columns: ts, stream, position (within the stream), and those of the data set. `path` is a folder or a URI that
    pyarrow can open on the driver and on every executor. The bytes follow from the arguments alone. If it fails, on a
    full disk for instance, no file is there, and it can be called again.

    >>> generate(spark, "EC", f"{folder}/readings", streams=2, tuples=1000, seed=1)
    >>> spark.read.parquet(f"{folder}/readings").columns
    ['ts', 'stream', 'position', 'meter', 'cons']
    """
    whole = DataSet(dataset, streams, tuples, seed, span_s)
    check_empty(str(path))
    files, folder = open_path(str(path))
    files.create_dir(folder, recursive=True)
    _remove_hidden(files, folder)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for index in batch.column(0).to_pylist():
                _write_block(whole, index, str(path))
        yield from ()

    tasks = max(1, whole.blocks)
    try:
        spark.range(0, tasks, numPartitions=tasks).mapInArrow(write, "id long").count()
    except PySparkException as error:
        _remove_hidden(files, folder)
        raise PystreamError(cause_of(error)) from error
    for index in range(tasks):
        files.move(*_names(folder, index))


def check_empty(path: str) -> None:
    """Refuse a folder with something in it, but for what a `generate` that failed has left."""
    files, folder = open_path(path)
    if any(not _is_hidden(info) for info in files.get_file_info(fs.FileSelector(folder, allow_not_found=True))):
        raise PystreamError(f"{path} is not empty: generate writes into a new folder")


def _remove_hidden(files: fs.FileSystem, folder: str) -> None:
    for info in files.get_file_info(fs.FileSelector(folder)):
        if _is_hidden(info):
            files.delete_file(info.path)


def _is_hidden(info: fs.FileInfo) -> bool:
    return bool(info.base_name.startswith(HIDDEN) and info.base_name.endswith(ENDING))


def _names(folder: str, index: int) -> tuple[str, str]:
    """Under which names a block is written and found."""
    return f"{folder}/{HIDDEN}{index:06d}{ENDING}", f"{folder}/part-{index:06d}.parquet"


def open_path(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system and the path in it, for a URI or a plain path."""
    if "://" in path:
        opened: tuple[fs.FileSystem, str] = fs.FileSystem.from_uri(path)
        return opened
    return fs.LocalFileSystem(), path


def _write_block(whole: DataSet, index: int, path: str) -> None:
    files, folder = open_path(path)
    table = whole.block(index) if whole.blocks else whole.schema.empty_table()
    table = table.cast(pa.schema([f.with_nullable(False) for f in table.schema]))  # so that no reader looks for nulls
    hidden, name = _names(folder, index)
    try:
        with files.open_output_stream(hidden) as out:
            pq.write_table(table, out, row_group_size=ROW_GROUP_ROWS)
    except (OSError, pa.ArrowException) as error:
        raise PystreamError(f"{name} could not be written: {error}") from error
