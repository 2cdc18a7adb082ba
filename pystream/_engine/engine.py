"""One running operator: its plan, its handle in C, the objects of user functions, and its output.

`Operator` is what users see of an Engine; feeding.py and snapshot.py work on the Engine itself.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystream import _native
from pystream._engine.arguments import a_number
from pystream._engine.plan import Plan
from pystream._engine.reading import Output
from pystream._engine.stall import Stall, explain, unread
from pystream._engine.time_text import disorder_error, time_text
from pystream._engine.user_windows import UdfRunner
from pystream._inputs.ingest import one_batch
from pystream.designs import Design, designs_for
from pystream.errors import ClosedError, OverlapError, PystreamError, SchemaError

if TYPE_CHECKING:
    from pystream.query import Query

INPUTS_MAX = 1 << 16


class Engine:
    """The parts of an operator, and what its callers share. Any thread may call; one thread per input adds."""

    def __init__(
        self, query: Query, inputs: int, schema: pa.Schema, design: Design, max_pending: int, threads: int, levels: int
    ) -> None:
        self.query, self.inputs, self.design = query, inputs, design
        self.plan = plan = Plan(query, schema)
        self.user_windows = UdfRunner(query, plan.udfs, plan.ts_type)
        self.handle = _native.OperatorHandle(
            plan.window,
            plan.column_types,
            plan.column_strings,
            len(query.key),
            plan.aggregates,
            inputs,
            design,
            threads,
            levels,
            max_pending,
        )
        self.output = Output(self.handle, inputs, query, plan, self.user_windows)
        self._batch_numbers = itertools.count()
        self._before = {"tuples_in": 0, "rows_out": 0}
        self._taken_before: list[int] | None = [0] * inputs

    # ---- feeding ----

    def check_input(self, input: int) -> None:
        """Refuse a call out of user code that the operator runs, and the number of an input that there is not."""
        self.output.box.check()
        if not 0 <= a_number(input, "the first argument is the number of an input") < self.inputs:
            raise ValueError(f"input must be between 0 and {self.inputs - 1}, not {input}")

    def one_batch(self, input: int, data: Any) -> pa.RecordBatch | None:
        """What a user adds, as one batch; None when it holds no batch at all."""
        try:
            return one_batch(data, self.plan.sound, self.query)
        except SchemaError as error:
            raise SchemaError(f"input {input}: {error}") from error

    def prepare(self, input: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch's columns as C reads them."""
        try:
            return self.plan.prepare(batch)
        except (SchemaError, pa.ArrowException) as error:
            raise SchemaError(f"input {input}: {error}") from error

    def add(
        self, input: int, batch: pa.RecordBatch, *, block: bool = True, timeout: float | None = None, first_row: int = 0
    ) -> bool:
        """Add a batch, waiting for room with `block`. Whether it was taken: False only without `block`.

        `first_row` is the number of its first row within the input, for errors.
        """
        offer = _native.Offer(self.prepare(input, batch))
        deadline = None if timeout is None else time.monotonic() + timeout
        number = next(self._batch_numbers)
        try:
            if self.plan.udfs:
                self.user_windows.remember(number, batch)
            while not self.handle.add(input, number, offer):
                if not block:
                    return False
                self._wait_space(input, batch.num_rows, deadline)
        except _native.Fault as fault:
            raise self.error(fault, input, first_row) from None
        finally:
            if self.plan.udfs and not offer.is_taken:
                self.user_windows.forget(number)
        return True

    def _wait_space(self, input: int, rows: int, deadline: float | None) -> None:
        left = _native.WAIT_MS if deadline is None else (deadline - time.monotonic()) * 1000
        if left < 0:
            raise TimeoutError(f"input {input} had no room for {rows} tuples in time: {self.why_no_room()}")
        self.handle.wait_space(input, rows, int(min(left, _native.WAIT_MS)))

    async def wait_space_async(self, input: int, rows: int) -> None:
        """Wait for room without blocking the event loop."""
        try:
            while not await asyncio.to_thread(self.handle.wait_space, input, rows, _native.WAIT_MS):
                pass
        except _native.Fault as fault:
            raise self.error(fault, input, None) from None

    def why_no_room(self) -> str:
        """Why an input takes nothing at the moment."""
        return str(self.explain_stall() or "the operator is still busy with earlier ones; wait, or add less at a time")

    # ---- counters ----

    def continue_from(self, tuples_in: int, rows_out: int, taken: list[int] | None) -> None:
        """Count on from those of a snapshot; `taken` has the rows of each input, None if the snapshot has none."""
        self._before = {"tuples_in": tuples_in, "rows_out": rows_out}
        self._taken_before = taken

    def counters(self) -> dict[str, int]:
        """What C counts, with what was counted before the snapshot that this operator continues."""
        counters = self.handle.stats()
        return counters | {name: counters[name] + before for name, before in self._before.items()}

    def input_stats(self) -> list[dict[str, int]]:
        """What is known of each input."""
        return [self.handle.input_stats(i) for i in range(self.inputs)]

    def positions(self) -> list[int] | None:
        """How many rows each input has taken since its beginning; None: a snapshot without positions was restored."""
        if self._taken_before is None:
            return None
        return [taken + one["tuples_in"] for taken, one in zip(self._taken_before, self.input_stats(), strict=True)]

    def explain_stall(self) -> Stall | None:
        """Why no more comes out; None: nothing holds the output back."""
        counters = self.handle.stats()
        if self.handle.unread()["full"]:
            return unread(self.output.rows_unread(), counters)
        plan = self.plan
        return explain(self.handle.stall(), self.input_stats(), counters["windows"], plan.window, plan.ts_type)

    # ---- errors ----

    def error(self, fault: _native.Fault, input: int | None, first_row: int | None) -> PystreamError:
        """The exception for a failed call."""
        if _native.is_closed(fault):
            return self._closed_error(input)
        row = None if first_row is None else first_row + fault.row
        where = f"input {input}" if row is None else f"input {input}, row {row}"
        if _native.is_overlap(fault):
            return self.overlap_error(where, fault)
        return disorder_error(fault, where, self.plan.ts_type, self.query.ts, input, row)

    def overlap_error(self, where: str, fault: _native.Fault) -> OverlapError:
        """The exception for a tuple that falls into too many windows."""
        ts = time_text(fault.ts, self.plan.ts_type)
        can = "use design='sliced', or" if "sliced" in designs_for(self.query) else "a user function needs"
        return OverlapError(
            f"{where}: timestamp {ts} falls into more than {_native.WINDOWS_MAX:,} windows, "
            f"and {self.design!r} keeps each of them; {can} a larger advance"
        )

    def _closed_error(self, input: int | None) -> ClosedError:
        if input is None:
            return ClosedError("the operator has ended")
        if self.handle.input_stats(input)["closed"]:
            return ClosedError(f"input {input} is closed: it takes nothing more")
        return ClosedError(f"input {input} takes nothing more: the operator cannot go on; call poll() to get the error")
