"""Window functions in compiled user code: what they are given, what they give back, and what their failures say."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import shutil
import struct
import subprocess
from datetime import date, datetime
from pathlib import Path

import cffi
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from memory import with_failing_memory

import pystream as ps
from pystream import _native, functions, reference
from pystream.data.sample import smart_meters
from pystream.operator import DESIGNS, UNORDERED_DESIGNS

DECLARATIONS = """
int32_t {0}_process(void *, int64_t, const uint64_t *, const uint8_t *);
int32_t {0}_produce(const void *, uint64_t *, uint8_t *);
"""


def ordered_designs() -> list[str]:
    """The designs that run order-sensitive functions."""
    return [d for d in DESIGNS if d not in UNORDERED_DESIGNS]


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> str:
    """The user's code, compiled as a user would."""
    cc = shutil.which("gcc") or shutil.which("clang") or "cc"
    target = tmp_path_factory.mktemp("native") / "udf.so"
    source = Path(__file__).parent / "native/udf.c"
    subprocess.run([cc, "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", source, "-o", target], check=True)
    return str(target)


@pytest.fixture
def user(library):
    """The user's functions by name, as ctypes sees them."""
    return ctypes.CDLL(library)


def digits(user, **options):
    return ps.native_udf(
        user.digits_process, user.digits_produce, state_size=8, columns="digit", type=pa.int64(), **options
    )


class Digits:
    """The same in Python, for the oracle."""

    def __init__(self) -> None:
        self.number = 0

    def process_tuple(self, row):
        self.number = self.number * 10 + row["digit"]

    def produce_out_tuple(self):
        return self.number


def tuples(seed: int, rows: int = 40) -> list[pa.RecordBatch]:
    rng = np.random.default_rng(seed)
    return [
        pa.RecordBatch.from_pydict(
            {
                "ts": np.sort(rng.integers(0, 20, rows)),
                "k": rng.integers(0, 3, rows),
                "digit": rng.integers(0, 10, rows),
            }
        )
        for _ in range(3)
    ]


@pytest.mark.parametrize("design", ordered_designs())
@pytest.mark.parametrize("seed", range(5))
def test_every_design_gives_the_tuples_in_their_order(user, design, seed):
    inputs = tuples(seed)
    query = ps.Query(ps.Window(5, 2), "k", {"n": ps.count(), "order": digits(user), "last": ps.last("digit")})
    plain = ps.Query(ps.Window(5, 2), "k", {"n": ps.count(), "order": ps.udf(Digits), "last": ps.last("digit")})
    expected = reference.aggregate(plain, [b.to_pylist() for b in inputs])
    for row in expected:
        row["order"] = struct.unpack("<q", struct.pack("<Q", row["order"] % 2**64))[0]  # C's digits run over
    assert ps.aggregate(query, inputs, design=design, threads=2).to_pylist() == expected


def test_a_design_without_order_refuses(user):
    query = ps.Query(ps.Window(5), "k", {"order": digits(user)})
    for design in UNORDERED_DESIGNS:
        with pytest.raises(ValueError, match=r"order = native_udf\(digit\) depends on the order of tuples.*'mq'.*do"):
            ps.aggregate(query, tuples(1), design=design)


# ---- what the functions are given ----


def test_timestamps_values_and_nulls_of_every_width(user):
    columns = {
        "f": pa.array([1.5, None, -0.0], pa.float64()),
        "g": pa.array([0.25, 1e30, None], pa.float32()),
        "i": pa.array([-1, None, 2**62], pa.int64()),
        "small": pa.array([None, -128, 127], pa.int8()),
        "u": pa.array([2**64 - 1, 0, None], pa.uint64()),
        "flag": pa.array([True, False, None], pa.bool_()),
    }
    batch = pa.RecordBatch.from_pydict({"ts": [3, 4, 4], **columns})
    mix = ps.native_udf(user.mix_process, user.digits_produce, state_size=8, columns=list(columns), type=pa.uint64())
    query = ps.Query(ps.Window(10), None, {"sum": mix})
    expected = 0
    for row in batch.to_pylist():
        expected = expected * 31 + row["ts"]
        for name in columns:
            value = row[name]
            form = "<d" if isinstance(value, float) else "<q" if name in ("i", "small") else "<Q"
            bits = 0 if value is None else struct.unpack("<Q", struct.pack(form, value))[0]
            expected = (expected * 31 + bits + (value is None)) % 2**64
    assert ps.aggregate(query, [batch]).to_pylist() == [{"ts": 0, "sum": expected}]


def test_the_timestamp_and_the_key_may_be_asked_for_as_columns(user):
    query = ps.Query(
        ps.Window(10),
        "digit",
        {
            "keys": digits(user),
            "times": ps.native_udf(
                user.digits_process, user.digits_produce, state_size=8, columns=["ts"], type=pa.int64()
            ),
        },
    )
    got = ps.aggregate(query, [{"ts": [1, 2, 3], "digit": [7, 7, 8]}]).to_pylist()
    assert got == [{"ts": 0, "digit": 7, "keys": 77, "times": 12}, {"ts": 0, "digit": 8, "keys": 8, "times": 3}]


def test_where(user):
    query = ps.Query(ps.Window(10), None, {"even": digits(user, where=pc.bit_wise_and(pc.field("digit"), 1) == 0)})
    assert ps.aggregate(query, [{"ts": [1, 2, 3, 4], "digit": [4, 3, 2, 1]}]).to_pylist() == [{"ts": 0, "even": 42}]


def test_states_of_any_size_and_many_windows(user, nothing_left):
    """Also states that move because their table grows, next to other aggregates."""
    large = ps.native_udf(user.large_process, user.large_produce, state_size=1000, columns="m", type=pa.int64())
    nothing = ps.native_udf(user.nothing_process, user.one_produce, state_size=0, columns=[], type=pa.int8())
    query = ps.Query(ps.Window(8, 2), "k", {"a": large, "n": ps.count(), "b": nothing, "mean": ps.avg("m")})
    data = {"ts": np.arange(400) // 4, "k": np.arange(400) % 40, "m": np.arange(400) % 1001}
    for row in ps.aggregate(query, [data]).to_pylist():
        assert row["a"] == round(row["mean"] * row["n"])
        assert row["b"] == 1


@pytest.mark.parametrize(
    ("type", "value"),
    [
        (pa.int8(), 1),
        (pa.uint16(), 1),
        (pa.float32(), struct.unpack("<d", struct.pack("<q", 1))[0] * 0),
        (pa.bool_(), True),
        (pa.date32(), date(1970, 1, 2)),
        (pa.timestamp("s"), datetime(1970, 1, 1, 0, 0, 1)),  # noqa: DTZ001
    ],
    ids=str,
)
def test_types_of_results(user, type, value):
    one = ps.native_udf(user.nothing_process, user.one_produce, state_size=0, columns=[], type=type)
    null = ps.native_udf(user.nothing_process, user.null_produce, state_size=0, columns=[], type=type)
    table = ps.aggregate(ps.Query(ps.Window(5), None, {"one": one, "null": null}), [{"ts": [1]}])
    assert table.schema.types[1:] == [type, type]
    assert table.to_pylist() == [{"ts": 0, "one": value, "null": None}]


def test_a_result_that_its_type_does_not_hold(user, nothing_left):
    narrow = ps.native_udf(user.digits_process, user.digits_produce, state_size=8, columns="digit", type=pa.int8())
    with pytest.raises(ps.UdfError, match=r"u: a result does not fit: .*1000"):
        ps.aggregate(ps.Query(ps.Window(5), None, {"u": narrow}), [{"ts": [1], "digit": [1000]}])


TEXTS = ["", "a", "grüße", None, "x" * 300, "mail me@example.org"]


class Text:
    """The same as text_process in Python, for the oracle."""

    def __init__(self) -> None:
        self.sum = 0

    def process_tuple(self, row):
        text = row["text"]
        self.sum += 1_000_000 if text is None else len(text.encode()) + sum(text.encode())

    def produce_out_tuple(self):
        return self.sum


def text_sum(user, **options):
    return ps.native_udf(
        user.text_process, user.digits_produce, state_size=8, columns="text", type=pa.int64(), **options
    )


@pytest.mark.parametrize(
    "type", [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]
)
@pytest.mark.parametrize("design", DESIGNS)
def test_strings_are_pointer_and_length(user, design, type):
    """In all designs but sliced: what can be combined runs in wiml too."""
    inputs = [
        pa.table({"ts": b["ts"], "k": b["k"], "text": pa.array([TEXTS[i % 6] for i in b["digit"].to_pylist()], type)})
        for b in tuples(5)
    ]
    query = ps.Query(ps.Window(5, 2), "k", {"sum": text_sum(user, combine=user.sum_combine), "n": ps.count()})
    plain = ps.Query(ps.Window(5, 2), "k", {"sum": ps.udf(Text), "n": ps.count()})
    expected = reference.aggregate(plain, [b.to_pylist() for b in inputs])
    if design == "sliced":
        with pytest.raises(ValueError, match=r"sum = native_udf\(text\)"):
            ps.aggregate(query, inputs, design=design)
    else:
        assert ps.aggregate(query, inputs, design=design, threads=2).to_pylist() == expected


def test_a_failure_in_a_lane_is_reported(user, nothing_left):
    picky = ps.native_udf(
        user.picky_process, user.picky_produce, state_size=8, columns="v", type=pa.int64(), combine=user.sum_combine
    )
    query = ps.Query(ps.Window(10), None, {"mine": picky})
    for values in ([13, 1], [1, 13]):
        with pytest.raises(ps.UdfError, match=r"mine, window starting at 0, key \(\): user code gave -5"):
            ps.aggregate(query, [{"ts": [1], "v": [v]} for v in values], design="wiml")
    with pytest.raises(ps.UdfError, match="user code gave 77"):  # of combine: the sum is 100
        ps.aggregate(query, [{"ts": [1], "v": [50]}] * 2, design="wiml")


# ---- failures ----


@pytest.mark.parametrize("design", ordered_designs())
def test_a_code_is_reported_with_window_and_key_and_rows_before_it_come_out(user, design, nothing_left):
    picky = ps.native_udf(user.picky_process, user.picky_produce, state_size=8, columns="v", type=pa.int64())
    query = ps.Query(ps.Window(10), ["k", "name"], {"n": ps.count(), "mine": picky, "total": ps.sum("v")})
    names = ["a", "b", None]

    def run(values, message):
        data = {"ts": [1, 11, 12, 13, 14], "k": [1, 1, 2, 1, 2], "name": pa.array([names[0], *names[1:], *names[1:]])}
        got = []
        with ps.Operator(
            query,
            1,
            pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("name", pa.string()), ("v", pa.int64())]),
            design,
        ) as op:
            op.add(0, {**data, "v": values})
            op.close(0)
            with pytest.raises(ps.UdfError, match=message):
                for b in op:
                    got += b.to_pylist()
            with pytest.raises(ps.UdfError, match=message):
                op.poll()
            with pytest.raises(ps.ClosedError):
                op.add(0, {**data, "v": values})
        assert got == [{"ts": 0, "k": 1, "name": "a", "n": 1, "mine": 0, "total": 0}]

    run([0, 13, 0, 0, 0], r"mine, window starting at 10, key \(1, 'b'\): user code gave -5")
    run([0, 0, 13, 13, 13], r"mine, window starting at 10, key \(1, 'b'\): user code gave -5")  # the first by key
    run([0, 0, 13, 1, 0], r"mine, window starting at 10, key \(2, None\): user code gave -5")
    run([0, 3, 0, 4, 0], r"mine, window starting at 10, key \(1, 'b'\): user code gave 42")
    with pytest.raises(ps.UdfError, match="gave 42"):
        ps.aggregate(query, [{"ts": [1], "k": [1], "name": ["x"], "v": [7]}], design=design)


def test_a_window_of_timestamps_is_named_as_one(user):
    picky = ps.native_udf(user.picky_process, user.picky_produce, state_size=8, columns="v", type=pa.int64())
    query = ps.Query(ps.Window("1h"), "day", {"mine": picky})
    data = {"ts": [datetime(2020, 1, 1, 5, 30)], "day": [date(2020, 1, 1)], "v": [13]}  # noqa: DTZ001
    with pytest.raises(ps.UdfError, match=r"starting at 2020-01-01T05:00:00, key \(datetime.date\(2020, 1, 1\),\)"):
        ps.aggregate(query, [data])


def test_every_allocation_may_fail(user, nothing_left):
    query = ps.Query(ps.Window(5, 2), "k", {"order": digits(user), "n": ps.count()})
    batch = tuples(3, rows=4)[0]
    expected = ps.aggregate(query, [batch]).to_pylist()
    got, n = with_failing_memory(lambda: attempt(query, batch))
    assert got == expected
    assert n > 10


def attempt(query: ps.Query, batch: pa.RecordBatch) -> list[dict]:
    with ps.Operator(query, 1, batch.schema) as op:
        op.add(0, batch)
        op.close(0)
        return [row for b in op for row in b.to_pylist()]


# ---- where pointers come from ----


def numba_rise():
    """The user's code of the documentation, in Numba."""
    import numba  # noqa: PLC0415

    state_type = np.dtype([("last", "f8"), ("rise", "f8"), ("n", "i8")])

    @numba.cfunc("i4(voidptr, i8, CPointer(f8), CPointer(u1))")
    def process(state, ts, values, nulls):
        s = numba.carray(state, 1, state_type)
        if nulls[0]:
            return 0
        if s[0].n == 1 or (s[0].n > 1 and values[0] - s[0].last > s[0].rise):
            s[0].rise = values[0] - s[0].last
        s[0].last = values[0]
        s[0].n += 1
        return 0

    @numba.cfunc("i4(voidptr, CPointer(f8), CPointer(u1))")
    def produce(state, result, null):
        s = numba.carray(state, 1, state_type)
        null[0] = s[0].n < 2
        result[0] = s[0].rise
        return 0

    return process, produce


def ctypes_rise(path):
    library = ctypes.CDLL(path)
    return library.rise_process, library.rise_produce


def cffi_rise(path):
    ffi = cffi.FFI()
    ffi.cdef(DECLARATIONS.format("rise"))
    library = ffi.dlopen(path)
    return library.rise_process, library.rise_produce


def address_rise(path):
    library = ctypes.CDLL(path)
    return tuple(ctypes.cast(f, ctypes.c_void_p).value for f in (library.rise_process, library.rise_produce))


POINTERS = {"ctypes": ctypes_rise, "cffi": cffi_rise, "address": address_rise}
if importlib.util.find_spec("numba"):
    POINTERS["numba"] = lambda _path: numba_rise()


class Rise:
    def __init__(self) -> None:
        self.values = []

    def process_tuple(self, row):
        self.values.append(row["cons"])

    def produce_out_tuple(self):
        return max((b - a for a, b in zip(self.values, self.values[1:], strict=False)), default=None)


@pytest.mark.parametrize("kind", POINTERS)
def test_pointers_from(kind, library):
    process, produce = POINTERS[kind](library)
    rise = ps.native_udf(process, produce, state_size=24, columns=["cons"], type=pa.float64())
    del process, produce  # the aggregate keeps the code alive
    streams = smart_meters(3, 3_000, seed=4)
    query = ps.Query(ps.Window(6, 2), "meter", {"rise": rise})
    python = ps.Query(ps.Window(6, 2), "meter", {"rise": ps.udf(Rise)})
    assert ps.aggregate(query, streams) == ps.aggregate(python, streams)


def test_compiled_code_runs_while_python_holds_the_gil(user, nothing_left):
    """The first row is there although this thread waits for it without letting go of the GIL."""
    query = ps.Query(ps.Window(10), None, {"order": digits(user)})
    with ps.Operator(query, 1, pa.schema([("ts", pa.int64()), ("digit", pa.int64())])) as op:
        reading, writing = os.pipe()
        assert op.engine.handle.watch(writing)
        op.add(0, {"ts": [1, 2], "digit": [4, 2]})
        op.heartbeat(0, 10)
        assert ctypes.PyDLL(None).read(reading, ctypes.create_string_buffer(1), 1) == 1  # PyDLL keeps the GIL
        assert op.poll()[0].to_pylist() == [{"ts": 0, "order": 42}]
        os.close(reading)
        os.close(writing)


# ---- refusals ----


def test_what_is_no_pointer_is_refused(user):
    good = user.digits_process
    for bad in (None, "process", len, lambda: 0, 1.5, True):
        with pytest.raises(TypeError, match=r"native_udf\(process=...\) takes a cffi or ctypes function pointer"):
            ps.native_udf(bad, good, state_size=8, columns="v", type=pa.int64())
    for bad in (0, -1, 2**64, cffi.FFI().NULL):
        with pytest.raises(ValueError, match=r"native_udf\(produce=...\): .* is no address"):
            ps.native_udf(good, bad, state_size=8, columns="v", type=pa.int64())


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"state_size": -1}, ValueError, "state_size must be between 0 and 1048576, not -1"),
        ({"state_size": 2**20 + 1}, ValueError, "state_size must be"),
        ({"state_size": 1.5}, TypeError, "float"),
        ({"columns": [str(i) for i in range(65)]}, ValueError, "at most 64 columns"),
        ({"columns": [1]}, ValueError, "names of at most 64 columns"),
        ({"type": "int64"}, TypeError, "takes an Arrow type, not 'int64'"),
        ({"type": pa.string()}, TypeError, "a type of fixed width, at most 64 bits, not string"),
        ({"type": pa.decimal128(5)}, TypeError, "a type of fixed width"),
        ({"where": True}, TypeError, "takes a pyarrow compute expression"),
    ],
    ids=str,
)
def test_arguments_are_checked(user, arguments, error, message):
    right = {"state_size": 8, "columns": "digit", "type": pa.int64()}
    with pytest.raises(error, match=message):
        ps.native_udf(user.digits_process, user.digits_produce, **{**right, **arguments})


def test_columns_are_checked_against_the_schema(user):
    query = ps.Query(ps.Window(5), None, {"mine": digits(user)})
    with pytest.raises(ps.SchemaError, match="column 'digit' is missing"):
        ps.aggregate(query, [{"ts": [1]}])


def test_limits_are_those_of_the_header():
    assert (functions.NATIVE_COLUMNS_MAX, functions.NATIVE_STATE_MAX) == (
        _native.lib.PS_NATIVE_COLUMNS,
        _native.lib.PS_NATIVE_STATE,
    )


def test_repr(user):
    assert repr(digits(user)) == "native_udf(digit)"


# ---- snapshots ----


@pytest.mark.parametrize("design", ordered_designs())
def test_a_snapshot_holds_the_users_states(user, design, nothing_left):
    """Cut at every place, restored into the other designs: the same rows as without a cut; failures too."""
    inputs = tuples(7, rows=12)
    query = ps.Query(ps.Window(5, 2), "k", {"order": digits(user), "n": ps.count()})
    expected = ps.aggregate(query, inputs).to_pylist()
    for cut in range(0, 13, 3):
        op = ps.Operator(query, 3, inputs[0].schema, design, threads=2)
        for i, batch in enumerate(inputs):
            op.add(i, batch.slice(0, cut))
        blob = op.snapshot()
        op.end()
        for other in ordered_designs():
            with ps.Operator.restore(query, blob, other) as restored:
                for i, batch in enumerate(inputs):
                    restored.add(i, batch.slice(cut))
                    restored.close(i)
                assert [row for b in restored for row in b.to_pylist()] == expected


def test_a_snapshot_remembers_that_a_window_failed(user, nothing_left):
    picky = ps.native_udf(user.picky_process, user.picky_produce, state_size=8, columns="v", type=pa.int64())
    query = ps.Query(ps.Window(10), None, {"mine": picky})
    with ps.Operator(query, 1, pa.schema([("ts", pa.int64()), ("v", pa.int64())])) as op:
        op.add(0, {"ts": [1, 2], "v": [13, 1]})
        blob = op.snapshot()
    with ps.Operator.restore(query, blob) as op:
        op.close(0)
        with pytest.raises(ps.UdfError, match=r"mine, window starting at 0, key \(\): user code gave -5"):
            list(op)


def test_a_snapshot_of_another_state_size_is_refused(user, nothing_left):
    def query(size):
        function = ps.native_udf(
            user.digits_process, user.digits_produce, state_size=size, columns="digit", type=pa.int64()
        )
        return ps.Query(ps.Window(5), "k", {"order": function})

    with ps.Operator(query(8), 1, tuples(1)[0].schema) as op:
        op.add(0, tuples(1)[0])
        blob = op.snapshot()
    with pytest.raises(ps.SnapshotError, match="the snapshot is of another query"):
        ps.Operator.restore(query(16), blob)
