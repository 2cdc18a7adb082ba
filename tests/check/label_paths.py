"""Along every C function the labels are a path of the PlusCal control flow, and each makes the access of its step.

Between two marks that follow each other in C there may be labels without a mark (spec/mirror.toml gives their reasons).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from spec_flow import Step, steps

from pystream.verify.tlc import mirror
from pystream.verify.tlc.pluscal import seeded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from c_flow import Mark, Sources


@dataclass
class Paths:
    """One PlusCal module, and the marks in the C files that mirror it."""

    module: str
    declared: mirror.Declared
    steps: dict[str, Step]
    sources: Sources
    seeded: set[str]

    @cached_property
    def marks(self) -> list[Mark]:
        return [mark for mark in self.sources.marks if mark.file in self.declared.c and mark.label in self.steps]

    @cached_property
    def edges(self) -> set[tuple[Mark, Mark]]:
        """From which mark C may come to which. Marks that float are not in the way."""
        counted = [mark for mark in self.marks if mark.label not in self.declared.floats]
        places = self.sources.functions([*self.declared.c, *self.declared.through])
        flows = [self.sources.flow(file, function, counted) for file, function in places]
        return {(a, b) for flow in flows for a, b in flow.edges if a is not None}

    def problems(self, labels: dict[Mark, str] | None = None) -> list[str]:
        """Return what does not fit; `labels` says which label a mark has, if not its own."""
        named = {mark: mark.label for mark in self.marks} | (labels or {})
        return [*self._jumps(named), *self._accesses(named)]

    def _jumps(self, named: dict[Mark, str]) -> Iterator[str]:
        """Say where C goes from one label to another and the spec does not."""
        marked = {label for mark in self.marks for label in self._meant(named[mark])} - self.declared.floats.keys()
        needed = set()
        for a, b in sorted(self.edges):
            after = {label for one in self._meant(named[a]) for label in self._after(one, marked)}
            jump = f"{named[a]} -> {named[b]}"
            if not after & self._meant(named[b]):
                needed.add(jump)
                if jump not in self.declared.jumps:
                    yield f"{b} follows {a}: in {self.module}.tla {named[b]} does not follow {named[a]}"
        for jump in sorted(self.declared.jumps.keys() - needed):
            yield f"{mirror.DECLARED}: {self.module}: the jump {jump} is not needed"

    def _meant(self, label: str) -> set[str]:
        """Return the labels of the module that a mark stands for: its own, and those that are marked as it is."""
        return {label, *(one for one, other in self.declared.marked_as.items() if other == f"{self.module}.{label}")}

    def _after(self, label: str, marked: set[str]) -> set[str]:
        """Return the labels with marks that may come next, past labels that are said to have none."""
        silent = {*self.declared.marked_as, *self.declared.calls, *self.declared.none, *self.declared.floats} - marked
        found, passed, todo = set(), set(), [label]
        while todo:
            one = todo.pop()
            follows = {to for to in self.steps[one].follows - passed if self._is_right(one, to)}
            found |= follows & marked
            passed |= follows & silent
            todo += follows & silent
        return found

    def _is_right(self, one: str, to: str) -> bool:
        """Return whether the module goes this way without a seeded mistake."""
        wrong = "seeded" in (why := self.declared.none.get(to, "")) or "printed" in why or to in self.seeded
        return not wrong and f"{one} -> {to}" not in self.declared.mistakes

    def _accesses(self, named: dict[Mark, str]) -> Iterator[str]:
        """Say where the access in C is not that of the step: the same variable, read or written.

        Adding to a word also reads it, and may stand for a step that only reads.
        """
        cells = self.declared.cells
        for mark in self.marks:
            step = self.steps[named[mark]]
            for access in sorted(self.sources.accesses[mark]):
                variables = cells.get(access.accessor, cells.get(access.cell, "")).split()
                if not variables:
                    yield f"{mark}: {access.cell} is no cell of {self.module} in {mirror.DECLARED}"
                elif not self._does(step, access.kind).intersection(variables):
                    yield f"{mark}: a {access.kind} of {access.cell}; {named[mark]} of {self.module}.tla has none"

    def _does(self, step: Step, kind: str) -> frozenset[str]:
        return {"load": step.reads, "add": step.reads | step.writes}.get(kind, step.writes)


def all_paths(spec: Path, sources: Sources) -> list[Paths]:
    """Return the paths of every module that has C files."""
    return [
        Paths(name, declared, steps(path), sources, seeded(path))
        for name, declared in mirror.declared(spec).items()
        if declared.c and (path := spec / f"{name}.tla")
    ]


def swaps(marks: Iterable[Mark]) -> Iterator[tuple[Mark, Mark]]:
    """Yield the pairs of marks in one file whose labels differ."""
    ordered = sorted(marks)
    for i, a in enumerate(ordered):
        yield from ((a, b) for b in ordered[i + 1 :] if a.file == b.file and a.label != b.label)
