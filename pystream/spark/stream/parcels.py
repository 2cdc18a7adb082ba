"""How rows travel from the partitions of a streaming DataFrame to the shards; knows Arrow and nothing of Spark.

Rows go in parcels of Arrow bytes, so neither Spark's shuffle nor pandas sees single rows, and every value arrives as
the bits that it was. Where the query allows, rows are folded first, and packed partial aggregates go
(partials/packed.py).

A key belongs to one shard; a shard sees only its own rows, but the marks of all: with every micro-batch each partition
tells each shard the least and the greatest timestamp it has of every stream, and how many parcels it has sent.

All of it is sealed (partials/seals.py): a parcel that is damaged, lost or there twice is an error, not another result.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pystream._engine.time_text import too_low
from pystream.errors import DisorderError, SchemaError
from pystream.partials import PackedFold, seals
from pystream.partials.seals import Seal
from pystream.spark.rows.shard_hash import by_shard, shard_labels, shards_of
from pystream.spark.stream.table_bytes import table_of, to_view
from pystream.spark.task_process import task_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pystream.partials.packed import Parcel
    from pystream.spark.stream.state import Layout

#: What a partition holds, about, before it sends parcels off.
HELD_BYTES = 1 << 25

#: Rows that are looked at together, at least: Spark's own sessions hand over 10,000 at a time, and each time costs as
#: much as so many rows.
GATHER_ROWS = 1 << 16

MARKS = ["stream", "least", "greatest"]
MARKS_SCHEMA = pa.schema([(name, pa.int64()) for name in MARKS])
PARCELS = pa.schema([("shard", pa.int32()), ("rows", pa.binary()), ("marks", pa.binary())])

#: In front of the marks: how many rows the partition had, which it tells one shard only.
ROWS_IN = struct.Struct("<Q")


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
