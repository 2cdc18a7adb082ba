"""Files of `aggregate_files`: the filter that spares row groups, JSON lines, URIs, and any names of columns."""

from __future__ import annotations

import gzip
import json

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import pystream as ps

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark import aggregate, aggregate_files
from pystream.spark.files import file_source
from pystream.spark.files.listing import list_files

QUERY = ps.Query(ps.Window(10, 5), "meter", {"n": ps.count(), "s": ps.sum("v"), "f": ps.first("v")})
TABLE = pa.table(
    {
        "ts": list(range(400)),
        "stream": pa.array([0] * 400, pa.int32()),
        "position": list(range(400)),
        "meter": [i // 100 for i in range(400)],  # a row group has one meter
        "v": [i / 4 for i in range(400)],
    }
)


def stored(folder, table=TABLE, name="rows.parquet", **options):
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name, row_group_size=100, **options)
    return folder


def read(path, where, query=QUERY, **options):
    """The rows of all pieces, and how many pieces there are."""
    order = ["ts", "stream", "position"]
    source, pieces = file_source.look(query, path, order, options.get("format"), None, where)
    parts = [{"file": vars(p.file), "groups": [*p.groups]} for p in pieces]
    batches = [batch for part in parts for batch in source.rows_of(part)]
    return pa.Table.from_batches(batches, source.schema), len(pieces)


METER = pc.field("meter")


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        (METER == 2, 1),
        (METER > 0, 3),
        ((METER == 1) & (pc.field("v") < 30), 1),
        (pc.field("ts") >= 350, 1),
        (pc.field("v") < 0, 0),
        (METER.isin([0, 3]), 2),
        (pc.field("v") * 2 < 0, 4),  # nothing known of products
    ],
    ids=str,
)
def test_row_groups_that_cannot_match_are_not_read(where, groups, tmp_path):
    rows, pieces = read(stored(tmp_path / "in"), where)
    assert pieces == groups
    assert rows.select(TABLE.column_names).to_pylist() == TABLE.filter(where).to_pylist()


def test_what_is_not_read_may_be_damaged(tmp_path):
    """The pages of the other row groups are overwritten: whoever read them would fail."""
    file = stored(tmp_path / "in", compression="none") / "rows.parquet"
    metadata = pq.read_metadata(file)
    data = bytearray(file.read_bytes())
    for group in (0, 1, 3):
        for column in range(metadata.num_columns):
            chunk = metadata.row_group(group).column(column)
            begin = chunk.dictionary_page_offset or chunk.data_page_offset
            data[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    file.write_bytes(data)
    assert read(file, METER == 2)[0].num_rows == 100
    with pytest.raises(ps.PystreamError, match=r"rows\.parquet"):
        read(file, METER >= 2)


def test_folders_that_cannot_match_are_not_read(tmp_path):
    for site in ("1", "2"):
        stored(tmp_path / f"site={site}")
    (tmp_path / "site=2/rows.parquet").rename(tmp_path / "site=2/more.parquet")
    rows, pieces = read(tmp_path, (pc.field("site") == 2) & (METER == 3))
    assert (rows.num_rows, pieces, {*rows["site"].to_pylist()}) == (100, 1, {2})


def test_types_that_differ_between_files_rule_nothing_out(tmp_path):
    """Statistics are in the type of the file, the filter is in the common one."""
    narrow = TABLE.set_column(3, "meter", TABLE["meter"].cast(pa.int32()))
    stored(tmp_path)
    stored(tmp_path, narrow, "narrow.parquet")
    rows, pieces = read(tmp_path, METER == 2)
    assert (rows.num_rows, pieces) == (200, 5)


@pytest.mark.spark
@pytest.mark.parametrize("position", ["position", "__row"])
def test_a_filter_on_spark(spark, tmp_path, position):
    """Rows that are left out are as if they were not there; where a row lies is not changed by it."""
    stored(tmp_path / "in")
    where = (METER != 1) & (pc.floor(pc.field("v")) == pc.field("v"))
    out = aggregate_files(spark, QUERY, tmp_path / "in", position=position, where=where).toArrow()
    want = ps.aggregate(QUERY, [TABLE.filter(where)])
    assert out.sort_by([("ts", "ascending"), ("meter", "ascending")]).to_pylist() == want.to_pylist()


@pytest.mark.parametrize(
    ("where", "error", "said"),
    [
        ("meter = 2", TypeError, "where is an expression such as pc.field"),
        (pc.field("nowhere") == 1, ps.SchemaError, "nowhere"),
        (pc.field("meter") == "x", ps.SchemaError, "meter"),
        (pc.field("v"), ps.SchemaError, "where=v"),
    ],
)
def test_filters_that_are_refused(where, error, said, tmp_path):
    with pytest.raises(error, match=said):
        read(stored(tmp_path), where)


# ---- JSON lines ----


def lines(table: pa.Table) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in table.to_pylist())


@pytest.mark.parametrize("name", ["rows.jsonl", "rows.ndjson", "rows.json", "rows.jsonl.gz"])
def test_json_lines(name, tmp_path):
    data = lines(TABLE)
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    rows, _ = read(tmp_path, METER == 2)
    assert rows.select(TABLE.column_names).to_pylist() == TABLE.filter(METER == 2).to_pylist()


def test_json_lines_with_gaps(tmp_path):
    """A key that a line does not have is null; one that no column is for is passed over; an empty file has no rows."""
    text = (
        '{"ts": 1, "stream": 0, "position": 0, "meter": 7, "v": 1.5}\n{"ts": 2, "stream": 0, "position": 1, "x": {}}\n'
    )
    (tmp_path / "a.jsonl").write_text(text)
    rows, _ = read(tmp_path, None)
    assert rows["v"].to_pylist() == [1.5, None]
    (tmp_path / "a.jsonl").write_text(text + '{"ts": "late"}\n')
    with pytest.raises(ps.PystreamError, match=r"a\.jsonl: "):
        read(tmp_path, None)


def test_times_in_json_lines(tmp_path):
    """As `ps.aggregate` reads the same file: with fractions and zones, and text stays text."""
    rows = [{"ts": f"2024-01-02T03:04:0{i}.5Z", "meter": f"{i}", "v": i, "stream": 0, "position": i} for i in range(5)]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    query = ps.Query(ps.Window("2s"), "meter", QUERY.aggregates)
    table, _ = read(file, None, query)
    assert ps.aggregate(query, [table]).to_pylist() == ps.aggregate(query, [file]).to_pylist()
    assert table["meter"].type == pa.string()


@pytest.mark.spark
def test_json_lines_on_spark(spark, tmp_path):
    (tmp_path / "day=2024-01-02").mkdir()
    (tmp_path / "day=2024-01-02/rows.jsonl").write_bytes(lines(TABLE))
    query = ps.Query(QUERY.window, ["day", "meter"], QUERY.aggregates)
    out = aggregate_files(spark, query, tmp_path, "__file", "__row").drop("day").toArrow()
    assert (
        out.sort_by([("ts", "ascending"), ("meter", "ascending")]).to_pylist()
        == ps.aggregate(QUERY, [TABLE]).to_pylist()
    )


# ---- paths and names ----


def test_uris_with_spaces(tmp_path):
    """As pathlib writes them, and as people and Spark do."""
    folder = stored(tmp_path / "my 50% files")
    for uri in (folder.as_uri(), f"file://{folder}", f"file:{folder}", f"file://{folder}/*.parquet"):
        assert [file.path for file in list_files(uri)[1]] == [str(folder / "rows.parquet")]


@pytest.mark.spark
@pytest.mark.parametrize("function", ["first", "udf"])
def test_columns_with_dots_and_backticks(function, spark, tmp_path):
    class Sum:
        def __init__(self):
            self.sum = 0.0

        def process_tuple(self, row):
            self.sum += row["n.."]

        def produce_out_tuple(self):
            return self.sum

    ts, stream, position, key, other = "a.b", "we`ird", "a", "x y", "`"
    table = TABLE.rename_columns([ts, stream, position, key, "n.."]).append_column(other, TABLE["v"])
    result = ps.first("n..", pc.field(other) > 3) if function == "first" else ps.udf(Sum, type=pa.float64())
    query = ps.Query(ps.Window(10, 5), key, {"r.`": result}, ts=ts)
    want = ps.aggregate(query, [table]).to_pylist()
    path = stored(tmp_path, table)
    for out in (
        aggregate(spark.createDataFrame(table), query, stream, position),
        aggregate_files(spark, query, path, stream, position),
    ):
        rows = out.toArrow()
        assert rows.sort_by([("ts", "ascending"), (key, "ascending")]).to_pylist() == want
