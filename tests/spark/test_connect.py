"""Spark Connect: the same tests on a session that has no JVM of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")
pytest.importorskip("grpc_status", reason="pip install '.[connect]'")

pytestmark = [pytest.mark.spark, pytest.mark.full]

HERE = Path(__file__).parent


def run(*arguments: str) -> str:
    """Tests on a server that lives as long as they do; gives what pytest says."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("SPARK", "PYSPARK"))}
    env["PYSTREAM_SPARK_REMOTE"] = "local[2]"
    command = [sys.executable, "-m", "pytest", "-q", "--deep", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, check=False, timeout=900, cwd=HERE.parent.parent, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def test_the_papers_queries():
    """All twelve, from rows; and files, which tasks share out as they run at once."""
    files = ("test_by_size_on_spark", "test_user_code_on_spark", "test_names_of_columns_on_spark")
    rows = ("test_the_papers_queries", "test_user_functions", "test_few_tasks")
    names = " or ".join((*rows, *files))
    out = run(str(HERE / "test_spark_aggregate.py"), str(HERE / "test_spark_files.py"), "-k", names)
    assert int(out.splitlines()[-1].split(" passed")[0]) >= 12 + 5
