"""Small batches are copied behind each other: nobody can tell, whatever comes between them."""

from __future__ import annotations

import itertools

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps

SCHEMA = pa.schema(
    [("ts", pa.int64()), ("k", pa.int32()), ("f", pa.float64()), ("i", pa.int16()), ("yes", pa.bool_())],
)
QUERY = ps.Query(
    ps.Window(9, 4),
    "k",
    {
        "n": ps.count(),
        "yes": ps.count(where=pc.field("yes")),
        "sum": ps.sum("f"),
        "least": ps.min("i", where=pc.field("yes")),
        "first": ps.first("f"),
        "last": ps.last("i"),
    },
)
INPUTS = 3


def tuples(rng: np.random.Generator, rows: int, nulls: float) -> pa.RecordBatch:
    """Batches are cut from it: they have offsets, bits that begin within a byte, and here and there a null."""
    columns = {
        "ts": np.sort(rng.integers(0, rows // 4, rows)),
        "k": rng.integers(0, 5, rows).astype(np.int32),
        "f": pa.array(rng.normal(0, 1, rows), mask=rng.random(rows) < nulls),
        "i": pa.array(rng.integers(-99, 99, rows).astype(np.int16), mask=rng.random(rows) < nulls),
        "yes": pa.array(rng.random(rows) < 0.5),
    }
    return pa.record_batch(columns, schema=SCHEMA)


def cuts(rng: np.random.Generator, rows: int, sizes: list[int]) -> list[tuple[int, int]]:
    edges = [0]
    while edges[-1] < rows:
        edges.append(min(rows, edges[-1] + int(rng.choice(sizes))))
    return list(itertools.pairwise(edges))


def feed(op: ps.Operator, batches: list[list[pa.RecordBatch]]) -> None:
    for turn in range(max(map(len, batches))):
        for input in range(INPUTS):
            if turn < len(batches[input]):
                op.add(input, batches[input][turn])


def rest(op: ps.Operator) -> list[pa.RecordBatch]:
    for input in range(INPUTS):
        op.close(input)
    return list(op)


@pytest.mark.parametrize("nulls", [0.0, 0.02])
@pytest.mark.parametrize("sizes", [[1], [1, 2, 3], [1, 31, 32, 33, 200], [1, 1, 1, 1, 300]])
def test_whatever_the_batches(sizes, nulls):
    rng = np.random.default_rng(len(sizes))
    whole = [tuples(rng, 700, nulls) for _ in range(INPUTS)]
    expected = ps.aggregate(QUERY, whole, design="mq")
    cut = [[b.slice(i, j - i) for i, j in cuts(rng, len(b), sizes)] for b in whole]
    with ps.Operator(QUERY, INPUTS, SCHEMA, design="sliced") as op:
        feed(op, cut)
        assert pa.Table.from_batches(rest(op), expected.schema).equals(expected)


@pytest.mark.parametrize("then", ["sliced", "runs"])
def test_a_snapshot_has_what_was_gathered(then):
    """Of one input much is held: the others are behind."""
    rng = np.random.default_rng(1)
    whole = [tuples(rng, 600, 0.0) for _ in range(INPUTS)]
    expected = ps.aggregate(QUERY, whole, design="mq")
    cut = [[b.slice(i, j - i) for i, j in cuts(rng, len(b), [1, 2, 40])] for b in whole]
    early = [batches[: len(batches) * share // 4] for batches, share in zip(cut, (3, 1, 2), strict=True)]
    with ps.Operator(QUERY, INPUTS, SCHEMA, design="sliced") as op:
        feed(op, early)
        blob = op.snapshot()
    with ps.Operator.restore(QUERY, blob, design=then) as op:
        feed(op, [batches[len(had) :] for batches, had in zip(cut, early, strict=True)])
        got = pa.Table.from_batches(rest(op), expected.schema)
    assert got.equals(expected)


def test_a_copy_counts_as_held():
    """max_pending bounds single tuples too, and what was refused can be added later."""
    one = pa.record_batch({"ts": [1], "k": [1], "f": [1.0], "i": [1], "yes": [True]}, schema=SCHEMA)
    with ps.Operator(QUERY, 2, SCHEMA, design="sliced", max_pending=5) as op:
        for _ in range(5):
            op.add(0, one, block=False)
        with pytest.raises(ps.BackpressureError):
            op.add(0, one, block=False)
        with pytest.raises(ps.DisorderError):
            op.add(0, one.set_column(0, "ts", pa.array([0])))
        op.heartbeat(1, 5)
        op.add(0, one, timeout=60)
        op.close(0)
        op.close(1)
        assert sum(b["n"][0].as_py() for b in op) == 6
