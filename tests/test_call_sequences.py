"""Any sequence of calls on folds and combines: adds between takes, takes between batches of windows, generators that
take turns or are dropped half-way, held() and a new object in the middle. The windows are those of the rows, each once.
"""

from __future__ import annotations

import math
import subprocess
import sys
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import pystream as ps
from pystream.partials import Combine, Fold, PackedCombine, PackedFold, combining, folding, packed, partial_columns

SCHEMA = pa.schema(
    [("ts", pa.int64()), ("stream", pa.int64()), ("position", pa.int64()), ("k", pa.string()), ("v", pa.float64())]
)
ORDER = {"stream": "stream", "position": "position"}
KEYS = ["", "a", "b", "c", "dd"]
VALUES = [None, 0.5, 1e300, -1e300, 2.0**-1000]


def query_of(size: int, advance: int) -> ps.Query:
    aggregates = {"n": ps.count(), "s": ps.sum("v"), "least": ps.min("v"), "first": ps.first("k"), "last": ps.last("v")}
    return ps.Query(ps.Window(size, advance), "k", aggregates)


def expected(rows: list[dict[str, Any]], size: int, advance: int) -> list[dict[str, Any]]:
    """All windows of the rows, worked out one by one."""
    windows: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda r: (r["ts"], r["stream"], r["position"])):
        start = row["ts"] // advance * advance
        while start >= 0 and start + size > row["ts"]:
            windows.setdefault((start, row["k"]), []).append(row)
            start -= advance
    return [_result(start, key, windows[start, key]) for start, key in sorted(windows)]


def _result(start: int, key: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    values = [row["v"] for row in rows if row["v"] is not None]
    return {
        "ts": start,
        "k": key,
        "n": len(rows),
        "s": math.fsum(values) if values else None,
        "least": min(values, default=None),
        "first": key,
        "last": values[-1] if values else None,
    }


class Calls(RuleBasedStateMachine):
    """Folds, and a combine that gets what they give, in any order of calls that keeps the promises made."""

    fold_of: Any
    combine_of: Any

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, Any]] = []
        self.given: list[dict[str, Any]] = []
        self.running: list[Any] = []
        self.promised = 0  # no row comes before this
        self.position = 0
        self.finished = False

    @initialize(size=st.integers(1, 12), advance=st.integers(1, 12), band=st.integers(1, 3), rows=st.integers(1, 5))
    def begin(self, size: int, advance: int, band: int, rows: int) -> None:
        self.small = [
            mock.patch.object(packed, "BAND_BLOCKS", band),
            mock.patch.object(partial_columns, "BATCH_ROWS", rows),
            mock.patch.object(combining, "KEYS_SPARE", 0),
        ]
        for patch in self.small:
            patch.start()
        self.window = size, advance
        self.query = query_of(size, advance)
        self.folds = [self.fold_of(self.query, SCHEMA, **ORDER, max_bytes=most) for most in (1, 1 << 20)]
        self.combine = self.combine_of(self.query, SCHEMA, **ORDER)

    def teardown(self) -> None:
        try:
            if hasattr(self, "combine"):
                self.check_the_end()
        finally:
            for patch in getattr(self, "small", []):
                patch.stop()

    # ---- rows ----

    def batch(self, times: list[int], pick: int) -> pa.RecordBatch:
        rows = []
        for at, ts in enumerate(times):
            self.position += 1
            key, value = KEYS[(pick + at) % len(KEYS)], VALUES[(pick * 3 + at) % len(VALUES)]
            rows.append({"ts": self.promised + ts, "stream": at % 2, "position": self.position, "k": key, "v": value})
        self.rows += rows
        return pa.RecordBatch.from_pylist(rows, SCHEMA)

    @precondition(lambda self: not self.finished)
    @rule(fold=st.integers(0, 1), times=st.lists(st.integers(0, 40), max_size=6), pick=st.integers(0, 9))
    def add_to_a_fold(self, fold: int, times: list[int], pick: int) -> None:
        self.send(self.folds[fold].add(self.batch(times, pick)))

    @precondition(lambda self: not self.finished)
    @rule(fold=st.integers(0, 1))
    def flush_a_fold(self, fold: int) -> None:
        self.send(self.folds[fold].finish())

    @precondition(lambda self: not self.finished)
    @rule(times=st.lists(st.integers(0, 40), max_size=6), pick=st.integers(0, 9))
    def add_rows(self, times: list[int], pick: int) -> None:
        self.combine.add_rows(self.batch(times, pick))

    def send(self, given: Any) -> None:
        for each in given:
            if isinstance(each, tuple):
                self.combine.take(each[1])
            else:
                self.combine.add(each)

    # ---- windows ----

    @rule(by=st.integers(0, 30))
    def advance(self, by: int) -> None:
        if not self.finished:
            for fold in self.folds:
                self.send(fold.finish())
        self.promised += by
        self.running.append(self.combine.advance(self.promised))

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 5), batches=st.integers(1, 3))
    def go_on(self, which: int, batches: int) -> None:
        windows = self.running[which % len(self.running)]
        for _ in range(batches):
            batch = next(windows, None)
            if batch is None:
                self.running.remove(windows)
                return
            self.given += batch.to_pylist()

    @precondition(lambda self: self.running)
    @rule(which=st.integers(0, 5))
    def drop(self, which: int) -> None:
        self.running.pop(which % len(self.running)).close()

    @precondition(lambda self: not self.finished)
    @rule()
    def begin_anew_with_what_is_held(self) -> None:
        held = list(self.combine.held())
        self.running.clear()
        self.combine = self.combine_of(self.query, SCHEMA, **ORDER, start=self.combine.start, held=held)

    @rule()
    def look_at_what_is_held(self) -> None:
        assert sum(batch.num_rows for batch in self.combine.held()) >= 0

    @rule(batches=st.integers(0, 3))
    def finish(self, batches: int) -> None:
        if not self.finished:
            for fold in self.folds:
                self.send(fold.finish())
        self.finished = True
        windows = self.combine.finish()
        self.running.append(windows)
        for _ in range(batches):
            batch = next(windows, None)
            self.given += [] if batch is None else batch.to_pylist()

    @precondition(lambda self: self.finished and self.running == [])
    @rule(pick=st.integers(0, 9))
    def nothing_comes_after_the_end(self, pick: int) -> None:
        self.drain()
        fold = self.fold_of(self.query, SCHEMA, **ORDER)
        late = self.batch([0], pick)
        self.rows.pop()
        given = [*fold.add(late), *fold.finish()]
        with pytest.raises(ps.ClosedError):
            self.combine.add_rows(late)
        for _ in given:
            with pytest.raises(ps.ClosedError):
                self.send(given)

    @invariant()
    def windows_come_in_order(self) -> None:
        order = [(row["ts"], row["k"]) for row in self.given]
        assert order == sorted(set(order))

    def drain(self) -> None:
        for batch in self.combine.finish():
            self.given += batch.to_pylist()

    def check_the_end(self) -> None:
        if not self.finished:
            for fold in self.folds:
                self.send(fold.finish())
        self.drain()
        assert self.given == expected(self.rows, *self.window)


class PlainCalls(Calls):
    fold_of, combine_of = Fold, Combine


class PackedCalls(Calls):
    fold_of, combine_of = PackedFold, PackedCombine


class MixedCalls(Calls):
    """Partials of both kinds into one."""

    combine_of = PackedCombine
    made = 0

    def fold_of(self, *args: Any, **named: Any) -> Any:
        self.made += 1
        return (Fold if self.made % 2 else PackedFold)(*args, **named)


@pytest.mark.parametrize("machine", [PlainCalls, PackedCalls, MixedCalls])
def test_windows_are_those_of_the_rows_whatever_the_calls(machine):
    run_state_machine_as_test(machine)


NEW_KEYS = """
import numpy as np, pyarrow as pa, pystream as ps
from pystream.partials import PackedCombine, PackedFold

query = ps.Query(ps.Window(10, 5), "k", {"s": ps.sum("v"), "n": ps.count()})
schema = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("v", pa.float64())])

def parcels(ts, keys):
    fold = PackedFold(query, schema)
    columns = [pa.array(ts), pa.array(keys), pa.array(np.full(len(ts), 1e300))]
    return [parcel for _, parcel in [*fold.add(pa.record_batch(columns, schema=schema)), *fold.finish()]]

combine = PackedCombine(query, schema)
for parcel in parcels(np.repeat(np.arange(100), 1000), np.tile(np.arange(1000), 100)):
    combine.take(parcel)
windows = combine.advance(95)
rows = next(windows).num_rows
for parcel in parcels(np.full(200_000, 100), np.arange(1000, 201_000)):  # 200 times as many keys
    combine.take(parcel)
rows += sum(batch.num_rows for batch in windows)
rows += sum(batch.num_rows for batch in combine.finish())
print(rows)
"""


def test_a_parcel_with_new_keys_between_two_batches_of_windows():
    """It wrote and read far behind the totals: by itself, because the interpreter went down with it."""
    done = subprocess.run([sys.executable, "-c", NEW_KEYS], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == 20 * 1000 + 2 * 200_000


def rows_at(*times: int) -> pa.RecordBatch:
    rows = [{"ts": ts, "stream": 0, "position": i, "k": "a", "v": 1.0} for i, ts in enumerate(times)]
    return pa.RecordBatch.from_pylist(rows, SCHEMA)


def parcel_at(query: ps.Query, *times: int) -> bytes:
    fold = PackedFold(query, SCHEMA, **ORDER)
    ((_, parcel),) = [*fold.add(rows_at(*times)), *fold.finish()]
    return parcel


def test_a_parcel_that_comes_too_late_is_refused_and_the_rest_goes_on():
    query = query_of(10, 10)
    combine = PackedCombine(query, SCHEMA, **ORDER)
    combine.take(parcel_at(query, 1, 11, 21))
    windows = combine.advance(20)
    assert next(windows).column("ts").to_pylist() == [0, 10]
    with pytest.raises(ps.PartialError, match="__slice = 10 is in a window that has been put out"):
        combine.take(parcel_at(query, 12))
    assert list(windows) == []
    assert [row["ts"] for batch in combine.finish() for row in batch.to_pylist()] == [20]


def test_parcels_that_were_taken_are_held():
    query = query_of(10, 10)
    combine = PackedCombine(query, SCHEMA, **ORDER)
    combine.take(parcel_at(query, 1, 11))
    held = list(combine.held())
    other = Combine(query, SCHEMA, **ORDER, held=held)
    assert pa.Table.from_batches(other.finish()).equals(pa.Table.from_batches(combine.finish()))


@pytest.mark.parametrize("max_bytes", [1, 1 << 20])
def test_a_batch_is_folded_whole_or_not_at_all(max_bytes):
    """A negative timestamp far back must not leave the rows before it in the fold."""
    query, rows = query_of(10, 10), 3
    with mock.patch.object(folding, "PIECE_ROWS", 2):
        fold = Fold(query, SCHEMA, **ORDER, max_bytes=max_bytes)
        with pytest.raises(ps.DisorderError, match="row 4: timestamp -1 is negative"):
            fold.add(rows_at(1, 2, 3, 4, -1, 6))
        partial = [*fold.add(rows_at(*range(rows))), *fold.finish()]
    assert sum(pa.Table.from_batches(partial).column("__rows").to_pylist()) == rows


@pytest.mark.parametrize(
    ("shards", "shard_of"),
    [
        (0, None),
        (1 << 17, None),
        (1, lambda keys: np.full(keys.num_rows, 1, np.uint16)),
        (2, lambda keys: np.zeros(keys.num_rows - 1, np.uint16)),
        (2, lambda keys: np.zeros(keys.num_rows, np.int64)),
    ],
)
def test_shards_are_checked(shards, shard_of):
    with pytest.raises(ValueError, match="shard"):
        fold = PackedFold(query_of(10, 10), SCHEMA, **ORDER, shards=shards, shard_of=shard_of)
        fold.add(rows_at(1, 2))
        list(fold.finish())
