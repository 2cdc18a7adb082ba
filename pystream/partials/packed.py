"""Packed partials: for who has many partials to send, and little to gain from folding.

    fold = PackedFold(query, schema, shards=2, shard_of=...)      # as Fold; gives parcels, each for one shard
    combine = PackedCombine(query, schema)                        # who gets all parcels of a shard
    combine.take(parcel)
    for windows in combine.finish():                              # those of Combine; or advance
        ...

A parcel is bytes: a seal (seals.py), its keys as an Arrow batch, and blocks of partials in the order of time that refer
to them (csrc/partials/fold_parcels.c). They take a quarter of the bytes of the Arrow columns, and no row of them is
touched in Python.

Where there are nearly as many keys as rows, folding costs the memory of all keys and gains nothing. So a PackedFold
folds PROBE_ROWS rows and, if few of them had a key that had come before, keeps the next rows as they are: each is a
partial, and the parcel has a key for each of them. Then it tries again.

A PackedCombine keeps the parcels as they are and takes blocks in by time, so that it works on little more than the open
windows, which stay in the processor's cache.
"""

from __future__ import annotations

import secrets
import struct
from collections import Counter
from dataclasses import dataclass, field
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from pystream import _native
from pystream.errors import ClosedError, PartialError, SchemaError
from pystream.partials import seals
from pystream.partials.combining import Combine
from pystream.partials.folding import MAX_BYTES, Folding, Kept

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from pystream.query import Query

#: After the seal comes the length of the keys; a block begins with its length, its rows and where its first slice
#: begins.
KEYS = struct.Struct("<Q")
BLOCK = struct.Struct("<IIQ")

#: Blocks that are joined at least between two passes over the open windows: about as many rows as a batch of them has.
BAND_BLOCKS = 64

#: Partials of a full block (csrc/columns/codec.h).
BLOCK_ROWS = 1 << 10

#: A pass over the open windows costs as much as joining their partials. With so many times as many partials joined
#: before it, it costs less than these, and no more than 1 + BAND_SHARE times the open windows are held.
BAND_SHARE = 2

#: Rows that are folded before it is decided whether to fold, and the share of new keys above which it is not worth it:
#: then a parcel of keys that stand for rows is smaller, and made and taken in more quickly.
PROBE_ROWS = 1 << 16
KEPT_SHARE = 0.6

#: Shards are numbered with 16 bits.
SHARDS_MAX = 1 << 16

#: The shard and its parcel.
Parcel = tuple[int, bytes]


class PackedFold(Folding[Parcel]):
    """A Folding that gives parcels. `shard_of` gives the shard, below `shards`, of each row of a batch of keys.

    Parcels are sealed with the number of `sender`, one of its own if none is given, and numbered for each shard.
    """

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
        sender: int | None = None,
    ) -> None:
        super().__init__(query, schema, stream, position, max_bytes)
        if not 1 <= shards <= SHARDS_MAX:
            raise ValueError(f"shards must be between 1 and {SHARDS_MAX}, not {shards}")
        self._sender = secrets.randbits(64) if sender is None else sender
        self._sent: Counter[int] = Counter()  # parcels by shard
        self._shards = shards
        self._shard_of = shard_of or (lambda keys: np.zeros(keys.num_rows, np.uint16))

    def _is_full(self) -> bool:
        kept = sum(keys.nbytes for keys in (self._kept or {}).values())
        return self._gains_nothing() or self._handle.bytes + kept > self._max_bytes

    def _gains_nothing(self) -> bool:
        """Whether rows are folded that have hardly two of a key."""
        rows = self._handle.rows
        return self._kept is None and rows >= PROBE_ROWS and self._handle.keys > KEPT_SHARE * rows

    def _keep(self, batch: pa.RecordBatch) -> None:
        if self._kept is not None:  # it replaces what was kept of rows that were not taken then
            self._kept[self._handle.keys] = self._columns.keys_of(batch)

    def _empty(self) -> tuple[_native.FoldHandle, Kept | None]:
        """Rows are kept after some that were not worth folding; after those that were kept some are folded again."""
        if not self._gains_nothing():
            return super()._empty()
        handle = self._columns.handle()
        handle.keep_rows()
        return handle, {}

    def _export(self) -> Iterator[Parcel]:
        if not self._handle.entries:
            return
        kept = self._kept
        keys = self._columns.keys(self._handle) if kept is None else pa.concat_batches(kept.values())
        shards = self._checked(self._shard_of(keys), keys.num_rows)
        for shard, parcel in _parcels(self._handle, keys, shards, self._shards):
            seal = seals.Seal(shard, self._sent[shard], sender=self._sender)
            self._sent[shard] += 1
            yield shard, seals.sealed(seals.PARTIALS, seal, *parcel)

    def _checked(self, shards: NDArray[np.uint16], keys: int) -> NDArray[np.uint16]:
        """What `shard_of` gave, as C reads it."""
        shards = np.ascontiguousarray(shards)
        if shards.dtype != np.uint16 or shards.shape != (keys,) or (keys and int(shards.max()) >= self._shards):
            what = f"{shards.dtype} of shape {shards.shape}"
            raise ValueError(f"shard_of must give {keys} numbers below {self._shards} as uint16; it gave {what}")
        return shards


class _Block(NamedTuple):
    """Some partials of a parcel that are not joined yet. Blocks sort by time."""

    begin: int  # of the first slice
    parcel: int  # parcels are numbered as they are taken
    at: int  # where it lies in the parcel
    end: int
    keys: Any  # of the parcel: their numbers in C
    data: memoryview  # the parcel


@dataclass
class _Range:
    """Blocks of a parcel that lie side by side and are to be joined; `done` says when they are."""

    keys: Any  # their numbers in C
    blocks: memoryview
    done: _native.Done = field(default_factory=_native.Done)


class PackedCombine(Combine):
    """A Combine for parcels.

    Parcels may be taken at any time, between two batches of `advance` too. What is taken stays here until it is joined,
    so nothing is lost if the windows are not asked for to the end.

    `pack()` and `start` are its whole state, as `held()` and `start`, in a fraction of the bytes:
    `PackedCombine(..., start=start, packed=packed)` goes on from there.
    """

    def __init__(
        self,
        query: Query,
        schema: pa.Schema,
        stream: str | None = None,
        position: str | None = None,
        start: int = 0,
        held: Iterable[pa.RecordBatch] = (),
        packed: bytes = b"",
    ) -> None:
        super().__init__(query, schema, stream, position, start, held)
        self._taken: dict[seals.Seal, int] = {}  # parcels that could come again, and where their first window starts
        self._numbers = count()  # of parcels
        self._blocks: list[_Block] = []
        self._band: list[_Range] = []  # being joined
        self._promised = start  # windows that start before this are given, or will be before anything else is joined
        if packed:
            self._load(packed)

    def take(self, parcel: bytes) -> None:
        """Take a parcel; nothing is read yet but its keys. One that is damaged, late or here already is refused."""
        seal, data = seals.opened(parcel, seals.PARTIALS)
        keys, blocks = self._parts(data)
        self._out.hold(lambda: self._take(seal, keys, data, blocks))

    def pack(self) -> bytes:
        """What is held for windows to come, in few bytes."""
        return self._out.hold(self._pack)

    @property
    def partials(self) -> int:
        """How many partials are held, one per (slice, key); those of parcels that are not joined yet do not count."""
        return self._handle.entries

    def _parts(self, data: memoryview) -> tuple[pa.RecordBatch, list[tuple[int, int, int]]]:
        """The keys of a parcel as C reads them, and its blocks."""
        try:
            (length,) = KEYS.unpack_from(data)
            at = KEYS.size + length
            keys = pa.ipc.read_record_batch(pa.py_buffer(data[KEYS.size : at]), self._columns.key_schema)
            blocks = _look(data, at)
            if keys.num_rows > 8 * len(data):  # each has a partial at least, which takes a bit
                raise PartialError(f"packed partials: {keys.num_rows} keys in {len(data)} bytes")
            return self._columns.load_keys(keys), blocks
        except (struct.error, SchemaError, pa.ArrowException, OSError, EOFError) as error:
            raise PartialError(f"packed partials: {error}") from error

    def _load(self, packed: bytes) -> None:
        """Take in what `pack` gave."""
        keys, blocks = self._parts(memoryview(packed))
        if blocks:
            numbers = self._handle.number_keys(keys)
            self._join(_Range(numbers, memoryview(packed)[blocks[0][1] :]), held=True)

    # Guarded by the outbox.

    def _take(
        self, seal: seals.Seal, keys: pa.RecordBatch, data: memoryview, blocks: list[tuple[int, int, int]]
    ) -> None:
        if seal in self._taken:
            raise PartialError(f"{seal.name(seals.PARTIALS)}: came twice")
        self._check_time(blocks)
        if not blocks:  # whether once or twice
            return
        parcel, keys_in_c = next(self._numbers), self._handle.number_keys(keys)
        start = self._columns.first_start(blocks[0][0])
        fresh = [_Block(begin, parcel, at, end, keys_in_c, data) for begin, at, end in blocks]
        self._blocks += fresh  # together with the next statement: see handover.py
        self._taken[seal] = start

    def _check_time(self, blocks: list[tuple[int, int, int]]) -> None:
        if self._finished:
            raise ClosedError("all windows have been given: no partial can come any more")
        for begin, _, _ in blocks[:1]:  # the others begin later
            if self._columns.first_start(begin) < self._promised:
                what, why = _native.LATE
                raise PartialError(f"packed partials: __{what} = {begin} {why}")

    def _bring(self, until: int | None) -> None:
        """Join the parcels, band by band, until windows are complete; at last give all others."""
        self._finished = self._finished or until is None
        if until is not None:
            self._promise(self._columns.first_start(until))
        while not self._out and (self._blocks or self._band):
            self._join_band()
            self._blocks.sort()  # quick: only those of new parcels are not in order
            if self._blocks and self._handle.entries:
                self._fetch(self._blocks[0].begin if until is None else min(self._blocks[0].begin, until))
            if not self._out:
                self._next_band()
        if not self._out:  # keys are not forgotten before: the blocks know their numbers
            super()._bring(until)

    def _promise(self, start: int) -> None:
        """Refuse from now on what belongs to windows that start before. So seals of such parcels are not needed."""
        if start > self._promised:
            self._promised = start
            self._taken = {seal: first for seal, first in self._taken.items() if first >= start}

    def _next_band(self) -> None:
        """Choose the earliest blocks, which are sorted."""
        blocks = max(BAND_BLOCKS, BAND_SHARE * self._handle.entries // BLOCK_ROWS)
        band = sorted(self._blocks[:blocks], key=lambda block: (block.parcel, block.at))
        ranges = []
        for _, own in groupby(band, key=lambda block: block.parcel):
            near = list(own)  # side by side: those of a parcel lie in the order of time
            ranges.append(_Range(near[0].keys, near[0].data[near[0].at : near[-1].end]))
        self._band = ranges
        del self._blocks[:blocks]

    def _join_band(self) -> None:
        while self._band:
            self._join(self._band[-1])
            del self._band[-1]

    def _join(self, part: _Range, *, held: bool = False) -> None:
        if part.done.is_ok:
            return
        try:
            self._handle.add_packed(part.done, part.keys, part.blocks, held=held)
        except _native.Fault as fault:
            raise self._columns.partial_error(fault, None) from None

    def _held(self) -> list[pa.RecordBatch]:
        """As of `Combine`; what the parcels have is in it."""
        self._join_all()
        return super()._held()

    def _join_all(self) -> None:
        self._blocks.sort()
        while self._blocks or self._band:
            self._join_band()
            self._next_band()

    def _pack(self) -> bytes:
        """Two shards: what is held, and the keys that nothing is held of."""
        self._join_all()
        if not self._handle.entries:
            return b""
        keys = self._columns.keys(self._handle)
        packed = _parcels(self._handle, keys, self._handle.unused_keys(), 2, by_key=True)
        return b"".join(part for _, parts in packed for part in parts)


def _parcels(
    handle: _native.FoldHandle, keys: pa.RecordBatch, shards: NDArray[np.uint16], count: int, *, by_key: bool = False
) -> Iterator[tuple[int, tuple[bytes, bytes, bytes]]]:
    """What a fold holds: the parts of a parcel of each shard that has some."""
    ordered = keys.take(pa.array(np.argsort(shards, kind="stable")))
    ends = [0, *np.cumsum(np.bincount(shards, minlength=count)).tolist()]
    for shard, blocks in handle.pack(shards, count, by_key=by_key):
        own = ordered.slice(ends[shard], ends[shard + 1] - ends[shard]).serialize().to_pybytes()
        yield shard, (KEYS.pack(len(own)), own, blocks)


def _look(data: memoryview, at: int) -> list[tuple[int, int, int]]:
    """The blocks of a parcel: where their first slice begins, and from where to where they lie."""
    if at > len(data):
        raise PartialError(f"packed partials: the keys end at byte {at} of {len(data)}")
    blocks: list[tuple[int, int, int]] = []
    while at < len(data):
        length, _, begin = BLOCK.unpack_from(data, at)
        if blocks and begin < blocks[-1][0]:  # those of a band would not lie side by side
            raise PartialError(f"packed partials: a block that begins at {begin} comes after one at {blocks[-1][0]}")
        if not BLOCK.size <= length <= len(data) - at:
            raise PartialError(f"packed partials: a block of {length} bytes where {len(data) - at} are left")
        blocks.append((begin, at, at + length))
        at += length
    return blocks
