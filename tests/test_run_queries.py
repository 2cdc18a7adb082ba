"""`pystream run` with queries of one's own: options, TOML, conditions as text, and what is said when they are wrong."""

from __future__ import annotations

import shlex
from pathlib import Path

import pyarrow as pa
import pytest
from run_command import DAILY, REGIONS, daily, eia, invoke, misused, read, refused, same, timed, tuples, write

import pystream as ps
from pystream.queries import PAPER

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
    assert read(out) == ps.aggregate(PAPER["k-OI"].query, [rows])


def test_a_query_of_ones_own_over_stored_streams(tmp_path):
    rows = pa.table({"ts": [1, 1, 5], "stream": [1, 0, 1], "v": [1.0, 2.0, 3.0]})
    (tmp_path / "data").mkdir()
    write(tmp_path / "data" / "a.parquet", rows)
    done = invoke("--data", tmp_path / "data", *["--window", "10", "--agg", "first:v", "--out", "-"])
    assert done.stdout.splitlines() == ['"ts","first_v"', "0,2"]


def test_functions_of_two_columns(tmp_path):
    rows = pa.table({"ts": [1, 2, 11], "v": [1.0, 2.0, 3.0], "name": ["a", "b", "c"]})
    aggs = ["--agg", "who=arg_max:name:v", "--agg", "arg_min:v:ts where v > 1"]
    done = invoke(write(tmp_path / "a.parquet", rows), "--window", "10", *aggs, "--out", "-")
    assert done.stdout.splitlines() == ['"ts","who","arg_min_v_ts"', '0,"b",2', '10,"c",3']


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
        ("a.csv --window 1h --agg n=counts", "there is no function 'counts'; there are count, sum, avg"),
        ("a.csv --window 1h --agg n=count:v", "count takes no column; `count where v is not null` counts values"),
        ("a.csv --window 1h --agg m=mean", "of which column? Say mean:COLUMN"),
        ("a.csv --window 1h --agg m=arg_min:v", "ordered by which column? Say arg_min:COLUMN:BY"),
        ("a.csv --window 1h --agg m=slope:v", "with which other column? Say slope:COLUMN:COLUMN"),
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
        ("window = 10\n[aggregates]\nn = 'mode:v'", "there is no function 'mode'"),
    ],
)
def test_wrong_toml(toml, message, tmp_path):
    file = tmp_path / "q.toml"
    file.write_text(toml)
    said = misused(file, "a.csv")
    assert said.startswith(f"{file}: ")
    assert message in said
