"""A stream that falls silent: it is named, let go and taken back while the query runs, exactly once across restarts."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
import streaming_runs as runs

import pystream as ps

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark import Orders, aggregate, aggregate_new_files, explain_stall, finish

pytestmark = pytest.mark.spark

SILENT = 2


def start(spark, folder, trigger=None):
    df = runs.rows_in(spark, folder)
    out = aggregate(df, runs.QUERY, position="position", streams=3, shards=2, orders=folder / "orders", late="drop")
    return runs.start(out, folder, trigger)


def written(spark, folder) -> list[dict]:
    return runs.rows(spark.read.schema(SCHEMA).parquet(str(folder / "out")).toArrow(), runs.QUERY)


SCHEMA = "ts bigint, meter int, n bigint, s double, f double, l double"


def first_micro_batch(folder) -> str:
    """Its time, as Spark has it in the checkpoint; a progress says when its trigger was, which is a little before."""
    about = json.loads((folder / "checkpoint" / "offsets" / "0").read_text().splitlines()[1])
    return datetime.fromtimestamp(about["batchTimestampMs"] / 1000, UTC).isoformat()


def parts() -> tuple[pa.Table, pa.Table]:
    """Two streams that speak, and one that does not yet."""
    whole = runs.streams().block(0)
    silent = pc.equal(whole["stream"], SILENT)
    return whole.filter(pc.invert(silent)), whole.filter(silent)


def test_a_silent_stream_is_named_let_go_and_taken_back(spark, tmp_path):
    speaking, silent = parts()
    runs.write(tmp_path, speaking, files=2)
    started = start(spark, tmp_path, {"processingTime": "0 seconds"})
    started.processAllAvailable()
    for what in (started, started.recentProgress[1]):
        stall = explain_stall(what)
        assert [(one.stream, one.at) for one in stall.streams] == [(SILENT, None)]
        assert (stall.frontier, stall.latest) == (-1, pc.max(speaking["ts"]).as_py())
    assert stall.streams[0].since == first_micro_batch(tmp_path)
    assert f"stream {SILENT} has sent nothing, silent since 20" in str(stall)
    assert written(spark, tmp_path) == []
    assert explain_stall(str(tmp_path / "checkpoint"), spark) == stall

    Orders(spark, tmp_path / "orders").let_go(SILENT)
    started.processAllAvailable()
    assert explain_stall(started) is None
    inputs = [speaking.filter(pc.equal(speaking["stream"], i)).sort_by("position") for i in (0, 1)]
    frontier = min(pc.max(one["ts"]).as_py() for one in inputs)
    want = [r for r in ps.aggregate(runs.QUERY, inputs).to_pylist() if r["ts"] + 30 <= frontier]
    assert written(spark, tmp_path) == want
    started.stop()

    runs.undo(tmp_path, 2)  # it runs again, with its own order and not with the one that comes since
    Orders(spark, tmp_path / "orders").take_back(SILENT)
    runs.put(tmp_path, silent, 2)  # of which those are late that lie below
    again = start(spark, tmp_path)
    again.awaitTermination()
    assert [p["batchId"] for p in again.recentProgress if p["numInputRows"]] == [2, 3]
    late = again.recentProgress[-1]["observedMetrics"]["pystream"]["rows_late"]
    assert late == pc.sum(pc.less(silent["ts"], frontier)).as_py()
    rest = runs.rows(finish(again, runs.QUERY).toArrow(), runs.QUERY)
    inputs.append(silent.filter(pc.greater_equal(silent["ts"], frontier)))
    everything = ps.aggregate(runs.QUERY, inputs).to_pylist()
    assert want + rest == want + [r for r in everything if r["ts"] + 30 > frontier]
    assert written(spark, tmp_path) == want


@pytest.mark.full
def test_orders_that_are_there_before_the_query(spark, tmp_path):
    """A promise for all streams, as configuration; the executors read the files."""
    speaking, _ = parts()
    runs.write(tmp_path, speaking, files=1)
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "all.json").write_text(json.dumps({"lag": 20}))
    out = aggregate_new_files(spark, runs.QUERY, tmp_path / "in", streams=3, orders=tmp_path / "orders")
    runs.start(out, tmp_path).awaitTermination()
    frontier = pc.max(speaking["ts"]).as_py() - 20
    inputs = [speaking.filter(pc.equal(speaking["stream"], i)).sort_by("position") for i in (0, 1)]
    assert written(spark, tmp_path) == [
        r for r in ps.aggregate(runs.QUERY, inputs).to_pylist() if r["ts"] + 30 <= frontier
    ]


@pytest.mark.full
def test_an_order_that_is_none_is_named(spark, tmp_path):
    runs.write(tmp_path, runs.streams().block(0), files=1)
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "1.json").write_text('{"drop": 2}')
    with pytest.raises(Exception, match=r"orders/1\.json, line 1: .* is no order .* mend the file and start the query"):
        start(spark, tmp_path).awaitTermination()
    (tmp_path / "orders" / "1.json").write_text('{"let_go": 2}')
    start(spark, tmp_path).awaitTermination()
