"""`pystream run`: a query over files, one of the paper's or one's own, in this process or on Spark."""

from __future__ import annotations

import textwrap
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click

from pystream._kinds import KINDS
from pystream.aggregation import results
from pystream.cli import rows_out
from pystream.cli.console import progress
from pystream.cli.file_streams import STANDARD, FileStreams, opened
from pystream.cli.query_text import FUNCTIONS_OF_COLUMN, FUNCTIONS_OF_MORE, FUNCTIONS_OF_TWO, Asked, asked, from_toml
from pystream.data.stored_streams import ParquetStreams
from pystream.designs import DESIGNS
from pystream.errors import PystreamError
from pystream.queries import PAPER

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from pystream.query import Query

#: Tuples held per input at most: with the row groups that are kept, this bounds the memory.
PENDING_MAX = 1 << 17

_FUNCTIONS = textwrap.fill(
    f"Functions: count, {', '.join(f'{name}:COLUMN' for name in FUNCTIONS_OF_COLUMN)}, "
    f"{', '.join(f'{name}:COLUMN:{KINDS[name].asks[0].upper()}' for name in FUNCTIONS_OF_MORE)}, "
    f"{', '.join(f'{name}:COLUMN:BY' for name in FUNCTIONS_OF_TWO)}.",
    width=110,
)

_EPILOG = f"""\b
Examples:
  pystream run readings.csv --window 1h --every 15m --key meter --agg n=count --agg mean=mean:cons
  pystream run a.parquet b.parquet --window 1h --key meter --agg 'high=count where cons > 2.5' --out rows.parquet
  pystream run hourly.toml 'data/*.csv' --sort --out rows.csv --force
  zcat load.csv.gz | pystream run - --ts period --window 24h --key respondent --agg max:value --out - > daily.csv
  pystream run k-OI --data data --out rows.parquet --engine spark
\b
An aggregate is NAME=FUNCTION[:COLUMN], with `where COLUMN OPERATOR LITERAL` if only some rows count.
{_FUNCTIONS}
\b
A TOML file says the same:
  window = "1h"
  every = "15m"
  key = "meter"
  [aggregates]
  mean = "mean:cons"
  high = "count where cons > 2.5"
"""


@dataclass(frozen=True)
class Job:
    """What the command line asks for, checked."""

    name: str
    asked: Asked | None  # None: one of the paper's, by its name
    files: tuple[str, ...]
    data: Path | None
    out: Path | None  # None: a table
    options: dict[str, Any]

    @property
    def standard_out(self) -> bool:
        """Whether the rows themselves go to standard output."""
        return self.out is not None and str(self.out) == STANDARD

    def query(self, schemas: list[pa.Schema]) -> Query:
        """The query over inputs of these columns."""
        return PAPER[self.name].query if self.asked is None else self.asked.query(schemas)


def _check_ending(ctx: click.Context, _option: click.Parameter, out: Path | None) -> Path | None:
    if out is None or str(out) == STANDARD:
        return out
    if out.suffix not in rows_out.FORMATS:
        raise click.BadParameter(f"{out.name!r} must end in one of {', '.join(rows_out.FORMATS)}", ctx)
    if not out.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(out.parent)!r}", ctx)
    return out


@click.command(epilog=_EPILOG)
@click.argument("words", nargs=-1, metavar="[QUERY] [FILES]...")
@click.option("--window", help="Size of the windows: 1h, 30s, 250ms; an integer for integer timestamps.")
@click.option("--every", help="A window begins every so often.  [default: as long as a window]")
@click.option("--key", multiple=True, help="Column to group by; may be given several times.")
@click.option("--agg", multiple=True, metavar="NAME=FUNCTION[:COLUMN]", help="What to compute; see below.")
@click.option("--ts", help="Column with the time.  [default: ts, or the only timestamp column]")
@click.option("--sort", is_flag=True, help="Sort each file by time first, in memory.")
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Instead of FILES, a folder of parquet files: with a column `stream` (and `position`), or one file a stream.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, allow_dash=True),
    callback=_check_ending,
    help=f"Where the rows go: {', '.join(rows_out.FORMATS)}, or - ; without it a table is shown. On Spark, a folder.",
)
@click.option("--force", is_flag=True, help="Overwrite --out.")
@click.option(
    "--format", type=click.Choice(list(rows_out.STREAMS)), help="Of standard input and output.  [default: csv]"
)
@click.option("--out-format", type=click.Choice(list(rows_out.STREAMS)), help="Of standard output, if it differs.")
@click.option(
    "--design", type=click.Choice(["auto", *DESIGNS]), default="auto", help="How the operator shares the work."
)
@click.option("--threads", type=click.IntRange(1, 256), help="Update threads, for the designs that have them.")
@click.option("--engine", type=click.Choice(["local", "spark"]), default="local", help="This process, or Spark.")
def run(words: tuple[str, ...], **options: Any) -> None:
    """Run a query over files: yours, or one of the paper's.

    Each file is an input; globs are inputs in the order of names. Parquet, CSV, Arrow IPC and JSON lines are told by
    their endings, - is standard input. QUERY is one of `pystream queries` or a TOML file; without one, --window and
    --agg say what to compute. Every input is in the order of time; the result is the same for any design and engine.
    """
    job = _job(words, options)
    started = perf_counter()
    if options["engine"] == "spark":
        from pystream.cli.run_on_spark import run_on_spark  # noqa: PLC0415 - an extra

        tuples, rows = run_on_spark(job)
    else:
        tuples, rows = _run_here(job)
    read = "" if tuples is None else f"{tuples:,} tuples in, "
    place = f" to {job.out}" if job.out is not None and not job.standard_out else ""
    said = f"{job.name}: {read}{rows:,} rows out{place} in {perf_counter() - started:.1f} s"
    click.echo(said, err=not place)


# ---- what is asked ----


def _job(words: tuple[str, ...], options: dict[str, Any]) -> Job:
    named = bool(words) and (words[0] in PAPER or words[0].endswith(".toml"))
    data, out = options["data"], options["out"]
    files = words[1:] if named else words
    if data is not None and files:
        if not named:
            choices = ", ".join(PAPER)
            raise click.UsageError(f"{words[0]!r} is not one of {choices}, nor a TOML file")
        raise click.UsageError("give either files or --data, not both")
    if data is None and not files:
        raise click.UsageError("which files? Give their names, or - for standard input, or --data FOLDER")
    job = Job(words[0] if named else "run", _asked(words[0] if named else None, options), files, data, out, options)
    _check_formats(job)
    _check_out(job)
    return job


def _asked(name: str | None, options: dict[str, Any]) -> Asked | None:
    own = [f"--{option}" for option in ("window", "every", "key", "agg", "ts") if options[option]]
    if name is not None and own:
        raise click.UsageError(f"{name} is a query of its own: leave out {', '.join(own)}")
    if name in PAPER:
        return None
    try:
        if name is not None:
            return from_toml(Path(name))
        return asked(*(options[option] for option in ("window", "every", "key", "agg", "ts")))
    except FileNotFoundError as error:
        raise click.UsageError(f"there is no file {name!r}") from error
    except (PystreamError, ValueError, TypeError) as error:
        raise click.UsageError(str(error)) from error


def _check_formats(job: Job) -> None:
    standard_in = STANDARD in job.files
    if job.files.count(STANDARD) > 1:
        raise click.UsageError("standard input can be one input only")
    if job.options["format"] and not (standard_in or job.standard_out):
        raise click.UsageError("--format is that of standard input and output; files tell theirs by their endings")
    if job.options["out_format"] and not job.standard_out:
        raise click.UsageError("--out-format is that of standard output: --out -")
    if job.options["sort"] and job.data is not None:
        raise click.UsageError("--sort is for files, not for --data, whose streams lie mixed in many")


def _check_out(job: Job) -> None:
    out = job.out
    if out is None or job.standard_out:
        return
    if job.data is not None and out.suffix == ".parquet" and out.parent.resolve() == job.data.resolve():
        raise click.BadParameter(f"{str(out)!r} lies among the data and would be read as such", param_hint="'--out'")
    if any(out.resolve() == Path(file).resolve() for file in job.files):
        raise click.BadParameter(f"{str(out)!r} is one of the inputs", param_hint="'--out'")
    if out.is_dir() and job.options["engine"] == "local":
        raise click.BadParameter(f"{str(out)!r} is a folder", param_hint="'--out'")
    if (out.is_file() or out.is_dir()) and not job.options["force"]:
        raise click.BadParameter(f"{str(out)!r} is there already; --force overwrites it", param_hint="'--out'")


# ---- in this process ----


def _run_here(job: Job) -> tuple[int, int]:
    if job.data is not None:
        query = job.query([])
        source = ParquetStreams(job.data, query)
        return source.rows, _aggregate(job, query, source)
    with opened(job.files, job.options["format"]) as files:
        query = job.query([file.schema for file in files])
        streams = FileStreams(files, query)
        with streams.naming():
            rows = _aggregate(job, query, streams)
        return streams.rows_read, rows


def _aggregate(job: Job, query: Query, source: ParquetStreams | FileStreams) -> int:
    design, threads, sort = (job.options[option] for option in ("design", "threads", "sort"))
    rows = 0
    with (
        progress(job.name, source.rows) as source.progress,
        results(query, source.streams, design, threads, PENDING_MAX, sort=sort) as (schema, batches),
        _writing(job, schema) as writer,
    ):
        for batch in batches:
            writer.write(batch)
            rows += batch.num_rows
    return rows


@contextmanager
def _writing(job: Job, schema: pa.Schema) -> Iterator[rows_out.Writer]:
    if job.out is None:
        shown = rows_out.Shown(schema)
        yield shown
        shown.print()
    elif job.standard_out:
        with rows_out.to_stdout(job.options["out_format"] or job.options["format"] or "csv", schema) as writer:
            yield writer
    else:
        with rows_out.to_file(job.out, schema) as writer:
            yield writer
