"""Columns that folders give: the types and values that Spark gives them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

import pystream as ps
from pystream.spark.files import partition_values
from pystream.spark.files.file_source import look
from pystream.spark.rows.spark_types import to_spark

NULL = "__HIVE_DEFAULT_PARTITION__"
NOON = "2024-01-02 12:30:05"

#: Values of a column, and its type. What Spark says of each of them is what test_as_spark_types_them compares with.
CASES: dict[tuple[str, ...], pa.DataType] = {
    ("01", "2", "+5", "-0"): pa.int32(),
    ("1", "2147483648", "-9223372036854775808"): pa.int64(),
    ("1", "9223372036854775808"): pa.decimal128(19, 0),
    ("2147483648", "9223372036854775808"): pa.decimal128(20, 0),
    ("1e5", "7"): pa.decimal128(10, 0),
    ("1.", "1E5"): pa.decimal128(6, 0),
    ("1" * 39, "1.5"): pa.float64(),
    ("1", ".5", "NaN", "Infinity", " 1d", "1E-3", "0x1p3", "1e400"): pa.float64(),
    ("2147483648", "1.5"): pa.string(),
    ("1e3", "1.5"): pa.string(),
    ("0001-01-01", "2024-02-29"): pa.date32(),
    ("2024-02-30", "2024-01-01"): pa.string(),
    ("2024-1-2",): pa.string(),
    (NOON, f"{NOON}.6", "2024-01-02", "2024-03-10 02:30:00"): pa.timestamp("us", "UTC"),
    (f"{NOON}.678",): pa.string(),
    (NOON, "7"): pa.string(),
    ("2024-01-02", "5"): pa.string(),
    ("1_0",): pa.string(),
    ("0x10",): pa.string(),
    (NULL, "3"): pa.int32(),
    ("a b", "50%", "ü"): pa.string(),
}


@pytest.mark.parametrize("texts", CASES, ids="|".join)
def test_types(texts):
    assert partition_values.common_type(text for text in texts if text != NULL) == CASES[texts]


def test_zones():
    instants = [
        partition_values.value_of(NOON, partition_values.INSTANT, zone) for zone in ("UTC", "+02:00", "Asia/Tokyo")
    ]
    assert [i.as_py().hour for i in instants] == [12, 10, 3]


@pytest.mark.spark
def test_as_spark_types_them(spark, tmp_path):
    """All columns in one table: Spark and our files have the same types and the same values, in any time zone."""
    rows = max(map(len, CASES))
    for row in range(rows):
        folder = tmp_path
        for i, texts in enumerate(CASES):
            folder /= f"c{i}={texts[row % len(texts)].replace('%', '%25')}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"ts": [row]}), folder / "part.parquet")
    names = [f"c{i}" for i in range(len(CASES))]
    query = ps.Query(ps.Window(1), None, {"u": ps.udf(object, type=pa.int64())})  # which is given all columns
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        theirs = spark.read.parquet(str(tmp_path))
        source, pieces = look(query, tmp_path, ["ts"], None, None, zone="America/New_York")
        parts = [{"file": vars(p.file), "groups": [*p.groups]} for p in pieces]
        ours = spark.createDataFrame(pa.Table.from_batches(to_spark(b) for part in parts for b in source.rows_of(part)))
        assert dict(ours.dtypes) == {"ts": "bigint"} | {name: dict(theirs.dtypes)[name] for name in names}
        texts = [f"cast({name} as string)" for name in names]
        found, want = (sorted(map(repr, frame.selectExpr("ts", *texts).collect())) for frame in (ours, theirs))
        assert found == want
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
