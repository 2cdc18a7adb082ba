"""Where the rows of a result go: a file whose ending tells the format, standard output, or a table for people."""

from __future__ import annotations

import json
import math
import sys
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, Self

import click
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from rich.text import Text

from pystream.cli.console import stdout, table
from pystream.errors import SchemaError
from pystream.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: A sink that is a path or an open binary file.
Sink = str | IO[bytes]

#: Rows of a table from the beginning and from the end of the result.
FIRST, LAST = 30, 10


class Writer(Protocol):
    """What takes record batches."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch."""


class JsonLinesWriter:
    """One JSON object per row. JSON has no NaN and no infinity: both become null. Times are ISO text."""

    def __init__(self, sink: Sink, schema: pa.Schema) -> None:
        for field in schema:
            if pa.types.is_binary(field.type) or pa.types.is_fixed_size_binary(field.type):
                raise SchemaError(f"column {field.name!r} of type {field.type} cannot be written as JSON; take parquet")
        self._file = Path(sink).open("wb") if isinstance(sink, str) else sink  # noqa: SIM115 - closed in __exit__
        self._owned = isinstance(sink, str)

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch."""
        columns = [_for_json(column) for column in batch.columns]
        names = batch.schema.names
        lines = (json.dumps(dict(zip(names, row, strict=True))) for row in zip(*columns, strict=True))
        self._file.write("".join(f"{line}\n" for line in lines).encode())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._owned:
            self._file.close()


def _for_json(column: pa.Array) -> list[Any]:
    if pa.types.is_floating(column.type):
        return [v if v is not None and math.isfinite(v) else None for v in column.to_pylist()]
    if pa.types.is_list(column.type):
        return _of_lists(column, _for_json)
    plain = pa.types.is_integer(column.type) or pa.types.is_boolean(column.type)
    values: list[Any] = (column if plain else column.cast(pa.string())).to_pylist()
    return values


def _of_lists(column: pa.Array | pa.ChunkedArray, of: Callable[[Any], list[Any]]) -> list[Any]:
    """Apply what is for a column to the values of all lists together, and cut the result into lists again."""
    values, lengths = iter(of(pc.list_flatten(column))), pc.list_value_length(column).to_pylist()
    return [None if n is None else [*islice(values, n)] for n in lengths]


def _csv_writer(sink: Sink, schema: pa.Schema) -> Any:
    for field in schema:
        if pa.types.is_nested(field.type):
            raise SchemaError(
                f"column {field.name!r} of type {field.type} cannot be written as CSV; take parquet or JSON lines"
            )
    return pyarrow.csv.CSVWriter(sink, schema)


#: Writers by the ending of the file. They take a path or an open file, and the schema.
FORMATS: dict[str, Callable[[Sink, pa.Schema], Any]] = {
    ".parquet": pq.ParquetWriter,
    ".csv": _csv_writer,
    ".arrow": pa.ipc.new_file,
    ".jsonl": JsonLinesWriter,
}

#: Writers to standard output by what --format calls them: those that need not go back in the file.
STREAMS: dict[str, Callable[[Sink, pa.Schema], Any]] = {
    "csv": _csv_writer,
    "jsonl": JsonLinesWriter,
    "ipc": pa.ipc.new_stream,
}


@contextmanager
def to_file(out: Path, schema: pa.Schema) -> Iterator[Writer]:
    """Give a writer into a file that gets its name once it is complete."""
    with whole_file(out) as scratch, FORMATS[out.suffix](str(scratch), schema) as writer:
        yield writer


@contextmanager
def to_stdout(format: str, schema: pa.Schema) -> Iterator[Writer]:
    """Give a writer to standard output. If whoever reads it has enough, that is the end, without a word."""
    stream = sys.stdout.buffer
    try:
        with STREAMS[format](stream, schema) as writer:
            yield writer
        stream.flush()
    except BrokenPipeError:
        raise click.exceptions.Exit(1) from None


class Shown:
    """Keeps the first and the last rows, and prints them as a table."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._first: list[pa.RecordBatch] = []
        self._last: list[pa.RecordBatch] = []
        self.rows = 0

    def write(self, batch: pa.RecordBatch) -> None:
        """Take one batch."""
        room = max(0, FIRST - self.rows)
        self.rows += batch.num_rows
        self._first.append(batch.slice(0, room))
        last = _table(self._schema, [*self._last, batch.slice(room)])
        self._last = last.slice(max(0, last.num_rows - LAST)).to_batches()

    def print(self) -> None:
        """Print the table: all rows if they are few, else the first and the last."""
        listing = table()
        for field in self._schema:
            number = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
            listing.add_column(Text(_printable(field.name)), justify="right" if number else "left", no_wrap=True)
        for row in _texts(_table(self._schema, self._first)):
            listing.add_row(*row)
        if self.rows > FIRST + LAST:
            listing.add_row(*["..."] * len(self._schema))
        for row in _texts(_table(self._schema, self._last)):
            listing.add_row(*row)
        stdout().print(listing)


def _table(schema: pa.Schema, batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches, schema=schema)


def _texts(rows: pa.Table) -> list[tuple[Text, ...]]:
    columns = [[Text(text) for text in _column_texts(column)] for column in rows.columns]
    return list(zip(*columns, strict=True))


def _column_texts(column: pa.ChunkedArray) -> list[str]:
    if pa.types.is_floating(column.type):
        return ["" if v is None else _number(v) for v in column.to_pylist()]
    if pa.types.is_binary(column.type) or pa.types.is_fixed_size_binary(column.type):
        return ["" if v is None else v.hex() for v in column.to_pylist()]
    if pa.types.is_list(column.type):
        return ["" if v is None else f"[{', '.join(v)}]" for v in _of_lists(column, _column_texts)]
    return ["" if v is None else _printable(v) for v in column.cast(pa.string()).to_pylist()]


def _number(value: float) -> str:
    """At most four decimals where that says something; tables are for eyes, files for all digits."""
    if value == 0 or not math.isfinite(value) or not 1e-3 <= abs(value) < 1e15:
        return f"{value:.4g}"
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _printable(text: str) -> str:
    """The text without what would move the cursor of a terminal."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
