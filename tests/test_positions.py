"""`Operator.positions`: where a feeder goes on, now and after a restore."""

from __future__ import annotations

import base64
import threading
import zlib

import numpy as np
import pyarrow as pa
import pytest
from strategies import Collect
from test_snapshot import VERSION_1
from threads import patience

import pystream as ps
from pystream._engine.snapshot import from_bytes, to_bytes
from pystream.operator import DESIGNS

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
COUNT = ps.Query(ps.Window(10, 4), "k", {"n": ps.count()})
ROWS = [700, 0, 311]


def tables() -> list[pa.Table]:
    rng = np.random.default_rng(3)
    return [pa.table({"ts": np.sort(rng.integers(0, 400, n)), "k": rng.integers(0, 5, n)}) for n in ROWS]


def go_on(op: ps.Operator, inputs: list[pa.Table], step: int) -> list[pa.RecordBatch]:
    """Feed the rest of every input from where it is, a few rows at a time in turns, and read to the end."""
    while any(at < len(t) for at, t in zip(op.positions(), inputs, strict=True)):
        for i, at in enumerate(op.positions()):
            op.add(i, inputs[i].slice(at, step))
    for i in range(op.inputs):
        op.close(i)
    return list(op)


@pytest.mark.parametrize("design", DESIGNS)
def test_rows_taken_are_counted_per_input(design):
    with ps.Operator(COUNT, 3, SCHEMA, design=design, max_pending=10, threads=2) as op:
        assert op.positions() == [0, 0, 0]
        op.add(0, {"ts": [1, 2, 5], "k": [1, 2, 1]})
        op.add(2, {"ts": [3], "k": [1]})
        op.add(2, {"ts": [], "k": []})
        op.heartbeat(1, 2)
        assert op.positions() == [3, 0, 1]
        for wrong in ({"ts": [6, 5], "k": [1, 1]}, {"ts": [6], "k": ["x"]}):
            with pytest.raises((ps.DisorderError, ps.SchemaError)):
                op.add(0, wrong)
        with pytest.raises(ps.BackpressureError):
            op.add(0, {"ts": range(6, 17), "k": range(11)}, block=False)
        op.close(0)
        with pytest.raises(ps.ClosedError):
            op.add(0, {"ts": [6], "k": [1]})
        assert op.positions() == [3, 0, 1]
        assert sum(op.positions()) == op.stats()["tuples_in"]
    with pytest.raises(ps.ClosedError):
        op.positions()


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("after", ["sliced", "mq"])
def test_they_count_on_after_restores(design, after, nothing_left):
    """Cut off at any place, twice in a row, a feeder that knows nothing but the positions gives the whole result."""
    expected = ps.aggregate(COUNT, tables(), design="mq")
    for cut in (0, 1, 90, 311, 650):
        out: list[pa.RecordBatch] = []
        with ps.Operator(COUNT, 3, SCHEMA, design=design, threads=2) as op:
            for i, t in enumerate(tables()):
                op.add(i, t.slice(0, cut))
            out += op.poll()
            blob = op.snapshot()
            op.add(0, tables()[0].slice(cut, 5))  # after the snapshot: not in it
        with ps.Operator.restore(COUNT, blob, design=after) as op:
            assert op.positions() == [min(cut, n) for n in ROWS]
            op.add(0, tables()[0].slice(op.positions()[0], 20))
            out += op.poll()
            blob = op.snapshot()
        with ps.Operator.restore(COUNT, blob, design=design) as op:
            assert op.positions() == [min(cut + 20, 700), 0, min(cut, 311)]
            out += go_on(op, tables(), 64)
            assert op.positions() == ROWS
        assert pa.Table.from_batches(out).combine_chunks() == expected


def test_with_user_objects(nothing_left):
    query = ps.Query(ps.Window(10, 4), "k", {"order": ps.udf(Collect, type=pa.string())})
    inputs = [t.append_column("id", pa.array([f"{i}.{n}" for n in range(len(t))])) for i, t in enumerate(tables())]
    with ps.Operator(query, 3, inputs[0].schema) as op:
        for i, t in enumerate(inputs):
            op.add(i, t.slice(0, 200))
        op.heartbeat(1, 399)
        blob, out = op.snapshot(), []
    with ps.Operator.restore(query, blob) as op:
        assert op.positions() == [200, 0, 200]
        out += go_on(op, inputs, 100)
    assert pa.Table.from_batches(out).combine_chunks() == ps.aggregate(query, inputs)


@pytest.mark.parametrize("design", DESIGNS)
def test_a_snapshot_has_the_positions_of_its_own_state(design, nothing_left):
    """Taken while other threads add: each goes on to the whole result, so nothing is in it twice or not at all."""
    whole = ps.aggregate(COUNT, tables(), design="mq")
    read: list[pa.RecordBatch] = []
    with ps.Operator(COUNT, 3, SCHEMA, design=design, threads=2, max_pending=50) as op:

        def add(i: int) -> None:
            for start in range(0, ROWS[i], 3):
                op.add(i, tables()[i].slice(start, 3))
            op.close(i)

        threads = [threading.Thread(target=add, args=(i,)) for i in range(3)]
        for t in threads:
            t.start()
        moments = []
        for _ in patience():
            moments.append((op.snapshot(), list(read)))
            read += op.poll()
            if not any(t.is_alive() for t in threads):
                break
        for t in threads:
            t.join()
        assert pa.Table.from_batches(read + list(op)).combine_chunks() == whole
    for blob, before in moments[:: max(len(moments) // 4, 1)]:
        with ps.Operator.restore(COUNT, blob, design="runs") as op:
            assert pa.Table.from_batches(before + rest(op)).combine_chunks() == whole


def rest(op: ps.Operator) -> list[pa.RecordBatch]:
    """As go_on, with inputs that the snapshot has closed."""
    for i, at in enumerate(op.positions()):
        if at < ROWS[i]:
            op.add(i, tables()[i].slice(at))
        op.close(i)
    return list(op)


# ---- bytes of other versions, and wrong ones ----

#: Written by the second version: one input, three rows taken, one of them pending.
VERSION_2 = (
    b"c-rMuy^9l35T8x<a_f;|!9#*v5f+3)QtYBd5DSZ|tOP-eaKt6|5<@n-arZ4T#0CF>gDWj8EU)vLs|B&TR)s6B5evo2e?WBR?b~GC+f6("
    b"oHV(XxnfIHIH#5v=5^$f{!x8{I(m>FwZ`W_1oV;)B96vZa{rvXh{+myCuSE~P+<zS&^Tv;RbtT44jVB@VC&sP%)EM{OJ#UQHmSr~Tmbu"
    b"%g8$3XscDxT5;abMPpclK>^I6a4j1aA<;o3t+SeKyP(CzTP=aQh~g)S#y$8*9ViQLd}kRLy0KAW>$yTd&ZiWKn4D0z-{BNX)AQOKn`hd"
    b"gt<TNasiynyW?*R`F1k#0D0L}X?}!3Ny+dD~@ANdrG;_}-Xatr@i4r^s%|r?wXg+tE>+CisbTh^H>N4X8o|)<DA>lA<CH$WiiDxdTu=c"
    b"I5p7>Laj3`kPWFRB;V(y%X=C+z~!D(MAQ<g;ibpjCHqCx@4aR<hP1z9c1Z+jb<ut^MY{`HA{2-(+ldCaXGk5$sfgkzf3l2DIaUNurQqA"
    b"c}9K;aAXgA4|!F{7UidY-oDQvKS#;`G$pPHQ5CMpA6A8RD61lt1W!4r;fpGB@KWYRfjMbVOj-dZ;dOb|<atS++Zp_J2H(uFTh7D<f52~"
    b"K_{2XvpZ8o|+)65+Y2g3RKk!@sTs_x6Td6w1EDtd2p#$l2QQs`1WqnnI({pT<VRcIS;JdO~A5iXZO8#)c40Un6NX^iHJ#XoMUt#$isTI"
    b"tTXE}4EvO>L!>Z|{yIgyo@GIjq2aiH!q"
)


def test_an_older_snapshot_knows_the_position_of_a_single_input():
    with ps.Operator.restore(COUNT_2, unpacked(VERSION_2)) as op:
        op.add(0, {"ts": [12], "k": [2]})
        assert op.positions() == [4]
        blob = op.snapshot()
    with ps.Operator.restore(COUNT_2, blob) as op:
        assert op.positions() == [4]


def test_an_older_snapshot_does_not_know_those_of_several():
    query = ps.Query(ps.Window(10), "k", {"n": ps.count(), "exact": ps.sum("f"), "low": ps.min("k")})
    with ps.Operator.restore(query, unpacked(VERSION_1)) as op:
        with pytest.raises(ps.PystreamError, match="a version without positions"):
            op.positions()
        blob = op.snapshot()
    with ps.Operator.restore(query, blob) as op, pytest.raises(ps.PystreamError, match="a version without positions"):
        op.positions()


COUNT_2 = ps.Query(ps.Window(10), "k", {"n": ps.count()})


def unpacked(text: bytes) -> bytes:
    return zlib.decompress(base64.b85decode(text))


def test_positions_that_cannot_be():
    with ps.Operator(COUNT, 2, SCHEMA) as op:
        op.add(0, {"ts": [1, 2, 5], "k": [1, 2, 1]})
        blob = op.snapshot()
    for positions, message in (
        ([2, 1], "more tuples than it has taken"),
        ([4, 0], "do not add up"),
        ([-1, 4], "not a number"),
        (["3", 0], "not a number"),
    ):
        parts = from_bytes(blob)
        for one, position in zip(parts.inputs, positions, strict=True):
            one.position = position
        with pytest.raises(ps.SnapshotError, match=message):
            ps.Operator.restore(COUNT, to_bytes(parts))
