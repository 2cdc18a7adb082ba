"""The block of the README on Spark runs as printed, and gives what `ps.aggregate` gives."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.dataset
import pytest
from readme import blocks

import pystream as ps

pytestmark = pytest.mark.spark


@pytest.mark.usefixtures("spark")
def test_the_block_on_spark_runs(capsys, monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.mkdtemp", lambda: str(tmp_path))
    usual = [block for block in blocks() if (block.language, block.tag) == ("python", "")]
    (on_spark,) = (block for block in blocks() if block.tag == "spark")
    names: dict[str, object] = {}
    usual[0].run(names)
    capsys.readouterr()
    on_spark.run(names)

    shown = capsys.readouterr().out
    assert shown.count("only showing top 3 rows") == 2
    data = (
        pa.dataset.dataset(tmp_path / "data").to_table().sort_by([("stream", "ascending"), ("position", "ascending")])
    )
    inputs = [data.filter(pa.compute.field("stream") == i) for i in range(4)]
    expected = ps.aggregate(names["query"], inputs)
    written = [pa.dataset.dataset(tmp_path / name, format="parquet").to_table() for name in ("rows", "last-rows")]
    order = [("ts", "ascending"), ("meter", "ascending")]
    assert pa.concat_tables([table.cast(expected.schema) for table in written]).sort_by(order) == expected
