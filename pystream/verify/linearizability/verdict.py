"""What a checker found, and how it tells a person."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Hashable

    from pystream.verify.linearizability.history import Call

#: How many moments around the violation the report draws, and how wide a column may be.
MOMENTS_MAX = 40
COLUMN_MAX = 34


@dataclass(frozen=True)
class Attempt:
    """One way to order the calls before the one that cannot be placed, and why it still cannot."""

    order: list[Call]
    state: Any
    why: str


@dataclass(frozen=True)
class Verdict:
    """True if the history is linearizable; otherwise `report()` tells why not.

    `order` is an order of the calls that explains the history, or, if there is none, the longest beginning of the
    history, up to the return of `culprit`. `explored` counts the configurations looked at.
    """

    history: list[Call]
    order: list[Call] = field(default_factory=list)
    culprit: Call | None = None
    attempts: list[Attempt] = field(default_factory=list)
    explored: int = 0

    @property
    def linearizable(self) -> bool:
        """Whether every call found a place."""
        return self.culprit is None

    def __bool__(self) -> bool:
        return self.linearizable

    def report(self) -> str:
        """Tell in words and columns what happened; one line if all is well."""
        if self.culprit is None:
            return f"linearizable: {len(self.history):,} calls, {self.explored:,} configurations"
        lines = [f"not linearizable: no place for {self.culprit} by {self.culprit.thread!r}", ""]
        lines += _columns(self.history, self.culprit)
        for number, attempt in enumerate(_distinct(self.attempts), 1):
            lines += ["", *_told(number, attempt)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.report()


def _distinct(attempts: list[Attempt]) -> list[Attempt]:
    """One attempt per reason, the one that places most calls: it says best what is missing."""
    best: dict[str, Attempt] = {}
    for attempt in attempts:
        if attempt.why not in best or len(attempt.order) > len(best[attempt.why].order):
            best[attempt.why] = attempt
    return list(best.values())


def _told(number: int, attempt: Attempt) -> list[str]:
    shown = attempt.order[-MOMENTS_MAX:]
    left_out = len(attempt.order) - len(shown)
    lines = [f"{number}. {attempt.why}"]
    lines += [f"   after {left_out:,} other calls and"] if left_out else ["   after"] if shown else []
    lines += [f"     {call.thread!r}: {call}" for call in shown]
    lines += [f"   the state is {attempt.state!r}"] if attempt.state is not None else []
    return lines


def _columns(history: list[Call], culprit: Call) -> list[str]:
    """A column per thread, a row per moment, up to the return of the call that cannot be placed."""
    last = culprit.returned
    moments = [(call.invoked, 0, call) for call in history]
    moments += [(call.returned, 1, call) for call in history if call.returned is not None]
    moments = sorted((m for m in moments if last is None or m[:2] <= (last, 1)), key=lambda m: m[:2])
    shown = moments[-MOMENTS_MAX:]
    threads = list(dict.fromkeys(call.thread for _, _, call in sorted(shown, key=lambda m: str(m[2].thread))))
    cells = [(when, call.thread, _cell(call, begins=kind == 0, marked=call is culprit)) for when, kind, call in shown]
    width = {
        t: min(COLUMN_MAX, max([len(str(t)), *(len(text) for _, thread, text in cells if thread == t)]))
        for t in threads
    }
    rows = [_row("", {t: str(t) for t in threads}, width)]
    rows += [f"  ({len(moments) - len(shown):,} moments before)"] if len(moments) > len(shown) else []
    running = _running_before(moments[: -len(shown)])
    for (when, thread, text), (_, kind, call) in zip(cells, shown, strict=True):
        rows.append(_row(str(when), {**dict.fromkeys(running, "|"), thread: text}, width))
        running[call.thread] = running.get(call.thread, 0) + (1 if kind == 0 else -1)
        running = {t: n for t, n in running.items() if n > 0}
    return rows


def _running_before(moments: list[tuple[int, int, Call]]) -> dict[Hashable, int]:
    running: dict[Hashable, int] = {}
    for _, kind, call in moments:
        running[call.thread] = running.get(call.thread, 0) + (1 if kind == 0 else -1)
    return {t: n for t, n in running.items() if n > 0}


def _cell(call: Call, *, begins: bool, marked: bool) -> str:
    if begins:
        text = f"{call.name}({', '.join(map(repr, call.args))})"
    else:
        text = f"= {call.result!r}" + (" ???" if marked else "")
    return text if len(text) <= COLUMN_MAX else text[: COLUMN_MAX - 3] + "..."


def _row(when: str, cells: dict[Hashable, str], width: dict[Hashable, int]) -> str:
    return f"{when:>8}  " + "  ".join(cells.get(t, "").ljust(w) for t, w in width.items()).rstrip()
