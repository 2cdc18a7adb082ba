"""Arrow tables as bytes, and back, for what travels between tasks or lies in a checkpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pystream.partials.seals import Kind, Seal


def to_bytes(table: pa.Table | pa.RecordBatch) -> bytes:
    """Arrow's stream format."""
    return bytes(to_view(table))


def to_view(table: pa.Table | pa.RecordBatch, compression: str | None = None) -> memoryview:
    """The same, not copied once more."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.ipc.new_stream(sink, table.schema, options=options) as writer:
        writer.write(table)
    return memoryview(sink.getvalue())


def table_of(kind: Kind, seal: Seal, body: Any, schema: pa.Schema | None = None) -> pa.Table:
    """The table that `to_view` wrote, of this schema (None: any), once it is known to be sound."""
    try:
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (OSError, pa.ArrowException) as error:
        raise kind.error(f"{seal.name(kind)}: damaged, {error}") from error
    if schema is not None and not table.schema.equals(schema):
        raise kind.error(f"{seal.name(kind)}: damaged, its columns are {table.schema.names}, not {schema.names}")
    return table
