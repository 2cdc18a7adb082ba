"""Partial aggregates: however rows are spread, ordered and folded, the windows are those of ps.aggregate."""

from __future__ import annotations

import itertools
import math
import random
import struct
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, canonical, cases
from streams import ALL, stream

import pystream as ps
from pystream.data.sample import comments, smart_meters
from pystream.partials import Combine, Fold, combine, partial_schema
from pystream.queries import PAPER

ORDER = {"stream": "stream", "position": "position"}


def tagged(tables: list[pa.Table]) -> pa.Table:
    """All rows of all inputs, each with its stream and position."""
    parts = []
    for i, table in enumerate(tables):
        n = table.num_rows
        order = {"stream": np.full(n, i, np.int16), "position": np.arange(n, dtype=np.int32)}
        parts.append(pa.table(dict(zip(table.column_names, table.columns, strict=True)) | order))
    return pa.concat_tables(parts).combine_chunks()


def batch_of(table: pa.Table) -> pa.RecordBatch:
    whole = table.combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=table.schema)


def spread(rows: pa.Table, rng: random.Random, folds: int) -> list[list[pa.RecordBatch]]:
    """The rows in random order, as the batches of so many partitions."""
    order = list(range(rows.num_rows))
    rng.shuffle(order)
    partitions = []
    for i in range(folds):
        mine = batch_of(rows.take(pa.array(order[i::folds], pa.int64())))
        edges = sorted({0, mine.num_rows, *(rng.randint(0, mine.num_rows) for _ in range(rng.randint(0, 3)))})
        partitions.append([mine.slice(a, b - a) for a, b in pairwise(edges)])
    return partitions


def folded(query: ps.Query, rows: pa.Table, rng: random.Random) -> list[pa.RecordBatch]:
    """The partials of the rows, with flushes at random, in random order and batches."""
    partials = []
    for partition in spread(rows, rng, rng.randint(1, 4)):
        fold = Fold(query, rows.schema, **ORDER, max_bytes=rng.choice([1, 200_000, 1 << 20]))
        for batch in partition:
            partials += fold.add(batch)
        partials += fold.finish()
    rng.shuffle(partials)
    assert all(p.schema.equals(partial_schema(query, rows.schema, **ORDER)) for p in partials)
    return partials


def table_of(combined: Combine, windows: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(windows, schema=combined.schema)


def assert_same(got: pa.Table, want: pa.Table) -> None:
    assert got.schema.equals(want.schema)
    assert canonical(got.to_pylist()) == canonical(want.to_pylist())


def inputs_of(case: Case) -> list[pa.Table]:
    return [pa.Table.from_batches(case.batches(i), schema=case.schema) for i in range(len(case.rows))]


@given(case=cases(without=("udf",)), seed=st.integers(0, 2**32))
def test_equals_aggregate_whatever_the_partitions_and_the_order(case, seed):
    rng, inputs = random.Random(seed), inputs_of(case)
    rows = tagged(inputs)
    whole = Combine(case.query, rows.schema, **ORDER)
    partials = folded(case.query, rows, rng)
    if rng.random() < 0.5:  # combined in between, as a tree of combiners would
        between = Combine(case.query, rows.schema)
        between.add(partials)
        partials = list(between.held())
    whole.add(partials)
    assert_same(table_of(whole, list(whole.finish())), ps.aggregate(case.query, inputs))


@settings(max_examples=settings().max_examples // 2)
@given(case=cases(without=("udf",)), seed=st.integers(0, 2**32))
def test_step_by_step_with_state_that_moves(case, seed):
    """Rows arrive in pieces of time; windows come when they are complete; the state goes through partials and back."""
    rng, inputs = random.Random(seed), inputs_of(case)
    rows, windows = tagged(inputs), []
    whole = Combine(case.query, rows.schema)
    now = 0
    for until in sorted(rng.choices(range(80), k=rng.randint(0, 5))):
        piece = rows.filter((pc.field("ts") >= now) & (pc.field("ts") < until))
        whole.add(folded(case.query, piece, rng))
        windows += whole.advance(until)
        now = until
        if rng.random() < 0.5:
            whole = Combine(case.query, rows.schema, start=whole.start, held=list(whole.held()))
    whole.add(folded(case.query, rows.filter(pc.field("ts") >= now), rng))
    windows += whole.finish()
    assert_same(table_of(whole, windows), ps.aggregate(case.query, inputs))


@pytest.mark.parametrize("id", PAPER)
def test_the_papers_queries(id):
    query, make = PAPER[id].query, comments if PAPER[id].dataset == "SC" else smart_meters
    inputs = make(3, 6000, seed=5)
    rows = tagged(inputs)
    whole = Combine(query, rows.schema)
    whole.add(folded(query, rows, random.Random(id)))
    got, want = table_of(whole, list(whole.finish())), ps.aggregate(query, inputs)
    assert got.combine_chunks().equals(want.combine_chunks())


@pytest.mark.parametrize("order", ["sorted", "nearly", "shuffled"])
def test_a_fold_gives_one_partial_per_slice_and_key(order):
    rng = np.random.default_rng(4)
    rows = tagged([stream(rng, 20_000, 300, keys=20, null_keys=0.05)])
    by = {"sorted": np.arange(20_000), "nearly": np.arange(20_000) + rng.integers(0, 500, 20_000)}
    rows = rows.take(np.argsort(by.get(order, rng.random(20_000)), kind="stable"))
    partials = pa.Table.from_batches(single(ps.Query(ps.Window(7, 3), "k", ALL), rows))
    pairs = list(zip(partials["__slice"].to_pylist(), partials["k"].to_pylist(), strict=True))
    assert len(pairs) == len(set(pairs))
    edges = sorted({*range(0, 300, 3), *range(7, 300, 3)})
    slices = np.array(edges)[np.searchsorted(edges, rows["ts"].to_numpy(), side="right") - 1]
    assert set(pairs) == set(zip(slices.tolist(), rows["k"].to_pylist(), strict=True))
    assert sum(partials["__rows"].to_pylist()) == 20_000


@pytest.mark.parametrize(("size", "advance"), [(30, 3), (17, 4), (300, 1), (5, 8), (50, 49)])
def test_long_streams(size, advance, nothing_left):
    """Many slices enter and leave, so that stacks turn over, wide sums come and go, and held entries are renumbered."""
    rng = np.random.default_rng(size * 1000 + advance)
    inputs = [stream(rng, 1500, 400, keys=9, null_keys=0.05) for _ in range(3)]
    query, rows = ps.Query(ps.Window(size, advance), "k", ALL), tagged(inputs)
    want = ps.aggregate(query, inputs)
    assert_same(pa.Table.from_batches(combine(query, rows.schema, folded(query, rows, random.Random(1)))), want)
    whole, windows = Combine(query, rows.schema), []
    for now in range(0, 400, 50):
        piece = rows.filter((pc.field("ts") >= now) & (pc.field("ts") < now + 50))
        whole.add(folded(query, piece, random.Random(now)))
        windows += whole.advance(now + 50)
    windows += whole.finish()
    assert_same(table_of(whole, windows), want)
    assert list(whole.held()) == []


@pytest.mark.parametrize("late", [0.0, 0.01, 0.5])
@pytest.mark.parametrize(("size", "advance"), [(30, 3), (17, 4), (5, 8), (100, 100)])
def test_rows_that_go_straight_into_windows(size, advance, late, nothing_left):
    """Most come by time, some a while later; keys come and go; windows are asked for in between."""
    rng = np.random.default_rng(size * 1000 + advance)
    table = stream(rng, 12_000, 600, keys=12)
    keys = pc.add(pc.divide(table["ts"], 60), table["k"])
    table = table.set_column(1, "k", keys)
    arrival = np.arange(12_000) + np.where(rng.random(12_000) < late, rng.integers(0, 400, 12_000), 0)
    query, rows = ps.Query(ps.Window(size, advance), "k", ALL), tagged([table]).take(np.argsort(arrival, kind="stable"))
    whole, windows = Combine(query, rows.schema, **ORDER), []
    for now in range(0, 600, 100):
        piece = batch_of(rows.filter((pc.field("ts") >= now) & (pc.field("ts") < now + 100)))
        whole.add_rows(piece.slice(0, 700))
        whole.add_rows(piece.slice(700))
        windows += whole.advance(now + 100)
    windows += whole.finish()
    assert_same(table_of(whole, windows), ps.aggregate(query, [table]))


def test_windows_with_the_same_keys_in_several_batches():
    n = 2000 * 40
    table = pa.table({"ts": np.arange(n) // 40, "k": np.arange(n) * 7 % 40, "f": np.arange(n) / 8})
    query = ps.Query(ps.Window(3, 1), "k", {"n": ps.count(), "mean": ps.avg("f")})
    whole = Combine(query, table.schema)
    whole.add_rows(batch_of(table))
    windows = list(whole.finish())
    assert len(windows) > 1
    assert table_of(whole, windows).combine_chunks().equals(ps.aggregate(query, [table]).combine_chunks())


def test_the_ends_of_time():
    far = [0, 1, 2**61, 2**62 - 1, 2**62 + 4, 2**62 + 5, 2**63 - 2, 2**63 - 1]
    table = pa.table({"ts": far, "v": range(8)})
    for size, advance in [(2**62 + 5, 2**61 + 3), (2**61, 2**62), (2**63 - 1, 2**63 - 1), (1, 2**63 - 1)]:
        query = ps.Query(ps.Window(size, advance), None, {"n": ps.count(), "sum": ps.sum("v")})
        fold = Fold(query, table.schema)
        partials = [*fold.add(batch_of(table)), *fold.finish()]
        assert_same(pa.Table.from_batches(combine(query, table.schema, partials)), ps.aggregate(query, [table]))


TYPES = {
    "dictionary": pa.array(["b", "a", None, "b"]).dictionary_encode(),
    "view": pa.array(["b", "a", None, "b"], pa.string_view()),
    "large": pa.array(["b", "a", None, "b"], pa.large_string()),
    "half": pa.array([1.5, -0.0, None, math.inf], pa.float32()).cast(pa.float16()),
    "moment": pa.array([5, 3, None, 5], pa.timestamp("us", "Europe/Vienna")),
    "day": pa.array([5, 3, None, 5], pa.date32()),
    "time": pa.array([5, 3, None, 5], pa.time64("ns")),
    "nothing": pa.nulls(4),
    "unsigned": pa.array([2**64 - 1, 0, None, 2**63], pa.uint64()),
    "flag": pa.array([True, False, None, True]),
}


@pytest.mark.parametrize("name", TYPES)
def test_all_types_as_keys_and_values(name):
    """Timestamps of Arrow's, and a key that is a value too."""
    moments = pa.array([0, 1000, 1000, 7000], pa.timestamp("ms"))
    table = pa.table({"when": moments, "c": TYPES[name], "one": [1, 1, 1, 1]})
    functions = {f.__name__: f("c") for f in (ps.min, ps.max, ps.first, ps.last)}
    if name not in ("dictionary", "view", "large"):
        functions |= {f.__name__: f("c", "c") for f in (ps.arg_min, ps.arg_max)}
    for key in ("c", "one", ["c", "one"], None):
        query = ps.Query(ps.Window("5s", "2s"), key, functions | {"n": ps.count()}, ts="when")
        rows = tagged([table])
        partials = [p for i in (2, 0, 3, 1) for p in single(query, rows.slice(i, 1))]
        assert_same(pa.Table.from_batches(combine(query, rows.schema, partials)), ps.aggregate(query, [table]))


def test_integer_sums_may_overflow_on_the_way_but_not_in_the_end():
    table = pa.table({"ts": [0, 0, 0, 9], "v": [2**63 - 1, 2**63 - 1, -(2**63), 1]})
    query = ps.Query(ps.Window(10, 5), None, {"sum": ps.sum("v")})
    partials = [p for i in range(4) for p in single(query, table.slice(i, 1))]
    got = next(combine(query, table.schema, partials)).to_pylist()
    assert got == [{"ts": 0, "sum": 2**63 - 1}, {"ts": 5, "sum": 1}]
    whole = Combine(query, table.schema)
    whole.add(partials[:2] + partials[3:])
    with pytest.raises(ps.SumOverflowError, match=r"sum.*does not fit into int64 in the window starting at 0"):
        list(whole.finish())


def single(query: ps.Query, table: pa.Table) -> list[pa.RecordBatch]:
    fold = Fold(query, table.schema, **(ORDER if "stream" in table.column_names else {}))
    return [*fold.add(batch_of(table)), *fold.finish()]


# ---- what is refused ----

ROWS = pa.table({"ts": [3, 4, 9], "k": [1, 1, 2], "i": [5, None, 7], "f": [1.5, 1e300, math.nan], "s": ["x", "y", "z"]})


def test_what_cannot_be_folded():
    window = ps.Window(10)
    with pytest.raises(ValueError, match="cannot be folded"):
        Fold(ps.Query(window, "k", {"u": ps.udf(list)}), ROWS.schema)
    placed = ps.Query(window, "k", {"x": ps.first("i")})
    with pytest.raises(ValueError, match="name a `position` column"):
        Fold(placed, ROWS.schema)
    with pytest.raises(ps.SchemaError, match="'s' has type string; it must be an integer"):
        Fold(placed, ROWS.schema, position="s")
    with pytest.raises(ps.SchemaError, match="row 1: column 'i' is null; the order"):
        Fold(placed, ROWS.schema, position="i").add(batch_of(ROWS))
    with pytest.raises(ps.SchemaError, match="column 'nowhere' is missing"):
        Fold(placed, ROWS.schema, position="nowhere")
    with pytest.raises(ValueError, match="'__rows' of their own"):
        Fold(ps.Query(window, "__rows", {"n": ps.count()}), pa.schema([("ts", pa.int64()), ("__rows", pa.int64())]))
    with pytest.raises(ValueError, match="max_bytes"):
        Fold(placed, ROWS.schema, position="k", max_bytes=0)


def test_a_negative_timestamp_is_refused_with_its_batch():
    query = ps.Query(ps.Window(10), "k", {"n": ps.count()})
    fold = Fold(query, ROWS.schema)
    bad = pa.record_batch({"ts": [1, -5], "k": [1, 1], "i": [1, 1], "f": [0.0, 0.0], "s": ["", ""]})
    with pytest.raises(ps.DisorderError, match="row 1: timestamp -5 is negative") as error:
        fold.add(bad)
    assert (error.value.row, error.value.ts) == (1, -5)
    assert list(fold.finish()) == []


@pytest.mark.parametrize("function", [ps.last("i"), ps.last("s"), ps.arg_max("i", "i"), ps.arg_min("s", "i")], ids=repr)
def test_rows_that_are_there_twice(function):
    """Where the result would depend on chance: in one fold and between two."""
    query = ps.Query(ps.Window(10), None, {"x": function})
    row = tagged([pa.table({"ts": [3], "i": [5], "s": ["x"]})])
    fold = Fold(query, row.schema, **ORDER)
    fold.add(batch_of(row))
    with pytest.raises(ps.SchemaError, match="two rows have the same ts=3, stream=0, position=0"):
        fold.add(batch_of(row))
    with pytest.raises(ps.ClosedError):
        fold.add(batch_of(row))
    with pytest.raises(ps.ClosedError):
        list(fold.finish())
    whole = Combine(query, row.schema)
    whole.add(single(query, row))
    with pytest.raises(ps.SchemaError, match="two rows have the same ts=3, stream=0, position=0"):
        whole.add(single(query, row))
    with pytest.raises(ps.ClosedError):
        list(whole.finish())


QUERY = ps.Query(ps.Window(10, 4), "k", ALL)
NARROW, WIDE = struct.Struct("<qq"), struct.Struct("<qq35q3q")
MOMENTS = struct.Struct("<qq5q")
PAIRS, SQUARES = struct.Struct("<B4q5q"), struct.Struct("<B4q5q5q")  # of covar; of slope and intercept
LIMBS = [0] * 35
MOMENT_BYTES = st.sampled_from([56, 360, 592, 896]).flatmap(lambda n: st.binary(min_size=n, max_size=n))
BAD = {
    "no edge": ("__slice", 5, "where no slice of a window begins"),
    "before time": ("__slice", -4, "where no slice of a window begins"),
    "no rows": ("__rows", 0, "not a possible number of rows"),
    "fewer": ("__rows", -3, "not a possible number of rows"),
    "too many": ("__rows", 2**63 - 1, "not a possible number of rows"),
    "too many passed": ("__0_n", 3, "above the number of rows"),
    "negative count": ("__2_n", -1, "above the number of rows"),
    "a short sum": ("__2_sum", b"123", "not the sum of so many values"),
    "an impossible sum": ("__3_sum", NARROW.pack(0, 2**50), "not the sum of so many values"),
    "half a wide sum": ("__4_sum", bytes(100), "not the sum of so many values"),
    "a wide sum of few": ("__4_sum", WIDE.pack(0, 0, *[0] * 34, 1, 0, 0, 0), "not the sum of so many values"),
    "a wide sum beyond": ("__4_sum", WIDE.pack(0, 0, *[0] * 33, 1, 0, 0, 0, 0), "not the sum of so many values"),
    "many NaN": ("__4_sum", WIDE.pack(0, 0, *LIMBS, 9, 0, 0), "not the sum of so many values"),
    "few infinities": ("__4_sum", WIDE.pack(0, 0, *LIMBS, 0, 0, -1), "not the sum of so many values"),
    "short moments": ("__20_moments", b"123", "not what that many values lead to"),
    "squares below": ("__20_moments", MOMENTS.pack(0, 2**50, *[0] * 5), "not what that many values lead to"),
    "negative squares": ("__20_moments", MOMENTS.pack(0, 0, *[-1] * 5), "not what that many values lead to"),
    "squares beyond": ("__20_moments", MOMENTS.pack(0, 0, 0, 0, 0, 0, 2**40), "not what that many values lead to"),
    "short pairs": ("__22_moments", b"", "not what that many values lead to"),
    "parts that are none": ("__22_moments", b"\x08" + bytes(32 + 40), "not what that many values lead to"),
    "products beyond": ("__22_moments", PAIRS.pack(0, *[0] * 8, 2**40), "not what that many values lead to"),
    "negative squares of pairs": ("__23_moments", SQUARES.pack(0, *[0] * 9, *[-1] * 5), "not what that many values"),
    "too many pairs": ("__24_n", 3, "above the number of rows"),
    "half of what pairs need": ("__25_moments", PAIRS.pack(*[0] * 10), "not what that many values lead to"),
    "wide integers": ("__21_moments", bytes(56 + 304), "not what that many values lead to"),
    "too many deviate": ("__21_n", 3, "above the number of rows"),
    "no moments": ("__21_moments", None, "__21_moments is null"),
    "out of the slice": ("__8_ts", 8, "is not in the slice"),
    "before the slice": ("__9_ts", 0, "is not in the slice"),
    "no position": ("__12_position", None, "position is missing"),
    "nothing to order by": ("__16_by", None, "is missing"),
    "nothing to order strings by": ("__19_by", None, "is missing"),
    "no timestamp": ("__17_ts", None, "is not in the slice"),
    "no slice": ("__slice", None, "__slice is null"),
    "no sum": ("__4_sum", None, "__4_sum is null"),
}


def good_partials() -> pa.RecordBatch:
    rows = tagged(
        [pa.table({"ts": [4, 5, 9], "k": [1, 1, 2], "i": [5, 6, 7], "f": [1.5, 0.5, 2.0], "s": ["x", "y", "z"]})]
    )
    return single(QUERY, rows)[0]


def changed(batch: pa.RecordBatch, name: str, value: object, row: int = 0) -> pa.RecordBatch:
    i = batch.schema.get_field_index(name)
    values = batch.column(i).to_pylist()
    values[row] = value
    return batch.set_column(i, batch.schema.field(i), pa.array(values, batch.schema.field(i).type))


def combiner() -> Combine:
    return Combine(QUERY, tagged([ROWS]).schema)


@pytest.mark.parametrize("what", BAD)
def test_damaged_partials_are_refused_and_named(what, nothing_left):
    name, value, message = BAD[what]
    whole, good = combiner(), good_partials()
    with pytest.raises(ps.PartialError, match=message) as error:
        whole.add(changed(good, name, value))
    assert "row 0 of the partials" in str(error.value)
    assert name in str(error.value) or what == "no position"
    assert list(whole.held()) == []  # nothing of it was taken
    whole.add(good)
    assert sum(b.num_rows for b in whole.finish()) == 5


def test_more_rows_than_can_be():
    """Counts of partials that are possible one by one, but not together."""
    query = ps.Query(ps.Window(10), None, {"n": ps.count(), "sum": ps.sum("i")})
    good, whole = single(query, ROWS.slice(0, 1))[0], Combine(query, ROWS.schema)
    many = changed(good, "__rows", 2**61)
    whole.add([many, many])
    with pytest.raises(ps.PartialError, match="__rows = 1 is not a possible number of rows"):
        whole.add(changed(good, "__rows", 1))
    list(whole.advance(2**40))  # what was put out and dropped does not count any more
    whole.add(changed(changed(good, "__rows", 2**61), "__slice", 2**41 // 10 * 10))


def test_partials_of_another_schema_are_refused():
    good = good_partials()
    with pytest.raises(ps.SchemaError, match="column '__rows' is missing"):
        combiner().add(good.drop_columns(["__rows"]))
    with pytest.raises(ps.SchemaError, match="column 'more' is none of a partial"):
        combiner().add(good.append_column("more", pa.array([1] * good.num_rows)))
    as_text = good.set_column(0, "__slice", pa.array(["x"] * good.num_rows))
    with pytest.raises(ps.SchemaError, match="'__slice' has type string where int64 is expected"):
        combiner().add(as_text)
    small = good.set_column(0, "__slice", good.column(0).cast(pa.int16()))  # no value is lost
    combiner().add(small)
    combiner().add(good.select(good.schema.names[::-1]))


@settings(max_examples=settings().max_examples)
@given(data=st.data())
def test_whatever_the_partials_nothing_crashes(data):
    good, whole = good_partials(), combiner()
    for _ in range(data.draw(st.integers(1, 3))):
        field = good.schema.field(data.draw(st.integers(0, good.num_columns - 1)))
        values = (
            st.integers(-(2**63), 2**63 - 1) | st.integers(-1, 12)
            if pa.types.is_integer(field.type)
            else st.floats()
            if pa.types.is_floating(field.type)
            else st.text(max_size=3)
            if pa.types.is_string(field.type)
            else st.binary(min_size=16, max_size=16)
            | st.binary(min_size=320, max_size=320)
            | st.binary(max_size=3)
            | MOMENT_BYTES
        )
        good = changed(good, field.name, data.draw(st.none() | values), data.draw(st.integers(0, good.num_rows - 1)))
    try:
        for _ in range(3):
            whole.add(good)
        again = Combine(QUERY, tagged([ROWS]).schema, held=list(whole.held()))
        list(itertools.chain(again.advance(9), again.finish()))
    except (ps.PartialError, ps.SchemaError, ps.SumOverflowError, ps.ClosedError):
        pass


def test_late_partials_are_refused_and_held_ones_are_not():
    query = ps.Query(ps.Window(10, 4), None, {"n": ps.count()})
    table = pa.table({"ts": [0, 9, 12, 13, 20]})
    early, *rest = (single(query, table.slice(i, 1))[0] for i in range(5))
    whole = Combine(query, table.schema)
    whole.add(rest[1:])
    assert [b.to_pylist() for b in whole.advance(13)] == []
    assert whole.start == 4
    with pytest.raises(ps.PartialError, match="__slice = 8 is in a window that has been put out already"):
        whole.add(rest[0])
    whole.add(single(query, pa.table({"ts": [10]})))  # its windows are still open
    again = Combine(query, table.schema, start=whole.start, held=whole.held())
    assert [b.to_pylist() for b in again.advance(14)] == [[{"ts": 4, "n": 3}]]
    held = list(again.held())
    with pytest.raises(ps.PartialError, match="__slice = 0 is in a window that has been put out already"):
        Combine(query, table.schema, start=again.start, held=[early])
    assert Combine(query, table.schema, start=again.start, held=held).start == 8
    list(again.finish())
    with pytest.raises(ps.ClosedError):
        again.add(rest[2])


def test_windows_may_be_left_unread():
    """Partials that come in between change nothing for the windows that were not read."""
    query = ps.Query(ps.Window(2, 1), "k", {"n": ps.count()})
    table = pa.table({"ts": np.arange(2000) // 10, "k": np.arange(2000) % 1000})
    whole = Combine(query, table.schema)
    whole.add(single(query, table))
    reader = whole.advance(150)
    windows = [next(reader)]
    whole.add(single(query, pa.table({"ts": [190], "k": [1]})))
    windows += whole.finish()
    assert list(reader) == []
    more = pa.table({"ts": [*table["ts"].to_pylist(), 190], "k": [*table["k"].to_pylist(), 1]}).sort_by("ts")
    assert_same(table_of(whole, windows), ps.aggregate(query, [more]))


def test_what_a_fold_holds_is_bounded():
    rng = np.random.default_rng(1)
    keys = [f"a key of some length, number {i}" for i in range(3000)]
    table = pa.table({"ts": rng.integers(0, 50, 60_000), "k": np.array(keys)[rng.integers(0, 3000, 60_000)]})
    query = ps.Query(ps.Window(1), "k", {"first": ps.max("k")})
    fold, most = Fold(query, table.schema, max_bytes=3_000_000), 0
    partials = []
    for batch in table.to_batches(max_chunksize=5000):
        partials += fold.add(batch)
        most = max(most, fold._handle.bytes)
    assert most <= 3_000_000
    assert len(partials) >= 2
    partials += fold.finish()
    assert fold._handle.bytes == 0
    want = ps.aggregate(query, [table.sort_by("ts")])
    assert_same(pa.Table.from_batches(combine(query, table.schema, partials)), want)


def test_what_a_combine_holds_is_bounded():
    """Ever new keys come and go, some stay; what has gone leaves nothing behind."""
    query = ps.Query(ps.Window(20, 10), "k", {"n": ps.count(), "last": ps.max("k")})
    table = pa.table({"ts": np.arange(40_000) // 50, "k": [f"key {i if i % 7 else 0}" for i in range(40_000)]})
    whole, windows, most = Combine(query, table.schema), [], 0
    for start in range(0, 40_000, 2000):
        whole.add(single(query, table.slice(start, 2000)))
        windows += whole.advance(table["ts"][start + 1999].as_py())
        most = max(most, whole._handle.keys)
    windows += whole.finish()
    assert most < 12_000  # of 34,000
    assert_same(table_of(whole, windows), ps.aggregate(query, [table]))


@pytest.mark.parametrize("step", ["fold", "export", "load", "windows"])
def test_out_of_memory_at_every_place(step, failing_memory, nothing_left):
    rng = np.random.default_rng(2)
    rows = tagged([stream(rng, 60, 20, keys=3, null_keys=0.05)])
    batch, after = batch_of(rows), 1
    while out_of_memory(step, rows.schema, batch, failing_memory, after):
        after += 1
    assert after > 5


def out_of_memory(step: str, schema: pa.Schema, batch: pa.RecordBatch, failing_memory, after: int) -> bool:
    """One run in which memory lasts for so many allocations of a step; whether that was too little."""
    fold, whole = Fold(QUERY, schema, **ORDER), Combine(QUERY, schema)
    steps = {
        "fold": lambda: fold.add(batch),
        "export": lambda: partials.extend(fold.finish()),
        "load": lambda: whole.add(partials),
        "windows": lambda: windows.extend(whole.finish()),
    }
    partials, windows = [], []
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
    assert sum(b.num_rows for b in windows) == ps.aggregate(QUERY, [pa.table(batch)]).num_rows
    return False
