"""Seals: a head in front of bytes that leave a process, by which the receiver identifies and checks them.

    head      magic, version, kind, shard, number, total, sender, length of the body; CRC-32 of all that and the body
    body

A seal notices accidents: flipped bits, lost ends, bytes that came twice or to the wrong shard. It keeps nobody out who
forges a checksum too, so bodies are parsed with care all the same.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from pystream.errors import PartialError, PystreamError, SnapshotError

if TYPE_CHECKING:
    from collections.abc import Iterable

MAGIC = b"PyS\x1a"
VERSION = 2

#: 40 bytes with the checksum: Arrow's buffers in the body stay on addresses that 8 divides.
_HEAD = struct.Struct("<4sHHIIIQQ")
_SUM = struct.Struct("<I")
SIZE = _HEAD.size + _SUM.size


class Kind(NamedTuple):
    """What sealed bytes are; `stage` says in errors where they were on their way."""

    code: int
    stage: str
    error: type[PystreamError] = PartialError


PARTIALS = Kind(1, "partials, between fold and combine")
ROWS = Kind(2, "rows, between partition and shard")
MARKS = Kind(3, "marks, between partition and shard")
RESULTS = Kind(4, "results, between shard and output")
STATE = Kind(5, "state, in the checkpoint", SnapshotError)
COUNTS = Kind(6, "counts, between fold and combine")
ORDERS = Kind(7, "orders, between partition and shard")
FILES = Kind(8, "names of files, between partition and shard")


class Seal(NamedTuple):
    """What the head says: this is the `number`-th of `total` things (0: not known) that `sender` had for the shard."""

    shard: int
    number: int = 0
    total: int = 0
    sender: int = 0

    def name(self, kind: Kind) -> str:
        """How errors call what it is on."""
        return f"shard {self.shard}, {kind.stage}, number {self.number}"


def sealed(kind: Kind, seal: Seal, *body: Any, also: bytes = b"") -> bytes:
    """The bytes-like parts of a body as one sealed whole; the checksum covers `also`, which is kept elsewhere."""
    length = sum(memoryview(part).nbytes for part in body)
    head = _HEAD.pack(MAGIC, VERSION, kind.code, seal.shard, seal.number, seal.total, seal.sender, length)
    return b"".join((head, _SUM.pack(_checksum((head, also, *body))), *body))


def opened(blob: Any, kind: Kind, shard: int | None = None, also: bytes = b"") -> tuple[Seal, memoryview]:
    """The seal and the body, if they are whole, of this kind and of this shard (None: any)."""
    seal = head(blob, kind, shard)
    data = memoryview(blob).cast("B")
    body = data[SIZE:]
    (told,) = _SUM.unpack_from(data, _HEAD.size)
    if told != _checksum((data[: _HEAD.size], also, body)):
        raise kind.error(f"{seal.name(kind)}: damaged, the checksum is wrong")
    return seal, body


def head(blob: Any, kind: Kind, shard: int | None = None) -> Seal:
    """The seal alone; the checksum is not looked at."""
    data = memoryview(blob).cast("B")
    where = kind.stage if shard is None else f"shard {shard}, {kind.stage}"
    if len(data) < SIZE or bytes(data[: len(MAGIC)]) != MAGIC:
        raise kind.error(f"{where}: damaged, {len(data)} bytes without a seal of pystream's")
    _, version, code, own, number, total, sender, length = _HEAD.unpack_from(data)
    if version != VERSION:
        raise kind.error(f"{where}: sealed in version {version}, this pystream reads version {VERSION}")
    if code != kind.code:
        raise kind.error(f"{where}: damaged, these are bytes of another kind ({code} instead of {kind.code})")
    seal = Seal(own, number, total, sender)
    if shard is not None and own != shard:
        raise kind.error(f"{where}: damaged, these bytes are of shard {own}")
    if length != len(data) - SIZE:
        raise kind.error(f"{seal.name(kind)}: damaged, {len(data) - SIZE} bytes instead of {length}")
    return seal


def is_of(blob: Any, kind: Kind) -> bool:
    """Whether the head names this kind; nothing else is looked at."""
    data = memoryview(blob).cast("B")
    return len(data) >= SIZE and _HEAD.unpack_from(data)[2] == kind.code


def _checksum(parts: Iterable[Any]) -> int:
    total = 0
    for part in parts:
        total = crc32(part, total)
    return total
