"""`pystream report`: what is known about this installation, on one page."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import click

from pystream.cli.console import progress
from pystream.cli.doctor import examine
from pystream.lab.evaluation.plot import plot
from pystream.lab.report.facts import SHORT, compare_designs, load_evaluation, measure_shortly, seeded_bugs
from pystream.lab.report.gallery import figures
from pystream.lab.report.page import Material, drawings, page
from pystream.queries import PAPER
from pystream.verify.tlc import manifest
from pystream.whole_file import make_folder, write_whole

PAGE, PICTURE = "index.html", "evaluation.png"


@click.command(epilog="Example: pystream report --out report --evaluation bench.json")
@click.option(
    "--out", required=True, type=click.Path(file_okay=False, path_type=Path), help="A folder, made if needed."
)
@click.option(
    "--evaluation",
    "given",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A document of `pystream bench --out`; without one, a short measurement is made.",
)
def report(out: Path, given: Path | None) -> None:
    """Write a page: what is installed, what is checked and how fast it is. It fails if two designs differ."""
    loaded = load_evaluation(given) if given else None
    models = manifest.load(manifest.find_spec())
    make_folder(out)
    with progress("reporting", len(PAPER) + (0 if loaded else SHORT.points())) as advance:
        same = compare_designs(advance)
        evaluation = loaded or measure_shortly(advance)
    picture = _pictures(out, evaluation)
    material = Material(examine(), same, evaluation, loaded is None, models, seeded_bugs(), picture)
    write_whole(out / PAGE, page(material))
    click.echo(f"{out / PAGE}: {sum(len(s.designs) for s in same)} runs compared, {len(models)} models")
    if material.wrong:
        raise click.ClickException(f"the designs differ on {', '.join(material.wrong)}")


def _pictures(out: Path, evaluation: dict[str, Any]) -> bytes | None:
    """Write the pictures as files; give the evaluation's own, if there is what draws it."""
    for number, drawing in enumerate(drawings(evaluation["results"]["designs"]).values(), 1):
        write_whole(out / f"throughput-{number}.svg", drawing + "\n")
    charts = [svg for figure in figures(evaluation["results"]) for _, svg in figure.charts]
    for number, drawing in enumerate(charts, 1):
        write_whole(out / f"figure-{number}.svg", drawing + "\n")
    if importlib.util.find_spec("matplotlib") is None or not evaluation["results"]["designs"]:
        return None
    plot(evaluation, out / PICTURE)
    return (out / PICTURE).read_bytes()
