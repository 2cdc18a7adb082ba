"""No vacuity: PlusCal labels that no passing model reaches.

TLC counts by expression (`-coverage`). Where a model takes the algorithm's steps as they are, TLC also names the label;
where it wraps them (crashing threads, a monitor), only the expressions inside the label's definition tell. A step was
taken exactly if its assignment to pc was evaluated, because that comes after everything the step waits for.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pystream.check.manifest import Model
from pystream.check.pluscal import Label, labels, pluscal_modules
from pystream.check.tlc import Result

_ACTION = re.compile(r"^<(\w+) line .* of module (\w+)[^>]*>: (\d+):(\d+)", re.MULTILINE)
_EXPRESSION = re.compile(r"^\s*\|*line (\d+), col (\d+) to line \d+, col \d+ of module (\w+): (\d+)", re.MULTILINE)
_ASSIGNS_PC = re.compile(r"(?:/\\|\\/|[\s(])*pc' =")
_ASSIGNS = re.compile(r"(?:/\\|\\/|[\s(])*(?:\w+' =|UNCHANGED\b)")
_USES = re.compile(r"\bEXTENDS\s+(\w+(?:\s*,\s*\w+)*)|\bINSTANCE\s+(\w+)")


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
            found = labels(module)
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
    bodies = [message.body for message in result.messages]
    evaluated = [place for body in bodies for place in _evaluated(body, module.stem)]
    named = {name for body in bodies for name in _named(body, module.stem)}
    return {label.name for label in found if label.name in named or _taken(label, lines, evaluated)}


def _named(body: str, module: str) -> Iterator[str]:
    for name, where, _, generated in _ACTION.findall(body):
        if where == module and int(generated):
            yield name


def _evaluated(body: str, module: str) -> Iterator[tuple[int, int]]:
    for line, column, where, count in _EXPRESSION.findall(body):
        if where == module and int(count):
            yield int(line), int(column)


def _taken(label: Label, lines: Sequence[str], evaluated: Iterable[tuple[int, int]]) -> bool:
    body = lines[label.first_line - 1 : label.last_line]
    # The translator leaves pc out of an algorithm that has one label only.
    assigns = _ASSIGNS_PC if any(_ASSIGNS_PC.search(line) for line in body) else _ASSIGNS
    inside = ((line, column) for line, column in evaluated if label.first_line <= line <= label.last_line)
    return any(assigns.match(lines[line - 1], column - 1) for line, column in inside)
