"""Tuples in very many windows. test_overlap.py runs this under limits of time and memory."""

from __future__ import annotations

import itertools
import signal
import threading
import time
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import pystream as ps
from pystream.operator import DESIGNS, WINDOWS_MAX
from pystream.partials import Combine, Fold

SCHEMA = pa.schema([("ts", pa.int64()), ("x", pa.float64())])
AGGREGATES = {"n": ps.count(), "mean": ps.avg("x")}
DAY_BY_MS = ps.Window("1d", "1ms")
HUGE = ps.Window(2**40, 1)
LATE = 2**41  # behind the end of the first window: in 2**40 of them
KEEPING = [design for design in DESIGNS if design != "sliced"]

#: A tuple in so many windows takes milliseconds; all tuples take minutes, but not much memory, for there is one key.
MANY, TUPLES = 2**16, 200_000


def batch_of(*stamps: int) -> pa.RecordBatch:
    return pa.record_batch({"ts": pa.array(stamps, pa.int64()), "x": [1.0] * len(stamps)}, SCHEMA)


def slow_operator(design: str) -> ps.Operator:
    return ps.Operator(ps.Query(ps.Window(MANY, 1), None, AGGREGATES), 1, SCHEMA, design, threads=2)


def feeding(op: ps.Operator) -> threading.Thread:
    """Adds, in a thread of its own, what takes minutes to be put into windows."""

    def run() -> None:
        try:
            op.add(0, batch_of(*itertools.repeat(MANY, TUPLES)))
            op.close(0)
        except ps.ClosedError:
            return

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_for_windows(op: ps.Operator) -> None:
    while not op.stats()["windows_open"]:
        time.sleep(0.001)


@pytest.mark.parametrize("design", KEEPING)
def test_end(design: str) -> None:
    """Windows count as soon as they are made, and an operator in the middle of them can be ended."""
    op = slow_operator(design)
    thread = feeding(op)
    wait_for_windows(op)
    op.end(discard=True)
    thread.join()


@pytest.mark.parametrize("design", ["mq", "wiml"])
def test_count(design: str) -> None:
    """Windows count one by one, not tuple by tuple: three keys are met at one timestamp, and no window is complete."""
    each = 2**17
    rows = pa.record_batch({"ts": pa.array([each] * 3, pa.int64()), "x": [1.0, 2.0, 3.0]}, SCHEMA)
    with ps.Operator(ps.Query(ps.Window(each, 1), "x", {"n": ps.count()}), 1, SCHEMA, design) as op:
        thread = threading.Thread(target=lambda: op.add(0, rows))
        thread.start()
        seen = 0
        while seen % each == 0 and seen < 3 * each:
            seen = op.stats()["windows_open"]
        assert seen % each
        op.end()
        thread.join()


@pytest.mark.parametrize("design", ["mq", "mq-lf", "tuml-sc", "runs"])
def test_snapshot(design: str) -> None:
    """A snapshot waits for the tuple at hand, not for all; the rest goes on elsewhere."""
    op = slow_operator(design)
    thread = feeding(op)
    wait_for_windows(op)
    blob = op.snapshot()
    op.end(discard=True)  # the feeder may have closed it since
    thread.join()
    with ps.Operator.restore(op.query, blob, "sliced") as after:
        after.close(0)
        rows = [row for batch in after for row in batch.to_pylist()]
    assert [row["ts"] for row in rows] == list(range(1, MANY + 1))
    assert {row["n"] for row in rows} == {TUPLES}


@pytest.mark.parametrize("design", DESIGNS)
def test_interrupted_aggregate(design: str) -> None:
    """Ctrl-C. With "sliced" the result is large, with all others there is too much to do."""
    window = HUGE if design == "sliced" else ps.Window(MANY, 1)
    rows = batch_of(LATE) if design == "sliced" else batch_of(*itertools.repeat(MANY, TUPLES))
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    with pytest.raises(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        ps.aggregate(ps.Query(window, None, AGGREGATES), [rows], design=design)


@pytest.mark.parametrize("design", KEEPING)
def test_refusal(design: str) -> None:
    """A tuple in too many windows is refused with its batch; the operator goes on."""
    with ps.Operator(ps.Query(HUGE, None, AGGREGATES), 1, SCHEMA, design) as op:
        op.add(0, batch_of(3))  # in 4 windows: none starts before 0
        with pytest.raises(ps.OverlapError, match=r"input 0, row 1: timestamp 2199023255552 falls .*design='sliced'"):
            op.add(0, batch_of(4, LATE))
        with pytest.raises(ValueError, match=f"timestamp {WINDOWS_MAX} falls into more than 1,048,576 windows"):
            op.add(0, batch_of(WINDOWS_MAX))
        assert op.stats()["tuples_in"] == 1
        op.heartbeat(0, LATE)
        op.close(0)
        assert [row for batch in op for row in batch.column("n").to_pylist()] == [1, 1, 1, 1]


@pytest.mark.parametrize("design", KEEPING)
def test_a_day_by_a_millisecond(design: str) -> None:
    table = pa.table({"ts": pa.array([datetime(2020, 1, 1, tzinfo=UTC)], pa.timestamp("ms", "UTC")), "x": [1.0]})
    with pytest.raises(ps.OverlapError, match="row 0"):
        ps.aggregate(ps.Query(DAY_BY_MS, None, AGGREGATES), [table], design=design)


def test_a_day_by_a_millisecond_with_slices() -> None:
    schema = pa.schema([("ts", pa.timestamp("ms")), ("x", pa.float64())])
    with ps.Operator(ps.Query(DAY_BY_MS, None, AGGREGATES), 1, schema, max_pending=1000) as op:
        op.add(0, pa.record_batch({"ts": [datetime(2020, 1, 1)], "x": [1.0]}, schema))  # noqa: DTZ001 - without a zone
        op.close(0)
        assert next(iter(op)).column("n")[0].as_py() == 1
        op.end(discard=True)  # the other 86,399,999 windows


def test_user_functions_have_no_other_design() -> None:
    class Nothing:
        def process_tuple(self, row: object) -> None:
            pass

        def produce_out_tuple(self) -> int:
            return 0

    query = ps.Query(HUGE, None, {"u": ps.udf(Nothing)})
    with (
        ps.Operator(query, 1, SCHEMA) as op,
        pytest.raises(ps.OverlapError, match="'runs' keeps each of them; a user function needs a larger advance"),
    ):
        op.add(0, batch_of(LATE))


def test_slices() -> None:
    """2**40 windows of one tuple: they come as they are read, and go on behind a snapshot."""
    query = ps.Query(HUGE, None, AGGREGATES)
    op = ps.Operator(query, 1, SCHEMA, max_pending=1000)
    op.add(0, batch_of(LATE))
    op.close(0)
    got = [row["ts"] for batch in itertools.islice(op, 5) for row in batch.to_pylist()]
    blob = op.snapshot()
    assert op.stats()["rows_out"] < 100_000
    op.end()
    for design in KEEPING:
        with pytest.raises(ps.OverlapError, match="the snapshot: timestamp 2199023255552 falls"):
            ps.Operator.restore(query, blob, design)
    with ps.Operator.restore(query, blob, max_pending=1000) as after:
        got += [row["ts"] for batch in itertools.islice(after, 5) for row in batch.to_pylist()]
        assert after.stats()["windows_open"] > 0
        after.end(discard=True)
    assert got == list(range(LATE - 2**40 + 1, LATE - 2**40 + 1 + len(got)))


def test_partials() -> None:
    """Windows of partials come in batches, as they are asked for."""
    query = ps.Query(HUGE, None, AGGREGATES)
    fold, whole = Fold(query, SCHEMA), Combine(query, SCHEMA)
    whole.add([*fold.add(batch_of(LATE)), *fold.finish()])
    got = [ts for batch in itertools.islice(whole.finish(), 3) for ts in batch.column("ts").to_pylist()]
    assert got == list(range(LATE - 2**40 + 1, LATE - 2**40 + 1 + len(got)))
    assert len(got) > 1000


def test_w_hive() -> None:
    with ps.WHive(HUGE, ps.count(), threads=1) as hive:
        with pytest.raises(ps.OverlapError, match=r"thread 0: timestamp 2199023255552 .*design='sliced'"):
            hive.update_windows(LATE, "k", None, 0)
        with pytest.raises(ps.OverlapError, match="thread 0, row 1"):
            hive.update_windows_batch([1, LATE], ["k", "k"], [None, None], 0)
        hive.update_windows(1, "k", None, 0)
        hive.heartbeat(0, LATE)
        assert [hive.get_next_winset() for _ in range(3)] == [(0, {"k": 1}), (1, {"k": 1}), None]
