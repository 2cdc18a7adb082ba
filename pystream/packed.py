"""Packed partials: for who has many partials to send, and little to gain from folding.

    fold = PackedFold(query, schema, shards=2, shard_of=...)      # as Fold; gives parcels, each for one shard
    combine = PackedCombine(query, schema)                        # who gets all parcels of a shard
    combine.take(parcel)
    for windows in combine.finish():                              # those of Combine; or advance
        ...

A parcel is bytes: its keys as an Arrow batch, once each, and blocks of partials in the order of time that refer to them
(csrc/fold_pack.c). They take a quarter of the bytes of the Arrow columns, and no row of them is touched in Python.

A PackedCombine keeps the parcels as they are and takes blocks in by time, so that it works on little more than the open
windows, which stay in the processor's cache.
"""

from __future__ import annotations

import struct
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from pystream import _native
from pystream.errors import PartialError
from pystream.partials import MAX_BYTES, Combine, Folding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from pystream.query import Query

#: A parcel begins with the length of its keys, a block with its length, its rows and the beginning of its first slice.
KEYS = struct.Struct("<Q")
BLOCK = struct.Struct("<IIQ")

#: Blocks that are taken in between two looks for windows that are complete: about as many rows as a batch of them has.
BAND_BLOCKS = 64

#: The shard and its parcel.
Parcel = tuple[int, bytes]


class PackedFold(Folding[Parcel]):
    """A Folding that gives parcels. `shard_of` gives the shard, below `shards`, of each row of a batch of keys."""

    def __init__(
        self,
        query: Query,
        schema: pa.Schema,
        stream: str | None = None,
        position: str | None = None,
        *,
        shards: int = 1,
        shard_of: Callable[[pa.RecordBatch], NDArray[np.uint16]] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        super().__init__(query, schema, stream, position, max_bytes)
        self._shards = shards
        self._shard_of = shard_of or (lambda keys: np.zeros(keys.num_rows, np.uint16))

    def _export(self) -> Iterator[Parcel]:
        if not self._handle.entries:
            return
        keys = self._partials.keys(self._handle)
        shards = self._shard_of(keys)
        ordered = keys.take(pa.array(np.argsort(shards, kind="stable")))
        ends = [0, *np.cumsum(np.bincount(shards, minlength=self._shards)).tolist()]
        for shard, blocks in self._handle.pack(shards, self._shards):
            own = ordered.slice(ends[shard], ends[shard + 1] - ends[shard]).serialize().to_pybytes()
            yield shard, b"".join((KEYS.pack(len(own)), own, blocks))


class PackedCombine(Combine):
    """A Combine for parcels."""

    def __init__(
        self,
        query: Query,
        schema: pa.Schema,
        stream: str | None = None,
        position: str | None = None,
        start: int = 0,
        held: Iterable[pa.RecordBatch] = (),
    ) -> None:
        super().__init__(query, schema, stream, position, start, held)
        self._parcels: list[tuple[Any, memoryview]] = []  # the numbers of its keys, its bytes
        self._blocks: list[tuple[int, int, int, int]] = []  # begin, number of the parcel, from where to where it lies

    def take(self, parcel: bytes) -> None:
        """Take a parcel; nothing is read yet but its keys."""
        data = memoryview(parcel)
        try:
            (length,) = KEYS.unpack_from(data)
            at = KEYS.size + length
            keys = pa.ipc.read_record_batch(pa.py_buffer(data[KEYS.size : at]), self._partials.key_schema)
            keys = self._partials.load_keys(keys)
            blocks = self._look(data, at)
        except (struct.error, pa.ArrowException, EOFError, OSError) as error:
            raise PartialError(f"packed partials: {error}") from error
        with self._lock:
            self._blocks += blocks
            self._parcels.append((self._handle.number_keys(keys), data))

    def _look(self, data: memoryview, at: int) -> list[tuple[int, int, int, int]]:
        blocks: list[tuple[int, int, int, int]] = []
        while at < len(data):
            length, _, begin = BLOCK.unpack_from(data, at)
            if blocks and begin < blocks[-1][0]:  # those of a band would not lie side by side
                raise PartialError(
                    f"packed partials: a block that begins at {begin} comes after one at {blocks[-1][0]}"
                )
            if not BLOCK.size <= length <= len(data) - at:
                raise PartialError(f"packed partials: a block of {length} bytes where {len(data) - at} are left")
            blocks.append((begin, len(self._parcels), at, at + length))
            at += length
        return blocks

    def _windows(self, until: int | None, *, forget: bool = True) -> Iterator[pa.RecordBatch]:
        """Take the parcels in, band by band, and give the windows that are complete on the way; then all others."""
        with self._lock:
            blocks, self._blocks = sorted(self._blocks), []
        for begin, end in pairwise([*range(0, len(blocks), BAND_BLOCKS), len(blocks)]):
            for number, own in groupby(sorted(blocks[begin:end], key=lambda b: b[1:]), key=lambda b: b[1]):
                ranges = list(own)
                self._join(number, ranges[0][2], ranges[-1][3])
            if end < len(blocks):  # keys are not forgotten: the parcels know their numbers
                after = blocks[end][0]
                yield from super()._windows(after if until is None else min(after, until), forget=False)
        self._parcels.clear()
        yield from super()._windows(until, forget=forget)

    def _join(self, number: int, begin: int, end: int) -> None:
        """Take in blocks of a parcel that lie side by side."""
        numbers, data = self._parcels[number]
        with self._lock:
            try:
                self._handle.add_packed(numbers, data[begin:end])
            except _native.Fault as fault:
                raise self._partials.partial_error(fault, None) from None
