"""`pystream pipeline`: raw files, prepared and aggregated into a sink, as a TOML file describes it."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from pystream.cli.pipelines.described import ENGINES, from_toml
from pystream.data.raw_files import raw_paths
from pystream.errors import PystreamError

if TYPE_CHECKING:
    from pystream.cli.pipelines.described import Pipeline

_EPILOG = """\b
Examples:
  pystream pipeline hourly.toml
  pystream pipeline hourly.toml --engine spark --force
\b
A file has a source, how records are read (prepare), a query as in `pystream run`, and a sink:
  engine = "local"              # or "spark"
  [source]
  path = "raw/*.csv"            # also a folder; parquet, CSV, JSON lines, Arrow IPC
  [prepare]
  ts = "time"
  tz = "Europe/Berlin"          # where the clock hung, if the times do not say it
  stream = "device"
  [query]
  window = "1h"
  every = "15m"
  key = "device"
  aggregates = { n = "count", mean = "mean:value" }
  [sink]
  path = "rows.parquet"         # or .csv; or call = "module:function", with the rows and the number of the batch
\b
With `checkpoint = "state"` the files are a stream: each run takes those that are new, each exactly once, also
after kill -9, and writes the windows that are complete; --finish ends it with those that are still open. A sink's
function may get a batch again after a kill: then the same rows under the same number. Runs do not compare records
with those of earlier runs: a record that comes twice in one run counts once, in two runs twice.
"""


@click.command(epilog=_EPILOG)
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--engine", type=click.Choice(ENGINES), help="In place of the file's.")
@click.option("--finish", is_flag=True, help="End a stream of files: windows that are still open come out, too.")
@click.option("--force", is_flag=True, help="Overwrite the sink's path.")
def pipeline(file: Path, engine: str | None, finish: bool, force: bool) -> None:
    """Run a pipeline: raw files, prepared and aggregated into a sink.

    The result is the same to the bit on this machine and on Spark. As a stream of files it is that of all files at
    once, too, unless a record, or rows of equal time in one stream, come in two runs.
    """
    try:
        described = from_toml(file).asked(engine, finish=finish)
    except PystreamError as error:
        raise click.UsageError(str(error)) from error
    _check_out(described, force=force)
    started = perf_counter()
    if described.engine == "spark":
        from pystream.cli.pipelines.on_spark import run_on_spark as run  # noqa: PLC0415 - an extra
    else:
        from pystream.cli.pipelines.here import run_here as run  # noqa: PLC0415 - only what is needed
    first, *more = run(described).lines()
    place = described.call if described.out is None else described.out
    click.echo(f"{described.name}: {first} to {place} in {perf_counter() - started:.1f} s")
    for line in more:
        click.echo(line)


def _check_out(described: Pipeline, *, force: bool) -> None:
    out = described.out
    if out is None:
        return
    if any(out.resolve() == Path(path).resolve() for path in raw_paths(described.paths)):
        raise click.UsageError(f"{str(out)!r} is one of the source's files")
    if not out.parent.is_dir():
        raise click.UsageError(f"there is no folder {str(out.parent)!r}")
    if described.checkpoint is not None:
        if out.is_file():
            raise click.UsageError(f"{str(out)!r} is a file, and a stream makes a folder")
        return
    if out.is_dir() and described.engine == "local":
        raise click.UsageError(f"{str(out)!r} is a folder, and without Spark it would be a file")
    if out.exists() and not force:
        raise click.UsageError(f"{str(out)!r} is there already; --force overwrites it")
