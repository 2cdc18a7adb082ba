"""The whole check, without a terminal: run the models, read what TLC found, judge it."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pystream.verify.tlc import limits, pluscal, runner, tlc
from pystream.verify.tlc.coverage import Coverage, coverage
from pystream.verify.tlc.falsified import Falsified, falsified
from pystream.verify.tlc.java import Tools
from pystream.verify.tlc.manifest import Model
from pystream.verify.tlc.result import Result, read_result
from pystream.verify.tlc.runner import Finished, Running


class Display(Protocol):
    """Shows what happens while models run."""

    def tick(self, running: Sequence[Running]) -> None:
        """Show what runs; called many times a second."""

    def done(self, result: Result) -> None:
        """Show what came of a model."""


class Silent:
    """Shows nothing."""

    def tick(self, running: Sequence[Running]) -> None:
        """Show nothing."""

    def done(self, result: Result) -> None:
        """Show nothing."""


@dataclass(frozen=True)
class Wish:
    """What to run, and how."""

    models: Sequence[Model]
    jobs: int | None = None
    timeout_s: float | None = None
    # Translations, and that each property is violated somewhere, are checked when the whole set runs, not when somebody
    # looks at one model.
    translations: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    results: tuple[Result, ...]
    coverage: Coverage
    falsified: Falsified
    translations: Mapping[str, str | None]
    slots: int
    seconds: float

    @property
    def stale(self) -> dict[str, str]:
        """Return what is wrong with the translations, by module."""
        return {module: wrong for module, wrong in self.translations.items() if wrong}


class _Bridge:
    """Turns what the runner tells into results for the display."""

    def __init__(self, models: Sequence[Model], display: Display) -> None:
        self.models = {model.name: model for model in models}
        self.display = display
        self.results: dict[str, Result] = {}

    def tick(self, running: Sequence[Running]) -> None:
        self.display.tick([one for one in running if one.task.name in self.models])

    def done(self, finished: Finished) -> None:
        model = self.models.get(finished.task.name)
        if model is not None:
            self.results[model.name] = read_result(model, finished)
            self.display.done(self.results[model.name])


def run_check(tools: Tools, spec: Path, manifest: Sequence[Model], wish: Wish, display: Display) -> Outcome:
    """Run the wished models and judge them; `manifest` says which others there are."""
    started = time.monotonic()
    modules = pluscal.pluscal_modules(spec) if wish.translations else []
    plan = limits.plan(len(wish.models) + len(modules), wish.jobs)
    bridge = _Bridge(wish.models, display)
    with runner.signals_noted() as interrupted, runner.scratch_folder() as scratch:
        first = tlc.archive_task(tools, spec, wish.models, scratch, plan.heap_mb)
        runner.run([first] if first else [], 1, bridge, interrupted)
        archive = scratch / tlc.ARCHIVE if (scratch / tlc.ARCHIVE).is_file() else None
        tasks = [tlc.task(tools, spec, model, scratch / model.name, plan.heap_mb, archive) for model in wish.models]
        tasks += [pluscal.translation_task(tools, module, scratch / module.name) for module in modules]
        finished = runner.run(tasks, plan.slots, bridge, interrupted, wish.timeout_s)
    results = tuple(bridge.results[model.name] for model in wish.models)
    return Outcome(
        results=results,
        coverage=coverage(spec, manifest, results),
        falsified=falsified(spec, manifest if wish.translations else ()),
        translations={module.stem: pluscal.stale(module, finished[module.name]) for module in modules},
        slots=plan.slots,
        seconds=time.monotonic() - started,
    )
