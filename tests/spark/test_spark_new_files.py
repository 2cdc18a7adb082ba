"""Files that come into a folder, read by the executors: the rows of `ps.aggregate`, each file exactly once."""

from __future__ import annotations

import os

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import streaming_runs as runs
from pyarrow import fs

import pystream as ps
from pystream.queries import PAPER

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark import aggregate_new_files, finish
from pystream.spark.files.file_source import Source
from pystream.spark.stream import new_files
from pystream.spark.stream.noted_files import place_of

pytestmark = pytest.mark.spark

QUICK = ("k-OS",)


def whole(spark, folder, started, query) -> list[dict]:
    """What the sink got and what was left open."""
    started.awaitTermination()
    streamed = spark.read.parquet(str(folder / "out")).toArrow()
    assert streamed.num_rows
    return runs.rows(pa.concat_tables([streamed, finish(started, query, spark).toArrow()]), query)


@pytest.mark.parametrize("id", [id if id in QUICK else pytest.param(id, marks=pytest.mark.deep) for id in PAPER])
def test_the_papers_queries(id, spark, tmp_path):
    paper = PAPER[id]
    made = runs.streams(paper.dataset)
    runs.write(tmp_path, made.block(0), files=4)
    out = aggregate_new_files(spark, paper.query, tmp_path / "in", streams=3, maxFilesPerTrigger=2)
    assert out.isStreaming
    started = runs.start(out, tmp_path)
    assert whole(spark, tmp_path, started, paper.query) == ps.aggregate(paper.query, made.tables()).to_pylist()
    assert [p["observedMetrics"]["pystream"]["rows_in"] for p in started.recentProgress] == [1500, 1500]


def test_goes_on_with_what_has_come_meanwhile(spark, tmp_path):
    """Started before there is a file, stopped, started again: no file is lost and none is read twice."""
    made = runs.streams()
    table = made.block(0).sort_by("ts")
    (tmp_path / "in").mkdir()

    def run():
        out = aggregate_new_files(spark, runs.QUERY, tmp_path / "in", schema=table.schema, shards=2)
        started = runs.start(out, tmp_path)
        started.awaitTermination()
        return started

    run()
    runs.write(tmp_path, table.slice(0, 1000), files=1)
    run()
    runs.write(tmp_path, table.slice(1000), files=2, first=1)
    assert whole(spark, tmp_path, run(), runs.QUERY) == ps.aggregate(runs.QUERY, made.tables()).to_pylist()


def test_other_formats_odd_names_and_columns_from_folders(spark, tmp_path):
    """Narrower types than the first file's, a name with everything in it, the stream in the name of the folder."""
    made = runs.streams()
    table = made.block(0)
    positions = table.schema.get_field_index("position")
    narrow = table.set_column(positions, "position", table["position"].cast(pa.int16()))
    writers = {"parquet": pq.write_table, "feather": pa.feather.write_feather, "csv": pa.csv.write_csv}
    for stream, (ending, write) in enumerate(writers.items()):
        folder = tmp_path / "in" / f"stream={stream}"
        folder.mkdir(parents=True)
        own = (narrow if stream else table).filter(pc.field("stream") == stream).drop_columns("stream")
        write(own, str(folder / f"a %20b ü #{stream}.{ending}"))
    out = aggregate_new_files(spark, runs.QUERY, tmp_path / "in")
    started = runs.start(out, tmp_path)
    assert whole(spark, tmp_path, started, runs.QUERY) == ps.aggregate(runs.QUERY, made.tables()).to_pylist()


def test_nulls_that_come_later(spark, tmp_path):
    """The first file has none, which says nothing of the others."""
    made = runs.streams().block(0).sort_by("ts")
    cons = pa.array([None if i >= 2000 else 1.0 for i in range(3000)], pa.float64())
    table = made.set_column(made.schema.get_field_index("cons"), "cons", cons)
    runs.put(tmp_path, table.slice(0, 2000), 0)
    runs.put(tmp_path, table.slice(2000), 1)
    started = runs.start(aggregate_new_files(spark, runs.QUERY, tmp_path / "in"), tmp_path)
    inputs = [table.filter(pc.field("stream") == i) for i in range(3)]
    assert whole(spark, tmp_path, started, runs.QUERY) == ps.aggregate(runs.QUERY, inputs).to_pylist()


def test_a_broken_file_is_named(spark, tmp_path):
    runs.write(tmp_path, runs.streams().block(0), files=1)
    (tmp_path / "in" / "0001.parquet").write_bytes(b"PAR1 no more")
    out = aggregate_new_files(spark, runs.QUERY, tmp_path / "in")
    with pytest.raises(Exception, match=r"PystreamError: .*in/0001\.parquet: "):
        runs.start(out, tmp_path).awaitTermination()


@pytest.mark.parametrize("gone", [1, pytest.param(2, marks=pytest.mark.full)])
def test_a_file_that_has_gone_is_named(gone, spark, tmp_path):
    """Spark leaves out without a word what is not there any more when a micro-batch runs that it is noted for."""
    made = runs.streams()
    runs.write(tmp_path, made.block(0), files=4)

    def run():
        out = aggregate_new_files(spark, runs.QUERY, tmp_path / "in", shards=2, maxFilesPerTrigger=2)
        started = runs.start(out, tmp_path)
        started.awaitTermination()
        return started

    run()
    runs.undo(tmp_path, 1)
    lost = [tmp_path / "in" / f"{i:04d}.parquet" for i in (2, 3)[:gone]]
    for file in lost:
        file.rename(tmp_path / file.name)
    names = lost[0].name + (" and 1 more" if gone > 1 else "")
    with pytest.raises(Exception, match=rf"in/{names}: the file is gone .* nothing is written yet; put it back"):
        run()
    for file in lost:
        (tmp_path / file.name).rename(file)
    assert whole(spark, tmp_path, run(), runs.QUERY) == ps.aggregate(runs.QUERY, made.tables()).to_pylist()


@pytest.mark.full
def test_files_without_rows(spark, tmp_path):
    """They are read like others, and nothing comes of them."""
    table = runs.streams().block(0)
    for number in range(2):
        runs.put(tmp_path, table.slice(0, 0), number)
    out = aggregate_new_files(spark, runs.QUERY, tmp_path / "in", shards=2)
    started = runs.start(out, tmp_path)
    started.awaitTermination()
    assert started.lastProgress["numInputRows"] == 2


def test_a_file_without_a_column(tmp_path):
    table = runs.streams().block(0)
    runs.put(tmp_path, table.drop_columns("cons"), 0)
    file = tmp_path / "in" / "0000.parquet"
    found = {"path": f"file:{file}", "length": file.stat().st_size, "modified": 0}
    source = Source(fs.LocalFileSystem(), None, "ts", table.schema)
    with pytest.raises(ps.SchemaError, match=r"0000\.parquet: column 'cons' is missing"):
        list(new_files.rows(source, iter([pa.RecordBatch.from_pylist([found])]), []))


def test_a_file_that_is_another_one_by_now(tmp_path):
    runs.write(tmp_path, runs.streams().block(0), files=1)
    file = tmp_path / "in" / "0000.parquet"
    source = Source(fs.LocalFileSystem(), None, "ts", pq.read_schema(file))
    info = file.stat()

    def read(**changed):
        found = {"path": f"file:{file}", "length": info.st_size, "modified": 0} | changed
        return sum(b.num_rows for b in new_files.rows(source, iter([pa.RecordBatch.from_pylist([found])]), []))

    os.utime(file, (0, 0))
    assert read() == 3000
    assert read(modified=999) == 3000  # Spark knows milliseconds where others know seconds
    with pytest.raises(ps.PystreamError, match=r"0000\.parquet: the file changed since .* modified 7 and 3"):
        os.utime(file, (3, 3))
        read(modified=7000)
    with pytest.raises(ps.PystreamError, match=rf"changed since Spark found it: 5 bytes then and {info.st_size} now"):
        read(length=5, modified=3000)
    file.unlink()
    with pytest.raises(ps.PystreamError, match=r"0000\.parquet: the file is gone since Spark found it"):
        read()


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("file:/a b/%20:x", "/a b/%20:x"),
        ("file:///a", "/a"),
        ("hdfs://host:8020/a/b", "/a/b"),
        ("s3a://bucket/a=1/b", "bucket/a=1/b"),
        ("/plain", "/plain"),
    ],
)
def test_paths_as_arrow_has_them(path, place):
    assert place_of(path) == place


def test_refused(spark, tmp_path):
    (tmp_path / "in").mkdir()
    with pytest.raises(ps.PystreamError, match=r"in: no files"):
        aggregate_new_files(spark, runs.QUERY, tmp_path / "in")
    schema = runs.streams().block(0).schema
    with pytest.raises(ValueError, match="'__file' and '__row' are for aggregate_files"):
        aggregate_new_files(spark, runs.QUERY, tmp_path / "in", "__file", "__row", schema=schema)
    with pytest.raises(ps.SchemaError, match="'stream' is missing; the schema has"):
        aggregate_new_files(spark, runs.QUERY, tmp_path / "in", schema=pa.schema([("ts", pa.int64())]))
    with pytest.raises(ps.SchemaError, match="'cons' has type double; it must be an integer"):
        aggregate_new_files(spark, runs.QUERY, tmp_path / "in", "cons", schema=schema)
