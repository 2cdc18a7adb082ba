"""What is in a file, and how its rows are read: parquet by row groups, Arrow IPC by record batches, text as a whole.

A piece is the least that a task reads. The driver looks at pieces (`inspect`), the executors read them (`read`); both
have the file system and the path, nothing else.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from pystream._inputs.file_formats import json_batches, json_schema
from pystream.errors import PystreamError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from pyarrow import fs

    from pystream.spark.files.listing import File

#: Rows handed over at a time: a few columns of so many rows stay in the processor's cache.
BATCH_ROWS = 1 << 16

#: What a value of variable length is taken for where nothing says it.
BYTES_GUESSED = 16


@dataclass(frozen=True)
class Piece:
    """Row groups, record batches or a whole file; `low` and `high` bound its timestamps if the file says so."""

    file: File
    groups: tuple[int, ...]
    rows: int | None  # None: only reading tells
    weight: int  # bytes of the needed columns once they are read
    low: int | None = None
    high: int | None = None


class Format(Protocol):
    """How a format is looked at and read."""

    def inspect(
        self, files: fs.FileSystem, file: File, columns: Collection[str] | None, ts: str
    ) -> tuple[pa.Schema, list[Piece]]:
        """The columns of a file and its pieces; `columns` are those that will be read, None for all.

        Of those the schema says that there are no nulls, where that is known.
        """

    def read(
        self, files: fs.FileSystem, file: File, groups: Sequence[int], schema: pa.Schema, ts: str
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The rows of the pieces, those columns of `schema` that the file has; with the number in it of the first."""


class Parquet:
    """Row groups; their statistics bound the timestamps."""

    def inspect(
        self, files: fs.FileSystem, file: File, columns: Collection[str] | None, ts: str
    ) -> tuple[pa.Schema, list[Piece]]:
        """See Format."""
        with files.open_input_file(file.path) as source, pq.ParquetFile(source) as opened:
            schema, metadata = opened.schema_arrow, opened.metadata
            used = [f for f in schema if columns is None or f.name in columns]
            leaves = [metadata.schema.column(i).path + "." for i in range(len(metadata.schema))]
            indices = {f.name: [i for i, leaf in enumerate(leaves) if leaf.startswith(f"{f.name}.")] for f in used}
            bounds = _Bounds(metadata, schema, ts)
            groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
            pieces = []
            for i, group in enumerate(groups):
                weight = sum(_weight(f.type, group, indices[f.name]) for f in used)
                pieces.append(Piece(file, (i,), group.num_rows, weight, *bounds.of(group)))
            full = {name for name, own in indices.items() if _has_no_nulls(groups, own)}
            fields = [f.with_nullable(f.nullable and f.name not in full) for f in schema]
            return pa.schema(fields), [p for p in pieces if p.rows]

    def read(
        self, files: fs.FileSystem, file: File, groups: Sequence[int], schema: pa.Schema, ts: str
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """See Format. One row group after the other, so that no more than one is in memory."""
        with files.open_input_file(file.path) as source, pq.ParquetFile(source) as opened:
            names = [name for name in opened.schema_arrow.names if name in schema.names]
            sizes = [opened.metadata.row_group(i).num_rows for i in range(opened.metadata.num_row_groups)]
            bounds = _Bounds(opened.metadata, opened.schema_arrow, ts)
            for group in groups:
                row = sum(sizes[:group])
                for batch in opened.iter_batches(BATCH_ROWS, [group], names, use_threads=False):
                    bounds.check(batch, opened.metadata.row_group(group), row)
                    yield row, batch
                    row += batch.num_rows


class _Bounds:
    """The least and the greatest timestamp of row groups, where the file says them in the type of the column."""

    def __init__(self, metadata: pq.FileMetaData, schema: pa.Schema, ts: str) -> None:
        self._ts = ts
        self._type = schema.field(ts).type if ts in schema.names else None
        self._index = next((i for i in range(len(metadata.schema)) if metadata.schema.column(i).path == ts), None)
        self._unit: str | None = None
        if self._index is not None and pa.types.is_timestamp(self._type):
            logical = json.loads(metadata.schema.column(self._index).logical_type.to_json())
            units = {"milliseconds": "ms", "microseconds": "us", "nanoseconds": "ns"}
            self._unit = units.get(logical.get("timeUnit", ""))

    def of(self, group: pq.RowGroupMetaData) -> tuple[int | None, int | None]:
        statistics = None if self._index is None else group.column(self._index).statistics
        if statistics is None or not statistics.has_min_max:
            return None, None
        if self._unit == getattr(self._type, "unit", "") or pa.types.is_signed_integer(self._type):
            return int(statistics.min_raw), int(statistics.max_raw)
        return None, None

    def check(self, batch: pa.RecordBatch, group: pq.RowGroupMetaData, row: int) -> None:
        """Refuse rows that belie the statistics: the task that had to read them may have passed them by."""
        low, high = self.of(group)
        if low is None or high is None or not batch.num_rows:
            return
        ts = batch.column(self._ts)
        ticks = ts if ts.type == pa.int64() else ts.cast(pa.int64())  # which takes a while even if it is one already
        least, greatest = (v.as_py() for v in pc.min_max(ticks).values())
        if least is not None and not low <= least <= greatest <= high:
            rows = f"rows from {row} to {row + batch.num_rows - 1}"
            raise PystreamError(
                f"{rows} have timestamps from {least} to {greatest}, the statistics say {low} to {high}"
            )


def groups_kept(
    files: fs.FileSystem, file: File, where: pc.Expression, schema: pa.Schema, values: dict[str, pa.Scalar]
) -> set[int]:
    """The row groups of a parquet file that may have rows for which an expression holds, by their statistics.

    `schema` has the columns of the file and those of its path, whose values are `values`.
    """
    known = [pc.field(n).is_null() if v.as_py() is None else pc.field(n) == v for n, v in values.items()]
    path = reduce(and_, known, pc.scalar(True))
    fragment = ds.ParquetFileFormat().make_fragment(file.path, files, partition_expression=path)
    return {group.id for part in fragment.split_by_row_group(where, schema) for group in part.row_groups}


def _has_no_nulls(groups: list[pq.RowGroupMetaData], indices: list[int]) -> bool:
    """Whether the statistics say so of a column, which is not nested."""
    if len(indices) != 1:
        return False
    all_statistics = (group.column(indices[0]).statistics for group in groups)
    return all(s is not None and s.has_null_count and s.null_count == 0 for s in all_statistics)


def _weight(type: pa.DataType, group: pq.RowGroupMetaData, indices: list[int]) -> int:
    """The bytes of a column of a row group in memory, which encoding may have made far fewer in the file."""
    try:
        return int(group.num_rows * type.bit_width // 8)
    except ValueError:  # of variable length
        return sum(group.column(i).total_uncompressed_size for i in indices)


class ArrowFile:
    """Record batches of the file format (also known as Feather)."""

    def inspect(
        self,
        files: fs.FileSystem,
        file: File,
        columns: Collection[str] | None,
        ts: str,  # noqa: ARG002 - nothing in the file bounds timestamps
    ) -> tuple[pa.Schema, list[Piece]]:
        """See Format. The bytes of single columns are not known; those of the file are shared out by their widths."""
        with files.open_input_file(file.path) as source, pa.ipc.open_file(source) as opened:
            schema, batches = opened.schema, opened.num_record_batches
        whole = sum(_width(f.type) for f in schema) or 1
        used = sum(_width(f.type) for f in schema if columns is None or f.name in columns)
        weight = file.size * used // whole // max(1, batches)
        return schema, [Piece(file, (i,), None, weight) for i in range(batches)]

    def read(
        self,
        files: fs.FileSystem,
        file: File,
        groups: Sequence[int],
        schema: pa.Schema,
        ts: str,  # noqa: ARG002 - as above
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """See Format. Batches do not say which rows they hold: rows are numbered from the first group that is read."""
        with files.open_input_file(file.path) as source:
            names = pa.ipc.open_file(source).schema.names
            fields = [i for i, name in enumerate(names) if name in schema.names]
            options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
            with pa.ipc.open_file(source, options=options) as opened:
                row = 0
                for group in groups:
                    batch = opened.get_batch(group)
                    for start in range(0, batch.num_rows, BATCH_ROWS):
                        yield row + start, batch.slice(start, BATCH_ROWS)
                    row += batch.num_rows


class Csv:
    """Text, of which only the whole file is a piece. The first block decides the types of the columns."""

    def inspect(
        self,
        files: fs.FileSystem,
        file: File,
        columns: Collection[str] | None,
        ts: str,  # noqa: ARG002 - as above
    ) -> tuple[pa.Schema, list[Piece]]:
        """See Format."""
        with files.open_input_stream(file.path) as source, pa.csv.open_csv(source) as opened:
            schema = opened.schema
        used = len([name for name in schema.names if columns is None or name in columns])
        return schema, [Piece(file, (0,), None, file.size * used // max(1, len(schema)))]

    def read(
        self,
        files: fs.FileSystem,
        file: File,
        groups: Sequence[int],  # noqa: ARG002 - there is one
        schema: pa.Schema,
        ts: str,  # noqa: ARG002 - as above
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """See Format."""
        with files.open_input_stream(file.path) as source, pa.csv.open_csv(source) as opened:
            names = [name for name in opened.schema.names if name in schema.names]
        convert = pa.csv.ConvertOptions(column_types=schema, include_columns=names)
        with files.open_input_stream(file.path) as source:
            row = 0
            for batch in pa.csv.open_csv(source, convert_options=convert):
                yield row, batch
                row += batch.num_rows


class JsonLines:
    """Text, one object in each line; as with CSV, the whole file is a piece, and the first block decides the types."""

    def inspect(
        self,
        files: fs.FileSystem,
        file: File,
        columns: Collection[str] | None,
        ts: str,  # noqa: ARG002 - as above
    ) -> tuple[pa.Schema, list[Piece]]:
        """See Format. An empty file has no columns, and no rows."""
        if not file.size:
            return pa.schema([]), []
        schema = json_schema(lambda: files.open_input_stream(file.path))
        used = len([name for name in schema.names if columns is None or name in columns])
        return schema, [Piece(file, (0,), None, file.size * used // max(1, len(schema)))]

    def read(
        self,
        files: fs.FileSystem,
        file: File,
        groups: Sequence[int],  # noqa: ARG002 - there is one
        schema: pa.Schema,
        ts: str,  # noqa: ARG002 - as above
    ) -> Iterator[tuple[int, pa.RecordBatch]]:
        """See Format."""
        given = file.hive()
        fields = [f for f in schema if f.name not in given]
        with files.open_input_stream(file.path) as source:
            row = 0
            for batch in json_batches(source, pa.schema(fields)):
                yield row, batch
                row += batch.num_rows


def _width(type: pa.DataType) -> int:
    try:
        return int(max(1, type.bit_width // 8))
    except ValueError:
        return BYTES_GUESSED


BY_NAME: dict[str, Format] = {"parquet": Parquet(), "arrow": ArrowFile(), "csv": Csv(), "jsonl": JsonLines()}


@contextmanager
def naming(file: File) -> Iterator[None]:
    """Name the file in what goes wrong with it."""
    try:
        yield
    except PystreamError as error:
        if file.path in str(error):
            raise
        kind = SchemaError if isinstance(error, SchemaError) else PystreamError
        raise kind(f"{file.path}: {error}") from error
    except (OSError, pa.ArrowException, KeyError, ValueError) as error:
        raise PystreamError(f"{file.path}: {error}") from error
