"""What fuzzing (tests/fuzz) has found, each as small as it gets and through the public door."""

from __future__ import annotations

import struct

import numpy as np
import pyarrow as pa
import pytest

import pystream as ps
from pystream._engine import snapshot
from pystream.partials import Combine, Fold
from pystream.partials.packed import KEYS, PackedCombine


@pytest.mark.parametrize("slices", [[-1], [-1, -1], [-1, 0]])
def test_a_partial_of_slice_minus_one_is_refused(slices):
    """Its bits were those that stood for "no slice yet" where rows are compared with the one before."""
    query, rows = ps.Query(ps.Window(10), None, {"n": ps.count()}), pa.record_batch({"ts": [3]})
    fold = Fold(query, rows.schema)
    (partials,) = [*fold.add(rows), *fold.finish()]
    forged = pa.concat_batches([partials] * len(slices)).set_column(0, partials.schema.field(0), pa.array(slices))
    with pytest.raises(ps.PartialError, match="is where no slice of a window begins"):
        Combine(query, rows.schema).add(forged)


@pytest.mark.parametrize("odd", [1e300, None])
@pytest.mark.parametrize("keys", [10, 2000])  # the latter: folded, a slice is larger than a slab
def test_slices_that_have_to_be_folded_leave_no_memory_behind(odd, keys, nothing_left):
    """A slice is first tried as it is, in a node of its own. Where that does not do and the folded one is larger, the
    memory of the first was lost: as much as the slice, with every slice."""
    batch = pa.record_batch(
        {
            "ts": np.arange(10 * keys) // keys,
            "k": np.arange(10 * keys) % keys,
            "x": pa.array([odd, *([1.0] * (keys - 1))] * 10, pa.float64()),
        }
    )
    with ps.Operator(ps.Query(ps.Window(1), "k", {"s": ps.sum("x")}), 1, batch.schema, design="sliced") as op:
        op.add(0, batch)
        op.close(0)
        assert sum(rows.num_rows for rows in op) == 10 * keys


def restored(counts: list[int], part: str, design: str) -> pa.Table:
    """The rows of an operator that goes on from windows, or slices, with these counts."""
    query, key = ps.Query(ps.Window(10, 5), "k", {"n": ps.count()}), b"\0" + struct.pack(">Q", 2**63 + 1)
    with ps.Operator(query, 1, pa.schema({"ts": pa.int64(), "k": pa.int64()})) as op:
        op.heartbeat(0, 12)
        saved = snapshot.from_bytes(op.snapshot())
    columns = [[5, 10], [key, key], [struct.pack("<q", n) for n in counts]]
    schema = saved.slices.schema
    states = [pa.array(c, type) for c, type in zip(columns, schema.types, strict=True)]
    setattr(saved, part, pa.record_batch(states, schema=schema))
    with ps.Operator.restore(query, snapshot.to_bytes(saved), design=design) as op:
        op.close(0)
        return pa.Table.from_batches(op)


@pytest.mark.parametrize("design", ["mq", "sliced"])
def test_counts_that_no_tuples_could_have_led_to(design):
    """A window that no tuple fell into made the sliced design report that memory had ended; 2**62 and 2**62 wrapped."""
    assert restored([2, 3], "windows", design)["n"].to_pylist() == [2, 3]
    assert restored([2, 3], "slices", design)["n"].to_pylist() == [2, 5, 3]
    for counts, part in [([0, 1], "windows"), ([2, 0], "slices"), ([2**62, 2**62], "slices")]:
        with pytest.raises(ps.SnapshotError, match=r"(window|slice) \d is wrong"):
            restored(counts, part, design)


def test_a_parcel_without_the_keys_that_it_speaks_of():
    """Arrow reports the end of its bytes with an error of another kind than all others."""
    whole = PackedCombine(ps.Query(ps.Window(10), None, {"n": ps.count()}), pa.schema({"ts": pa.int64()}))
    with pytest.raises(ps.PystreamError):
        whole.take(KEYS.pack(0))
