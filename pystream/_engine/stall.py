"""What an operator reports of itself: `Stats`, its counters, and `Stall`, why it emits nothing more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypedDict

import pyarrow as pa

from pystream._engine.time_text import time_text


class Stats(TypedDict):
    """What `Operator.stats` gives: what the operator has done and what it holds.

    >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    >>> with ps.Operator(query, inputs=2, schema=[("ts", "int64")]) as op:
    ...     op.add(0, {"ts": [3, 4]})
    ...     stats: ps.Stats = op.stats()
    >>> stats["tuples_in"], stats["pending"], stats["latest"]
    (2, 2, [4, None])
    """

    tuples_in: int  #: tuples taken so far
    pending: int  #: of them those that are not merged yet
    windows_open: int  #: one per window and key
    keys: int  #: distinct keys that are known
    rows_out: int  #: rows finished, read or not
    rows_unread: int  #: of them those that nobody has read
    latest: list[int | None]  #: timestamp of each input in ticks; None: it has sent nothing
    position: tuple[int, int] | None  #: (timestamp, input) up to which all is ready; None: an input has sent nothing
    bytes_held: int  #: about how much memory it holds, the added batches included


@dataclass(frozen=True, repr=False)
class Stall:
    """What `Operator.explain_stall` found: what everything else waits for.

    Timestamps are in ticks; the text has them as times where the column is a timestamp.

    `reason` is "input": the others wait for one input; or "unread output": no more rows fit beside those that nobody
    has read (then `input`, `since` and `needs` are None).

    >>> query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    >>> with ps.Operator(query, inputs=2, schema=[("ts", "int64")]) as op:
    ...     op.add(0, {"ts": [3, 4]})
    ...     op.explain_stall()
    <Stall: input 1 has sent nothing yet and holds the output back: 2 tuples wait; a tuple of input 1 at 3 or later, \
heartbeat(1, 3) or close(1) would release the first>
    """

    #: The input that holds the others back: of the open ones that with the lowest (latest timestamp, number).
    input: int | None
    #: Its latest timestamp, of a tuple or a heartbeat; None if it has sent nothing at all.
    since: int | None
    #: Tuples of all inputs that cannot be used before it goes on.
    waiting: int
    #: Windows that are open.
    windows_open: int
    #: The timestamp that it must reach for the first tuple, or if none waits the first window, to move.
    needs: int | None
    #: Other open inputs that are not there yet either.
    behind: tuple[int, ...]
    reason: Literal["input", "unread output"] = "input"
    #: Finished rows that nobody has read.
    rows_unread: int = 0
    #: Of the column of timestamps, for the text.
    ts_type: pa.DataType = field(default=pa.int64(), compare=False)

    def __str__(self) -> str:
        return self._unread() if self.input is None else self._input()

    def __repr__(self) -> str:
        return f"<Stall: {self}>"

    def _input(self) -> str:
        since, needs = ("" if ts is None else time_text(ts, self.ts_type) for ts in (self.since, self.needs))
        state = f"has been at timestamp {since}" if since else "has sent nothing yet"
        what = _several(self.waiting, "tuple waits", "tuples wait")
        if not self.waiting:
            what = _several(self.windows_open, "window is open", "windows are open")
        release = f"a tuple of input {self.input} at {needs} or later, heartbeat({self.input}, {needs}) or "
        release += f"close({self.input}) would release the first"
        if self.behind:
            release += f", once inputs {', '.join(map(str, self.behind))} are there too"
        return f"input {self.input} {state} and holds the output back: {what}; {release}"

    def _unread(self) -> str:
        what = _several(self.rows_unread, "finished row is", "finished rows are") + " not read, and no more fit"
        if not self.rows_unread:
            what = "the output is not read, and user functions run only when it is"
        return f"{what}; read the rows: `for batch in op`, `op.read()` or `op.poll()`"


def _several(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def unread(rows: int, counters: dict[str, int]) -> Stall:
    """The stall of an output that is full: `rows` rows wait to be read."""
    return Stall(None, None, counters["pending"], counters["windows"], None, (), "unread output", rows)


def explain(
    stall: dict[str, int], inputs: list[dict[str, int]], windows: int, window: tuple[int, int], ts_type: pa.DataType
) -> Stall | None:
    """What C found, told; None if nothing waits for an input."""
    slowest, latest = stall["input"], stall["latest"]
    if slowest < 0:
        return None
    end = _first_end(latest, *window)
    if not stall["waiting"] and (windows == 0 or end > stall["next"]):
        return None
    needs = stall["first"] if stall["waiting"] else end
    behind = [i for i, one in enumerate(inputs) if i != slowest and not one["closed"] and one["latest"] < needs]
    since = None if latest < 0 else latest
    return Stall(slowest, since, stall["waiting"], windows, needs, tuple(behind), ts_type=ts_type)


def _first_end(latest: int, size: int, advance: int) -> int:
    """The end of the first window that is not complete at this timestamp."""
    return (0 if latest < size else ((latest - size) // advance + 1) * advance) + size
