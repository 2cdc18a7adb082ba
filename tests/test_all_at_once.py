"""All at once: 64 operators of every design in one process, and each gives what it would give alone.

Most are small, fed in batches of any size down to one tuple, and go on from snapshots of themselves in other designs.
One has a thousand inputs, one a million keys, and one a reader that never reads: its `add` times out, cleanly, and the
others do not notice. Eight threads feed and read them in turns. What each must give is computed beforehand, by the
oracle or by pyarrow's own grouping.

An episode takes some ten seconds, in a process of its own so that a hang would be a failure; the long version begins
another one, with other data, until its time is up.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from faults import record
from threads import core_threads, run_together
from tools import run

import pystream as ps
from pystream import _native, reference
from pystream.operator import designs_for

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = "test_all_at_once.py"
OPERATORS, THREADS = 64, 8
INPUTS_MANY, KEYS_MANY = 1_000, 1_000_000

#: How long the long version goes on.
SOAK_S = float(os.environ.get("PYSTREAM_SOAK_S", "600"))

#: No episode takes as long as this, on any machine: it turns a hang into a failure.
PATIENCE_S = 600

SMALL = {
    "n": ps.count(),
    "total": ps.sum("v"),
    "mean": ps.avg("x"),
    "low": ps.min("x"),
    "first": ps.first("v"),
    "last": ps.last("v"),
}


@dataclass
class Case:
    """An operator's life: what it is fed, in batches of how many rows, where it is replaced, and what it must give."""

    query: ps.Query
    design: str
    inputs: list[pa.Table]
    expected: pa.Table
    rows: int
    moments: dict[int, str] = field(default_factory=dict)  # after which batch a snapshot goes on in which design

    def parts(self) -> Iterator[tuple[int, pa.Table]]:
        for start in range(0, max(map(len, self.inputs)), self.rows):
            for i, table in enumerate(self.inputs):
                if start < len(table):
                    yield i, table.slice(start, self.rows)

    def life(self) -> Iterator[None]:
        """Feed, read, replace; a step ends at each yield."""
        op, out, fed = ps.Operator(self.query, len(self.inputs), self.inputs[0].schema, self.design), [], 0
        try:
            for step, (i, part) in enumerate(self.parts()):
                op.add(i, part, timeout=PATIENCE_S)
                fed += len(part)
                if step % 8 == 0:
                    out += op.poll()
                if step in self.moments:
                    op = replaced(self.query, op, self.moments[step])
                    assert sum(op.positions()) == fed
                yield
            for i in range(op.inputs):
                op.close(i)
            out += list(op)
            assert op.positions() == [len(table) for table in self.inputs]
        finally:
            op.end()
        assert pa.Table.from_batches(out, op.schema).combine_chunks() == self.expected


def replaced(query: ps.Query, op: ps.Operator, design: str) -> ps.Operator:
    blob = op.snapshot()
    op.end()
    return ps.Operator.restore(query, blob, design=design)


# ---- the cases ----


def readings(rng: np.random.Generator, rows: int, span: int, keys: int) -> pa.Table:
    columns = {"ts": np.sort(rng.integers(0, span, rows)), "k": rng.integers(0, keys, rows)}
    return pa.table(columns | {"v": rng.integers(-100, 100, rows), "x": rng.normal(size=rows)})


def by_the_oracle(query: ps.Query, inputs: list[pa.Table]) -> pa.Table:
    schema = pa.schema(
        [("ts", pa.int64()), ("k", pa.int64())]
        + [(name, pa.int64() if a.function != "avg" and a.column != "x" else pa.float64()) for name, a in SMALL.items()]
    )
    rows = reference.aggregate(query, [t.to_pylist() for t in inputs])
    return pa.Table.from_pylist(rows, pa.schema([f for f in schema if f.name in query.columns]))


def small(seed: int) -> Case:
    """A few inputs, any window, every design, up to three replacements; a third is fed tuple by tuple."""
    choose, rng = random.Random(seed), np.random.default_rng(seed)
    names = [name for name in SMALL if choose.random() < 0.7] or ["n"]
    query = ps.Query(ps.Window(choose.randint(1, 20), choose.randint(1, 9)), "k", {n: SMALL[n] for n in names})
    inputs = [readings(rng, choose.randint(1, 150), 200, 7) for _ in range(choose.randint(1, 4))]
    able = designs_for(query)
    rows = choose.choice([1, 7, 64])
    batches = sum(-(-len(t) // rows) for t in inputs)
    moments = {choose.randrange(batches): choose.choice(able) for _ in range(choose.randint(0, 3))}
    return Case(query, able[seed % len(able)], inputs, by_the_oracle(query, inputs), rows, moments)


def many_inputs(seed: int) -> Case:
    rng = np.random.default_rng(seed)
    query = ps.Query(ps.Window(20, 10), "k", {"n": ps.count(), "mean": ps.avg("x")})
    inputs = [readings(rng, 8, 100, 5) for _ in range(INPUTS_MANY)]
    return Case(query, "auto", inputs, by_the_oracle(query, inputs), 1, {3_500: "mq", 6_100: "sliced"})


def many_keys(seed: int) -> Case:
    """Every key once in each input, and the windows by pyarrow's own grouping."""
    rng = np.random.default_rng(seed)
    query = ps.Query(ps.Window(400, 200), "k", {"n": ps.count(), "total": ps.sum("v")})
    inputs = [
        pa.table(
            {"ts": np.arange(KEYS_MANY) // 1_000, "k": rng.permutation(KEYS_MANY), "v": rng.integers(0, 9, KEYS_MANY)}
        )
        for _ in range(2)
    ]
    both = pa.concat_tables(inputs)
    ts = both["ts"].to_numpy()
    copies = [both.set_column(0, "ts", pa.array(ts // 200 * 200 - shift)) for shift in (0, 200)]
    grouped = pa.concat_tables(copies).filter(pa.compute.field("ts") >= 0).group_by(["ts", "k"])
    counted = grouped.aggregate([("v", "count"), ("v", "sum")]).sort_by([("ts", "ascending"), ("k", "ascending")])
    expected = counted.rename_columns(query.columns).combine_chunks()
    return Case(query, "sliced", inputs, expected, 50_000, {9: "sliced", 21: "runs"})


# ---- the reader that never reads ----


def never_read(steps: int, count: list[int]) -> Iterator[None]:
    """Filled until nothing fits; then every add times out, and a snapshot is as good as ever. Read only at the end."""
    query = ps.Query(ps.Window(1), "k", {"n": ps.count()})
    with ps.Operator(query, 1, pa.schema([("ts", pa.int64()), ("k", pa.int64())]), max_pending=64) as op:
        late = 0
        for step in range(steps):
            at = op.positions()[0]
            try:
                op.add(0, {"ts": [at], "k": [at % 3]}, timeout=0.001)
            except TimeoutError:
                late += 1
                assert op.positions() == [at]
            if step % 50 == 49:
                with ps.Operator.restore(query, op.snapshot()) as other:
                    assert other.positions() == op.positions()
            yield
        taken = op.positions()[0]
        assert taken < 64 * 3  # pending, in the output, under way
        assert late == steps - taken
        op.close(0)
        rows = [tuple(row.values()) for batch in op for row in batch.to_pylist()]
    assert rows == [(n, n % 3, 1) for n in range(taken)]
    count.append(late)


# ---- all of it ----


def in_turns(lives: list[Iterator[None]]) -> None:
    while lives:
        lives = [life for life in lives if next(life, StopIteration) is None]


def episode(seed: int) -> int:
    """Gives how often an add timed out."""
    late: list[int] = []
    cases = [many_inputs(seed), many_keys(seed)]
    cases += [small(seed * OPERATORS + n) for n in range(OPERATORS - len(cases) - 1)]
    lives = [never_read(400, late), *(case.life() for case in cases)]
    assert len(lives) == OPERATORS
    run_together(*(lambda n=n: in_turns(lives[n::THREADS]) for n in range(THREADS)))
    gc.collect()
    assert (core_threads(), _native.memory_live()) == (0, 0)
    return late[0]


def run_episode(seed: int) -> None:
    late = int(run(sys.executable, __file__, seed, seconds=PATIENCE_S))
    assert late > 0
    record("operators side by side, all checked", tried=OPERATORS, survived=OPERATORS, lost=0, where=HERE)
    record("add to an operator that nobody reads", tried=late, survived=late, lost=0, where=HERE)


@pytest.mark.full
def test_for_an_episode():
    run_episode(1)


@pytest.mark.deep
def test_for_ten_minutes():
    end, seed = time.monotonic() + SOAK_S, 2
    while time.monotonic() < end:
        run_episode(seed)
        seed += 1


if __name__ == "__main__":
    print(episode(int(sys.argv[1])))  # noqa: T201
