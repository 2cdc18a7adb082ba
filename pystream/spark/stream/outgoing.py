"""How results travel from the shards to the tasks that give them as rows; knows Arrow and nothing of Spark.

On their way they are copied a dozen times in Java, so they go in as few bytes as can be had quickly: integers in the
narrowest type that holds them, the start of a window once for all its rows, and all of it compressed. Of windows that
count a twentieth of the bytes is left, and it takes less time than to compress them as they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from pystream.errors import PartialError
from pystream.partials import seals
from pystream.partials.seals import Seal
from pystream.spark.stream.table_bytes import table_of, to_view

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Half a megabyte is a huge thing for Java's collector, and huge things set it off early; Spark makes room for twice as
#: much as is needed.
PART_BYTES = 1 << 17

COMPRESSION = "lz4" if pa.Codec.is_available("lz4") else None

NARROW = (pa.uint8(), pa.uint16(), pa.uint32())


def sent(batches: Iterable[pa.RecordBatch], shard: int) -> list[bytes]:
    """The rows of a shard's results, whose first column is the windows' start, in parts of PART_BYTES, about, or less.

    Parts are numbered and know how many they are.
    """
    bodies = [body for batch in batches for body in _bodies(batch)]
    seal = Seal(shard, total=len(bodies), sender=shard)
    return [seals.sealed(seals.RESULTS, seal._replace(number=i), body) for i, body in enumerate(bodies)]


def _bodies(batch: pa.RecordBatch) -> Iterator[memoryview]:
    starts, *others = batch.columns
    arrays = [pc.run_end_encode(starts), *map(_narrowed, others)]
    narrow = pa.RecordBatch.from_arrays(arrays, batch.schema.names)
    rows = max(1, batch.num_rows * PART_BYTES // max(1, narrow.nbytes))
    return (to_view(narrow.slice(i, rows), COMPRESSION) for i in range(0, batch.num_rows, rows))


def arrived(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows, in this schema, of parts that are in the first column; in the end no part may be missing."""
    due: dict[int, tuple[int, Seal]] = {}  # by sender: how many parts have come, and the first of them
    for batch in batches:
        for part in batch.column(0).drop_null():
            seal, body = seals.opened(part.as_buffer(), seals.RESULTS)
            come, first = due.setdefault(seal.sender, (0, seal))
            if seal != first._replace(number=come) or come == seal.total:
                raise PartialError(f"{seal.name(seals.RESULTS)}: part {come} of {first.total} should have come")
            due[seal.sender] = come + 1, first
            yield from _rows(seal, body, schema)
    for come, seal in due.values():
        if come != seal.total:
            raise PartialError(f"{seal.name(seals.RESULTS)}: only {come} of {seal.total} parts have come")


def _rows(seal: Seal, body: memoryview, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for narrow in table_of(seals.RESULTS, seal, body).to_batches():
        try:
            arrays = [_widened(c, f.type) for c, f in zip(narrow.columns, schema, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        except (ValueError, pa.ArrowException) as error:
            raise PartialError(f"{seal.name(seals.RESULTS)}: damaged, {error}") from error


def _narrowed(array: pa.Array) -> pa.Array:
    if not pa.types.is_integer(array.type):
        return array
    least, greatest = (v.as_py() for v in pc.min_max(array).values())
    fits = (t for t in NARROW if least is not None and 0 <= least <= greatest < 1 << t.bit_width)
    return array.cast(next(fits, array.type))


def _widened(array: pa.Array, type: pa.DataType) -> pa.Array:
    if pa.types.is_run_end_encoded(array.type):
        array = pc.run_end_decode(array)
    return array if array.type == type else array.cast(type)
