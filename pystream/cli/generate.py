"""`pystream generate`: a made-up data set as parquet, made on Spark."""

from __future__ import annotations

import time
from pathlib import Path

import click

from pystream.data.sample import SCHEMAS, STREAMS_MAX, DataSet


@click.command(epilog="Example: pystream generate EC --out data --streams 4 --tuples 10000000")
@click.argument("dataset", type=click.Choice(list(SCHEMAS)))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="A folder, new or empty.")
@click.option("--streams", default=4, type=click.IntRange(1, STREAMS_MAX), help="How many streams.")
@click.option("--tuples", default=1_000_000, type=click.IntRange(0), help="How many tuples, over all streams.")
@click.option("--seed", default=1, type=click.IntRange(0), help="The same seed gives the same bytes.")
@click.option("--span", "span_s", type=click.IntRange(1), help="How many seconds it spans; by default what suits it.")
def generate(dataset: str, out: Path, streams: int, tuples: int, seed: int, span_s: int | None) -> None:
    """Write a data set as parquet: EC (smart meters) or SC (comments on songs). Needs Spark and Java 17 or newer."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - an extra

    from pystream.spark import generate as make  # noqa: PLC0415
    from pystream.spark import session  # noqa: PLC0415
    from pystream.spark.data.generate import check_empty  # noqa: PLC0415

    check_empty(str(out))  # before Spark starts, which takes its time
    started = time.monotonic()
    running = SparkSession.getActiveSession()
    spark = running or session()
    try:
        make(spark, dataset, str(out), streams, tuples, seed, span_s)
    finally:
        if running is None:
            spark.stop()
    files = max(1, DataSet(dataset, streams, tuples, seed, span_s).blocks)
    click.echo(f"{tuples:,} tuples in {streams} streams, {files} files in {out} ({time.monotonic() - started:.0f} s)")
