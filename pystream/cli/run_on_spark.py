"""`pystream run --engine spark`: the same query, read and written by executors."""

from __future__ import annotations

import importlib.util
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click
import pyarrow as pa
import pyarrow.parquet as pq

from pystream._engine.plan import Plan
from pystream._inputs.file_inputs import open_inputs
from pystream._inputs.schemas import common_schema
from pystream._kinds import ORDERED
from pystream.cli import rows_out
from pystream.cli.file_streams import STANDARD
from pystream.data.stored_streams import POSITION, STREAM
from pystream.errors import PystreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pystream.cli.run import Job
    from pystream.query import Query

#: Options that say how this process works: what Spark would ignore is refused.
LOCAL_ONLY = ("design", "threads", "sort", "format", "out_format")


def run_on_spark(job: Job) -> tuple[int | None, int]:
    """Run the job; gives the number of tuples, if the files say it, and of rows."""
    _check(job)
    if importlib.util.find_spec("pyspark") is None or importlib.util.find_spec("pystream.spark") is None:
        raise PystreamError('--engine spark needs the extra: pip install "pystream-core[spark]"')
    files, order, schemas, tuples = _in_folder(job.data) if job.data is not None else _named(job)
    query = job.query(schemas)
    _check_order(query, files)
    wanted = _out_schema(query, schemas)
    with spark_session() as spark:
        from pystream.spark import aggregate_files  # noqa: PLC0415 - an extra

        result = aggregate_files(spark, query, files, *order)
        return tuples, _write(job, query, result, wanted)


def _check(job: Job) -> None:
    defaults = {"design": "auto"}
    given = [o for o in LOCAL_ONLY if job.options[o] not in (defaults.get(o), None, False)]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"--engine spark would ignore {names}: leave it out")
    if STANDARD in job.files or job.standard_out:
        raise click.UsageError("--engine spark reads and writes files, not standard input and output")


def _in_folder(data: Path) -> tuple[list[Path], tuple[str, str], list[pa.Schema], int]:
    files = sorted(f for f in data.rglob("*.parquet") if not f.name.startswith((".", "_")))
    if not files:
        raise PystreamError(f"{data}: no parquet files")
    footers = [_footer(file) for file in files]
    folders = {folder.split("=")[0] for folder in files[0].parts[:-1] if "=" in folder}
    columns = {*footers[0].schema.to_arrow_schema().names, *folders}
    order = STREAM if STREAM in columns else "__file", POSITION if POSITION in columns else "__row"
    return files, order, [footers[0].schema.to_arrow_schema()], sum(footer.num_rows for footer in footers)


def _footer(file: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        raise PystreamError(f"{file}: {error}") from error


def _named(job: Job) -> tuple[list[Path], tuple[str, str], list[pa.Schema], int | None]:
    inputs = open_inputs(job.files)
    for file in inputs:
        if file.format not in ("parquet", "arrow", "csv", "jsonl"):
            raise PystreamError(
                f"{file.path}: --engine spark reads parquet, Arrow IPC files, CSV and JSON lines, not {file.format}"
            )
    known = [file.rows for file in inputs if file.rows is not None]
    tuples = sum(known) if len(known) == len(inputs) else None
    return [file.path for file in inputs], ("__file", "__row"), [file.schema for file in inputs], tuples


def _check_order(query: Query, files: list[Path]) -> None:
    """Spark takes files in the order of their paths, each once. Where another order would show, refuse it."""
    paths = [file.resolve() for file in files]
    if len(set(paths)) < len(paths):
        raise PystreamError("--engine spark takes a file once; one is given twice")
    ordered = [name for name, a in query.aggregates.items() if a.function in ORDERED]
    if ordered and [str(p) for p in paths] != sorted(str(p) for p in paths):
        why = f"{ordered[0]!r} depends on the order of the inputs, which on Spark is that of their paths"
        raise PystreamError(f"{why}: give them sorted")


def _out_schema(query: Query, schemas: list[pa.Schema]) -> pa.Schema:
    """The columns of the result as this process would write them; Spark has fewer types."""
    return Plan(query, common_schema(query, dict(enumerate(schemas)))).out_schema


@contextmanager
def spark_session() -> Iterator[SparkSession]:
    """The session that runs, or one for this command; errors of Spark's come out as one line."""
    from pyspark.errors import PySparkException  # noqa: PLC0415 - an extra
    from pyspark.sql import SparkSession  # noqa: PLC0415

    from pystream.spark import session  # noqa: PLC0415
    from pystream.spark.error_causes import cause_of  # noqa: PLC0415

    running = SparkSession.getActiveSession()
    spark = running or session()
    try:
        yield spark
    except PySparkException as error:
        raise PystreamError(cause_of(error)) from error
    finally:
        if running is None:
            spark.stop()


def _write(job: Job, query: Query, result: DataFrame, schema: pa.Schema) -> int:
    from pystream.spark.data.write import sort_columns, write_sorted  # noqa: PLC0415 - an extra

    if job.out is not None:
        return write_sorted(result, query, job.out, schema, rows_out.FORMATS[job.out.suffix])
    shown = rows_out.Shown(schema)
    table: Any = result.orderBy(*sort_columns(query, schema.names)).toArrow()
    for batch in table.cast(schema).to_batches():
        shown.write(batch)
    shown.print()
    return shown.rows
