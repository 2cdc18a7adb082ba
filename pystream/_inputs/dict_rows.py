"""Rows as dicts: many of them make a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pystream._inputs.schemas import needed
from pystream.errors import SchemaError

if TYPE_CHECKING:
    from pystream.query import Query

#: Rows that make a batch, of those that come one by one.
BATCH_ROWS = 1 << 16


def is_column(values: Any) -> bool:
    """Whether this is many values rather than one."""
    if isinstance(values, np.ndarray):
        return values.ndim > 0
    return hasattr(values, "__len__") and not isinstance(values, str | bytes | bytearray | Mapping)


def is_row(item: Any, ts: str | None) -> bool:
    """Whether this is one row: a dict with one timestamp, or, where its name is not known, no column."""
    if not isinstance(item, Mapping) or not item:
        return False
    return not is_column(item[ts]) if ts in item else not any(map(is_column, item.values()))


class Rows:
    """Makes batches of rows. A column that the first batch has is in all of them."""

    def __init__(self, query: Query | None) -> None:
        self._query = query
        self._names: dict[str, None] = {}
        self._done = 0

    def batch(self, rows: list[Mapping[str, Any]]) -> pa.RecordBatch:
        """A batch of these rows; what a row does not have is null."""
        names = list(dict.fromkeys(str(name) for row in rows for name in row))
        if self._query is not None:
            names = needed(self._query, names)
        self._names |= dict.fromkeys(names)
        arrays = {name: self._column(name, [row.get(name) for row in rows]) for name in self._names}
        self._done += len(rows)
        return pa.RecordBatch.from_pydict(arrays)

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        try:
            return pa.array(values)
        except (pa.ArrowException, OverflowError) as error:
            row = _first_odd(values)
            raise SchemaError(
                f"row {self._done + row}: {values[row]!r} does not fit into column {name!r}: {error}"
            ) from error


def _first_odd(values: list[Any]) -> int:
    """The first row up to which the values do not make a column."""
    low, high = 0, len(values) - 1
    while low < high:
        middle = (low + high) // 2
        try:
            pa.array(values[: middle + 1])
        except (pa.ArrowException, OverflowError):
            high = middle
        else:
            low = middle + 1
    return low
