"""Other versions of PySpark: a few tests of each ring run in an environment of its own; what is too old is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

import environments

from pystream.errors import PystreamError
from pystream.spark import versions

HERE = Path(__file__).parent

#: Rows, files and streams, with the oldest and the newest features of Spark that we use.
TESTS = (
    "test_session.py::test_checkpoints_cost_few_processes",
    "test_session.py::test_settings_of_a_session_that_runs",
    "test_spark_aggregate.py::test_the_papers_queries[F-OS]",
    "test_spark_aggregate.py::test_sparks_own_windows",
    "test_spark_aggregate.py::test_the_sessions_settings_do_not_show",
    "test_spark_files.py::test_by_size_on_spark",
    "test_spark_streaming.py::test_restart_and_finish",
)


@pytest.mark.spark
@pytest.mark.parametrize(
    "version",
    [
        pytest.param("4.0", marks=pytest.mark.full),
        pytest.param("4.1", marks=pytest.mark.deep),
        pytest.param("4.2", marks=pytest.mark.deep),
    ],
)
def test_it_runs_with(version, tmp_path):
    python = environments.make(tmp_path / "env")
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", f"pyspark=={version}.*"]
    if subprocess.run(pip, check=False, timeout=900, cwd=tmp_path).returncode:
        pytest.skip(f"PySpark {version} could not be installed")
    # Another folder, or workers would take pystream from the sources. Older versions leave sockets to the collector.
    quiet = "-p", "no:cacheprovider", "-W", "default", "-c", str(HERE.parent.parent / "pyproject.toml")
    command = [str(python), "-P", "-m", "pytest", "-q", *quiet, *(str(HERE / test) for test in TESTS)]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    done = subprocess.run(command, check=False, timeout=900, cwd=tmp_path, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
    assert f"{len(TESTS)} passed" in done.stdout


def imported(pyspark: str) -> str:
    """What importing pystream.spark says where PySpark is something else."""
    code = f"import sys, types\nsys.modules['pyspark'] = {pyspark}\nimport pystream.spark"
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    return done.stderr.splitlines()[-1]


def test_what_is_missing_or_too_old_is_refused_in_a_sentence():
    old = "types.SimpleNamespace(__version__='3.5.9')"
    assert imported(old).startswith("ImportError: pystream.spark needs PySpark 4.0 or newer, this is 3.5: ")
    assert imported("None").startswith(
        "ImportError: pystream.spark needs PySpark, which is not installed: pip install "
    )


def test_what_this_version_cannot_do_is_refused_in_a_sentence(monkeypatch):
    monkeypatch.setattr("pyspark.__version__", "4.1.3")
    versions.need((4, 1), "it")
    with pytest.raises(PystreamError, match=r"^a stream needs PySpark 4\.2 or newer, this is 4\.1: pip install "):
        versions.need((4, 2), "a stream")
