"""The benchmarks run and write what they say; their numbers are nobody's business here."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.deep
def test_t_gate(tmp_path):
    """The drivers themselves see to it that every tuple comes out once and in order."""
    options = ["--inputs", "1", "3", "--rounds", "2", "--tuples", "20000", "--warmup", "0", "--out"]
    command = [sys.executable, ROOT / "bench/bench_t_gate.py", *options, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "t_gate.json").read_text())
    measured = {(row["timestamps"], row["inputs"], row["design"]) for row in result["rows"]}
    designs = ("mq", "mq_lf", "t_gate", "run_gate", "run_gate_1", "heap")
    assert measured >= {(t, n, design) for t in ("ties", "distinct") for n in (1, 3) for design in designs}
    assert all(row["million_tuples_per_second"]["low"] > 0 for row in result["rows"])
    assert {"date", "cpu", "cores", "cc", "load_at_start"} <= set(result["machine"])
    assert "timestamps: distinct" in done.stdout
