"""`aggregate_new_files`: a streaming query over the files that come into a folder, which the executors read themselves.

Spark finds the files and remembers in the checkpoint which of them it has had: its source for binary files, of which
only the names are taken. The executors read them with Arrow, as in files/, so no row crosses into the JVM before it
is in a window; from there on everything is as in streaming.py.
"""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyarrow import fs
from pyspark.sql import functions as f

from pystream.errors import PystreamError
from pystream.spark.files.file_source import FILE, ROW, Source, look, plain
from pystream.spark.files.formats import BY_NAME, naming
from pystream.spark.files.listing import File, Path, format_of, list_files, open_path
from pystream.spark.rows.needed_columns import columns_used, order_columns
from pystream.spark.stream.noted_files import NotedFiles, place_of, tell_tasks
from pystream.spark.stream.orders import FOUND
from pystream.spark.stream.parcels import pack
from pystream.spark.stream.streaming import layout_of, windows

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pystream.query import Query


def aggregate_new_files(
    spark: SparkSession,
    query: Query,
    path: Path,
    stream: str = "stream",
    position: str | None = "position",
    *,
    format: str | None = None,
    filesystem: Any = None,
    schema: pa.Schema | None = None,
    streams: int | Sequence[int] | None = None,
    late: str = "error",
    shards: int | None = None,
    metrics: str = "pystream",
    orders: Path | None = None,
    checkpoint: Path | None = None,
    **options: Any,
) -> DataFrame:
    """Aggregate the files of a folder, those that are there and those that will come, as a streaming DataFrame.

    The same as `aggregate` over `spark.readStream.parquet(path)`, and faster, because the executors read the files with
    Arrow: parquet, Arrow IPC or CSV, as in `aggregate_files`, which also tells what `format`, `filesystem`, `stream`
    and `position` are. `streams`, `late`, `shards`, `metrics` and `orders` are those of `aggregate`. `path` is a folder
    or a glob that both Spark and pyarrow can open. The first of the files that are there tells the types of the
    columns, in which all others are read; `schema` tells them where there is none yet.

    `options` are those of Spark's file source: `maxFilesPerTrigger=4`, `pathGlobFilter="*.parquet"`. It takes files in
    the order of their times of change, each once, so a file has to be whole when it appears: write it elsewhere, then
    move it. A file is read by one task. One that is missing, changed or unreadable fails the query with its name,
    before anything of its micro-batch is written. (Spark's own sources leave out files that have gone since they were
    noted.) With Spark Connect, say where the `checkpoint` of the query will be: missing files are noticed by it.

    >>> generate(spark, "EC", f"{folder}/readings", streams=2, tuples=1000)
    >>> query = ps.Query(ps.Window(60), key=None, aggregates={"n": ps.count()})
    >>> windows = aggregate_new_files(spark, query, f"{folder}/readings", streams=2)
    >>> windows.isStreaming, windows.columns
    (True, ['ts', 'n'])
    """
    if {FILE, ROW} & {stream, position}:
        raise ValueError(f"{FILE!r} and {ROW!r} are for aggregate_files: files that are still to come have no number")
    order = [*order_columns(query, stream, position), stream]
    source = _source(query, path, order, format, filesystem, schema)
    layout = layout_of(spark, query, source.schema, stream, position, streams, late, shards)
    reader = spark.readStream.format("binaryFile").schema(FOUND).options(**options)
    found = reader.load(os.fspath(path)).select("path", "length", f.unix_millis("modificationTime").alias("modified"))
    tell_tasks(spark)
    noted = NotedFiles(_fixed(path, filesystem), None if checkpoint is None else os.fspath(checkpoint))

    def packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read: list[str] = []
        yield from pack(layout, rows(source, batches, read))
        if read:
            yield noted.parcel(layout, read)

    return windows(found, layout, metrics, orders, packed, noted)


def _fixed(path: Path, filesystem: Any) -> str:
    """The path in pyarrow's file system up to where it is a pattern."""
    return re.split(r"[*?\[{]", open_path(os.fspath(path), filesystem)[1], maxsplit=1)[0].rstrip("/")


def _source(
    query: Query, path: Path, order: list[str], format: str | None, filesystem: Any, schema: pa.Schema | None
) -> Source:
    if schema is not None:
        columns = columns_used(schema.names, query, order, "the schema")
        fields = [pa.field(name, plain(schema.field(name).type), schema.field(name).nullable) for name in columns]
        return Source(open_path(os.fspath(path), filesystem)[0], format, query.ts, pa.schema(fields))
    files, listed = list_files(path, filesystem)
    source = look(query, listed[0].path, order, format, files)[0]
    return replace(source, schema=pa.schema([f.with_nullable(True) for f in source.schema]))  # others may have nulls


def rows(source: Source, batches: Iterator[pa.RecordBatch], read: list[str]) -> Iterator[pa.RecordBatch]:
    """The rows of the files that Spark has found; their paths are added to those that were `read`."""
    for batch in batches:
        for found in batch.to_pylist():
            file = _as_found(source.files, **found)
            read.append(file.path)
            with naming(file):
                format = BY_NAME[format_of(file.path, source.format)]
                pieces = format.inspect(source.files, file, source.schema.names, source.ts)[1]
            yield from source.rows_of({"file": vars(file), "groups": [g for p in pieces for g in p.groups]})


def _as_found(files: fs.FileSystem, path: str, length: int, modified: int) -> File:
    """The file, if it is still the one that Spark has found; not all file systems know more than seconds."""
    place = place_of(path)
    info = files.get_file_info(place)
    if info.type != fs.FileType.File:
        raise PystreamError(f"{place}: the file is gone since Spark found it")
    then, now = modified // 1000, int(info.mtime_ns or 0) // 10**9
    if info.size != length or now not in (0, then):
        raise PystreamError(
            f"{place}: the file changed since Spark found it: {length} bytes then and {info.size} now, "
            f"modified {then} and {now} (s since 1970)"
        )
    return File(0, place, info.size, int(info.mtime_ns or 0))
