"""`pystream pipeline` and files that differ, come late, or are written to a sink that takes a batch once."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from test_spark_pipeline import invoke, stored

from pystream.cli.pipelines import here
from pystream.cli.pipelines.intake import Intake
from pystream.errors import PystreamError

if TYPE_CHECKING:
    from pathlib import Path

ENGINES = ["local", pytest.param("spark", marks=pytest.mark.spark)]
RARE = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.full])]

TOML = """
engine = "{engine}"
{more}
[source]
path = "raw"
[prepare]
ts = "time"
stream = "dev`i.ce"
streams = 2
[sink]
{sink}
[query]
window = "1s"
key = "dev`i.ce"
[query.aggregates]
n = "count"
total = "sum:value"
note = "last:note"
"""

#: Names whose checksums lie in streams 0 and 1.
ZERO, ONE = "d", "a"


def described(folder: Path, engine: str, more: str = "", sink: str = 'path = "rows.parquet"') -> Path:
    file = folder / "files.toml"
    file.write_text(TOML.format(engine=engine, more=more, sink=sink))
    (folder / "raw").mkdir(exist_ok=True)
    return file


def at(second: float) -> datetime:
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def put(folder: Path, name: str, rows: list[tuple], *, value: str = "double", note: bool = True) -> None:
    """A file of times, devices, values and, if it has that column, notes."""
    times, devices, values, notes = zip(*rows, strict=True)
    columns = {
        "time": pa.array(map(at, times), pa.timestamp("us", "UTC")),
        "dev`i.ce": pa.array(devices),
        "value": pa.array(values, pa.type_for_alias(value)),
    }
    pq.write_table(pa.table(columns | ({"note": pa.array(notes)} if note else {})), folder / "raw" / name)


@pytest.mark.parametrize("engine", ENGINES)
def test_files_that_differ(engine, tmp_path, request):
    """One has no notes, the other has, and values of another type; readings that differ in the note only are two."""
    if engine == "spark":
        request.getfixturevalue("spark")
    file = described(tmp_path, engine)
    put(tmp_path, "a.parquet", [(0, "a", 1, ""), (0.1, "b", 2, ""), (0.1, "b", 2, "")], value="int32", note=False)
    put(tmp_path, "b.parquet", [(0.2, "a", 1.5, "x"), (0.3, "b", 2.5, "y"), (0.3, "b", 2.5, "z")])
    said = invoke("pipeline", file)
    assert "1 rows dropped: 1 twice" in said
    rows = [list(row.values()) for row in stored(tmp_path / "rows.parquet").to_pylist()]
    assert rows == [[at(0), "a", 2, 2.5, "x"], [at(0), "b", 3, 7.0, "z"]]


@pytest.mark.parametrize("engine", RARE)
@pytest.mark.parametrize("type", [pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("ns"), pa.timestamp("ms")])
def test_times_of_other_resolutions(type, engine, tmp_path, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    file = described(tmp_path, engine)
    text = file.read_text() if type.tz else file.read_text().replace("[prepare]", '[prepare]\ntz = "UTC"')
    file.write_text(text)
    times = pa.array([at(0.1), at(1.9), at(0.1)], pa.timestamp("us", "UTC")).cast(pa.timestamp(type.unit, "UTC"))
    times = times.cast(pa.int64()).cast(type)
    rows = pa.table({"time": times, "dev`i.ce": ["a"] * 3, "value": [1.0, 2.0, 1.0], "note": ["x"] * 3})
    pq.write_table(rows, tmp_path / "raw" / "a.parquet")
    assert "1 rows dropped: 1 twice" in invoke("pipeline", file)
    assert stored(tmp_path / "rows.parquet")["ts"].to_pylist() == [at(0), at(1)]


@pytest.mark.parametrize("engine", RARE)
def test_a_device_that_appears_late(engine, tmp_path, request):
    """Its rows below what the others have reached are late, on Spark and without it; and so it goes on."""
    if engine == "spark":
        request.getfixturevalue("spark")
    file = described(tmp_path, engine, 'late = "drop"\ncheckpoint = "state"')
    put(tmp_path, "0.parquet", [(10, ZERO, 1, "a"), (20, ZERO, 2, "b")])
    assert "late" not in invoke("pipeline", file)
    put(tmp_path, "1.parquet", [(5, ONE, 4, "c"), (30, ZERO, 8, "d")])
    assert "1 late" in invoke("pipeline", file)
    put(tmp_path, "2.parquet", [(19, ONE, 16, "e"), (21, ONE, 32, "f"), (29, ZERO, 64, "g"), (31, ZERO, 128, "h")])
    assert "2 late" in invoke("pipeline", file, "--finish")
    assert sum(stored(tmp_path / "rows.parquet")["total"].to_pylist()) == 1 + 2 + 8 + 32 + 128


@pytest.mark.parametrize("last", ["append", "finish"])
def test_a_kill_after_the_sink_got_a_batch(last, tmp_path, monkeypatch):
    """It gets the very same rows again under the same number, however fast the operator is: it may leave them out."""
    (tmp_path / f"once_{last}.py").write_text(
        "import json, pathlib\n"
        "folder = pathlib.Path(__file__).parent\n"
        "def append(rows, batch):\n"
        "    got = folder / f'got{batch}.json'\n"
        "    again = got.exists()\n"
        "    told = rows.select(['dev`i.ce', 'n', 'total', 'note']).to_pylist()\n"
        "    assert not again or json.loads(got.read_text()) == told\n"
        "    got.write_text(json.dumps(told))\n"
        "    if not again and (folder / 'kill').exists():\n"
        "        raise RuntimeError('killed')\n"
    )
    file = described(tmp_path, "local", 'checkpoint = "state"', f'call = "once_{last}:append"')
    put(tmp_path, "0.parquet", [(t, d, 1, "a") for t in range(20) for d in "ab"])
    (tmp_path / "kill").touch()
    asked = ("--finish",) if last == "finish" else ()
    monkeypatch.setattr(here, "WAIT_S", 0.0)  # no time for the operator's threads
    invoke_killed("pipeline", file)
    monkeypatch.setattr(here, "WAIT_S", 2.0)
    if last == "finish":
        invoke_killed("pipeline", file, *asked)
    (tmp_path / "kill").unlink()
    invoke("pipeline", file, "--finish")
    got = [row for out in tmp_path.glob("got*.json") for row in json.loads(out.read_text())]
    assert sum(row["n"] for row in got) == 40
    assert "this stream was finished" in invoke("pipeline", file, exit_code=1)


def invoke_killed(*args: object) -> None:
    from click.testing import CliRunner  # noqa: PLC0415 - here alone it may fail

    from pystream.cli import main  # noqa: PLC0415

    result = CliRunner().invoke(main, [*map(str, args)])
    assert "killed" in result.output + repr(result.exception)


def test_folders_in_the_source_are_not_left_out(tmp_path):
    file = described(tmp_path, "local")
    (tmp_path / "raw" / "day=1").mkdir()
    put(tmp_path, "a.parquet", [(0, "a", 1, "x")])
    put(tmp_path, "day=1/b.parquet", [(0, "b", 1, "x")])
    said = invoke("pipeline", file, exit_code=1)
    assert "has folders in it, such as 'day=1', which are not looked into: give a pattern" in said
    file.write_text(file.read_text().replace('"raw"', '"raw/**/*.parquet"'))
    assert "2 files, 2 records" in invoke("pipeline", file)


def test_one_run_at_a_time_and_one_engine(tmp_path):
    """Two runs would take the same files, and another engine all files again."""
    file = described(tmp_path, "local", 'checkpoint = "state"')
    put(tmp_path, "a.parquet", [(0, "a", 1, "x")])
    with Intake(tmp_path / "state", "local"):
        assert "another run is at it" in invoke("pipeline", file, exit_code=1)
    assert "1 files" in invoke("pipeline", file)
    with pytest.raises(PystreamError, match="was begun with engine = 'local' and goes on with it"):
        Intake(tmp_path / "state", "spark")
    assert "0 files" in invoke("pipeline", file)
