"""Mistakes made by a program in the text of the algorithms: which models notice them.

A mutant is one piece of a module's TLA+ text put otherwise. The text is the one that TLC reads: of a PlusCal module the
definitions before the algorithm and its translation, without labels that only a seeded mistake takes.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pystream.verify.tlc.pluscal import algorithm_lines, seeded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_DEFINITION = re.compile(r"^(?:RECURSIVE\s+)?(\w+)(?:\([^)]*\))?(?:\[[^\]]*\])? ==", re.MULTILINE)
# What is compared here is the choice of a rule, and its other value is a model of its own.
_RULE = re.compile(r"\b\w+(?:Rule|Order)\b|\brule\b|\bFunction\b|\bCountReads\b")
_IF = re.compile(r"\bIF\s+(.+?)(?=\s+THEN\b)", re.DOTALL)
_KEPT = re.compile(r"/\\ (\w+)' = (?!\1\b\s*$)(.+)$", re.MULTILINE)
_NEXT_LABEL = re.compile(r"pc' = \[pc EXCEPT !\[self\] = \"(\w+)\"\]")
_FAIR = re.compile(r"\b(?:WF|SF)_\w+\(")
_COMPARED = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " = ": " # ", " # ": " = "}
# What follows a /\\ and is not a whole condition.
_PART = re.compile(r"IF\b|LET\b|\\[EA]\b|TRUE$|CASE\b")
# A process: any of its labels.
_STEPS = re.compile(r"\s*\w+(?:\(self\))?(?:\s*\\/\s*\w+(?:\(self\))?)*\s*$")
# Names that hold no rule of the algorithm: what is checked, bounds, what a property says.
_SKIPPED = re.compile(r"^(?:vars|ProcSet|Init|Next|Spec|Termination|Terminating|TypeOK)$")


@dataclass(frozen=True)
class Mutant:
    """One piece of a module's text, from `start` to `end`, put otherwise."""

    module: str
    place: str
    kind: str
    start: int
    end: int
    new: str
    old: str
    number: int = 0

    @property
    def name(self) -> str:
        """Return a name that stays when other parts of the module change."""
        told = "|".join((self.module, self.place, self.kind, self.old, self.new, str(self.number)))
        return hashlib.sha256(told.encode()).hexdigest()[:8]

    def text(self, module: str) -> str:
        """Return the module's text with this mistake in it."""
        return module[: self.start] + self.new + module[self.end :]


def mutants(path: Path) -> list[Mutant]:
    """Return the mutants of a module, in the order of its text; equal ones of one definition are numbered."""
    found: dict[str, Mutant] = {}
    for mutant in _all(path):
        one = mutant
        while one.name in found:
            one = replace(one, number=one.number + 1)
        found[one.name] = one
    return list(found.values())


def _all(path: Path) -> Iterator[Mutant]:
    text = path.read_text(encoding="utf-8")
    for place, start, end in definitions(path, text):
        body = text[start:end]
        for kind, first, last, new in (
            *_flipped(body),
            *_compared(body),
            *_dropped(body),
            *_lost(body),
            *_unfair(body),
        ):
            old = body[first:last]
            if old != new:
                yield Mutant(path.stem, place, kind, start + first, start + last, new, old)
    yield from _swapped(path, text)


def definitions(path: Path, text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the name of each definition that is part of the algorithm, and where its text begins and ends."""
    first, last = algorithm_lines(text)
    offsets = [0]
    for line in text.splitlines(keepends=True):
        offsets.append(offsets[-1] + len(line))
    stop = text.find("\\* END TRANSLATION") if last else len(text)
    skipped = seeded(path) | _of_mistakes(path)
    found = [one for one in _DEFINITION.finditer(text, 0, stop) if not offsets[first] <= one.start() < offsets[last]]
    for one, after in zip(found, [*found[1:], None], strict=True):
        end = after.start() if after else stop
        if first and one.start() < offsets[first] < end:
            end = offsets[first]
        body_end = _end_of_body(text, one.end(), end)
        if one[1] not in skipped and not _SKIPPED.match(one[1]) and not _STEPS.match(text[one.end() : body_end]):
            yield one[1], one.end(), body_end


def _of_mistakes(path: Path) -> set[str]:
    """Return the labels that stand for no C: steps of printed and seeded mistakes."""
    mirror = path.with_name("mirror.toml")
    entries = tomllib.loads(mirror.read_text(encoding="utf-8")) if mirror.is_file() else {}
    none = entries.get(path.stem, {}).get("none", {})
    return {label for label, why in none.items() if "seeded" in why or "printed" in why}


def _end_of_body(text: str, start: int, end: int) -> int:
    """Return where a definition ends: at a blank line, a line of dashes or a comment at the margin."""
    found = re.compile(r"\n\s*\n|\n-----|\n\\\*|\n\(\*|\n\S").search(text, start, end)
    return found.start() if found else end


Piece = tuple[str, int, int, str]


def _flipped(body: str) -> Iterator[Piece]:
    for found in _IF.finditer(body):
        if not _RULE.search(found[1]) and "IF" not in found[1].split():
            yield "guard flipped", found.start(1), found.end(1), f"~({found[1]})"


def _compared(body: str) -> Iterator[Piece]:
    for found in re.finditer(r" (?:<=|>=|<|>|=|#) ", body):
        line = body[body.rfind("\n", 0, found.start()) + 1 : found.start()]
        after = body[found.end() :].split("\n", 1)[0]
        assigned = (
            line.rstrip().endswith("'") or "EXCEPT" in line.rsplit("[", 1)[-1] or re.search(r"EXCEPT !\S*$", line)
        )
        near = line.rsplit("/\\", 1)[-1].rsplit("\\/", 1)[-1] + after.split("/\\")[0].split("\\/")[0]
        if not assigned and not _RULE.search(near) and "pc[" not in near and "pc'" not in near:
            yield "compared otherwise", found.start(), found.end(), _COMPARED[found[0]]


def _dropped(body: str) -> Iterator[Piece]:
    """A conjunct or a disjunct of a condition: those on one line, and those in a bulleted list."""
    for found in re.finditer(r"(?<=[^\s]) (/\\|\\/) ", body):
        end = _end_of_operand(body, found.end())
        operand = body[found.end() : end]
        part = _PART.match(operand.strip()) or "->" in operand or "'" in operand or "pc[" in operand
        if operand.strip() and not part and not _RULE.search(operand):
            kind = "conjunct dropped" if found[1] == "/\\" else "disjunct dropped"
            yield kind, found.start(), end, ""
    for found in re.finditer(r"^ *(/\\|\\/) (.+)$", body, re.MULTILINE):
        operand = found[2]
        whole = operand.count("(") == operand.count(")") and operand.count("{") == operand.count("}")
        told = re.search(r"'|\bIF\b|\bLET\b|\\E|UNCHANGED|\bpc\b|TRUE|^/\\", operand)
        if whole and not told and not _RULE.search(operand) and not operand.endswith(("=>", "=", ":", "/\\", "\\/")):
            kind, new = ("conjunct dropped", "TRUE") if found[1] == "/\\" else ("disjunct dropped", "FALSE")
            yield kind, found.start(2), found.end(2), new


def _end_of_operand(body: str, start: int) -> int:
    depth = 0
    for at in range(start, len(body)):
        if body[at] in "([{":
            depth += 1
        elif body[at] in ")]}":
            depth -= 1
        stops = body.startswith((" /\\", " \\/", "\n", " THEN", " ELSE", " =>", " <=>", ":"), at)
        if depth < 0 or (depth == 0 and (stops or body[at] == ",")):
            return at
    return len(body)


def _lost(body: str) -> Iterator[Piece]:
    """An assignment that does not happen."""
    for found in _KEPT.finditer(body):
        name, value = found[1], found[2]
        whole = value.count("(") == value.count(")") and value.count("[") == value.count("]")
        if name != "pc" and whole and value.strip() != name:
            yield "assignment lost", found.start(2), found.end(2), name


def _unfair(body: str) -> Iterator[Piece]:
    for found in _FAIR.finditer(body):
        end = _end_of_operand(body, found.end()) + 1
        yield "fairness weakened", found.start(), end, "TRUE"


def _swapped(path: Path, text: str) -> Iterator[Mutant]:
    """Two labels, one of which only ever goes to the other, which only ever goes on: their steps in the other order."""
    bodies = {
        name: (start, end) for name, start, end in definitions(path, text) if f'pc[self] = "{name}"' in text[start:end]
    }
    targets = {name: set(_NEXT_LABEL.findall(text[start:end])) for name, (start, end) in bodies.items()}
    for first, goes in targets.items():
        second = next(iter(goes)) if len(goes) == 1 else first
        last = targets.get(second, set())
        if second == first or second not in bodies or len(last) != 1 or last & {first, second}:
            continue
        (one_start, one_end), (two_start, two_end) = bodies[first], bodies[second]
        if one_end > two_start:
            continue
        after = next(iter(last))
        one, between, two = text[one_start:one_end], text[one_end:two_start], text[two_start:two_end]
        new_one = _relabelled(one, first, second, second, after)
        new_two = _relabelled(two, second, first, after, second)
        yield Mutant(
            path.stem, first, "labels swapped", one_start, two_end, new_one + between + new_two, f"{first}, {second}"
        )


def _relabelled(body: str, at: str, now_at: str, goes: str, now_goes: str) -> str:
    body = body.replace(f'pc[self] = "{at}"', f'pc[self] = "{now_at}"')
    return body.replace(f'![self] = "{goes}"]', f'![self] = "{now_goes}"]')
