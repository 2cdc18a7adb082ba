"""Figures stand in bench/RESULTS.md, which a command writes, and nowhere else; the README has its table of speeds."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from readme import README

ROOT = README.parent


@pytest.fixture
def results(monkeypatch, tmp_path):
    """bench/results.py, writing into copies."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    module = importlib.import_module("results")
    for name in ("RESULTS", "README"):
        monkeypatch.setattr(module, name, Path(shutil.copy(getattr(module, name), tmp_path)))
    return module


def peers(**rates: float) -> dict:
    each = {"query": "k-OI", "inputs": 4, "rows": 200_000, "rates": [1.0], "verdict": "equal"}
    entries = [each | {"peer": peer.replace("_", "-"), "rate": {"median": rate}} for peer, rate in rates.items()]
    entries.append(entries[0] | {"inputs": 20, "rate": {"median": 9.0}})
    entries.append(entries[0] | {"query": "k-OS", "peer": "bare-loop", "verdict": "WRONG: row 1"})
    about = {"cores": 2, "date": "2026-01-02T03:04:05+00:00", "load_at_start": [0.5, 1], "load_at_end": [2.6, 1]}
    return about | {"results": entries}


def test_the_readme_has_the_table_of_the_results(results):
    shown = [results.SPEED.findall(path.read_text()) for path in (results.README, results.RESULTS)]
    assert shown[0] == shown[1]
    assert len(shown[0]) == 1
    assert shown[0][0].count("\n|") >= 3, "python bench/results.py peers"


def test_every_benchmark_has_its_place(results):
    text = results.RESULTS.read_text()
    assert re.findall(r"<!-- run (\w+) -->", text) == list(results.BENCHMARKS)
    for program, _, _ in results.BENCHMARKS.values():
        assert (ROOT / "bench" / program).exists()


def test_the_table_of_speeds(results):
    table = results.speed_table(peers(pystream_auto=113.26, duckdb_panes=4.5678))
    assert table.splitlines() == [
        "| million rows/s, 4 inputs, 2 cores, load 3, 2026-01-02 | pystream | DuckDB |",
        "|---|---|---|",
        f"| {results.QUERIES['k-OI']} | 113 | 4.57 |",
    ]


def test_a_run_replaces_its_own_section(results, monkeypatch):
    before = results.RESULTS.read_text()
    few = ["--rows", "20000", "--rounds", "1", "--functions", "count"]
    monkeypatch.setattr(sys, "argv", ["results.py", "overlap", "--", *few])
    results.main()
    text = results.RESULTS.read_text()
    (section,) = results.section_of("overlap").findall(text)
    assert section.startswith(f"`python bench/bench_overlap.py {' '.join(few)}`, 20")
    assert re.search(r"commit \w+", section)
    assert re.search(r"Load average [\d. ]+ before, [\d. ]+ after\.", section)
    assert re.search(r"```text\nmillion tuples per second.*\ncount +\d", section)
    assert text.replace(section, "") == before.replace(results.section_of("overlap").findall(before)[0], "")


def test_the_verdict_is_written_from_a_document(results, monkeypatch, tmp_path):
    document = {
        "date": "2026-01-02T03:04:05+00:00",
        "seconds": 1_234.0,
        "machine": {"processor": "an abacus", "cores": 2},
        "versions": {"pystream": "1"},
        "load_average": {"start": [0.5, 1, 1], "end": None},
        "plan": {"inputs": [5, 20], "data": None},
        "results": {"designs": [], "merge": [], "threads": [], "latency": [], "levels": []},
    }
    (tmp_path / "bench.json").write_text(json.dumps(document))
    before = results.RESULTS.read_text()
    monkeypatch.setattr(sys, "argv", ["results.py", "--evaluation", str(tmp_path / "bench.json")])
    results.main()
    (section,) = results.VERDICT.findall(results.RESULTS.read_text())
    assert section.startswith(
        "`pystream bench`, 2026-01-02, 21 minutes, inputs 5, 20, made-up data.\nan abacus, 2 cores"
    )
    assert "| claim | verdict | paper | here | why |" in section
    assert results.RESULTS.read_text().replace(section, "") == before.replace(results.VERDICT.findall(before)[0], "")


@pytest.mark.parametrize(
    ("arguments", "said"), [(["nothing"], "unknown: nothing; there are peers"), (["--", "--rows"], "name it")]
)
def test_what_it_cannot_run_is_said(results, monkeypatch, capsys, arguments, said):
    monkeypatch.setattr(sys, "argv", ["results.py", *arguments])
    with pytest.raises(SystemExit):
        results.main()
    assert said in capsys.readouterr().err


FIGURES = re.compile(r"\btook (about )?\d|\d (ms|ns)\b|\d times as (fast|slow)")


@pytest.mark.parametrize("folder", ["bench", "pystream"])
def test_docstrings_tell_no_figures_of_single_machines(folder):
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
                text = ast.get_docstring(node) or ""
                found += [f"{path.relative_to(ROOT)}: {line}" for line in text.splitlines() if FIGURES.search(line)]
    assert found == []
