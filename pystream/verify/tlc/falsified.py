"""No property without a failure: each one that a model checks must be violated by a model that must fail.

A property is known by the module that defines it: `TypeOK` of two algorithms are two properties.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pystream.verify.tlc.coverage import modules_of
from pystream.verify.tlc.manifest import Model


@dataclass(frozen=True, order=True)
class Property:
    """An invariant or a property, and the module that defines it."""

    module: str
    name: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}"


@dataclass(frozen=True)
class Falsified:
    """The properties that models check, and those that no model violates."""

    checked: tuple[Property, ...]
    never: tuple[Property, ...]


def falsified(spec: Path, models: Sequence[Model]) -> Falsified:
    """Return which properties the manifest checks, and which of them none of its models violates."""
    checked = {_property(spec, model.module, name) for model in models for name in model.invariants + model.properties}
    violated = {
        _property(spec, model.module, model.expected)
        for model in models
        if model.expected in model.invariants + model.properties
    }
    return Falsified(tuple(sorted(checked)), tuple(sorted(checked - violated)))


@cache
def _property(spec: Path, module: str, name: str) -> Property:
    definition = re.compile(rf"^{name} ==", re.MULTILINE)
    texts = {one: (spec / f"{one}.tla").read_text(encoding="utf-8") for one in sorted(modules_of(spec, module))}
    found = [one for one in (module, *sorted(texts)) if definition.search(texts.get(one, ""))]
    return Property(found[0] if found else module, name)
