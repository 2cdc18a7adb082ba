"""`pystream prepare`: raw records from the command line to a folder that `pystream run` takes."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream.cli import main, prepare
from pystream.errors import PystreamError
from pystream.queries import PAPER

pytestmark = pytest.mark.spark

ROWS = [(1_577_836_800 + i % 59, i % 5, i / 4) for i in range(200)]


def invoke(*args: object, exit_code: int = 0) -> str:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, [*map(str, args)])
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result.output


@pytest.mark.usefixtures("spark")
def test_raw_records_to_a_result(tmp_path):
    """Unsorted, twice, unreadable and incomplete rows; then a query over what is left, against the rows themselves."""
    bad = [("", 1, 1.0), ("-7", 1, 1.0), ROWS[0], ("1577836807", None, 1.0)]
    text = [f"{t},{'' if m is None else m},{c}" for t, m, c in [*ROWS[::-1], *bad]]
    (tmp_path / "raw.csv").write_text("\n".join(["time,meter,cons", *text]) + "\n")
    command = ("prepare", tmp_path / "raw.csv", "--ts", "time", "--stream", "meter", "--require", "meter")
    out = tmp_path / "data"
    said = invoke(*command, "--streams", 3, "--out", out)
    assert f"200 rows in 3 streams to {out}, 4 rows dropped: " in said
    for why in ("1 before 1970", "1 without timestamp", "1 without meter", "1 twice"):
        assert why in said
    assert '  before 1970: {"time":-7,"meter":1,"cons":1.0}\n' in said
    assert "is there already; --force replaces it" in invoke(*command, "--out", out, exit_code=2)
    assert not [p.name for p in tmp_path.iterdir() if p.name.startswith(".")]

    invoke("run", "k-OI", "--data", out, "--out", tmp_path / "rows.parquet")
    rows = sorted((t, m) for t, m, _ in ROWS)
    plain = pa.table({"ts": [t for t, _ in rows], "meter": [m for _, m in rows]})
    assert pq.read_table(tmp_path / "rows.parquet").equals(ps.aggregate(PAPER["k-OI"].query, [plain]))


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_json_with_times_of_another_form(tmp_path):
    (tmp_path / "raw").mkdir()
    rows = [{"when": f"{i % 28 + 1:02d}/03/2021 08:00", "v": i} for i in range(40)]
    (tmp_path / "raw" / "a.txt").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ("prepare", tmp_path / "raw", "--format", "json", "--ts", "when", "--time-format", "dd/MM/yyyy HH:mm")
    refused = invoke(*command, "--streams", 2, "--out", tmp_path / "data", exit_code=1)
    assert refused.startswith("Error: ")
    assert "format 'dd/MM/yyyy HH:mm' has no time zone: say in which the times are, such as tz='UTC'" in refused
    said = invoke(*command, "--tz", "Europe/Berlin", "--streams", 2, "--out", tmp_path / "data")
    assert "40 rows in 2 streams" in said
    stored = pq.read_table(tmp_path / "data")
    assert sorted(stored["v"].to_pylist()) == list(range(40))
    assert min(stored["ts"].to_pylist()) == datetime(2021, 3, 1, 7, tzinfo=UTC)


@pytest.mark.full
@pytest.mark.usefixtures("spark")
def test_a_missing_column_is_one_line(tmp_path):
    (tmp_path / "raw.csv").write_text("time,meter\n2020-01-01,1\n")
    said = invoke("prepare", tmp_path / "raw.csv", "--ts", "tim", "--out", tmp_path / "data", exit_code=1)
    assert said == "Error: column 'tim' is missing; there are 'time', 'meter'; did you mean 'time'?\n"
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["no.csv", "--out", "data"], "does not exist"),
        (["."], "Missing option '--out'"),
        (["raw.txt", "--out", "data"], "the endings tell no one format: say --format"),
        (["raw.csv", "--out", "raw.csv", "--force"], "is one of the inputs"),
    ],
)
def test_usage(args, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("raw.txt", "raw.csv"):
        (tmp_path / name).touch()
    assert message in invoke("prepare", *args, exit_code=2)


def test_spark_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setattr(prepare.importlib.util, "find_spec", lambda _name: None)
    (tmp_path / "a.csv").touch()
    assert "pip install" in invoke("prepare", tmp_path / "a.csv", "--out", tmp_path / "data", exit_code=1)


# ---- prepare itself ----


def made(frame, *args, **options):
    from pystream.spark import prepare  # noqa: PLC0415 - needs pyspark

    return prepare(frame, *args, **options)


def rows_of(prepared) -> list[dict]:
    """The rows in order; times as UTC, whatever the session's zone."""
    table = prepared.rows.toArrow()
    if pa.types.is_timestamp(table["ts"].type) and table["ts"].type.tz:
        table = table.set_column(0, "ts", table["ts"].cast(pa.timestamp("us", "UTC")))
    return table.sort_by([("stream", "ascending"), ("position", "ascending")]).to_pylist()


def at(second: float) -> datetime:
    return datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=second)


def test_readings_below_a_second_are_all_kept(spark):
    """Two equal values at .100 and .900 s are two readings, and come in the order of time."""
    times = [at(9.9), at(9.1), at(9.1), at(9.5)]
    prepared = made(spark.createDataFrame([(t, "x", 1.0) for t in times], "t timestamp, k string, v double"), "t", "k")
    assert prepared.rows.schema["ts"].dataType.typeName() == "timestamp"
    assert [r["ts"] for r in rows_of(prepared)] == [at(9.1), at(9.5), at(9.9)]
    assert prepared.dropped == {"twice": 1}


def test_records_are_compared_as_they_came(spark):
    """The same instant in two spellings is two records; equal ones are one."""
    texts = ["2024-01-01T00:00:09Z", "2024-01-01T01:00:09+01:00", "2024-01-01T00:00:09Z"]
    prepared = made(spark.createDataFrame([(t, 7) for t in texts], "ts string, v int"), streams=1)
    assert [(r["ts"], r["position"]) for r in rows_of(prepared)] == [(at(9), 0), (at(9), 1)]
    assert prepared.dropped == {"twice": 1}
    assert prepared.examples == {"twice": ['{"ts":"2024-01-01T00:00:09Z","v":7}']}


BERLIN = {
    "2024-01-01 00:00:09": at(9 - 3600),
    " 2024-01-01T00:00:09.123456789 ": at(9.123456 - 3600),
    "2024-01-01": at(-3600),
    "2024-01-01T01": at(0),
    "2024-01-01 01:30": at(1800),
    "2024-01-01T00:00:09Z": at(9),
    "2024-01-01T00:00+0530": at(-5.5 * 3600),
    "2024-01-01 01 +01": at(0),
    "2024-03-31 02:30:00": datetime(2024, 3, 31, 1, 30, tzinfo=UTC),  # in the gap
    "2024-10-27 02:30:00": datetime(2024, 10, 27, 0, 30, tzinfo=UTC),  # the first of two
}
UNREADABLE = ["2024-02-30", "T12:00", "2024", "noon", "2024-01-01T24:00:00Z", "2024-01-01 00:00:09+19:00", "1/2/2024"]


def test_text_with_and_without_a_zone(spark):
    texts = [*BERLIN, *UNREADABLE]
    frame = spark.createDataFrame([(i, t) for i, t in enumerate(texts)], "i int, t string").coalesce(1)
    prepared = made(frame, "t", "i", tz="Europe/Berlin")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        assert {texts[r["i"]]: r["ts"] for r in rows_of(prepared)} == BERLIN
        assert prepared.dropped == {"with unreadable timestamp": len(UNREADABLE), "twice": 0}
        with pytest.raises(PystreamError, match=r"column 't': '2024-01-01 00:00:09' has no time zone; .*tz='UTC'"):
            _ = made(frame, "t", "i").dropped
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


@pytest.mark.full
@pytest.mark.parametrize(("unit", "number"), [("s", 1), ("ms", 1_500), ("us", 1_500_007), ("ns", 1_500_007_999)])
def test_integers_take_a_unit(unit, number, spark):
    a_day = 19_723 * 86_400 * {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]  # 2024-01-01
    numbers = [a_day + number, -1, a_day * 200] if unit != "ns" else [a_day + number, -1]
    prepared = made(spark.createDataFrame([(n,) for n in numbers], "t long"), "t", unit=unit)
    found = timedelta(
        microseconds={"s": number * 10**6, "ms": number * 10**3, "us": number, "ns": number // 1000}[unit]
    )
    assert [r["ts"] for r in rows_of(prepared)] == [at(0) + found]
    far = {} if unit == "ns" else {"after the year 9999": 1}
    assert prepared.dropped == far | {"before 1970": 1, "twice": 0}
    assert "1 before 1970 (the engine does not take them yet)" in str(prepared)


def test_milliseconds_are_not_seconds(spark):
    frame = spark.createDataFrame([(1_600_000_000_123,)], "ts long")
    with pytest.raises(PystreamError, match=r"'ts': 1600000000123 is no number of seconds since 1970.*unit= one of"):
        _ = made(frame).dropped
    assert [r["ts"] for r in rows_of(made(spark.createDataFrame([(5,)], "ts int")))] == [5]


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ("t long, stream int", {}, "column 'stream' is there already"),
        ("t long, Position int", {}, "column 'Position' is there already"),
        ("t long, ts string", {}, "column 'ts' is there already"),
        ("t double", {}, "column 't' of type double is not a timestamp"),
        ("t timestamp", {"unit": "ms"}, "unit= says nothing of column 't' of type timestamp"),
        ("t timestamp", {"tz": "UTC"}, "tz= says nothing of column 't' of type timestamp"),
        ("t long", {"unit": "h"}, "unit is one of 's', 'ms', 'us', 'ns', not 'h'"),
        ("t string", {"tz": "Berlin"}, "tz='Berlin' is not a time zone"),
        ("t long, v double", {"stream": "v"}, "column 'v' of type double cannot decide the stream"),
        ("t long", {"stream": "m"}, "column 'm' is missing"),
    ],
)
def test_what_is_refused_at_once(columns, options, message, spark):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        made(spark.createDataFrame([], columns), "t", **options)


NESTED = "t long, `a.b` string, s struct<x:int,y:double>, l array<double>, m map<string,array<double>>, v double"
RECORDS = [
    (t, k, (x, y), lst, m, v)
    for t in (1, 2)
    for k in ("k", None)
    for x, y in ((1, -0.0), (1, 0.0), (None, None))
    for lst in ([1.0], [], None)
    for m in ({"p": [1.0], "q": []}, {"q": [], "p": [1.0]}, None)
    for v in (0.0, -0.0, 5.0)
]


def test_nested_columns_survive_and_partitions_do_not_show(spark):
    """Maps, which Spark neither groups nor orders, are equal whatever the order of their entries; -0.0 stays -0.0."""
    frame = spark.createDataFrame(RECORDS, NESTED)
    results = [made(frame.repartition(n, "v"), "t", "a.b", 2) for n in (1, 7)]
    rows = [rows_of(prepared) for prepared in results]
    assert repr([{**r, "m": r["m"] and sorted(r["m"])} for r in rows[0]]) == repr(
        [{**r, "m": r["m"] and sorted(r["m"])} for r in rows[1]]
    )
    assert len(rows[0]) == len(RECORDS) * 2 // 3
    assert results[0].dropped == {"twice": len(RECORDS) // 3}
    kept = {
        repr((r["ts"], r["a.b"], tuple(r["s"].values()), r["l"], r["m"] and dict(r["m"]) and 1, r["v"]))
        for r in rows[0]
    }
    assert kept == {repr((t, k, s, lst, m and 1, v)) for t, k, s, lst, m, v in RECORDS}
    for number in {r["stream"] for r in rows[0]}:
        mine = [r for r in rows[0] if r["stream"] == number]
        assert [r["position"] for r in mine] == list(range(len(mine)))
        assert [r["ts"] for r in mine] == sorted(r["ts"] for r in mine)


@pytest.mark.full
@pytest.mark.parametrize("wanted", [["x", None, "", "y"], ["x", "y"], []])
def test_reports_of_frames_of_which_nothing_is_left(wanted, spark):
    frame = spark.createDataFrame([(t, 1) for t in wanted], "ts string, v int")
    prepared = made(frame)
    blank = sum(not t for t in wanted)
    counts = {"with unreadable timestamp": len(wanted) - blank, "without timestamp": blank}
    assert prepared.dropped == {why: n for why, n in counts.items() if n} | {"twice": 0}
    readable = ['{"ts":"x","v":1}', '{"ts":"y","v":1}']
    assert prepared.examples.get("with unreadable timestamp", readable) == readable
    assert prepared.rows.count() == 0


@pytest.mark.full
def test_one_pass_writes_and_counts(spark, tmp_path):
    frame = spark.createDataFrame([(1, "a"), (1, "a"), (None, "b")], "ts long, k string")
    prepared = made(frame, stream="k", require=["k"])
    prepared.counting(lambda rows: rows.write.parquet(str(tmp_path / "out")))
    assert prepared.dropped == {"without timestamp": 1, "twice": 1}
    assert pq.read_table(tmp_path / "out")["k"].to_pylist() == ["a"]
