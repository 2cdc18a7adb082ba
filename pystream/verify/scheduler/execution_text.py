"""An execution as a person reads it: one column per thread, one line per access, and a line that runs it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pystream.verify.scheduler.run import Access, Run

WIDTH_MAX = 58


def show(run: Run) -> str:
    """The execution as text: verdict, accesses of each thread in order, and how to run it again."""
    threads = sorted({access.thread for access in run.trace})
    cells = [(access, told(run, access)) for access in run.trace]
    width = {t: max(len(text) for access, text in cells if access.thread == t) for t in threads}
    width = {t: max(min(w, WIDTH_MAX), len(f"thread {t}")) for t, w in width.items()}
    lines = [f"{run.verdict}: {run.text}" if run.text else run.verdict, ""]
    lines.append("step  " + "  ".join(f"thread {t}".ljust(width[t]) for t in threads))
    for access, text in cells:
        step = "" if access.step < 0 or access.kind in ("call", "return") else str(access.step)
        columns = [(text if t == access.thread else "").ljust(width[t]) for t in threads]
        lines.append(f"{step:>4}  {'  '.join(columns)}".rstrip())
    lines += ["", *(f"{call} by thread {call.thread}" for call in run.history), "", f"replay: {replay(run)}"]
    return "\n".join(lines)


def replay(run: Run) -> str:
    """One line of Python that shows the execution again."""
    return f"show(run({run.program!r}, {[tuple(d) for d in run.decisions]!r}))"


def told(run: Run, access: Access) -> str:
    """One access, or the beginning or end of a call, in a few words."""
    if access.kind in ("call", "return", "local"):
        return _told_call(run, access)
    stale = f" [{access.back} back]" if access.back else ""
    arrow = "->" if access.kind in ("load", "failed swap") else "<-"
    text = f"{access.where} {access.label}: {access.accessor} {access.cell} {arrow} {access.value}{stale}"
    return text + (" failed" if access.kind == "failed swap" else "")


def _told_call(run: Run, access: Access) -> str:
    name, *arguments = run.program.calls()[access.call][1]
    call = f"{name}({', '.join(map(str, arguments))})"
    if access.kind == "call":
        return f"{call} begins"
    if access.kind == "local":
        return f"{call} touches nothing shared"
    mine = [number for number, (thread, _) in enumerate(run.program.calls()) if thread == access.thread]
    made = [c for c in run.history if c.thread == access.thread]
    return f"{call} returns {made[mine.index(access.call)].result!r}"
