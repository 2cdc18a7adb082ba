"""The parts of spec/PAPER.md that the manifest decides: the models of each theorem, the traces of the departures."""

from collections.abc import Sequence
from pathlib import Path

from pystream.verify.tlc import sections
from pystream.verify.tlc.manifest import THEOREMS, Model

PAGE = "PAPER.md"


def name_of(theorem: str) -> str:
    """Return how the paper calls it."""
    return f"Lemma {theorem[1:]}" if theorem.startswith("L") else f"Theorem {theorem}"


def theorem_table(models: Sequence[Model]) -> str:
    """Return the models of each theorem, with what they show at which bounds."""
    rows = ["| paper | model | shown at these bounds |", "|---|---|---|"]
    for theorem in THEOREMS:
        own = [model for model in models if theorem in model.theorem]
        for model in sorted(own, key=lambda one: not one.must_pass):
            refuted = "" if model.must_pass else f"refuted, departure {model.departure}: "
            deep = " (deep)" if model.deep else ""
            rows.append(f"| {name_of(theorem)} | `{model.name}`{deep} | {refuted}{_prose(model.bounds)} |")
    return "\n".join(rows)


def traces(models: Sequence[Model]) -> str:
    """Return how each printed rule fails, in the order of the departures."""
    found = [model for model in models if model.departure is not None and not model.must_pass and model.trace]
    ordered = sorted(found, key=lambda model: model.departure or 0)
    return "\n".join(f"- {model.departure}, `{model.name}`: {_prose(model.trace)}" for model in ordered)


PARTS = {"theorems": theorem_table, "traces": traces}


def is_current(spec: Path, models: Sequence[Model]) -> bool:
    """Return whether the page shows what the manifest says."""
    return all(sections.split(spec / PAGE, part)[1].strip() == make(models) for part, make in PARTS.items())


def write(spec: Path, models: Sequence[Model]) -> None:
    """Put both parts between their markers, if there is such a page."""
    if (spec / PAGE).is_file():
        for part, make in PARTS.items():
            sections.write(spec / PAGE, part, make(models))


def _prose(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
