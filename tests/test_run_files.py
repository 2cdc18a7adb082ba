"""`pystream run` on files of one's own: every format in and out, times as text, the table, the examples of --help."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from run_command import DAILY, REGIONS, daily, eia, invoke, read, refused, same, timed, tuples, write

from pystream.cli import load, rows_out
from pystream.cli.query_text import FUNCTIONS

# ---- one line each ----


def test_a_csv_file_of_the_eia_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("load.csv"), eia())
    shown = invoke("load.csv", *DAILY.split()).stdout
    assert shown.splitlines()[0].split() == ["ts", "respondent", "n", "mean", "peak"]
    first = daily()[0]
    assert shown.splitlines()[2].split() == [
        "2024-03-09",
        "00:00:00",
        "CAL",
        "24",
        f"{first[3]:.4f}".rstrip("0"),
        f"{first[4]:g}",
    ]
    assert len(shown.splitlines()) == 2 + len(daily())


def test_a_parquet_file_of_the_eia_in_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(Path("load.parquet"), timed(eia()))
    said = invoke("load.parquet", *DAILY.split(), "--out", "days.parquet")
    assert re.fullmatch(r"run: 144 tuples in, 6 rows out to days.parquet in \d+\.\d s\n", said.stdout)
    same(tuples(pq.read_table("days.parquet")), daily())


# ---- formats ----


@pytest.mark.parametrize("out", [".parquet", ".csv", ".arrow", ".jsonl"])
@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".jsonl"])
def test_formats_in_and_out(suffix, out, tmp_path):
    """Whatever the file, the same rows; several files are several inputs."""
    for region in REGIONS:
        table = eia([region])
        write(tmp_path / f"{region}{suffix}", table if suffix in (".csv", ".jsonl") else timed(table))
    rows = tmp_path / f"rows{out}"
    invoke(tmp_path / f"*{suffix}", *DAILY.split(), "--out", rows)
    same(tuples(read(rows)), daily())
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith(".")) == []


@pytest.mark.parametrize("format", ["csv", "jsonl", "ipc"])
def test_standard_input_and_output(format, tmp_path):
    """Nothing but rows goes to standard output; what is said goes to standard error."""
    sink = io.BytesIO()
    with rows_out.STREAMS[format](sink, timed(eia()).schema) as writer:
        for batch in timed(eia()).to_batches():
            writer.write(batch)
    done = invoke("-", *DAILY.split(), "--out", "-", "--format", format, stdin=sink.getvalue())
    out = io.BytesIO(done.stdout_bytes)
    got = {
        "csv": pyarrow.csv.read_csv,
        "jsonl": pyarrow.json.read_json,
        "ipc": lambda f: pa.ipc.open_stream(f).read_all(),
    }
    same(tuples(got[format](out)), daily())
    assert "144 tuples in, 6 rows out in" in done.stderr


def test_standard_input_is_csv_unless_said_and_output_may_differ():
    done = invoke(
        "-", "--window", 10, "--agg", "n=count", "--out", "-", "--out-format", "jsonl", stdin=b"ts,v\n1,2\n12,3\n"
    )
    assert [json.loads(line) for line in done.stdout.splitlines()] == [{"ts": 0, "n": 1}, {"ts": 10, "n": 1}]


def test_whoever_stops_reading_is_not_complained_to(tmp_path):
    write(tmp_path / "a.csv", pa.table({"ts": list(range(200_000))}))
    command = [
        sys.executable,
        "-m",
        "pystream",
        "run",
        str(tmp_path / "a.csv"),
        *["--window", "1", "--agg", "n=count", "--out", "-"],
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout.readline() == b'"ts","n"\n'
        child.stdout.close()
        error = child.stderr.read()
        assert (child.wait(timeout=60), error) == (1, b"")


def test_json_has_no_nan(tmp_path):
    rows = pa.table({"ts": [1, 2, 3], "k": ["a", "b", "c"], "v": [float("nan"), float("inf"), 1.5]})
    out = tmp_path / "o.jsonl"
    invoke(write(tmp_path / "a.parquet", rows), "--window", 10, "--key", "k", "--agg", "v=max:v", "--out", out)
    assert [json.loads(line)["v"] for line in out.read_text().splitlines()] == [None, None, 1.5]


LISTS = ["--window", "10", "--key", "k", "--agg", "top=top_k:v:2", "--agg", "h=histogram:v:5,50"]


def test_lists_are_shown_and_written(tmp_path):
    values = pa.table({"ts": [1, 2, 3, 4], "k": ["a", "b", "a", "c"], "v": [12.5, 7.0, float("nan"), None]})
    file, out = write(tmp_path / "a.parquet", values), tmp_path / "o.jsonl"
    shown = invoke(file, *LISTS).stdout
    assert "[nan, 12.5]" in shown
    assert "[0, 1, 1]" in shown
    invoke(file, *LISTS, "--out", out)
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(row["top"], row["h"]) for row in rows] == [
        ([None, 12.5], [0, 1, 1]),
        ([7.0], [0, 1, 0]),
        (None, [0, 0, 0]),
    ]
    assert "'top' of type list<item: double> cannot be written as CSV" in refused(
        file, *LISTS, "--out", tmp_path / "o.csv"
    )
    assert not (tmp_path / "o.csv").exists()


def test_json_has_no_bytes(tmp_path):
    file = write(tmp_path / "a.parquet", pa.table({"ts": [1], "k": [b"\xff"]}))
    said = refused(file, *["--window", "10", "--key", "k", "--agg", "n=count", "--out"], tmp_path / "o.jsonl")
    assert said == "column 'k' of type binary cannot be written as JSON; take parquet"
    assert not (tmp_path / "o.jsonl").exists()


# ---- the table ----


def test_a_long_table_shows_both_ends(tmp_path):
    many = rows_out.FIRST + rows_out.LAST
    for rows in (many, many + 1, 10_000):
        file = write(tmp_path / "a.parquet", pa.table({"ts": list(range(rows))}))
        lines = invoke(file, "--window", 1, "--agg", "n=count").stdout.splitlines()[2:]
        shown = [line.split()[0] for line in lines]
        first, last = ([str(n) for n in r] for r in (range(rows_out.FIRST), range(rows - rows_out.LAST, rows)))
        assert shown == [*first, *(["..."] if rows > many else []), *last]


def test_what_a_terminal_would_obey_is_shown(tmp_path):
    rows = pa.table({"ts": [1, 1, 1], "k": ["\x1b[31mred", "[bold]x[/]", None]})
    shown = invoke(write(tmp_path / "a.parquet", rows), *["--window", "10", "--key", "k", "--agg", "n=count"]).stdout
    assert "\x1b" not in shown
    assert "\\x1b[31mred" in shown
    assert "[bold]x[/]" in shown


def test_no_rows(tmp_path):
    (tmp_path / "a.csv").write_text("ts,v\n")
    said = refused(tmp_path / "a.csv", "--window", 10, "--agg", "n=count")
    assert said.startswith("timestamp column 'ts' has type null; it must be an integer or a timestamp")
    file = write(tmp_path / "a.parquet", pa.table({"ts": pa.array([], pa.int64())}))
    done = invoke(file, "--window", 10, "--agg", "n=count")
    assert done.stdout.splitlines()[0].split() == ["ts", "n"]
    assert "0 tuples in, 0 rows out" in done.stderr


# ---- time ----


def test_an_unsorted_file_is_refused_and_can_be_sorted(tmp_path):
    table = eia(["TEX"]).sort_by([("period", "descending")])
    file = write(tmp_path / "load.csv", table)
    said = refused(file, *DAILY.split())
    times = "timestamp 2024-03-10T22:00:00 is below 2024-03-10T23:00:00, the latest timestamp of this input"
    assert said == f"{file}, row 1: {times}; --sort sorts each file first"
    out = tmp_path / "o.parquet"
    invoke(file, *DAILY.split(), "--sort", "--out", out)
    same(tuples(pq.read_table(out)), daily(["TEX"]))


def test_sorting_leaves_equal_times_in_their_order(tmp_path):
    (tmp_path / "a.csv").write_text("ts,v\n7,first\n3,x\n7,second\n7,third\n")
    done = invoke(
        tmp_path / "a.csv", *["--window", "5", "--agg", "a=first:v", "--agg", "b=last:v", "--sort", "--out", "-"]
    )
    assert done.stdout.splitlines()[1:] == ['0,"x","x"', '5,"first","third"']


@pytest.mark.parametrize(
    ("texts", "starts"),
    [
        (["2024-03-09", "2024-03-10"], ["2024-03-09 00:00:00", "2024-03-10 00:00:00"]),
        (["2024-03-09 05:30", "2024-03-10 01:00"], ["2024-03-09 00:00:00", "2024-03-10 00:00:00"]),
        (
            ["2024-03-09T05:30:00.25", "2024-03-10T00:00:00"],
            ["2024-03-09 00:00:00.000000000", "2024-03-10 00:00:00.000000000"],
        ),
        (["2024-03-09T23:00:00-05:00", "2024-03-10T20:00:00-05:00"], ["2024-03-10 00:00:00Z", "2024-03-11 00:00:00Z"]),
    ],
    ids=["days", "minutes", "fractions", "offsets"],
)
def test_times_as_text(texts, starts, tmp_path):
    (tmp_path / "a.csv").write_text("when,v\n" + "".join(f"{text},1\n" for text in texts))
    done = invoke(tmp_path / "a.csv", *["--window", "24h", "--agg", "n=count", "--out", "-"])
    assert [line.split(",")[0].strip('"') for line in done.stdout.splitlines()[1:]] == starts


def test_which_column_has_the_time(tmp_path):
    two = write(tmp_path / "two.csv", pa.table({"a": ["2024-01-01T00"], "b": ["2024-01-01T00"]}))
    said = refused(two, "--window", "1h", "--agg", "n=count")
    assert said == "which column has the time? There is no 'ts' among 'a', 'b'; say --ts COLUMN (in TOML: ts = ...)"
    assert invoke(two, *["--window", "1h", "--agg", "n=count", "--ts", "b"]).stdout


# ---- the examples of --help ----


def test_help_names_every_function():
    (listed,) = re.findall(r"Functions: (.*?)\.\n", invoke("--help").stdout, re.DOTALL)
    assert [each.split(":")[0] for each in re.split(r",\s+", listed)] == list(FUNCTIONS)


def test_the_examples_of_help_work(tmp_path):
    examples = [line.strip() for line in load("run").epilog.splitlines() if "pystream run" in line]
    here = [line for line in examples if "spark" not in line]
    assert (len(here), len(examples)) == (4, 5)
    meters = pa.table(
        {
            "ts": pa.array(range(0, 36_000, 600), pa.timestamp("s")),
            "meter": [1, 2] * 30,
            "cons": [0.5 * i for i in range(60)],
        }
    )
    for name in ("readings.csv", "a.parquet", "b.parquet", "data/c.csv"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write(tmp_path / name, meters)
    (tmp_path / "hourly.toml").write_text(_toml_of_help())
    (tmp_path / "load.csv.gz").write_bytes(gzip.compress(write(tmp_path / "load.csv", eia()).read_bytes()))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in here:
        done = subprocess.run(
            ["bash", "-ec", line],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (line, done.stderr)
    assert pq.read_table(tmp_path / "rows.parquet").column_names == ["ts", "meter", "high"]
    assert pyarrow.csv.read_csv(tmp_path / "rows.csv").column_names == ["ts", "meter", "mean", "high"]
    assert pyarrow.csv.read_csv(tmp_path / "daily.csv").num_rows == len(daily())


def _toml_of_help() -> str:
    lines = load("run").epilog.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("A TOML file"))
    return "\n".join(line.strip() for line in lines[start + 1 :])
