"""What travels between Spark's phases or lies in a checkpoint, damaged: an error every time, never another result."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING
from unittest import mock

import pyarrow as pa
import pytest
from faults import record
from strategies import Collect

import pystream as ps
from pystream.partials import folding, packed, seals

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark.rows.phases import Phases
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.stream import outgoing
from pystream.spark.stream.parcels import pack
from pystream.spark.stream.shard import Shard
from pystream.spark.stream.state import Layout, Saved

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SCHEMA = pa.schema([*((name, pa.int64()) for name in ("ts", "stream", "position", "k", "v")), ("id", pa.string())])
FOLDED = ps.Query(ps.Window(10, 4), "k", {"n": ps.count(), "sum": ps.sum("v"), "f": ps.first("id"), "l": ps.last("v")})
USER = ps.Query(ps.Window(10, 4), "k", {"seen": ps.udf(Collect, type=pa.string())})
SHARD = 1
LABELS = shard_labels(2)

Blobs = dict[str, list]  # what travels, by its name
Rows = list[dict]


@dataclass
class Journey:
    """Something that travels as bytes: what is sent, and what comes of it at the other end."""

    sent: Blobs
    receive: Callable[[Blobs], Rows]
    kinds: dict[str, seals.Kind] = field(default_factory=dict)  # of the bytes that have a seal

    def outcome(self, blobs: Blobs) -> str:
        """`refused`, `same` or `other`."""
        try:
            rows = self.receive(blobs)
        except ps.PystreamError:
            return "refused"
        except UnicodeDecodeError:  # pyarrow's, on looking at a text: another result
            return "other"
        return "same" if rows == self.receive(self.sent) else "other"


def batch(first: int, rows: int) -> pa.RecordBatch:
    """Rows of two streams and five keys; user code collects the ids."""
    made = [
        {"ts": i // 2, "stream": i % 2, "position": i, "k": i % 5, "v": i * 37 % 101, "id": f"é{i % 7}"}
        for i in range(first, first + rows)
    ]
    return pa.RecordBatch.from_pylist(made, SCHEMA)


def rows_of(batches: list[pa.RecordBatch]) -> Rows:
    return sorted((row for b in batches for row in b.to_pylist()), key=repr)


# ---- what travels ----


@cache
def batch_phases() -> Journey:
    """Chunks of packed partials between the two phases of a batch query; a chunk is small here."""
    phases = Phases(FOLDED, SCHEMA, "stream", "position")
    with mock.patch("pystream.spark.rows.phases.task_number", side_effect=[0, 1]):
        chunks = [b for first in (0, 60) for b in phases.packed(iter([batch(first, 60)]), [0])]
    table = pa.Table.from_batches(chunks)
    sent = {name: table[name].to_pylist() for name in ("batch", "chunk", "chunks", "bytes")}
    types = table.schema

    def receive(blobs: Blobs) -> Rows:
        columns = [pa.array(blobs[name], types.field(name).type) for name in sent]
        return rows_of(list(phases.windows(iter([pa.record_batch(columns, [*sent])]))))

    return Journey(sent, receive, {"bytes": seals.PARTIALS})


def layout_of(query: ps.Query, **more) -> Layout:
    return Layout(query, SCHEMA, "stream", "position", 2, **more)


def parcels_of(layout: Layout, *parts: pa.RecordBatch) -> Blobs:
    """What partitions send to a shard."""
    label = LABELS[SHARD]
    mine = [p for part in parts for b in pack(layout, [part]) for p in b.to_pylist() if p["shard"] == label]
    return {name: [p[name] for p in mine if p[name] is not None] for name in ("rows", "marks")}


def _stepped(layout: Layout) -> Journey:
    """Parcels and marks of a micro-batch; what the shard gives now and in the end."""

    def receive(blobs: Blobs) -> Rows:
        done = Shard(layout, SHARD, None).step(blobs["rows"], blobs["marks"])
        counts = [{name: done.counts[name] for name in ("rows_in", "latest", "frontier")}]
        return rows_of(done.rows) + rows_of(list(Shard(layout, SHARD, done.saved).finish())) + counts

    kind = seals.PARTIALS if layout.packs else seals.ROWS
    return Journey(parcels_of(layout, batch(0, 60), batch(60, 60)), receive, {"rows": kind, "marks": seals.MARKS})


@cache
def micro_batch() -> Journey:
    return _stepped(layout_of(FOLDED))


@cache
def micro_batch_of_kept_rows() -> Journey:
    """As with many keys: of each row a partial, and its key."""
    with mock.patch.multiple(packed, PROBE_ROWS=1, KEPT_SHARE=0), mock.patch.object(folding, "PIECE_ROWS", 20):
        return _stepped(layout_of(FOLDED))


@cache
def micro_batch_of_rows() -> Journey:
    return _stepped(layout_of(FOLDED, drop_late=True))


def _saved(layout: Layout) -> Journey:
    """A state in a checkpoint, and a micro-batch that goes on from it."""
    before = Shard(layout, SHARD, None).step(*parcels_of(layout, batch(0, 60)).values())
    text, body = before.saved.to_state(SHARD)
    then = parcels_of(layout, batch(60, 60))

    def receive(blobs: Blobs) -> Rows:
        (text,), (body,) = blobs["layout"], blobs["body"]
        try:
            saved = Saved.of_state(layout, SHARD, bytes(text).decode(), body)
        except UnicodeDecodeError as error:  # Spark's strings are UTF-8: it would not come so far
            raise ps.PystreamError(str(error)) from error
        done = Shard(layout, SHARD, saved).step(*then.values())
        return rows_of(done.rows) + rows_of(list(Shard(layout, SHARD, done.saved).finish()))

    return Journey({"layout": [text.encode()], "body": [body]}, receive, {"body": seals.STATE})


@cache
def state() -> Journey:
    return _saved(layout_of(FOLDED))


@cache
def state_of_user_code() -> Journey:
    return _saved(layout_of(USER))


@cache
def results() -> Journey:
    """Results of a shard on their way to the output, in three parts."""
    layout = layout_of(FOLDED)
    done = Shard(layout, SHARD, None).step(*parcels_of(layout, batch(0, 120)).values())
    (whole,) = done.rows
    third = -(-whole.num_rows // 3)
    parts = outgoing.sent([whole.slice(i, third) for i in range(0, whole.num_rows, third)], SHARD)

    def receive(blobs: Blobs) -> Rows:
        column = pa.record_batch([pa.array(blobs["rows"], pa.binary())], ["rows"])
        return rows_of(list(outgoing.arrived([column], whole.schema)))

    return Journey({"rows": parts}, receive, {"rows": seals.RESULTS})


JOURNEYS = [
    batch_phases,
    micro_batch,
    micro_batch_of_kept_rows,
    micro_batch_of_rows,
    state,
    state_of_user_code,
    results,
]


def test_what_is_not_damaged_arrives():
    for make in JOURNEYS:
        journey = make()
        assert len(journey.receive(journey.sent)) > 10
        assert journey.outcome(journey.sent) == "same"


# ---- damage ----


def flipped(data: bytes, dice: random.Random) -> bytes:
    at, bits = dice.randrange(len(data)), dice.randint(1, 255)
    return data[:at] + bytes([data[at] ^ bits]) + data[at + 1 :]


def region(data: bytes, dice: random.Random) -> tuple[int, int]:
    begin = dice.randrange(len(data))
    return begin, min(len(data), begin + dice.choice([1, 2, 4, 8, 16, 64, 512]))


def cut(data: bytes, dice: random.Random) -> bytes:
    begin, end = region(data, dice)
    return data[:begin] + data[end:]


def doubled(data: bytes, dice: random.Random) -> bytes:
    begin, end = region(data, dice)
    return data[:end] + data[begin:]


def reordered(data: bytes, dice: random.Random) -> bytes:
    begin, end = region(data, dice)
    at = dice.randrange(len(data))
    rest = data[:begin] + data[end:]
    return rest[:at] + data[begin:end] + rest[at:]


def overwritten(data: bytes, dice: random.Random) -> bytes:
    begin, end = region(data, dice)
    return data[:begin] + dice.choice([bytes(end - begin), dice.randbytes(end - begin)]) + data[end:]


DAMAGES = [flipped, cut, doubled, reordered, overwritten]


def exhaustive(blobs: Blobs) -> Iterator[Blobs]:
    """Every byte changed, every end cut off; the whole left out, doubled and in the place of its neighbour."""
    for name, blob, i in ((name, blob, i) for name, some in blobs.items() for i, blob in enumerate(some)):
        if not isinstance(blob, bytes):
            yield from (replaced(blobs, name, i, value) for value in (None, -1, 0, 1, blob + 1, blob ^ 1 << 30))
            continue
        for at in range(len(blob)):
            yield replaced(blobs, name, i, blob[:at] + bytes([blob[at] ^ 1 << at % 8]) + blob[at + 1 :])
            yield replaced(blobs, name, i, blob[:at])
    others = [name for name, some in blobs.items() if isinstance(some[0], bytes)]
    yield from (replaced(blobs, a, 0, blobs[b][-1]) for a in others for b in others)


def replaced(blobs: Blobs, name: str, i: int, blob: object) -> Blobs:
    return blobs | {name: [*blobs[name][:i], blob, *blobs[name][i + 1 :]]}


def at_random(blobs: Blobs, dice: random.Random, times: int) -> Iterator[Blobs]:
    places = [(name, i) for name, some in blobs.items() for i in range(len(some)) if isinstance(some[i], bytes)]
    for _ in range(times):
        name, i = dice.choice(places)
        yield replaced(blobs, name, i, dice.choice(DAMAGES)(blobs[name][i], dice))


@pytest.mark.parametrize("make", JOURNEYS)
@pytest.mark.parametrize("times", [1_000, pytest.param(50_000, marks=pytest.mark.deep)])
def test_damage_is_noticed(make, times):
    journey, dice = make(), random.Random(7)
    outcomes = {"refused": 0, "same": 0, "other": 0}
    for blobs in (*exhaustive(journey.sent), *at_random(journey.sent, dice, times)):
        if blobs != journey.sent:
            outcomes[journey.outcome(blobs)] += 1
    tried = sum(outcomes.values())
    record(
        "Spark: a parcel or state with damaged bytes",
        tried=tried,
        survived=tried - outcomes["other"],
        lost=outcomes["other"],
        where="tests/spark/test_damage.py",
    )
    assert outcomes["other"] == 0
    assert outcomes["refused"] > times / 2


def test_parcels_that_are_lost_or_doubled():
    for make in (micro_batch, micro_batch_of_kept_rows, micro_batch_of_rows, results):
        journey = make()
        for name, some in journey.sent.items():
            for i in range(len(some)):
                for changed in ([*some[:i], *some[i + 1 :]], [*some, some[i]], [*some[:i], some[i], *some[i:]]):
                    assert journey.outcome(journey.sent | {name: changed}) == "refused", (make, name, i)
    journey = batch_phases()
    twice = {name: some * 2 for name, some in journey.sent.items()}
    assert journey.outcome(twice) == "refused"


def test_the_parcels_of_another_shard():
    """Whole in themselves, at the wrong place: the error says where and whose."""
    layout = layout_of(FOLDED)
    mine = parcels_of(layout, batch(0, 60))
    saved = Shard(layout, SHARD, None).step(*mine.values()).saved
    with pytest.raises(ps.PartialError, match=r"shard 0, marks, between partition and shard: damaged, .* of shard 1"):
        Shard(layout, 0, None).step(mine["rows"], mine["marks"])
    with pytest.raises(ps.SnapshotError, match=r"shard 0, state, in the checkpoint: damaged, .* of shard 1"):
        Saved.of_state(layout, 0, *saved.to_state(SHARD))


def test_the_error_says_where():
    journey = micro_batch()
    bad = journey.sent["rows"][0]
    with pytest.raises(
        ps.PartialError,
        match="shard 1, partials, between fold and combine, number 0: damaged, the checksum is wrong",
    ):
        journey.receive(replaced(journey.sent, "rows", 0, bad[:-1] + bytes([bad[-1] ^ 1])))


# ---- forgery: the seal is right, what is in it is not ----


@pytest.mark.parametrize("make", JOURNEYS)
@pytest.mark.parametrize("times", [1_000, pytest.param(50_000, marks=pytest.mark.deep)])
def test_forged_bytes_do_no_harm(make, times):
    """Other results are the forger's to choose; anything but those and an error of ours is a fault."""
    journey, dice = make(), random.Random(8)
    kinds, sent = journey.kinds, journey.sent
    places = [(name, i) for name in kinds for i, blob in enumerate(sent[name]) if seals.is_of(blob, kinds[name])]
    for _ in range(times):
        name, i = dice.choice(places)
        journey.outcome(replaced(journey.sent, name, i, forged(journey, name, i, dice)))
    record(
        "Spark: a parcel or state forged with a right checksum",
        tried=times,
        survived=times,
        lost=0,
        where="tests/spark/test_damage.py",
    )


def forged(journey: Journey, name: str, i: int, dice: random.Random) -> bytes:
    kind = journey.kinds[name]
    also = journey.sent["layout"][0] if kind is seals.STATE else b""
    seal, body = seals.opened(journey.sent[name][i], kind, also=also)
    return seals.sealed(kind, seal, dice.choice(DAMAGES)(bytes(body), dice), also=also)
