"""Streaming in a client of Spark Connect, against a server on this machine: the same rows, and the same words."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import streaming_runs as runs

import pystream as ps

pytestmark = [pytest.mark.spark, pytest.mark.full]

#: Nothing takes as long; then the test fails instead of waiting for ever.
PATIENCE_S = 900


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """One server for all: a process can have either a session of Connect or one with its own Java."""
    pytest.importorskip("grpc", reason="pip install 'pyspark[connect]'")
    folder = tmp_path_factory.mktemp("connect")
    command = [sys.executable, str(Path(__file__).parent / "connect_job.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads((folder / "found.json").read_text())


def test_from_the_start_to_the_end(found):
    silent = found["silent"]
    assert silent["stall"] == [2]
    assert silent["rows"] == ps.aggregate(runs.QUERY, runs.streams().tables()[:2]).to_pylist()
    assert 0 < silent["streamed"] < len(silent["rows"])
    assert silent["progress"] == 'read up to micro-batch 2: [{"logOffset": 1}, {"logOffset": 1}]'
    assert "ended by pystream.spark.finish" in silent["start"]


def test_a_file_that_has_gone_is_named(found):
    assert "in/0003.parquet: the file is gone since Spark noted it" in found["gone"]["gone"]
    assert found["gone"]["rows"] == ps.aggregate(runs.QUERY, runs.streams().tables()).to_pylist()
