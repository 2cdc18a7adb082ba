"""A thousand million tuples: memory stays flat, and every row is right.

Time moves on, the rest repeats itself: the tuples of a period and so, shifted in time, the rows. Each row that comes
out is compared with the one at the same place in its period.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from faults import record
from memory import resident_bytes

import pystream as ps
from pystream.operator import DESIGNS

INPUTS, KEYS, SIZE, ADVANCE = 4, 50, 30, 3
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int32())])
QUERY = ps.Query(ps.Window(SIZE, ADVANCE), "k", {"n": ps.count()})

#: Ticks after which all repeats, tuples per input in them, and tuples that an input may hold.
PERIOD, TUPLES, PENDING_MAX = 300, 1 << 14, 1 << 16

#: What the process may grow by once it has run in: pending tuples come and go, as nodes of 100 bytes in some designs.
GROWTH_MAX = 96 << 20

#: Tuples by default and with --deep; the paper's designs take a while.
ROWS = {"sliced": (20_000_000, 1_000_000_000), "runs": (4_000_000, 100_000_000)}


def period() -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(7)
    return [
        (np.sort(rng.integers(0, PERIOD, TUPLES)), rng.integers(0, KEYS, TUPLES).astype(np.int32))
        for _ in range(INPUTS)
    ]


def rows_of(inputs, *, last: bool) -> np.ndarray:
    """The count of each (window, key) that starts in a period, the last or an earlier one, by NumPy alone."""
    ts = np.concatenate([t + shift for shift in ((0,) if last else (0, PERIOD)) for t, _ in inputs])
    keys = np.concatenate([k for _, k in inputs] * (len(ts) // (TUPLES * INPUTS)))
    counts = np.zeros((PERIOD // ADVANCE, KEYS), np.int64)
    for window in range(PERIOD // ADVANCE):
        inside = (ts >= window * ADVANCE) & (ts < window * ADVANCE + SIZE)
        counts[window] = np.bincount(keys[inside], minlength=KEYS)
    assert counts.min() > 0  # no window is without a row
    return counts.ravel()


class Rows:
    """Checks the rows as they come."""

    def __init__(self, inputs, periods: int) -> None:
        self.seen = 0
        self.usual, self.last = rows_of(inputs, last=False), rows_of(inputs, last=True)
        self.end = periods * len(self.usual)

    def check(self, batch: pa.RecordBatch) -> None:
        place = np.arange(self.seen, self.seen + batch.num_rows)
        in_period = place % len(self.usual)
        counts = np.where(place < self.end - len(self.last), self.usual[in_period], self.last[in_period])
        assert np.array_equal(batch["ts"].to_numpy(), place // KEYS * ADVANCE)
        assert np.array_equal(batch["k"].to_numpy(), place % KEYS)
        assert np.array_equal(batch["n"].to_numpy(), counts)
        self.seen += batch.num_rows


CASES = [(d, ROWS.get(d, (1_000_000, 0))[0]) for d in DESIGNS]
DEEP = [pytest.param(d, ROWS.get(d, (0, 20_000_000))[1], marks=pytest.mark.deep) for d in DESIGNS]


@pytest.mark.parametrize(("design", "tuples"), [*CASES, *DEEP])
def test_memory_is_flat_and_every_row_is_right(design, tuples, nothing_left):
    inputs, held = period(), []
    periods = -(-tuples // (TUPLES * INPUTS))
    rows = Rows(inputs, periods)
    with ps.Operator(QUERY, INPUTS, SCHEMA, design=design, threads=2, max_pending=PENDING_MAX) as op:
        for n in range(periods):
            for i, (ts, keys) in enumerate(inputs):
                op.add(i, {"ts": ts + n * PERIOD, "k": keys}, timeout=300)
            for batch in op.poll():
                rows.check(batch)
            held.append(resident_bytes())
        assert op.positions() == [periods * TUPLES] * INPUTS
        for i in range(INPUTS):
            op.close(i)
        for batch in op:
            rows.check(batch)
    assert rows.seen == rows.end
    run_in = held[len(held) // 4 :]
    assert max(run_in) - run_in[0] < GROWTH_MAX
    record("tuples in a run with flat memory", tried=tuples, survived=tuples, lost=0, where="test_long_runs.py")
