"""Whether some order of a history's calls explains it, when only a part of their order is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream.verify.linearizability import Refusal

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pystream.verify.linearizability import Call, Sequential
    from pystream.verify.scheduler.explore import Found
    from pystream.verify.scheduler.run import Run


def explained(execution: Run | Found, sequential: Sequential[Any]) -> bool:
    """Whether `sequential` allows some order of the calls in which each comes after those that ended before it began.

    With the order in time this is linearizability, and pystream.verify.linearizability decides it faster and tells
    more. Under weak memory "happened before" is no order in time: two calls may be unordered with each of two that are
    ordered.
    A call that did not end may have taken effect or not. For histories of a few calls.
    """
    history, after = execution.history, execution.after
    needed = {i for i, call in enumerate(history) if not call.pending}
    stack: list[tuple[frozenset[int], Hashable]] = [(frozenset(), sequential.initial())]
    seen = set(stack)
    while stack:
        done, state = stack.pop()
        if needed <= done:
            return True
        for i, call in enumerate(history):
            if i in done or not after[i] <= done:
                continue
            reached = _reach(sequential, state, call)
            if reached is not None and (entry := (done | {i}, reached[0])) not in seen:
                seen.add(entry)
                stack.append(entry)
    return False


def _reach(sequential: Sequential[Any], state: Any, call: Call) -> tuple[Any] | None:
    """The state after the call, if it can come next."""
    after = sequential.step(state, call)
    return None if isinstance(after, Refusal) else (after,)
