"""What the structures under the model must do: the sequential object of a program's subject, and the judge."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pystream.verify.linearizability import (
    Call,
    Refusal,
    Sequential,
    SequentialPaneHive,
    SequentialQueue,
    SequentialRunGate,
    SequentialTGate,
    SequentialWHive,
    SequentialWinSet,
    check,
)
from pystream.verify.scheduler.order import explained

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pystream.verify.scheduler.program import Program
    from pystream.verify.scheduler.run import Run


class WholeWinSet(SequentialWinSet):
    """SequentialWinSet with all keys in one state: `explained` does not take histories apart."""

    def initial(self) -> Any:
        """No windows."""
        return ()

    def step(self, state: Any, call: Call) -> Any:
        """As SequentialWinSet, in the state of the call's key."""
        windows = dict(state)
        after = super().step(windows.get(call.args[0]), call)
        if isinstance(after, Refusal):
            return after
        return tuple(sorted({**windows, call.args[0]: after}.items()) if after is not None else state)


def _first(values: Sequence[Any]) -> Any:
    return values[0]


OBJECTS: dict[str, Callable[[tuple[int, ...]], Sequential[Any]]] = {
    "t_gate": lambda p: SequentialTGate(*p[:2]),
    "w_hive": lambda p: SequentialWHive(p[0], p[1], p[2], function=max if p[5:6] == (1,) else sum),
    "win_set": lambda _: WholeWinSet(),
    "ms_queue": lambda _: SequentialQueue(),
    "run_gate": lambda p: SequentialRunGate(*p[:2]),
    "pane_hive": lambda p: SequentialPaneHive(p[0], p[1], p[2], function=_first if p[3] else sum),
}


def sequential_of(program: Program) -> Sequential[Any] | None:
    """The sequential object of the program's subject, if there is one."""
    made = OBJECTS.get(program.subject)
    return made(tuple(program.parameters)) if made else None


def complaint(run: Run, sequential: Sequential[Any]) -> tuple[Call, list[str]] | None:
    """The call that is wrong first, and why: none of the orders that are left allows its result. None: all is well."""
    if not run.program.weak or run.program.talk:
        verdict = check(run.history, sequential)
        if verdict.culprit is None:
            return None
        return verdict.culprit, list(dict.fromkeys(attempt.why for attempt in verdict.attempts))
    if explained(run, sequential):
        return None
    for last in sorted((c for c in run.history if c.returned is not None), key=lambda c: c.returned or 0):
        if not explained(_until(run, last), sequential):
            return last, [
                "no order of the calls that ended before explains it; memory is weak, and threads do not talk"
            ]
    return None


def _until(run: Run, last: Call) -> Any:
    """The execution as it was when this call returned: what had not returned was pending."""
    end = last.returned or 0
    open_still = [c if c.returned is not None and c.returned <= end else replace(c, returned=None) for c in run.history]
    kept = [i for i, c in enumerate(open_still) if c.invoked <= end]
    number = {i: n for n, i in enumerate(kept)}
    after = [frozenset(number[j] for j in run.after[i] if j in number) for i in kept]
    return replace(run, history=[open_still[i] for i in kept], after=after)
