"""What lies at the borders of blocks: rows that are wrong, and memory that was given back."""

from __future__ import annotations

import gc

import numpy as np
import pyarrow as pa
import pytest
from poison import Released
from strategies import canonical
from streams import ALL, stream

import pystream as ps
from pystream.operator import CANNOT, DESIGNS

#: Rows that csrc takes at a time, as users have it and in a build with PYSTREAM_SMALL: see SIZED.
BLOCKS = (2, 3, 32, 64, 256, 512, 1024)
LENGTHS = sorted({n for block in BLOCKS for n in (block, block + 1)} | {1, 2051})

SCHEMA = pa.schema({"ts": pa.int64(), "k": pa.int64()})
QUERY = ps.Query(ps.Window(64, 16), "k", {"n": ps.count(), "first": ps.min("ts")})

designs = pytest.mark.parametrize("design", DESIGNS)


def positions(rows: int) -> list[int]:
    """At and around every border in a batch of so many rows."""
    around = {at + d for block in BLOCKS for at in (0, block, 2 * block) for d in (-1, 0, 1)} | {rows - 1}
    return sorted(p for p in around if 0 <= p < rows)


def batch(ts: np.ndarray, bad: int | None = None) -> pa.RecordBatch:
    """Of these timestamps, the bad one null; not at the beginning of its buffers."""
    array = pa.array(np.r_[0, ts], mask=None if bad is None else np.arange(len(ts) + 1) == bad + 1)
    return pa.record_batch([array, pa.array(np.r_[0, ts % 5])], schema=SCHEMA).slice(1)


def taken(op: ps.Operator) -> list:
    return [op.stats()[name] for name in ("tuples_in", "latest")]


@designs
def test_a_batch_with_one_bad_row_is_refused_and_the_row_named(design, nothing_left):
    """Wherever it is, nothing of the batch is taken, and the operator goes on as if it had never come."""
    start, good = 100, []
    with ps.Operator(QUERY, 2, SCHEMA, design=design, threads=2) as op:
        op.close(1)
        for rows in LENGTHS:
            ts = start + np.arange(rows)
            before = taken(op)
            for bad in positions(rows):
                falls = ts.copy()
                falls[bad] = start - 2 if bad == 0 else ts[bad - 1] - 1
                if good or bad:
                    with pytest.raises(ps.DisorderError, match=f"input 0, row {bad}:") as raised:
                        op.add(0, batch(falls))
                    assert (raised.value.row, raised.value.ts) == (bad, falls[bad])
                with pytest.raises(ps.SchemaError, match=f"row {bad}:"):
                    op.add(0, batch(ts, bad))
            assert taken(op) == before
            good.append(batch(ts))
            op.add(0, good[-1])
            start += rows
        op.close(0)
        got = pa.Table.from_batches(list(op))
    assert got.equals(ps.aggregate(QUERY, [good], design="mq").cast(got.schema))


@pytest.mark.parametrize("design", ["sliced", "runs", "mq"])
def test_a_bad_row_of_an_input_that_is_read_to_its_end(design, nothing_left):
    """Batches go in pieces there; the row is counted from the beginning of the batch."""
    ts = np.arange(2051)
    for bad in positions(len(ts))[1:]:
        falls = ts.copy()
        falls[bad] -= 2
        with pytest.raises(ps.DisorderError, match=f"input 1, row {bad}:"):
            ps.aggregate(QUERY, [[batch(ts)], [batch(falls)]], design=design, max_pending=100)


@designs
@pytest.mark.parametrize("key", ["k", "s", ["s", "k"]])
def test_no_batch_is_read_after_it_was_released(design, key):
    """Batches' memory is overwritten when they are released; some are while others are still to come."""
    rng = np.random.default_rng(7)
    functions = {name: a for name, a in ALL.items() if a.function not in CANNOT.get(design, ())}
    query = ps.Query(ps.Window(12, 5), key, functions)
    inputs = [stream(rng, 400, 100, keys=4, null_keys=0.1) for _ in range(3)]
    expected = ps.aggregate(query, inputs, design="mq")
    released, early, rows = Released(), 0, []
    with ps.Operator(query, 3, inputs[0].schema, design=design, threads=2) as op:
        for start in range(0, 400, 40):
            for i, table in enumerate(inputs):
                for part in table.slice(start, 40).to_batches(max_chunksize=int(rng.integers(1, 40))):
                    op.add(i, released.batch(part))
            rows += op.poll()
            early = released.taken
        for i in range(3):
            op.close(i)
        rows += list(op)
    gc.collect()
    assert canonical(pa.Table.from_batches(rows).to_pylist()) == canonical(expected.to_pylist())
    assert early > 0
    assert released.taken == released.given
