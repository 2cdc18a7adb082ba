"""The manifest spec/models.json: what each model shows, its bounds, and what TLC must find."""

import dataclasses
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pystream.verify.tlc import CheckError

MANIFEST = "models.json"
PASS = "pass"  # noqa: S105 - a verdict
DEADLOCK = "Deadlock"
ASSERT = "Assert"
COVERING_STATES_MAX = 12_500

#: The paper's theorems and lemmas (section 6); spec/PAPER.md has their wording.
THEOREMS = ("1", "2", "3", "L1", "L2")

_KINDS: Mapping[str, tuple[type, ...]] = {
    "name": (str,),
    "module": (str,),
    "shows": (str,),
    "expected": (str,),
    "spec": (str,),
    "constants": (dict,),
    "invariants": (list,),
    "properties": (list,),
    "deadlock": (bool,),
    "deep": (bool,),
    "bounds": (str,),
    "distinct_states": (int, type(None)),
    "depth": (int, type(None)),
    "seconds": (int, float, type(None)),
    "trace": (str,),
    "departure": (int,),
    "theorem": (list,),
    "constraint": (str,),
    "view": (str,),
    "symmetry": (str,),
    "change": (list,),
}
_CHANGE_PARTS = 3
_REQUIRED = ("name", "module", "shows", "expected")


@dataclass(frozen=True, kw_only=True)
class Model:
    """One entry of the manifest."""

    name: str
    module: str
    shows: str
    expected: str
    spec: str = "Spec"
    constants: Mapping[str, str] = field(default_factory=dict)
    invariants: tuple[str, ...] = ()
    properties: tuple[str, ...] = ()
    deadlock: bool = False
    deep: bool = False
    bounds: str = ""
    distinct_states: int | None = None
    depth: int | None = None
    seconds: float | None = None
    trace: str = ""
    departure: int | None = None
    # The paper's theorems and lemmas that it shows; if it must fail: that do not hold as printed.
    theorem: tuple[str, ...] = ()
    constraint: str = ""
    view: str = ""
    symmetry: str = ""
    # A mistake that is no rule: module, a piece of its TLA+ text that is there once, and what stands there instead.
    change: tuple[str, ...] = ()
    # Set by `load`: of the models of its module that must pass none is smaller, and none is small.
    smallest: bool = False

    @property
    def must_pass(self) -> bool:
        """Whether TLC must find no error."""
        return self.expected == PASS

    @property
    def covers(self) -> bool:
        """Whether the labels it reaches count: in a large model counting costs half as much again and tells no more."""
        return self.may_cover and (self.smallest or self.is_small)

    @property
    def may_cover(self) -> bool:
        """Whether it runs by default and must pass: only such a model shows that a label can be reached."""
        return self.must_pass and not self.deep

    @property
    def is_small(self) -> bool:
        """Whether counting labels costs little."""
        return (self.distinct_states or 0) <= COVERING_STATES_MAX

    def with_constants(self, changed: Mapping[str, str]) -> "Model":
        """Return the same model with other values for some constants."""
        return dataclasses.replace(self, constants={**self.constants, **changed})

    def cfg(self) -> str:
        """Return the text of a TLC configuration file."""
        lines = [f"SPECIFICATION {self.spec}"]
        if self.constants:
            lines.append("CONSTANTS")
            lines += [_assignment(name, value) for name, value in self.constants.items()]
        for key, names in (("INVARIANTS", self.invariants), ("PROPERTIES", self.properties)):
            if names:
                lines += [key, *(f"  {name}" for name in names)]
        for key, name in (("CONSTRAINT", self.constraint), ("VIEW", self.view), ("SYMMETRY", self.symmetry)):
            if name:
                lines.append(f"{key} {name}")
        return "\n".join(lines) + "\n"


def _assignment(name: str, value: str) -> str:
    return f"  {name} {value}" if value.startswith("<-") else f"  {name} = {value}"


def find_spec(option: Path | None = None) -> Path:
    """Return the folder of the specs: the option, PYSTREAM_SPEC, inside an installed package, in a checkout."""
    package = Path(__file__).resolve().parents[2]
    named = option or os.environ.get("PYSTREAM_SPEC")
    places = [Path(named)] if named else [package / "spec", package.parent / "spec"]
    for place in places:
        if (place / MANIFEST).is_file():
            return place.resolve()
    looked = " or ".join(str(place) for place in places)
    raise CheckError(f"no {MANIFEST} in {looked}: name the folder of the specs with --spec DIR or PYSTREAM_SPEC")


def load(spec: Path) -> list[Model]:
    """Read and check the manifest."""
    path = spec / MANIFEST
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CheckError(f"{path}: {error}") from error
    if not isinstance(entries, list):
        raise CheckError(f"{path}: a list of models is expected")
    models = [_model(path, number, entry) for number, entry in enumerate(entries)]
    _check_unique(path, models)
    return _with_smallest(models)


def _with_smallest(models: Sequence[Model]) -> list[Model]:
    """Mark one covering model in each module that has large ones only."""
    chosen: dict[str, Model] = {}
    for model in filter(lambda one: one.may_cover, models):
        other = chosen.setdefault(model.module, model)
        if (model.distinct_states or 0) < (other.distinct_states or 0):
            chosen[model.module] = model
    names = {model.name for model in chosen.values() if not model.is_small}
    return [dataclasses.replace(model, smallest=True) if model.name in names else model for model in models]


def _model(path: Path, number: int, entry: Any) -> Model:
    try:
        return parse_model(entry)
    except (TypeError, ValueError) as error:
        name = entry.get("name", number) if isinstance(entry, dict) else number
        raise CheckError(f"{path}: model {name}: {error}") from error


def parse_model(entry: Any) -> Model:
    """Return the model that a JSON object describes; ValueError or TypeError says what is wrong with it."""
    if not isinstance(entry, dict):
        raise TypeError("an object is expected")
    _check_keys(entry)
    values = dict(entry)
    values["constants"] = {key: _tla(value) for key, value in entry.get("constants", {}).items()}
    for key in ("invariants", "properties", "theorem", "change"):
        values[key] = tuple(map(str, entry.get(key, ())))
    model = Model(**values)
    _check_expected(model)
    _check_change(model)
    if unknown := set(model.theorem) - set(THEOREMS):
        raise ValueError(f"theorem {min(unknown)} is not in the paper; there are {', '.join(THEOREMS)}")
    return model


def _check_keys(entry: Mapping[str, Any]) -> None:
    for key in _REQUIRED:
        if key not in entry:
            raise ValueError(f"{key} is missing")
    for key, value in entry.items():
        if key not in _KINDS:
            raise ValueError(f"{key} is not a field of a model; the fields are {', '.join(_KINDS)}")
        # bool is an int to Python, and never a count.
        if not isinstance(value, _KINDS[key]) or (isinstance(value, bool) and bool not in _KINDS[key]):
            kinds = " or ".join("null" if kind is type(None) else kind.__name__ for kind in _KINDS[key])
            raise TypeError(f"{key} must be {kinds}, not {value!r}")
    for key in ("name", "module"):  # They become names of files.
        if not re.fullmatch(r"\w+", entry[key]):
            raise ValueError(f"{key} must be one word, not {entry[key]!r}")


def _check_expected(model: Model) -> None:
    known = (PASS, DEADLOCK, ASSERT, *model.invariants, *model.properties)
    if model.expected not in known:
        raise ValueError(f"expected is {model.expected!r}, but only {', '.join(known)} can come out")


def _check_change(model: Model) -> None:
    if model.change and len(model.change) != _CHANGE_PARTS:
        raise ValueError("change must be three texts: module, what stands there, what stands there instead")
    if model.change and model.must_pass:
        raise ValueError("change is for models that must fail")


def _tla(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return str(value)


def _check_unique(path: Path, models: Sequence[Model]) -> None:
    seen: set[str] = set()
    for model in models:
        if model.name in seen:
            raise CheckError(f"{path}: two models are called {model.name}")
        seen.add(model.name)
