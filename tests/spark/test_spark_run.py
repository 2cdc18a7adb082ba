"""`pystream run --engine spark`: the same file as without Spark, from generated data and from one's own."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream.cli import main
from pystream.data.sample import smart_meters
from pystream.queries import PAPER

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


# ---- files of one's own ----


def readings(hours: int = 50) -> pa.Table:
    """Hourly values of three regions, as timestamps in seconds: Spark has microseconds only."""
    ts = [3600 * h for h in range(hours) for _ in range(3)]
    region = ["CAL", "NW", None] * hours
    return pa.table({"t": pa.array(ts, pa.timestamp("s")), "region": region, "v": [0.1 * i for i in range(3 * hours)]})


DAILY = ("--window", "24h", "--every", "6h", "--key", "region", "--agg", "n=count", "--agg", "mean=mean:v")
ENDS = ("--agg", "a=first:v", "--agg", "b=last:v where v > 1")


@pytest.fixture
def parts_stay_apart(spark):
    """Or Spark would join what is so small."""
    spark.conf.set("spark.sql.adaptive.coalescePartitions.enabled", "false")
    yield
    spark.conf.unset("spark.sql.adaptive.coalescePartitions.enabled")


@pytest.mark.full
@pytest.mark.usefixtures("parts_stay_apart")
def test_the_parts_hold_the_rows_in_order(spark, tmp_path):
    """Several tasks write; their files in the order of names are the rows by window and key, null last."""
    from pystream.spark.data.write import write_sorted  # noqa: PLC0415 - needs pyspark

    frame = spark.range(1000).selectExpr(
        "id % 100 AS ts", "IF(id % 7 = 0, null, CAST(id % 7 AS string)) AS k", "id AS n"
    )
    query = ps.Query(ps.Window(1), key="k", aggregates={"n": ps.count()})
    schema = pa.schema([("ts", pa.timestamp("ms")), ("k", pa.string()), ("n", pa.int32())])
    out = tmp_path / "o.parquet"
    assert write_sorted(frame.repartition(4), query, out, schema, pq.ParquetWriter) == 1000
    parts = sorted(out.iterdir())
    assert len(parts) == 2
    got = pa.concat_tables(pq.read_table(part) for part in parts)
    assert got.schema.equals(schema)
    keys = [(ts, k is None, k or "") for ts, k in zip(got["ts"].to_pylist(), got["k"].to_pylist(), strict=True)]
    assert keys == sorted(keys)
    assert sorted(got["n"].to_pylist()) == list(range(1000))


@pytest.mark.usefixtures("spark")
def test_files_of_ones_own(tmp_path):
    """The same rows in the same order and types."""
    for i, place in enumerate(("a", "b")):
        pq.write_table(readings().slice(i), tmp_path / f"{place}.parquet", row_group_size=20)
    files = (tmp_path / "a.parquet", tmp_path / "b.parquet")
    for engine in ("local", "spark"):
        said = invoke("run", *files, *DAILY, *ENDS, "--out", tmp_path / f"{engine}.arrow", "--engine", engine)
        assert said.startswith("run: 299 tuples in, ")
    parts = sorted((tmp_path / "spark.arrow").iterdir())
    assert [p.suffix for p in parts] == [".arrow"] * len(parts)
    there = pa.concat_tables(pa.ipc.open_file(part).read_all() for part in parts)
    here = pa.ipc.open_file(tmp_path / "local.arrow").read_all()
    assert there.schema.equals(here.schema)
    assert there.equals(here)
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_a_csv_file_and_a_table(tmp_path):
    pyarrow.csv.write_csv(readings(), tmp_path / "a.csv")
    shown = [invoke("run", tmp_path / "a.csv", *DAILY, "--engine", engine) for engine in ("local", "spark")]
    here, there = ([line for line in text.splitlines() if not line.startswith("run: ")] for text in shown)
    assert there == here
    out = tmp_path / "out.csv"
    invoke("run", tmp_path / "a.csv", *DAILY, "--engine", "spark", "--out", out)
    refused = invoke("run", tmp_path / "a.csv", *DAILY, "--engine", "spark", "--out", out, exit_code=2)
    assert "is there already; --force overwrites it" in refused
    tumbling = ("--window", "24h", "--agg", "n=count", "--engine", "spark")
    invoke("run", tmp_path / "a.csv", *tumbling, "--out", out, "--force")
    assert sum(pyarrow.csv.read_csv(part).num_rows for part in out.iterdir()) == 3
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_no_rows_is_one_empty_file(tmp_path):
    pq.write_table(readings().slice(0, 0), tmp_path / "a.parquet")
    invoke("run", tmp_path / "a.parquet", *DAILY, "--engine", "spark", "--out", tmp_path / "o.parquet")
    assert pq.read_table(tmp_path / "o.parquet").schema.names == ["ts", "region", "n", "mean"]


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_json_lines(tmp_path):
    (tmp_path / "a.jsonl").write_text("".join(f'{{"ts": {i}, "v": {i % 3}}}\n' for i in range(40)))
    asked = ("run", tmp_path / "a.jsonl", "--window", 10, "--key", "v", "--agg", "n=count")
    invoke(*asked, "--engine", "spark", "--out", tmp_path / "o.csv")
    invoke(*asked, "--out", tmp_path / "here.csv")
    (part,) = (tmp_path / "o.csv").glob("part-*.csv")
    assert part.read_text() == (tmp_path / "here.csv").read_text()


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_what_would_give_other_rows_is_refused(tmp_path):
    for place in ("a.parquet", "b.parquet"):
        pq.write_table(readings(), tmp_path / place)
    (tmp_path / "a.tsv").write_text("ts\tv\n1\t2\n")
    a, b, tabs = (tmp_path / name for name in ("a.parquet", "b.parquet", "a.tsv"))
    on = ("--engine", "spark", "--out", tmp_path / "o.csv")
    assert "which on Spark is that of their paths" in invoke("run", b, a, *DAILY, *ENDS, *on, exit_code=1)
    assert "a file once" in invoke("run", a, a, *DAILY, *on, exit_code=1)
    assert "not tsv" in invoke("run", tabs, "--window", 10, "--agg", "n=count", *on, exit_code=1)
