"""The end of a streaming query: stopped whatever its source does, nothing lost or twice, and said what was read."""

from __future__ import annotations

import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import streaming_runs as runs

import pystream as ps

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark import UnreadInputWarning, aggregate, finish, progress

pytestmark = pytest.mark.spark

COUNT = ps.Query(ps.Window(40, 15), "k", {"n": ps.count(), "s": ps.sum("ts"), "l": ps.last("ts")})

#: Rows of a micro-batch of a source that never ends.
ROWS = 100


def endless(spark):
    """As fast as micro-batches go there is another one: `processAllAvailable` never returns."""
    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load()
    rows = source.selectExpr("value as ts", "0 as stream", "value as position", "value % 7 as k")
    return aggregate(rows, COUNT, position="position", shards=2)


def want(rows: int) -> list[dict]:
    values = list(range(rows))
    return ps.aggregate(COUNT, [pa.table({"ts": values, "k": [v % 7 for v in values]})]).to_pylist()


def got(spark, folder, rest) -> list[dict]:
    streamed = spark.read.parquet(str(folder / "out")).toArrow()
    return runs.rows(pa.concat_tables([streamed, rest.toArrow()]), COUNT)


def test_a_source_that_never_ends(spark, tmp_path):
    """Stopped in the midst of a micro-batch, which then counts as not read: the rows up to there, and it is said."""
    started = runs.start(endless(spark), tmp_path, {"processingTime": "0 seconds"})
    while len(list((tmp_path / "checkpoint").glob("commits/[0-9]*"))) < 2:
        assert started.isActive
    with pytest.warns(UnreadInputWarning, match=r"ended with unread input: read up to micro-batch \d+: .*offset"):
        rest = finish(started, COUNT, timeout=0.1)
    assert not started.isActive
    done = progress(started)
    assert done.ended
    rows = done.offsets[0]["offset"]
    assert rows == ROWS * (done.micro_batch + 1)
    assert got(spark, tmp_path, rest) == want(rows)


@pytest.mark.full
def test_from_another_thread(spark, tmp_path):
    """Where no session is active: that of the query is found."""
    runs.write(tmp_path, runs.streams().block(0), files=2)
    own = spark.newSession()
    out = aggregate(runs.rows_in(own, tmp_path), runs.QUERY, position="position", shards=2)
    started = runs.start(out, tmp_path, {"processingTime": "0 seconds"})
    found: list = []
    thread = threading.Thread(target=lambda: found.append(finish(started, runs.QUERY)))
    thread.start()
    thread.join()
    (rest,) = found
    assert rest.sparkSession._jsparkSession.equals(own._jsparkSession)
    streamed = spark.read.parquet(str(tmp_path / "out")).toArrow()
    everything = runs.rows(pa.concat_tables([streamed, rest.toArrow()]), runs.QUERY)
    assert everything == ps.aggregate(runs.QUERY, runs.streams().tables()).to_pylist()


@pytest.mark.full
def test_unread_files(spark, tmp_path):
    """Nobody has read them when it stopped: refused, unless they are to be left out."""
    table = runs.streams().block(0).sort_by("ts")
    runs.write(tmp_path, table.slice(0, 2000), files=2)
    runs.run(spark, tmp_path)
    path = str(tmp_path / "checkpoint")
    assert str(progress(path, spark)) == 'read up to micro-batch 1: [{"logOffset": 1}]'
    runs.write(tmp_path, table.slice(2000), files=1, first=2)
    (tmp_path / "in" / "_hidden.parquet").touch()
    (tmp_path / "in" / "notes.txt").touch()
    assert progress(path, spark).unread == (str(tmp_path / "in" / "0002.parquet"),)
    refused = r"unread input; let the query run once more .* leave_unread=True: read up to .* not read: .*/in/0002.parq"
    with pytest.raises(ps.PystreamError, match=refused):
        finish(path, runs.QUERY, spark)
    runs.run(spark, tmp_path)  # nothing has changed
    runs.put(tmp_path, table.slice(2999).set_column(0, "ts", pa.array([10**6])), 3)
    with pytest.warns(UnreadInputWarning, match=r"not read: .*/in/0003.parquet"):
        rest = finish(path, runs.QUERY, spark, leave_unread=True)
    streamed = spark.read.parquet(str(tmp_path / "out")).toArrow()
    everything = runs.rows(pa.concat_tables([streamed, rest.toArrow()]), runs.QUERY)
    assert everything == ps.aggregate(runs.QUERY, runs.streams().tables()).to_pylist()


@pytest.mark.full
def test_a_micro_batch_that_was_cut_off(spark, tmp_path):
    """Before all its states were saved the sink has nothing of it; afterwards nobody knows, so it has to run again."""
    runs.write(tmp_path, runs.streams().block(0), files=3)
    runs.run(spark, tmp_path)
    checkpoint = tmp_path / "checkpoint"
    path, hidden = str(checkpoint), tmp_path / "hidden"
    (checkpoint / "commits" / "2").rename(hidden)  # as if it was killed before the end of the last micro-batch
    assert progress(path, spark).cut_off == 2
    for leave in (False, True):
        with pytest.raises(ps.PystreamError, match="micro-batch 2 was cut off when the sink may have got its rows"):
            finish(path, runs.QUERY, spark, leave_unread=leave)
    (checkpoint / "state" / "0" / "1" / "3.delta").unlink()
    with pytest.raises(ps.PystreamError, match="micro-batch 2 was cut off; let the query run once more"):
        finish(path, runs.QUERY, spark)
    with pytest.warns(UnreadInputWarning, match="micro-batch 2, which was cut off, .*0002.parquet"):
        rest = runs.rows(finish(path, runs.QUERY, spark, leave_unread=True).toArrow(), runs.QUERY)
    assert rest == runs.rows(finish(path, runs.QUERY, spark).toArrow(), runs.QUERY)
    table = runs.streams().block(0).sort_by([("ts", "ascending"), ("position", "descending")]).slice(0, 2000)
    inputs = [table.filter(pc.equal(table["stream"], i)).sort_by("position") for i in range(3)]
    frontier = min(pc.max(one["ts"]).as_py() for one in inputs)
    assert rest == [r for r in ps.aggregate(runs.QUERY, inputs).to_pylist() if r["ts"] + 30 > frontier]
