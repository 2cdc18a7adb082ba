"""`bytes_held` is what the operator makes the process grow by, within a factor of 2, whatever it holds."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from threads import patience

import pystream as ps
from pystream._native import DESIGNS

ORDERED = ("mq", "mq-lf", "runs", "tuml-sc", "tuml-mc")

#: In a process of its own: makes an operator hold something, and prints by how much the process grew, and what it says.
PROGRAM = """
import ctypes, gc, json, os, sys, time
import numpy as np
import pyarrow as pa
import pystream as ps

pa.set_memory_pool(pa.system_memory_pool())
libc = ctypes.CDLL(None)
PAGE = os.sysconf("SC_PAGE_SIZE")

def resident():
    gc.collect()
    libc.malloc_trim(0)
    return int(open("/proc/self/statm").read().split()[1]) * PAGE

def batch(ts, keys, **columns):
    return pa.RecordBatch.from_pydict({"ts": ts, "k": keys, **columns})

def settled(op, pending=0):
    while op.stats()["pending"] > pending:
        time.sleep(0.001)

def many_keys(design):
    # One window with very many keys.
    op = ps.Operator(ps.Query(ps.Window(10**6), "k", {"n": ps.count(), "s": ps.sum("v")}), 1, SCHEMA, design)
    def grow():
        for i in range(60):
            keys = np.arange(i * 10_000, (i + 1) * 10_000) * 1_000_003
            op.add(0, batch(np.full(10_000, i), keys, v=np.ones(10_000)))
        op.heartbeat(0, 100)
        settled(op)
    return op, grow

def long_strings(design):
    # Keys and values of 500 bytes.
    schema = pa.schema([("ts", pa.int64()), ("k", pa.string()), ("v", pa.string())])
    op = ps.Operator(ps.Query(ps.Window(10**6), "k", {"m": ps.max("v")}), 1, schema, design)
    def grow():
        for i in range(60):
            names = [f"{i * 1000 + n:0500d}" for n in range(1000)]
            op.add(0, batch(np.full(1000, i), names, v=[name[::-1] for name in names]))
        op.heartbeat(0, 100)
        settled(op)
    return op, grow

def many_windows(design):
    # Each tuple is in 200 windows that stay open; in sliced, each window is a slice.
    size = 4_000_000 if design == "sliced" else 200
    op = ps.Operator(ps.Query(ps.Window(size, 1), "k", {"n": ps.count(), "s": ps.sum("v")}), 1, SCHEMA, design)
    def grow():
        for i in range(20 if design == "sliced" else 3):
            n = 50_000 if design == "sliced" else 1000
            first = i * n if design == "sliced" else 1000
            ts = np.arange(first, first + n) if design == "sliced" else np.full(n, 1000)
            keys = ts if design == "sliced" else np.arange(i * n, i * n + n)
            op.add(0, batch(ts, keys, v=np.ones(n)))
        op.heartbeat(0, 20 * 50_000 if design == "sliced" else 1001)
        settled(op)
    return op, grow

def pending(design):
    # Tuples that wait for an input that has not begun.
    query = ps.Query(ps.Window(100), "k", {"n": ps.count()})
    op = ps.Operator(query, 2, SCHEMA, design, max_pending=10**7)
    def grow():
        for i in range(150):
            ts = np.arange(i * 10_000, (i + 1) * 10_000)
            op.add(0, batch(ts, ts % 10, v=np.ones(10_000)))
    return op, grow

def unread(design):
    # Rows that nobody takes.
    query = ps.Query(ps.Window(1), "k", {f"s{i}": ps.sum("v") for i in range(8)})
    op = ps.Operator(query, 1, SCHEMA, design, max_pending=10**7)
    def grow():
        for i in range(100):
            ts = np.arange(i * 20_000, (i + 1) * 20_000)
            op.add(0, batch(ts, ts % 10, v=np.ones(20_000)))
        op.heartbeat(0, 10**9)
        settled(op)
        while op.stats()["rows_out"] < 2 * 10**6:
            time.sleep(0.001)
    return op, grow

def views(design):
    # A few rows of each of many batches, which are held as a whole; then very many rows of the same one.
    query = ps.Query(ps.Window(100), "k", {"n": ps.count()})
    op = ps.Operator(query, 2, SCHEMA, design, max_pending=10**7)
    def grow():
        for i in range(40):
            ts = np.arange(i * 100_000, (i + 1) * 100_000)
            op.add(0, batch(ts, ts % 10, v=np.ones(100_000)).slice(20_000, 100))
        ts = np.arange(10**7, 10**7 + 400_000)
        whole = batch(ts, ts % 10, v=np.ones(400_000))
        for i in range(100):
            op.add(0, whole.slice(i * 4000, 2000))
    return op, grow

def user_objects(design):
    # Python's objects, with the rows that they remember.
    class Rows:
        def __init__(self):
            self.rows = []
        def process_tuple(self, row):
            self.rows.append((row["ts"], row["v"], f"{row['k']:0500d}"))
        def produce_out_tuple(self):
            return len(self.rows)
    op = ps.Operator(ps.Query(ps.Window(10**6), "k", {"u": ps.udf(Rows, pa.int64())}), 1, SCHEMA, design)
    def grow():
        for i in range(10):
            op.add(0, batch(np.full(4000, i), np.arange(4000), v=np.ones(4000)))
            op.poll()
        op.heartbeat(0, 100)
        settled(op)
        op.poll()
    return op, grow

def wide_sums(design):
    # Sums of floats that do not fit their first place.
    op = ps.Operator(ps.Query(ps.Window(10**6), "k", {"s": ps.sum("v")}), 1, SCHEMA, design)
    def grow():
        for i in range(20):
            keys = np.repeat(np.arange(i * 5000, (i + 1) * 5000), 3)
            op.add(0, batch(np.full(15_000, i), keys, v=np.tile([1e300, 1.0, 1e-300], 5000)))
        op.heartbeat(0, 100)
        settled(op)
    return op, grow

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64())])
WAYS = [many_keys, long_strings, many_windows, pending, views, unread, wide_sums]
if sys.argv[1] not in ("sliced", "wiml"):
    WAYS.append(user_objects)
found = {}
for way in WAYS:
    op, grow = way(sys.argv[1])
    before, said = resident(), op.stats()["bytes_held"]
    grow()
    found[way.__name__] = resident() - before, op.stats()["bytes_held"] - said
    op.end()
    del op, grow
print(json.dumps(found))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="asks Linux how much memory a process has")
@pytest.mark.parametrize(
    "design", [pytest.param(d, marks=[] if d in ("mq", "sliced") else pytest.mark.full) for d in DESIGNS]
)
def test_what_is_held_is_what_the_process_grew_by(design):
    done = subprocess.run([sys.executable, "-c", PROGRAM, design], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    wrong = {way: (grew, said) for way, (grew, said) in found.items() if not grew / 2 <= said <= 2 * grew}
    assert not wrong, found
    assert all(grew > 15 << 20 for grew, _ in found.values()), found


QUERY = ps.Query(ps.Window(1), "k", {"n": ps.count()})
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])


@pytest.mark.parametrize("design", DESIGNS)
def test_what_was_handed_over_is_not_held(design):
    """Rows that were read, and snapshots, are the caller's; and so are the views that have been passed."""
    with ps.Operator(QUERY, 1, SCHEMA, design) as op:
        held, kept = [], []
        for begin in range(0, 200_000, 20_000):
            ts = np.arange(begin, begin + 20_000)
            whole = pa.RecordBatch.from_pydict({"ts": ts, "k": ts % 7})
            for at in range(0, 20_000, 5000):
                op.add(0, whole.slice(at, 5000))
            op.heartbeat(0, begin + 20_000)
            for _ in patience():
                kept += op.poll()
                if op.stats()["rows_out"] >= begin + 20_000 and op.stats()["pending"] == 0:
                    break
            kept += [*op.poll(), op.snapshot()]
            held.append(op.stats()["bytes_held"])
        assert max(held[5:]) <= max(held[:5]) + 1_000_000  # what is kept grows by 2.5 MB in the second half
        assert min(held) >= 0
