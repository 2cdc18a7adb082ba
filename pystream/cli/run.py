"""`pystream run`: one of the paper's queries over a folder of parquet files."""

from __future__ import annotations

import importlib
import importlib.util
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from pystream.batch_run import results
from pystream.cli.console import progress
from pystream.designs import DESIGNS
from pystream.errors import PystreamError
from pystream.parquet_streams import POSITION, STREAM, ParquetStreams
from pystream.queries import PAPER
from pystream.whole_file import whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Writers of record batches by the ending of the file.
FORMATS: dict[str, Callable[[str, pa.Schema], Any]] = {
    ".parquet": pq.ParquetWriter,
    ".csv": pyarrow.csv.CSVWriter,
    ".arrow": pa.ipc.new_file,
}

#: Tuples held per input at most: with the row groups that are kept, this bounds the memory.
PENDING_MAX = 1 << 17


def _check_ending(_ctx: click.Context, _option: click.Parameter, out: Path) -> Path:
    if out.suffix not in FORMATS:
        raise click.BadParameter(f"{out.name!r} must end in one of {', '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise click.BadParameter(f"there is no folder {str(out.parent)!r}")
    return out


@click.command(epilog="Example: pystream run k-OI --data data --out rows.parquet")
@click.argument("query", type=click.Choice(list(PAPER)), metavar="QUERY")
@click.option(
    "--data",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="A folder of parquet files: with a column `stream` (and `position`), or one file for each stream.",
)
@click.option(
    "--out",
    required=True,
    type=click.Path(dir_okay=False, path_type=Path),
    callback=_check_ending,
    help="Where the rows go: .parquet, .csv or .arrow.",
)
@click.option(
    "--design", type=click.Choice(["auto", *DESIGNS]), default="auto", help="How the operator shares the work."
)
@click.option("--threads", type=click.IntRange(1, 256), help="Update threads, for the designs that have them.")
@click.option("--engine", type=click.Choice(["local", "spark"]), default="local", help="This process, or Spark.")
def run(query: str, data: Path, out: Path, design: str, threads: int | None, engine: str) -> None:
    """Run one of the paper's queries over stored streams."""
    if out.suffix == ".parquet" and out.parent.resolve() == data.resolve():
        raise click.BadParameter(f"{str(out)!r} lies among the data and would be read as such", param_hint="'--out'")
    started = perf_counter()
    if engine == "spark":
        tuples, rows = _on_spark(query, data, out)
    else:
        tuples, rows = _here(query, data, out, design, threads)
    seconds = perf_counter() - started
    click.echo(f"{query}: {tuples:,} tuples in, {rows:,} rows out to {out} in {seconds:.1f} s")


def _here(query: str, data: Path, out: Path, design: str, threads: int | None) -> tuple[int, int]:
    asked = PAPER[query].query
    source = ParquetStreams(data, asked)
    rows = 0
    with (
        progress(query, source.rows) as source.progress,
        results(asked, source.streams, design, threads, PENDING_MAX) as (schema, batches),
        _writing(out, schema) as writer,
    ):
        for batch in batches:
            writer.write(batch)
            rows += batch.num_rows
    return source.rows, rows


@contextmanager
def _writing(out: Path, schema: pa.Schema) -> Iterator[Any]:
    """Give a writer into a file that gets its name once it is complete."""
    with whole_file(out) as scratch, FORMATS[out.suffix](str(scratch), schema) as writer:
        yield writer


def _on_spark(query: str, data: Path, out: Path) -> tuple[int, int]:
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pystream.spark") is None:
        raise PystreamError('--engine spark needs the extra: pip install "pystream-core[spark]"')
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra
    from pyspark.sql import SparkSession  # noqa: PLC0415

    engine, causes = (importlib.import_module(f"pystream.spark{name}") for name in ("", ".causes"))
    files = sorted(f for f in data.rglob("*.parquet") if not f.name.startswith((".", "_")))
    if not files:
        raise PystreamError(f"{data}: no parquet files")
    running = SparkSession.getActiveSession()
    spark = running or engine.session()
    try:
        result = engine.aggregate_files(spark, PAPER[query].query, files, *_order_columns(files[0]))
        table = result.toArrow().sort_by([(name, "ascending") for name in ("ts", *PAPER[query].query.key)])
    except PySparkException as error:
        raise PystreamError(causes.cause_of(error)) from error
    finally:
        if running is None:
            spark.stop()
    with _writing(out, table.schema) as writer:
        writer.write(table)
    return sum(pq.read_metadata(f).num_rows for f in files), table.num_rows


def _order_columns(file: Path) -> tuple[str, str]:
    """What says which stream a row belongs to, and where in it: a column, or the file and the place in it."""
    columns = {*pq.read_schema(file).names, *(folder.split("=")[0] for folder in file.parts[:-1] if "=" in folder)}
    return STREAM if STREAM in columns else "__file", POSITION if POSITION in columns else "__row"
