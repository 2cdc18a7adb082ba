"""Bytes that become strings again: a snapshot, a partial or a parcel cannot bring text that is not UTF-8."""

from __future__ import annotations

import hashlib
import time

import pyarrow as pa
import pytest
from test_packed import body_of
from test_packed import forged as sealed

import pystream as ps
from pystream._engine import snapshot
from pystream.operator import DESIGNS, designs_for
from pystream.partials import Combine, Fold, PackedCombine, PackedFold

GOOD, BAD = "Grüße".encode(), b"Gr\xff\xfe\xfd\x9fe"
assert len(GOOD) == len(BAD)

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("s", pa.large_string()), ("b", pa.binary())])
ORDERED = {"first": ps.first("s"), "last": ps.last("s")}
UNORDERED = {"least": ps.min("s"), "most": ps.max("s")}


def rows(times: list[int], key: bytes = b"k", text: bytes = b"s", free: bytes = b"b") -> pa.RecordBatch:
    arrays = [pa.array(times), *(pa.array([value] * len(times)) for value in (key, text, free))]
    return pa.RecordBatch.from_arrays([a.cast(f.type) for a, f in zip(arrays, SCHEMA, strict=True)], schema=SCHEMA)


def forged(blob: bytes, least: int = 1) -> bytes:
    """The snapshot with other bytes in place of the text, as somebody would write it who wants it to be taken."""
    assert blob.count(GOOD) >= least
    head = snapshot._HEAD.size
    rest = blob[head:].replace(GOOD, BAD)
    _, version, length, _ = snapshot._HEAD.unpack(blob[:head])
    return snapshot._HEAD.pack(snapshot.MAGIC, version, length, hashlib.sha256(rest).digest()) + rest


def snapshot_of(query: ps.Query, batch: pa.RecordBatch, design: str, *, pending: bool) -> bytes:
    """With the rows in windows or, where another input is behind, waiting."""
    with ps.Operator(query, 2, SCHEMA, design=design) as op:
        op.add(0, batch)
        if not pending:
            op.heartbeat(1, 4)
            op.poll()
        return op.snapshot()


def cases() -> list[tuple[str, str, ps.Query, pa.RecordBatch]]:
    """Where the text lies, the design, the query and the rows."""
    times = [1, 2, 5]
    found = []
    for design in DESIGNS:
        for name, aggregates in {"unordered": UNORDERED, "ordered": ORDERED}.items():
            query = ps.Query(ps.Window(10), "k", aggregates)
            if design in designs_for(query):
                found.append((f"key, {name}", design, query, rows(times, key=GOOD)))
                found.append((f"key with zeros, {name}", design, query, rows(times, key=b"\0" + GOOD + b"\0\0a")))
                found.append((f"value, {name}", design, query, rows(times, text=GOOD)))
    return found


CASES = cases()


@pytest.mark.parametrize("pending", [False, True], ids=["in windows", "pending"])
@pytest.mark.parametrize(("where", "design", "query", "batch"), CASES, ids=[f"{c[0]}, {c[1]}" for c in CASES])
def test_snapshots(where, design, query, batch, pending, nothing_left):
    blob = snapshot_of(query, batch, design, pending=pending)
    ps.Operator.restore(query, blob, design=design).end()
    for other in {design, "mq", "runs"} & set(designs_for(query)):
        with pytest.raises(ps.SnapshotError, match=r"the snapshot is damaged: (window|slice|input)"):
            ps.Operator.restore(query, forged(blob), design=other)


def test_finished_rows_of_a_snapshot(nothing_left):
    query = ps.Query(ps.Window(10), "k", UNORDERED)
    with ps.Operator(query, 1, SCHEMA) as op:
        op.add(0, rows([1], key=GOOD))
        op.heartbeat(0, 10)
        while not op.stats()["rows_out"]:
            time.sleep(0.001)
        blob = op.snapshot()
    with pytest.raises(ps.SnapshotError, match=r"the snapshot is damaged: .*UTF8"):
        ps.Operator.restore(query, forged(blob))


@pytest.mark.parametrize("design", ["mq", "sliced"])
def test_binary_columns_may_have_any_bytes(design):
    query = ps.Query(ps.Window(10), "b", {"least": ps.min("b")})
    batch = rows([1, 2], free=GOOD)
    for pending in (False, True):
        blob = forged(snapshot_of(query, batch, design, pending=pending))
        with ps.Operator.restore(query, blob, design=design) as op:
            op.close(0)
            op.close(1)
            out = pa.Table.from_batches(op)
        assert out.to_pydict() == {"ts": [0], "b": [BAD], "least": [BAD]}


FIXED = pa.schema([("ts", pa.int64()), ("k", pa.binary(4)), ("s", pa.binary(4))])
FREE = pa.schema([("ts", pa.int64()), ("k", pa.binary()), ("s", pa.binary())])


@pytest.mark.parametrize("pending", [False, True], ids=["in windows", "pending"])
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("aggregates", [{"least": ps.min("s")}, {"first": ps.first("s")}], ids=["least", "first"])
def test_strings_of_fixed_size_have_it(aggregates, design, pending, nothing_left):
    """A snapshot of strings of any length that says that theirs is fixed."""
    query = ps.Query(ps.Window(10), "k", aggregates)
    if design not in designs_for(query):
        return

    def goes_on(key: bytes, value: bytes) -> list[dict[str, object]]:
        with ps.Operator(query, 2, FREE, design=design) as op:
            op.add(0, pa.record_batch({"ts": [1, 2, 5], "k": [key] * 3, "s": [value] * 3}, schema=FREE))
            if not pending:
                op.heartbeat(1, 4)
                op.poll()
            saved = snapshot.from_bytes(op.snapshot())
        saved.schema = FIXED
        with ps.Operator.restore(query, snapshot.to_bytes(saved), design=design) as op:
            op.close(0)
            op.close(1)
            return pa.Table.from_batches(op).to_pylist()

    assert goes_on(b"k\0\0k", b"s\0\0s") == [{"ts": 0, "k": b"k\0\0k", next(iter(aggregates)): b"s\0\0s"}]
    for key, value in [(b"k\0k", b"four"), (b"k\0\0\0k", b"four"), (b"four", b""), (b"four", b"value")]:
        with pytest.raises(ps.SnapshotError, match=r"the snapshot is damaged: (window|slice|input)"):
            goes_on(key, value)


ALL = ps.Query(ps.Window(10), "k", ORDERED | UNORDERED)


@pytest.mark.parametrize(
    ("batch", "where"),
    [(rows([1, 2], key=GOOD), "'k'"), (rows([1, 2], text=GOOD), "__[0-3]_value")],
    ids=["key", "value"],
)
def test_parcels(batch, where):
    fold = PackedFold(ALL, SCHEMA, position="ts")
    ((_, parcel),) = [*fold.add(batch), *fold.finish()]
    body = body_of(parcel)
    assert body.count(GOOD) == 1 or where != "'k'"
    combine = PackedCombine(ALL, SCHEMA, position="ts")
    with pytest.raises(ps.PartialError, match=f"packed partials: .*{where}"):
        combine.take(sealed(body.replace(GOOD, BAD)))
        list(combine.finish())


def test_values_of_parcels_are_values_of_their_column():
    """A packed value has 64 bits; one that an int8 cannot have would come out as another."""
    schema = pa.schema([("ts", pa.int64()), ("x", pa.int8())])
    functions = {"least": ps.min("x"), "first": ps.first("x"), "arg": ps.arg_max("x", "x")}
    query = ps.Query(ps.Window(10), None, functions)
    fold = PackedFold(query, schema, position="ts")
    batch = pa.record_batch({"ts": pa.array([1]), "x": pa.array([77], pa.int8())})
    ((_, parcel),) = [*fold.add(batch), *fold.finish()]
    body, word = body_of(parcel), (77).to_bytes(8, "little")
    places = [at for at in range(len(body)) if body[at : at + 8] == word]
    for at, which in zip(places, ["0_value", "1_value", "2_value", "2_by"], strict=True):
        combine = PackedCombine(query, schema, position="ts")
        combine.take(sealed(body[:at] + (77 + 256).to_bytes(8, "little") + body[at + 8 :]))
        with pytest.raises(ps.PartialError, match=f"__{which} is .*not a value of its column"):
            list(combine.finish())


def test_values_of_parcels_have_their_fixed_size():
    query = ps.Query(ps.Window(10), None, {"least": ps.min("s"), "first": ps.first("s")})

    def joined(value: bytes) -> list[dict[str, object]]:
        fold = PackedFold(query, FREE, position="ts")
        ((_, parcel),) = [
            *fold.add(pa.record_batch({"ts": [1], "k": [None], "s": [value]}, schema=FREE)),
            *fold.finish(),
        ]
        combine = PackedCombine(query, FIXED, position="ts")
        combine.take(parcel)
        return pa.Table.from_batches(combine.finish()).to_pylist()

    assert joined(b"four") == [{"ts": 0, "least": b"four", "first": b"four"}]
    for value in (b"", b"val", b"value"):
        with pytest.raises(ps.PartialError, match="__0_value is not a value of its column"):
            joined(value)


@pytest.mark.parametrize("name", ["k", "__0_value", "__2_value"])
def test_partials(name):
    fold = Fold(ALL, SCHEMA, position="ts")
    (partial,) = [*fold.add(rows([1, 2], key=GOOD, text=GOOD)), *fold.finish()]
    at = partial.schema.get_field_index(name)
    good = partial.column(at)
    buffers = [None if b is None else pa.py_buffer(b.to_pybytes().replace(GOOD, BAD)) for b in good.buffers()]
    bad = pa.Array.from_buffers(good.type, len(good), buffers)
    combine = Combine(ALL, SCHEMA, position="ts")
    with pytest.raises(ps.SchemaError, match=f"column '{name}' is damaged: .*UTF8"):
        combine.add(partial.set_column(at, name, bad))
    combine.add(partial)
    assert pa.Table.from_batches(combine.finish()).column("k").to_pylist() == [GOOD.decode()]
