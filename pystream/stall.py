"""`Stall`: why no more comes out of an operator."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Stall:
    """What `Operator.explain_stall` found: the input for which all others wait. Timestamps are in ticks."""

    #: The input that holds the others back: of the open ones that with the lowest (latest timestamp, number).
    input: int
    #: Its latest timestamp, of a tuple or a heartbeat; None if it has sent nothing at all.
    since: int | None
    #: Tuples of all inputs that cannot be used before it goes on.
    waiting: int
    #: Windows that are open.
    windows_open: int
    #: The timestamp that it must reach for the first tuple, or if none waits the first window, to move.
    needs: int
    #: Other open inputs that are not there yet either.
    behind: tuple[int, ...]

    def __str__(self) -> str:
        state = "has sent nothing yet" if self.since is None else f"has been at timestamp {self.since}"
        what = _several(self.waiting, "tuple waits", "tuples wait")
        if not self.waiting:
            what = _several(self.windows_open, "window is open", "windows are open")
        release = f"a tuple of input {self.input} at {self.needs} or later, heartbeat({self.input}, {self.needs}) or "
        release += f"close({self.input}) would release the first"
        if self.behind:
            release += f", once inputs {', '.join(map(str, self.behind))} are there too"
        return f"input {self.input} {state} and holds the output back: {what}; {release}"


def _several(n: int, one: str, many: str) -> str:
    return f"{n:,} {one if n == 1 else many}"


def explain(stall: dict[str, int], inputs: list[dict[str, int]], windows: int, window: tuple[int, int]) -> Stall | None:
    """What C found, told; None if nothing waits for an input."""
    slowest, latest = stall["input"], stall["latest"]
    if slowest < 0:
        return None
    end = _first_end(latest, *window)
    if not stall["waiting"] and (windows == 0 or end > stall["next"]):
        return None
    needs = stall["first"] if stall["waiting"] else end
    behind = [i for i, one in enumerate(inputs) if i != slowest and not one["closed"] and one["latest"] < needs]
    return Stall(slowest, None if latest < 0 else latest, stall["waiting"], windows, needs, tuple(behind))


def _first_end(latest: int, size: int, advance: int) -> int:
    """The end of the first window that is not complete at this timestamp."""
    return (0 if latest < size else ((latest - size) // advance + 1) * advance) + size
