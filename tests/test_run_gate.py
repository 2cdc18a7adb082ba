"""Run-Gate: without threads against a sorted list, and the runs design on what is particular to it."""

from __future__ import annotations

import itertools
import random
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from tools import run

import pystream as ps

ROOT = Path(__file__).parent.parent


def built(name: str, folder: Path, *options: str) -> Path:
    """A driver of tests/stress without a sanitizer, with assertions."""
    core = [ROOT / f"csrc/{c}.c" for c in ("gates/run_gate", "gates/block_merge", "base/memory")]
    sources = [ROOT / f"tests/stress/{name}.c", *core]
    cc = shutil.which("gcc") or shutil.which("clang") or "cc"
    flags = ["-std=c11", "-D_GNU_SOURCE", "-O1", *options, "-I", ROOT / "csrc", "-lpthread", "-o", folder / name]
    run(cc, *sources, *flags)
    return folder / name


@pytest.fixture(scope="module", params=[(), ("-DPYSTREAM_SMALL",)], ids=["", "small"])
def driver(request, tmp_path_factory) -> Path:
    return built("run_gate_stress", tmp_path_factory.mktemp("run_gate"), *request.param)


@pytest.mark.parametrize("shape", ["1 1 300", "2 1 300", "3 2 300", "20 1 100", "7 3 100", "2 1 9000"])
def test_every_reader_gets_everything_in_order(driver, shape):
    assert run(driver, *shape.split(), "10", seconds=120).startswith("10 rounds")


# ---- the merge of a block, against sorted() ----

LISTS, EACH = 21, 40  #: of block_merge_stress


@pytest.fixture(scope="module")
def merge(tmp_path_factory):
    """Merges many blocks, each a base and lists of timestamps by number; gives what is printed of each."""
    program = built("block_merge_stress", tmp_path_factory.mktemp("block_merge"))

    def merge(blocks):
        lines = [
            f"{base} " + " ".join(f"{k} {len(ts)} {' '.join(map(str, ts))}" for k, ts in lists.items() if ts)
            for base, lists in blocks
        ]
        command = [str(program), str(LISTS), str(EACH)]
        done = subprocess.run(command, input="\n".join(lines) + "\n", capture_output=True, text=True, check=True)
        return [line.strip() for line in done.stdout.splitlines()]

    return merge


def in_order(lists):
    return " ".join(f"{t}:{k}" for t, k in sorted((t, k) for k, ts in lists.items() for t in ts))


@pytest.mark.parametrize("spread", [1, 4, 50, 10**6, 2**46])
def test_blocks_are_merged_as_sorted_does(merge, spread):
    """Any number of lists of any lengths: none, one, odd and even ones, all alike, all of one list before another."""
    rng = random.Random(spread)
    blocks = []
    for _ in range(400):
        base, most = rng.choice([0, 7, 2**40]), rng.choice([1, 2, 3, EACH])
        numbers = sorted(rng.sample(range(LISTS), rng.randint(1, LISTS)))
        lists = {k: sorted(base + rng.randrange(spread) for _ in range(rng.randint(0, most))) for k in numbers}
        blocks.append((base, lists))
    assert merge(blocks) == [in_order(lists) for _, lists in blocks]


def test_every_small_merge_of_two(merge):
    """All lengths up to nine, with the keys of one list below, above, between and around those of the other."""
    orders = [range(10), range(100, 110), range(0, 20, 2), [0, 0, 1, 1, 50, 51, 51, 51, 52, 53]]
    blocks = [
        (0, {0: one[:n], 5: two[:m]})
        for one, two in itertools.product([list(o) for o in orders], repeat=2)
        for n, m in itertools.product(range(10), repeat=2)
        if n + m > 0
    ]
    assert merge(blocks) == [in_order(lists) for _, lists in blocks]


def test_how_far_keys_reach(merge):
    """21 lists need 5 bits, 40 timestamps 6 and 6: the rest is for the span, and its last two values are not keys."""
    most = (2**64 - 1 >> 17) - 2
    far = {0: [0, most], 20: [0, most]}
    assert merge([(0, far)]) == [in_order(far)]
    assert merge([(0, {0: [0, most + 1]}), (0, far)]) == ["too far", in_order(far)]


# ---- the runs design ----


class Order:
    """A user window whose result is the order of its tuples."""

    def __init__(self) -> None:
        self.seen = []

    def process_tuple(self, row):
        self.seen.append(row["id"])

    def produce_out_tuple(self):
        return ",".join(map(str, self.seen))


@pytest.mark.parametrize("gaps", [(0, 1), (1, 2), (5, 60), (0, 3)])
def test_user_functions_see_one_order_whatever_the_runs(gaps):
    """Ties within and across inputs, interleaved tuples, and long stretches of one input (galloping)."""
    rng = np.random.default_rng(gaps[1])
    inputs, expected = [], []
    for i in range(4):
        ts = np.cumsum(rng.integers(*gaps, 60))
        ids = [i * 1000 + p for p in range(60)]
        inputs.append(pa.table({"ts": ts, "id": ids}))
        expected += [(t, i, p, id) for p, (t, id) in enumerate(zip(ts.tolist(), ids, strict=True))]
    query = ps.Query(ps.Window(10**6), None, {"order": ps.udf(Order)})
    for cut in (1, 7, 60):
        got = ps.aggregate(query, [t.to_batches(max_chunksize=cut) for t in inputs], design="runs")
        assert got["order"].to_pylist() == [",".join(str(id) for *_, id in sorted(expected))]


def test_runs_that_only_promise():
    """Heartbeats between tuples, none of them a tuple, carry the output on."""
    query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    with ps.Operator(query, 2, pa.schema([("ts", pa.int64())]), design="runs") as op:
        op.add(0, {"ts": [1, 2, 3]})
        for ts in range(4, 12):
            op.heartbeat(0, ts)
        op.heartbeat(1, 10)
        while not (got := op.poll()):
            pass
        assert got[0].to_pylist() == [{"ts": 0, "n": 3}]
        op.close(0)
        op.close(1)
        assert list(op) == []
