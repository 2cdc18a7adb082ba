"""How many mutexes the designs take, counted in the release build: some per call, none per tuple.

The table "What is lock-free" in csrc/README.md says which; this is where it is shown.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

NATIVE = Path(__file__).parent / "native"
BATCHES, INPUTS = 8, 2

PROGRAM = """
import ctypes, json, sys
import numpy as np
import pyarrow as pa
import pystream as ps
from pystream import _core

counter = ctypes.CDLL(sys.argv[1])
counter.locks_taken.restype = ctypes.c_uint64
design, rows, batches, inputs = sys.argv[2], *map(int, sys.argv[3:])
inside = _core.ffi.addressof(_core.lib, "ps_operator_add")
counter.locks_count_in(ctypes.c_void_p(int(_core.ffi.cast("uintptr_t", inside))))

def taken():
    return [counter.locks_taken(role) for role in range(3)]

query = ps.Query(ps.Window(100, 50), key="k", aggregates={"n": ps.count(), "s": ps.sum("x")})
i = np.arange(rows)
batch = lambda n: pa.record_batch({"ts": 100 * n + 99 * i // rows, "k": i % 7, "x": 0.5 * i})
with ps.Operator(query, inputs, batch(0).schema, design=design, threads=1) as op:
    for n in range(batches):
        for which in range(inputs):
            op.add(which, batch(n))
    callers = taken()[0]
    for which in range(inputs):
        op.close(which)
    out = sum(b.num_rows for b in op)
print(json.dumps({"add": callers, "output": taken()[1], "update": taken()[2], "rows": out}))
"""


@pytest.fixture(scope="module")
def locks(tmp_path_factory):
    """Runs a design on batches of so many rows and gives how many mutexes its threads took."""
    cc = shutil.which("cc") or shutil.which("gcc")
    if sys.platform != "linux" or cc is None:
        pytest.skip("needs a C compiler and LD_PRELOAD")
    library = tmp_path_factory.mktemp("locks") / "count_locks.so"
    command = [cc, "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", NATIVE / "count_locks.c", "-o", library, "-ldl"]
    subprocess.run(command, check=True)

    def of(design: str, rows: int) -> dict[str, int]:
        arguments = [str(a) for a in (library, design, rows, BATCHES, INPUTS)]
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, *arguments],
            env={**os.environ, "LD_PRELOAD": str(library)},
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    return of


@pytest.mark.parametrize("design", ["tuml-sc", "tuml-mc", "wiml"])
def test_no_mutex_is_taken_per_tuple(locks, design):
    """The caller's thread rings at most once in 256 tuples, the output thread settles as often."""
    rows = 20_000
    taken, tuples = locks(design, rows), rows * BATCHES * INPUTS
    assert taken["rows"] > 0
    assert 0 < taken["add"] < tuples / 100
    assert 0 < taken["output"] < tuples / 20
    assert taken["update"] < tuples / 50


def test_the_counter_sees_a_mutex_per_tuple(locks):
    """MQ has one around each queue, on both sides of it."""
    rows = 2_000
    taken, tuples = locks("mq", rows), rows * BATCHES * INPUTS
    assert taken["add"] >= tuples / 2 or taken["output"] >= tuples
