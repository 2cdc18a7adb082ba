"""`pystream check`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from pystream.verify.tlc import CheckError, progress, tables, update
from pystream.verify.tlc.changed import write_changed
from pystream.verify.tlc.check import Wish, run_check
from pystream.verify.tlc.java import find_tools
from pystream.verify.tlc.manifest import THEOREMS, Model, find_spec, load
from pystream.verify.tlc.pluscal import labels, pluscal_modules
from pystream.verify.tlc.runner import Interrupted
from pystream.verify.tlc.selection import SelectionError, override, parse_settings, select
from pystream.whole_file import make_folder, write_whole

_EXAMPLES = """\b
Examples:
  pystream check                          all models but the deep ones, a few minutes
  pystream check TGate                    those whose names start with TGate
  pystream check --theorem 1              what shows the paper's theorem 1, and how it fails as printed
  pystream check 'WHive*Lock*' --trace    and their counterexamples, a line a step
  pystream check TGateTies --trace --set TieRule=arrival
                                          flip a rule and see it fail
"""


@dataclass(frozen=True, kw_only=True)
class _Options:
    models: tuple[str, ...]
    theorem: tuple[str, ...]
    list: bool
    deep: bool
    trace: bool
    update: bool
    settings: tuple[str, ...]
    keep: Path | None
    timeout: float | None
    jobs: int | None
    spec: Path | None


@click.command("check", epilog=_EXAMPLES)
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option(
    "--theorem",
    multiple=True,
    type=click.Choice(THEOREMS),
    help="Only what is about this theorem (lemma) of the paper.",
)
@click.option("--list", is_flag=True, help="Print the manifest and run nothing.")
@click.option("--deep", is_flag=True, help="Run the deep models too: millions of states, up to an hour.")
@click.option("--trace", is_flag=True, help="Print counterexamples, one line a step, one column a thread.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=VALUE",
    help="Run the named models with another value of a constant: the result is shown, not compared.",
)
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Stop a model that takes longer."
)
@click.option(
    "--jobs",
    "-j",
    type=click.IntRange(min=1),
    metavar="N",
    help="Models at a time (default: as cores and memory allow).",
)
@click.option(
    "--keep",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the .cfg files there, for use in other TLA+ tools.",
)
@click.option(
    "--update", is_flag=True, help="Write what was measured into the manifest, and the tables of spec/README.md."
)
@click.option(
    "--spec",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder of the specs (default: PYSTREAM_SPEC, or those that came with pystream).",
)
def check_command(**options: object) -> None:
    """Run the TLC models of the specs and compare result, distinct states and depth with the manifest.

    MODEL is a name, the start of one, or a pattern. Without any, all models but the deep ones run, every PlusCal label
    has to be reached by a model that passes, and the committed translations have to be up to date.
    """
    try:
        sys.exit(_main(_Options(**options)))  # type: ignore[arg-type]
    except SelectionError as error:
        raise click.UsageError(str(error)) from error
    except CheckError as error:
        raise click.ClickException(str(error)) from error
    except Interrupted as error:
        click.echo(f"stopped by {error}", err=True)
        sys.exit(128 + error.signum)


def _main(options: _Options) -> int:
    """Do what is asked and return the exit code."""
    spec = find_spec(options.spec)
    manifest = load(spec)
    chosen = _chosen(options, manifest)
    if options.keep:
        _write_configurations(spec, options.keep, chosen)
    console = _console()
    if options.list:
        console.print(tables.list_table(chosen))
        return 0
    if options.update:
        update.check_readme(spec)
    return _run(options, spec, manifest, chosen, console)


def _chosen(options: _Options, manifest: Sequence[Model]) -> list[Model]:
    if options.settings and (not options.models or options.update):
        raise SelectionError("--set needs the name of a model, and goes with neither all models nor --update")
    everything = options.deep or options.list
    chosen = select(manifest, options.models, deep=everything, theorems=options.theorem)
    changed = parse_settings(options.settings)
    return [override(model, changed) for model in chosen]


def _run(options: _Options, spec: Path, manifest: Sequence[Model], chosen: Sequence[Model], console: Console) -> int:
    tools = find_tools()
    wish = Wish(chosen, options.jobs, options.timeout, translations=not (options.models or options.theorem))
    with progress.display(Console(stderr=True), chosen) as display:
        outcome = run_check(tools, spec, manifest, wish, display)
    compare = not options.settings
    if options.update:
        outcome = update.write(spec, outcome)
    console.print(tables.results_table(outcome, compare=compare))
    console.print()
    for line in tables.foot(outcome, compare=compare):
        console.print(line, soft_wrap=True)
    if options.trace:
        names = {label.name for module in pluscal_modules(spec) for label in labels(module)}
        tables.print_traces(console, outcome.results, names)
    return 0 if tables.succeeded(outcome, compare=compare) else 1


def _write_configurations(spec: Path, folder: Path, models: Sequence[Model]) -> None:
    make_folder(folder)
    for model in models:
        flags = "" if model.deadlock else "-deadlock "
        head = f"\\* {model.name}: tlc2.TLC {flags}-config {model.name}.cfg {model.module}\n"
        write_whole(folder / f"{model.name}.cfg", head + model.cfg())
        if model.change:  # beside the others: two models may change one module
            make_folder(folder / model.name)
            write_changed(spec, model, folder / model.name)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=tables.PLAIN_WIDTH)
