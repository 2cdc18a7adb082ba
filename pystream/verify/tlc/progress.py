"""What is shown while models run: bars on a terminal, plain lines elsewhere. Both go to stderr, results to stdout."""

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

from pystream.verify.tlc.manifest import Model
from pystream.verify.tlc.result import Result
from pystream.verify.tlc.runner import OUTPUT, Running
from pystream.verify.tlc.tables import verdict
from pystream.verify.tlc.tlc import checks_liveness, states_so_far

_REFRESH_S = 0.25
_REMIND_S = 15.0
# Enough to hold TLC's last messages.
_TAIL_BYTES = 4096


def display(console: Console, models: Sequence[Model]) -> "Bars | Lines":
    """Return the display that suits the console."""
    return Bars(console, models) if console.is_terminal else Lines(console, models)


class Bars(AbstractContextManager["Bars"]):
    """A bar for the whole, and one for each model that runs."""

    def __init__(self, console: Console, models: Sequence[Model]) -> None:
        self._expected = {model.name: model.distinct_states for model in models}
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[told]}", justify="right"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._whole = self._progress.add_task("[bold]models", total=len(models), told=f"0 of {len(models)}")
        self._bars: dict[str, TaskID] = {}
        self._shown = 0.0

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def tick(self, running: Sequence[Running]) -> None:
        """Move the bars."""
        if time.monotonic() - self._shown < _REFRESH_S:
            return
        self._shown = time.monotonic()
        for one in running:
            name = one.task.name
            if name not in self._bars:
                self._bars[name] = self._progress.add_task(name, total=self._expected[name], told="starting")
            states = states_so_far(one.task.folder)
            self._progress.update(self._bars[name], completed=states, told=_told(one, states))

    def done(self, result: Result) -> None:
        """Take a model's bar away."""
        bar = self._bars.pop(result.model.name, None)
        if bar is not None:
            self._progress.remove_task(bar)
        self._progress.advance(self._whole)
        whole = self._progress.tasks[0]
        self._progress.update(self._whole, told=f"{whole.completed:.0f} of {whole.total:.0f}")


class Lines(AbstractContextManager["Lines"]):
    """A line when a model ends, and one now and then for those that take long."""

    def __init__(self, console: Console, models: Sequence[Model]) -> None:
        self._console = console
        self._total = len(models)
        self._ended = 0
        self._reminded: dict[str, float] = {}

    def __exit__(self, *_: object) -> None:
        """Leave the lines as they are."""

    def tick(self, running: Sequence[Running]) -> None:
        """Remind of what takes long."""
        for one in running:
            name = one.task.name
            if one.elapsed() - self._reminded.get(name, 0.0) >= _REMIND_S:
                self._reminded[name] = one.elapsed()
                self._print(f"{name}: {_told(one, states_so_far(one.task.folder))} after {one.elapsed():.0f} s")

    def done(self, result: Result) -> None:
        """Say what came of a model."""
        self._ended += 1
        self._print(f"[{self._ended}/{self._total}] {result.model.name} {verdict(result)}, {_speed(result)}")

    def _print(self, line: str) -> None:
        self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def _told(one: Running, states: int) -> str:
    if checks_liveness(_tail(one.task.folder / OUTPUT)):
        return f"{states:,} states, checking liveness"
    # No states: TLC reads the spec, or has already cleared its folder to leave.
    return f"{states:,} states, {states / one.elapsed():,.0f}/s" if states else "working"


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read()
    except OSError:  # The folder may go while we look.
        return b""


def _speed(result: Result) -> str:
    states = f"{result.distinct_states:,} states, " if result.distinct_states is not None else ""
    rate = f" ({result.states_per_s:,.0f} states/s)" if result.states_per_s is not None else ""
    return f"{states}{result.seconds:.1f} s{rate}"
