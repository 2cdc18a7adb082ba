"""What users of other systems reported about windows (tests/OTHERS.md), where Spark takes part."""

from __future__ import annotations

import pyarrow.compute as pc
import pytest

import pystream as ps

pytestmark = pytest.mark.spark


def test_spark_29810(spark):
    """Equal timestamps on four streams: `first` and `last` are the same however the rows are partitioned."""
    from pystream.spark import aggregate  # noqa: PLC0415 - needs pyspark

    columns = ("id DIV 100 AS ts", "CAST(id % 4 AS int) AS stream", "id AS position", "id % 7 AS k", "id / 2 AS v")
    frame = spark.range(2_000).selectExpr(*columns)
    query = ps.Query(ps.Window(4, 2), "k", {"first": ps.first("v"), "last": ps.last("v")})
    rows = frame.toArrow().sort_by("position")
    streams = [rows.filter(pc.field("stream") == i).select(["ts", "k", "v"]) for i in range(4)]
    want = ps.aggregate(query, streams).to_pylist()
    for parts in (1, 3, 8):
        result = aggregate(frame.repartition(parts, "v"), query, stream="stream", position="position").toArrow()
        assert result.sort_by([("ts", "ascending"), ("k", "ascending")]).to_pylist() == want
