"""Operators in an event loop: `async for`, `add_async`, cancelling; the loop goes on and nothing is left behind."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest

import pystream as ps
from pystream._engine.reading import Output

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64())])
COUNT = ps.Query(ps.Window(10), "k", {"n": ps.count()})

pytestmark = pytest.mark.usefixtures("no_descriptor_left")


def descriptors() -> list[str]:
    return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())


@pytest.fixture
def no_descriptor_left(nothing_left):
    before = descriptors()
    yield
    gc.collect()
    assert descriptors() == before


def batch(*ts: int) -> dict[str, list[int]]:
    return {"ts": list(ts), "k": [1] * len(ts)}


async def turns(n: int = 20) -> None:
    """Let other tasks go as far as they can without anything happening outside the loop."""
    for _ in range(n):
        await asyncio.sleep(0)


async def waiting(op: ps.Operator) -> asyncio.Task[pa.RecordBatch]:
    """A task that waits for the operator's next batch."""
    task = asyncio.create_task(anext(aiter(op)))
    await turns()
    assert not task.done()
    return task


def test_batches_come_as_they_are_finished_until_the_end():
    async def scenario():
        got = []
        with ps.Operator(COUNT, 2, SCHEMA) as op:
            reader = asyncio.create_task(collect(op, got))
            for ts in (5, 15, 25):
                op.add(0, batch(ts))
                op.add(1, batch(ts))
                while len(got) < ts // 10:  # noqa: ASYNC110 - what is waited for is another task's work
                    await asyncio.sleep(0.001)
                assert [row["ts"] for row in got] == list(range(0, ts // 10 * 10, 10))
            op.close(0)
            op.close(1)
            await reader
        return got

    assert asyncio.run(scenario()) == [{"ts": ts, "k": 1, "n": 2} for ts in (0, 10, 20)]


async def collect(op: ps.Operator, into: list) -> None:
    async for out in op:
        into += out.to_pylist()


def test_the_loop_turns_while_a_task_waits_and_nobody_polls(monkeypatch):
    """One look before waiting, one after the wake-up."""
    takes = []
    take = Output.take
    monkeypatch.setattr(Output, "take", lambda output, ms: takes.append(ms) or take(output, ms))

    async def scenario():
        with ps.Operator(COUNT, 1, SCHEMA) as op:
            task = await waiting(op)
            await asyncio.sleep(0.15)  # three times as long as a blocking reader would sleep at a time
            assert takes == [0]
            op.add(0, batch(1, 11))
            assert (await task).num_rows == 1
            assert takes == [0, 0]

    asyncio.run(scenario())


def test_a_reader_that_always_finds_something_lets_others_run():
    async def scenario():
        ticks = 0

        async def ticker():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        other = asyncio.create_task(ticker())
        with ps.Operator(ps.Query(ps.Window(1), None, {"n": ps.count()}), 1, SCHEMA, max_pending=4) as op:
            feeder = threading.Thread(target=lambda: ([op.add(0, batch(i)) for i in range(200)], op.close(0)))
            feeder.start()
            batches = [out async for out in op]
            feeder.join()
        assert sum(b.num_rows for b in batches) == 200
        assert ticks >= len(batches)
        other.cancel()

    asyncio.run(scenario())


def test_cancelling_a_wait_loses_nothing():
    async def scenario():
        with ps.Operator(COUNT, 1, SCHEMA) as op:
            for _ in range(3):
                task = await waiting(op)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(aiter(op)), 0.01)
            op.add(0, batch(1, 11, 21))
            op.close(0)
            return [row["ts"] async for out in op for row in out.to_pylist()]

    assert asyncio.run(scenario()) == [0, 10, 20]


def test_rows_that_come_while_the_wait_is_cancelled_are_read_later():
    """The byte is written, the task is cancelled before it runs again; over and over, at different moments."""

    async def scenario():
        query = ps.Query(ps.Window(1), None, {"n": ps.count()})
        got = []
        with ps.Operator(query, 1, SCHEMA) as op:
            for ts in range(100):
                task = await waiting(op)
                op.add(0, batch(ts))
                op.heartbeat(0, ts + 1)
                await turns(ts % 3)
                task.cancel()
                done = (await asyncio.gather(task, return_exceptions=True))[0]
                got += done.to_pylist() if isinstance(done, pa.RecordBatch) else []
                while len(got) <= ts:
                    got += (await anext(aiter(op))).to_pylist()
        return [row["ts"] for row in got]

    assert asyncio.run(scenario()) == list(range(100))


def test_breaking_off_and_reading_on():
    async def scenario():
        with ps.Operator(COUNT, 1, SCHEMA) as op:
            op.add(0, batch(1, 11))
            async for out in op:
                assert out["ts"].to_pylist() == [0]
                break
            op.close(0)
            assert [row["ts"] async for out in op for row in out.to_pylist()] == [10]
            assert [out async for out in op] == []  # still at the end

    asyncio.run(scenario())


def test_ending_the_operator_wakes_the_task():
    async def scenario():
        op = ps.Operator(COUNT, 1, SCHEMA)
        task = await waiting(op)
        op.end()
        with pytest.raises(ps.ClosedError, match="the operator has ended"):
            await task
        with pytest.raises(ps.ClosedError, match="the operator has ended"):
            await anext(aiter(op))

    asyncio.run(scenario())


def test_errors_surface_in_the_task_that_reads():
    async def scenario(query, message, error):
        with ps.Operator(query, 1, SCHEMA) as op:
            task = await waiting(op)
            op.add(0, {"ts": [1, 1], "k": [2**62, 2**62]})
            op.close(0)
            with pytest.raises(error, match=message):
                await task

    overflow = ps.Query(ps.Window(10), None, {"total": ps.sum("k")})
    asyncio.run(scenario(overflow, "does not fit into int64 in the window starting at 0", ps.SumOverflowError))
    failing = ps.Query(ps.Window(10), None, {"mine": ps.udf(Failing)})
    asyncio.run(scenario(failing, r"mine, window starting at 0, key \(\): user code raised ValueError", ps.UdfError))


class Failing:
    def process_tuple(self, _row):
        raise ValueError("no")

    def produce_out_tuple(self):
        raise AssertionError


def test_a_second_task_that_waits_is_refused():
    async def scenario():
        with ps.Operator(COUNT, 1, SCHEMA) as op:
            first = await waiting(op)
            with pytest.raises(RuntimeError, match="another task already waits"):
                await asyncio.wait_for(anext(aiter(op)), 10)
            op.add(0, batch(1, 11))
            assert (await first)["ts"].to_pylist() == [0]

    asyncio.run(scenario())


def test_a_loop_that_ends_with_a_task_waiting():
    async def scenario(op):
        await waiting(op)

    with ps.Operator(COUNT, 1, SCHEMA) as op:
        asyncio.run(scenario(op))
        op.add(0, batch(1))
        op.close(0)
        assert sum(b.num_rows for b in op) == 1


def test_many_operators_in_one_loop():
    async def one(n):
        with ps.Operator(COUNT, 1, SCHEMA) as op:
            task = await waiting(op)
            await op.add_async(0, batch(n, n + 10))
            op.close(0)
            return (await task).num_rows + sum([b.num_rows async for b in op])

    async def scenario():
        return await asyncio.gather(*(one(n) for n in range(30)))

    assert asyncio.run(scenario()) == [2] * 30


def test_rows_that_a_snapshot_puts_aside_just_before_the_wait_are_seen(monkeypatch):
    async def scenario():
        with ps.Operator(COUNT, 1, SCHEMA) as op:
            watch = op.engine.handle.watch

            def snapshot_first(descriptor):
                op.add(0, batch(1, 11))
                while op.stats()["rows_out"] == 0:
                    time.sleep(0.001)
                op.snapshot()  # takes the rows out of the core and keeps them for whoever reads next
                return watch(descriptor)

            monkeypatch.setattr(op.engine.handle, "watch", snapshot_first)
            return (await asyncio.wait_for(anext(aiter(op)), 10)).to_pylist()

    assert asyncio.run(scenario()) == [{"ts": 0, "k": 1, "n": 1}]


# ---- adding ----


def test_add_async_waits_for_room_and_the_loop_goes_on():
    """Feeding and reading from one loop, with room for four tuples: a blocking add would wait for ever."""
    query = ps.Query(ps.Window(1), None, {"n": ps.count()})

    async def scenario():
        got = []
        with ps.Operator(query, 2, SCHEMA, max_pending=4) as op:

            async def feed(input):
                for ts in range(100):
                    await op.add_async(input, batch(ts))
                op.close(input)

            await asyncio.gather(feed(0), feed(1), collect(op, got))
        return got

    assert asyncio.run(scenario()) == [{"ts": ts, "n": 2} for ts in range(100)]


def test_cancelling_add_async_leaves_the_input_as_it_was():
    async def scenario():
        with ps.Operator(COUNT, 2, SCHEMA, max_pending=2) as op:
            await op.add_async(0, batch(1, 2))
            task = asyncio.create_task(op.add_async(0, batch(3)))
            await turns()
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert op.stats()["tuples_in"] == 2

    asyncio.run(scenario())


def test_add_async_says_what_is_wrong():
    async def scenario():
        op = ps.Operator(COUNT, 2, SCHEMA, max_pending=2)
        await op.add_async(0, batch(1, 2))
        with pytest.raises(ps.DisorderError, match="input 0, row 0: timestamp 1 is below 2"):
            await op.add_async(0, batch(1))
        with pytest.raises(ValueError, match="input must be between 0 and 1"):
            await op.add_async(2, batch(1))
        task = asyncio.create_task(op.add_async(0, batch(3)))
        await turns()
        op.end()
        with pytest.raises(ps.ClosedError):
            await task

    asyncio.run(scenario())


# ---- the descriptor itself ----


def test_a_descriptor_is_written_to_once_and_never_after_it_is_taken_back():
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    handle = ps.Operator(COUNT, 1, SCHEMA).engine.handle
    try:
        assert handle.watch(writing)
        assert not handle.watch(writing)
        handle.unwatch(reading)  # not the one that is there
        assert not handle.watch(writing)
        handle.unwatch(writing)
        handle.end()
        with pytest.raises(BlockingIOError):
            os.read(reading, 10)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_descriptor_is_written_to_at_once_when_rows_are_there():
    reading, writing = os.pipe()
    try:
        with ps.Operator(COUNT, 1, SCHEMA) as op:
            op.add(0, batch(1, 11))
            while op.stats()["rows_out"] == 0:
                time.sleep(0.001)
            assert op.engine.handle.watch(writing)
            assert os.read(reading, 10) == b"\0"
            op.close(0)
            assert sum(b.num_rows for b in op) == 2
            assert op.engine.handle.watch(writing)  # at the end, too
            assert os.read(reading, 10) == b"\0"
    finally:
        os.close(reading)
        os.close(writing)
