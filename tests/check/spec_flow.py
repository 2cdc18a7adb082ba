"""The control flow of a PlusCal module, and what each label does to variables, read from its translation."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pystream.verify.tlc.pluscal import labels

if TYPE_CHECKING:
    from pathlib import Path

_TARGET = re.compile(r"pc' = (?:\[pc EXCEPT !\[self\] = )?(.*)")
_WRITE = re.compile(r"\b(\w+)' = (?!\1\b\s*(?:/|$))")  # x' = x is what the translator writes for a branch without x
_UNCHANGED = re.compile(r"UNCHANGED (?:<<.*?>>|\w+)", re.DOTALL)
_DEFINED = re.compile(r"^(\w+)(?:\([^)]*\))? ==(.*?)(?=^\S)", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Step:
    """What a label may do: the labels that follow, the variables that it reads and that it writes."""

    follows: frozenset[str]
    reads: frozenset[str]
    writes: frozenset[str]


def steps(module: Path) -> dict[str, Step]:
    """Return the step of each label."""
    text = re.sub(r"\\\*.*", "", module.read_text(encoding="utf-8"))
    lines = module.read_text(encoding="utf-8").splitlines()
    marks = labels(module)
    names = {label.name for label in marks}
    reading = _operators(text, names)
    return {
        label.name: _step("\n".join(lines[label.first_line - 1 : label.last_line]), names, reading) for label in marks
    }


def _operators(text: str, names: set[str]) -> dict[str, set[str]]:
    """Return the words in the definition of each operator but the labels, and in those of the operators it uses."""
    words = {name: set(re.findall(r"\w+", body)) for name, body in _DEFINED.findall(text) if name not in names}
    size = -1
    while size != (size := sum(map(len, words.values()))):
        for used in words.values():
            used.update(*(words[other] for other in used & words.keys()))
    return words


def _step(text: str, names: set[str], reading: dict[str, set[str]]) -> Step:
    targets = {name for line in _TARGET.findall(text) for name in re.findall(r'"(\w+)"', line)}
    kept = _UNCHANGED.sub("", text)
    writes = set(_WRITE.findall(kept))
    body = re.sub(r"\b(\w+)' = \[\1 EXCEPT ", "", kept)  # what a write copies is not read
    words = set(re.findall(r"\b\w+\b(?!')", body))
    reads = words.union(*(reading[word] for word in words & reading.keys()))
    return Step(frozenset(targets & names), frozenset(reads), frozenset(writes))
