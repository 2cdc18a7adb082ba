"""Calls of a concurrent structure, and how to record them from Python threads."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `returned` is None for a call that is pending: it may have taken effect or not, `result` means nothing.

    `invoked` and `returned` come from one clock. Calls whose stamps are equal count as overlapping.
    """

    thread: Hashable
    name: str
    args: tuple[Any, ...]
    result: Any
    invoked: int
    returned: int | None

    @property
    def pending(self) -> bool:
        """Whether the call has not returned."""
        return self.returned is None

    def __str__(self) -> str:
        arguments = ", ".join(map(repr, self.args))
        return f"{self.name}({arguments})" + (" is pending" if self.pending else f" = {self.result!r}")


class Recorder:
    """Records calls of Python threads. Any thread may record at any time; read `history()` when all are done.

    The clock is `itertools.count`, whose `next` is one step under the GIL. A call is written down with `returned=None`
    before it begins, so one that never comes back shows as pending.
    """

    def __init__(self) -> None:
        self._clock = itertools.count()
        self._begun: dict[Hashable, list[list[Any]]] = defaultdict(list)

    def call(self, thread: Hashable, name: str, args: tuple[Any, ...], function: Callable[[], Any]) -> Any:
        """Call `function()` and record it as `name(*args)` by `thread`. What it raises is recorded as pending."""
        entry = [thread, name, args, None, next(self._clock), None]
        self._begun[thread].append(entry)
        result = function()
        entry[5] = next(self._clock)
        entry[3] = result
        return result

    def history(self) -> list[Call]:
        """Everything recorded so far, in the order of invocation."""
        entries = itertools.chain.from_iterable(self._begun.values())
        return sorted((Call(*entry) for entry in entries), key=lambda call: call.invoked)


def events_of(history: Iterable[Call]) -> tuple[list[Call], list[tuple[int, bool]]]:
    """The calls by invocation, and all moments in order as (index of the call, whether it returns).

    At equal stamps invocations come first, which makes the calls overlap.
    """
    calls = sorted(history, key=lambda call: call.invoked)
    moments = [(call.invoked, False, i) for i, call in enumerate(calls)]
    for i, call in enumerate(calls):
        if call.returned is None:
            continue
        if call.returned < call.invoked:
            raise ValueError(f"{call} by {call.thread!r} returned at {call.returned}, before {call.invoked}")
        moments.append((call.returned, True, i))
    moments.sort()
    return calls, [(i, returns) for _, returns, i in moments]
