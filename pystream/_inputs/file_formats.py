"""How the rows of a file are read, format by format: its schema first, then its batches with the columns asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from pystream.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

#: Rows of a batch of parquet, and bytes of a block of text: little memory, and Python's share of the work is small.
BATCH_ROWS = 1 << 16
BLOCK_BYTES = 1 << 22

#: Bytes in which the header of a text file is looked for.
HEADER_BYTES = 1 << 16

#: Endings of files that are unpacked on the way.
PACKED = (".gz", ".bz2", ".zst", ".lz4")

#: What text that does not fit the types of the first block needs.
TEXT_HINT = (
    f"; the first {BLOCK_BYTES >> 20} MB of a text file decide the types of its columns; "
    "give a reader with types of your own, such as pyarrow.csv.open_csv(path, convert_options=...)"
)


class Format(Protocol):
    """What every format can do."""

    def inspect(self, path: Path) -> tuple[pa.Schema, int | None]:
        """The schema of a file, and its rows if it says how many."""

    def read(self, path: Path, schema: pa.Schema, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """The batches, with these columns only (None: all). `schema` is what `inspect` found of them."""


class Parquet:
    """Row group by row group."""

    def inspect(self, path: Path) -> tuple[pa.Schema, int | None]:
        """See Format."""
        import pyarrow.parquet as pq  # noqa: PLC0415 - slow to import; the same below

        with pq.ParquetFile(path) as opened:
            return opened.schema_arrow, opened.metadata.num_rows

    def read(self, path: Path, schema: pa.Schema, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """See Format."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        with pq.ParquetFile(path, pre_buffer=False) as opened:  # or all of the file would be held at the end
            names = None if columns is None else schema.names
            yield from opened.iter_batches(BATCH_ROWS, columns=names)


class Arrow:
    """Arrow IPC, files (also known as Feather) and streams."""

    def inspect(self, path: Path) -> tuple[pa.Schema, int | None]:
        """See Format."""
        with pa.OSFile(str(path)) as source, _ipc(source, None) as opened:
            return opened.schema, None

    def read(self, path: Path, schema: pa.Schema, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """See Format."""
        with pa.OSFile(str(path)) as source:
            names = _ipc(source, None).schema.names
            fields = None if columns is None else [i for i, name in enumerate(names) if name in schema.names]
            source.seek(0)
            opened = _ipc(source, fields)
            if isinstance(opened, pa.RecordBatchReader):
                yield from opened
            else:
                yield from (opened.get_batch(i) for i in range(opened.num_record_batches))


def _ipc(source: pa.NativeFile, fields: list[int] | None) -> Any:
    options = pa.ipc.IpcReadOptions(included_fields=fields, use_threads=False)
    is_file = source.read(6) == b"ARROW1"
    source.seek(0)
    return (pa.ipc.open_file if is_file else pa.ipc.open_stream)(source, options=options)


class Csv:
    """Text with a header, block by block. A header without commas tells what else separates the columns."""

    def __init__(self, delimiters: str = ",;\t|") -> None:
        self._delimiters = delimiters

    def inspect(self, path: Path) -> tuple[pa.Schema, int | None]:
        """See Format."""
        if _is_empty(path):
            raise SchemaError(f"{path} is empty; a CSV file begins with a line of column names")
        with self._opened(path, None, None) as opened:
            return opened.schema, None

    def read(self, path: Path, schema: pa.Schema, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """See Format."""
        with self._opened(path, schema, columns) as opened:
            yield from _hinted(opened, path)

    def _opened(self, path: Path, schema: pa.Schema | None, columns: Sequence[str] | None) -> Any:
        import pyarrow.csv as text  # noqa: PLC0415

        return text.open_csv(
            pa.input_stream(str(path)),
            text.ReadOptions(block_size=BLOCK_BYTES),
            text.ParseOptions(delimiter=self._delimiter(path)),
            text.ConvertOptions(column_types=schema, include_columns=columns),
        )

    def _delimiter(self, path: Path) -> str:
        with pa.input_stream(str(path)) as source:
            header = source.read(HEADER_BYTES).split(b"\n")[0].decode(errors="replace")
        return next((each for each in self._delimiters if each in header), self._delimiters[0])


class JsonLines:
    """One JSON object per line, block by block."""

    def inspect(self, path: Path) -> tuple[pa.Schema, int | None]:
        """See Format."""
        if _is_empty(path):
            return pa.schema([]), 0
        return json_schema(lambda: pa.input_stream(str(path))), None

    def read(self, path: Path, schema: pa.Schema, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
        """See Format."""
        if _is_empty(path):
            return
        with _json(pa.input_stream(str(path)), _as_text(schema), only=columns is not None) as opened:
            for batch in _hinted(opened, path):
                yield _timed(batch, schema)


def json_schema(source: Callable[[], Any]) -> pa.Schema:
    """The columns of JSON lines, by the first block of a stream that `source` opens."""
    with _json(source(), None) as opened:
        first = opened.read_next_batch()
    # Arrow takes text for times only if it has no fraction, and forgets their zone: look for times here.
    texts = [f.with_type(pa.string()) if _may_be_time(f.type) else f for f in first.schema]
    with _json(source(), pa.schema(texts)) as opened:
        again = opened.read_next_batch()
    found = [_time_type(a) or a.type if _may_be_time(a.type) else a.type for a in again.columns]
    return pa.schema(list(zip(again.schema.names, found, strict=True)))


def json_batches(source: Any, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of JSON lines in an open stream, these columns of them."""
    with _json(source, _as_text(schema), only=True) as opened:
        for batch in opened:
            yield _timed(batch, schema)


def _as_text(schema: pa.Schema) -> pa.Schema:
    """The types in which Arrow reads JSON: times as text."""
    return pa.schema([f.with_type(pa.string()) if pa.types.is_timestamp(f.type) else f for f in schema])


def _timed(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """A batch with text for times in the types of a schema."""
    return pa.RecordBatch.from_arrays([batch.column(f.name).cast(f.type) for f in schema], schema=schema)


def _json(source: Any, schema: pa.Schema | None, *, only: bool = False) -> Any:
    """Read JSON lines from an open stream; `only`: the columns of the schema and no others."""
    import pyarrow.json as lines  # noqa: PLC0415

    # A block has to hold a whole line.
    read = lines.ReadOptions(block_size=BLOCK_BYTES)
    other = "ignore" if only else "infer"
    parse = lines.ParseOptions(explicit_schema=schema, unexpected_field_behavior=other)
    return lines.open_json(source, read, parse)


def _may_be_time(type: pa.DataType) -> bool:
    return bool(pa.types.is_string(type) or pa.types.is_timestamp(type))


def _time_type(texts: pa.Array) -> pa.DataType | None:
    """The timestamp that all texts can be read as, of those that a CSV file may give; None: they are no times."""
    if texts.null_count == len(texts):
        return None
    for type in (pa.timestamp(unit, zone) for unit in ("s", "ns") for zone in (None, "UTC")):
        try:
            texts.cast(type)
        except pa.ArrowInvalid:
            continue
        return type
    return None


def _hinted(opened: Any, path: Path) -> Iterator[pa.RecordBatch]:
    """The batches; a value that does not fit its column says what to do about it."""
    try:
        yield from opened
    except pa.ArrowInvalid as error:
        is_of_types = "conversion error" in str(error) or "changed from" in str(error)
        raise SchemaError(f"{path}: cannot be read on: {error}{TEXT_HINT if is_of_types else ''}") from error


def _is_empty(path: Path) -> bool:
    with pa.input_stream(str(path)) as source:
        return not source.read(1)


BY_NAME: dict[str, Format] = {
    "parquet": Parquet(),
    "arrow": Arrow(),
    "csv": Csv(),
    "tsv": Csv("\t"),
    "jsonl": JsonLines(),
}

_ENDINGS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".csv": "csv",
    ".tsv": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "jsonl",
}

_FIRST_BYTES = {b"PAR1": "parquet", b"ARRO": "arrow", b"\xff\xff\xff\xff": "arrow"}


def of(path: Path) -> str:
    """The format of a file, by its ending or else its first bytes."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in PACKED:
        endings.pop()
    if endings and endings[-1] in _ENDINGS:
        return _ENDINGS[endings[-1]]
    with path.open("rb") as file:
        found = _FIRST_BYTES.get(file.read(4))
    if found is None:
        raise SchemaError(
            f"{path}: its format is none of {', '.join(_ENDINGS)}; "
            "read it with a library that can, such as pandas, and give the frame"
        )
    return found
