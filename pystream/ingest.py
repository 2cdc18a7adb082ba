"""Anything that holds tuples, as Arrow record batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from pystream.errors import SchemaError


def batches(source: Any) -> Iterator[pa.RecordBatch]:
    """The record batches of a source: an Arrow table, array or stream, a dict of arrays, or an iterable of those."""
    if isinstance(source, pa.RecordBatch):
        yield source
    elif isinstance(source, pa.Table):
        yield from source.to_batches() or [pa.RecordBatch.from_pylist([], schema=source.schema)]
    elif isinstance(source, Mapping):
        yield _from_mapping(source)
    elif hasattr(source, "__arrow_c_stream__"):
        yield from _from_stream(source)
    elif hasattr(source, "__arrow_c_array__"):
        yield pa.record_batch(source)
    elif isinstance(source, Iterable) and not isinstance(source, str | bytes | np.ndarray):
        for part in source:
            yield from batches(part)
    else:
        allowed = "an Arrow table, batch or stream, a dict of arrays, or an iterable of those"
        raise SchemaError(f"an input must be {allowed}, not {_name(source)}")


def one_batch(source: Any) -> pa.RecordBatch | None:
    """The source as one batch, so that it can be taken whole; None when it holds no batch at all."""
    parts = list(batches(source))
    if len(parts) <= 1:
        return parts[0] if parts else None
    combined = pa.Table.from_batches(parts).combine_chunks().to_batches()
    return combined[0] if combined else parts[0]


def _name(source: Any) -> str:
    return f"{type(source).__module__}.{type(source).__qualname__}"


def _from_stream(source: Any) -> Iterator[pa.RecordBatch]:
    reader = source if isinstance(source, pa.RecordBatchReader) else pa.RecordBatchReader.from_stream(source)
    empty = True
    for batch in reader:
        empty = False
        yield batch
    if empty:  # its schema still matters
        yield pa.RecordBatch.from_pylist([], schema=reader.schema)


def _from_mapping(columns: Mapping[str, Any]) -> pa.RecordBatch:
    try:
        arrays = {
            str(name): values if isinstance(values, pa.Array) else pa.array(values) for name, values in columns.items()
        }
        return pa.RecordBatch.from_pydict(arrays)
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(f"a dict of arrays that does not make a batch: {error}") from error
