"""Damaged columns, structs that lie and types that do not fit: named and refused, and everything goes on.

Whatever could end the process runs in one of its own.
"""

from __future__ import annotations

import datetime as dt
import math
import struct
import subprocess
import sys
from pathlib import Path

import corrupt_cells
import forge
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pystream as ps
from pystream import _native
from pystream._engine.plan import Plan
from pystream._inputs.column_checks import sound
from pystream.partials import Combine, Fold

HERE = Path(__file__).parent


def survives(*words: str, seconds: float = 120) -> str:
    """What a script of this folder prints, if it comes to its end."""
    command = [sys.executable, *words]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, timeout=seconds, check=False)
    last = done.stdout.splitlines()[-1:]
    assert done.returncode == 0, f"ended with {done.returncode} at {last}\n{done.stderr[-2000:]}"
    return last[0] if last else ""


DAMAGED = forge.STRINGS | forge.NUMBERS | forge.NESTED


@pytest.mark.parametrize("what", DAMAGED)
def test_damage_is_seen(what):
    with pytest.raises(ps.SchemaError, match="column 'x' is damaged"):
        sound(DAMAGED[what](), "x")


@pytest.mark.parametrize("entry", corrupt_cells.ENTRIES)
def test_damaged_columns(entry):
    """Every damage x every use of a column, for one way in."""
    assert survives("corrupt_cells.py", entry) == f"tried {sum(1 for _ in corrupt_cells.cells(entry))}"


LIES = """
import forge, pyarrow as pa, pystream as ps

batch = pa.record_batch({"x": pa.array([1, 2, 3]), "s": pa.array(["a", "b", "c"])})
query = ps.Query(ps.Window(10), "s", {"n": ps.count()}, ts="x")
tried = 0
for name, lie in forge.LIES.items():
    for kind in (forge.LyingArray, forge.LyingStream)[: 1 if name == "released" else 2]:  # that is how streams end
        print(kind.__name__, name, flush=True)
        with ps.Operator(query, 1, batch.schema) as op:
            op.add(0, batch)
            try:
                op.add(0, kind(batch, lie))
            except ps.SchemaError as error:
                assert str(error).startswith("input 0: "), error
            else:
                raise AssertionError("it was believed")
            op.add(0, batch.slice(2))
            op.close(0)
            assert sum(row["n"] for out in op for row in out.to_pylist()) == 4
        tried += 1
print(tried)
"""


def test_structs_that_lie():
    """What can be known of the C data interface to be wrong; where a pointer leads cannot."""
    assert survives("-c", LIES) == str(2 * len(forge.LIES) - 1)


@pytest.mark.parametrize("kind", [forge.LyingArray, forge.LyingStream])
def test_structs_that_do_not_lie(kind):
    batch = pa.record_batch({"x": pa.array([1, 2, 3]), "s": pa.array(["a", None, "c"])})
    query = ps.Query(ps.Window(10), "s", {"n": ps.count()}, ts="x")
    assert ps.aggregate(query, [kind(batch, lambda *_: None)]).num_rows == 3


@pytest.mark.parametrize(("code", "error"), [(12, MemoryError), (22, ps.SchemaError), (5, OSError)])
def test_streams_that_fail(code, error):
    batch = pa.record_batch({"x": pa.array([1])})
    query = ps.Query(ps.Window(10), None, {"n": ps.count()}, ts="x")
    with pytest.raises(error, match="no more"):
        ps.aggregate(query, [forge.LyingStream(batch, lambda *_: None, code)])


def test_what_is_no_capsule():
    class Liar:
        def __arrow_c_array__(self, requested=None):
            return object(), object()

    with pytest.raises(ps.SchemaError, match="gives no arrow_schema"):
        ps.aggregate(ps.Query(ps.Window(10), None, {"n": ps.count()}), [Liar()])


# ---- partials ----

PARTIAL_ROWS = pa.record_batch({"ts": [1, 2, 13], "k": ["a", "b", "a"], "v": [1.0, 2.0, 3.0], "s": ["x", "y", "z"]})
PARTIAL_QUERY = ps.Query(
    ps.Window(10), "k", {"n": ps.count(), "v": ps.sum("v"), "least": ps.min("s"), "first": ps.first("s")}
)


def partial() -> pa.RecordBatch:
    fold = Fold(PARTIAL_QUERY, PARTIAL_ROWS.schema, position="ts")
    (batch,) = [*fold.add(PARTIAL_ROWS), *fold.finish()]
    return batch


@pytest.mark.parametrize("name", partial().schema.names)
def test_damaged_partials(name):
    """Each column of a partial, with every damage that its type can have; in a process of its own."""
    program = f"""
import forge, pyarrow as pa, pystream as ps, test_corrupt_input as here
from pystream.partials import Combine
partial = here.partial()
at = partial.schema.get_field_index({name!r})
text = not pa.types.is_integer(partial.schema.field(at).type)
for what, make in (forge.STRINGS if text else forge.NUMBERS).items():
    print(what, flush=True)
    combine = Combine(here.PARTIAL_QUERY, here.PARTIAL_ROWS.schema, position="ts")
    columns = [*partial.columns]
    columns[at] = make()
    try:
        combine.add(pa.RecordBatch.from_arrays(columns, partial.schema.names))
    except ps.SchemaError as error:
        assert {name!r} in str(error), error
    except ps.PartialError as error:  # valid binary where a sum should be
        assert columns[at].type == pa.string() and "sum" in {name!r}, error
    else:
        raise AssertionError(what)
    combine.add(partial)
    assert sum(batch.num_rows for batch in combine.finish()) == 3
print("done")
"""
    assert survives("-c", program) == "done"


# ---- the paper's two structures ----

STRUCTURES = """
import forge, pyarrow as pa, pystream as ps

def refused(call, *args):
    try:
        call(*args)
    except ps.SchemaError:
        return
    raise AssertionError(args)

gate = ps.TGate(1)
hive = ps.WHive(ps.Window(10), ps.count(), threads=1)
for what, make in {**forge.STRINGS, **forge.NESTED}.items():
    print(what, flush=True)
    for array in (make(), pa.chunked_array([make()])):
        refused(gate.insert_tuples, [1, 2, 3], array, 0)
        refused(hive.update_windows_batch, [1, 2, 3], array, [1, 2, 3], 0)
        refused(hive.update_windows_batch, [1, 2, 3], ["a", "b", "c"], array, 0)
for what, make in forge.NUMBERS.items():
    print(what, flush=True)
    refused(gate.insert_tuples, make(), ["a", "b", "c"], 0)
    refused(hive.update_windows_batch, make(), ["a", "b", "c"], [1, 2, 3], 0)
print("done")
"""


def test_the_structures_on_their_own():
    assert survives("-c", STRUCTURES) == "done"


# ---- types ----

SOME = dt.datetime(2026, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - a column without zone

#: The type of the schema, what a batch brings instead, and whether it is taken.
TYPES = [
    (pa.int64(), pa.array(["1", "2"]), False),
    (pa.int64(), pa.array(["1", "2"], pa.large_string()), False),
    (pa.int64(), pa.array(["1", "2"], pa.string_view()), False),
    (pa.int64(), pa.array(["1", "2"]).dictionary_encode(), False),
    (pa.int64(), pa.array([b"1", b"2"]), False),
    (pa.float64(), pa.array(["1.5", "2"]), False),
    (pa.bool_(), pa.array(["true", "false"]), False),
    (pa.timestamp("us"), pa.array(["2026-01-01", "2026-01-02"]), False),
    (pa.string(), pa.array([1, 2]), False),
    (pa.string(), pa.array([1.5, 2.5]), False),
    (pa.string(), pa.array([True, False]), False),
    (pa.int64(), pa.array([True, False]), False),
    (pa.bool_(), pa.array([1, 2]), False),
    (pa.float64(), pa.array([True, False]), False),
    (pa.int64(), pa.array([1.5, 2.0]), False),
    (pa.int64(), pa.array([math.nan, 2.0]), False),
    (pa.int64(), pa.array([1e300, 2.0]), False),
    (pa.int64(), pa.array([1.0, 2.0]), True),
    (pa.int32(), pa.array([2**31, 1]), False),
    (pa.int32(), pa.array([2**31 - 1, 1]), True),
    (pa.uint8(), pa.array([-1, 1]), False),
    (pa.int64(), pa.array([2**63, 1], pa.uint64()), False),
    (pa.int64(), pa.array([1, None], pa.int8()), True),
    (pa.int64(), pa.array([1, 2]).dictionary_encode(), True),
    (pa.int64(), pa.nulls(2), True),
    (pa.float64(), pa.array([2**53, 1]), True),
    (pa.float64(), pa.array([2**53 + 1, 1]), False),
    (pa.float32(), pa.array([2**24 + 1, 1]), False),
    (pa.float32(), pa.array([0.5, math.nan, math.inf, None]), True),
    (pa.float32(), pa.array([0.1, 0.5]), False),
    (pa.float32(), pa.array([1e300, 0.5]), False),
    (pa.float64(), pa.array([0.1, 0.5], pa.float32()), True),
    (pa.string(), pa.array(["a", "b"], pa.large_string()), True),
    (pa.string(), pa.array(["a", "b"], pa.string_view()), True),
    (pa.string(), pa.array(["a", "b"]).dictionary_encode(), True),
    (pa.string(), pa.array([b"a", b"b"]), True),
    (pa.string(), pa.array([b"a", b"\xff"]), False),
    (pa.timestamp("s"), pa.array([SOME, SOME], pa.timestamp("us")), False),
    (pa.timestamp("us"), pa.array([SOME, SOME], pa.timestamp("ns")), True),
    (pa.timestamp("ns"), pa.array([SOME, SOME], pa.timestamp("us")), True),
    (pa.timestamp("ns"), pa.array([2**62, 1], pa.timestamp("s")), False),
    (pa.timestamp("us"), pa.array([1, 2]), False),
    (pa.int64(), pa.array([SOME, SOME], pa.timestamp("us")), False),
    (pa.int64(), pa.array([1, 2], pa.duration("us")), False),
    (pa.int64(), pa.array([1, 2], pa.date32()), False),
    (pa.int64(), pa.array([[1], [2]]), False),
]


@pytest.mark.parametrize(
    ("type", "brought", "taken"), TYPES, ids=[f"{t} from {a.type} {i}" for i, (t, a, _) in enumerate(TYPES)]
)
@pytest.mark.parametrize("use", ["value", "key", "where"])
def test_casts_lose_nothing(type, brought, taken, use):
    queries = {
        "value": ps.Query(ps.Window(10), None, {"x": ps.first("x")}),
        "key": ps.Query(ps.Window(10), "x", {"n": ps.count()}),
        "where": ps.Query(ps.Window(10), None, {"n": ps.count(where=pc.field("x").is_valid())}),
    }
    schema = pa.schema([("ts", pa.int64()), ("x", type)])
    batch = pa.record_batch({"ts": pa.array(range(len(brought))), "x": brought})
    with ps.Operator(queries[use], 1, schema) as op:
        if not taken:
            with pytest.raises(ps.SchemaError, match=r"input 0: column 'x' has type .* where .* is expected"):
                op.add(0, batch)
        else:
            op.add(0, batch)
        op.close(0)
        out = pa.Table.from_batches(op, op.schema)
    assert out.num_rows == 0 if not taken else out.num_rows > 0
    if taken and use == "value":
        assert out.column("x").to_pylist()[0] == brought.cast(type).to_pylist()[0]


@pytest.mark.parametrize("ts", [pa.array(["1", "2"]), pa.array([1.5, 2.5]), pa.array([True, False])])
def test_timestamps_are_not_parsed(ts):
    query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    op = ps.Operator(query, 1, pa.schema([("ts", pa.int64())]))
    with op, pytest.raises(ps.SchemaError, match="input 0: column 'ts' has type"):
        op.add(0, pa.record_batch({"ts": ts}))


def test_a_value_that_python_cannot_hold_is_refused_where_it_comes_in():
    """Not when the row is built for a user's window: then it would be too late."""
    schema = pa.schema([("ts", pa.int64()), ("when", pa.timestamp("us"))])
    query = ps.Query(ps.Window(10), None, {"rows": ps.udf(corrupt_cells.Rows)})
    with ps.Operator(query, 1, schema) as op:
        bad = pa.record_batch({"ts": pa.array([1]), "when": pa.array([2**62], pa.timestamp("us"))})
        with pytest.raises(ps.SchemaError, match="input 0: column 'when' has a value that Python cannot hold"):
            op.add(0, bad)
        op.add(0, pa.record_batch({"ts": pa.array([1]), "when": pa.array([2**40], pa.timestamp("us"))}))
        op.close(0)
        assert [row["rows"] for batch in op for row in batch.to_pylist()] == [1]


def test_a_filter_may_name_columns_by_their_place():
    batch = pa.record_batch({"ts": [1, 2], "a": [1, 2], "b": [1, -2]})
    query = ps.Query(ps.Window(10), None, {"n": ps.count(where=pc.field(2) > 0)})
    assert ps.aggregate(query, [batch]).column("n").to_pylist() == [1]
    swapped = batch.select(["b", "a", "ts"])
    with ps.Operator(query, 1, batch.schema) as op:
        op.add(0, swapped)
        op.close(0)
        assert [row["n"] for out in op for row in out.to_pylist()] == [1]


def test_parts_that_do_not_go_together():
    query = ps.Query(ps.Window(10), None, {"rows": ps.udf(corrupt_cells.Rows)})
    parts = [pa.record_batch({"ts": [1]}), pa.record_batch({"ts": [2], "more": [1]})]
    with (
        ps.Operator(query, 1, parts[0].schema) as op,
        pytest.raises(ps.SchemaError, match="input 0: batches that do not"),
    ):
        op.add(0, parts)


def test_values_need_not_be_aligned():
    """C reads numbers where Arrow says they are; at odd addresses they are copied."""
    values = pa.py_buffer(b"x" + struct.pack("<3q", 1, 2, 13)).slice(1)
    offsets = pa.py_buffer(b"x" + struct.pack("<4i", 0, 1, 2, 3)).slice(1)
    ts = pa.Array.from_buffers(pa.int64(), 3, [None, values])
    keys = pa.Array.from_buffers(pa.string(), 3, [None, offsets, pa.py_buffer(b"aba")])
    batch = pa.RecordBatch.from_arrays([ts, keys], ["ts", "k"])
    plan = Plan(ps.Query(ps.Window(10), "k", {"t": ps.max("ts")}), batch.schema)
    for array in plan.prepare(batch).columns:
        assert array.buffers()[1].address % 8 == 0
    assert ps.aggregate(plan.query, [batch]).to_pydict() == {"ts": [0, 0, 10], "k": ["a", "b", "a"], "t": [1, 2, 13]}


# ---- UTF-8 ----


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True


EDGES = [0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF]
EDGES += [0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF]


@pytest.mark.parametrize(("type", "format"), [(pa.string(), "i"), (pa.large_string(), "q")])
@given(parts=st.lists(st.one_of(st.binary(max_size=6), st.text(max_size=40).map(str.encode)), max_size=6))
def test_strings_are_taken_if_python_takes_them(type, format, parts):
    offsets = [sum(map(len, parts[:i])) for i in range(len(parts) + 1)]
    buffers = [None, forge.packed(format, *offsets), pa.py_buffer(b"".join(parts))]
    array = pa.Array.from_buffers(type, len(parts), buffers)
    if all(map(is_utf8, parts)):
        assert sound(array, "x") is array
        assert _native.strings_sound(array, wide=format == "q", text=True)
    else:
        with pytest.raises(ps.SchemaError, match="column 'x' is damaged"):
            sound(array, "x")


def test_every_edge_of_utf8():
    """All sequences of up to three bytes, and of four that begin right, of bytes where the rules change."""
    for tail in ([], *([a] for a in EDGES), *([a, b] for a in EDGES for b in EDGES)):
        cases = [bytes([lead, *tail]) for lead in EDGES]
        cases += [bytes([lead, *tail, end]) for lead in (0xF0, 0xF1, 0xF4) for end in (0x7F, 0x80, 0xBF, 0xC0)]
        for case in cases:
            array = pa.Array.from_buffers(pa.string(), 1, [None, forge.packed("i", 0, len(case)), pa.py_buffer(case)])
            assert _native.strings_sound(array, wide=False, text=True) == is_utf8(case), case


def test_bytes_under_a_null_do_not_matter():
    buffers = [pa.py_buffer(b"\x05"), forge.packed("i", 0, 1, 2, 3), pa.py_buffer(b"a\xffc")]
    array = pa.Array.from_buffers(pa.string(), 3, buffers)
    assert sound(array, "x").to_pylist() == ["a", None, "c"]


def test_binary_may_be_anything():
    query = ps.Query(ps.Window(10), "k", {"last": ps.last("k")})
    batch = pa.record_batch({"ts": [1], "k": pa.array([b"\xff\xfe"])})
    assert ps.aggregate(query, [batch]).to_pydict() == {"ts": [0], "k": [b"\xff\xfe"], "last": [b"\xff\xfe"]}


def test_combine_takes_sound_partials():
    combine = Combine(PARTIAL_QUERY, PARTIAL_ROWS.schema, position="ts")
    combine.add(partial())
    assert pa.Table.from_batches(combine.finish()).equals(ps.aggregate(PARTIAL_QUERY, [PARTIAL_ROWS]))
