"""`aggregate`: run a query over whole inputs, read by threads, and give the result as a table."""

from __future__ import annotations

import itertools
import os
import threading
import time
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystream._engine.arguments import a_query
from pystream._engine.feeding import feed
from pystream._engine.reading import table
from pystream._inputs.ingest import batches, dates_as_times
from pystream._inputs.schemas import common_schema
from pystream._inputs.shapes import several
from pystream._inputs.sorting import in_order
from pystream._kinds import KINDS
from pystream.designs import design_for
from pystream.errors import ClosedError, SchemaError
from pystream.operator import Operator

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pystream._engine.engine import Engine
    from pystream._engine.feeding import Part
    from pystream.designs import Design
    from pystream.query import Query

#: Rows handed over at a time: large enough that Python's share is small, small enough that what is made of them
#: (casts, filters) takes little memory.
SLICE_ROWS = 1 << 18

#: Rows that all inputs together may be ahead, whatever max_pending allows: enough to keep all threads busy, and few
#: enough that what one thread hands over is still in the processor's cache when another takes it. And the fewest of one
#: input: with less, its thread would wait too often. Inputs that share a thread need less, for they never wait in turn.
AHEAD_ROWS, AHEAD_ROWS_MIN = 1 << 19, 1 << 14
SHARED_ROWS, SHARED_ROWS_MIN = 1 << 17, 1 << 11

#: Rows of the result that are taken at a time: three quarters of a large page for each column (csrc/base/base.h). The
#: rest is for rows emitted before these are taken, or the columns would be copied into larger ones.
BULK_ROWS = 3 << 16

#: How long to wait for all readers after a failure. A reader that hangs in the user's own code cannot be stopped.
PATIENCE_S = 1.0

#: Designs whose inputs may share a thread. The paper's have one each, as in the paper.
SHARING = ("auto", "sliced", "runs")


def aggregate(
    query: Query,
    inputs: Any,
    design: Design = "auto",
    threads: int | None = None,
    max_pending: int = 1_000_000,
    *,
    sort: bool = False,
) -> pa.Table:
    """Aggregate the inputs to the end.

    `inputs` is a list of inputs, or one input. An input is

    - an Arrow table, batch or stream: pyarrow, Polars, pandas, DuckDB, ...;
    - a Polars LazyFrame, a pyarrow Dataset or Scanner, of which only the columns that the query needs are computed;
    - a path, or a glob that gives one input per file, sorted by name: parquet, CSV, Arrow IPC or JSON lines, read batch
      by batch;
    - a dict of arrays, or rows as dicts;
    - an iterable of any of these, which come one after the other.

    The timestamps of an input never decrease; dates are midnights. With `sort=True` each input is sorted first, stably
    by its timestamps, for which it is held in memory. An index of times of a pandas frame is the query's timestamp if
    it has that name, or no name and the frame has no such column.

    NaN is what the library it comes from takes it for. In pandas NaN is a missing value, so it is null here, and
    skipped. In NumPy, lists, Polars and Arrow it is a number like others: sums and averages with it are NaN, and it is
    above every number. Give `{name: frame[name].to_numpy() for name in frame}` to have it so from pandas.

    The result is the same whatever the design and the threads (see `Operator`). Of the memory that large results give
    back, up to 64 MB are kept for the next ones.

    >>> query = ps.Query(ps.Window(10), key="meter", aggregates={"n": ps.count(), "mean": ps.mean("cons")})
    >>> a = {"ts": [1, 4], "meter": ["x", "y"], "cons": [1.0, 2.0]}
    >>> b = pa.table({"ts": [2, 12], "meter": ["x", "x"], "cons": [3.0, 5.0]})
    >>> for row in ps.aggregate(query, [a, b]).to_pylist():
    ...     print(row)
    {'ts': 0, 'meter': 'x', 'n': 2, 'mean': 2.0}
    {'ts': 0, 'meter': 'y', 'n': 1, 'mean': 2.0}
    {'ts': 10, 'meter': 'x', 'n': 1, 'mean': 5.0}
    """
    with results(query, inputs, design, threads, max_pending, sort=sort) as (schema, batches_out):
        return table(schema, list(batches_out))


@contextmanager
def results(
    query: Query, inputs: Any, design: str, threads: int | None, max_pending: int, *, sort: bool = False
) -> Iterator[tuple[pa.Schema, Iterable[pa.RecordBatch]]]:
    """Aggregate the inputs and give the rows as they come: their schema and the batches.

    Leaving the block ends everything, whether all batches were read or not.
    """
    a_query(query, "aggregate(query, inputs)")
    meeting = _Meeting()
    sources = [_Source(i, source, query, sort=sort) for i, source in enumerate(several(query, inputs))]
    readers = [_Reader(each, meeting) for each in _shares(query, sources, design)]
    try:
        for reader in readers:
            reader.start()
        schema = _common_schema(query, readers, meeting)
        if schema is None:
            yield _empty(query), []
            return
        n = sum(len(reader.sources) for reader in readers)
        ahead = min(max_pending, _ahead(readers, n))
        with Operator(query, n, schema, design_for(design, query), ahead, threads) as op:
            try:
                op.engine.handle.bulk(BULK_ROWS)
                yield op.schema, _run(op, readers, meeting, -(-ahead // 2))
            finally:
                op.engine.handle.cancel()
    finally:
        meeting.begin.put(None)
        _end(readers, meeting)


def _ahead(readers: list[_Reader], inputs: int) -> int:
    """How many rows an input may be ahead."""
    shared = len(readers) < inputs and all(source.is_at_hand for reader in readers for source in reader.sources)
    return max(SHARED_ROWS // inputs, SHARED_ROWS_MIN) if shared else max(AHEAD_ROWS // inputs, AHEAD_ROWS_MIN)


class _Source:
    """One input: its schema, then its rows."""

    def __init__(self, index: int, source: Any, query: Query, *, sort: bool) -> None:
        self.index = index
        self.is_at_hand = isinstance(source, pa.Table | pa.RecordBatch | dict) and not sort
        self.schema: pa.Schema | None = None
        self._parts = self._batches(source, query, sort=sort)
        self._first: list[pa.RecordBatch] = []

    def _batches(self, source: Any, query: Query, *, sort: bool) -> Iterator[pa.RecordBatch]:
        parts = (dates_as_times(batch, query.ts) for batch in batches(source, query))
        try:
            yield from in_order(query, parts) if sort else parts
        except SchemaError as error:
            raise SchemaError(f"input {self.index}: {error}") from error

    def open(self) -> None:
        """Read the schema."""
        self._first = list(itertools.islice(self._parts, 1))
        self.schema = self._first[0].schema if self._first else None

    def parts(self) -> Iterator[Part]:
        """The rest, in slices: each with the number of its first row, so that errors name rows of the whole input."""
        row = 0
        for batch in itertools.chain(self._first, self._parts):
            for start in range(0, batch.num_rows, SLICE_ROWS):
                yield batch.slice(start, SLICE_ROWS), row + start
            row += batch.num_rows


def _shares(query: Query, sources: list[_Source], design: str) -> list[list[_Source]]:
    """Which inputs share a thread: those whose rows are at hand, as many threads as leave a processor for the output.

    An input whose rows have to be waited for has a thread of its own.
    """
    objects = any(a.function == "udf" for a in query.aggregates.values())
    shared = [s for s in sources if s.is_at_hand and design in SHARING and not objects]
    threads = max(1, (os.cpu_count() or 1) - 1)
    shares = [shared[i::threads] for i in range(min(threads, len(shared)))]
    return shares + [[s] for s in sources if s not in shared]


class _Meeting:
    """Where the readers and the caller wait for each other. Queues of C: what is put is there, whatever is raised."""

    def __init__(self) -> None:
        self.opened: SimpleQueue[None] = SimpleQueue()  # one for each reader that knows its schemas, or has failed
        self.begin: SimpleQueue[tuple[Engine, int] | None] = SimpleQueue()  # the engine, rows per piece; None: over
        self.errors: list[tuple[int, BaseException]] = []  # inputs and what they failed with, the first to fail first
        self.until: float | None = None  # how long readers are waited for at the end

    def raise_error(self, readers: list[_Reader]) -> None:
        """What made an input fail, if one has. Of several that fail together it is the lowest, whoever came first."""
        if not self.errors:
            return
        self.begin.put(None)
        _end(readers, self)
        first, *others = self.errors
        own = [each for each in others if not isinstance(each[1], ClosedError)]  # not those that cancel() has ended
        causes = [first, *own]
        raise min(causes, key=lambda each: each[0])[1]


class _Reader(threading.Thread):
    """Reads some inputs: first their schemas, then, once there is an operator, everything into it."""

    def __init__(self, sources: list[_Source], meeting: _Meeting) -> None:
        super().__init__(name=f"pystream-input-{sources[0].index}", daemon=True)
        self.sources = sources
        self._meeting = meeting
        self._engine: Engine | None = None
        self._at = sources[0].index

    def run(self) -> None:
        try:
            self._read()
        except BaseException as error:  # noqa: BLE001 - whatever the user's iterator raises is raised by aggregate()
            self._meeting.errors.append((self._at, error))
            self._meeting.opened.put(None)
            if self._engine is not None:
                self._engine.handle.cancel()

    def _read(self) -> None:
        for source in self.sources:
            self._at = source.index
            source.open()
        self._meeting.opened.put(None)
        start = self._meeting.begin.get()
        self._meeting.begin.put(start)  # the others wait for it, too
        if start is not None:
            self._engine, piece_rows = start
            feed(self._engine, {source.index: source.parts() for source in self.sources}, piece_rows, self._go_to)

    def _go_to(self, input: int) -> None:
        self._at = input


def _common_schema(query: Query, readers: list[_Reader], meeting: _Meeting) -> pa.Schema | None:
    """The schema of all inputs together; None when no input has one. One that fails ends the wait for others."""
    for _ in readers:
        meeting.opened.get()
        meeting.raise_error(readers)
    sources = sorted((s for reader in readers for s in reader.sources), key=lambda s: s.index)
    schemas = {source.index: source.schema for source in sources if source.schema is not None}
    return common_schema(query, schemas) if schemas else None


def _run(op: Operator, readers: list[_Reader], meeting: _Meeting, piece_rows: int) -> Iterator[pa.RecordBatch]:
    meeting.begin.put((op.engine, piece_rows))
    try:
        yield from op
    except ClosedError:
        meeting.raise_error(readers)
        raise


def _end(readers: list[_Reader], meeting: _Meeting) -> None:
    if meeting.until is None:
        meeting.until = time.monotonic() + PATIENCE_S
    for reader in readers:
        if reader.ident is not None:
            reader.join(max(meeting.until - time.monotonic(), 0))


def _empty(query: Query) -> pa.Schema:
    """The schema of the result over inputs that hold nothing, not even a schema."""
    fields = [("ts", pa.int64()), *((k, pa.null()) for k in query.key)]
    fields += [(name, a.type or KINDS[a.function].fixed_result or pa.null()) for name, a in query.aggregates.items()]
    return pa.schema(fields)
