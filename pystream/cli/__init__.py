"""The `pystream` command. Commands are listed from a table and imported when one is invoked, so that help is fast.

What goes wrong is one line on stderr and exit code 1, usage errors are 2, Ctrl-C is 130; `--debug`, before or after the
name of the command, shows the traceback.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
from typing import Any

import click

from pystream import __version__

#: name: (module, function, what it does)
COMMANDS = {
    "doctor": ("pystream.cli.doctor", "doctor", "Say what is installed, what is missing and how to get it."),
    "demo": ("pystream.cli.demo", "demo", "Aggregate a day of made-up smart-meter readings."),
    "queries": ("pystream.cli.queries", "queries", "List the paper's twelve queries."),
    "generate": ("pystream.cli.generate", "generate", "Make a data set in the shape of the paper's, on Spark."),
    "prepare": ("pystream.cli.prepare", "prepare", "Turn raw records into sorted streams, on Spark."),
    "run": ("pystream.cli.run", "run", "Run a query over files: yours, or one of the paper's."),
    "pipeline": (
        "pystream.cli.pipeline",
        "pipeline",
        "Run a pipeline: raw files, prepared and aggregated into a sink.",
    ),
    "recipes": ("pystream.cli.recipes", "recipes", "Show short programs that answer first questions."),
    "bench": ("pystream.cli.bench", "bench", "Repeat the paper's evaluation on this machine."),
    "report": ("pystream.cli.report", "report", "Write a page about this installation: checks, models, speed."),
    "check": ("pystream.cli.check", "check_command", "Check the TLA+ models with TLC."),
}

INTERRUPTED = 130  # what shells give for a process ended by Ctrl-C

_DEBUG = "pystream.debug"


def _note_debug(ctx: click.Context, _option: click.Parameter, value: bool) -> None:
    ctx.meta[_DEBUG] = value or ctx.meta.get(_DEBUG, False)


def _debug_option() -> click.Option:
    return click.Option(["--debug"], is_flag=True, expose_value=False, callback=_note_debug, help="Show tracebacks.")


class LazyGroup(click.Group):
    """The commands of the table above, and one place where exceptions become exit codes."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        """Return the names, in the order of the table."""
        return list(COMMANDS)

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        """Return a stand-in that carries the help line; nothing is imported for it."""
        return click.Command(name, short_help=COMMANDS[name][2]) if name in COMMANDS else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Import the command that is about to run."""
        name, stand_in, rest = super().resolve_command(ctx, args)
        return name, stand_in and load(stand_in.name or ""), rest

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        """Parse the command line; that help cannot be printed is one line, too."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except OSError as error:
            raise click.ClickException(_one_line(error)) from error

    def main(self, *args: Any, **extra: Any) -> Any:
        """Run the command line, until what it prints has been written."""
        try:
            return super().main(*args, **extra)
        except SystemExit as ended:
            _flush(failed=bool(ended.code))
            raise

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort):
            raise
        except KeyboardInterrupt:
            click.echo("Interrupted.", err=True)
            raise click.exceptions.Exit(INTERRUPTED) from None
        except Exception as error:
            if ctx.meta.get(_DEBUG):
                raise
            raise click.ClickException(_one_line(error)) from error


def load(name: str) -> click.Command:
    """Import a command; every one takes --debug."""
    module, function, _ = COMMANDS[name]
    command: click.Command = getattr(importlib.import_module(module), function)
    if not any(p.name == "debug" for p in command.params):
        command.params.append(_debug_option())
    return command


def _flush(*, failed: bool) -> None:
    """Write what is left of the output. Python does so when it ends, but complains in words of its own."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python would try once more
        if failed:
            return  # that has been said
        if error.errno != errno.EPIPE:  # whoever has stopped reading wants to read nothing more
            click.echo(f"Error: {_one_line(error)}", err=True)
        sys.exit(1)


def _one_line(error: Exception) -> str:
    """Say what is wrong; our own errors say it all, others need their name."""
    ours = type(error).__module__.startswith("pystream.")
    text = str(error) if ours else f"{''.join(traceback.format_exception_only(error))} (--debug shows where)"
    return " ".join(text.split())


@click.group(
    cls=LazyGroup,
    params=[_debug_option()],
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    epilog="Example: pystream demo --inputs 8",
)
@click.version_option(__version__, prog_name="pystream", message="%(prog)s %(version)s")
def main() -> None:
    """Deterministic multiway aggregation of timestamp-sorted streams."""
