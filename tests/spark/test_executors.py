"""What goes wrong on executors: said in one sentence, with the remedy where there is one; no traces otherwise."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

import environments
from pyspark import cloudpickle

import pystream as ps
from pystream.spark import aggregate
from pystream.spark.error_causes import cause_of
from pystream.spark.task_process import for_executors

if TYPE_CHECKING:
    from pathlib import Path

TASK = """
import sys
from pyspark import cloudpickle
try:
    print(list(cloudpickle.loads(sys.stdin.buffer.read())([1, 2])))
except ImportError as error:
    print(error)
"""


@pytest.fixture(scope="module")
def bare(tmp_path_factory) -> Path:
    """A Python with everything but pystream."""
    return environments.make(tmp_path_factory.mktemp("bare") / "env", pystream=False)


def run(python, task, tmp_path) -> str:
    """What a task gives or says in another Python."""
    done = subprocess.run(
        [str(python), "-c", TASK], input=cloudpickle.dumps(task), cwd=tmp_path, check=True, capture_output=True
    )
    return done.stdout.decode().strip()


def test_an_executor_without_pystream_says_what_to_do(bare, tmp_path):
    task = for_executors(ps.Query(ps.Window(1), None, {"n": ps.count()}).__eq__)
    said = run(bare, task, tmp_path)
    assert said.startswith(f"pystream is not installed for the Python of this executor, {bare}: install ")
    assert said.endswith(f'pip install "pystream-core[spark]=={ps.__version__}"')
    assert "\n" not in said


def test_an_executor_with_another_version_says_so(tmp_path, monkeypatch):
    plain = for_executors(lambda numbers: [n + 1 for n in numbers])
    assert run(sys.executable, plain, tmp_path) == "[2, 3]"
    monkeypatch.setattr("pystream.spark.task_process.__version__", "0.0.9")
    said = run(sys.executable, for_executors(lambda numbers: numbers), tmp_path)
    assert said.startswith(f"this executor has pystream {ps.__version__}, the driver has 0.0.9: install ")


def trace(*lines: str) -> RuntimeError:
    return RuntimeError("\n".join(lines))


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (trace("Job aborted", "pystream.errors.SchemaError: no column 'x'", "\tat org.x.Y"), "no column 'x'"),
        (
            trace("An exception", "Traceback:", "ImportError: pystream is not installed", "\tat a.B"),
            "pystream is not installed",
        ),
        (trace("An exception", "Traceback:", "  File x", "KeyError: 'meter'", "\tat a.B(c)"), "KeyError: 'meter'"),
        (trace("Job", "pyarrow.lib.ArrowInvalid: no", "ValueError: last"), "ValueError: last"),
        (trace("x", "org.apache.spark.SparkException: all", "Caused by: java.io.IOException: disk full"), "disk full"),
        (trace("An error occurred", ": java.lang.IllegalState: no", "\tat a.B"), "no"),
        (trace("", "first line", "second"), "first line"),
    ],
)
def test_the_cause_in_one_line(error, cause):
    assert cause_of(error) == cause


@pytest.mark.spark
def test_an_error_of_the_tasks_python(spark):
    """User code that fails: its own error, out of what Spark makes of it."""

    class Fails:
        def process_tuple(self, row):
            raise KeyError(f"no price for {row['k']}")

        def produce_out_tuple(self):
            return 0

    query = ps.Query(ps.Window(10), "k", {"u": ps.udf(Fails, type=pa.int64())})
    rows = spark.createDataFrame([(1, 0, 0, 7)], "ts long, stream int, position long, k long")
    with pytest.raises(Exception, match="no price") as failed:
        aggregate(rows, query, position="position").collect()
    assert cause_of(failed.value) == "u, window starting at 0, key (7,): user code raised KeyError: 'no price for 7'"


JOB = """
import sys
import pystream as ps
from pystream.spark import aggregate, session
from pystream.spark.error_causes import cause_of
spark = session("local[2]")
query = ps.Query(ps.Window(20, 1), key="k", aggregates={"n": ps.count()})
rows = spark.range(0, 300_000, numPartitions=4).selectExpr("id div 3 as ts", "id % 400 as k")
try:
    aggregate(rows, query).show(1)
except Exception as error:
    print("CAUSE", cause_of(error))
"""


def job(tmp_path, **env: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))} | env
    command = [sys.executable, "-c", JOB]
    return subprocess.run(command, env=own, cwd=tmp_path, check=True, capture_output=True, text=True, timeout=600)


@pytest.mark.full
@pytest.mark.spark
def test_show_leaves_no_traces(tmp_path):
    """Spark closes the workers' sockets when it has its row; they must not complain."""
    done = job(tmp_path)
    assert "only showing top 1 row" in done.stdout
    assert "BrokenPipe" not in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.full
@pytest.mark.spark
def test_a_job_without_pystream_on_its_executors(bare, tmp_path):
    done = job(tmp_path, PYSPARK_PYTHON=str(bare))
    (said,) = (line for line in done.stdout.splitlines() if line.startswith("CAUSE"))
    assert said.startswith(f"CAUSE pystream is not installed for the Python of this executor, {bare}: install ")


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.parametrize("debug", [False, True])
def test_the_command_says_one_line(debug, tmp_path):
    """The trace is there with --debug, and only then."""
    table = pa.table({"ts": list(range(40_000)), "k": [i % 7 for i in range(40_000)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10_000, compression="none", use_dictionary=False)
    chunk = pq.read_metadata(tmp_path / "a.parquet").row_group(2).column(1)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[chunk.data_page_offset : chunk.data_page_offset + 200] = b"\xff" * 200
    (tmp_path / "a.parquet").write_bytes(data)
    query = ["--window", "60", "--key", "k", "--agg", "n=count", "--engine", "spark", "--out", "out.parquet"]
    command = [sys.executable, "-m", "pystream", *(["--debug"] if debug else []), "run", "a.parquet", *query]
    done = subprocess.run(command, cwd=tmp_path, check=False, capture_output=True, text=True, timeout=600)
    said = [line for line in done.stderr.splitlines() if not line.startswith("WARNING: Using incubator modules")]
    assert done.returncode == 1
    assert ("Traceback (most recent call last):" in said) == debug
    if not debug:
        (line,) = said
        assert line.startswith(f"Error: {tmp_path}/a.parquet: ")
