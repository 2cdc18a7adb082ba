"""`async for batch in op`: read an operator from an event loop that never blocks and never polls.

While there is nothing to read, the operator's output thread holds one end of a pipe and the loop the other: the first
finished row writes one byte, which wakes the task. The pipe exists only while a task waits, so nothing is left behind
by a loop that breaks off, is cancelled or is forgotten; and a batch is taken in the same step in which it is handed to
the task, so cancelling loses none.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pystream._native import Handle


class AsyncBatches:
    """The finished rows of one operator, as they come, until all inputs are closed and all rows are out."""

    def __init__(self, take: Callable[[], pa.RecordBatch | None], handle: Handle) -> None:
        self._take = take
        self._handle = handle

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        await asyncio.sleep(0)  # other tasks get their turn even if there is always something to read
        batch = self._look()
        while batch is None:
            batch = await self._wait() or self._look()
        return batch

    def _look(self) -> pa.RecordBatch | None:
        try:
            return self._take()
        except StopIteration:
            raise StopAsyncIteration from None

    async def _wait(self) -> pa.RecordBatch | None:
        """Wait until there are rows, or the end, or an error."""
        reading, writing = os.pipe()
        try:
            return await self._byte(reading, writing)
        finally:
            os.close(reading)
            os.close(writing)

    async def _byte(self, reading: int, writing: int) -> pa.RecordBatch | None:
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        if not self._handle.watch(writing):
            raise RuntimeError("another task already waits for this operator's output")
        try:
            batch = self._look()  # what a snapshot put aside between the last look and now wakes nobody
            if batch is None:
                loop.add_reader(reading, woken.set)
                await woken.wait()
            return batch
        finally:
            self._handle.unwatch()
            loop.remove_reader(reading)
