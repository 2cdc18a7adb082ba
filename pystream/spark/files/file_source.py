"""Files as one source of rows: what the driver learns from them, and how executors read them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import fs

from pystream.errors import PystreamError, SchemaError
from pystream.spark.files import splits
from pystream.spark.files.formats import BY_NAME, Piece, groups_kept, naming
from pystream.spark.files.listing import File, Path, format_of, list_files
from pystream.spark.files.partition_values import common_type, value_of
from pystream.spark.rows.needed_columns import columns_used
from pystream.spark.rows.spark_types import to_spark

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pystream.query import Query

    Looked = tuple[pa.Schema, list[Piece]]

#: Names that stand for where a row lies: the number of its file in the order of paths, and a number that rises from
#: row to row and from file to file.
FILE, ROW = "__file", "__row"
ROW_BITS = 40

#: Files looked at side by side where most of the time is waiting for the file system.
LOOKERS = 16


def look(
    query: Query,
    path: Path | Sequence[Path],
    order: list[str],
    format: str | None,
    filesystem: Any,
    where: pc.Expression | None = None,
    zone: str = "UTC",
) -> tuple[Source, list[Piece]]:
    """What the driver learns from the files: how to read them, and their pieces in the order of paths.

    Only rows for which `where` holds are read, and no pieces that are known to have none. `zone` is that of timestamps
    in names of folders.
    """
    files, listed = list_files(path, filesystem)
    names = _names(files, listed[0], format)
    here = [*names, *(name for name in (FILE, ROW) if name in order or name in str(where))]
    needed = columns_used(here, query, order, listed[0].path)
    columns = [c for c in here if c in needed or c in str(where)]
    looked = _for_each(files, listed, lambda file: _look_at(files, file, format, columns, query.ts))
    hive = _hive_types(listed)
    schema = pa.schema([])
    for file, (found, _) in zip(listed, looked, strict=True):
        schema = _together(schema, [_field(c, found, hive, file) for c in columns], file)
    source = Source(files, format, query.ts, schema, where, zone)
    source.check_filter()
    pieces = []
    for file, (found, parts) in zip(listed, looked, strict=True):
        pieces += source.kept(file, found, _in_unit(parts, found, schema, query.ts))
    return source, splits.join_files(pieces) if ROW in columns and source.joined(listed) else pieces


def _for_each(files: fs.FileSystem, listed: list[File], look_at: Callable[[File], Looked]) -> list[Looked]:
    if isinstance(files, fs.LocalFileSystem):  # where nothing is waited for, threads only cost
        return [look_at(file) for file in listed]
    with ThreadPoolExecutor(LOOKERS) as pool:
        return list(pool.map(look_at, listed))


def _look_at(files: fs.FileSystem, file: File, format: str | None, columns: list[str], ts: str) -> Looked:
    with naming(file):
        return BY_NAME[format_of(file.path, format)].inspect(files, file, columns, ts)


def _in_unit(pieces: list[Piece], found: pa.Schema, schema: pa.Schema, ts: str) -> list[Piece]:
    """Pieces without bounds of timestamps if those count another unit than the schema of all files."""
    own, common = (getattr(s.field(ts).type if ts in s.names else None, "unit", None) for s in (found, schema))
    return pieces if own == common else [replace(p, low=None, high=None) for p in pieces]


def _names(files: fs.FileSystem, file: File, format: str | None) -> list[str]:
    """The columns of a file, those of its path included."""
    return list(dict.fromkeys([*_look_at(files, file, format, [], "")[0].names, *file.hive()]))


def _hive_types(listed: list[File]) -> dict[str, pa.DataType]:
    """The types of the columns that paths give."""
    values: dict[str, set[str]] = {}
    for file in listed:
        for name, value in file.hive().items():
            values.setdefault(name, set()).update([] if value is None else [value])
    return {name: common_type(texts) for name, texts in values.items()}


def _field(name: str, schema: pa.Schema, hive: dict[str, pa.DataType], file: File) -> pa.Field:
    """A column of a file: its own, that of its path, or where its rows lie."""
    if len(schema.get_all_field_indices(name)) == 1:
        return pa.field(name, plain(schema.field(name).type), schema.field(name).nullable)
    if name in file.hive():
        return pa.field(name, hive[name])
    if name in (FILE, ROW):
        return pa.field(name, pa.int64())
    what = "appears more than once" if name in schema.names else "is missing"
    raise SchemaError(f"{file.path}: column {name!r} {what}")


def plain(type: pa.DataType) -> pa.DataType:
    """The type without what differs from file to file and shows nowhere: dictionaries, the name of a time zone."""
    if pa.types.is_dictionary(type):
        return plain(type.value_type)
    return pa.timestamp(type.unit, "UTC") if pa.types.is_timestamp(type) and type.tz else type


def _together(schema: pa.Schema, fields: list[pa.Field], file: File) -> pa.Schema:
    """The schema of all files so far and this one."""
    own = pa.schema(fields)
    if own == schema or not len(schema):
        return own
    try:
        return pa.unify_schemas([schema, own], promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(f"{file.path}: its columns do not go with those of the files before: {error}") from error


@dataclass(frozen=True)
class Source:
    """How files are read; executors get a copy."""

    files: fs.FileSystem
    format: str | None
    ts: str
    schema: pa.Schema
    where: pc.Expression | None = None
    zone: str = "UTC"

    def check_filter(self) -> None:
        """Refuse a filter that does not fit the columns."""
        if self.where is None:
            return
        if not isinstance(self.where, pc.Expression):
            raise TypeError(f"where is an expression such as pc.field('meter') == 7, not {self.where!r}")
        try:
            self.schema.empty_table().filter(self.where)
        except (pa.ArrowException, KeyError, TypeError) as error:
            raise SchemaError(f"where={self.where}: {str(error).splitlines()[0]}") from error

    def kept(self, file: File, found: pa.Schema, pieces: list[Piece]) -> list[Piece]:
        """The pieces that may have rows for which the filter holds, by the folders' names and parquet's statistics.

        `found` is the schema of the file itself. Where a type differs from that in which rows are filtered, the
        statistics tell nothing.
        """
        used = [f for f in self.schema if f.name in str(self.where)]
        given = file.hive()
        own = [f.name in given or (f.name in found.names and found.field(f.name).type == f.type) for f in used]
        if self.where is None or not pieces or not all(own) or format_of(file.path, self.format) != "parquet":
            return pieces
        values = {
            name: value_of(given[name], self.schema.field(name).type, self.zone)
            for name in given
            if name in self.schema.names
        }
        groups = groups_kept(self.files, file, self.where, self.schema, values)
        return [p for p in pieces if groups.issuperset(p.groups)]

    def joined(self, listed: list[File]) -> bool:
        """Whether rows can be numbered only if files are read as a whole."""
        return any(format_of(file.path, self.format) == "arrow" for file in listed)

    def rows(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """All rows of the tasks, batch by batch."""
        for task in unpacked(tasks):
            for part in task["parts"]:
                yield from self.rows_of(part)

    def spark_rows(self, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same in Spark's types."""
        return map(to_spark, self.rows(tasks))

    def rows_of(self, part: dict[str, Any]) -> Iterator[pa.RecordBatch]:
        """The rows of one part. What goes wrong with a file is told with its name."""
        file = File(**part["file"])
        with naming(file):
            yield from self._read(file, part["groups"])

    def _read(self, file: File, groups: list[int]) -> Iterator[pa.RecordBatch]:
        file.check_unchanged(self.files)
        format = BY_NAME[format_of(file.path, self.format)]
        given = file.hive()
        inside = pa.schema([f for f in self.schema if f.name not in (FILE, ROW)])
        for row, batch in format.read(self.files, file, groups, inside, self.ts):
            arrays = [self._column(f, batch, file, row, given) for f in self.schema]
            rows = pa.RecordBatch.from_arrays(arrays, schema=self.schema)
            yield rows if self.where is None else rows.filter(self.where)
        file.check_unchanged(self.files)  # it may have become another one while it was read

    def _column(
        self, field: pa.Field, batch: pa.RecordBatch, file: File, row: int, given: dict[str, str | None]
    ) -> pa.Array:
        if field.name in batch.schema.names:
            array = batch.column(field.name)
            array = array if array.type == field.type else array.cast(field.type)  # a dictionary may have a null in it
            if array.null_count and not field.nullable:
                raise PystreamError(f"column {field.name!r} has nulls, the file says that it has none")
            return array
        if field.name in given:
            return pa.repeat(value_of(given[field.name], field.type, self.zone), batch.num_rows)
        if field.name == FILE:
            return pa.repeat(pa.scalar(file.number, field.type), batch.num_rows)
        if field.name == ROW:
            return pa.array(np.arange(row, row + batch.num_rows) + (file.number << ROW_BITS))
        raise SchemaError(f"column {field.name!r} is missing")


def unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[dict[str, Any]]:
    """Tasks as rows of `file_tasks.TASKS`, one by one."""
    for batch in batches:
        yield from batch.to_pylist()
