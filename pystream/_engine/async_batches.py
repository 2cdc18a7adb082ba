"""`async for batch in op`: read an operator from an event loop that never blocks and never polls.

While there is nothing to read, the operator's output thread holds one end of a pipe and the loop the other: the first
finished row writes one byte, which wakes the task. The pipe exists only while a task waits, so nothing is left behind
by a loop that breaks off, is cancelled or is forgotten; and a batch is taken in the same step in which it is handed to
the task, so cancelling loses none (nor does an exception: handover.py).
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from pystream._engine.handover import Outbox
    from pystream._native import OperatorHandle


class AsyncBatches:
    """The finished rows of one operator, as they come, until all inputs are closed and all rows are out."""

    def __init__(
        self, take: Callable[[], list[pa.RecordBatch]], outbox: Outbox[pa.RecordBatch], handle: OperatorHandle
    ) -> None:
        self._take = take
        self._outbox = outbox
        self._handle = handle

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> pa.RecordBatch:
        await asyncio.sleep(0)  # other tasks get their turn even if there is always something to read
        while True:
            for batch in self._look():
                return batch
            await self._wait()

    def _look(self) -> list[pa.RecordBatch]:
        try:
            return self._take()
        except StopIteration:
            raise StopAsyncIteration from None

    async def _wait(self) -> None:
        """Wait until there are rows, or the end, or an error."""
        for reading, writing in iter(os.pipe, None):  # a loop names them before an exception can come
            try:
                await self._byte(reading, writing)
            finally:
                try:
                    os.close(reading)
                finally:
                    os.close(writing)
            return

    async def _byte(self, reading: int, writing: int) -> None:
        loop = asyncio.get_running_loop()
        woken = asyncio.Event()
        try:
            if not self._handle.watch(writing):
                raise RuntimeError("another task already waits for this operator's output")
            try:
                if not self._outbox:  # what a snapshot put aside between the last look and now wakes nobody
                    loop.add_reader(reading, woken.set)
                    await woken.wait()
            finally:
                loop.remove_reader(reading)
        finally:
            self._handle.unwatch(writing)
