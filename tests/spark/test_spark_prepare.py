"""`pystream prepare`: raw records from the command line to a folder that `pystream run` takes."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream.cli import main, prepare
from pystream.queries import PAPER

pytestmark = pytest.mark.spark

ROWS = [(f"2020-01-01 00:00:{i % 59:02d}", i % 5, i / 4) for i in range(200)]


def invoke(*args: object, exit_code: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, [*map(str, args)])
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result.output


@pytest.mark.usefixtures("spark")
def test_raw_records_to_a_result(tmp_path):
    """Unsorted, twice, unreadable and incomplete rows; then a query over what is left, against the rows themselves."""
    bad = [("yesterday", 1, 1.0), ("", 1, 1.0), ROWS[0], ("2020-01-01 00:00:07", None, 1.0)]
    text = [f"{t},{'' if m is None else m},{c}" for t, m, c in [*ROWS[::-1], *bad]]
    (tmp_path / "raw.csv").write_text("\n".join(["time,meter,cons", *text]) + "\n")
    command = ("prepare", tmp_path / "raw.csv", "--ts", "time", "--stream", "meter", "--require", "meter")
    out = tmp_path / "data"
    said = invoke(*command, "--streams", 3, "--out", out)
    assert f"200 rows in 3 streams to {out}, 4 rows dropped: " in said
    for why in ("1 with unreadable timestamp", "1 without timestamp", "1 without meter", "1 twice"):
        assert why in said
    assert "is there already; --force replaces it" in invoke(*command, "--out", out, exit_code=2)
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]

    invoke("run", "k-OI", "--data", out, "--out", tmp_path / "rows.parquet")
    start = 1_577_836_800
    rows = sorted((start + int(t[-2:]), m) for t, m, _ in ROWS)
    plain = pa.table({"ts": [t for t, _ in rows], "meter": pa.array([m for _, m in rows], pa.int32())})
    assert pq.read_table(tmp_path / "rows.parquet").equals(ps.aggregate(PAPER["k-OI"].query, [plain]))


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_json_with_times_of_another_form(tmp_path):
    (tmp_path / "raw").mkdir()
    rows = [{"when": f"{i % 28 + 1:02d}/03/2021 08:00", "v": i} for i in range(40)]
    (tmp_path / "raw" / "a.txt").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = invoke(
        *("prepare", tmp_path / "raw", "--format", "json", "--ts", "when", "--time-format", "dd/MM/yyyy HH:mm"),
        *("--streams", 2, "--out", tmp_path / "data"),
    )
    assert "40 rows in 2 streams" in said
    stored = pq.read_table(tmp_path / "data")
    assert sorted(stored["v"].to_pylist()) == list(range(40))
    assert min(stored["ts"].to_pylist()) == 1_614_585_600  # 2021-03-01 08:00 UTC


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_a_missing_column_is_one_line(tmp_path):
    (tmp_path / "raw.csv").write_text("time,meter\n2020-01-01,1\n")
    said = invoke("prepare", tmp_path / "raw.csv", "--ts", "tim", "--out", tmp_path / "data", exit_code=1)
    assert said == "Error: column 'tim' is missing; there are 'time', 'meter'; did you mean 'time'?\n"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no.csv", "--out", "data"], "does not exist"),
        (["."], "Missing option '--out'"),
        (["raw.txt", "--out", "data"], "the endings tell no one format: say --format"),
        (["raw.csv", "--out", "raw.csv", "--force"], "is one of the inputs"),
    ],
)
def test_usage(args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("raw.txt", "raw.csv"):
        (tmp_path / name).touch()
    assert message in invoke("prepare", *args, exit_code=2)


def test_spark_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda _name: None)
    (tmp_path / "a.csv").touch()
    assert "pip install" in invoke("prepare", tmp_path / "a.csv", "--out", tmp_path / "data", exit_code=1)
