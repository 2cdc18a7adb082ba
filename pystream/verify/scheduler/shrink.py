"""A wrong execution made small: no call too many, and of all schedules one with the fewest departures."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pystream.verify.scheduler.explore import explore
from pystream.verify.scheduler.sketch import Sketch, Sketcher

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pystream.verify.scheduler._library import Library
    from pystream.verify.scheduler.program import Decision, Program

#: What the search at the end looks at, per program and bound, and all that making one execution small may run.
EXECUTIONS_MAX = 4_000
STEPS_MAX = 3_000_000
#: Programs whose schedules are searched: longer ones are only tried under the decisions that were found.
CALLS_MAX = 14
BOUND_MAX = 3
PAIRS_MAX = 5  # calls may be needed by each other alone: two of them are left out together


@dataclass
class Shrinker:
    """Makes programs smaller that go wrong, as `is_right` sees it, which judges a program's histories.

    After `steps` accesses of all executions together it ends with what it has.
    """

    is_right: Callable[[Program, Any], Any]
    build: Library | None = None
    simpler: Callable[[Program], Iterator[Program]] = lambda _: iter(())  # fewer inputs, smaller parameters
    steps: int = STEPS_MAX
    _left: int = field(init=False, default=0)

    def smallest(self, program: Program, decisions: Sequence[Decision]) -> tuple[Program, list[Decision]]:
        """A program of which no call can be left out, and a schedule of it with the fewest decisions."""
        self._left = self.steps
        program, kept = self._by_decisions(program, list(decisions))
        return self._by_search(program, kept)

    def _wrong(self, program: Program, decisions: Sequence[Decision]) -> Sketch | None:
        if self._left <= 0:
            return None
        sketch = Sketcher(program, self.build)(decisions)
        self._left -= sketch.steps
        return None if sketch.verdict == "fine" and self.is_right(program, sketch) else sketch

    def _by_decisions(self, program: Program, decisions: list[Decision]) -> tuple[Program, list[Decision]]:
        """Leave out calls and decisions while what is left goes wrong: one execution for each try."""
        going = True
        while going:
            going = False
            for less, fewer in self._tries(program, decisions):
                if self._wrong(less, fewer) is not None:
                    program, decisions, going = less, fewer, True
                    break
        return program, decisions

    def _tries(self, program: Program, decisions: list[Decision]) -> Iterator[tuple[Program, list[Decision]]]:
        for i in range(len(decisions)):
            yield program, decisions[:i] + decisions[i + 1 :]
        points = Sketcher(program, self.build)(decisions).points
        for number, less in without_a_call(program):
            steps = [point.step for point in points if point.call == number]
            for back in sorted({0, len(steps)}, reverse=True):
                yield less, [_moved(d, steps, back) for d in decisions]
        for less in self.simpler(program):
            yield less, decisions

    def _by_search(self, program: Program, decisions: list[Decision]) -> tuple[Program, list[Decision]]:
        """Leave out calls while the search finds a schedule; rearrange what is left where that saves a departure."""
        failing = any(d.kind == "fail" for d in decisions)
        best = self._searched(program, min(len(decisions), BOUND_MAX), failing=failing) or decisions
        going = len(program.calls()) <= CALLS_MAX
        while going:
            going = False
            for less, bound in self._next(program, len(best)):
                found = self._searched(less, min(bound, BOUND_MAX), failing=failing)
                if found is not None and len(found) <= bound:
                    program, best, going = less, found, True
                    break
        return program, best

    def _next(self, program: Program, bound: int) -> Iterator[tuple[Program, int]]:
        """Programs worth a search, and within how many departures they are better than this one."""
        yield from ((less, bound + 1) for _, less in without_a_call(program))
        yield from ((less, bound) for less in self.simpler(program))
        if program.weak and not program.weaken:
            yield replace(program, weak=False, talk=False), bound
        elif program.weak and not program.talk:
            yield replace(program, talk=True), bound
        if bound:
            yield from ((other, bound - 1) for other in rearranged(program))
        if len(program.calls()) <= PAIRS_MAX:
            for _, less in without_a_call(program):
                yield from ((fewer, bound + 1) for _, fewer in without_a_call(less))

    def _searched(self, program: Program, bound: int, *, failing: bool) -> list[Decision] | None:
        """The decisions of a wrong execution with the fewest of them, up to `bound`."""
        kinds = ("preemptions", *(["stale"] if program.weak else []), *(["failures"] if failing else []))
        for total in range(bound + 1):
            for split in itertools.product(range(total + 1), repeat=len(kinds)):
                if sum(split) != total:
                    continue
                if self._left <= 0:
                    return None
                limits: dict[str, Any] = dict(zip(kinds, split, strict=True))
                found = explore(program, executions=EXECUTIONS_MAX, keep_going=total > 0, build=self.build, **limits)
                self._left -= found.steps
                bad = found.first_bad(lambda h: self.is_right(program, h))
                if bad is not None:
                    return bad.decisions
        return None


def _moved(decision: Decision, steps: list[int], back: int) -> Decision:
    """The decision in a program without the call that took these steps."""
    later = decision.kind != "fail" and steps and decision.step > steps[0]
    return decision._replace(step=max(0, decision.step - back)) if later else decision


def without_a_call(program: Program) -> Iterator[tuple[int, Program]]:
    """The program without one of its calls, for each of them, the last one first; with that call's number."""
    lists = [list(program.before), *map(list, program.threads), list(program.after)]
    number = sum(map(len, lists))
    for which in reversed(range(len(lists))):
        for i in reversed(range(len(lists[which]))):
            number -= 1
            less = [each[:i] + each[i + 1 :] if n == which else each for n, each in enumerate(lists)]
            yield number, replace(program, before=less[0], threads=less[1:-1], after=less[-1])


def rearranged(program: Program) -> Iterator[Program]:
    """The same calls with another thread first, or with the first call of a thread before all of them."""
    threads = [list(calls) for calls in program.threads]
    for i, calls in enumerate(threads):
        if calls:
            rest = [*threads[:i], calls[1:], *threads[i + 1 :]]
            yield replace(program, before=[*program.before, calls[0]], threads=rest)
            yield replace(program, threads=[calls, *threads[:i], *threads[i + 1 :]])
