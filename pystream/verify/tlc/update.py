"""What is generated in spec: numbers measured, in models.json and README.md, and tables of README.md and PAPER.md."""

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pystream.verify.tlc import mirror, paper_map, sections
from pystream.verify.tlc.check import Outcome
from pystream.verify.tlc.manifest import MANIFEST, Model, load
from pystream.verify.tlc.result import Result
from pystream.whole_file import write_whole

README = "README.md"
PART = "models"


def write(spec: Path, outcome: Outcome) -> Outcome:
    """Write manifest and README, and return the outcome as compared with what is written now."""
    write_manifest(spec, outcome.results)
    models = load(spec)
    write_readme(spec, models)
    mirror.write_readme(spec)
    paper_map.write(spec, models)
    named = {model.name: model for model in models}
    results = tuple(dataclasses.replace(result, model=named[result.model.name]) for result in outcome.results)
    return dataclasses.replace(outcome, results=results)


def write_manifest(spec: Path, results: Iterable[Result]) -> None:
    """Write states, depth and seconds of those models that came out as they must; the others stay as they are.

    The seconds are of processor time: those by the clock would say how busy the machine was.
    """
    path = spec / MANIFEST
    measured = {result.model.name: result for result in results if result.outcome == result.model.expected}
    entries = json.loads(path.read_text(encoding="utf-8"))
    for entry in entries:
        if entry["name"] in measured:
            entry.update(_numbers(measured[entry["name"]]))
    write_whole(path, manifest_text(entries))


def _numbers(result: Result) -> dict[str, Any]:
    depth = result.depth if result.passed else None
    return {"distinct_states": result.distinct_states, "depth": depth, "seconds": round(result.processor_s, 1)}


def manifest_text(entries: Sequence[Mapping[str, Any]]) -> str:
    """Return the manifest's text: one field a line, so that a change of one number is a change of one line."""
    return "[\n" + ",\n".join(_entry_text(entry) for entry in entries) + "\n]\n"


def _entry_text(entry: Mapping[str, Any]) -> str:
    fields = [f"    {_json(key)}: {_json(value)}" for key, value in entry.items()]
    return "  {\n" + ",\n".join(fields) + "\n  }"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def check_readme(spec: Path) -> None:
    """Refuse early if there is no place for the table."""
    sections.split(spec / README, PART)


def readme_is_current(spec: Path, models: Sequence[Model]) -> bool:
    """Return whether the README shows what the manifest says."""
    return sections.split(spec / README, PART)[1].strip() == readme_table(models)


def write_readme(spec: Path, models: Sequence[Model]) -> None:
    """Put the table of models between the two markers."""
    sections.write(spec / README, PART, readme_table(models))


def readme_table(models: Sequence[Model]) -> str:
    """Return the table of models in Markdown."""
    rows = ["| model | shows | bounds | must | distinct states | depth | seconds |", "|---|---|---|---|--:|--:|--:|"]
    rows += ["| " + " | ".join(_cells(model)) + " |" for model in models]
    return "\n".join(rows)


def _cells(model: Model) -> list[str]:
    name = f"`{model.name}`" + (" (deep)" if model.deep else "")
    departure = f" (departure {model.departure})" if model.departure is not None else ""
    must = "pass" if model.must_pass else f"fail `{model.expected}`"
    numbers = [f"{n:,}" if n is not None else "-" for n in (model.distinct_states, model.depth, model.seconds)]
    return [name, _prose(model.shows) + departure, _prose(model.bounds), must, *numbers]


def _prose(text: str) -> str:
    return " ".join(text.split()).replace("|", r"\|")
