"""A shard of a streaming aggregate: what a micro-batch does to its state; knows Arrow and nothing of Spark.

All shards know the streams' latest timestamps (parcels.py) and with them the frontier (streams.py): no stream can
bring a row below it any more. Windows that end at the frontier or below are finished.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pystream._engine.plan import Plan
from pystream._engine.time_text import too_low
from pystream.errors import DisorderError, PystreamError
from pystream.partials import seals
from pystream.spark.stream.orders import unpacked_orders
from pystream.spark.stream.parcels import Told, check_complete, merged_marks, ticks
from pystream.spark.stream.shard_windows import windows_of
from pystream.spark.stream.state import Layout, Saved
from pystream.spark.stream.streams import Streams
from pystream.spark.stream.table_bytes import table_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: What is told of every micro-batch: rows that came, came too late and left; rows or partials that are held for later;
#: the latest timestamp; the frontier.
COUNTS = ("rows_in", "rows_late", "rows_out", "held", "latest", "frontier")


class Step(NamedTuple):
    """What a micro-batch did to a shard."""

    saved: Saved
    rows: list[pa.RecordBatch]
    counts: dict[str, int]  # COUNTS
    holding: list[dict[str, int | None]]  # who holds windows back; the first shard says it for all


class Shard:
    """One shard in one micro-batch: its state before, and what the rows do to it."""

    def __init__(self, layout: Layout, number: int, saved: Saved | None) -> None:
        self.layout = layout
        self.number = number
        self.saved = saved or Saved(layout.description)
        layout.check(self.saved.layout)
        self.streams = Streams.of_text(self.saved.latest, number, self.saved.frontier)
        self.streams.declared = layout.streams

    def step(self, parcels: Iterable[bytes], marks: Iterable[bytes], now: int = 0) -> Step:
        """Take a micro-batch: the shard's parcels, the marks of all partitions and orders, and its time (ms)."""
        every, sent = list(marks), list(parcels)
        orders = [blob for blob in every if seals.is_of(blob, seals.ORDERS)]
        told = [Told.of(blob, self.number) for blob in every if not seals.is_of(blob, seals.ORDERS)]
        kind = seals.PARTIALS if self.layout.packs else seals.ROWS
        if told or sent or not orders:
            check_complete(self.number, told, [seals.head(parcel, kind, self.number) for parcel in sent])
        extremes = merged_marks([one.marks for one in told])
        packed = sent if self.layout.packs else []
        tables, late = self._in_time([] if packed else [self._rows_of(parcel) for parcel in sent], extremes)
        latest = zip(extremes["stream"].to_pylist(), extremes["greatest"].to_pylist(), strict=True)
        self.streams.take(latest, unpacked_orders(orders, self.number), now)
        frontier = self.streams.frontier
        windows = windows_of(self.layout, self.number, self.saved)
        out = windows.advance(packed or tables, frontier)
        saved = windows.saved()._replace(
            latest=self.streams.to_text(),
            frontier=frontier,
            rows_late=self.saved.rows_late + late,
        )
        rows_in = sum(one.rows_in for one in told)
        numbers = rows_in, late, _rows(out), windows.held, self.streams.foremost, frontier
        return Step(saved, out, dict(zip(COUNTS, numbers, strict=True)), self._holding())

    def finish(self) -> Iterator[pa.RecordBatch]:
        """The windows that are still open, as if all streams ended here."""
        yield from windows_of(self.layout, self.number, self.saved).finish()

    def _rows_of(self, parcel: bytes) -> pa.Table:
        seal, body = seals.opened(parcel, seals.ROWS, self.number)
        return table_of(seals.ROWS, seal, body, self.layout.schema)

    def _holding(self) -> list[dict[str, int | None]]:
        return [] if self.number else self.streams.holding(*Plan(self.layout.query, self.layout.schema).window)

    def _in_time(self, tables: list[pa.Table], extremes: pa.Table) -> tuple[list[pa.Table], int]:
        """Without the rows that come too late, and how many these are; an error if they may not be dropped."""
        kept, declared = tables, self.layout.streams
        for stream, least in sorted(zip(extremes["stream"].to_pylist(), extremes["least"].to_pylist(), strict=True)):
            if declared is not None and stream not in declared:
                raise PystreamError(f"stream {stream} is not one of the declared: {', '.join(map(str, declared))}")
            if least < self.streams.bound(stream):
                if not self.layout.drop_late:
                    raise self._disorder(stream, least)
                kept = [self._without_late(table, stream) for table in kept]
        return kept, _rows(tables) - _rows(kept)

    def _without_late(self, table: pa.Table, stream: int) -> pa.Table:
        others = pc.not_equal(table[self.layout.stream], stream)
        return table.filter(pc.or_(others, pc.greater_equal(ticks(self.layout, table), self.streams.bound(stream))))

    def _disorder(self, stream: int, ts: int) -> DisorderError:
        bound, type = self.streams.bound(stream), self.layout.schema.field(self.layout.query.ts).type
        of = "up to where windows were finished before this stream appeared: declare `streams`"
        if bound == self.streams.latest.get(stream):
            of = "the latest timestamp of this stream in an earlier micro-batch"
        elif bound == self.streams.promised.get(stream):
            of = "which was promised for this stream"
        elif stream in self.streams.latest or stream in self.streams.let_go:
            of = "up to where windows were finished while this stream did not count; late='drop' would drop the row"
        what = f"stream {stream}: {too_low(ts, bound, type, of)}"
        return DisorderError(what, input=stream, row=None, ts=ts, latest=bound)


def _rows(tables: Iterable[pa.Table | pa.RecordBatch]) -> int:
    return sum(table.num_rows for table in tables)
