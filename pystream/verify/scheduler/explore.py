"""All executions of a small program, and the distinct histories they have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pystream.verify.scheduler._library import KINDS, VERDICTS, Library
from pystream.verify.scheduler.program import Decision, Prepared, Program
from pystream.verify.scheduler.run import Run, history_of, run

if TYPE_CHECKING:
    from collections.abc import Callable

    from pystream.verify.linearizability import Call


@dataclass(frozen=True)
class Found:
    """One distinct history, the decisions of the first execution that had it, and how many executions did."""

    history: list[Call]
    after: list[frozenset[int]]
    decisions: list[Decision]
    verdict: str
    seen: int


@dataclass(frozen=True)
class Exploration:
    """What `explore` saw."""

    program: Program
    executions: int
    blocked: int  # executions given up early because what would follow had been explored
    steps: int
    bad: int
    whole: bool
    longest: int
    gap: int
    bound: int
    probes: int
    verdict: str
    text: str
    histories: list[Found] = field(repr=False)
    build: Library | None = field(repr=False, default=None)

    @property
    def fine(self) -> bool:
        """Whether everything within the bounds was explored and nothing was wrong with memory and progress."""
        return self.whole and not self.bad

    def first_bad(self, is_right: Callable[[Found], Any] | None = None) -> Run | None:
        """An execution, of those with the fewest decisions, with a bad verdict or a history that is not right."""
        wrong = [h for h in self.histories if h.verdict != "fine" or (is_right is not None and not is_right(h))]
        if not wrong:
            return None
        return run(self.program, min(wrong, key=lambda found: len(found.decisions)).decisions, self.build)


def explore(
    program: Program,
    *,
    executions: int = 1_000_000,
    reduce: bool = True,
    preemptions: int | None = None,
    stale: int = 0,
    failures: int = 0,
    kills: int = 0,
    probe: bool = False,
    keep_going: bool = False,
    build: Library | None = None,
) -> Exploration:
    """Run every execution within the bounds.

    executions   stop after so many; then the result is not `whole`
    reduce       leave out executions that differ from another one only in the order of independent steps
    preemptions  switches away from a thread that could go on, at most; switches reduction off
    stale        stale loads and late stores per execution, at most (the program's memory must be weak)
    failures     allocations that fail, at most
    kills        threads that stop for ever, at most
    probe        from every state and for every set of stalled threads, let the others run: `bound` is the largest
                 number of steps until one of their calls ended
    keep_going   explore on after something went wrong; what would have followed the bad steps stays unknown, and with
                 reduction so do executions that only it would have led to
    """
    prepared = Prepared(program, build)
    ffi = prepared.library.ffi
    found, outcome = ffi.new("model_found *"), ffi.new("model_outcome *")
    bounds = {
        "executions": executions,
        "reduce": reduce,
        "preemptions": -1 if preemptions is None else preemptions,
        "stale": stale if program.weak else 0,
        "failures": failures,
        "kills": kills,
        "probe": probe,
        "keep_going": keep_going,
    }
    with prepared as lib:
        lib.model_explore(prepared.program, ffi.new("model_bounds *", bounds), found, outcome)
        histories = [_found(program, prepared, found.history[i]) for i in range(found.histories)]
    numbers = {
        name: getattr(found, name)
        for name in ("executions", "blocked", "steps", "bad", "longest", "gap", "bound", "probes")
    }
    return Exploration(
        program=program,
        whole=bool(found.whole),
        verdict=VERDICTS[outcome.verdict],
        text=prepared.library.text(outcome.text),
        histories=histories,
        build=build,
        **numbers,
    )


def _found(program: Program, prepared: Prepared, history: Any) -> Found:
    decisions = [
        Decision(KINDS[d.kind], d.step, d.value) for d in (history.decision[i] for i in range(history.decisions))
    ]
    calls, after = history_of(program.subject, prepared.calls, history.answer)
    return Found(calls, after, decisions, VERDICTS[history.verdict], history.seen)
