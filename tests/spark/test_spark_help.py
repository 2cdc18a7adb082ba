"""The examples that `--help` shows for Spark, run as they are printed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pystream.cli import load

pytestmark = [pytest.mark.spark, pytest.mark.full]

RAW = [(i % 60, i % 5, i / 4) for i in range(200)]


def examples(command: str) -> list[str]:
    epilog = load(command).epilog or ""
    return [line.strip() for line in epilog.splitlines() if line.strip().startswith("pystream ")]


def run(folder: Path, *lines: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in lines:
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"


def test_raw_records_and_a_query_on_each_engine(tmp_path):
    from_csv, from_json, from_log, query = examples("prepare")
    (on_spark,) = [line for line in examples("run") if "spark" in line]
    text = [f"2020-01-01 00:00:{second:02d},{meter},{cons}" for second, meter, cons in RAW]
    (tmp_path / "raw.csv").write_text("\n".join(["time,meter,cons", *text]) + "\n")
    run(tmp_path, from_csv, query)
    rows = pq.read_table(tmp_path / "rows.parquet")
    (tmp_path / "rows.parquet").unlink()
    run(tmp_path, f"{query} --engine spark")
    assert pq.read_table(tmp_path / "rows.parquet").equals(rows)
    (tmp_path / "raw").mkdir()
    records = [{"when": f"01/01/2020 00:{minute:02d}", "meter": m, "cons": c} for minute, m, c in RAW]
    (tmp_path / "raw/a.json").write_text("\n".join(json.dumps(one) for one in records))
    (tmp_path / "data").rename(tmp_path / "data-of-csv")
    run(tmp_path, from_json)
    assert pq.read_table(tmp_path / "data").num_rows == len(RAW)
    log = pa.table({"at": [1_600_000_000_000 + i for i in range(9)], "device": ["x", "y", "z"] * 3})
    pq.write_table(log, tmp_path / "log.parquet")
    (tmp_path / "data").rename(tmp_path / "data-of-json")
    run(tmp_path, from_log)
    assert pq.read_table(tmp_path / "data").num_rows == len(log)
    shutil.rmtree(tmp_path / "data")
    run(tmp_path, "pystream generate EC --tuples 1000 --out data", f"{on_spark} --force")
