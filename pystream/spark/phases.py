"""The two phases of an aggregate on Spark: rows are folded where they lie, partial aggregates combined by key.

What is shuffled are shards: a task's partial aggregates whose keys have the same hash, packed into the bytes of one
Arrow batch. Spark moves a few large values instead of many small rows, and need not know their types. The bytes travel
in chunks: Spark hands so many rows to Python at a time (spark.sql.execution.arrow.maxRecordsPerBatch), however large.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cache
from itertools import chain, count, islice, pairwise
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql.pandas.types import from_arrow_schema

from pystream._engine.plan import Plan
from pystream.errors import PartialError
from pystream.partials import Combine, PackedCombine, PackedFold
from pystream.spark import tally
from pystream.spark.types import results, to_spark
from pystream.spark.workers import settle, task_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray
    from pyspark.sql import DataFrame

    from pystream.query import Query

#: Bytes of a chunk: 10,000 of them, what Spark hands over at a time by default, are little beside its memory.
CHUNK_BYTES = 8 << 10

#: More shards than that would be mostly what describes them.
SHARDS_MAX = 1 << 12

WORD = 0xFFFFFFFF

PACKED = pa.schema(
    [
        ("shard", pa.int32()),
        ("batch", pa.int64()),  # a number that no other batch has
        ("chunk", pa.int32()),
        ("chunks", pa.int32()),
        ("bytes", pa.binary()),
    ]
)


@dataclass(frozen=True)
class Phases:
    """A query on rows of a schema; executors get a copy. Without `stream` and `position`, order does not matter."""

    query: Query
    schema: pa.Schema
    stream: str | None
    position: str | None

    @property
    def window(self) -> tuple[int, int]:
        """Size and advance in the unit of the timestamps."""
        return Plan(self.query, self.schema).window

    def shuffle(
        self,
        frame: DataFrame,
        rows: Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    ) -> DataFrame:
        """Both phases. `rows` gives the rows to fold, in a task, from the frame's batches.

        There are as many shards as Spark has partitions for shuffles; adaptive execution then joins small ones, so that
        few tasks combine few partial aggregates and many tasks many, each about as much as Spark thinks right.
        """
        partitions = int(frame.sparkSession.conf.get("spark.sql.shuffle.partitions") or 1)
        labels = shard_labels(min(partitions, SHARDS_MAX) if self.query.key else 1)
        packed = frame.mapInArrow(lambda batches: self.packed(rows(batches), labels), from_arrow_schema(PACKED))
        together = packed.repartition("shard") if self.query.key else packed.repartition(1)
        return results(together.drop("shard"), self.windows, self.query, self.schema)

    def fold(self, shards: int, task: int) -> PackedFold:
        """Make what folds the rows of a task."""
        place = self.stream, self.position
        key = self.query.key
        shard_of = lambda keys: shards_of(keys, key, shards)  # noqa: E731
        return PackedFold(self.query, self.schema, *place, shards=shards, shard_of=shard_of, sender=task)

    def combine(self, start: int = 0) -> Combine:
        """Make what combines the partial aggregates of some keys, or the rows of some windows from `start` on."""
        return Combine(self.query, self.schema, self.stream, self.position, start)

    def packed(self, batches: Iterator[pa.RecordBatch], labels: Sequence[int]) -> Iterator[pa.RecordBatch]:
        """Phase 1, in a task: fold rows, give packed shards, tell each shard how many."""
        settle()
        task, sent = task_number(), Counter[int]()
        fold = self.fold(len(labels), task)
        numbers = count(task << 32)
        for shard, parcel in chain.from_iterable(chain(map(fold.add, batches), [fold.finish()])):
            sent[shard] += 1
            yield _chunks(labels[shard], next(numbers), parcel)
        yield _told(labels, numbers, tally.told(sent, len(labels), task))

    def windows(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Phase 2, in a task: combine all packed shards of some keys, give the windows."""
        settle()
        combine = PackedCombine(self.query, self.schema, self.stream, self.position)
        come = tally.Tally()
        for parcel in _joined(batches):
            if come.is_parcel(parcel):
                combine.take(parcel)
        come.check()
        for out in combine.finish():
            yield to_spark(out)


@cache
def shard_labels(shards: int) -> tuple[int, ...]:
    """A label for each shard, such that Spark's hash sends each to a partition of its own, and none stays empty."""
    labels: dict[int, int] = {}
    for label in range(100 * shards):
        labels.setdefault(_sparks_hash(label) % shards, label)
        if len(labels) == shards:
            break
    return tuple(labels.get(i, i) for i in range(shards))


def _sparks_hash(value: int) -> int:
    """MurmurHash3 of a 32-bit integer with Spark's seed; were it another, partitions would be less even, no more."""
    k = _rotated(value * 0xCC9E2D51, 15) * 0x1B873593 & WORD
    h = (_rotated(42 ^ k, 13) * 5 + 0xE6546B64 & WORD) ^ 4
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ h >> shift) * factor & WORD
    h ^= h >> 16
    return h - (h >> 31 << 32)  # Spark takes it as signed


def _rotated(value: int, bits: int) -> int:
    value &= WORD
    return (value << bits | value >> 32 - bits) & WORD


def by_shard(batch: pa.RecordBatch, key: Sequence[str], labels: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each shard that has some, with its label; rows with equal keys are in the same one."""
    ordered, ends = batch, [0, batch.num_rows]
    if len(labels) > 1:
        numbers = shards_of(batch, key, len(labels))
        ordered = batch.take(pa.array(np.argsort(numbers, kind="stable")))
        ends = [0, *np.cumsum(np.bincount(numbers, minlength=len(labels))).tolist()]
    for label, (begin, end) in zip(labels, pairwise(ends), strict=True):
        if begin < end:
            yield label, ordered.slice(begin, end - begin)


def _chunks(label: int, number: int, packed: bytes) -> pa.RecordBatch:
    edges = np.array([*range(0, len(packed), CHUNK_BYTES), len(packed)], np.int32)
    n = len(edges) - 1
    parts = pa.BinaryArray.from_buffers(pa.binary(), n, [None, pa.py_buffer(edges), pa.py_buffer(packed)])
    columns = [[label] * n, [number] * n, range(n), [n] * n]
    arrays = [pa.array(c, f.type) for c, f in zip(columns, PACKED, strict=False)]
    return pa.record_batch([*arrays, parts], schema=PACKED)


def _told(labels: Sequence[int], numbers: Iterator[int], blobs: list[bytes]) -> pa.RecordBatch:
    """One chunk for each shard."""
    n = len(labels)
    columns = [labels, list(islice(numbers, n)), [0] * n, [1] * n, blobs]
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, PACKED, strict=True)], schema=PACKED)


def _joined(batches: Iterator[pa.RecordBatch]) -> Iterator[bytes]:
    """The bytes whose chunks are in these batches, in any order; whether they are right their seal tells."""
    waiting: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    for batch in batches:
        rows = (batch.column(name).to_pylist() for name in ("batch", "chunk", "chunks", "bytes"))
        for number, chunk, chunks, part in zip(*rows, strict=True):
            if part is None or chunk is None or chunks is None or not 0 <= chunk < chunks or chunk in waiting[number]:
                raise PartialError(
                    f"partials, between fold and combine: chunk {chunk} of {chunks} is damaged or came twice"
                )
            parts = waiting[number]
            parts[chunk] = part
            if len(parts) == chunks:
                yield b"".join(part for _, part in sorted(parts.items()))
                del waiting[number]
    if waiting:
        raise PartialError(f"partials, between fold and combine: chunks of {len(waiting)} parcels are missing")


def shards_of(batch: pa.RecordBatch, key: Sequence[str], shards: int) -> NDArray[np.uint16]:
    """The shard of each row, the same for equal keys whatever the batch."""
    hashes = np.zeros(batch.num_rows, np.uint64)
    for name in key:
        hashes = _mix(hashes + _hashes(batch.column(name)))
    return (hashes % np.uint64(shards)).astype(np.uint16)


def _hashes(column: pa.Array) -> NDArray[np.uint64]:
    """A number for each value; each different value is looked at once."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    numbers = np.append(_numbers(encoded.dictionary), np.uint64(0))  # null: the last
    places = pc.fill_null(encoded.indices, len(numbers) - 1).to_numpy(zero_copy_only=False)
    found: NDArray[np.uint64] = np.take(numbers, places)
    return found


def _numbers(values: pa.Array) -> NDArray[np.uint64]:
    type = values.type
    numbers: NDArray[Any]
    if pa.types.is_floating(type):  # zeros of both signs are one key, and so are all NaNs
        numbers = values.cast(pa.float64()).to_numpy(zero_copy_only=False) + 0.0
        numbers = np.where(np.isnan(numbers), np.nan, numbers)
        return numbers.view(np.uint64)
    if type == pa.uint64():
        numbers = values.to_numpy()
        return numbers.view(np.uint64)
    if pa.types.is_primitive(type) or pa.types.is_boolean(type):
        narrow = pa.types.is_temporal(type) and type.bit_width == 32
        numbers = (values.view(pa.int32()) if narrow else values).cast(pa.int64()).to_numpy(zero_copy_only=False)
        return numbers.view(np.uint64)
    texts = values.cast(pa.large_binary()).to_pylist()
    return np.array([crc32(text) for text in texts], np.uint64)


def _mix(hashes: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Let every bit depend on every other (the finalizer of MurmurHash3)."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        hashes = (hashes ^ (hashes >> np.uint64(33))) * np.uint64(factor)
    return hashes ^ (hashes >> np.uint64(33))
