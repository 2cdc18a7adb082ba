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
from dataclasses import dataclass, field
from itertools import groupby
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


@dataclass
class _Range:
    """Blocks of a parcel that lie side by side and are to be taken in; `done` says when they are."""

    parcel: int
    begin: int
    end: int
    done: _native.Done = field(default_factory=_native.Done)


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
        # Not taken in yet, the next ones last: begin, number of the parcel, from where to where it lies.
        self._blocks: list[tuple[int, int, int, int]] = []
        self._band: list[_Range] = []  # being taken in

    def take(self, parcel: bytes) -> None:
        """Take a parcel; nothing is read yet but its keys."""
        data = memoryview(parcel)
        try:
            (length,) = KEYS.unpack_from(data)
            at = KEYS.size + length
            keys = pa.ipc.read_record_batch(pa.py_buffer(data[KEYS.size : at]), self._partials.key_schema)
            blocks = self._look(data, at)
        except (struct.error, pa.ArrowException, OSError) as error:
            raise PartialError(f"packed partials: {error}") from error
        self._out.hold(lambda: self._take(keys, data, blocks))

    def _take(self, keys: pa.RecordBatch, data: memoryview, blocks: list[tuple[int, int, int]]) -> None:
        parcel = [(self._handle.number_keys(self._partials.load_keys(keys)), data)]
        own = [(begin, len(self._parcels), at, end) for begin, at, end in blocks]
        self._parcels += parcel
        self._blocks += own

    def _look(self, data: memoryview, at: int) -> list[tuple[int, int, int]]:
        blocks: list[tuple[int, int, int]] = []
        while at < len(data):
            length, _, begin = BLOCK.unpack_from(data, at)
            if blocks and begin < blocks[-1][0]:  # those of a band would not lie side by side
                raise PartialError(
                    f"packed partials: a block that begins at {begin} comes after one at {blocks[-1][0]}"
                )
            if not BLOCK.size <= length <= len(data) - at:
                raise PartialError(f"packed partials: a block of {length} bytes where {len(data) - at} are left")
            blocks.append((begin, at, at + length))
            at += length
        return blocks

    def _bring(self, until: int | None) -> None:
        """Take the parcels in, band by band, until windows are complete; at last give all others."""
        self._blocks.sort(reverse=True)
        while not self._out and (self._blocks or self._band):
            self._join_band()
            if self._blocks and self._handle.entries:
                self._fetch(self._blocks[-1][0] if until is None else min(self._blocks[-1][0], until))
            if not self._out:
                self._next_band()
        if not self._out:  # keys are not forgotten before: the parcels know their numbers
            self._parcels = []
            super()._bring(until)

    def _next_band(self) -> None:
        band = sorted(self._blocks[-BAND_BLOCKS:], key=lambda block: block[1:])
        ranges = []
        for parcel, group in groupby(band, key=lambda block: block[1]):
            own = list(group)
            ranges.append(_Range(parcel, own[0][2], own[-1][3]))
        self._band = ranges
        del self._blocks[-BAND_BLOCKS:]

    def _join_band(self) -> None:
        while self._band:
            self._join(self._band[-1])
            del self._band[-1]

    def _join(self, blocks: _Range) -> None:
        if blocks.done.is_ok:
            return
        numbers, data = self._parcels[blocks.parcel]
        try:
            self._handle.add_packed(blocks.done, numbers, data[blocks.begin : blocks.end])
        except _native.Fault as fault:
            raise self._partials.partial_error(fault, None) from None
