"""Orders to a running query about its streams, as files in a folder: `Orders` writes them, the shards obey.

The folder is a second source of the query. Spark notes in the checkpoint which files belong to which micro-batch, so
an order takes effect once, and a micro-batch that is run again after a crash gets the same ones.
"""

from __future__ import annotations

import json
import os
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql import functions as f

from pystream.errors import PystreamError
from pystream.partials import seals
from pystream.partials.seals import Seal
from pystream.query import Window
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.stream.parcels import PARCELS
from pystream.spark.task_process import task_number

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from datetime import timedelta

    from pyspark.sql import DataFrame, SparkSession

    from pystream.spark.stream.state import Layout

    Batches = Iterator[pa.RecordBatch]

#: What Spark's source for binary files gives, as it wants to be told.
FOUND = "path string, modificationTime timestamp, length long, content binary"

#: When the order was written, in ns: tells which came first where the file system knows seconds only.
AT = "at"


class Orders:
    """A folder with orders to a running query: which streams it waits for. Give it as `orders=` to `aggregate`.

    A stream that falls silent holds back all windows that it may still contribute to; `explain_stall` says which it is.

    - `let_go(stream)`: do not wait for it any more. Its rows still count where they are not below the frontier, up to
      which windows are finished; rows below are late, and what becomes of them is what `late` says: "error" fails the
      query, "drop" drops and counts them.
    - `take_back(stream)`: wait for it again, from the frontier on.
    - `promise(stream, ts)`: it sends no rows below `ts` any more, which are late from now on.
    - `lag(ticks)`: for all streams: none is further behind the foremost row of all than this. None: no such promise.
    - `idle_after(time)`: a stream without rows for this time of the clock does not count until it sends again. The
      clock is that of the micro-batches, which is in Spark's checkpoint. None: silent streams are waited for.

    If no stream is left that counts, the frontier stays where it is; `finish` gives what is open.

    An order takes effect with the next micro-batch, after its rows, and once; the order in which they were given is
    kept. Files may also be written by hand, whole when they appear (write elsewhere, then move), one order per line:

        {"let_go": 3}
        {"promise": 3, "ts": "2026-11-18T12:00:00Z"}
        {"idle_after": "10m"}

    Never change or delete a file while the query lives: a restart may need it. The folder has to be there when the
    query is first started: Spark refuses a checkpoint of a query that had one source less.

    >>> orders = Orders(spark, f"{folder}/orders")
    >>> orders.let_go(3)
    >>> orders.idle_after("10m")
    """

    def __init__(self, spark: SparkSession, folder: str | os.PathLike[str]) -> None:
        self.folder = os.fspath(folder)
        self._spark = spark

    def make_folder(self) -> None:
        """Make the folder if it is not there: Spark reads from what exists."""
        self._spark.createDataFrame([], "value string").write.mode("ignore").text(self.folder)

    def let_go(self, stream: int) -> None:
        """Do not wait for a stream any more."""
        self._write({"let_go": stream})

    def take_back(self, stream: int) -> None:
        """Wait for a stream again."""
        self._write({"take_back": stream})

    def promise(self, stream: int, ts: int | str | datetime) -> None:
        """A stream sends nothing below a timestamp any more: ticks, or a time where the column is a timestamp."""
        self._write({"promise": stream, "ts": ts.isoformat() if isinstance(ts, datetime) else ts})

    def lag(self, most: int | str | None) -> None:
        """No stream is further behind the foremost: ticks, or a text such as "1h" where the column is a timestamp."""
        self._write({"lag": most})

    def idle_after(self, time: str | timedelta | None) -> None:
        """Do not wait for a stream that has been silent for this time of the clock, such as "10m"."""
        ms = None if time is None else Window(time).ticks("ms")[0]
        self._write({"idle_after": None if ms is None else f"{ms}ms"})

    def _write(self, order: dict[str, Any]) -> None:
        """Spark writes beside and moves: a file is whole when it appears."""
        line = json.dumps(order | {AT: time.time_ns()})
        self._spark.createDataFrame([(line,)], "value string").coalesce(1).write.mode("append").text(self.folder)


def orders_in(spark: SparkSession, folder: str | os.PathLike[str], layout: Layout) -> DataFrame:
    """A streaming DataFrame of parcels with the orders that come into a folder."""
    orders = Orders(spark, folder)
    orders.make_folder()
    found = spark.readStream.format("binaryFile").schema(FOUND).load(orders.folder)
    files = found.select("path", f.unix_millis("modificationTime").alias("modified"), "content")
    return files.mapInArrow(_packed(layout), ", ".join(f"{c.name} {_SQL[c.type]}" for c in PARCELS))


_SQL = {pa.int32(): "int", pa.binary(): "binary"}


def _packed(layout: Layout) -> Callable[[Batches], Batches]:
    def packed(batches: Batches) -> Batches:
        yield from pack_orders(layout, (row for batch in batches for row in batch.to_pylist()))

    return packed


def pack_orders(layout: Layout, files: Iterable[dict[str, Any]]) -> Batches:
    """The orders of some files, for every shard."""
    orders = [entry for file in files for entry in _entries(layout, **file)]
    if orders:
        body = json.dumps(orders).encode()
        for shard, label in enumerate(shard_labels(layout.shards)):
            told = seals.sealed(seals.ORDERS, Seal(shard, sender=task_number()), body)
            yield pa.RecordBatch.from_pylist([{"shard": label, "rows": None, "marks": told}], PARCELS)


def unpacked_orders(blobs: Iterable[bytes], shard: int) -> list[dict[str, Any]]:
    """The orders of all files, in the order in which they were given."""
    entries = [e for blob in blobs for e in json.loads(bytes(seals.opened(blob, seals.ORDERS, shard)[1]))]
    return [order for *_, order in sorted(entries, key=lambda e: e[:-1])]


def _entries(layout: Layout, path: str, modified: int, content: bytes) -> Iterator[list[Any]]:
    for number, line in enumerate(content.decode(errors="replace").splitlines()):
        if line.strip():
            try:
                told = json.loads(line)
                yield [modified, told.pop(AT, 0), path, number, _checked(layout, told)]
            except (ValueError, TypeError, AttributeError, pa.ArrowException) as error:
                raise PystreamError(
                    f"{path}, line {number + 1}: {line[:200]!r} is no order ({error}); known are let_go, take_back, "
                    'promise with ts, lag, idle_after, as in {"let_go": 3}; mend the file and start the query again'
                ) from error


def _checked(layout: Layout, told: dict[str, Any]) -> dict[str, Any]:
    """The order with numbers for times."""
    match told:
        case {"let_go": stream, **rest} | {"take_back": stream, **rest} if not rest and type(stream) is int:
            return told
        case {"promise": stream, "ts": ts, **rest} if not rest and type(stream) is int:
            return {"promise": stream, "ts": _ticks(layout, ts)}
        case {"lag": most, **rest} if not rest:
            return {"lag": None if most is None else Window(most).ticks(_unit(layout))[0]}
        case {"idle_after": time, **rest} if not rest:
            return {"idle_after": None if time is None else Window(time).ticks("ms")[0]}
    raise ValueError("it is none of those")


def _ticks(layout: Layout, ts: int | str) -> int:
    if isinstance(ts, int):
        return ts
    if _unit(layout) is None:
        raise ValueError(f"column {layout.query.ts!r} has no times, so ts is a number")
    time = datetime.fromisoformat(ts)
    if time.tzinfo is None:
        raise ValueError("a time needs its zone, as in 2026-11-18T12:00:00Z")
    return int(pa.scalar(time, pa.timestamp(_unit(layout), "UTC")).cast(pa.int64()).as_py())


def _unit(layout: Layout) -> str | None:
    type = layout.schema.field(layout.query.ts).type
    return str(type.unit) if pa.types.is_timestamp(type) else None
