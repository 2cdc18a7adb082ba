"""Files as inputs: parquet, CSV, Arrow IPC and JSON lines, found by path or glob, read batch by batch.

    for file in open_inputs("data/*.parquet", columns=["ts", "meter", "cons"]):
        print(file.path, file.schema)
        for batch in file:
            ...

A file is opened for its schema at once and for its rows when it is iterated, each time anew. What is in memory is one
row group, record batch or block of text and little more. Text has no schema: the first block decides the types.
"""

from __future__ import annotations

import glob
import os
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from pystream._inputs import file_formats
from pystream._inputs.column_names import missing_column
from pystream.errors import MissingFileError, PystreamError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


@dataclass(frozen=True)
class FileInput:
    """One file as one input: a schema, and record batches when it is iterated."""

    path: Path
    format: str
    #: The columns that are read.
    schema: pa.Schema
    #: Rows in the file, where it says so without being read (for progress).
    rows: int | None
    _columns: tuple[str, ...] | None = None  # None: all

    def select(self, columns: Sequence[str]) -> FileInput:
        """The same file with only these columns, in the order in which the file has them."""
        for name in columns:
            if name not in self.schema.names:
                raise SchemaError(f"{self.path}: {missing_column(name, self.schema.names)}")
        fields = [field for field in self.schema if field.name in columns]
        return replace(self, schema=pa.schema(fields), _columns=tuple(field.name for field in fields))

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        """The rows: at least one batch, which may be empty."""
        empty = True
        with _naming(self.path, self.format):
            for batch in file_formats.BY_NAME[self.format].read(self.path, self.schema, self._columns):
                empty = False
                yield batch
        if empty:
            yield pa.RecordBatch.from_pylist([], schema=self.schema)


def open_inputs(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    columns: Sequence[str] | None = None,
    format: str | None = None,
) -> list[FileInput]:
    """Open files as inputs: one for each path, and one for each file that a glob matches, sorted by name.

    `columns` are those to read, all unless given; one that a file does not have is a SchemaError. The format goes by
    the name's ending (.csv.gz and the like are unpacked) or the first bytes, unless `format` says it. A path that does
    not exist and a glob that matches nothing are a FileNotFoundError.
    """
    if format is not None and format not in file_formats.BY_NAME:
        raise ValueError(f"unknown format {format!r}; there are {', '.join(map(repr, file_formats.BY_NAME))}")
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    files = [_open(file, format) for path in given for file in _files(os.fspath(path))]
    return files if columns is None else [file.select(columns) for file in files]


def _files(path: str) -> list[Path]:
    """The files that a path or a glob stands for."""
    if "://" in path:
        raise MissingFileError(
            f"{path}: only files of this machine are read by path; open it with pyarrow.dataset.dataset(...) "
            "or Polars and give that as the input"
        )
    one = Path(path).expanduser()
    if one.is_dir():
        raise MissingFileError(
            f"{path} is a folder; a pattern such as {str(one / '*.parquet')!r} gives one input per file, "
            f"pyarrow.dataset.dataset({str(one)!r}) one input in all"
        )
    if one.exists():
        return [one]
    if not glob.has_magic(path):
        raise MissingFileError(f"there is no file {path!r}{_where(one)}")
    names = glob.glob(str(one), recursive=True)  # noqa: PTH207 - Path.glob takes no absolute patterns
    found = sorted(file for file in map(Path, names) if file.is_file())
    if not found:
        raise MissingFileError(f"no file matches {path!r}{_where(one)}")
    return found


def _where(path: Path) -> str:
    """Where a relative path was looked up; that is the usual reason why nothing is there."""
    return "" if path.is_absolute() else f" in {Path.cwd()}"


def _open(path: Path, format: str | None) -> FileInput:
    name = format or file_formats.of(path)
    with _naming(path, name):
        schema, rows = file_formats.BY_NAME[name].inspect(path)
        return FileInput(path, name, schema, rows)


@contextmanager
def _naming(path: Path, format: str) -> Iterator[None]:
    """Name the file in what goes wrong with it."""
    try:
        yield
    except PystreamError:
        raise
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SchemaError(f"{path}: cannot be read as {format}: {error}") from error
