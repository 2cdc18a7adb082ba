"""No vacuity: PlusCal labels that no passing model reaches.

TLC counts by expression (`-coverage`). Where a model takes the algorithm's steps as they are, TLC also names the label;
where it wraps them (crashing threads, a monitor), only the expressions inside the label's definition tell. A step was
taken exactly if its assignment to pc was evaluated, because that comes after everything the step waits for. TLC tells
the count of a whole expression instead of its parts where all are equal, so the smallest expression told that holds an
assignment to pc decides.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pystream.verify.tlc.manifest import Model
from pystream.verify.tlc.pluscal import Label, labels, pluscal_modules, seeded
from pystream.verify.tlc.result import Result

_ACTION = re.compile(r"<(\w+) line .* of module (\w+)[^>]*>(?:: \d+:(\d+))?")
_EXPRESSION = re.compile(r"\s*\|*line (\d+), col (\d+) to line (\d+), col (\d+) of module (\w+): (\d+)")
_ASSIGNS_PC = re.compile(r"\bpc' =")
_ASSIGNS = re.compile(r"\w' =|\bUNCHANGED\b")
_USES = re.compile(r"\bEXTENDS\s+(\w+(?:\s*,\s*\w+)*)|\bINSTANCE\s+(\w+)")


@dataclass(frozen=True)
class Expression:
    """A piece of a module, first and last character included, and how often one action evaluated it."""

    start: tuple[int, int]
    end: tuple[int, int]
    count: int

    def holds(self, other: "Expression") -> bool:
        """Whether another expression is a part of this one."""
        inside = self.start <= other.start and other.end <= self.end
        return inside and (self.start, self.end) != (other.start, other.end)

    def text(self, lines: Sequence[str]) -> str:
        """Return the expression as it stands in the module."""
        (first, column), (last, last_column) = self.start, self.end
        whole = [*lines[first - 1 : last - 1], lines[last - 1][:last_column]]
        return "\n".join([whole[0][column - 1 :], *whole[1:]])


@dataclass(frozen=True)
class Coverage:
    """The labels of the modules that could be judged, and those of them that no passing model reached."""

    judged: tuple[Label, ...]
    unreached: tuple[Label, ...]

    @property
    def modules(self) -> list[str]:
        """Return the names of the modules that were judged."""
        return sorted({label.module for label in self.judged})


def coverage(spec: Path, models: Sequence[Model], results: Sequence[Result]) -> Coverage:
    """Judge each PlusCal module of which every passing model ran and passed."""
    passed = {result.model.name: result for result in results if result.passed and result.model.covers}
    judged: list[Label] = []
    unreached: list[Label] = []
    for module in pluscal_modules(spec):
        users = [model for model in models if model.covers and module.stem in modules_of(spec, model.module)]
        if all(model.name in passed for model in users) and (users or _all_ran(models, results)):
            found = [label for label in labels(module) if label.name not in seeded(module)]
            seen = {name for model in users for name in reached(passed[model.name], module, found)}
            judged += found
            unreached += [label for label in found if label.name not in seen]
    return Coverage(tuple(judged), tuple(unreached))


def _all_ran(models: Iterable[Model], results: Iterable[Result]) -> bool:
    ran = {result.model.name for result in results}
    return all(model.name in ran for model in models if not model.deep)


def modules_of(spec: Path, module: str) -> set[str]:
    """Return a module and all modules of the folder that it extends or instantiates, directly or not."""
    found: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        path = spec / f"{name}.tla"
        if name not in found and path.is_file():
            found.add(name)
            waiting += _used(path.read_text(encoding="utf-8"))
    return found


def _used(text: str) -> Iterator[str]:
    for extended, instance in _USES.findall(text):
        yield from re.findall(r"\w+", extended or instance)


def reached(result: Result, module: Path, found: Sequence[Label]) -> set[str]:
    """Return the names of the labels of a module that a run reached."""
    lines = module.read_text(encoding="utf-8").splitlines()
    bodies = [line for message in result.messages for line in message.body.splitlines()]
    named = {name for name, where, count in _actions(bodies) if where == module.stem and count}
    told = _expressions(bodies, module.stem)
    return {label.name for label in found if label.name in named or any(_taken(label, lines, one) for one in told)}


def _actions(bodies: Iterable[str]) -> Iterator[tuple[str, str, int]]:
    for action in filter(None, map(_ACTION.match, bodies)):
        yield action[1], action[2], int(action[3] or 0)


def _expressions(bodies: Iterable[str], module: str) -> list[list[Expression]]:
    """Return the expressions of a module that each action evaluated: the same one may be told by several."""
    told: list[list[Expression]] = [[]]
    for body in bodies:
        if _ACTION.match(body):
            told.append([])
        expression = _EXPRESSION.match(body)
        if expression and expression[5] == module:
            line, column, last_line, last_column = map(int, expression.groups()[:4])
            told[-1].append(Expression((line, column), (last_line, last_column), int(expression[6])))
    return told


def _taken(label: Label, lines: Sequence[str], told: Iterable[Expression]) -> bool:
    # The translator leaves pc out of an algorithm that has one label only.
    body = "\n".join(lines[label.first_line - 1 : label.last_line])
    assigns = _ASSIGNS_PC if _ASSIGNS_PC.search(body) else _ASSIGNS
    inside = [one for one in told if label.first_line <= one.start[0] and one.end[0] <= label.last_line]
    assigning = [one for one in inside if assigns.search(one.text(lines))]
    return any(one.count and not any(map(one.holds, assigning)) for one in assigning)
