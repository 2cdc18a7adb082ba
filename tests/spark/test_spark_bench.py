"""The benchmark on Spark runs, finds all results equal, and writes what it says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.spark, pytest.mark.deep]

BENCH = Path(__file__).parents[2] / "bench/bench_spark.py"


ROWS = ["--rows", "50000", "--queries", "W-OI,k-OS"]


@pytest.mark.parametrize("what", [ROWS, [*ROWS, "--streaming"], ["--sizes", "20000,40000"]])
def test_bench_spark(what, tmp_path):
    command = [sys.executable, BENCH, "--rounds", "1", "--warmup", "0", "--json", tmp_path / "b.json", *what]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "WRONG" not in done.stdout
    results = json.loads((tmp_path / "b.json").read_text())["results"]
    assert {r["query"] for r in results} >= {"W-OI", "k-OS"}
