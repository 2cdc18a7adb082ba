"""How rows travel from the partitions of a streaming DataFrame to the shards; knows Arrow and nothing of Spark.

Rows go in parcels of Arrow bytes, so neither Spark's shuffle nor pandas sees single rows, and every value arrives as
the bits that it was. Where the query allows, rows are folded first, and packed partial aggregates go
(partials/packed.py).

A key belongs to one shard; a shard sees only its own rows, but the marks of all: with every micro-batch each partition
tells each shard the least and the greatest timestamp it has of every stream, and how many parcels it has sent.

All of it is sealed (partials/seals.py): a parcel that is damaged, lost or there twice is an error, not another result.
"""

from __future__ import annotations

import base64
import json
import struct
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pystream._engine import snapshot
from pystream._engine.plan import Plan
from pystream._engine.time_text import too_low
from pystream.errors import DisorderError, PystreamError, SchemaError, SnapshotError
from pystream.partials import seals
from pystream.partials.packed import PackedFold, Parcel
from pystream.partials.seals import Kind, Seal
from pystream.spark.phases import by_shard, shard_labels, shards_of
from pystream.spark.workers import task_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pystream.query import Query

#: What a partition holds, about, before it sends parcels off.
HELD_BYTES = 1 << 25

#: Rows that are looked at together, at least: Spark's own sessions hand over 10,000 at a time, and each time costs as
#: much as so many rows.
GATHER_ROWS = 1 << 16

#: The form of states; a checkpoint of another one is refused.
FORMAT = 4

#: Where a description has the schema of the rows as Arrow writes it, which may differ from version to version.
SCHEMA = "schema"

MARKS = ["stream", "least", "greatest"]
MARKS_SCHEMA = pa.schema([(name, pa.int64()) for name in MARKS])
PARCELS = pa.schema([("shard", pa.int32()), ("rows", pa.binary()), ("marks", pa.binary())])

#: In front of the marks: how many rows the partition had, which it tells one shard only.
ROWS_IN = struct.Struct("<Q")

#: The columns of a state. Few, because Spark generates code for each of them with every task.
STATE = {"layout": "string", "body": "binary"}
BODY = pa.schema(
    [
        ("windows", pa.binary()),
        ("pending", pa.binary()),
        ("start", pa.int64()),
        ("latest", pa.string()),
        ("frontier", pa.int64()),
        ("rows_late", pa.int64()),
    ]
)


class Saved(NamedTuple):
    """The state of a shard between two micro-batches."""

    layout: str  # Layout.description of who wrote it
    windows: bytes = b""  # partials or an operator's snapshot; empty: there is nothing yet
    pending: bytes = b""  # rows that are not in the windows yet
    start: int = 0  # windows that start before have been given (partials only)
    latest: str = "[]"  # JSON: pairs of stream and its latest timestamp
    frontier: int = -1  # windows that end here or before have been given; -1: none yet
    rows_late: int = 0  # dropped so far

    def to_state(self, shard: int) -> tuple[str, bytes]:
        """The columns of STATE. The seal of the body covers the layout, too."""
        body = to_view(pa.RecordBatch.from_pylist([self._asdict()], BODY))
        return self.layout, seals.sealed(seals.STATE, Seal(shard), body, also=self.layout.encode())

    @classmethod
    def of_state(cls, own: Layout, shard: int, layout: str, body: bytes) -> Saved:
        """The way back, if it is the state of a shard of this layout."""
        own.check(layout)
        seal, data = seals.opened(body, seals.STATE, shard, also=layout.encode())
        rows = table_of(seals.STATE, seal, data, BODY).to_pylist()
        if len(rows) != 1 or any(value is None for value in rows[0].values()):
            raise SnapshotError(f"{seal.name(seals.STATE)}: damaged, it is not one row without nulls")
        saved = cls(layout, **rows[0])
        if saved.start < 0 or saved.frontier < -1 or saved.rows_late < 0:
            raise SnapshotError(f"{seal.name(seals.STATE)}: damaged, a number is negative")
        return saved

    def latest_of(self, shard: int) -> dict[int, int]:
        """The streams and their latest timestamps."""
        try:
            pairs = json.loads(self.latest)
            if all(type(n) is int for pair in pairs for n in pair):
                return dict(pairs)
        except (TypeError, ValueError, RecursionError):
            pass
        raise SnapshotError(f"{Seal(shard).name(seals.STATE)}: damaged, its timestamps are not readable")


def described(layout: str) -> dict[str, Any]:
    """What a state says of itself, if it is of a form that this pystream reads."""
    try:
        found = json.loads(layout)
        form = found["format"]
    except (TypeError, KeyError, ValueError, RecursionError) as error:
        raise SnapshotError(f"the checkpoint is damaged: a state does not say what it is of: {error}") from error
    if form != FORMAT:
        raise PystreamError(
            f"the checkpoint was written by another version of pystream, in format {form}; this one reads format "
            f"{FORMAT}: end the query with that version (pystream.spark.finish), or begin with a new checkpoint"
        )
    return dict(found)


@dataclass(frozen=True)
class Layout:
    """What all shards of a streaming aggregate have in common."""

    query: Query
    schema: pa.Schema
    stream: str
    position: str | None  # None: the order of equal timestamps shows nowhere
    shards: int
    streams: tuple[int, ...] | None = None
    drop_late: bool = False
    description: str = field(init=False)  # everything that a checkpoint depends on, as JSON

    def __post_init__(self) -> None:
        """Describe it here, on the driver: on its way to the executors a class of the user's may lose its full name."""
        described = {
            "format": FORMAT,
            **snapshot.describe(self.query, Plan(self.query, self.schema).window),
            "columns": [f"{f.name}: {f.type}" for f in self.schema],
            "stream": self.stream,
            "position": self.position,
            "shards": self.shards,
            SCHEMA: base64.b64encode(self.schema.serialize()).decode(),
        }
        object.__setattr__(self, "description", json.dumps(described))

    @classmethod
    def of(cls, query: Query, description: str) -> Layout:
        """The layout of a saved state, if it is that of this query."""
        saved = described(description)
        try:
            types = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(saved[SCHEMA], validate=True)))
            layout = cls(query, types, saved["stream"], saved["position"], saved["shards"])
        except (KeyError, ValueError, TypeError, OSError, pa.ArrowException) as error:
            raise SnapshotError(f"the checkpoint is damaged, or of another query: {error}") from error
        layout.check(description)
        return layout

    @property
    def folds(self) -> bool:
        """Whether rows may be folded: user code wants them one by one."""
        return all(a.function != "udf" for a in self.query.aggregates.values())

    @property
    def packs(self) -> bool:
        """Whether rows are folded where they lie: late ones have to be sorted out before."""
        return self.folds and not self.drop_late

    @property
    def place(self) -> tuple[str | None, str | None]:
        """The columns that order rows with equal timestamps, where that matters."""
        return (None, None) if self.position is None else (self.stream, self.position)

    @property
    def order(self) -> list[str]:
        """The columns to sort by."""
        return [self.query.ts, *(name for name in self.place if name is not None)]

    def check(self, saved: str) -> None:
        """Refuse the state of another query."""
        if saved == self.description:
            return
        before, now = described(saved), described(self.description)
        for name in now | before:
            if name != SCHEMA and before.get(name) != now.get(name):
                raise PystreamError(
                    f"the checkpoint is of another query: {name} was {before.get(name)!r}, is {now.get(name)!r}"
                )


# ---- bytes ----


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


# ---- packing ----


def pack(layout: Layout, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Put the rows of a partition into parcels by shard; the last one of each shard carries the marks."""
    labels = shard_labels(layout.shards)
    bag, marks, rows_in, sent = _Bag(layout), [], 0, Counter[int]()
    for gathered in _gathered(batches):
        rows = _checked(layout, gathered)
        marks.append(_marks(layout, rows))
        rows_in += rows.num_rows
        for shard, part in bag.add(rows):
            sent[shard] += 1
            yield _parcel(labels[shard], part)
    if marks:
        merged = to_view(merged_marks(marks))
        rest = dict(bag.rest())
        for shard, label in enumerate(labels):
            seal = Seal(shard, 0, sent[shard] + (shard in rest), bag.sender)
            told = seals.sealed(seals.MARKS, seal, ROWS_IN.pack(0 if shard else rows_in), merged)
            yield _parcel(label, rest.get(shard), told)


def _gathered(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches, none of them empty."""
    some, rows = [], 0
    for batch in batches:
        some.append(batch)
        rows += batch.num_rows
        if rows >= GATHER_ROWS:
            yield _joined(some)
            some, rows = [], 0
    if rows:
        yield _joined(some)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


class _Bag:
    """What a partition holds: rows or, where they may be folded, partials. Gives the bytes of shards."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.sender = task_number()
        self._fold = None
        if layout.packs:
            self._fold = PackedFold(
                layout.query,
                layout.schema,
                *layout.place,
                shards=layout.shards,
                shard_of=lambda keys: shards_of(keys, layout.query.key, layout.shards),
                max_bytes=HELD_BYTES,
                sender=self.sender,
            )
        self._sent: Counter[int] = Counter()  # parcels of rows by shard
        self._rows: list[pa.RecordBatch] = []
        self._bytes = 0

    def add(self, rows: pa.RecordBatch) -> list[Parcel]:
        """Take rows; gives what has to be sent off, usually nothing."""
        if self._fold is not None:
            return self._fold.add(rows)
        self._rows.append(rows)
        self._bytes += rows.nbytes
        return self.rest() if self._bytes > HELD_BYTES else []

    def rest(self) -> list[Parcel]:
        """What is left in it, once for each shard that has some."""
        if self._fold is not None:
            return list(self._fold.finish())
        rows, self._rows, self._bytes = self._rows, [], 0
        shards = list(range(self._layout.shards))
        parts = by_shard(pa.concat_batches(rows), self._layout.query.key, shards) if rows else ()
        return [(shard, self._sealed(shard, part)) for shard, part in parts]

    def _sealed(self, shard: int, rows: pa.RecordBatch) -> bytes:
        seal = Seal(shard, self._sent[shard], sender=self.sender)
        self._sent[shard] += 1
        return seals.sealed(seals.ROWS, seal, to_view(rows))


def _parcel(label: int, rows: bytes | None, marks: bytes | None = None) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"shard": label, "rows": rows, "marks": marks}], PARCELS)


class Told(NamedTuple):
    """What a partition tells a shard of itself."""

    seal: Seal  # `total` is how many parcels it has sent
    rows_in: int
    marks: pa.Table

    @classmethod
    def of(cls, blob: bytes, shard: int) -> Told:
        """What is in the bytes of the column `marks`."""
        seal, body = seals.opened(blob, seals.MARKS, shard)
        if len(body) < ROWS_IN.size:
            raise seals.MARKS.error(f"{seal.name(seals.MARKS)}: damaged, {len(body)} bytes")
        marks = table_of(seals.MARKS, seal, body[ROWS_IN.size :], MARKS_SCHEMA)
        if any(column.null_count for column in marks.columns):
            raise seals.MARKS.error(f"{seal.name(seals.MARKS)}: damaged, there are nulls")
        return cls(seal, ROWS_IN.unpack_from(body)[0], marks)


def check_complete(shard: int, told: list[Told], sent: list[Seal]) -> None:
    """Refuse parcels that are there twice or not at all, by what the partitions have told of them."""
    counts = {one.seal.sender: one.seal.total for one in told}
    total = sum(one.seal.total for one in told)
    if told and len(counts) == len(told) and total == len(sent):
        want = {(sender, number) for sender, count in counts.items() for number in range(count)}
        if want == {(seal.sender, seal.number) for seal in sent}:
            return
    raise seals.MARKS.error(
        f"shard {shard}, between partition and shard: parcels are missing or came twice: {len(told)} partitions say "
        f"that they sent {total}, {len(sent)} have come"
    )


def _checked(layout: Layout, batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows in the types that the shards expect (Spark's batches differ in the name of the time zone)."""
    rows = batch.select(layout.schema.names).cast(layout.schema)
    for name in {layout.query.ts, layout.stream, *layout.order}:
        if rows.column(name).null_count:
            raise SchemaError(f"column {name!r} is null in some row; the order of rows depends on it")
    return rows


def ticks(layout: Layout, rows: pa.RecordBatch | pa.Table) -> Any:
    """The timestamps as integers."""
    return rows.column(layout.query.ts).cast(pa.int64())


def _marks(layout: Layout, rows: pa.RecordBatch) -> pa.Table:
    """Of every stream the least and the greatest timestamp."""
    marks = _extremes(rows.column(layout.stream).cast(pa.int64()), ticks(layout, rows))
    for stream, least in zip(marks["stream"].to_pylist(), marks["least"].to_pylist(), strict=True):
        if least < 0:
            what = f"stream {stream}: {too_low(least, 0, layout.schema.field(layout.query.ts).type, '')}"
            raise DisorderError(what, input=stream, row=None, ts=least, latest=-1)
    return marks


def _extremes(streams: pa.Array, ts: pa.Array) -> pa.Table:
    numbers, values = streams.to_numpy(), ts.to_numpy()
    first, last = int(numbers.min()), int(numbers.max())
    if last - first >= len(numbers):  # hardly any
        return merged_marks([pa.table([streams, ts, ts], MARKS)])
    places = numbers - first
    least = np.full(last - first + 1, np.iinfo(np.int64).max)
    greatest = np.full(last - first + 1, np.iinfo(np.int64).min)
    np.minimum.at(least, places, values)
    np.maximum.at(greatest, places, values)
    seen = np.flatnonzero(least <= greatest)
    return pa.table([seen + first, least[seen], greatest[seen]], MARKS)


def merged_marks(marks: list[pa.Table]) -> pa.Table:
    """Of every stream the least and the greatest of all."""
    table = pa.concat_tables([MARKS_SCHEMA.empty_table(), *marks]).group_by("stream", use_threads=False)
    return table.aggregate([("least", "min"), ("greatest", "max")]).rename_columns(MARKS)
