"""Cases that no other test meets, as the counts of branches say (tests/branches.py)."""

from __future__ import annotations

import ctypes
import itertools
import math
import threading

import numpy as np
import pyarrow as pa
import pytest
from streams import ALL, stream
from test_packed import body_of, forged
from test_partials import ORDER, batch_of, tagged

import pystream as ps
from pystream import _native, reference
from pystream._native import arrow
from pystream.designs import CANNOT
from pystream.partials import Combine, Fold, PackedCombine, PackedFold

INTEGERS = [f"{sign}int{bits}" for sign in ("u", "") for bits in (8, 16, 32, 64)]
DESIGNS = ["mq", "mq-lf", "tuml-sc", "tuml-mc", "wiml", "sliced", "runs"]


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("apart", [False, True], ids=["close", "far apart"])
def test_keys_and_values_of_every_integer_type(name, apart):
    """Close together, keys index an array; far apart, they are hashed; and the map changes on the way."""
    limits = np.iinfo(name)
    step = (int(limits.max) - int(limits.min)) // 20
    many = range(int(limits.min), int(limits.max), step) if apart else range(3, 90)
    keys = np.array([3, 4, 5, 3, *(k for k in many for _ in range(2))], name)
    table = pa.table({"ts": np.arange(len(keys)) // 4, "k": keys, "v": keys[::-1]})
    query = ps.Query(ps.Window(8, 4), "k", {"n": ps.count(), "x": ps.max("v"), "i": ps.min("v"), "f": ps.first("v")})
    results = [ps.aggregate(query, [table], design=design) for design in DESIGNS if design != "wiml"]
    assert all(result.equals(results[0]) for result in results)
    assert sum(results[0]["n"].to_pylist()) == sum(2 - (ts < 4) for ts in table["ts"].to_pylist())


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("value", [2**63 - 1, -(2**63)])
def test_sums_that_leave_int64_on_either_side(design, value):
    table = pa.table({"ts": [1, 2, 3], "v": [value, value, 0]})
    with pytest.raises(ps.SumOverflowError, match="in the window starting at 0"):
        ps.aggregate(ps.Query(ps.Window(10), None, {"s": ps.sum("v")}), [table], design=design)


@pytest.mark.parametrize("orders", list(itertools.permutations(["a", "b", None])))
def test_strings_that_several_threads_have_parts_of(orders):
    """In wiml each input keeps its own part of a window; the parts are joined when it is complete."""
    inputs = [pa.table({"ts": [1], "s": pa.array([s], pa.string())}) for s in orders]
    query = ps.Query(ps.Window(10), None, {"least": ps.min("s"), "most": ps.max("s")})
    assert ps.aggregate(query, inputs, design="wiml").to_pylist() == [{"ts": 0, "least": "a", "most": "b"}]


@pytest.mark.parametrize("design", DESIGNS)
def test_a_long_string_that_loses_leaves_the_one_held(design):
    """Where windows are shared, room for it is made before it is compared, and the one held moves there."""
    keys = list(range(10))
    strings = [text for text in ("a", "b" * 1_000, "c" * 50_000) for _ in keys]
    table = pa.table({"ts": [1] * len(strings), "k": keys * 3, "s": strings})
    result = ps.aggregate(ps.Query(ps.Window(10), "k", {"least": ps.min("s")}), [table], design=design)
    assert result["least"].to_pylist() == ["a"] * len(keys)


def test_a_median_above_all_signed_integers():
    table = pa.table({"ts": [1, 2], "u": pa.array([2**63, 2**63 + 2**20], pa.uint64())})
    query = ps.Query(ps.Window(10), None, {"m": ps.median("u")})
    assert ps.aggregate(query, [table])["m"].to_pylist() == [2.0**63 + 2**19]


@pytest.mark.parametrize("design", ["mq", "sliced"])
def test_pairs_of_values_that_are_far_apart(design):
    """Each of these with each: the product counts nothing, or is wide because of one of the two."""
    some = [0.0, -0.0, 1.0, 1e300, 5e-324, math.inf, math.nan]
    pairs = list(itertools.product(some, some))
    rows = {"ts": [i for i in range(len(pairs)) for _ in "ab"], "x": [x for x, _ in pairs for _ in "ab"]}
    rows |= {"y": [y + (i if abs(y) < 2 else 0) for _, y in pairs for i in (0, 1)]}
    functions = {"c": ps.covar("x", "y", ddof=0), "s": ps.slope("y", "x"), "r": ps.corr("x", "y")}
    query = ps.Query(ps.Window(1), None, functions)
    got = ps.aggregate(query, [rows], design=design).to_pylist()
    expected = reference.aggregate(
        query, [[dict(zip(rows, row, strict=True)) for row in zip(*rows.values(), strict=True)]]
    )
    assert repr(got) == repr(expected)


def until_it_works(failing_memory, work) -> int:
    """Do it with memory for one allocation, for two, ...; after how many it went well."""
    for after in itertools.count(1):
        failing_memory(after)
        try:
            work()
        except MemoryError:
            continue
        else:
            return after
        finally:
            failing_memory(0)
    raise AssertionError


@pytest.mark.parametrize("make", [Fold, PackedFold, Combine, PackedCombine])
def test_out_of_memory_while_a_fold_is_made(make, failing_memory, nothing_left):
    rows = tagged([stream(np.random.default_rng(3), 20, 10, keys=3, null_keys=0.05)])
    query = ps.Query(ps.Window(10, 4), ["k", "s"] if "s" in rows.column_names else "k", ALL)
    assert until_it_works(failing_memory, lambda: make(query, rows.schema, **ORDER)) > 5


def test_out_of_memory_while_partials_are_dropped(failing_memory, nothing_left):
    """What is in no open window any more goes before entries are given or packed."""
    rows = tagged([stream(np.random.default_rng(3), 60, 40, keys=3)])
    query = ps.Query(ps.Window(10, 4), "k", ALL)

    def work() -> None:
        whole = Combine(query, rows.schema, **ORDER)
        fold = Fold(query, rows.schema, **ORDER)
        for partials in [*fold.add(batch_of(rows)), *fold.finish()]:
            whole.add(partials)
        assert list(whole.advance(20))
        assert list(whole.held())

    assert until_it_works(failing_memory, work) > 20


def test_out_of_memory_in_exact_sums(failing_memory, nothing_left):
    lib, ffi = _native.lib, _native.ffi
    values = ffi.new("double[]", [1e300, 2.0**44])
    one, other = lib.ps_exact_sum_new(), lib.ps_exact_sum_new()
    failing_memory(1)
    assert lib.ps_exact_sum_add_all(one, values, 2) == lib.PS_NO_MEMORY
    failing_memory(0)
    assert lib.ps_exact_sum_add_all(one, values, 2) == lib.PS_OK
    failing_memory(1)
    assert lib.ps_exact_sum_combine(other, one) == lib.PS_NO_MEMORY
    failing_memory(0)
    assert lib.ps_exact_sum_combine(other, one) == lib.PS_OK
    assert lib.ps_exact_sum_round(other) == 1e300
    for sum in (one, other, ffi.NULL):
        lib.ps_exact_sum_free(sum)


@pytest.mark.parametrize("to", ["mq", "sliced", "wiml"])
def test_out_of_memory_while_windows_are_made_of_slices(to, failing_memory, nothing_left):
    """A snapshot has slices; a design that keeps windows makes them of these."""
    names = [n for n in ALL if to != "wiml" or ALL[n].function not in CANNOT["wiml"]]
    query = ps.Query(ps.Window(10, 4), "k", {n: ALL[n] for n in names})
    table = batch_of(stream(np.random.default_rng(5), 60, 30, keys=3, null_keys=0.1))
    with ps.Operator(query, 1, table.schema, design="sliced") as op:
        op.add(0, table)
        op.heartbeat(0, 31)
        list(op.poll())
        blob = op.snapshot()

    def work() -> None:
        with ps.Operator.restore(query, blob, design=to):
            pass

    assert until_it_works(failing_memory, work) > 20


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("keys", [1, 3])
def test_sums_that_outgrow_the_narrow_accumulator_and_come_back(sign, keys):
    """One slice fits, several together do not; as they leave, sums fit again."""
    rows = 120
    values = np.where(np.arange(rows) // 24 % 2 == 0, sign * 2.0**44, sign * 2.0**-28)
    table = pa.table({"ts": np.arange(rows) // (2 * keys), "k": np.arange(rows) % keys, "x": values})
    query = ps.Query(ps.Window(12, 1), "k", {"s": ps.sum("x"), "a": ps.avg("x")})
    for inputs in ([table], [table, table]):
        assert ps.aggregate(query, inputs, design="sliced").equals(ps.aggregate(query, inputs, design="mq"))


def test_a_fold_that_has_failed_answers_nothing_more():
    """After a parcel that is not what packing gives."""
    query, batch = ps.Query(ps.Window(10), "k", {"n": ps.count()}), pa.record_batch({"ts": [3], "k": [1]})
    fold = PackedFold(query, batch.schema)
    ((_, parcel),) = [*fold.add(batch), *fold.finish()]
    whole = PackedCombine(query, batch.schema)
    body = body_of(parcel)
    whole.take(forged(body[:-1] + b"\xff"))
    with pytest.raises(ps.PartialError):
        list(whole.finish())
    handle, keys = whole._handle, pa.record_batch({"n": [0], "k": [1]})
    calls = [
        lambda: handle.get_keys(keys.schema),
        lambda: handle.number_keys(keys),
        lambda: handle.add_packed(_native.Done(), _native.ffi.new("uint32_t[]", 1), memoryview(body)),
        lambda: list(handle.pack(np.zeros(1, np.uint16), 1)),
        lambda: handle.add_partials(keys, held=False),
    ]
    for call in calls:
        with pytest.raises(_native.Fault) as failed:
            call()
        assert failed.value.code == _native.lib.PS_CLOSED


# ---- C that Python does not call so, because it has looked before ----


def test_rows_before_time_begins():
    rows = tagged([stream(np.random.default_rng(3), 20, 10, keys=3)])
    fold = Fold(ps.Query(ps.Window(10), "k", {"n": ps.count()}), rows.schema, **ORDER)
    prepared = pa.record_batch({"ts": [3, -1, 2], "k": [1, 1, 1]})
    with pytest.raises(_native.Fault) as refused:
        fold._handle.add_rows(prepared)
    assert _native.is_disorder(refused.value)
    assert (refused.value.row, refused.value.ts) == (1, -1)
    assert fold._handle.entries == 0


LONG = "ascii " * 20
TEXTS = ["a", LONG, "é", "€", "😀", "\u0800", "\ud7ff", "\ue000", "\U00010000", "\U0010ffff", f"{LONG}é{LONG}", ""]
NO_TEXTS = [
    *(b"\x80", b"\xc1\xbf", b"\xf5\x80\x80\x80", b"\xff"),  # no first byte
    *(b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98"),  # cut off
    *(b"\xc3a", b"\xe2\x82a", b"\xf0\x9f\x98\xc0"),  # no other byte
    *(b"\xe0\x9f\xbf", b"\xf0\x8f\xbf\xbf"),  # there is a shorter form
    *(b"\xed\xa0\x80", b"\xf4\x90\x80\x80"),  # surrogates, and above the last character
]


def strings(data: bytes, offsets: list[int], *, wide: bool, text: bool = True) -> bool:
    """What C says of the strings between these offsets."""
    ffi, words = _native.ffi, np.array(offsets, np.int64 if wide else np.int32)
    where = (ffi.from_buffer(words), wide, text, 0, len(offsets) - 1, ffi.from_buffer("uint8_t[]", data), len(data))
    return bool(_native.lib.ps_strings_sound(ffi.new("ps_strings *", where)))


@pytest.mark.parametrize("wide", [False, True])
def test_strings_that_are_sound_or_not(wide):
    for text in TEXTS:
        data = text.encode()
        assert strings(b"-" + data + b"-", [1, 1 + len(data)], wide=wide)
    for data in NO_TEXTS:
        for around in (b"", LONG.encode()):
            offsets = [0, len(around + data + around)]
            assert not strings(around + data + around, offsets, wide=wide)
            assert strings(around + data + around, offsets, wide=wide, text=False)
    assert strings(b"", [0], wide=wide)
    assert strings("éé".encode(), [0, 2, 2, 4, 4], wide=wide)
    assert not strings("éé".encode(), [0, 1, 4], wide=wide)  # in the middle of a character
    for outside in ([0, 2, 1], [-1, 2], [0, 5]):
        assert not strings("éé".encode(), outside, wide=wide, text=False)


def test_who_has_not_paused_an_operator_does_not_resume_it():
    batch = pa.record_batch({"ts": [3]})
    with ps.Operator(ps.Query(ps.Window(10), None, {"n": ps.count()}), 1, batch.schema) as op:
        op.engine.handle.pause()
        adding = threading.Thread(target=op.add, args=(0, batch))
        try:
            other = threading.Thread(target=op.engine.handle.resume)
            other.start()
            other.join()
            adding.start()
            adding.join(0.05)  # were it not paused, this would do
            assert adding.is_alive()
        finally:
            op.engine.handle.resume()
        adding.join()
        assert op.stats()["tuples_in"] == 1


def test_a_pause_waits_for_as_long_as_a_worker_takes():
    """Each wait ends after a while, so that signals are seen, and the next one goes on with the same pause."""
    entered, leave = threading.Event(), threading.Event()

    def process(*_):
        entered.set()
        leave.wait()
        return 0

    code, pointer = ctypes.c_int32, ctypes.c_void_p
    slow = ctypes.CFUNCTYPE(code, pointer, ctypes.c_int64, pointer, pointer)(process)
    none = ctypes.CFUNCTYPE(code, pointer, pointer, pointer)(lambda *_: 1)
    udf = ps.native_udf(slow, none, state_size=0, columns=[], type=pa.int64())
    batch = pa.record_batch({"ts": [3]})
    with ps.Operator(ps.Query(ps.Window(10), None, {"x": udf}), 1, batch.schema, design="mq") as op:
        op.add(0, batch)
        entered.wait()
        try:
            waits = [_native.lib.ps_operator_pause(op.engine.handle.live, 1) for _ in range(3)]
            leave.set()
            op.engine.handle.pause()
        finally:
            op.engine.handle.resume()
        assert waits == [_native.lib.PS_EMPTY] * 3


# ---- sizes ----


@pytest.mark.parametrize("keys", [1, 40])
def test_more_functions_than_bits(keys):
    """A slice marks in 64 bits which of its functions are plain sums."""
    rng = np.random.default_rng(2)
    table = stream(rng, 400, 60, keys=keys)
    query = ps.Query(ps.Window(10, 3), "k", {f"s{i}": ps.sum("i") if i % 3 else ps.max("i") for i in range(70)})
    assert ps.aggregate(query, [table], design="sliced").equals(ps.aggregate(query, [table], design="mq"))


def test_a_fold_starts_where_no_window_is_left():
    """At the last window of time, and behind all of them."""
    end = 2**63 - 1
    last = end // 10 * 10
    query, batch = ps.Query(ps.Window(10), None, {"n": ps.count()}), pa.record_batch({"ts": [3, end]})
    whole, fold = Combine(query, batch.schema), Fold(query, batch.schema)
    whole.add([*fold.add(batch), *fold.finish()])
    assert [row["ts"] for b in whole.advance(end) for row in b.to_pylist()] == [0]
    assert whole.start == last
    assert [row["ts"] for b in whole.finish() for row in b.to_pylist()] == [last]
    assert whole.start == 2**64 - 1


def test_more_large_blocks_than_are_kept():
    """What is above 64 MB goes back to the system; what is kept is used again."""
    rows = np.arange(450_000)
    query = ps.Query(ps.Window(1), "k", {f"s{i}": ps.sum("k") for i in range(20)})
    for _ in range(2):
        result = ps.aggregate(query, [{"ts": rows * 0, "k": rows}])
        assert all(np.array_equal(result[f"s{i}"], rows) for i in range(20))
        del result


def test_out_of_memory_while_rows_are_shared(failing_memory, nothing_left):
    lib, batch = _native.lib, pa.record_batch({"x": [1, 2]})
    array, out = arrow.exported(batch), arrow.new_array()
    failing_memory(1)
    assert lib.ps_arrow_share(array, out) == lib.PS_NO_MEMORY
    failing_memory(0)
    assert lib.ps_arrow_share(array, out) == lib.PS_OK
    assert arrow.imported(out, batch.schema).equals(batch)
    lib.ps_arrow_release(array)
