"""Partial aggregates: however rows are spread, ordered and folded, the windows are those of ps.aggregate."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Case, canonical, cases

import pystream as ps
from pystream.partials import Combine, Fold, partial_schema

ORDER = {"stream": "stream", "position": "position"}


def tagged(tables: list[pa.Table]) -> pa.Table:
    """All rows of all inputs, each with its stream and position."""
    parts = []
    for i, table in enumerate(tables):
        n = table.num_rows
        order = {"stream": np.full(n, i, np.int16), "position": np.arange(n, dtype=np.int32)}
        parts.append(pa.table(dict(zip(table.column_names, table.columns, strict=True)) | order))
    return pa.concat_tables(parts).combine_chunks()


def batch_of(table: pa.Table) -> pa.RecordBatch:
    whole = table.combine_chunks().to_batches()
    return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=table.schema)


def spread(rows: pa.Table, rng: random.Random, folds: int) -> list[list[pa.RecordBatch]]:
    """The rows in random order, as the batches of so many partitions."""
    order = list(range(rows.num_rows))
    rng.shuffle(order)
    partitions = []
    for i in range(folds):
        mine = batch_of(rows.take(pa.array(order[i::folds], pa.int64())))
        edges = sorted({0, mine.num_rows, *(rng.randint(0, mine.num_rows) for _ in range(rng.randint(0, 3)))})
        partitions.append([mine.slice(a, b - a) for a, b in pairwise(edges)])
    return partitions


def folded(query: ps.Query, rows: pa.Table, rng: random.Random) -> list[pa.RecordBatch]:
    """The partials of the rows, with flushes at random, in random order and batches."""
    partials = []
    for partition in spread(rows, rng, rng.randint(1, 4)):
        fold = Fold(query, rows.schema, **ORDER, max_bytes=rng.choice([1, 200_000, 1 << 20]))
        for batch in partition:
            partials += fold.add(batch)
        partials += fold.finish()
    rng.shuffle(partials)
    assert all(p.schema.equals(partial_schema(query, rows.schema, **ORDER)) for p in partials)
    return partials


def table_of(combined: Combine, windows: list[pa.RecordBatch]) -> pa.Table:
    return pa.Table.from_batches(windows, schema=combined.schema)


def assert_same(got: pa.Table, want: pa.Table) -> None:
    assert got.schema.equals(want.schema)
    assert canonical(got.to_pylist()) == canonical(want.to_pylist())


def inputs_of(case: Case) -> list[pa.Table]:
    return [pa.Table.from_batches(case.batches(i), schema=case.schema) for i in range(len(case.rows))]


@settings(max_examples=2 * settings().max_examples)
@given(case=cases(without=("udf",)), seed=st.integers(0, 2**32))
def test_equals_aggregate_whatever_the_partitions_and_the_order(case, seed):
    rng, inputs = random.Random(seed), inputs_of(case)
    rows = tagged(inputs)
    whole = Combine(case.query, rows.schema, **ORDER)
    partials = folded(case.query, rows, rng)
    if rng.random() < 0.5:  # combined in between, as a tree of combiners would
        between = Combine(case.query, rows.schema)
        between.add(partials)
        partials = list(between.held())
    whole.add(partials)
    assert_same(table_of(whole, list(whole.finish())), ps.aggregate(case.query, inputs))


@given(case=cases(without=("udf",)), seed=st.integers(0, 2**32))
def test_step_by_step_with_state_that_moves(case, seed):
    """Rows arrive in pieces of time; windows come when they are complete; the state goes through partials and back."""
    rng, inputs = random.Random(seed), inputs_of(case)
    rows, windows = tagged(inputs), []
    whole = Combine(case.query, rows.schema)
    now = 0
    for until in sorted(rng.choices(range(80), k=rng.randint(0, 5))):
        piece = rows.filter((pc.field("ts") >= now) & (pc.field("ts") < until))
        whole.add(folded(case.query, piece, rng))
        windows += whole.advance(until)
        now = until
        if rng.random() < 0.5:
            whole = Combine(case.query, rows.schema, start=whole.start, held=list(whole.held()))
    whole.add(folded(case.query, rows.filter(pc.field("ts") >= now), rng))
    windows += whole.finish()
    assert_same(table_of(whole, windows), ps.aggregate(case.query, inputs))
