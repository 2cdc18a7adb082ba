"""`pystream pipeline`: messy CSV of three devices to rows, the same to the bit on Spark, as a stream and without it."""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from pipeline_files import PIPELINE, QUERY, expected, write

from pystream.cli import main
from pystream.cli.query_text import from_fields

if TYPE_CHECKING:
    from pathlib import Path

PARTS = (0, 1, 2)


def invoke(*args: object, exit_code: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, [*map(str, args)])
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result.output


def pipeline(folder: Path, engine: str, *more: str, sink: str = 'path = "rows.parquet"') -> Path:
    file = folder / "messy.toml"
    file.write_text(PIPELINE.format(engine=engine, more="\n".join(more), sink=sink) + QUERY)
    return file


def stored(out: Path) -> pa.Table:
    """The rows of a file, or of a folder's files in the order of their names."""
    files = sorted(out.iterdir()) if out.is_dir() else [out]
    return pa.concat_tables(pq.read_table(file) for file in files).combine_chunks()


def assert_same(got: pa.Table, parts=PARTS) -> None:
    fields = tomllib.loads(QUERY)["query"]
    want = expected(parts, from_fields(fields | {"ts": "ts"}).query([]))
    assert want.num_rows > 150
    assert got.schema.equals(want.schema)
    assert [repr(row) for row in got.to_pylist()] == [repr(row) for row in want.to_pylist()]  # tells -0.0 from 0.0


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_all_files_at_once(engine, tmp_path, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    write(tmp_path, PARTS)
    file = pipeline(tmp_path, engine)
    said = invoke("pipeline", file)
    assert_same(stored(tmp_path / "rows.parquet"))
    assert said.startswith("messy: 3 files, ")
    for reason in (
        "3 before 1970",
        "9 with unreadable timestamp",
        "3 without timestamp",
        "3 without value",
        "75 twice",
    ):
        assert reason in said
    assert '  without timestamp: {"device":"north","value":1.0,"note":"a"}\n' in said
    assert "is there already; --force overwrites it" in invoke("pipeline", file, exit_code=2)
    invoke("pipeline", file, "--force")
    assert_same(stored(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=pytest.mark.spark)])
def test_a_stream_of_files(engine, tmp_path, request):
    """Files that come one by one; a run that has nothing new; a run that was killed before it noted what it did."""
    if engine == "spark":
        request.getfixturevalue("spark")
    file = pipeline(tmp_path, engine, 'checkpoint = "state"')
    (tmp_path / "raw").mkdir()
    assert "0 files" in invoke("pipeline", file)
    note = tmp_path / "state" / {"local": "local.state", "spark": "spark.json"}[engine]
    for part in PARTS:
        write(tmp_path, [part])
        before = note.read_bytes() if note.exists() else None
        assert "1 files" in invoke("pipeline", file)
        if engine == "local" and part == 1:  # as if it had been killed right before the state was stored
            assert before is not None
            note.write_bytes(before)
            assert "1 files" in invoke("pipeline", file)
    assert "0 files" in invoke("pipeline", file)
    assert stored(tmp_path / "rows.parquet").num_rows > 50
    assert "0 files" in invoke("pipeline", file, "--finish")
    assert_same(stored(tmp_path / "rows.parquet"))
    assert "this stream was finished" in invoke("pipeline", file, exit_code=1)


@pytest.mark.spark
@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_a_stream_on_spark_goes_on_after_a_kill_between_its_steps(tmp_path):
    """The files are prepared and not noted as taken: they are prepared again, in place of what was made of them."""
    file = pipeline(tmp_path, "spark", 'checkpoint = "state"')
    write(tmp_path, [0, 1])
    state = tmp_path / "state"
    (state / "files").mkdir(parents=True)
    noted = [{"path": str(p.resolve()), "size": p.stat().st_size} for p in [tmp_path / "raw" / "00.csv"]]
    (state / "files" / "000000.json").write_text(json.dumps(noted))
    (state / "prepared").mkdir()
    pq.write_table(pa.table({"ts": [1]}), state / "prepared" / "000000-0007.parquet")
    write(tmp_path, [2])
    assert "3 files" in invoke("pipeline", file, "--finish")
    assert_same(stored(tmp_path / "rows.parquet"))


@pytest.mark.parametrize("engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.full])])
def test_a_function_as_the_sink(engine, tmp_path, request):
    if engine == "spark":
        request.getfixturevalue("spark")
    (tmp_path / f"lake_{engine}.py").write_text(
        "def append(rows, batch):\n"
        "    table = rows if hasattr(rows, 'schema') and hasattr(rows, 'to_pylist') else rows.toArrow()\n"
        "    with open(__file__ + '.txt', 'a') as file:\n"
        "        file.write(f'{batch} {table.num_rows}\\n')\n"
    )
    write(tmp_path, PARTS)
    said = invoke("pipeline", pipeline(tmp_path, engine, sink=f'call = "lake_{engine}:append"'))
    number, rows = (tmp_path / f"lake_{engine}.py.txt").read_text().split()
    assert number == "0"
    assert f"{int(rows):,} rows to lake_{engine}:append" in said


def test_late_rows_and_csv(tmp_path):
    """A file that comes after a later one: an error with the times, or dropped and counted."""
    write(tmp_path, [1])
    file = pipeline(tmp_path, "local", 'checkpoint = "state"', sink='path = "rows.csv"')
    invoke("pipeline", file)
    write(tmp_path, [0])
    said = invoke("pipeline", file, exit_code=1)
    assert said.count("\n") == 1
    assert "is below" in said
    file.write_text(file.read_text().replace("[source]", 'late = "drop"\n[source]'))
    assert "400 late" in invoke("pipeline", file, "--finish")
    parts = sorted((tmp_path / "rows.csv").iterdir())
    rows = pa.concat_tables(pyarrow.csv.read_csv(part) for part in parts if part.stat().st_size > 60)
    assert rows["n"].to_pylist()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("[source]", "[sauce]"), "'sauce' is not known; there are engine, checkpoint, late, finish, [source]"),
        (('path = "raw"', ""), "[source] `path` is missing"),
        (('engine = "local"', 'engine = "flink"'), "engine is one of 'local', 'spark', not 'flink'"),
        (('path = "rows.parquet"', ""), "[sink] has either a `path`"),
        (('path = "rows.parquet"', 'path = "rows.orc"'), "must end in .parquet or .csv"),
        (('tz = "Europe/Berlin"', 'tz = "Berlin"'), "tz='Berlin' is not a time zone"),
        (("streams = 3", 'streams = "3"'), "[prepare] streams = '3' is of the wrong type"),
        (('window = "2s"', ""), "`window` is missing"),
        (("[query]", "[query"), "messy.toml: "),
        (("[source]", "finish = true\n[source]"), "finish ends a stream of files"),
    ],
)
def test_what_is_wrong_in_a_file(change, message, tmp_path):
    file = pipeline(tmp_path, "local")
    file.write_text(file.read_text().replace(*change))
    said = invoke("pipeline", file, exit_code=2)
    assert message in said
    assert "messy.toml" in said


def test_what_is_wrong_with_the_data_is_one_line(tmp_path):
    file = pipeline(tmp_path, "local")
    (tmp_path / "raw").mkdir()
    assert invoke("pipeline", file, exit_code=1).startswith("Error: there are no files in ")
    write(tmp_path, [0])
    file.write_text(file.read_text().replace('tz = "Europe/Berlin"', ""))
    said = invoke("pipeline", file, exit_code=1)
    assert said.count("\n") == 1
    assert "has no time zone; say in which the times are, such as tz='UTC'" in said
    assert not (tmp_path / "rows.parquet").exists()
