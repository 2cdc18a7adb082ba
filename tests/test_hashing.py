"""Keys chosen to meet in one slot do not; and the seed that sees to that shows in no result.

What lookups cost is counted, not timed: tests/native/probes.c adds up how far keys lie from their slots.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from tools import run

ROOT = Path(__file__).parent.parent
CORE = [ROOT / "csrc" / name for name in ("keys/key.c", "base/hash.c", "base/memory.c", "columns/batch.c")]

#: Slots passed per key, in tables that are at most half full. By chance it is 0.5; one slot for all gives thousands.
PER_KEY = 2.0

Words = NDArray[np.uint64]
SEEDS = ["a", "b", "c"]


def with_seed(seed: str | None) -> dict[str, str]:
    """The environment of a process with this seed, or with a random one."""
    env = {name: value for name, value in os.environ.items() if name != "PYSTREAM_HASH_SEED"}
    return env if seed is None else env | {"PYSTREAM_HASH_SEED": seed}


@pytest.fixture(scope="module")
def probes(tmp_path_factory):
    """Runs the program, with these keys as its input: what it prints."""
    target = tmp_path_factory.mktemp("probes") / "probes"
    cc = shutil.which("gcc") or shutil.which("clang") or "cc"
    source = ROOT / "tests/native/probes.c"
    run(cc, "-O2", "-std=c11", "-D_GNU_SOURCE", "-I", ROOT / "csrc", source, *CORE, "-lpthread", "-o", target)

    def call(*arguments: object, keys: bytes = b"", seed: str | None = None) -> bytes:
        command = [str(target), *map(str, arguments)]
        return subprocess.run(command, input=keys, env=with_seed(seed), capture_output=True, check=True).stdout

    return call


# ---- keys that meet under a hash that everybody can compute: splitmix64's finalizer, undone ----


def word(x: int) -> np.uint64:
    return np.uint64(x & (1 << 64) - 1)


def unshift(x: Words, by: int) -> Words:
    """Undo x ^= x >> by."""
    result = x
    for _ in range(64 // by):
        result = x ^ (result >> word(by))
    return result


def unmix(x: Words) -> Words:
    """The words whose hash_mix (base.h) is x."""
    x = unshift(x, 31) * word(pow(0x94D049BB133111EB, -1, 1 << 64))
    x = unshift(x, 27) * word(pow(0xBF58476D1CE4E5B9, -1, 1 << 64))
    return unshift(x, 30)


N = 4000
EACH = np.arange(1, N + 1, dtype=np.uint64)
SIGN = word(1 << 63)
LENGTH_8, LENGTH_9 = (word(n * 0x9E3779B97F4A7C15) for n in (8, 9))


def met_in_the_table() -> Words:
    """int64 whose encoding as a key (a zero byte, 8 bytes with the highest first) has a hash of 24 zero bits."""
    first = LENGTH_9 ^ unmix(unmix(np.arange(1, 300 * N, dtype=np.uint64) << word(24)))  # if the last byte is zero
    first = first[first & word(0xFF) == 0][:N]
    return (first >> word(8) << word(8)).byteswap() << word(8) ^ SIGN


VALUES = {
    "at random": lambda: unmix(EACH),
    "met in the map": lambda: unmix(EACH << word(24)) ^ SIGN,
    "met in the table": met_in_the_table,
    "multiples of 2^20": lambda: EACH << word(20),
    "multiples of 2^40": lambda: EACH << word(40),
    "multiples of 2^52": lambda: EACH << word(52),
    "one bit or two": lambda: np.unique([word(1 << a | 1 << b) for a in range(64) for b in range(64)]),
    "a stride": lambda: EACH * word(0x9E3779B97F4A7C15),
}
STRINGS = VALUES | {"met as strings": lambda: LENGTH_8 ^ unmix(unmix(unmix(EACH << word(24))))}


@pytest.mark.parametrize(("kind", "families"), [("values", VALUES), ("strings", STRINGS)])
def test_no_family_of_keys_meets(kind, families, probes):
    for family, keys in families.items():
        chosen = keys()
        for seed in [*SEEDS, None]:
            steps = [int(n) for n in probes(kind, keys=chosen.tobytes(), seed=seed).split()]
            assert max(steps) <= PER_KEY * len(chosen), (family, seed, steps)


def test_who_knows_the_code_and_another_seed_finds_nothing(probes):
    """Keys that meet under one seed are as good as random ones under all others."""
    learnt = probes("find", N, seed=SEEDS[0])
    costs = [[int(n) for n in probes("values", keys=learnt, seed=seed).split()] for seed in [*SEEDS, None]]
    assert max(costs[0]) > 500 * N  # the attack itself works
    assert all(max(steps) <= PER_KEY * N for steps in costs[1:]), costs


def test_processes_have_seeds_of_their_own(probes):
    found = {probes("find", 3) for _ in range(3)}
    assert len(found) == 3
    assert probes("find", 3, seed="x") == probes("find", 3, seed="x")


# ---- the seed shows in nothing ----

RESULTS = """
import hashlib, random, sys
import numpy as np
import pyarrow as pa
import pystream as ps
from pystream.partials import seals
from pystream._native import DESIGNS
from streams import ALL, stream
from test_packed import parcels_of, windows_of
from test_partials import tagged

def digest(data):
    return hashlib.sha256(data).hexdigest()

def as_bytes(table):
    sink = pa.BufferOutputStream()
    table = table.combine_chunks()
    with pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    return sink.getvalue().to_pybytes()

class Words:
    def __init__(self):
        self.seen = []
    def process_tuple(self, row):
        self.seen.append(row["i"])
    def produce_out_tuple(self):
        return repr(self.seen)

SHAPES = {"close": lambda k: k, "far": lambda k: k * 10**12 + 7, "text": lambda k: np.char.mod("key-%d", k)}
ORDERED = {"mq", "mq-lf", "runs", "tuml-sc", "tuml-mc"}
rng = np.random.default_rng(1)
for shape, change in SHAPES.items():
    inputs = []
    for _ in range(2):
        table = stream(rng, 600, 400, keys=80)
        inputs.append(table.set_column(1, "k", pa.array(change(table["k"].to_numpy()))))
    functions = {n: a for n, a in ALL.items() if shape != "text" or a.by != "k"}  # `by` is no text
    query = ps.Query(ps.Window(30, 7), "k", functions)
    plain = ps.Query(ps.Window(30, 7), "k", {"n": ps.count(), "s": ps.sum("f"), "m": ps.max("s")})
    udf = ps.Query(ps.Window(30, 7), "k", {"u": ps.udf(Words, pa.string())})
    for design in DESIGNS:
        of = query if design in ORDERED | {"sliced"} else plain
        print(shape, design, digest(as_bytes(ps.aggregate(of, inputs, design=design, threads=3))))
        with ps.Operator(of, 2, inputs[0].schema, design=design) as op:
            for i, table in enumerate(inputs):
                op.add(i, table.slice(0, 300))
            blob = op.snapshot()
        with ps.Operator.restore(of, blob, design="mq" if of is query else design) as op:
            for i, table in enumerate(inputs):
                op.add(i, table.slice(300))
                op.close(i)
            print(shape, design, "restored", digest(repr([row for b in op for row in b.to_pylist()]).encode()))
    print(shape, "udf", digest(as_bytes(ps.aggregate(udf, inputs, design="tuml-mc", threads=3))))
    rows = tagged(inputs)
    parcels = parcels_of(query, rows, random.Random(1), shards=3, folds=2)
    bodies = [bytes([to]) + seals.opened(parcel, seals.PARTIALS)[1] for to, parcel in parcels]  # seals name a sender
    print(shape, "parcels", digest(b"".join(bodies)))
    print(shape, "combined", digest(as_bytes(windows_of(query, rows.schema, [parcel for _, parcel in parcels]))))
    if shape != "text":
        hive = ps.WHive(ps.Window(30, 7), ps.sum("v"), 1)
        hive.update_windows_batch(inputs[0]["ts"], inputs[0]["k"].to_pylist(), [1] * 600, thread=0)
        hive.close(0)
        print(shape, "hive", digest(repr(list(iter(hive.get_next_winset, None))).encode()))
"""


def test_results_do_not_depend_on_the_seed():
    """Every design, snapshots that others go on from, parcels of folds: the same bytes."""
    site = ["-S"] if sys.flags.no_site else []  # as builds.py has it
    said = [
        subprocess.run(
            [sys.executable, *site, "-c", RESULTS],
            env=with_seed(seed) | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        for seed in ["a", "b", "", None]
    ]
    assert all(s.returncode == 0 for s in said), said[0].stderr
    assert len(said[0].stdout.splitlines()) > 40
    assert len({s.stdout for s in said}) == 1
