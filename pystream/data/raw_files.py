"""Files of raw records, read alike by this process and by Spark's executors, so that both see the same values.

In text files the column with the time stays text: what is a time, and in which zone, is for `prepare` to say. A field
of text that is empty is null, as Spark has it.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pystream._inputs.column_names import missing_column
from pystream._inputs.file_inputs import FileInput, open_inputs
from pystream.errors import MissingFileError, PystreamError, SchemaError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

#: Formats whose types are guessed from their first lines.
TEXT = ("csv", "tsv", "jsonl")


@dataclass(frozen=True)
class RawFiles:
    """The files and the columns that they have in common."""

    files: tuple[FileInput, ...]
    schema: pa.Schema

    def read(self, file: FileInput) -> Iterator[pa.RecordBatch]:
        """The records of one of the files, in the common types."""
        own = replace(file, schema=pa.schema([self.schema.field(name) for name in file.schema.names]))
        for batch in own if file.format in TEXT else file:
            arrays = [_column(batch, field, file) for field in self.schema]
            yield pa.RecordBatch.from_arrays(arrays, schema=self.schema)

    def table(self) -> pa.Table:
        """All records."""
        return pa.Table.from_batches((b for file in self.files for b in self.read(file)), self.schema)


def raw_paths(paths: Sequence[str | os.PathLike[str]]) -> list[str]:
    """The files that paths, folders and globs stand for, each once, in this order; a folder's and a glob's by name."""
    found: list[str] = []
    for path in map(str, paths):
        if Path(path).is_dir():
            found += sorted(str(p) for p in _inside(Path(path)) if _counts(p))
        elif not Path(path).exists() and glob.has_magic(path):
            found += sorted(p for p in glob.glob(path, recursive=True) if _counts(Path(p)))  # noqa: PTH207 - absolute
        else:
            found.append(path)
    return list(dict.fromkeys(found))


def _inside(folder: Path) -> list[Path]:
    """What is in a folder. One with folders in it is refused: what is in these would be left out without a word."""
    inside = list(folder.iterdir())
    deeper = min((p.name for p in inside if p.is_dir() and not _hidden(p)), default=None)
    if deeper is not None:
        raise PystreamError(
            f"{folder} has folders in it, such as {deeper!r}, which are not looked into: give a pattern such as "
            f"{str(folder / '**' / '*.csv')!r}"
        )
    return inside


def _counts(path: Path) -> bool:
    return path.is_file() and not _hidden(path)


def _hidden(path: Path) -> bool:
    return path.name.startswith((".", "_"))


def open_raw(
    paths: Sequence[str | os.PathLike[str]],
    ts: str,
    format: str | None = None,
    types: Mapping[str, pa.DataType] | None = None,
) -> RawFiles:
    """Open files, folders and globs; `types` are those of columns where the first lines of text would mislead."""
    files = open_inputs(raw_paths(paths), format=format)
    if not files:
        raise MissingFileError(f"there are no files in {', '.join(map(str, paths))}")
    schema = pa.schema([])
    for file in files:
        own = pa.schema([_field(field, file, ts, types or {}) for field in file.schema])
        try:
            schema = pa.unify_schemas([schema, _as_text(own, schema, ts)], promote_options="permissive")
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise SchemaError(f"{file.path}: its columns do not go with those of the files before: {error}") from error
    if ts not in schema.names:
        raise SchemaError(missing_column(ts, schema.names))
    return RawFiles(tuple(files), schema)


def _field(field: pa.Field, file: FileInput, ts: str, types: Mapping[str, pa.DataType]) -> pa.Field:
    type = types.get(field.name, field.type)
    if pa.types.is_dictionary(type):
        type = type.value_type
    if field.name == ts and file.format in TEXT and not pa.types.is_integer(type):
        type = pa.string()
    return pa.field(field.name, type)


def _as_text(own: pa.Schema, before: pa.Schema, ts: str) -> pa.Schema:
    """The columns, with times as text if those of the files before are."""
    i = own.get_field_index(ts)
    text = i >= 0 and ts in before.names and pa.types.is_string(before.field(ts).type)
    return own.set(i, pa.field(ts, pa.string())) if text else own


def _column(batch: pa.RecordBatch, field: pa.Field, file: FileInput) -> pa.Array:
    if field.name not in batch.schema.names:
        return pa.nulls(batch.num_rows, field.type)
    column = batch.column(field.name)
    if column.type != field.type:
        column = column.cast(field.type)
    if pa.types.is_string(field.type) and file.format in ("csv", "tsv"):
        import pyarrow.compute as pc  # noqa: PLC0415 - slow to import

        return pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    return column
