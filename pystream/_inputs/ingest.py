"""Anything that holds tuples, as Arrow record batches.

What is NumPy's is copied, since its owner may change it; what is Arrow's is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystream._inputs import c_data
from pystream._inputs.column_checks import owned, sound
from pystream._inputs.dict_rows import BATCH_ROWS, Rows, is_row
from pystream._inputs.file_inputs import open_inputs
from pystream._inputs.schemas import needed
from pystream._inputs.shapes import (
    is_column,
    is_dataset,
    is_from,
    is_lazy,
    is_no_iterable,
    is_path,
    is_row_of_another_kind,
    is_scanner,
    not_arrays,
    refusal,
)
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from pystream.query import Query

#: Rows of a batch of what is computed or scanned on the way.
SCANNED_ROWS = 1 << 16

#: How pandas calls an index without a name when it becomes a column.
INDEX = "__index_level_0__"


def batches(source: Any, query: Query | None = None) -> Iterator[pa.RecordBatch]:
    """The record batches of a source: an Arrow table, array or stream, a dict of arrays, rows, or an iterable of those.

    Their columns have names and the length of the batch; what is in them is not checked yet. Who knows the query gets
    only its columns from what would have to make others first, and the index of a pandas frame as its timestamps.
    """
    for batch in _batches(source, query):
        yield _whole(batch)


def dates_as_times(batch: pa.RecordBatch, ts: str) -> pa.RecordBatch:
    """The batch with timestamps where its column of times has dates: midnights."""
    i = batch.schema.get_field_index(ts)
    if i < 0 or not pa.types.is_date(batch.schema.field(i).type):
        return batch
    unit = "s" if pa.types.is_date32(batch.schema.field(i).type) else "ms"
    return batch.set_column(i, ts, sound(batch.column(i), ts).cast(pa.timestamp(unit)))


def _batches(source: Any, query: Query | None) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatch):
        yield source
    elif isinstance(source, pa.Table):
        yield from source.to_batches() or [pa.RecordBatch.from_pylist([], schema=source.schema)]
    elif isinstance(source, Mapping):
        yield _from_mapping(source)
    elif (scanned := _scanned(source, query)) is not None:
        yield from scanned
    elif hasattr(source, "__arrow_c_stream__") and not is_column(source):
        yield from _from_stream(source, query)
    elif hasattr(source, "__arrow_c_array__") and not is_column(source):
        yield _imported(lambda: c_data.batch(source))
    elif isinstance(source, Iterable) and not is_no_iterable(source):
        yield from _from_iterable(source, query)
    else:
        raise refusal(source)


def _scanned(source: Any, query: Query | None) -> Iterator[pa.RecordBatch] | None:
    """What is read or computed on the way, if it is that: only the columns that the query needs."""
    if is_path(source):
        return _from_files(source, query)
    if is_lazy(source):
        return _from_lazy(source, query)
    if is_dataset(source):
        names = source.schema.names if query is None else needed(query, source.schema.names)
        return _read(source.scanner(names, batch_size=SCANNED_ROWS, batch_readahead=2).to_reader())
    return _read(source.to_reader()) if is_scanner(source) else None


def _from_files(path: Any, query: Query | None) -> Iterator[pa.RecordBatch]:
    """All files that a path or a glob stands for, one after the other."""
    for file in open_inputs(path):
        yield from file if query is None else file.select(needed(query, file.schema.names))


def _from_iterable(source: Iterable[Any], query: Query | None) -> Iterator[pa.RecordBatch]:
    """Rows that follow each other come together: all of a list, so that their types go by all of them."""
    if is_row_of_another_kind(source):
        raise refusal(source)
    ts = None if query is None else query.ts
    many = len(source) if isinstance(source, list | tuple) else BATCH_ROWS
    made = Rows(query)
    rows: list[Mapping[str, Any]] = []
    for part in source:
        if is_row(part, ts):
            rows.append(part)
            if len(rows) < many:
                continue
        if rows:
            yield made.batch(rows)
            rows = []
        if not is_row(part, ts):
            yield from _batches(part, query)
    if rows:
        yield made.batch(rows)


def _from_lazy(frame: Any, query: Query | None) -> Iterator[pa.RecordBatch]:
    if query is not None:
        frame = frame.select(needed(query, frame.collect_schema().names()))
    if not hasattr(frame, "collect_batches"):  # older Polars
        yield from _batches(frame.collect(), query)
        return
    empty = True
    for part in frame.collect_batches(chunk_size=SCANNED_ROWS, maintain_order=True):
        empty = False
        yield from _batches(part, query)
    if empty:
        yield from _batches(frame.head(0).collect(), query)


def one_batch(
    source: Any, select: Callable[[pa.RecordBatch], pa.RecordBatch], query: Query | None = None
) -> pa.RecordBatch | None:
    """The source as one batch, so that it can be taken whole; None when it holds no batch at all.

    `select` gives the columns of a batch that are needed, checked: several batches are copied into one.
    """
    parts = list(batches(source, query))
    if len(parts) <= 1:
        return parts[0] if parts else None
    parts = [select(part) for part in parts]
    try:
        combined = pa.Table.from_batches(parts).combine_chunks().to_batches()
    except pa.ArrowException as error:
        raise SchemaError(f"batches that do not go together: {error}") from error
    if len(combined) > 1:
        raise SchemaError("more strings than one batch can hold (2 GB): add the batches one by one, or as large_string")
    return combined[0] if combined else parts[0]


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, if it can be cut into slices."""
    try:
        batch.validate()
        batch.schema.names  # noqa: B018 - raises if they are no text
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SchemaError(f"a batch that is damaged: {error}") from error
    return batch


def _imported(read: Callable[[], pa.RecordBatch], hint: str = "") -> pa.RecordBatch:
    try:
        return read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, UnicodeDecodeError) as error:
        raise SchemaError(f"Arrow data that cannot be read: {'; '.join(map(str, error.args))}{hint}") from error


def _from_stream(source: Any, query: Query | None) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatchReader):
        yield from _read(source)
        return
    is_pandas = is_from(source, "pandas")
    if is_from(source, "polars", "DataFrame"):
        _check_objects(source, query)
    if is_pandas and not source.columns.is_unique:
        raise SchemaError(f"a pandas frame in which columns have the same name: {[*map(str, source.columns)]}")
    parts = c_data.stream(source)
    hint = "; give each column one type, as with frame.astype(...)" if is_pandas else ""
    while (batch := _imported(lambda: next(parts, None), hint)) is not None:
        yield _from_pandas(batch, query) if is_pandas else batch


def _check_objects(frame: Any, query: Query | None) -> None:
    """Refuse Python objects in a Polars frame: it would hand over their addresses as bytes."""
    read = frame.columns if query is None else needed(query, frame.columns)
    for name, type in frame.schema.items():
        if name in read and str(type) == "Object":
            raise SchemaError(f"column {name!r} holds Python objects, which Polars does not hand over; cast it first")


def _from_pandas(batch: pa.RecordBatch, query: Query | None) -> pa.RecordBatch:
    """The batch without columns in NumPy's memory; an index of times without a name is the query's timestamp."""
    batch, names = _owned(batch), batch.schema.names
    if query is None or query.ts in names or INDEX not in names:
        return batch
    if not pa.types.is_timestamp(batch.column(INDEX).type):
        return batch
    return batch.rename_columns([query.ts if name == INDEX else name for name in names])


def _read(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    empty = True
    for batch in reader:
        empty = False
        yield batch
    if empty:  # its schema still matters
        yield pa.RecordBatch.from_pylist([], schema=reader.schema)


def _owned(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without columns that lie in NumPy's memory, where only plain values can."""
    arrays = [owned(a) if pa.types.is_primitive(a.type) else a for a in batch.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=batch.schema)


def _from_mapping(columns: Mapping[str, Any]) -> pa.RecordBatch:
    wrong = not_arrays(columns)
    if wrong is not None:
        raise wrong
    try:
        arrays = {str(name): _column(str(name), values) for name, values in columns.items()}
        return pa.RecordBatch.from_pydict(arrays)
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SchemaError(f"a dict of arrays that does not make a batch: {error}") from error


def _column(name: str, values: Any) -> pa.Array:
    if isinstance(values, pa.Array):
        return values
    if isinstance(values, pa.ChunkedArray):
        chunks = [sound(chunk, name) for chunk in values.chunks]
        return pa.concat_arrays(chunks) if chunks else pa.array([], values.type)
    if hasattr(values, "__arrow_c_array__"):
        return c_data.array(values)
    array = pa.array(values)
    return array if isinstance(values, list | tuple) else owned(array)
