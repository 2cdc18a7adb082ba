"""Full and read-only disks under everything that writes on Spark: an error that says so, nothing half, nothing lost."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
import streaming_runs as runs
from click.testing import CliRunner
from disks import PAGE, Disk, small_disk
from faults import record

import pystream as ps
from pystream.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.spark

#: What is wrong with the disk, and how errors say it; the others where nothing can be mounted (disks.py).
FAULTS = {
    "full": "(No space left on device|File too large)",
    "read-only": "(Read-only file system|File too large)",
}

#: How Spark's own writers may say it; the reason is further down in their reports.
SPARKS_OWN = "|CANNOT_WRITE_STATE_STORE|TASK_WRITE_FAILED|Mkdirs failed"


@pytest.fixture
def disk(tmp_path) -> Iterator[Disk]:
    (tmp_path / "disk").mkdir()
    with small_disk(tmp_path / "disk", megabytes=8) as made:
        yield made


@contextmanager
def faulty(disk: Disk, fault: str, left: int = 0) -> Iterator[None]:
    """The disk has no more than so many bytes left, or takes none."""
    with disk.room(left // PAGE) if fault == "full" else disk.protected():
        yield


def survived(fault: str) -> None:
    where = "tests/spark/test_spark_disks.py"
    if fault == "full":
        record("Spark: full disk under a writer", tried=1, survived=1, lost=0, where=where)
    else:
        record("Spark: read-only folder under a writer", tried=1, survived=1, lost=0, where=where)


def invoke(*args: object) -> tuple[int, str]:
    done = CliRunner(env={"COLUMNS": "200"}).invoke(main, [*map(str, args)])
    return done.exit_code, done.output


def assert_one_line(said: tuple[int, str], fault: str) -> None:
    code, text = said
    assert (code, text.count("\n")) == (1, 1), text
    assert re.search(FAULTS[fault], text)
    assert len(text) < 400, text


def files(folder) -> list[str]:
    return sorted(f.name for f in folder.rglob("*") if f.is_file() and f.name != "fill")


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("fault", FAULTS)
def test_generate(fault, disk):
    """Nothing is left behind, and the same command works once there is room."""
    command = ("generate", "EC", "--out", disk.folder / "data", "--tuples", 300_000)
    with faulty(disk, fault, left=600_000):  # room for the smaller one of two files
        assert_one_line(invoke(*command), fault)
        assert files(disk.folder) == []
    assert invoke(*command)[0] == 0
    assert files(disk.folder) == ["part-000000.parquet", "part-000001.parquet"]
    survived(fault)


@pytest.mark.usefixtures("spark")
def test_generate_goes_on_after_a_crash(disk):
    """What a killed one has left is hidden, and neither read nor in the way."""
    (disk.folder / "data").mkdir()
    (disk.folder / "data" / ".part-000007.writing").touch()
    assert (
        invoke("run", "k-OI", "--data", disk.folder / "data", "--out", disk.folder / "o.csv", "--engine", "spark")[0]
        == 1
    )
    assert invoke("generate", "EC", "--out", disk.folder / "data", "--tuples", 1000)[0] == 0
    assert files(disk.folder) == ["part-000000.parquet"]


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("fault", FAULTS)
def test_run(fault, disk, tmp_path):
    data, out = tmp_path / "data", disk.folder / "out.parquet"
    assert invoke("generate", "EC", "--out", data, "--tuples", 5_000)[0] == 0
    command = ("run", "k-OI", "--data", data, "--out", out, "--engine", "spark")
    with faulty(disk, fault):
        assert_one_line(invoke(*command), fault)
        assert files(disk.folder) == []
    assert invoke(*command)[0] == 0
    assert files(disk.folder) == ["part-000000.parquet"]
    survived(fault)


@pytest.mark.parametrize("fault", FAULTS)
def test_prepare(fault, disk, spark):
    from pystream.spark import prepare  # noqa: PLC0415

    rows = prepare(spark.range(5_000).selectExpr("id AS ts", "id AS v")).rows
    out = disk.folder / "out"
    with faulty(disk, fault), pytest.raises(Exception, match=f"{FAULTS[fault]}{SPARKS_OWN}"):
        rows.write.parquet(str(out))
    assert not (out / "_SUCCESS").exists()
    rows.write.mode("overwrite").parquet(str(out))
    assert spark.read.parquet(str(out)).count() == 5_000
    survived(fault)


@pytest.mark.parametrize("fault", ["full", pytest.param("read-only", marks=pytest.mark.deep)])
@pytest.mark.parametrize("where", ["out", pytest.param("checkpoint", marks=pytest.mark.full)])
def test_streaming(where, fault, disk, spark, tmp_path):
    """A query that has committed micro-batches fails, and goes on from the last of them: each row once."""
    from pystream.spark import finish  # noqa: PLC0415

    (disk.folder / where).mkdir()
    (tmp_path / where).symlink_to(disk.folder / where)
    whole = runs.streams()
    table = whole.block(0).sort_by("ts")
    runs.write(tmp_path, table.slice(0, 1000), files=1)
    runs.run(spark, tmp_path)
    runs.write(tmp_path, table.slice(1000), files=2, first=1)
    with faulty(disk, fault), pytest.raises(Exception, match=f"{FAULTS[fault]}{SPARKS_OWN}"):
        runs.run(spark, tmp_path)
    runs.run(spark, tmp_path)
    streamed = spark.read.parquet(str(tmp_path / "out")).toArrow()
    rest = finish(str(tmp_path / "checkpoint"), runs.QUERY, spark).toArrow()
    want = ps.aggregate(runs.QUERY, whole.tables()).to_pylist()
    assert runs.rows(pa.concat_tables([streamed, rest]), runs.QUERY) == want
    survived(fault)


@pytest.mark.parametrize("fault", FAULTS)
def test_finish(fault, disk, spark):
    """The checkpoint stays as it was: the query may go on, or be finished later."""
    from pystream.spark import finish  # noqa: PLC0415

    whole = runs.streams()
    table = whole.block(0).sort_by("ts")
    runs.write(disk.folder, table.slice(0, 1000), files=1)
    runs.run(spark, disk.folder)
    metadata = (disk.folder / "checkpoint" / "metadata").read_bytes()
    with faulty(disk, fault), pytest.raises(ps.PystreamError) as error:
        finish(str(disk.folder / "checkpoint"), runs.QUERY, spark)
    assert re.fullmatch(f".*finish could not mark the checkpoint as ended: .*{FAULTS[fault]}.*", str(error.value))
    assert (disk.folder / "checkpoint" / "metadata").read_bytes() == metadata
    runs.write(disk.folder, table.slice(1000), files=1, first=1)
    runs.run(spark, disk.folder)
    streamed = spark.read.parquet(str(disk.folder / "out")).toArrow()
    rest = finish(str(disk.folder / "checkpoint"), runs.QUERY, spark).toArrow()
    want = ps.aggregate(runs.QUERY, whole.tables()).to_pylist()
    assert runs.rows(pa.concat_tables([streamed, rest]), runs.QUERY) == want
    survived(fault)
