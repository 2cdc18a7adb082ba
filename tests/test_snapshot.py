"""Snapshots: whatever goes on from one gives the same bytes as if nothing had happened, and no bytes do any harm."""

from __future__ import annotations

import base64
import hashlib
import itertools
import random
import struct
import threading
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from faults import record
from memory import with_failing_memory
from strategies import Collect
from threads import core_threads, patience

import pystream as ps
from pystream._engine.snapshot import _HEAD, _PART, MAGIC, VERSION, from_bytes, to_bytes
from pystream.operator import CANNOT, DESIGNS

SCHEMA = pa.schema(
    [("ts", pa.int64()), ("id", pa.string()), ("k", pa.string()), ("i", pa.int32()), ("f", pa.float64())],
)
AGGREGATES = {
    "n": ps.count(),
    "total": ps.sum("i"),
    "exact": ps.sum("f"),
    "mean": ps.avg("f"),
    "variance": ps.var("f"),
    "deviation": ps.std("i", ddof=0),
    "both": ps.covar("f", "i"),
    "trend": ps.slope("f", "i"),
    "start": ps.intercept("i", "f"),
    "related": ps.corr("i", "f"),
    "low": ps.min("f"),
    "high": ps.max("id"),
    "first": ps.first("id"),
    "last": ps.last("i"),
    "who": ps.arg_min("id", "f"),
    "what": ps.arg_max("i", "f"),
    "order": ps.udf(Collect, type=pa.string()),
}
INPUTS = 3


def query(*designs: str) -> ps.Query:
    """All functions that the designs can run."""
    cannot = {function for design in designs for function in CANNOT.get(design, ())}
    keep = {name: a for name, a in AGGREGATES.items() if a.function not in cannot}
    return ps.Query(ps.Window(7, 3), "k", keep)


def tuples(rows: int = 40) -> list[pa.RecordBatch]:
    rng = np.random.default_rng(5)
    inputs = []
    for input in range(INPUTS):
        f = rng.normal(0, 1, rows) * 10.0 ** rng.integers(-200, 200, rows)
        columns = {
            "ts": np.sort(rng.integers(0, 60, rows)),
            "id": [f"{input}.{row}" for row in range(rows)],
            "k": [[None, "", "a\0b", "zz"][k] for k in rng.integers(0, 4, rows)],
            "i": rng.integers(-(2**31), 2**31, rows),
            "f": pa.array(f, mask=rng.random(rows) < 0.1),
        }
        inputs.append(pa.RecordBatch.from_pydict(columns, schema=SCHEMA))
    return inputs


def feed(op: ps.Operator, parts: list[pa.RecordBatch], size: int) -> None:
    """All inputs, in turns of `size` rows."""
    for start in range(0, max(p.num_rows for p in parts), size):
        for input, part in enumerate(parts):
            op.add(input, part.slice(start, size))


def finish(op: ps.Operator) -> list[pa.RecordBatch]:
    for input in range(op.inputs):
        op.close(input)
    return list(op)


def table(batches: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(batches).combine_chunks()


def half_way(q: ps.Query, design: str = "mq", threads: int = 2, **options) -> ps.Operator:
    """An operator that has done what it can with the first halves: tuples pending, windows open, rows out."""
    op = ps.Operator(q, INPUTS, SCHEMA, design=design, threads=threads, **options)
    feed(op, [t.slice(0, 20) for t in tuples()], 3)
    op.heartbeat(1, 60)
    for _ in patience():
        if op.stats()["pending"] == op.explain_stall().waiting:
            break
    return op


@pytest.mark.parametrize(("before", "after"), list(itertools.product(DESIGNS, DESIGNS)))
def test_any_design_goes_on_from_any_other(before, after, nothing_left):
    q = query(before, after)
    firsts, seconds = [t.slice(0, 20) for t in tuples()], [t.slice(20) for t in tuples()]
    expected = ps.aggregate(q, tuples())
    with ps.Operator(q, INPUTS, SCHEMA, design=before, threads=3) as op:
        feed(op, firsts, 4)
        early = op.poll()
        blob = op.snapshot()
        with ps.Operator.restore(q, blob, design=after, threads=2) as other:
            assert other.stats()["latest"] == op.stats()["latest"]
            feed(other, seconds, 7)
            assert table(early + finish(other)).equals(expected)
        feed(op, seconds, 20)
        assert table(early + finish(op)).equals(expected)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_reader_that_stalls_does_not_stop_a_snapshot_and_memory_stays_bounded(design):
    """The sink is full, the output thread waits; snapshots do not let it go on, however many are taken."""
    q = ps.Query(ps.Window(1), "k", {"n": ps.count()})
    with ps.Operator(q, 1, SCHEMA, design=design, max_pending=10, threads=2) as op:
        fed = 0
        for _ in range(40):
            try:
                op.add(0, tuples(1)[0].set_column(0, "ts", pa.array([fed])), timeout=0.02)
                fed += 1
            except TimeoutError:
                blob = op.snapshot()
        assert fed < 30  # ten pending, up to ten in the output, what was under way
        with ps.Operator.restore(q, blob, max_pending=5) as other:
            assert [row["ts"] for b in finish(other) for row in b.to_pylist()] == list(range(fed))
        assert [row["ts"] for b in finish(op) for row in b.to_pylist()] == list(range(fed))


@pytest.mark.parametrize("design", DESIGNS)
def test_snapshots_while_other_threads_add_and_read(design, nothing_left):
    """Each snapshot is a moment of the run: with the tuples that came later it gives the whole result."""
    q = ps.Query(ps.Window(20, 5), "k", {"n": ps.count(), "exact": ps.sum("f")})
    parts = [t.set_column(0, "ts", pa.array(np.arange(400) * 2)) for t in tuples(400)]
    expected = ps.aggregate(q, parts)
    read: list[pa.RecordBatch] = []
    with ps.Operator(q, INPUTS, SCHEMA, design=design, threads=2, max_pending=50) as op:

        def add(input: int) -> None:
            for start in range(0, 400, 5):
                op.add(input, parts[input].slice(start, 5))
            op.close(input)

        threads = [threading.Thread(target=add, args=(input,)) for input in range(INPUTS)]
        for t in threads:
            t.start()
        moments = []
        while any(t.is_alive() for t in threads):
            moments.append((op.snapshot(), len(read)))
            read += op.poll()
        read += list(op)
        for t in threads:
            t.join()
    assert table(read).equals(expected)
    for blob, known in moments[:: max(len(moments) // 5, 1)]:
        assert table(read[:known] + later(q, blob, parts)).equals(expected)


def later(q: ps.Query, blob: bytes, parts: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """What comes out from the snapshot on; timestamps are different, so `latest` tells what it has seen."""
    with ps.Operator.restore(q, blob, design="tuml-mc", threads=3) as op:
        for input, latest in enumerate(op.stats()["latest"]):
            rest = parts[input].slice(0 if latest is None else latest // 2 + 1)
            if rest.num_rows:
                op.add(input, rest)
        return finish(op)


@pytest.mark.parametrize("design", DESIGNS)
def test_before_the_first_tuple_and_after_the_last_row(design):
    q = query(design)
    with ps.Operator(q, INPUTS, SCHEMA, design=design) as op:
        with ps.Operator.restore(q, op.snapshot(), design=design) as other:
            assert other.stats()["latest"] == [None] * INPUTS
            feed(other, tuples(), 9)
            expected = table(finish(other))
        feed(op, tuples(), 40)
        assert table(finish(op)).equals(expected)
        with ps.Operator.restore(q, op.snapshot(), design=design) as other:
            assert list(other) == []
            assert other.stats()["rows_out"] == expected.num_rows


def test_an_operator_that_failed_or_ended_has_no_snapshot():
    q = ps.Query(ps.Window(10), None, {"total": ps.sum("v")})
    op = ps.Operator(q, 1, pa.schema([("ts", pa.int64()), ("v", pa.int64())]))
    op.add(0, {"ts": [1, 11, 12], "v": [1, 2**62, 2**62]})
    op.close(0)
    with pytest.raises(ps.SumOverflowError):
        for _ in patience():
            op.snapshot()
    assert [row for b in op.poll() for row in b.to_pylist()] == [{"ts": 0, "total": 1}]  # what came before stays
    with pytest.raises(ps.SumOverflowError):
        op.poll()
    op.end()
    with pytest.raises(ps.ClosedError):
        op.snapshot()


#: Written by the first version, with pending tuples, an open window with a wide sum, and two rows not read yet.
VERSION_1 = (
    b"c-p;H&ubGw6n?u&+7NOGv`P;}mp%26!)_H751K#0i%==0ZqrR0ve{j;yTnopy?78jcvZYs5Il&tUe%N6LA>-(M7)V!M3A1W?@eaf"
    b"?K9gX7CJDQ{oZ@?e$6+Na4m{EuG7{4;9CjAc=Ti8rx(6@_dEK0f9u1UH=mZCUA8~|G2edue)IYEwFjEsvs*XsByMNTylSkQ-KM`B"
    b"bn$cEwyK70EmRFNju6u?ez#n*n>Sk~X`Gdnj=SQ-E?La4o4(U_$<`;+M&j4wX5f>c9wdHD!g}B(Z4&v3=OON{x*hirHk^7Kh*YE?"
    b"UJI3aqiP&RaPOiej}j&ABQeZ|d4dog_JIXxH~pglTB8P7zz}BB50hB7%%kqb_-)(d*$X0f8BxRWBA50ip(na)iQEpXFIdM~+Z%K|"
    b"ouDhgfo8EuSznT>#ULS9vm0M}Jb-;1JGfQ^DnS{>pa4Y>eA4oW0Z|cu^YRxUhcm=^QQ{Zq1C4X!V@k@zcAO3LSHw9cBs%Q$YzzHt"
    b"TLR~WtOAo_-?+%2BJ<O9TBlR{h|h6EIhJvbiyX<YCiPcRby_3VNn=hwS)V+dmc%c6wNLQc3pk?~j~Ulpij!eS{_rvm)g$9y|D71J"
    b"`$Y8>@en2@F2h+_VOe;GTwdgI8`LNvE{kfZ2Tx^hG&meZ$R5QE8-*)!os#RATn%P#Fndd`)s#(+<po3F62mG!EWv(SUd`AKn@p}="
    b"UUZ=PE%MK$_^FM?FFM!v^ytfTsY>}=>W)n^{@@D-o2b8+y0g=aE8?ML_g3C<o%^Kvd^-PLJ%UfCdB>@5t3&WM%;4>=<c^*?y7Do+"
    b"t*}*NJXL#VnBHQ3Eas=i^fjix!Tim!c&mMQSYUNQ3Tq6*0IX&7Lu20xI|KGVc}!#b`k?*lp3LZ{^M5tl|Nm;DpRN5LT-M~-ANLOL"
    b"!C*euGWh(k51+?J;4@^rzccJS2k}|GH^cIa-@S7gJX7|LB*?8_d#}&?TS{G1eEAFSL`dW"
)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_snapshot_of_the_first_version_is_still_read(design):
    q = ps.Query(ps.Window(10), "k", {"n": ps.count(), "exact": ps.sum("f"), "low": ps.min("k")})
    with ps.Operator.restore(q, zlib.decompress(base64.b85decode(VERSION_1)), design=design) as op:
        stats = op.stats()
        assert (stats["tuples_in"], stats["latest"], stats["position"]) == (6, [11, 30], (11, 0))
        rows = [tuple(row.values()) for b in finish(op) for row in b.to_pylist()]
    assert rows == [
        (0, "a", 2, 0.0, "a"),
        (0, None, 1, 0.1, None),
        (10, "a", 1, 1e-300, "a"),
        (10, "b\0", 1, 0.5, "b\0"),
        (30, "a", 1, 2.0, "a"),
    ]


# ---- user objects ----


def test_user_objects_need_bytes_both_ways():
    class Plain:
        def process_tuple(self, row): ...

        def produce_out_tuple(self): ...

    class HalfWay(Plain):
        to_bytes = staticmethod(lambda: "text")

    class Wrong(HalfWay):
        from_bytes = classmethod(lambda cls, _saved: cls())

    for factory, message in (
        (Plain, r"mine = udf\(Plain\): a snapshot needs .*Plain.to_bytes\(\)"),
        (HalfWay, r"mine = udf\(HalfWay\): a snapshot needs .*HalfWay.from_bytes\(bytes\)"),
        (Wrong, r"mine: .*Wrong.to_bytes\(\) gave str, not bytes"),
    ):
        with half_way(ps.Query(ps.Window(7), "k", {"mine": ps.udf(factory)})) as op:
            with pytest.raises(TypeError, match=message):
                op.snapshot()
            assert finish(op)  # it goes on


def test_from_bytes_that_raises():
    class Broken(Collect):
        from_bytes = classmethod(lambda cls, _saved: cls(1 // 0))

    q = ps.Query(ps.Window(7), "k", {"mine": ps.udf(Broken)})
    with half_way(q) as op:
        blob = op.snapshot()
    with pytest.raises(ps.SnapshotError, match="mine: from_bytes raised ZeroDivisionError"):
        ps.Operator.restore(q, blob)


# ---- bytes that are wrong ----


def test_another_query_is_refused():
    with half_way(query()) as op:
        blob = op.snapshot()
    other = ps.Query(ps.Window(7, 3), "k", AGGREGATES | {"n": ps.sum("i")})
    with pytest.raises(ps.SnapshotError, match=r"the snapshot is of another query: aggregates was .*count.*sum"):
        ps.Operator.restore(other, blob)
    with pytest.raises(ps.SnapshotError, match=r"another query: window was \[7, 3\] and is \[7, 4\]"):
        ps.Operator.restore(ps.Query(ps.Window(7, 4), "k", AGGREGATES), blob)
    with pytest.raises(ps.SnapshotError, match="do not fit the query: column 'x' is missing"):
        ps.Operator.restore(ps.Query(ps.Window(7, 3), "x", AGGREGATES), blob)
    with pytest.raises(ValueError, match="'wiml' does not keep"):
        ps.Operator.restore(query(), blob, design="wiml")
    with pytest.raises(ValueError, match="max_pending must be"):
        ps.Operator.restore(query(), blob, max_pending=0)


def test_bytes_that_are_no_snapshot():
    with half_way(query()) as op:
        blob = op.snapshot()
    with pytest.raises(TypeError, match="a snapshot is bytes, not str"):
        ps.Operator.restore(query(), "text")
    for wrong in (b"", b"x", MAGIC, blob[:-1], blob + b"x", blob[: _HEAD.size], b"PK" + blob[2:]):
        with pytest.raises(ps.SnapshotError):
            ps.Operator.restore(query(), wrong)
    newer = bytearray(blob)
    newer[8] = VERSION + 1
    with pytest.raises(ps.SnapshotError, match=f"has version {VERSION + 1}; .* reads versions up to {VERSION}"):
        ps.Operator.restore(query(), bytes(newer))


def test_every_flipped_bit_and_every_cut_is_noticed():
    q = query()
    with half_way(q) as op:
        blob = op.snapshot()
    rng = random.Random(1)
    for _ in range(300):
        at = rng.randrange(len(blob))
        flipped = bytearray(blob)
        flipped[at] ^= 1 << rng.randrange(8)
        for wrong in (bytes(flipped), blob[:at]):
            with pytest.raises(ps.SnapshotError):
                ps.Operator.restore(q, wrong)
    record("snapshot with a flipped bit, or cut off", tried=600, survived=600, lost=0, where="test_snapshot.py")


def resealed(rest: bytes) -> bytes:
    return _HEAD.pack(MAGIC, VERSION, len(rest), hashlib.sha256(rest).digest()) + rest


def test_parts_that_are_missing_are_noticed():
    """With a right checksum, whichever part is the last one, or the first that is half."""
    q = query()
    with half_way(q) as op:
        rest = op.snapshot()[_HEAD.size :]
    ends = [0]
    while ends[-1] < len(rest):
        ends.append(ends[-1] + _PART.size + _PART.unpack_from(rest, ends[-1])[0])
    assert len(ends) > 6
    for end in ends[:-1]:
        for cut in (end, end + 1, end + _PART.size):
            with pytest.raises(ps.SnapshotError, match="the snapshot is damaged: "):
                ps.Operator.restore(q, resealed(rest[:cut]))


def test_finished_rows_have_the_columns_of_the_others():
    """One that says it has no nulls could not stand in a table with the rows that follow."""
    q = ps.Query(ps.Window(5), None, {"n": ps.count()})
    with ps.Operator(q, 1, [("ts", "int64")]) as op:
        op.add(0, {"ts": [1, 6, 11]})
        assert op.read(timeout=60)
        op.add(0, {"ts": [16]})
        while not (saved := from_bytes(op.snapshot())).rows:
            pass
    assert ps.Operator.restore(q, to_bytes(saved)).end(discard=True) is None
    strict = pa.schema([f.with_nullable(f.name != "n") for f in saved.rows[0].schema])
    saved.rows = [pa.RecordBatch.from_arrays(batch.columns, schema=strict) for batch in saved.rows]
    with pytest.raises(ps.SnapshotError, match="its rows are not rows of the query"):
        ps.Operator.restore(q, to_bytes(saved))


def harmless(q: ps.Query, blob: bytes, design: str) -> bool:
    """Refused with a SnapshotError, or an operator that runs to its end, if need be with an error. True: refused."""
    try:
        op = ps.Operator.restore(q, blob, design=design, threads=2)
    except ps.SnapshotError:
        return True
    with op:
        try:
            feed(op, [t.slice(30) for t in tuples()], 10)
            finish(op)
        except (ps.PystreamError, ValueError, IndexError, KeyError):  # from_bytes of a changed object, a changed schema
            pass
    return False


@pytest.mark.parametrize("changes", [200, pytest.param(10_000, marks=pytest.mark.deep)])
@pytest.mark.parametrize(("before", "after"), [("mq", "tuml-mc"), ("sliced", "sliced"), ("sliced", "mq")])
def test_bytes_with_a_right_checksum_do_no_harm(before, after, changes, nothing_left):
    """A hostile writer: any change of the contents, the checksum made right again."""
    q = query(before, after)
    with half_way(q, before) as op:
        rest = op.snapshot()[_HEAD.size :]
    assert not harmless(q, resealed(rest), after)
    rng = random.Random(changes)
    refused = 0
    for _ in range(changes):
        wrong = bytearray(rest)
        for _ in range(rng.choice([1, 1, 1, 5])):
            at = rng.randrange(len(wrong))
            kind = rng.randrange(4)
            if kind == 0:
                wrong[at] ^= 1 << rng.randrange(8)
            elif kind == 1:
                wrong[at : at + 8] = struct.pack("<q", rng.choice([-1, 0, 1, 2**62, 2**63 - 1, -(2**63)]))
            elif kind == 2:
                del wrong[at : at + rng.randrange(1, 40)]
            else:
                wrong[at:at] = rng.randbytes(rng.randrange(1, 40))
        refused += harmless(q, resealed(bytes(wrong)), after)
    assert refused > changes // 4
    record("snapshot forged, its checksum right", tried=changes, survived=changes, lost=0, where="test_snapshot.py")


def changed(blob: bytes, part: str, name: str, change) -> bytes:
    """The snapshot with one column of its windows or slices changed."""
    parts = from_bytes(blob)
    states = getattr(parts, part)
    at = states.schema.get_field_index(name)
    column = pa.array(change(states.column(name).to_pylist()), states.schema.field(at).type)
    setattr(parts, part, states.set_column(at, name, column))
    return to_bytes(parts)


@pytest.mark.parametrize(
    ("column", "change"),
    [
        ("start", lambda starts: [starts[0] // 3 * 3 + 2, *starts[1:]]),  # neither the start nor the end of a window
        ("start", lambda starts: [-3, *starts[1:]]),
        ("start", lambda starts: starts[::-1]),
        ("start", lambda starts: [None, *starts[1:]]),
        ("key", lambda keys: [keys[0][:-1], *keys[1:]]),
        ("key", lambda keys: [keys[0] + b"x", *keys[1:]]),
        ("key", lambda keys: [b"\2" + keys[0][1:], *keys[1:]]),
        ("key", lambda keys: [b"\0a\0b\0\0", *keys[1:]]),
        ("key", lambda keys: [b"", *keys[1:]]),
        ("key", lambda keys: [keys[0]] * len(keys)),  # a window twice
        ("state", lambda states: [states[0][:-1], *states[1:]]),
        ("state", lambda states: [states[0] + b"x", *states[1:]]),
        ("state", lambda states: [b"", *states[1:]]),
        ("state", lambda states: [b"\xff" * 8 + states[0][8:], *states[1:]]),  # a negative count
    ],
)
@pytest.mark.parametrize(
    ("part", "design"), [*itertools.product(["windows"], DESIGNS), ("slices", "sliced"), ("slices", "mq")]
)
def test_windows_that_cannot_be(part, design, column, change, nothing_left):
    before = "mq" if part == "windows" else "sliced"
    q = query(before, design)
    with half_way(q, before) as op:
        blob = op.snapshot()
    assert changed(blob, part, column, list) == blob
    message = rf"damaged: ({part[:-1]} \d+ is wrong|its {part} have holes)"
    with pytest.raises(ps.SnapshotError, match=message):
        ps.Operator.restore(q, changed(blob, part, column, change), design=design, threads=2)


@pytest.mark.parametrize("design", ["sliced", "mq"])
@pytest.mark.parametrize("start_next", [1, -3, 3000, 2**63 - 1])
def test_slices_before_the_first_window_that_is_not_out(design, start_next, nothing_left):
    q = query("sliced")
    with half_way(q, "sliced") as op:
        parts = from_bytes(op.snapshot())
    parts.start_next = start_next
    with pytest.raises(ps.SnapshotError, match="the snapshot is damaged"):
        ps.Operator.restore(q, to_bytes(parts), design=design)


def test_slices_behind_the_tuples():
    q = query("sliced")
    with half_way(q, "sliced") as op:
        blob = op.snapshot()
    for later, message in ((3000, "a slice is later than an input"), (0, "a slice is later than a tuple")):
        parts = from_bytes(changed(blob, "slices", "start", lambda starts, by=later: [s + by for s in starts]))
        if not later:
            one = next(one for one in parts.inputs if one.tuples)
            early = pa.array([0] * one.tuples[0].num_rows)
            one.tuples[0] = one.tuples[0].set_column(0, one.tuples[0].schema.field(0), early)
        with pytest.raises(ps.SnapshotError, match=message):
            ps.Operator.restore(q, to_bytes(parts))


def test_tuples_that_cannot_be():
    q = ps.Query(ps.Window(7, 3), "k", {"n": ps.count(where=pc.field("i") > 0)})
    with half_way(q) as op:
        blob = op.snapshot()
    for change in (
        lambda one: one.tuples.append(one.tuples[0].slice(0, 1).set_column(0, "0", pa.array([0]))),  # out of order
        lambda one: setattr(one, "latest", 0),
        lambda one: one.tuples.append(one.tuples[0].select([0, 1])),
        lambda one: one.tuples.append(
            pa.RecordBatch.from_arrays([pa.nulls(1, t) for t in one.tuples[0].schema.types], one.tuples[0].schema.names)
        ),
    ):
        parts = from_bytes(blob)
        change(next(one for one in parts.inputs if one.tuples))
        with pytest.raises(ps.SnapshotError, match="damaged"):
            ps.Operator.restore(q, to_bytes(parts))


# ---- memory that runs out ----


@pytest.mark.parametrize("design", DESIGNS)
def test_every_allocation_may_fail(design, nothing_left):
    """In snapshot and in restore: MemoryError, nothing leaks, and the first operator goes on."""
    q = query(design)
    expected = ps.aggregate(q, [t.slice(0, 20) for t in tuples()])
    with half_way(q, design) as op:
        op.snapshot()  # from now on finished rows lie in Python
        blob = failing(op.snapshot)
        restored = failing(lambda: ps.Operator.restore(q, blob, design=design, threads=2))
        with restored:
            assert table(finish(restored)).equals(expected)
        assert table(finish(op)).equals(expected)


def failing(call):
    done, n = with_failing_memory(call)
    assert n > 3
    return done


def test_a_cancel_during_a_pause_lets_no_worker_take_a_step(nothing_left):
    """Who paused may still be reading. The output thread stands in the middle of a batch, one window per tuple."""
    query = ps.Query(ps.Window(10**9), "k", {"n": ps.count()})
    schema = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
    idle = core_threads()
    for rows in (50_000, 200_000, 800_000, 3_200_000):  # until it is found half-way
        with ps.Operator(query, 1, schema, design="mq", max_pending=10**7) as op:
            op.add(0, {"ts": range(rows), "k": range(rows)})
            op.engine.handle.pause()
            windows = op.engine.handle.stats()["windows"]
            op.engine.handle.cancel()
            next(() for _ in patience() if core_threads() == idle)
            after = op.engine.handle.stats()["windows"]
            op.engine.handle.resume()
        if windows < rows:
            break
    assert windows < rows
    assert after == windows


@pytest.mark.parametrize("design", ["mq", "sliced"])
@pytest.mark.parametrize("function", [ps.min, ps.max])
def test_a_minimum_is_one_that_a_column_could_have_led_to(function, design):
    """Windows keep min and max in the order of values, in which every NaN is one: the others are refused."""
    query, schema = (
        ps.Query(ps.Window(10), None, {"x": function("f")}),
        pa.schema({"ts": pa.int64(), "f": pa.float64()}),
    )

    def restored(bits: int, n: int) -> list[float | None]:
        with ps.Operator(query, 1, schema) as op:
            op.heartbeat(0, 2)
            saved = from_bytes(op.snapshot())
        state = [[0], [b""], [struct.pack("<Qq", bits, n)]]
        types = saved.windows.schema.types
        columns = [pa.array(c, type) for c, type in zip(state, types, strict=True)]
        saved.windows = pa.record_batch(columns, schema=saved.windows.schema)
        with ps.Operator.restore(query, to_bytes(saved), design=design) as op:
            op.close(0)
            return pa.Table.from_batches(op, op.schema)["x"].to_pylist()

    for x in (1.5, -0.0, -np.inf):
        assert repr(restored(struct.unpack("<Q", struct.pack("<d", x))[0], 7)) == repr([x])
    assert np.isnan(restored(0x7FF8000000000000, 1)).all()
    assert restored(0, 0) == [None]
    for bits, n in [(0x7FF8000000000001, 1), (0xFFF8000000000000, 1), (1, 0), (0, 2**62 + 1)]:
        with pytest.raises(ps.SnapshotError, match=r"window \d is wrong"):
            restored(bits, n)
