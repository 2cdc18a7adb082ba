"""`pystream run` on files and queries of one's own: every format in and out, queries as options and as TOML, and what
is said when something is wrong."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream.cli import load, main, rows_out

HOURS = 48
REGIONS = ("CAL", "NW", "TEX")


def load_of(region: str, hour: int) -> float:
    return round(1000 * (1 + REGIONS.index(region)) + 37.25 * ((hour * 7) % 24), 2)


def eia(regions=REGIONS, hours=HOURS) -> pa.Table:
    """Hourly load per region in the form of the EIA's open data: the hour as ISO text, the region, megawatt-hours."""
    start = datetime(2024, 3, 9, tzinfo=UTC)
    rows = [
        {"period": f"{start + timedelta(hours=h):%Y-%m-%dT%H}", "respondent": r, "type": "D", "value": load_of(r, h)}
        for h in range(hours)
        for r in regions
    ]
    return pa.Table.from_pylist(rows)


def timed(table: pa.Table) -> pa.Table:
    """The same with the hours as timestamps, as a parquet file would have them."""
    return table.set_column(0, "period", table["period"].cast(pa.timestamp("s")))


def daily(regions=REGIONS, hours=HOURS) -> list[tuple]:
    """Per day and region: hours, mean and peak, by hand."""
    out = []
    for day in range(hours // 24):
        for region in sorted(regions):
            values = [load_of(region, h) for h in range(24 * day, 24 * day + 24)]
            out.append((datetime(2024, 3, 9 + day), region, 24, sum(map(float, values)) / 24, max(values)))  # noqa: DTZ001
    return out


DAILY = "--window 24h --key respondent --agg n=count --agg mean=mean:value --agg peak=max:value"


def invoke(*args: object, exit_code: int = 0, stdin: bytes | None = None):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["run", *map(str, args)], input=stdin)
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result


def refused(*args: object, stdin: bytes | None = None) -> str:
    """The one line that an error is, without usage."""
    result = invoke(*args, exit_code=1, stdin=stdin)
    assert (result.stdout, result.stderr.count("\n")) == ("", 1)
    return result.stderr.removeprefix("Error: ").rstrip("\n")


def misused(*args: object) -> str:
    """The last line of a usage error."""
    result = invoke(*args, exit_code=2)
    assert result.stdout == ""
    return result.stderr.splitlines()[-1].removeprefix("Error: ")


def write(path: Path, table: pa.Table) -> Path:
    suffix = path.suffix
    if suffix == ".csv":
        pyarrow.csv.write_csv(table, path)
    elif suffix == ".parquet":
        pq.write_table(table, path)
    elif suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write(table)
    else:
        path.write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))
    return path


def read(path: Path) -> pa.Table:
    if path.suffix == ".arrow":
        return pa.ipc.open_file(path).read_all()
    return {".csv": pyarrow.csv.read_csv, ".parquet": pq.read_table, ".jsonl": pyarrow.json.read_json}[path.suffix](
        path
    )


def tuples(table: pa.Table) -> list[tuple]:
    times = table.column(0).cast(pa.timestamp("ns")).cast(pa.timestamp("s")).to_pylist()
    return list(zip(times, *(c.to_pylist() for c in table.columns[1:]), strict=True))


def same(got: list[tuple], want: list[tuple]) -> None:
    assert [row[:3] for row in got] == [row[:3] for row in want]
    assert [row[3:] for row in got] == [pytest.approx(row[3:], rel=1e-15) for row in want]


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


# ---- queries ----


def test_a_toml_file(tmp_path):
    query = tmp_path / "daily.toml"
    query.write_text(
        'window = "24h"\nkey = ["respondent"]\nts = "period"\n'
        '[aggregates]\nn = "count"\nmean = "mean:value"\npeak = "max:value"\n'
    )
    out = tmp_path / "o.arrow"
    said = invoke(query, write(tmp_path / "load.csv", eia()), "--out", out).stdout
    assert said.startswith(f"{query}: 144 tuples in, 6 rows out")
    same(tuples(read(out)), daily())


def test_a_query_of_the_papers_over_files(tmp_path):
    rows = pa.table({"ts": [0, 4, 31], "meter": [1, 2, 1], "cons": [0.5, 1.0, 2.0]})
    out = tmp_path / "o.arrow"
    invoke("k-OI", write(tmp_path / "a.parquet", rows), "--out", out)
    from pystream.queries import PAPER  # noqa: PLC0415

    assert read(out) == ps.aggregate(PAPER["k-OI"].query, [rows])


def test_a_query_of_ones_own_over_stored_streams(tmp_path):
    rows = pa.table({"ts": [1, 1, 5], "stream": [1, 0, 1], "v": [1.0, 2.0, 3.0]})
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "a.parquet", rows)
    done = invoke("--data", tmp_path / "data", *["--window", "10", "--agg", "first:v", "--out", "-"])
    assert done.stdout.splitlines() == ['"ts","first_v"', "0,2"]


@pytest.mark.parametrize("design", ["auto", "mq", "wiml"])
def test_the_design_does_not_show(design, tmp_path):
    files = [write(tmp_path / f"{r}.parquet", timed(eia([r]))) for r in REGIONS]
    out = tmp_path / "o.arrow"
    invoke(*files, *DAILY.split(), "--design", design, "--out", out)
    same(tuples(read(out)), daily())


VALUES = {
    "ts": [1, 1, 1, 1],
    "v": pa.array([1.5, 2.5, None, -3.0]),
    "s": ["a", "it's", "c", None],
    "b": [True, False, None, True],
}


@pytest.mark.parametrize(
    ("where", "count"),
    [
        ("v > 1.5", 1),
        ("v >= 1.5", 2),
        ("v = -3", 1),
        ("v == -3.0e0", 1),
        ("v != 2.5", 2),
        ("v <> 2.5", 2),
        ("v < 0 or v > 2", 2),
        ("v < 0 or v > 2 and s = 'c'", 1),
        ("s = 'it''s'", 1),
        ("s is null", 1),
        ("s is not null and v is null", 1),
        ("b = true", 2),
        ('"b" = false', 1),
        ("V_1 > 0 ", None),
    ],
)
def test_conditions(where, count, tmp_path):
    file = write(tmp_path / "a.parquet", pa.table(VALUES))
    command = (file, "--window", 10, "--agg", f"n=count where {where}", "--out", "-")
    if count is None:
        assert invoke(*command, exit_code=1)
    else:
        assert invoke(*command).stdout.splitlines()[1] == f"0,{count}"


@pytest.mark.parametrize(
    ("where", "why"),
    [
        ("v", "after a column comes one of"),
        ("> 3", "a comparison begins with a column"),
        ("v > ", "after an operator comes a number"),
        ("v > w", "after an operator comes a number"),
        ("v is 3", "after `is` comes"),
        ("v > 3 v", "what is 'v' doing there?"),
        ("v > 3 and", "a comparison begins with a column"),
        ("v > 'open", "cannot be read"),
        ("__import__('os').system('true')", "cannot be read"),
        ("v > 1; drop", "cannot be read"),
        ("v > 12abc", "cannot be read"),
    ],
)
def test_conditions_that_are_none(where, why):
    assert why in misused("a.csv", "--window", 10, "--agg", f"n=count where {where}")


# ---- what is wrong ----


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("", "which files? Give their names, or - for standard input, or --data FOLDER"),
        ("a.csv", "which windows? Say --window 1h, or name a query: one of the paper's or a TOML file"),
        ("a.csv --window 1h", "compute what? Say --agg n=count"),
        ("a.csv --window 1x --agg n=count", "'1x' is not a duration such as '30s'"),
        ("a.csv --window 1h --agg n=counts", "there is no function 'counts'; there are count, sum, mean"),
        ("a.csv --window 1h --agg n=count:v", "count takes no column; `count where v is not null` counts values"),
        ("a.csv --window 1h --agg m=mean", "of which column? Say mean:COLUMN"),
        ("a.csv --window 1h --agg =x", "'=x' is not of the form NAME=FUNCTION[:COLUMN]"),
        ("a.csv --window 1h --agg n=count --agg n=count", "there are two columns named 'n'"),
        ("k-OI a.csv --window 1h", "k-OI is a query of its own: leave out --window"),
        ("no.toml a.csv", "there is no file 'no.toml'"),
        ("k-OI a.csv --data .", "give either files or --data, not both"),
        ("- - --window 1h --agg n=count", "standard input can be one input only"),
        ("a.csv --window 1h --agg n=count --format csv", "--format is that of standard input and output"),
        ("- --window 1h --agg n=count --out-format csv", "--out-format is that of standard output"),
        ("k-OI --data . --sort", "--sort is for files, not for --data"),
        ("there.csv --window 1h --agg n=count --out there.csv --force", "'there.csv' is one of the inputs"),
        ("a.csv --window 1h --agg n=count --out folder.csv --force", "'folder.csv' is a folder"),
        ("a.csv --window 1h --agg n=count --out there.csv", "'there.csv' is there already; --force overwrites it"),
        ("a.csv --window 1h --agg n=count --engine spark --threads 2 --sort", "would ignore --threads, --sort"),
        ("a.csv --window 1h --agg n=count --engine spark --design mq", "would ignore --design"),
        ("- --window 1h --agg n=count --engine spark", "not standard input and output"),
        ("a.csv --window 1h --agg n=count --engine spark --out -", "not standard input and output"),
    ],
)
def test_usage(args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("there.csv").write_text("ts\n1\n")
    Path("folder.csv").mkdir()
    assert message in misused(*shlex.split(args))
    assert Path("there.csv").read_text() == "ts\n1\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("no.csv --window 1h --agg n=count", "there is no file 'no.csv'"),
        ("'*.arrow' --window 1h --agg n=count", "no file matches '*.arrow'"),
        (
            "a.csv --window 1h --agg mean:valu",
            "a.csv: column 'valu' is missing; there are 'ts', 'value'; did you mean 'value'?",
        ),
        ("a.csv --window 1h --agg mean:value", "window size '1h' needs an Arrow timestamp column"),
        ("a.csv --window 10 --agg mean:value --ts value", "timestamp column 'value' has type string"),
        ("a.csv --window 10 --agg mean:value", "value"),
        ("b.csv --window 10 --agg n=count", "b.csv"),
        ("a.csv --window 10 --agg 'n=count where valu > 1'", "column 'valu' is missing; there are 'ts', 'value'"),
        ("a.csv --window 10 --agg n=count --design wiml --agg first:value", "wiml"),
    ],
)
def test_wrong_data(args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("ts,value\n1,x\n")
    Path("b.csv").write_text("")
    assert message in refused(*shlex.split(args), "--out", "o.csv")
    assert not Path("o.csv").exists()


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("window = ", "Invalid value"),
        ("window = 10", "a table [aggregates] is missing"),
        ("window = 10\n[aggregates]", "a table [aggregates] is missing"),
        ("[aggregates]\nn = 'count'", "`window` is missing"),
        (
            "window = 10\nslide = 1\n[aggregates]\nn = 'count'",
            "'slide' is not known; there are window, every, key, ts, aggregates",
        ),
        ("window = 10\nkey = 1\n[aggregates]\nn = 'count'", "`key` is the name of a column or a list of names, not 1"),
        ("window = 10\nts = 1\n[aggregates]\nn = 'count'", "`ts` is the name of a column, not 1"),
        ("window = 1.5\n[aggregates]\nn = 'count'", "window size must be an integer"),
        ("window = 10\n[aggregates]\nn = 1", '[aggregates] n is text such as "mean:cons", not 1'),
        ("window = 10\n[aggregates]\nn = 'median:v'", "there is no function 'median'"),
    ],
)
def test_wrong_toml(toml, message, tmp_path):
    file = tmp_path / "q.toml"
    file.write_text(toml)
    said = misused(file, "a.csv")
    assert said.startswith(f"{file}: ")
    assert message in said


# ---- the examples of --help ----


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
