"""The two phases of an aggregate on Spark: rows are folded where they lie, partial aggregates combined by key.

What is shuffled are shards: a task's partial aggregates whose keys have the same hash, packed into the bytes of one
Arrow batch. Spark moves a few large values instead of many small rows, and need not know their types. The bytes travel
in chunks: Spark hands so many rows to Python at a time (spark.sql.execution.arrow.maxRecordsPerBatch), however large.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from itertools import chain, count, groupby, islice, pairwise
from operator import itemgetter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from pystream._engine.plan import Plan
from pystream.errors import PartialError
from pystream.partials import Combine, PackedCombine, PackedFold
from pystream.spark.rows import tally
from pystream.spark.rows.shard_hash import shard_labels, shards_of
from pystream.spark.rows.spark_types import results, struct_type, to_spark
from pystream.spark.rows.task_numbers import is_adaptive, joined, shuffle_partitions
from pystream.spark.task_process import for_executors, settle, task_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame

    from pystream.query import Query

#: Bytes of a chunk: 10,000 of them, what Spark hands over at a time by default, are little beside its memory.
CHUNK_BYTES = 8 << 10

#: More shards than that would be mostly what describes them.
SHARDS_MAX = 1 << 12

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
        few tasks combine few partial aggregates and many tasks many, each about as much as Spark thinks right. Without
        it tasks get several shards each, one after the other.
        """
        spark = frame.sparkSession
        labels = shard_labels(min(shuffle_partitions(spark), SHARDS_MAX) if self.query.key else 1)
        fold = for_executors(lambda batches: self.packed(rows(batches), labels))
        packed = frame.mapInArrow(fold, struct_type(PACKED))
        if not self.query.key:
            return results(packed.repartition(1), self.windows, self.query, self.schema)
        task = self.windows if is_adaptive(spark) else self.windows_by_shard
        return results(joined(packed.repartition("shard")), task, self.query, self.schema)

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

    def windows_by_shard(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same where shards come one after the other: no more than one is in memory."""
        for _, shard in groupby(_runs(batches), key=itemgetter(0)):
            yield from self.windows(run for _, run in shard)


def _runs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Rows of one shard that lie together, with its label."""
    for batch in batches:
        labels = batch.column("shard").to_numpy()
        edges = [0, *(np.flatnonzero(np.diff(labels)) + 1).tolist(), batch.num_rows]
        for begin, end in pairwise(edges):
            if begin < end:
                yield int(labels[begin]), batch.slice(begin, end - begin)


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
