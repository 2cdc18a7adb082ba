"""Which models a command line means, and constants flipped by hand."""

import difflib
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

from pystream.verify.tlc.manifest import Model


class SelectionError(ValueError):
    """The command line names something that is not there."""


def select(models: Sequence[Model], names: Sequence[str], *, deep: bool, theorems: Collection[str] = ()) -> list[Model]:
    """Return the models that the names mean: a whole name, the start of one, or a pattern such as 'TGate*'.

    A whole name runs its model whatever its size; otherwise the deep ones need `deep`. With theorems only those that
    are about one of them.
    """
    if theorems:
        models = [model for model in models if set(theorems) & set(model.theorem)]
    if not names:
        return [model for model in models if deep or not model.deep]
    chosen = {model.name for name in names for model in _meant(models, name, deep=deep)}
    return [model for model in models if model.name in chosen]


def _meant(models: Sequence[Model], name: str, *, deep: bool) -> list[Model]:
    exact = [model for model in models if model.name == name]
    if exact:
        return exact
    pattern = name if re.search(r"[*?[]", name) else name + "*"
    matching = [model for model in models if fnmatchcase(model.name, pattern)]
    if not matching:
        raise SelectionError(f"no model is called {name}{_suggestion(name, (model.name for model in models))}")
    affordable = [model for model in matching if deep or not model.deep]
    if not affordable:
        raise SelectionError(f"{name} means only deep models: add --deep, or give a whole name")
    return affordable


def _suggestion(name: str, known: Iterable[str]) -> str:
    spelled = {candidate.lower(): candidate for candidate in known}
    close = difflib.get_close_matches(name.lower(), spelled, n=3, cutoff=0.5)
    if not close:
        return "; see --list"
    return "; did you mean " + " or ".join(spelled[candidate] for candidate in close) + "?"


def parse_settings(settings: Iterable[str]) -> dict[str, str]:
    """Return the constants of NAME=VALUE texts."""
    changed = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or not name.strip() or not value.strip():
            raise SelectionError(f"{setting!r} is not NAME=VALUE")
        changed[name.strip()] = value.strip()
    return changed


def override(model: Model, changed: Mapping[str, str]) -> Model:
    """Return the model with these constants changed; strings need no quotes where a string was."""
    for name in changed:
        if name not in model.constants:
            raise SelectionError(f"{model.name} has no constant {name}{_suggestion(name, model.constants)}")
    return model.with_constants({name: _like(model.constants[name], value) for name, value in changed.items()})


def _like(old: str, new: str) -> str:
    """Quote a bare word where a TLA+ string stood: shells eat quotes."""
    return f'"{new}"' if old.startswith('"') and re.fullmatch(r"[\w-]+", new) else new
