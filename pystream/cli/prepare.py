"""`pystream prepare`: raw records into timestamp-sorted streams, on Spark."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from pystream._inputs.column_names import missing_column
from pystream.data.raw_files import open_raw
from pystream.data.raw_records import UNITS
from pystream.data.sample import STREAMS_MAX
from pystream.errors import PystreamError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

#: Readers of Spark's by the ending of a file; a folder is parquet unless --format says else.
READERS = {".parquet": "parquet", ".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".json": "json", ".orc": "orc"}

_EPILOG = """\b
Examples:
  pystream prepare raw.csv --ts time --tz Europe/Berlin --stream meter --require cons --out data
  pystream prepare raw/ --format json --ts when --time-format 'dd/MM/yyyy HH:mm' --tz UTC --streams 8 --out data
  pystream prepare log.parquet --ts at --unit ms --stream device --out data
  pystream run --data data --window 1h --key meter --agg mean=mean:cons --out rows.parquet
"""


@click.command(epilog=_EPILOG)
@click.argument("paths", nargs=-1, required=True, metavar="PATHS...", type=click.Path(exists=True))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A folder that is not there yet.")
@click.option("--ts", default="ts", help="Column with the time: a number, a timestamp or text.")
@click.option("--time-format", help="How the text is written, in Spark's letters.  [default: ISO 8601]")
@click.option("--tz", metavar="ZONE", help="Where the clock hung, for times that do not say it: UTC, Europe/Berlin.")
@click.option("--unit", type=click.Choice(list(UNITS)), help="What whole numbers count since 1970.")
@click.option("--stream", multiple=True, help="Column that decides a row's stream; several times for several.")
@click.option("--streams", default=4, type=click.IntRange(1, STREAMS_MAX), help="How many streams.")
@click.option("--require", multiple=True, help="Column that must not be null; rows without it are dropped.")
@click.option("--format", type=click.Choice(sorted(set(READERS.values()))), help="Of the files.  [default: by ending]")
@click.option("--force", is_flag=True, help="Replace --out.")
def prepare(
    paths: tuple[str, ...],
    out: Path,
    ts: str,
    time_format: str | None,
    tz: str | None,
    unit: str | None,
    stream: tuple[str, ...],
    streams: int,
    require: tuple[str, ...],
    format: str | None,
    force: bool,
) -> None:
    """Turn raw records into sorted streams, on Spark.

    Rows come unsorted, with times as text, twice or incomplete; out come parquet files with the columns ts, stream and
    position and all others, as `pystream run --data` takes them. Times keep their resolution and are timestamps; whole
    numbers without --unit stay what they are. What was left out is counted, with examples. Needs Spark and Java 17 or
    newer.
    """
    reader = format or _reader(paths)
    if out.exists() and not force:
        raise click.BadParameter(f"{str(out)!r} is there already; --force replaces it", param_hint="'--out'")
    if any(out.resolve() == Path(path).resolve() for path in paths):
        raise click.BadParameter(f"{str(out)!r} is one of the inputs", param_hint="'--out'")
    if importlib.util.find_spec("pyspark") is None:
        raise PystreamError('prepare needs Spark: pip install "pystream-core[spark]"')
    from pystream.cli.run_on_spark import spark_session  # noqa: PLC0415 - an extra
    from pystream.spark import prepare as make  # noqa: PLC0415
    from pystream.spark.data.write import write_streams  # noqa: PLC0415

    started = perf_counter()
    with spark_session() as spark:
        raw = _read(spark, paths, reader, ts)
        for name in (ts, *stream, *require):
            if name not in raw.columns:
                raise PystreamError(missing_column(name, raw.columns))
        made = make(raw, ts, stream or None, streams, time_format, require, unit=unit, tz=tz)
        rows = made.counting(lambda frame: write_streams(frame, out))
    click.echo(f"{rows:,} rows in {streams} streams to {out}, {made} ({perf_counter() - started:.0f} s)")
    for why, examples in made.examples.items():
        click.echo(f"  {why}: {'; '.join(examples)}")


def _read(spark: SparkSession, paths: tuple[str, ...], reader: str, ts: str) -> DataFrame:
    if reader == "csv":
        from pystream.spark.data.raw_frames import raw_frame  # noqa: PLC0415 - an extra

        return raw_frame(spark, open_raw(paths, ts, "csv"))
    # Without mergeSchema Spark takes the columns of one of the files: rows that differ in another's would seem equal.
    return spark.read.format(reader).option("mergeSchema", "true").load(list(paths))


def _reader(paths: tuple[str, ...]) -> str:
    found = {READERS.get(Path(path).suffix.lower(), "parquet" if Path(path).is_dir() else "") for path in paths}
    if len(found) != 1 or "" in found:
        raise click.UsageError(f"the endings tell no one format: say --format, or name files {', '.join(READERS)}")
    return found.pop()
