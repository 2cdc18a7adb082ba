"""What an operator tells of itself: counters, and which input holds the output back."""

from __future__ import annotations

import time

import pyarrow as pa
import pytest
from threads import patience

import pystream as ps
from pystream.operator import DESIGNS

SCHEMA = pa.schema([("ts", pa.int64()), ("meter", pa.string())])
ALARMS = ps.Query(ps.Window(size=3, advance=2), "meter", {"alarms": ps.count()})


@pytest.fixture(params=DESIGNS)
def design(request) -> str:
    return request.param


def alarm(*ts: int, meter: str = "SM1") -> dict[str, list]:
    return {"ts": list(ts), "meter": [meter] * len(ts)}


def settled(op: ps.Operator, pending: int) -> ps.Operator:
    """Wait until so many tuples are pending: the operator has done what it can with the others."""
    for _ in patience():
        if op.stats()["pending"] == pending:
            break
    return op


def test_the_example_of_the_paper_step_by_step(design):
    """Two inputs, size 3, advance 2: <4, SM1> at the first, <6, SM1> at the second; the one is ready, the other is not.

    windows   0: [0, 3)   2: [2, 5)   4: [4, 7)   6: [6, 9)
    """
    with ps.Operator(ALARMS, inputs=2, schema=SCHEMA, design=design, threads=3) as op:
        # <4, SM1> arrives; the second input has sent nothing, so something earlier may still come
        op.add(0, alarm(4))
        assert op.stats()["pending"] == 1
        assert str(op.explain_stall()) == (
            "input 1 has sent nothing yet and holds the output back: 1 tuple waits; "
            "a tuple of input 1 at 4 or later, heartbeat(1, 4) or close(1) would release the first"
        )

        # <6, SM1> arrives at the second: now <4, SM1> is ready and goes into windows 2 and 4, <6, SM1> waits
        op.add(1, alarm(6))
        assert settled(op, 1).poll() == []
        assert op.stats()["position"] == (4, 0)
        stall = op.explain_stall()
        assert (stall.input, stall.since, stall.waiting, stall.needs) == (
            0,
            4,
            1,
            7,
        )  # at 6 it may send another one before <6, SM1>

        # the first input comes to 7: <6, SM1> is ready and goes into windows 4 and 6, and window 2 is put out
        op.add(0, alarm(7))
        settled(op, 1)
        assert rows(op, 1) == [{"ts": 2, "meter": "SM1", "alarms": 1}]

        # the end: everything that is left comes out
        op.close(0)
        op.close(1)
        assert rows(op, 2) == [{"ts": 4, "meter": "SM1", "alarms": 2}, {"ts": 6, "meter": "SM1", "alarms": 2}]
        assert op.explain_stall() is None


def rows(op: ps.Operator, n: int) -> list[dict]:
    got = []
    for _ in patience():
        got += [row for batch in op.poll() for row in batch.to_pylist()]
        if len(got) >= n:
            break
    return got


def test_stats(design):
    with ps.Operator(ALARMS, inputs=3, schema=SCHEMA, design=design, threads=3) as op:
        assert op.stats() == {
            "tuples_in": 0,
            "pending": 0,
            "windows_open": 0,
            "keys": 0,
            "rows_out": 0,
            "rows_unread": 0,
            "latest": [None, None, None],
            "position": None,
            "bytes_held": op.stats()["bytes_held"],
        }
        before = op.stats()["bytes_held"]
        op.add(0, alarm(0, 1, 4))
        op.add(1, alarm(4, meter="SM2"))
        op.heartbeat(2, 3)
        stats = settled(op, 2).stats()
        assert (stats["tuples_in"], stats["latest"], stats["position"]) == (4, [4, 4, 3], (3, 2))
        assert stats["bytes_held"] > before
        op.heartbeat(2, 4)
        settled(op, 1)  # (4, 1) waits for input 0, which may send another (4, 0)
        op.heartbeat(0, 5)
        settled(op, 0)
        assert rows(op, 1) == [{"ts": 0, "meter": "SM1", "alarms": 2}]
        if design != "sliced":  # which holds slices
            assert op.stats()["windows_open"] == 4  # 2 and 4, for both meters
        assert op.stats()["rows_out"] == 1
        for input in range(3):
            op.close(input)
        assert len(rows(op, 4)) == 4
        assert list(op) == []
        assert op.stats()["windows_open"] == 0


def test_a_dead_input_is_explained_and_closing_it_releases_everything(design):
    with ps.Operator(ALARMS, inputs=4, schema=SCHEMA, design=design, threads=3) as op:
        assert op.explain_stall() is None  # nothing waits
        for input in (0, 1, 3):
            op.add(input, alarm(*range(100)))
        op.heartbeat(2, 40)
        stall = settled_stall(op)
        assert (stall.input, stall.since, stall.behind) == (2, 40, ())
        assert stall.waiting == 59 + 59 + 60  # (40, 0) and (40, 1) are ready, (40, 3) is not
        assert stall.needs == 41
        assert "input 2 has been at timestamp 40 and holds the output back: 178 tuples wait" in str(stall)
        op.close(2)
        for input in (0, 1, 3):
            op.close(input)
        assert sum(row["alarms"] for batch in op for row in batch.to_pylist() if row["ts"] == 50) == 9
        assert op.explain_stall() is None


def settled_stall(op: ps.Operator) -> ps.Stall:
    for _ in patience():
        if op.stats()["pending"] == op.explain_stall().waiting:
            break
    return op.explain_stall()


def test_windows_wait_although_no_tuple_does(design):
    """All tuples are merged; a window stays open because one input has not promised enough."""
    with ps.Operator(ALARMS, inputs=3, schema=SCHEMA, design=design, threads=3) as op:
        op.add(0, alarm(1))
        op.heartbeat(1, 1)
        op.heartbeat(2, 1)
        settled(op, 0)
        assert op.explain_stall() is None  # all inputs stand at 1: none holds back another
        op.heartbeat(0, 30)
        assert op.explain_stall() is None  # 1 and 2 still stand together
        op.heartbeat(2, 30)
        for _ in patience():  # in "sliced" the window is open once the output thread has read the slice
            if stall := op.explain_stall():
                break
        assert (stall.input, stall.since, stall.waiting, stall.windows_open, stall.needs) == (1, 1, 0, 1, 3)
        assert str(stall) == (
            "input 1 has been at timestamp 1 and holds the output back: 1 window is open; "
            "a tuple of input 1 at 3 or later, heartbeat(1, 3) or close(1) would release the first"
        )
        op.heartbeat(1, 3)
        assert rows(op, 1) == [{"ts": 0, "meter": "SM1", "alarms": 1}]


def test_inputs_that_are_behind_too_are_named():
    with ps.Operator(ALARMS, inputs=3, schema=SCHEMA) as op:
        op.add(0, alarm(9, 9))
        assert str(op.explain_stall()) == (
            "input 1 has sent nothing yet and holds the output back: 2 tuples wait; a tuple of input 1 at 9 or later, "
            "heartbeat(1, 9) or close(1) would release the first, once inputs 2 are there too"
        )


def test_times_are_told_as_times():
    query = ps.Query(ps.Window("1m"), None, {"n": ps.count()})
    with ps.Operator(query, 2, pa.schema([("ts", pa.timestamp("ms"))])) as op:
        op.heartbeat(1, 0)
        op.add(0, {"ts": pa.array([90_500], pa.timestamp("ms"))})
        stall = op.explain_stall()
    assert (stall.since, stall.needs) == (0, 90_500)
    assert "input 1 has been at timestamp 1970-01-01T00:00:00 " in str(stall)
    assert "a tuple of input 1 at 1970-01-01T00:01:30.500 or later" in str(stall)


def test_sleeping_operators_take_no_time(design):
    """CPU time, not time: nobody polls or spins."""
    operators = [ps.Operator(ALARMS, 20, SCHEMA, design=design, threads=2) for _ in range(3)]
    for op in operators:
        op.add(0, alarm(1))
    settled(operators[-1], 1)
    before = time.process_time()
    time.sleep(0.2)
    assert time.process_time() - before < 0.1
    for op in operators:
        op.end()
