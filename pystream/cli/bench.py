"""`pystream bench`: the paper's evaluation on this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from pystream.cli.bench_tables import tables
from pystream.cli.console import progress, stdout
from pystream.designs import DESIGNS
from pystream.lab.evaluation import plot
from pystream.lab.evaluation.document import document, load_average, resumed
from pystream.lab.evaluation.experiments import Evaluation
from pystream.lab.evaluation.plan import AS_LONG, QUICK, Plan
from pystream.queries import PAPER
from pystream.whole_file import check_writable, write_whole

if TYPE_CHECKING:
    from collections.abc import Callable

#: Seconds between two lines about the time left, where there is no bar.
LINE_S = 30.0

_EPILOG = """\b
Examples:
  pystream bench --quick --out bench.json
  pystream generate EC --streams 20 --out data/EC
  pystream generate SC --streams 20 --out data/SC
  pystream bench --data data --out bench.json
  pystream report --evaluation bench.json --out report
"""


@click.command(epilog=_EPILOG)
@click.option("--quick", is_flag=True, help="Four queries, 5 and 20 inputs, in less than three minutes.")
@click.option("--paper", is_flag=True, help="Phases as long and as many rounds as in the paper: it takes days.")
@click.option("--query", "queries", multiple=True, type=click.Choice(list(PAPER)), help="Only these queries.")
@click.option("--design", "designs", multiple=True, type=click.Choice(DESIGNS), help="Only these designs.")
@click.option("--inputs", multiple=True, type=click.IntRange(1, 256), help="Only these numbers of inputs.")
@click.option("--threads", multiple=True, type=click.IntRange(1, 256), help="Update threads of tuml-mc to try.")
@click.option("--rounds", type=click.IntRange(1), help="Turns of each design; the median counts.")
@click.option("--seconds", type=click.FloatRange(0.05), help="Of one measurement, warm-up and cool-down included.")
@click.option(
    "--minutes",
    type=click.FloatRange(0, min_open=True),
    help="Of all measurements together: they are shortened to fit.",
)
@click.option("--tuples", type=click.IntRange(1_000), help="Tuples of a lap; they are replayed as often as needed.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder with EC and SC as Spark wrote them (generate, prepare); without it, they are made up here.",
)
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Where the result goes, as JSON.")
@click.option("--resume", is_flag=True, help="Go on with what an interrupted run left in --out.")
@click.option(
    "--plot", "picture", type=click.Path(dir_okay=False, path_type=Path), help="Where a picture goes, as PNG."
)
def bench(
    quick: bool,
    paper: bool,
    minutes: float | None,
    out: Path | None,
    resume: bool,
    picture: Path | None,
    **chosen: Any,
) -> None:
    """Repeat the paper's evaluation on this machine.

    Throughput and latency over inputs and rates, durations, update threads, levels, T-Gate against a skip list. It
    takes about an hour without --quick; what there is of it is saved in --out after every part.
    """
    if (quick and paper) or (resume and out is None):
        raise click.UsageError("--quick and --paper exclude each other; --resume needs --out")
    plan = _plan(AS_LONG if paper else QUICK if quick else Plan(), minutes, chosen)
    if picture is not None:
        plot.library()  # now, not after the measurements
    for path in filter(None, (out, picture)):
        check_writable(path)
    before = resumed(out, plan) if resume and out is not None else {}
    result = _measured(plan, before, out)
    _show(result)  # first: it is all that is left if the disk is full
    _save(result, out)
    if picture is not None:
        plot.plot(result, picture)


def _plan(plan: Plan, minutes: float | None, chosen: dict[str, Any]) -> Plan:
    """The plan with what was asked for. Whoever names queries or designs does not mean S-Merge alone."""
    plan = replace(plan, **{name: value for name, value in chosen.items() if value})
    if chosen["queries"] or chosen["designs"]:
        plan = replace(plan, mergers=())
    return plan if minutes is None else replace(plan, budget=60 * minutes)


def _measured(plan: Plan, before: dict[str, Any], out: Path | None) -> dict[str, Any]:
    """Run the plan, saving what there is after every part and after an interruption."""
    load = load_average()
    click.echo(f"At most {plan.points():,} measurements, about {plan.estimate() / 60:.1f} minutes", err=True)
    with progress("measuring", plan.points()) as advance:
        evaluation = Evaluation(plan, _with_lines(advance, plan.points()), **before)
        evaluation.save = lambda: _save(document(evaluation, load), out)
        try:
            evaluation.run()
        except BaseException:  # what there is after Ctrl-C is worth keeping
            evaluation.save()
            raise
    return document(evaluation, load)


def _with_lines(advance: Callable[[int], None], points: int) -> Callable[[int], None]:
    """Also tell how much time is left, in lines where there is no terminal for a bar."""
    begun = told = perf_counter()
    done = 0

    def count(steps: int) -> None:
        nonlocal told, done
        advance(steps)
        done += steps
        now = perf_counter()
        if now - told >= LINE_S and not sys.stderr.isatty():
            told = now
            left = (now - begun) / max(1, done) * (points - done)
            click.echo(f"{done:,} of {points:,} measurements, about {left / 60:.1f} minutes left", err=True)

    return count


def _save(result: dict[str, Any], out: Path | None) -> None:
    if out is not None:
        write_whole(out, json.dumps(result, indent=1) + "\n")


def _show(result: dict[str, Any]) -> None:
    console = stdout()
    for listing in tables(result):
        console.print(listing)
        console.print()
    loads = [f"{one[0]:.1f}" if one else "unknown" for one in result["load_average"].values()]
    console.print(f"{result['seconds']:.0f} s; load average {loads[0]} at the start, {loads[1]} at the end")
