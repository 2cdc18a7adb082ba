"""What can be seen of an execution from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pystream.linearizability import Call


def seen_from_outside(history: list[Call]) -> tuple:
    """What every call returned and which calls ended before it began, whatever the times."""
    calls = sorted(history, key=lambda c: (c.thread, c.invoked))
    name = {id(c): i for i, c in enumerate(calls)}
    return tuple(
        (
            c.thread,
            c.name,
            c.args,
            c.pending or c.result,
            frozenset(name[id(d)] for d in calls if d.returned is not None and d.returned < c.invoked),
        )
        for c in calls
    )
