"""`pystream run --engine spark`: the same file as without Spark, from generated data and from one's own."""

from __future__ import annotations

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from pystream.cli import main
from pystream.queries import PAPER
from pystream.sample import smart_meters

pytestmark = pytest.mark.spark


def invoke(*args: object, exit_code: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, [*map(str, args)])
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result.output


def run_both_ways(id, data, folder):
    for engine in ("local", "spark"):
        said = invoke("run", id, "--data", data, "--out", folder / f"{engine}.parquet", "--engine", engine)
        assert f"{id}: " in said
    here, there = (pq.read_table(folder / f"{engine}.parquet") for engine in ("local", "spark"))
    assert here.num_rows > 0
    assert there.schema.equals(here.schema)
    assert there.equals(here)
    return said


def test_generated_data(spark, tmp_path):
    data = tmp_path / "data"
    invoke("generate", "EC", "--out", data, "--tuples", 5_000, "--streams", 3)
    said = run_both_ways("k-OS", data, tmp_path)
    assert "k-OS: 5,000 tuples in, " in said
    assert spark.range(3).count() == 3  # the session was there before, so it is there after


@pytest.mark.deep
@pytest.mark.parametrize("id", PAPER)
def test_the_papers_queries(id, spark, tmp_path):
    data = tmp_path / "data"
    invoke("generate", PAPER[id].dataset, "--out", data, "--tuples", 5_000, "--streams", 3)
    run_both_ways(id, data, tmp_path)


@pytest.mark.usefixtures("spark")
def test_one_file_for_each_stream(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    for i, stream in enumerate(smart_meters(3, 3_000, seed=2, span_s=40)):
        pq.write_table(stream, data / f"{i}.parquet", row_group_size=200)
    run_both_ways("k-OS", data, tmp_path)


@pytest.mark.usefixtures("spark")
def test_errors_are_one_line(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    arguments = ("run", "k-OI", "--data", data, "--out", tmp_path / "o.parquet", "--engine", "spark")
    assert invoke(*arguments, exit_code=1) == f"Error: {data}: no parquet files\n"
    (stream,) = smart_meters(1, 3_000, seed=2)
    pq.write_table(stream, data / "a.parquet", row_group_size=200)
    stored = bytearray((data / "a.parquet").read_bytes())
    stored[4:400] = bytes(396)
    (data / "a.parquet").write_bytes(stored)
    said = invoke(*arguments, exit_code=1)
    assert said.count("\n") == 1
    assert f"Error: {data / 'a.parquet'}: " in said
    assert not (tmp_path / "o.parquet").exists()
