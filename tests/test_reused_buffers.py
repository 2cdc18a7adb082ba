"""Buffers that their owner uses again: NumPy's are read or copied before `add` returns, in every design."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps
from pystream._engine.plan import Plan
from pystream.operator import DESIGNS, designs_for

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BATCHES, ROWS, INPUTS = 12, 50, 2


class Total:
    """A user's window."""

    def __init__(self) -> None:
        self.total = 0.0

    def process_tuple(self, row: Any) -> None:
        self.total += row["v"]

    def produce_out_tuple(self) -> float:
        return self.total


QUERIES = {
    "functions": ps.Query(
        ps.Window(70, 20),
        "k",
        {"n": ps.count(), "sum": ps.sum("v"), "least": ps.min("v"), "some": ps.count(where=pc.field("v") > 10)},
    ),
    "order": ps.Query(ps.Window(70, 20), "k", {"first": ps.first("v"), "last": ps.last("v")}),
    "objects": ps.Query(ps.Window(70, 20), "k", {"total": ps.udf(Total)}),
}
CASES = [(name, design) for name, query in QUERIES.items() for design in DESIGNS if design in designs_for(query)]


def columns(number: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(number)
    start = number // INPUTS * ROWS
    return {"ts": np.arange(start, start + ROWS), "k": rng.integers(0, 5, ROWS), "v": rng.normal(0, 20, ROWS)}


def fill(buffers: dict[str, np.ndarray], number: int) -> None:
    for name, values in columns(number).items():
        buffers[name][:] = values


def spoil(buffers: dict[str, np.ndarray]) -> None:
    for values in buffers.values():
        values[:] = 0x5A5A5A5A


def expected(query: ps.Query) -> pa.Table:
    inputs = [[pa.record_batch(columns(n)) for n in range(i, BATCHES, INPUTS)] for i in range(INPUTS)]
    return ps.aggregate(query, inputs)


#: What holds the buffers when they are handed over.
HOLDERS: dict[str, Callable[[dict[str, np.ndarray]], Any]] = {
    "dict": lambda buffers: buffers,
    "dict of slices": lambda buffers: {name: values[:] for name, values in buffers.items()},
    "pandas": lambda buffers: pd.DataFrame(buffers, copy=False),
    "dict of series": lambda buffers: {name: pd.Series(values, copy=False) for name, values in buffers.items()},
    "masked": lambda buffers: {name: np.ma.MaskedArray(values, mask=False) for name, values in buffers.items()},
    "two parts": lambda buffers: [
        {name: values[: ROWS // 2] for name, values in buffers.items()},
        {name: values[ROWS // 2 :] for name, values in buffers.items()},
    ],
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(("name", "design"), CASES)
def test_buffers_may_be_overwritten_after_add(name, design, holder):
    query, want = QUERIES[name], expected(QUERIES[name])
    buffers = {name: values.copy() for name, values in columns(0).items()}
    schema = pa.record_batch(buffers).schema
    with ps.Operator(query, INPUTS, schema, design=design) as op:
        for number in range(BATCHES):
            fill(buffers, number)
            op.add(number % INPUTS, HOLDERS[holder](buffers))
            spoil(buffers)
        for i in range(INPUTS):
            op.close(i)
        got = pa.Table.from_batches(op, want.schema)
    assert got.equals(want)


def reusing(input: int, holder: str) -> Iterator[Any]:
    """Yields the same arrays again and again, filled anew each time."""
    buffers = {name: values.copy() for name, values in columns(0).items()}
    for number in range(input, BATCHES, INPUTS):
        fill(buffers, number)
        yield HOLDERS[holder](buffers)
        spoil(buffers)


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize(("name", "design"), CASES)
def test_an_iterable_may_yield_the_same_buffers_again(name, design, holder):
    query = QUERIES[name]
    got = ps.aggregate(query, [reusing(i, holder) for i in range(INPUTS)], design=design)
    assert got.equals(expected(query))


def test_arrow_is_not_copied():
    values = np.arange(ROWS)
    batch = pa.record_batch({"ts": pa.array(values), "k": pa.array(values), "v": pa.array(values)})
    plan = Plan(QUERIES["order"], batch.schema)
    for array, name in zip(plan.prepare(batch).columns, ("ts", "k", "v"), strict=True):
        assert array.buffers()[1].address == batch[name].buffers()[1].address
