"""The shard of a key, and labels by which Spark sends each shard to a partition of its own."""

from __future__ import annotations

from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

WORD = 0xFFFFFFFF


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


def shards_of(batch: pa.RecordBatch, key: Sequence[str], shards: int) -> NDArray[np.uint16]:
    """The shard of each row, the same for equal keys whatever the batch."""
    hashes = np.zeros(batch.num_rows, np.uint64)
    for name in key:
        hashes = _mix(hashes + _hashes(batch.column(name)))
    return (hashes % np.uint64(shards)).astype(np.uint16)


def _hashes(column: pa.Array) -> NDArray[np.uint64]:
    """A number for each value; where that takes long, each different value is looked at once."""
    if not column.null_count and (pa.types.is_primitive(column.type) or pa.types.is_boolean(column.type)):
        return _numbers(column)
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
