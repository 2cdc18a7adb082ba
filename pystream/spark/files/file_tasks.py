"""`aggregate_files`: a query over files that the executors read themselves, with Arrow. No row crosses into the JVM.

The driver inspects the files (file_source.py) and shares them out (splits.py). The DataFrame that Spark runs on has the
number of a task in each partition, and what the task has to read goes with its function: the names of files, the row
groups, and sizes and times, so that a file that has changed since is noticed.
If the files' statistics allow it, each task gives the windows of a range of time and nothing is shuffled; otherwise
partial aggregates are (rows/phases.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from pystream.spark.files import splits
from pystream.spark.files.file_source import look, unpacked
from pystream.spark.rows.batch import aggregate
from pystream.spark.rows.needed_columns import has_udf, order_columns
from pystream.spark.rows.phases import Phases
from pystream.spark.rows.spark_types import results, spark_schema, struct_type, to_spark
from pystream.spark.rows.task_numbers import parallelism
from pystream.spark.task_process import for_executors, settle

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from pystream.query import Query
    from pystream.spark.files.file_source import Source
    from pystream.spark.files.listing import Path

#: A row for each task: from where to where rows are in its windows, and the parts of files to read for them.
_FILE = [("number", pa.int32()), ("path", pa.string()), ("size", pa.int64()), ("modified_ns", pa.int64())]
_PART = [("file", pa.struct(_FILE)), ("groups", pa.list_(pa.int32())), ("until", pa.int64()), ("inside", pa.bool_())]
TASKS = pa.schema(
    [
        ("begin", pa.int64()),
        ("reach", pa.int64()),
        ("parts", pa.list_(pa.struct(_PART))),
    ]
)


def aggregate_files(
    spark: SparkSession,
    query: Query,
    path: Path | Sequence[Path],
    stream: str = "stream",
    position: str | None = "position",
    format: str | None = None,
    filesystem: Any = None,
    where: pc.Expression | None = None,
) -> DataFrame:
    """Aggregate files; one row per window and key comes out, the same as from `pystream.aggregate`, in no order.

    `path` is a file, a folder, a glob or a list of them: parquet, Arrow IPC, CSV or JSON lines, which the ending tells
    or `format` ("parquet", "arrow", "csv", "jsonl"). It is a plain path or a URI that pyarrow can open on every
    executor, or a path in `filesystem` (of pyarrow or fsspec). Folders of the form name=value give columns, of the
    types that Spark would give them. `stream` and `position` are as in
    `aggregate`; "__file" and "__row" stand for where a row lies: `stream="__file", position="__row"` takes each file,
    in the order of paths, for a stream, with its rows in their order.

    `where` is an expression over the columns, those of folders included, as that of a function is: rows for which it
    does not hold are left out, as if they were not in the files. Row groups of parquet whose statistics, or whose
    folder's name, rule it out are not read at all.

    Files must not change meanwhile: a task that finds one missing, changed or unreadable fails with its name.

    >>> generate(spark, "EC", f"{folder}/readings", streams=2, tuples=1000)
    >>> query = ps.Query(ps.Window(3600), key=None, aggregates={"n": ps.count()})
    >>> aggregate_files(spark, query, f"{folder}/readings").agg({"n": "sum"}).collect()
    [Row(sum(n)=1000)]
    >>> aggregate_files(spark, query, f"{folder}/readings", where=pc.field("stream") == 1).agg({"n": "sum"}).collect()
    [Row(sum(n)=500)]
    """
    order = order_columns(query, stream, position)
    zone = spark.conf.get("spark.sql.session.timeZone") or "UTC"
    source, pieces = look(query, path, order, format, filesystem, where, zone)
    phases = Phases(query, source.schema, *(order[1:] or (None, None)))
    tasks = splits.task_count(pieces, lambda: parallelism(spark))
    ranges = None if has_udf(query) else splits.by_time(pieces, tasks, *phases.window)
    shared = splits.by_size(pieces, tasks) if ranges is None else ranges
    frame, own = spark.range(0, len(shared), 1, len(shared)), _numbered(shared)
    if has_udf(query):
        rows = struct_type(spark_schema(source.schema))
        read = frame.mapInArrow(for_executors(lambda batches: source.spark_rows(own(batches))), rows)
        return aggregate(read, query, stream, position)
    if ranges is not None:
        return results(frame, lambda batches: windows(phases, source, own(batches)), query, source.schema)
    return phases.shuffle(frame, lambda batches: source.rows(own(batches)))


def _numbered(shared: list[splits.Split]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """What finds the tasks of which it gets the numbers. Each is packed: a task must not unpack those of all others."""
    table = task_table(shared)
    packed = [table.slice(i, 1).combine_chunks().to_batches()[0].serialize().to_pybytes() for i in range(len(shared))]

    def own(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield pa.ipc.read_record_batch(pa.py_buffer(packed[number]), TASKS)

    return own


def task_table(shared: list[splits.Split]) -> pa.Table:
    """The tasks as rows."""
    rows = [vars(split) | {"parts": [_as_dict(part) for part in split.parts()]} for split in shared]
    return pa.Table.from_pylist(rows, schema=TASKS)


def _as_dict(part: splits.Part) -> dict[str, Any]:
    return vars(part) | {"file": vars(part.file)}  # dataclasses.asdict copies every list: half the driver's time


def windows(phases: Phases, source: Source, tasks: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A task by time: all windows that start in its range, whose rows it reads all."""
    settle()
    for task in unpacked(tasks):
        begin, reach = task["begin"], task["reach"]
        combine = phases.combine(begin)
        for part in task["parts"]:
            for batch in source.rows_of(part):
                combine.add_rows(batch if part["inside"] else _between(batch, source.ts, begin, reach))
            if part["until"]:
                yield from map(to_spark, combine.advance(min(part["until"], reach)))
        for out in combine.finish() if reach == splits.FOREVER else combine.advance(reach):
            yield to_spark(out)


def _between(batch: pa.RecordBatch, name: str, begin: int, end: int) -> pa.RecordBatch:
    """The rows from one timestamp to before another."""
    ts = batch.column(name).cast(pa.int64())
    if ts.null_count:  # the fold refuses it
        return batch
    inside = pc.greater_equal(ts, begin)
    return batch.filter(inside if end == splits.FOREVER else pc.and_(inside, pc.less(ts, end)))
