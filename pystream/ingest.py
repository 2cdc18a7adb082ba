"""Anything that holds tuples, as Arrow record batches.

What is NumPy's is copied, since its owner may change it; what is Arrow's is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pystream import c_data
from pystream.columns import owned, sound
from pystream.errors import SchemaError


def batches(source: Any) -> Iterator[pa.RecordBatch]:
    """The record batches of a source: an Arrow table, array or stream, a dict of arrays, or an iterable of those.

    Their columns have names and the length of the batch; what is in them is not checked yet.
    """
    for batch in _batches(source):
        yield _whole(batch)


def _batches(source: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatch):
        yield source
    elif isinstance(source, pa.Table):
        yield from source.to_batches() or [pa.RecordBatch.from_pylist([], schema=source.schema)]
    elif isinstance(source, Mapping):
        yield _from_mapping(source)
    elif hasattr(source, "__arrow_c_stream__"):
        yield from _from_stream(source)
    elif hasattr(source, "__arrow_c_array__"):
        yield _imported(lambda: c_data.batch(source))
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | np.ndarray):
        for part in source:
            yield from _batches(part)
    else:
        allowed = "an Arrow table, batch or stream, a dict of arrays, or an iterable of those"
        raise SchemaError(f"an input must be {allowed}, not {_name(source)}")


def one_batch(source: Any, select: Callable[[pa.RecordBatch], pa.RecordBatch]) -> pa.RecordBatch | None:
    """The source as one batch, so that it can be taken whole; None when it holds no batch at all.

    `select` gives the columns of a batch that are needed, checked: several batches are copied into one.
    """
    parts = list(batches(source))
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


def _name(source: Any) -> str:
    return f"{type(source).__module__}.{type(source).__qualname__}"


def _whole(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, if it can be cut into slices."""
    try:
        batch.validate()
        batch.schema.names  # noqa: B018 - raises if they are no text
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise SchemaError(f"a batch that is damaged: {error}") from error
    return batch


def _imported(read: Callable[[], pa.RecordBatch]) -> pa.RecordBatch:
    try:
        return read()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, UnicodeDecodeError) as error:
        raise SchemaError(f"Arrow data that cannot be read: {error}") from error


def _from_stream(source: Any) -> Iterator[pa.RecordBatch]:
    if isinstance(source, pa.RecordBatchReader):
        yield from _read(source)
        return
    copied = any(kind.__module__.startswith("pandas.") for kind in type(source).__mro__)
    parts = c_data.stream(source)
    while (batch := _imported(lambda: next(parts, None))) is not None:
        yield _owned(batch) if copied else batch


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
