"""Parcels between the phases of a batch query that never arrive: an error, not a result without their rows."""

from __future__ import annotations

from unittest import mock

import pyarrow as pa
import pytest
from faults import record

import pystream as ps

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark.rows.phases import Phases
from pystream.spark.rows.shard_hash import shard_labels

SCHEMA = pa.schema([(name, pa.int64()) for name in ("ts", "k")])
QUERY = ps.Query(ps.Window(10, 4), "k", {"n": ps.count()})
PHASES = Phases(QUERY, SCHEMA, None, None)
SHARDS, TASKS = 3, 3

Row = tuple[int, dict]  # a row of the shuffle, and the task that sent it


def rows_of(task: int) -> pa.RecordBatch:
    """Four keys; the last task has none, and sends no parcel."""
    n = 0 if task == TASKS - 1 else 40
    return pa.record_batch([list(range(n)), [i % 4 for i in range(n)]], schema=SCHEMA)


@pytest.fixture(scope="module")
def shuffled() -> dict[int, list[Row]]:
    """What comes to each shard."""
    labels, come = shard_labels(SHARDS), {}
    for task in range(TASKS):
        with mock.patch("pystream.spark.rows.phases.task_number", return_value=task):
            for batch in PHASES.packed(iter([rows_of(task)]), labels):
                for row in batch.to_pylist():
                    come.setdefault(row.pop("shard"), []).append((task, row))
    return come


def combined(rows: list[Row]) -> list[dict]:
    batches = [pa.RecordBatch.from_pylist([row]) for _, row in rows]
    return [row for b in PHASES.windows(iter(batches)) for row in b.to_pylist()]


def test_all_have_come(shuffled):
    want = ps.aggregate(QUERY, [pa.Table.from_batches([rows_of(task)]) for task in range(TASKS)]).to_pylist()
    apart = [row for rows in shuffled.values() for row in combined(rows)]
    together = combined([row for rows in shuffled.values() for row in rows])
    for got in (apart, together):
        assert sorted(({**row} for row in got), key=repr) == sorted(want, key=repr)


def by_shard(rows: list[tuple[int, Row]]) -> list[dict]:
    """The windows where shards come one after the other, in batches that do not end where shards do."""
    batches = pa.Table.from_pylist([{"shard": shard, **row} for shard, (_, row) in rows]).to_batches(4)
    return [row for b in PHASES.windows_by_shard(iter(batches)) for row in b.to_pylist()]


def test_shards_one_after_the_other(shuffled):
    want = sorted((row for rows in shuffled.values() for row in combined(rows)), key=repr)
    rows = [(shard, row) for shard, own in shuffled.items() for row in own]
    assert sorted(by_shard(rows), key=repr) == want
    with pytest.raises(ps.PystreamError, match="parcels"):
        by_shard([*rows[1:], rows[0]])  # the first shard comes back when it has been given out


def test_any_one_that_is_lost_is_missed(shuffled):
    tried = 0
    for rows in shuffled.values():
        told_last = rows[-1]  # the last task has sent nothing else
        assert sum(task == TASKS - 1 for task, _ in rows) == 1
        for lost in [row for row in rows if row is not told_last]:
            with pytest.raises(ps.PartialError, match="parcels are missing: "):
                combined([row for row in rows if row is not lost])
            tried += 1
    assert tried >= SHARDS * (TASKS - 1)
    record(
        "Spark: a parcel of a batch query that never comes",
        tried=tried,
        survived=tried,
        lost=0,
        where="tests/spark/test_tally.py",
    )


@pytest.mark.parametrize("task", range(TASKS - 1))
def test_all_of_one_task_is_lost(shuffled, task):
    for shard, rows in shuffled.items():
        with pytest.raises(ps.PartialError, match="only 2 of 3 tasks or more have told how many they sent"):
            combined([row for row in rows if row[0] != task])
        others = [row for other, more in shuffled.items() if other != shard for row in more]
        with pytest.raises(ps.PartialError, match="parcels are missing"):
            combined([*others, *(row for row in rows if row[0] != task)])


def test_a_task_that_tells_twice(shuffled):
    rows = next(iter(shuffled.values()))
    task, told = rows[-1]
    with pytest.raises(ps.PartialError, match=f"task {task} has told it twice"):
        combined([*rows, (task, told | {"batch": told["batch"] + 1_000})])
