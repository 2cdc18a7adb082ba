"""Packed partials: whatever is packed, by whom and in which order it arrives, the windows are those of ps.aggregate."""

from __future__ import annotations

import gc
import math
import random
import tracemalloc
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING
from unittest import mock
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import cases
from streams import ALL, stream
from test_partials import ORDER, TYPES, assert_same, batch_of, inputs_of, single, spread, table_of, tagged

import pystream as ps
from pystream.data.sample import comments, smart_meters
from pystream.partials import PackedCombine, PackedFold, folding, packed, seals
from pystream.queries import PAPER

if TYPE_CHECKING:
    from collections.abc import Iterator

QUERY = ps.Query(ps.Window(10, 4), "k", ALL)


def shard_of(shards: int):
    """The shard of each key, by its value alone."""
    return lambda keys: np.array([crc32(repr(row).encode()) % shards for row in keys.to_pylist()], np.uint16)


def parcels_of(
    query: ps.Query, rows: pa.Table, rng: random.Random, shards: int = 1, folds: int = 0
) -> list[tuple[int, bytes]]:
    """The parcels of the rows, with flushes at random, in random order."""
    parcels = []
    for partition in spread(rows, rng, folds or rng.randint(1, 4)):
        most = rng.choice([1, 200_000, 1 << 20])
        fold = PackedFold(query, rows.schema, **ORDER, shards=shards, shard_of=shard_of(shards), max_bytes=most)
        for batch in partition:
            parcels += fold.add(batch)
        parcels += fold.finish()
    rng.shuffle(parcels)
    return parcels


def windows_of(query: ps.Query, schema: pa.Schema, parcels: list[bytes]) -> pa.Table:
    whole = PackedCombine(query, schema, **ORDER)
    for parcel in parcels:
        whole.take(parcel)
    return table_of(whole, list(whole.finish()))


def assert_packs(query: ps.Query, inputs: list[pa.Table], rng: random.Random, shards: int = 1, folds: int = 0) -> None:
    """All shards together give all windows, each the windows of its keys."""
    rows = tagged(inputs)
    parcels = parcels_of(query, rows, rng, shards, folds)
    own = [windows_of(query, rows.schema, [p for to, p in parcels if to == i]) for i in range(shards)]
    got = pa.concat_tables(own)
    if shards > 1:
        assert not any(
            {tuple(row[k] for k in query.key) for row in a.select(list(query.key)).to_pylist()}
            & {tuple(row[k] for k in query.key) for row in b.select(list(query.key)).to_pylist()}
            for i, a in enumerate(own)
            for b in own[:i]
        )
        want = ps.aggregate(query, inputs)
        assert sorted(map(repr, got.to_pylist())) == sorted(map(repr, want.to_pylist()))
    else:
        assert_same(got, ps.aggregate(query, inputs))


@contextmanager
def keeping_rows(piece: int) -> Iterator[None]:
    """Rows go in pieces of so many; the first one of a fold is folded, the others are kept as they are."""
    with mock.patch.multiple(packed, PROBE_ROWS=1, KEPT_SHARE=0), mock.patch.object(folding, "PIECE_ROWS", piece):
        yield


@given(case=cases(without=("udf",)), seed=st.integers(0, 2**32), band=st.integers(1, 3), piece=st.integers(0, 4))
def test_equals_aggregate_whatever_the_partitions_and_the_order(case, seed, band, piece):
    with mock.patch.object(packed, "BAND_BLOCKS", band), keeping_rows(piece) if piece else nullcontext():
        assert_packs(case.query, inputs_of(case), random.Random(seed))


@settings(max_examples=settings().max_examples // 2)
@given(case=cases(without=("udf",)), seed=st.integers(0, 2**32))
def test_step_by_step_with_state_in_few_bytes(case, seed):
    """Rows arrive in pieces of time; windows come when they are complete; the state goes through bytes and back."""
    rng, inputs = random.Random(seed), inputs_of(case)
    rows, windows, now = tagged(inputs), [], 0
    whole = PackedCombine(case.query, rows.schema, **ORDER)
    for until in sorted(rng.choices(range(80), k=rng.randint(0, 5))):
        for _, parcel in parcels_of(case.query, rows.filter((pc.field("ts") >= now) & (pc.field("ts") < until)), rng):
            whole.take(parcel)
        windows += whole.advance(until)
        now = until
        state, before = whole.pack(), (whole.start, whole.partials)
        whole = PackedCombine(case.query, rows.schema, **ORDER, start=whole.start, packed=state)
        assert (whole.start, whole.partials) == before
    for _, parcel in parcels_of(case.query, rows.filter(pc.field("ts") >= now), rng):
        whole.take(parcel)
    assert_same(table_of(whole, windows + list(whole.finish())), ps.aggregate(case.query, inputs))


def many_keys(rows: int, keys: int) -> pa.Table:
    """Rows with random keys, ten of them a tick."""
    rng = np.random.default_rng(3)
    columns = {"ts": np.arange(rows) // 10, "k": rng.integers(0, keys, rows), "v": rng.integers(0, 9, rows)}
    return pa.table(columns)


@pytest.mark.usual_sizes
@pytest.mark.parametrize(("keys", "kept"), [(2_000, False), (1_000_000, True)])
def test_rows_with_many_keys_are_kept(keys, kept):
    """One key for each row: after PROBE_ROWS of them a parcel has as many keys as there are rows."""
    rows = many_keys(150_000, keys)
    query = ps.Query(ps.Window(10_000, 2_500), "k", {"n": ps.count(), "sum": ps.sum("v")})
    odd = lambda keys: (keys["k"].to_numpy() % 2).astype(np.uint16)  # noqa: E731
    fold, parcels = PackedFold(query, rows.schema, shards=2, shard_of=odd), []
    for batch in rows.to_batches(10_000):
        parcels += fold.add(batch)
    assert bool(parcels) == kept == (fold._kept is not None)
    parcels += fold.finish()
    got = [windows_of(query, rows.schema, [p for to, p in parcels if to == shard]) for shard in range(2)]
    both = pa.concat_tables(got).sort_by([("ts", "ascending"), ("k", "ascending")])
    assert both.combine_chunks().equals(ps.aggregate(query, [rows]).combine_chunks())


@pytest.mark.usual_sizes
def test_a_state_in_few_bytes():
    """Each key once, 8 bytes here; then two bytes for each slice that it is in, but for blocks of two slices."""
    rows = many_keys(120_000, 8_000)
    query = ps.Query(ps.Window(6_000, 2_000), "k", {"n": ps.count()})
    whole, fold = PackedCombine(query, rows.schema), PackedFold(query, rows.schema)
    for _, parcel in [*fold.add(batch_of(rows)), *fold.finish()]:
        whole.take(parcel)
    list(whole.advance(10_000))
    state = whole.pack()
    assert whole.partials > 2 * 7_000
    assert len(state) < 8_000 * 8 + whole.partials * 2.6
    list(whole.finish())
    assert whole.pack() == b""


def test_keys_of_windows_that_are_gone_are_not_in_the_state():
    query, schema = ps.Query(ps.Window(10), "k", {"n": ps.count()}), pa.schema({"ts": pa.int64(), "k": pa.int64()})
    whole, fold = PackedCombine(query, schema), PackedFold(query, schema)
    rows = pa.record_batch([[*range(9), 12, 13], [*range(9), 3, 77]], schema=schema)
    for _, parcel in [*fold.add(rows), *fold.finish()]:
        whole.take(parcel)
    assert sum(batch.num_rows for batch in whole.advance(10)) == 9
    state = whole.pack()
    keys = pa.ipc.read_record_batch(pa.py_buffer(state[packed.KEYS.size :]), whole._columns.key_schema)
    assert keys["k"].to_pylist() == [3, 77]
    again = PackedCombine(query, schema, start=whole.start, packed=state)
    assert pa.Table.from_batches(again.finish()).to_pylist() == [{"ts": 10, "k": k, "n": 1} for k in (3, 77)]


@pytest.mark.parametrize("id", PAPER)
def test_the_papers_queries(id):
    make = comments if PAPER[id].dataset == "SC" else smart_meters
    assert_packs(PAPER[id].query, make(3, 6000, seed=5), random.Random(id), shards=3)


@pytest.mark.parametrize(("size", "advance"), [(30, 3), (17, 4), (300, 1), (5, 8), (50, 49)])
@pytest.mark.parametrize("folds", [1, 3])
def test_long_streams(size, advance, folds, nothing_left):
    """Many blocks, and windows that come out while later ones are still packed."""
    rng = np.random.default_rng(size * 1000 + advance)
    inputs = [stream(rng, 1500, 400, keys=9, null_keys=0.05) for _ in range(3)]
    with mock.patch.object(packed, "BAND_BLOCKS", 1):
        assert_packs(ps.Query(ps.Window(size, advance), "k", ALL), inputs, random.Random(1), folds=folds)


@pytest.mark.parametrize("name", TYPES)
def test_all_types_as_keys_and_values(name):
    moments = pa.array([0, 1000, 1000, 7000], pa.timestamp("ms"))
    table = pa.table({"when": moments, "c": TYPES[name], "one": [1, 1, 1, 1]})
    functions = {f.__name__: f("c") for f in (ps.min, ps.max, ps.first, ps.last)}
    for key in ("c", "one", ["c", "one"], None):
        query = ps.Query(ps.Window("5s", "2s"), key, functions | {"n": ps.count()}, ts="when")
        rows, parcels = tagged([table]), []
        for i in (2, 0, 3, 1):
            fold = PackedFold(query, rows.schema, **ORDER)
            fold.add(batch_of(rows.slice(i, 1)))
            parcels += [parcel for _, parcel in fold.finish()]
        assert_same(windows_of(query, rows.schema, parcels), ps.aggregate(query, [table]))
        with keeping_rows(1):
            fold = PackedFold(query, rows.schema, **ORDER)
            parcels = [parcel for _, parcel in [*fold.add(batch_of(rows)), *fold.finish()]]
        assert len(parcels) == 2  # the first row, folded, and three that were kept
        assert_same(windows_of(query, rows.schema, parcels), ps.aggregate(query, [table]))


NUMBERS = {
    "close": [1.5, 2.5, 1.25],
    "of both signs": [-1.0, 1.0, -(2.0**-28)],
    "far apart": [2.0**44, 2.0**-28, 3.0],
    "wide": [1e300, 1e-300, -5e-324],
    "some wide": [1.5, 1e300, 0.25],
    "none": [math.nan, math.inf, -math.inf],
    "zero": [0.0, -0.0, 0.0],
    "null": [None, 1.5, None],
    "beyond the narrow sum": [2.0**44] * 3,
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("rows", [1, 3, 5000])
def test_sums_whatever_their_size(name, rows):
    values = (NUMBERS[name] * rows)[:rows]
    table = pa.table({"ts": np.arange(rows) // 3, "k": np.arange(rows) % 2, "f": pa.array(values, pa.float64())})
    query = ps.Query(ps.Window(4, 2), "k", {"s": ps.sum("f"), "a": ps.avg("f")})
    assert_packs(query, [table], random.Random(4))


@pytest.mark.parametrize("values", [[2**63 - 1, 2**63 - 1, -(2**63)], [-(2**63), 0, 5], [0, 2**64 - 1, 2**63]])
def test_sums_of_large_integers(values):
    column = pa.array(values, pa.int64() if min(values) < 0 else pa.uint64())
    table = pa.table({"ts": [0, 4, 8], "i": column})
    functions = {"m": ps.min("i"), "x": ps.max("i"), "a": ps.avg("i")}
    assert_packs(ps.Query(ps.Window(4), None, functions), [table], random.Random(5))
    query = ps.Query(ps.Window(40), None, {"s": ps.sum("i")})
    twice = pa.concat_tables([table, table]) if sum(values) * 2 > 2**63 else table
    if sum(twice["i"].to_pylist()) < 2**63:
        assert_packs(query, [twice], random.Random(5))
    else:
        rows = tagged([twice.sort_by("ts")])
        with pytest.raises(ps.SumOverflowError, match="does not fit into int64 in the window starting at 0"):
            windows_of(query, rows.schema, [p for _, p in parcels_of(query, rows, random.Random(6))])


def test_strings_as_long_as_a_sum():
    """Sixteen bytes each, as sums have, which are packed as numbers."""
    texts = ["0123456789abcdef", "\0" * 16, "\0" * 8 + "zzzzzzzz", "ÿ" * 8]
    table = pa.table({"ts": range(8), "k": [1, 2] * 4, "s": texts * 2})
    functions = {f.__name__: f("s") for f in (ps.min, ps.max, ps.first, ps.last)}
    for rows in (table, table.filter(pa.array([i != 3 for i in range(8)]))):
        assert_packs(ps.Query(ps.Window(4, 2), "k", functions), [rows], random.Random(7))


@pytest.mark.usual_sizes
def test_few_bytes():
    """What it is for: a quarter of the bytes of the same partials in Arrow's columns."""
    table = smart_meters(1, 20_000, seed=1)[0]
    query = PAPER["W-OI"].query
    fold = PackedFold(query, table.schema)
    fold.add(batch_of(table))
    ((_, parcel),) = fold.finish()
    assert len(parcel) < sum(p.nbytes for p in single(query, table)) / 3


# ---- what is refused ----


@pytest.mark.parametrize("column", ["i", "s"])
def test_rows_that_are_there_twice(column):
    query = ps.Query(ps.Window(10), None, {"x": ps.last(column)})
    row = tagged([pa.table({"ts": [3], "i": [5], "s": ["x"]})])
    parcels = [parcels_of(query, row, random.Random(0), folds=1)[0][1] for _ in range(2)]
    with pytest.raises(ps.SchemaError, match="two rows have the same ts=3, stream=0, position=0"):
        windows_of(query, row.schema, parcels)


@pytest.fixture(scope="module")
def parcel() -> bytes:
    rng = np.random.default_rng(8)
    rows = tagged([stream(rng, 200, 40, keys=5, null_keys=0.05)])
    return parcels_of(QUERY, rows, random.Random(8), folds=1)[0][1]


SCHEMA = tagged([stream(np.random.default_rng(8), 2, 40, keys=5)]).schema


def body_of(parcel: bytes) -> bytearray:
    return bytearray(parcel[seals.SIZE :])


def forged(body: bytes) -> bytes:
    """A parcel with these bytes in it, whose seal is right."""
    return seals.sealed(seals.PARTIALS, seals.Seal(0), bytes(body))


def test_parcels_that_are_cut_off(parcel):
    for length in (0, 5, 20, len(parcel) // 2, len(parcel) - 1):
        with pytest.raises(ps.PartialError):
            windows_of(QUERY, SCHEMA, [parcel[:length]])
        with pytest.raises(ps.PartialError):
            windows_of(QUERY, SCHEMA, [forged(body_of(parcel)[: min(length, len(parcel) - seals.SIZE - 1)])])


def test_blocks_of_other_keys(parcel):
    """A key that is not among those of the parcel."""
    bad = body_of(parcel)
    (length,) = packed.KEYS.unpack_from(bad)
    at = packed.KEYS.size + length + packed.BLOCK.size
    bad[at + 1] = 200  # the least place of a key
    whole = PackedCombine(QUERY, SCHEMA, **ORDER)
    whole.take(forged(bad))
    with pytest.raises(ps.PartialError, match="packed partials: __pack is not what packing gives"):
        list(whole.finish())
    with pytest.raises(ps.ClosedError):
        list(whole.finish())


def test_blocks_that_are_not_in_the_order_of_time():
    query, batch = ps.Query(ps.Window(10), "k", {"n": ps.count()}), pa.record_batch({"ts": [3, 33], "k": [1, 1]})
    blocks = []
    for row in range(2):
        fold = PackedFold(query, batch.schema)
        ((_, parcel),) = [*fold.add(batch.slice(row, 1)), *fold.finish()]
        body = body_of(parcel)
        keys = packed.KEYS.size + packed.KEYS.unpack_from(body)[0]
        blocks.append(body[keys:])
    both = forged(body[:keys] + blocks[0] + blocks[1])
    assert windows_of(query, batch.schema, [both])["n"].to_pylist() == [1, 1]
    with pytest.raises(ps.PartialError, match="begins at 0 comes after one at 30"):
        windows_of(query, batch.schema, [forged(body[:keys] + blocks[1] + blocks[0])])


@pytest.mark.usual_sizes
@pytest.mark.parametrize(("rows", "counted"), [(0, None), (1, 1), (1024, 1024), (1025, None), (2**32 - 1, None)])
def test_blocks_of_as_many_rows_as_there_is_room_for(rows, counted):
    """The words of a block whose rows are all alike take no bytes for each: any number of rows would be there."""
    query, batch = ps.Query(ps.Window(10), "k", {"n": ps.count()}), pa.record_batch({"ts": [3], "k": [1]})
    fold = PackedFold(query, batch.schema)
    ((_, parcel),) = [*fold.add(batch), *fold.finish()]
    bad = body_of(parcel)
    at = packed.KEYS.size + packed.KEYS.unpack_from(bad)[0]
    size, _, begin = packed.BLOCK.unpack_from(bad, at)
    packed.BLOCK.pack_into(bad, at, size, rows, begin)
    if counted:
        assert windows_of(query, batch.schema, [forged(bad)])["n"].to_pylist() == [counted]
        return
    with pytest.raises(ps.PartialError, match="packed partials"):
        windows_of(query, batch.schema, [forged(bad)])


@settings(max_examples=settings().max_examples * 4)
@given(data=st.data())
def test_whatever_the_bytes_nothing_crashes(parcel, data):
    bad = body_of(parcel)
    (length,) = packed.KEYS.unpack_from(bad)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(packed.KEYS.size + length, len(bad) - 1))
        bad[at] = data.draw(st.integers(0, 255))
    with suppress(ps.PystreamError):  # most changes are noticed; others, under a right seal, are only other numbers
        windows_of(QUERY, SCHEMA, [forged(bad)])


def test_a_parcel_that_comes_twice(parcel):
    with pytest.raises(ps.PartialError, match="shard 0, partials, between fold and combine, number 0: came twice"):
        windows_of(QUERY, SCHEMA, [parcel, parcel])


def test_a_parcel_that_comes_again_when_its_windows_are_given(parcel):
    whole = PackedCombine(QUERY, SCHEMA, **ORDER)
    whole.take(parcel)
    given = [row for b in whole.advance(1 << 40) for row in b.to_pylist()]
    assert given
    with pytest.raises(ps.PartialError, match="partial"):
        whole.take(parcel)
    assert list(whole.finish()) == []


def test_a_combine_that_goes_on_for_ever_stays_small():
    """It forgets a parcel with its last window: one that came again would be refused as late."""
    query, schema = ps.Query(ps.Window(10, 5), "k", {"n": ps.count()}), pa.schema({"ts": pa.int64(), "k": pa.int64()})
    fold, whole = PackedFold(query, schema, sender=0), PackedCombine(query, schema)

    def held_after(ticks: range) -> int:
        for ts in ticks:
            fold.add(pa.record_batch([[ts], [1]], schema=schema))
            for _, parcel in fold.finish():
                whole.take(parcel)
            assert all(b.num_rows <= 2 for b in whole.advance(ts))
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        early = held_after(range(200))
        assert held_after(range(200, 3_200)) - early < 3_000 * 20  # bytes; a seal alone takes a hundred
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("keeps", [False, True])
@pytest.mark.parametrize("step", ["add", "pack", "take", "state", "again", "windows"])
def test_out_of_memory_at_every_place(step, keeps, failing_memory, nothing_left):
    rng = np.random.default_rng(2)
    rows = tagged([stream(rng, 60, 20, keys=3, null_keys=0.05)])
    after = 1
    with keeping_rows(20) if keeps else nullcontext():
        while out_of_memory(step, rows, failing_memory, after):
            after += 1
    assert after > 5


def out_of_memory(step: str, rows: pa.Table, failing_memory, after: int) -> bool:
    """One run in which memory lasts for so many allocations of a step; whether that was too little."""
    fold, whole = PackedFold(QUERY, rows.schema, **ORDER), [PackedCombine(QUERY, rows.schema, **ORDER)]
    parcels, states, windows = [], [], []
    steps = {
        "add": lambda: parcels.extend(fold.add(batch_of(rows))),
        "pack": lambda: parcels.extend(fold.finish()),
        "take": lambda: [whole[0].take(parcel) for _, parcel in parcels],
        "state": lambda: states.append(whole[0].pack()),
        "again": lambda: whole.insert(0, PackedCombine(QUERY, rows.schema, **ORDER, packed=states[0])),
        "windows": lambda: windows.extend(whole[0].finish()),
    }
    for name, run in steps.items():
        if name != step:
            run()
            continue
        failing_memory(after)
        try:
            run()
        except MemoryError:
            return True
        finally:
            failing_memory(0)
    assert sum(b.num_rows for b in windows) == ps.aggregate(QUERY, [rows]).num_rows
    return False
