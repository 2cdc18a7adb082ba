"""Streams that lie in a folder of parquet files, read row group by row group.

Either every file has a column `stream` (an integer: which input a row belongs to) and the streams' rows are in the
files in any mixture; or no file has one, and each file is a stream. Files come in the order of their names. Within a
stream, timestamps never decrease from row to row and from file to file; with a column `position`, it rises among rows
of equal timestamps. What breaks this is refused with the file and the row.

Each stream is read by a thread of its own, as far as its input has room. Streams that are mixed in a row group share
it: the last few row groups are kept, split by stream, so a file is read once while the streams stay together, and a
stream that is far ahead or behind costs time and no memory.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pystream._engine.time_text import too_low
from pystream._inputs.column_names import missing_column
from pystream.errors import DisorderError, PystreamError, SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from numpy.typing import NDArray

    from pystream.query import Query

STREAM, POSITION = "stream", "position"

#: Row groups that are kept for streams that come a little later.
GROUPS_KEPT = 4


@dataclass(frozen=True)
class _Group:
    """A row group, and the number in the file of its first row."""

    file: Path
    index: int
    first_row: int


@dataclass(frozen=True)
class _Part:
    """The rows of one stream in one row group, and their numbers in the group."""

    table: pa.Table
    rows: NDArray[np.int64]


class ParquetStreams:
    """The streams of a folder, each an iterable of tables; `streams` has them in the order of their numbers."""

    def __init__(self, folder: Path, query: Query) -> None:
        self.query = query
        self.progress: Callable[[int], None] = lambda _rows: None  # told how many rows have been handed over
        self._cache: OrderedDict[_Group, Future[dict[int, _Part]]] = OrderedDict()
        self._lock = threading.Lock()
        files = sorted(f for f in folder.glob("*.parquet") if not f.name.startswith((".", "_")))
        if not files:
            raise PystreamError(f"{folder}: no parquet files")
        schemas = {f: _schema(f) for f in files}
        self._mixed = STREAM in schemas[files[0]].names
        self._columns = {f: self._used(f, schema, files[0]) for f, schema in schemas.items()}
        self._numbers = {f: i for i, f in enumerate(files)}
        self.rows = 0
        groups: dict[int, list[_Group]] = {}
        for file in files:
            for group, numbers in self._groups(file):
                for number in numbers:
                    groups.setdefault(number, []).append(group)
        schema = schemas[files[0]]
        self.streams = [_Stream(self, n, groups.get(n, []), schema) for n in sorted(groups) or [0]]

    def _used(self, file: Path, schema: pa.Schema, first: Path) -> list[str]:
        """The columns that are read."""
        query = self.query
        if (STREAM in schema.names) != self._mixed:
            raise SchemaError(f"{file}: column {STREAM!r} is in some files and not in others ({first.name})")
        if self._mixed and not pa.types.is_integer(schema.field(STREAM).type):
            raise SchemaError(f"{file}: column {STREAM!r} has type {schema.field(STREAM).type}; it must be an integer")
        needed = {query.ts, *query.key, *(c for a in query.aggregates.values() for c in a.columns)}
        missing = needed - set(schema.names)
        if missing:
            raise SchemaError(f"{file}: {missing_column(min(missing), schema.names)}")
        filters = " ".join(str(a.where) for a in query.aggregates.values())
        return [c for c in schema.names if c in needed or c in (STREAM, POSITION) or c in filters]

    def _groups(self, file: Path) -> Iterator[tuple[_Group, list[int]]]:
        """The row groups of a file, and which streams are in each."""
        with pq.ParquetFile(file) as opened:
            row = 0
            for i in range(opened.num_row_groups):
                group = _Group(file, i, row)
                rows = opened.metadata.row_group(i).num_rows
                if rows:
                    yield group, _numbers(opened, group) if self._mixed else [self._numbers[file]]
                row += rows
            self.rows += row

    def part(self, group: _Group, number: int) -> _Part:
        """The stream's rows of a row group, which is read unless it is kept."""
        with self._lock:
            future, ours = self._cache.get(group), False
            if future is None:
                future, ours = Future(), True
                self._cache[group] = future
                while len(self._cache) > GROUPS_KEPT:
                    self._cache.popitem(last=False)
        if ours:
            try:
                future.set_result(self._read(group))
            except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it too
                future.set_exception(error)
        return future.result()[number]

    def _read(self, group: _Group) -> dict[int, _Part]:
        with pq.ParquetFile(group.file) as opened:
            table = opened.read_row_group(group.index, columns=self._columns[group.file])
        if not self._mixed:
            return {self._numbers[group.file]: _Part(table, np.arange(table.num_rows))}
        stream = table.column(STREAM).to_numpy()
        order = np.argsort(stream, kind="stable")
        numbers, starts = np.unique(stream[order], return_index=True)
        table = table.drop_columns([STREAM]).take(pa.array(order))
        ends = [*starts[1:], len(order)]
        return {int(n): _Part(table.slice(a, b - a), order[a:b]) for n, a, b in zip(numbers, starts, ends, strict=True)}


class _Stream:
    """One stream: an iterable of tables without the columns `stream` and `position`, checked on the way."""

    def __init__(self, owner: ParquetStreams, number: int, groups: list[_Group], schema: pa.Schema) -> None:
        self._owner = owner
        self._number = number
        self._groups = groups
        self._schema = schema
        self._ordered = [owner.query.ts, *([POSITION] if POSITION in schema.names else [])]

    def __iter__(self) -> Iterator[pa.Table]:
        latest: list[NDArray[np.int64]] = [np.array([], np.int64) for _ in self._ordered]
        for group in self._groups:
            part = self._owner.part(group, self._number)
            latest = self._check(group, part, latest)
            yield part.table
            self._owner.progress(part.table.num_rows)
        if not self._groups:
            yield self._schema.empty_table()

    def _check(self, group: _Group, part: _Part, latest: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
        """Refuse a row that is out of order; gives the last row's timestamp and position."""
        own = [self._integers(group, part, name) for name in self._ordered]
        columns = [np.concatenate(pair) for pair in zip(latest, own, strict=True)]
        ts = columns[0]
        wrong = ts[1:] < ts[:-1]
        if len(columns) > 1:
            wrong |= (ts[1:] == ts[:-1]) & (columns[1][1:] <= columns[1][:-1])
        if wrong.any():
            i = int(np.argmax(wrong))
            row = int(part.rows[i + 1 - len(latest[0])]) + group.first_row
            raise self._disorder(f"{group.file}, row {row}", row, [c[i : i + 2].tolist() for c in columns])
        return [c[-1:] for c in columns]

    def _disorder(self, where: str, row: int, pairs: list[list[int]]) -> DisorderError:
        before = f"that of the row of stream {self._number} before it"
        latest, ts = pairs[0]
        what = too_low(ts, latest, self._schema.field(self._owner.query.ts).type, before)
        if ts == latest:
            what = f"position {pairs[1][1]} does not come after {pairs[1][0]}, {before}"
        return DisorderError(f"{where}: {what}", input=self._number, row=row, ts=ts, latest=latest)

    def _integers(self, group: _Group, part: _Part, name: str) -> NDArray[np.int64]:
        column = part.table.column(name)
        if column.null_count:
            i = pc.index(pc.is_null(column), value=True).as_py()
            raise SchemaError(f"{group.file}, row {int(part.rows[i]) + group.first_row}: {name!r} is null")
        if not (pa.types.is_integer(column.type) or pa.types.is_timestamp(column.type)):
            raise SchemaError(f"{group.file}: column {name!r} has type {column.type}; it must be an integer")
        values: NDArray[np.int64] = column.cast(pa.int64()).to_numpy()
        return values


def _schema(file: Path) -> pa.Schema:
    try:
        return pq.read_schema(file)
    except pa.ArrowInvalid as error:
        raise PystreamError(f"{file}: {error}") from error


def _numbers(opened: pq.ParquetFile, group: _Group) -> list[int]:
    """The streams in a row group: from its statistics if they say enough, else from the column."""
    metadata = opened.metadata.row_group(group.index)
    for i in range(metadata.num_columns):
        column = metadata.column(i)
        known = column.path_in_schema == STREAM and column.is_stats_set and column.statistics.has_min_max
        if known and column.statistics.null_count == 0 and column.statistics.min == column.statistics.max:
            return [int(column.statistics.min)]
    stream = opened.read_row_group(group.index, columns=[STREAM]).column(STREAM)
    if stream.null_count:
        row = group.first_row + pc.index(pc.is_null(stream), value=True).as_py()
        raise SchemaError(f"{group.file}, row {row}: {STREAM!r} is null")
    return [int(n) for n in pc.unique(stream).to_pylist()]
