"""The files of a command line as inputs of a query: only the columns that it needs, and counted on the way."""

from __future__ import annotations

import re
import shutil
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pystream._inputs.column_names import missing_column
from pystream._inputs.file_inputs import open_inputs
from pystream._inputs.schemas import needed, required
from pystream.errors import DisorderError, PystreamError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from pystream._inputs.file_inputs import FileInput
    from pystream.query import Query

#: Standard input or output.
STANDARD = "-"

#: What --format calls the formats of pystream._inputs.file_inputs.
SOURCES = {"csv": "csv", "jsonl": "jsonl", "ipc": "arrow"}


class FileStreams:
    """The inputs, each an iterable of record batches; `streams` has them in the order of the command line."""

    def __init__(self, files: Sequence[FileInput], query: Query) -> None:
        self.streams = [_Stream(self, file, query) for file in files]
        self.progress: Callable[[int], None] = lambda _rows: None  # told how many rows have been handed over
        self._files = files

    @property
    def rows(self) -> int | None:
        """How many there are, if all files say so without being read."""
        known = [file.rows for file in self._files if file.rows is not None]
        return sum(known) if len(known) == len(self._files) else None

    @property
    def rows_read(self) -> int:
        """How many have been handed over."""
        return sum(stream.rows for stream in self.streams)

    @contextmanager
    def naming(self) -> Iterator[None]:
        """Say the name of a file where an error says the number of an input."""
        try:
            yield
        except (DisorderError, SchemaError) as error:
            found = re.match(r"input (\d+)\b", str(error))
            if found is None:
                raise
            text = f"{self._files[int(found[1])].path}{str(error)[found.end() :]}"
            if isinstance(error, DisorderError) and "is below" in text:
                text = (
                    text.split("; ", maxsplit=1)[0] + "; --sort sorts each file first"
                )  # in place of what to do in Python
            raise PystreamError(text) from error


class _Stream:
    """The rows of one file."""

    def __init__(self, owner: FileStreams, file: FileInput, query: Query) -> None:
        self._owner = owner
        self._file = file.select(_columns(query, file))
        self.rows = 0

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._file:
            yield batch
            self.rows += batch.num_rows
            self._owner.progress(batch.num_rows)


def _columns(query: Query, file: FileInput) -> list[str]:
    """Those that the query needs."""
    for name in required(query):
        if name not in file.schema.names:
            raise SchemaError(f"{file.path}: {missing_column(name, file.schema.names)}")
    return needed(query, file.schema.names)


@contextmanager
def opened(files: Sequence[str], format: str | None) -> Iterator[list[FileInput]]:
    """Open the files; standard input goes to a temporary file first, so that it is read as any other."""
    with tempfile.TemporaryDirectory(prefix="pystream-") as folder:
        found: list[FileInput] = []
        for file in files:
            if file == STANDARD:
                spooled = Path(folder, "standard input")
                with spooled.open("wb") as copy:
                    shutil.copyfileobj(sys.stdin.buffer, copy)
                found += open_inputs(spooled, format=SOURCES[format or "csv"])
            else:
                found += open_inputs(file)
        yield found
