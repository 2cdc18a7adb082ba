"""A whole input, sorted by its timestamps."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pystream._inputs.column_checks import checked_column, first_null, plain_values
from pystream._inputs.schemas import needed
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pystream.query import Query

#: Rows that are put in order at a time.
BATCH_ROWS = 1 << 18


def in_order(query: Query, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of all batches, those with equal timestamps in the order in which they came.

    Holds the columns that the query needs, of all rows.
    """
    parts = [pa.Table.from_batches([_needed(query, batch)]) for batch in batches]
    if not parts:
        return
    try:
        table = pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise SchemaError(f"batches that do not go together: {error}") from error
    if query.ts not in table.column_names:
        yield from table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
        return  # which is told like everywhere
    ts = table.column(query.ts)
    if ts.null_count:
        raise SchemaError(f"row {first_null(ts)}: timestamp {query.ts!r} is null")
    order = pc.sort_indices(ts)  # is stable
    for start in range(0, max(len(order), 1), BATCH_ROWS):
        taken = table.take(order.slice(start, BATCH_ROWS)).combine_chunks()
        yield from taken.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]


def _needed(query: Query, batch: pa.RecordBatch) -> pa.RecordBatch:
    names = needed(query, batch.schema.names)
    return pa.RecordBatch.from_arrays([plain_values(checked_column(batch, name)) for name in names], names)
