"""Data on Spark: made, replayed and prepared, the same whatever the parallelism."""

from __future__ import annotations

import hashlib

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pystream.cli import main
from pystream.data.sample import DataSet
from pystream.errors import PystreamError

pytestmark = pytest.mark.spark

TUPLES = 300_000  # two blocks


def digest(folder):
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in sorted(folder.glob("*.parquet"))}


def test_generate(spark, tmp_path):
    from pystream.spark import generate  # noqa: PLC0415

    for place in ("a", "b"):
        generate(spark, "SC", str(tmp_path / place), streams=3, tuples=TUPLES, seed=4)
    assert digest(tmp_path / "a") == digest(tmp_path / "b")
    whole = DataSet("SC", 3, TUPLES, 4)
    assert list(digest(tmp_path / "a")) == [f"part-{i:06d}.parquet" for i in range(whole.blocks)]
    for i in range(whole.blocks):
        table = pq.read_table(tmp_path / "a" / f"part-{i:06d}.parquet")
        assert table.cast(whole.schema) == whole.block(i)
        assert not any(f.nullable for f in table.schema)
    assert not list((tmp_path / "a").glob(".*"))
    with pytest.raises(PystreamError, match="not empty"):
        generate(spark, "SC", str(tmp_path / "a"))


def test_source(spark):
    from pystream.spark import register  # noqa: PLC0415

    register(spark)
    read = spark.read.format("pystream").option("tuples", TUPLES).option("streams", 2).option("seed", 9)
    rows = read.load().toArrow().sort_by([("stream", "ascending"), ("position", "ascending")])
    whole = DataSet("EC", 2, TUPLES, 9)
    want = pa.concat_tables(whole.block(i) for i in range(whole.blocks))
    assert rows.to_pylist() == want.sort_by([("stream", "ascending"), ("position", "ascending")]).to_pylist()
    with pytest.raises(Exception, match="option streams must be a whole number"):
        spark.read.format("pystream").option("streams", "none").load()


@pytest.mark.full
def test_stream_source(spark, tmp_path):
    """A stream goes on from its checkpoint: each row once, over two runs."""
    from pyspark.errors import StreamingQueryException  # noqa: PLC0415

    from pystream.spark import register  # noqa: PLC0415

    register(spark)

    def run(more=5):
        rows = spark.readStream.format("pystream").option("tuples", TUPLES).load()
        writer = rows.writeStream.format("parquet").option("path", str(tmp_path / "out"))
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True).start()
        try:
            query.awaitTermination()
        except StreamingQueryException as error:
            # Spark gives the Python of a source 10 s to start, whatever is set; starting the query again loses nothing.
            if not more or "failed to connect back" not in str(error):
                raise
            run(more - 1)

    run()
    run()
    rows = spark.read.parquet(str(tmp_path / "out"))
    assert rows.count() == TUPLES
    assert rows.dropDuplicates(["stream", "position"]).count() == TUPLES


@pytest.mark.usefixtures("spark")
def test_the_command_refuses_a_full_folder(tmp_path):
    (tmp_path / "there").touch()
    done = CliRunner().invoke(main, ["generate", "EC", "--out", str(tmp_path)])
    assert (done.exit_code, done.output.count("\n")) == (1, 1)
    assert "is not empty" in done.output
