"""An execution as a person reads it: what is wrong first, one column per thread, and a line that runs it again.

Calls that had ended before the first departure, and those of thread 0, are one line each; where the schedule departs
from the usual, it says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pystream.verify.scheduler.naming import Names
from pystream.verify.scheduler.objects import complaint, sequential_of

if TYPE_CHECKING:
    from pystream.verify.linearizability import Call, Sequential
    from pystream.verify.scheduler.program import Decision
    from pystream.verify.scheduler.run import Access, Run

WIDTH_MAX = 58
IMPORTS = "from pystream.verify.scheduler import *"


def show(run: Run, sequential: Sequential[Any] | None = None) -> str:
    """The execution as text: what is wrong, accesses of each thread in order, and how to run it again.

    Histories are judged by `sequential`, or by the sequential object that the subject has in this package.
    """
    names = Names(run)
    found = (
        complaint(run, sequential) if run.fine and (sequential := sequential or sequential_of(run.program)) else None
    )
    culprit = found[0] if found else None
    lines = [*_told_verdict(run, names, found), "", *_columns(run, names, culprit), ""]
    mark = {id(culprit): "   <-- wrong first"}
    lines += [f"{call} by thread {call.thread}{mark.get(id(call), '')}" for call in run.history]
    return "\n".join([*lines, "", f"replay: {replay(run)}"])


def replay(run: Run) -> str:
    """A command that shows the execution again."""
    return f'python -c "{IMPORTS}; print(show(run({run.program!r}, {[tuple(d) for d in run.decisions]!r})))"'


def _told_verdict(run: Run, names: Names, found: tuple[Call, list[str]] | None) -> list[str]:
    if found:
        culprit, reasons = found
        return [
            f"not linearizable: {culprit} by thread {culprit.thread} is wrong first",
            *(f"  {why}" for why in reasons),
        ]
    return [f"{run.verdict}: {names.text(run.text)}" if run.text else run.verdict]


def _columns(run: Run, names: Names, culprit: Call | None) -> list[str]:
    """A column per thread, a row per access; a call that is folded is one row."""
    threads = sorted({access.thread for access in run.trace})
    folded = _folded(run, culprit)
    cells = [(access, told(run, access, names, folded)) for access in run.trace]
    cells = [(access, text) for access, text in cells if text]
    width = {t: max((len(text) for access, text in cells if access.thread == t), default=0) for t in threads}
    width = {t: max(min(w, WIDTH_MAX), len(f"thread {t}")) for t, w in width.items()}
    lines = ["step  " + "  ".join(f"thread {t}".ljust(width[t]) for t in threads)]
    marks = {d.step: d for d in run.decisions if d.kind != "fail"}
    lines += [f"      ---- allocation {d.step} fails ----" for d in run.decisions if d.kind == "fail"]
    running = 0
    for access, text in cells:
        if access.step in marks and access.kind != "return":
            lines.append(_told_decision(marks.pop(access.step), running, access.thread))
        step = "" if access.step < 0 or access.kind in ("call", "return") else str(access.step)
        columns = [(text if t == access.thread else "").ljust(width[t]) for t in threads]
        lines.append(f"{step:>4}  {'  '.join(columns)}".rstrip())
        running = access.thread
    return lines


def _told_decision(decision: Decision, before: int, now: int) -> str:
    if decision.kind == "stale":
        return f"      ---- thread {now} sees {decision.value} back, or writes behind as many ----"
    waits = {"switch": "waits", "kill": "stops for ever", "stall": "waits for all others", "only": "waits"}
    who = f"thread {before} {waits[decision.kind]}, " if before and before != now else ""
    return f"      ---- {decision.kind}: {who}thread {now} goes on ----"


def _folded(run: Run, culprit: Call | None) -> dict[int, int]:
    """The calls of which one line is enough, and how many accesses they made."""
    first = min((d.step for d in run.decisions if d.kind != "fail"), default=len(run.trace))
    accesses: dict[int, int] = {}
    folded: set[int] = set()
    for access in run.trace:
        accesses[access.call] = accesses.get(access.call, 0) + bool(access.accessor)
        if access.kind == "return" and (access.step < first or access.thread == 0):
            folded.add(access.call)
    return {call: accesses[call] for call in folded if _made(run, call) is not culprit}


def _made(run: Run, number: int) -> Call | None:
    """The call of the history that is this one of the program."""
    calls = run.program.calls()
    thread = calls[number][0]
    mine = [other for other, (by, _) in enumerate(calls) if by == thread]
    made = [call for call in run.history if call.thread == thread]
    place = mine.index(number)
    return made[place] if place < len(made) else None


def told(run: Run, access: Access, names: Names, folded: dict[int, int]) -> str:
    """One access, or the beginning or end of a call, in a few words; nothing for what is folded."""
    if access.call in folded:
        what = f"[{folded[access.call]} accesses]"
        return f"{_made(run, access.call)} {what}" if access.kind == "return" else ""
    if access.kind in ("call", "return", "local"):
        return _told_call(run, access)
    stale = f" [{access.back} back]" if access.back else ""
    arrow = "->" if access.kind in ("load", "failed swap") else "<-"
    value = names.value(access)
    text = f"{access.where} {access.label}: {access.accessor} {names.cell(access)} {arrow} {value}{stale}"
    return text + (" failed" if access.kind == "failed swap" else "")


def _told_call(run: Run, access: Access) -> str:
    name, *arguments = run.program.calls()[access.call][1]
    call = f"{name}({', '.join(map(str, arguments))})"
    if access.kind == "call":
        return f"{call} begins"
    if access.kind == "local":
        return f"{call} touches nothing shared"
    made = _made(run, access.call)
    return f"{call} returns {made.result!r}" if made else f"{call} returns"
