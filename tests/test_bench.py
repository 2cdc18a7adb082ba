"""The benchmarks run and write what they say; their numbers are nobody's business here."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("path", sorted((ROOT / "bench").glob("*.py")), ids=lambda path: path.stem)
def test_every_file_can_be_imported(path, monkeypatch):
    """The long ones run in deep tests only, and `pytest bench` collects them all."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    monkeypatch.delitem(sys.modules, path.stem, raising=False)
    importlib.import_module(path.stem)


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


@pytest.mark.full
def test_latency(tmp_path):
    """The driver itself sees to it that windows come out in order."""
    options = ["--query", "k-OI", "--inputs", "2", "--seconds", "0.2", "--rounds", "1", "--out"]
    command = [sys.executable, ROOT / "bench/bench_latency.py", *options, tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "latency.json").read_text())
    assert {(e["query"], e["inputs"]) for e in result["latency"]} <= {("k-OI", 2)}
    assert all(e["ms"]["own"]["p50"] <= e["ms"]["latency"]["p999"] for e in result["latency"] if e["ms"])
    assert {e["design"] for e in result["single"]} == {"auto", "runs", "mq-lf", "mq"}
    assert "single tuples" in done.stdout


def test_overlap(tmp_path):
    """Every function with every overlap."""
    command = [sys.executable, ROOT / "bench/bench_overlap.py", "--rows", "20000", "--rounds", "1", "--out", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    samples = json.loads((tmp_path / "overlap.json").read_text())["samples"]
    assert set(samples) == {"count", "sum", "avg", "min", "max", "first", "last"}
    assert all(set(by_overlap) == {"1", "120", "8640"} for by_overlap in samples.values())


# ---- the peers ----


@pytest.fixture
def bench_peers(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    return importlib.import_module("bench_peers")


def table(**changed: object) -> pa.Table:
    return pa.table({"ts": [0, 0, 3], "meter": pa.array([1, 2, 1], pa.int32()), "avg": [1.0, 2.0, 3.0]} | changed)


@pytest.mark.parametrize(
    ("got", "found"),
    [
        (table(), None),
        (table(meter=[1, 2, 1]), None),  # of another width
        (table(avg=[1.0, 2.0 + 1e-12, 3.0]), None),
        (table(avg=[1.0, 2.001, 3.0]), "row 1 of 3 is {'ts': 0, 'meter': 2, 'avg': 2.001}, must be {'ts': 0,"),
        (table(avg=[1.0, None, 3.0]), "row 1 of 3 is {'ts': 0, 'meter': 2, 'avg': None}"),
        (table(ts=[0, 0, 6]), "row 2 of 3 is {'ts': 6,"),
        (table().slice(1), "row 0 of 3 is {'ts': 0, 'meter': 2"),
        (table().slice(0, 2), "row 2 of 3 is nothing, must be {'ts': 3, 'meter': 1, 'avg': 3.0} (2 rows)"),
        (pa.concat_tables([table(), table()]), "row 3 of 3 is {'ts': 0, 'meter': 1, 'avg': 1.0}, must be nothing"),
        (table().slice(0, 0), "row 0 of 3 is nothing"),
        (table().rename_columns(["ts", "meter", "mean"]), "columns ['ts', 'meter', 'mean'] instead of"),
    ],
)
def test_a_wrong_answer_of_a_peer_is_shown(bench_peers, got, found):
    case = bench_peers.make_case("w-OI", [])
    shown = bench_peers.differing_row(case, table(), got)
    assert shown is None if found is None else found in shown


def test_counts_must_be_equal_not_nearly(bench_peers):
    case = bench_peers.make_case("k-OI", [])
    right = pa.table({"ts": [0], "meter": [1], "count": [10**12]})
    wrong = pa.table({"ts": [0], "meter": [1], "count": [10**12 + 1]})
    assert bench_peers.differing_row(case, right, right) is None
    assert bench_peers.differing_row(case, right, wrong)
    assert bench_peers.differing_row(case, right, right.set_column(2, "count", pa.array([1e12]))) is None
    assert bench_peers.differing_row(case, right, right.set_column(2, "count", pa.array([1e12 + 0.5])))


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("echo no such thing >&2", "ended: no such thing"),
        ("exec sleep 60", "took longer than 0 s"),
        ("""echo '{"absent": "no peer"}'""", "no peer"),
        ("""echo '{"versions": {}}'; read order; echo '{"error": "too hard"}'""", "too hard"),
        ("""echo '{"versions": {}}'""", "ended: without a word"),
    ],
)
def test_a_peer_that_cannot_go_on_says_why(bench_peers, tmp_path, script, said):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")
    python.chmod(0o755)
    patience_s = 0.2 if "sleep" in script else 60.0
    process = None
    with pytest.raises(bench_peers.PeerError, match=said):
        process = bench_peers.Process.start(bench_peers.ALL["duckdb"], str(python), tmp_path, patience_s)
        process.ask(run=True)
    if process is not None:
        process.end()


@pytest.mark.deep
def test_peers(tmp_path):
    """Those that the tests bring, on every query: all right, and everything is in the file."""
    peers = "pystream,bare,duckdb,polars,pandas,numpy"
    options = ["--rows", "4000", "--rounds", "1", "--inputs", "3", "--peers", peers, "--out", tmp_path]
    command = [sys.executable, ROOT / "bench/bench_peers.py", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads((tmp_path / "peers.json").read_text())
    assert found["absent"] == {}
    verdicts = {(e["query"], e["peer"]): e["verdict"] for e in found["results"]}
    assert len(verdicts) == 6 * len(found["versions"])
    unordered = verdicts.pop(("k-OS", "pystream-wiml"))
    assert "depends on the order" in unordered
    wrong = {k: v for k, v in verdicts.items() if v not in ("equal", "equal to 1e-9", "no result")}
    assert wrong == {}
    assert "k-OS: first(), window 30/3, 3 inputs" in (tmp_path / "peers.txt").read_text()
