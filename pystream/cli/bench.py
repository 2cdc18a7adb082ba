"""`pystream bench`: the paper's evaluation on this machine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import click

from pystream.cli.bench_tables import tables
from pystream.cli.console import progress, stdout
from pystream.designs import DESIGNS
from pystream.lab.evaluation import plot
from pystream.lab.evaluation.document import document, load_average
from pystream.lab.evaluation.experiments import QUICK, Evaluation, Plan
from pystream.queries import PAPER
from pystream.whole_file import check_writable, write_whole


@click.command(epilog="Example: pystream bench --quick --out bench.json")
@click.option("--quick", is_flag=True, help="Four queries, 5 and 20 inputs, in less than three minutes.")
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
@click.option("--tuples", type=click.IntRange(1_000), help="Tuples made up; they are replayed as often as needed.")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Where the result goes, as JSON.")
@click.option(
    "--plot", "picture", type=click.Path(dir_okay=False, path_type=Path), help="Where a picture goes, as PNG."
)
def bench(quick: bool, minutes: float | None, out: Path | None, picture: Path | None, **chosen: Any) -> None:
    """Measure throughput and latency of the designs as the paper does."""
    plan = replace(QUICK if quick else Plan(), **{name: value for name, value in chosen.items() if value})
    plan = plan if minutes is None else replace(plan, budget=60 * minutes)
    if picture is not None:
        plot.library()  # now, not after the measurements
    for path in filter(None, (out, picture)):
        check_writable(path)
    load, started = load_average(), perf_counter()
    click.echo(f"At most {plan.points():,} measurements, about {plan.estimate() / 60:.1f} minutes", err=True)
    with progress("measuring", plan.points()) as advance:
        evaluation = Evaluation(plan, advance)
        try:
            evaluation.run()
        except BaseException:  # what there is after Ctrl-C is worth keeping
            _save(document(evaluation, load, perf_counter() - started), out)
            raise
    result = document(evaluation, load, perf_counter() - started)
    _show(result)  # first: it is all that is left if the disk is full
    _save(result, out)
    if picture is not None:
        plot.plot(result, picture)


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
