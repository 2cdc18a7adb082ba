"""A pipeline on Spark. A stream of files goes in two steps, each exactly once.

new files -> prepare -> CHECKPOINT/prepared/*.parquet -> aggregate_new_files -> sink, micro-batch by micro-batch
noted in CHECKPOINT/files                                state in CHECKPOINT/state
"""

from __future__ import annotations

import importlib.util
import json
import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pystream._engine.plan import Plan
from pystream.cli import rows_out
from pystream.cli.console import progress
from pystream.cli.pipelines.intake import Intake
from pystream.cli.pipelines.sinks import REST, part_of, user_function
from pystream.cli.pipelines.summary import Summary
from pystream.cli.run_on_spark import spark_session
from pystream.data.local_prepare import prepare_table
from pystream.data.raw_files import open_raw, raw_paths
from pystream.data.raw_records import POSITION
from pystream.errors import PystreamError
from pystream.whole_file import make_folder, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from pystream.cli.pipelines.described import Pipeline
    from pystream.data.raw_files import RawFiles
    from pystream.spark.data.prepare import Prepared

#: Bits of a position below the number of its batch: rows of a later batch come after those of equal times before.
_ROWS_BITS = 40


def run_on_spark(pipeline: Pipeline) -> Summary:
    """Run it: all files at once, or those that are new."""
    if importlib.util.find_spec("pyspark") is None:
        raise PystreamError('engine = "spark" needs the extra: pip install "pystream-core[spark]"')
    with spark_session() as spark:
        if pipeline.checkpoint is None:
            return _all(pipeline, spark)
        return _new(pipeline, pipeline.checkpoint, spark)


def _all(pipeline: Pipeline, spark: SparkSession) -> Summary:
    from pystream.spark import aggregate  # noqa: PLC0415 - an extra

    summary = Summary()
    raw = open_raw(pipeline.paths, pipeline.rules.ts, pipeline.format, pipeline.types)
    made = _prepared(pipeline, spark, raw)
    schema = _out_schema(pipeline, raw.schema)
    with progress(f"{pipeline.name}: prepare and aggregate", None):
        summary.rows = made.counting(
            lambda rows: _write_all(pipeline, aggregate(rows, pipeline.query, position=POSITION), schema)
        )
    summary.add(len(raw.files), None, made.dropped, made.examples)
    return summary


def _prepared(pipeline: Pipeline, spark: SparkSession, raw: RawFiles) -> Prepared:
    from pystream.spark import prepare  # noqa: PLC0415 - an extra
    from pystream.spark.data.raw_frames import raw_frame  # noqa: PLC0415

    rules = pipeline.rules
    frame = raw_frame(spark, raw)
    by = (rules.ts, rules.stream, rules.streams, rules.format, rules.require)
    return prepare(frame, *by, unit=rules.unit, tz=rules.tz)


def _out_schema(pipeline: Pipeline, raw: pa.Schema) -> pa.Schema:
    """The columns of the result as this process would write them; Spark has fewer types."""
    streams = prepare_table(raw.empty_table(), pipeline.rules).streams
    found: pa.Schema = Plan(pipeline.query, streams[0].schema).out_schema
    return found


def _write_all(pipeline: Pipeline, rows: DataFrame, schema: pa.Schema) -> int:
    from pystream.spark.data.write import write_sorted  # noqa: PLC0415 - an extra

    if pipeline.out is not None:
        return write_sorted(rows, pipeline.query, pipeline.out, schema, rows_out.FORMATS[pipeline.out.suffix])
    return _call(pipeline, rows, 0)


def _call(pipeline: Pipeline, rows: DataFrame, batch: int) -> int:
    kept = rows.persist()
    try:
        user_function(pipeline)(kept, batch)
        return kept.count()
    finally:
        kept.unpersist()


# ---- a stream of files ----


def _new(pipeline: Pipeline, checkpoint: Path, spark: SparkSession) -> Summary:
    summary = Summary()
    with Intake(checkpoint, "spark") as intake:
        stages = _Stages(pipeline, checkpoint, intake, spark)
        for number, files in intake.batches(raw_paths(pipeline.paths), stages.taken):
            with progress(f"{pipeline.name}: prepare", None):
                stages.prepare(number, files, summary)
        with progress(f"{pipeline.name}: aggregate", None):
            stages.aggregate(summary)
        if pipeline.finish:
            stages.finish(summary)
    return summary


class _Stages:
    """The two steps, and what of the checkpoint they share."""

    def __init__(self, pipeline: Pipeline, checkpoint: Path, intake: Intake, spark: SparkSession) -> None:
        self._pipeline, self._spark = pipeline, spark
        self._intake = intake
        self._folder = checkpoint
        self._rows = checkpoint / "prepared"
        self._about = checkpoint / "spark.json"
        make_folder(self._rows)
        found = json.loads(self._about.read_text()) if self._about.exists() else {"taken": 0, "finished": False}
        if found["finished"]:
            raise PystreamError(f"{checkpoint}: this stream was finished; a new one needs another checkpoint")
        self.taken: int = found["taken"]

    def prepare(self, number: int, files: Sequence[str], summary: Summary) -> None:
        """Prepare a batch of files; running it again replaces what it made."""
        from pyspark.sql import functions as f  # noqa: PLC0415 - an extra

        from pystream.spark.data.write import write_streams  # noqa: PLC0415

        pipeline = self._pipeline
        raw = open_raw(files, pipeline.rules.ts, pipeline.format, self._intake.types(pipeline.types))
        self._intake.keep_types(raw.schema)
        made = _prepared(pipeline, self._spark, raw)
        place = self._folder / "preparing"
        shutil.rmtree(place, ignore_errors=True)
        made.counting(
            lambda rows: write_streams(rows.withColumn(POSITION, f.col(POSITION) + f.lit(number << _ROWS_BITS)), place)
        )
        for old in self._rows.glob(f"{number:06d}-*.parquet"):
            old.unlink()
        for i, part in enumerate(sorted(place.glob("*.parquet"))):
            part.replace(self._rows / f"{number:06d}-{i:04d}.parquet")
        self._note(taken=number + 1)
        summary.add(len(files), None, made.dropped, made.examples)

    def _note(self, *, taken: int, finished: bool = False) -> None:
        self.taken = taken
        write_whole(self._about, json.dumps({"taken": taken, "finished": finished}))

    def aggregate(self, summary: Summary) -> None:
        """Aggregate what is prepared and was not aggregated yet, a stream of Spark's that ends when all is done."""
        from pystream.spark import aggregate_new_files  # noqa: PLC0415 - an extra

        if not self.taken:
            return

        def write(rows: DataFrame, batch: int) -> None:
            summary.rows += self._write(rows, batch)

        query, late = self._pipeline.query, self._pipeline.late
        windows = aggregate_new_files(self._spark, query, str(self._rows), late=late)
        writer = windows.writeStream.foreachBatch(write).option("checkpointLocation", self._state)
        running = writer.trigger(availableNow=True).start()
        running.awaitTermination()
        for each in running.recentProgress:
            seen: Any = each.observedMetrics.get("pystream")
            summary.late += seen["rows_late"] or 0 if seen is not None else 0

    @property
    def _state(self) -> str:
        return str(self._folder / "state")

    def _write(self, rows: DataFrame, batch: int) -> int:
        from pystream.spark.data.write import write_one  # noqa: PLC0415 - an extra

        pipeline = self._pipeline
        if pipeline.out is None:
            return _call(pipeline, rows, batch)
        schema = _out_schema(pipeline, self._raw_schema())
        out = part_of(pipeline.out, batch)
        return write_one(rows, pipeline.query, out, schema, rows_out.FORMATS[pipeline.out.suffix])

    def _raw_schema(self) -> pa.Schema:
        return pa.schema(list(self._intake.types({}).items()))

    def finish(self, summary: Summary) -> None:
        """End the stream: what is open comes out."""
        from pystream.spark import finish  # noqa: PLC0415 - an extra

        if not self.taken:
            raise PystreamError(f"{self._folder}: no row has come in here, so there is nothing to finish")
        summary.rows += self._write(finish(self._state, self._pipeline.query, self._spark), REST)
        self._note(taken=self.taken, finished=True)
