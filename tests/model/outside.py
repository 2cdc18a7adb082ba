"""What can be seen of an execution from outside."""

from __future__ import annotations


def seen_from_outside(found) -> tuple:
    """What every call returned and which calls ended before it began, whatever the times and the order of the rest."""
    numbers = sorted(range(len(found.history)), key=lambda i: (found.history[i].thread, found.history[i].invoked))
    name = {i: n for n, i in enumerate(numbers)}
    return tuple(
        (c.thread, c.name, c.args, c.pending or repr(c.result), frozenset(name[j] for j in found.after[i]))
        for i, c in ((i, found.history[i]) for i in numbers)
    )
