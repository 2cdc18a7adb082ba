"""What people have is an input: a frame without a list, files, lazy frames, data sets, rows, an index of times."""

from __future__ import annotations

import gzip
import itertools
import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import pystream as ps
from pystream._inputs import file_formats
from pystream._inputs.file_inputs import open_inputs

QUERY = ps.Query(ps.Window(10), "k", {"n": ps.count(), "total": ps.sum("v"), "some": ps.count(where=pc.field("w") > 1)})
TABLE = pa.table({"ts": [1, 2, 11], "k": ["a", "a", "b"], "v": [0.5, 0.25, 4.0], "w": [1, 2, 3], "x": [[1], [], None]})
EXPECTED = [
    {"ts": 0, "k": "a", "n": 2, "total": 0.75, "some": 1},
    {"ts": 10, "k": "b", "n": 1, "total": 4.0, "some": 1},
]
ROWS = TABLE.to_pylist()
FLAT = TABLE.drop_columns("x")

ONE = {
    "table": lambda: TABLE,
    "batch": lambda: TABLE.to_batches()[0],
    "reader": TABLE.to_reader,
    "polars": lambda: pl.from_arrow(TABLE),
    "lazy frame": lambda: pl.from_arrow(TABLE).lazy(),
    "pandas": TABLE.to_pandas,
    "dict": FLAT.to_pydict,
    "rows": lambda: ROWS,
    "data set": lambda: ds.dataset(TABLE),
    "scanner": lambda: ds.dataset(TABLE).scanner(),
}


@pytest.mark.parametrize("source", ONE.values(), ids=ONE)
def test_one_input_needs_no_list(source):
    assert ps.aggregate(QUERY, source()).to_pylist() == EXPECTED
    assert ps.aggregate(QUERY, [source()]).to_pylist() == EXPECTED


@pytest.mark.parametrize("source", ONE.values(), ids=ONE)
def test_operators_take_it_as_a_batch(source):
    with ps.Operator(QUERY, 1, TABLE.schema) as op:
        op.add(0, source())
        op.close(0)
        assert [row for batch in op for row in batch.to_pylist()] == EXPECTED


# ---- files ----


def _json_lines(table, path):
    Path(path).write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))


def _stream(table, path):
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=2)


def _packed(table, path):
    pyarrow.csv.write_csv(table, f"{path}.plain")
    Path(path).write_bytes(gzip.compress(Path(f"{path}.plain").read_bytes()))


WRITERS = {
    "parquet": lambda table, path: pq.write_table(table, path, row_group_size=2),
    "csv": pyarrow.csv.write_csv,
    "csv.gz": _packed,
    "feather": lambda table, path: pyarrow.feather.write_feather(table, path, chunksize=2),
    "arrows": _stream,
    "jsonl": _json_lines,
}


@pytest.mark.parametrize("ending", WRITERS)
@pytest.mark.parametrize("kind", [str, Path])
def test_paths(tmp_path, ending, kind):
    path = kind(tmp_path / f"readings.{ending}")
    WRITERS[ending](FLAT, str(path))
    assert ps.aggregate(QUERY, path).to_pylist() == EXPECTED
    assert ps.aggregate(QUERY, [path]).to_pylist() == EXPECTED
    assert ps.aggregate(QUERY, [path, FLAT, path])["n"].to_pylist() == [6, 3]


@pytest.mark.parametrize("ending", WRITERS)
def test_only_the_columns_that_a_query_needs_are_read(tmp_path, ending):
    path = str(tmp_path / f"readings.{ending}")
    WRITERS[ending](FLAT, path)
    (file,) = open_inputs(path, columns=["v", "ts"])
    assert [batch.schema.names for batch in file] == [["ts", "v"]] * len(list(file))
    assert file.schema.names == ["ts", "v"]
    assert pa.Table.from_batches(file) == FLAT.select(["ts", "v"])


def test_a_glob_is_one_input_per_file_sorted_by_name(tmp_path):
    query = ps.Query(ps.Window(10), None, {"order": ps.first("k"), "last": ps.last("k")})
    for name in ("b", "a", "c"):
        pq.write_table(pa.table({"ts": [1], "k": [name]}), tmp_path / f"{name}.parquet")
    (tmp_path / "folder.parquet").mkdir()
    result = ps.aggregate(query, str(tmp_path / "*.parquet"))
    assert result.to_pylist() == [{"ts": 0, "order": "a", "last": "c"}]
    assert [file.path.stem for file in open_inputs([tmp_path / "[bc].parquet", tmp_path / "a.parquet"])] == [*"bca"]


def test_a_name_with_brackets_is_a_path_first(tmp_path):
    pq.write_table(FLAT, tmp_path / "a[1].parquet")
    assert ps.aggregate(QUERY, tmp_path / "a[1].parquet").to_pylist() == EXPECTED


def test_files_mix_with_each_other(tmp_path):
    for ending, write in WRITERS.items():
        write(FLAT, str(tmp_path / f"readings.{ending}"))
    paths = [tmp_path / f"readings.{ending}" for ending in WRITERS]
    assert ps.aggregate(QUERY, paths)["n"].to_pylist() == [2 * len(paths), len(paths)]


@pytest.mark.parametrize("texts", [["2024-01-01T00:00:00Z", "2024-01-01T01:00:00Z"], ["2024-01-01 00:00:00.25"] * 2])
def test_times_in_text_files_are_times(tmp_path, texts):
    """The same in CSV and in JSON lines."""
    (tmp_path / "a.csv").write_text("ts\n" + "\n".join(texts) + "\n")
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"ts": text}) + "\n" for text in texts))
    query = ps.Query(ps.Window("1h"), None, {"n": ps.count()})
    results = [ps.aggregate(query, tmp_path / name) for name in ("a.csv", "a.jsonl")]
    assert results[0] == results[1]
    assert sum(results[0]["n"].to_pylist()) == 2


def test_text_whose_types_change_after_the_first_block(tmp_path, monkeypatch):
    monkeypatch.setattr(file_formats, "BLOCK_BYTES", 64)
    lines = [f"{i},a,{i},2" for i in range(50)] + ["50,a,0.5,2"]
    (tmp_path / "a.csv").write_text("ts,k,v,w\n" + "\n".join(lines) + "\n")
    with pytest.raises(ps.SchemaError, match=r"input 0: .*a\.csv.*'0\.5'.*decide the types"):
        ps.aggregate(QUERY, tmp_path / "a.csv")


def test_a_file_is_read_batch_by_batch(tmp_path):
    """While one batch is at hand, the next have not been read."""
    rows = 1 << 20
    columns = {"ts": np.arange(rows), "k": np.zeros(rows, "int64"), "v": np.arange(rows), "w": np.arange(rows)}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet", row_group_size=1 << 16, compression="none")
    before = pa.total_allocated_bytes()
    batches = iter(open_inputs(tmp_path / "a.parquet", columns=["ts", "v"])[0])
    held = [pa.total_allocated_bytes() - before for _ in itertools.islice(batches, 8)]
    assert max(held) < rows * 16 / 2  # two columns of 8 bytes, and far from all rows of them


def test_what_a_query_does_not_need_may_be_anything(tmp_path, monkeypatch):
    monkeypatch.setattr(file_formats, "BLOCK_BYTES", 256)
    rows = [{"ts": i, "k": "a", "v": 0.5, "w": 1, "note": i if i < 50 else "text"} for i in range(60)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [f"{row['ts']},a,0.5,1,{row['note']}" for row in rows]
    (tmp_path / "a.csv").write_text("ts,k,v,w,note\n" + "\n".join(lines) + "\n")
    for name in ("a.jsonl", "a.csv"):
        assert ps.aggregate(QUERY, tmp_path / name)["n"].to_pylist() == [10] * 6
        with pytest.raises(ps.SchemaError, match="decide the types"):
            list(open_inputs(tmp_path / name)[0])


class Names:
    """A udf that gives the names of the columns it has seen."""

    def process_tuple(self, row):
        self.seen = ",".join(row)

    def produce_out_tuple(self):
        return self.seen


def test_user_code_gets_whole_rows(tmp_path):
    pq.write_table(FLAT, tmp_path / "a.parquet")
    query = ps.Query(ps.Window(100), None, {"names": ps.udf(Names, pa.string())})
    for source in (tmp_path / "a.parquet", pl.from_arrow(FLAT).lazy(), ds.dataset(FLAT), FLAT.to_pylist()):
        for sort in (False, True):
            assert ps.aggregate(query, source, sort=sort)["names"].to_pylist() == ["ts,k,v,w"]


# ---- lazy frames, data sets ----


def test_lazy_frames_are_pruned_to_the_query():
    def fail(_):
        raise AssertionError("a column was computed that the query does not need")

    lazy = pl.from_arrow(FLAT).lazy().with_columns(y=pl.col("v").map_batches(fail, return_dtype=pl.Float64))
    assert ps.aggregate(QUERY, lazy).to_pylist() == EXPECTED


def test_data_sets_are_pruned_to_the_query(tmp_path):
    pq.write_table(FLAT.append_column("note", pa.array(["a", "b", "c"])), tmp_path / "a.parquet")
    wrong = ds.dataset(tmp_path, schema=FLAT.schema.append(pa.field("note", pa.int64())))
    with pytest.raises(pa.ArrowInvalid):
        wrong.to_table()
    assert ps.aggregate(QUERY, wrong).to_pylist() == EXPECTED


def test_data_sets_of_several_files_are_one_input(tmp_path):
    for i in range(3):
        pq.write_table(FLAT.slice(i, 1), tmp_path / f"{i}.parquet")
    whole = ds.dataset(tmp_path)
    assert ps.aggregate(QUERY, whole).to_pylist() == EXPECTED
    assert ps.aggregate(QUERY, [whole, whole.scanner(filter=pc.field("w") > 1)])["n"].to_pylist() == [3, 2]


# ---- rows ----


def test_rows_as_dicts():
    assert ps.aggregate(QUERY, [iter(ROWS)]).to_pylist() == EXPECTED
    assert ps.aggregate(QUERY, [ROWS, tuple(ROWS)])["n"].to_pylist() == [4, 2]
    sparse = [{"ts": 1, "k": "a"}, {"ts": 2, "v": 2, "w": 5}, {"ts": 3, "k": "a", "v": 0.5}]
    assert ps.aggregate(QUERY, sparse).to_pylist() == [
        {"ts": 0, "k": "a", "n": 2, "total": 0.5, "some": 0},
        {"ts": 0, "k": None, "n": 1, "total": 2.0, "some": 1},
    ]


def test_many_rows_come_in_several_batches():
    query = ps.Query(ps.Window(1 << 20), None, {"n": ps.count(), "total": ps.sum("v")})
    rows = ({"ts": i} | ({"v": 0.5} if i < 10 else {}) for i in range(100_000))
    assert ps.aggregate(query, [rows]).to_pylist() == [{"ts": 0, "n": 100_000, "total": 5.0}]


# ---- pandas ----


def test_an_index_of_times_is_the_timestamp():
    times = pd.date_range("2024-01-01", periods=3, freq="30min")
    query = ps.Query(ps.Window("1h"), None, {"total": ps.sum("v")}, ts="when")
    for index in (times, times.rename("when")):
        frame = pd.DataFrame({"v": [1, 2, 4]}, index=index)
        result = ps.aggregate(query, frame)
        assert result["total"].to_pylist() == [3, 4]
        assert result["ts"].to_pylist() == [times[0], times[2]]
        with ps.Operator(query, 1, pa.schema([("when", pa.timestamp("us")), ("v", pa.int64())])) as op:
            op.add(0, frame)
            op.close(0)
            assert pa.Table.from_batches(list(op))["total"].to_pylist() == [3, 4]
    with pytest.raises(ps.SchemaError, match="column 'when' is missing; there are 'v', 'day'"):
        ps.aggregate(query, pd.DataFrame({"v": [1, 2, 4]}, index=times.rename("day")))
    with pytest.raises(ps.SchemaError, match="column 'when' is missing"):
        ps.aggregate(query, pd.DataFrame({"v": [1, 2, 4]}, index=[5, 6, 7]))


def test_an_index_does_not_hide_a_column():
    frame = pd.DataFrame({"ts": [1, 2, 3]}, index=pd.date_range("2024-01-01", periods=3))
    query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    assert ps.aggregate(query, frame).to_pylist() == [{"ts": 0, "n": 3}]


def test_nan_is_a_value_in_numpy_and_missing_in_pandas():
    """Each library's own meaning; `aggregate` documents it."""
    query = ps.Query(ps.Window(10), None, {"total": ps.sum("v"), "high": ps.max("v")})
    values = np.array([1.0, np.nan])
    value, missing = [{"ts": 0, "total": "nan", "high": "nan"}], [{"ts": 0, "total": "1.0", "high": "1.0"}]
    frame = pd.DataFrame({"ts": [1, 2], "v": values})
    sources = [
        ({"ts": [1, 2], "v": values}, value),
        ({"ts": [1, 2], "v": values.tolist()}, value),
        ([{"ts": 1, "v": 1.0}, {"ts": 2, "v": float("nan")}], value),
        (pl.DataFrame({"ts": [1, 2], "v": values}), value),
        ({name: frame[name].to_numpy() for name in frame}, value),
        (frame, missing),
        ({name: frame[name] for name in frame}, missing),
        (pl.from_pandas(frame), missing),
    ]
    for source, expected in sources:
        row = ps.aggregate(query, source).to_pylist()
        assert [{k: v if k == "ts" else str(v) for k, v in r.items()} for r in row] == expected
    assert "NaN" in ps.aggregate.__doc__


# ---- sort=True ----


@pytest.mark.parametrize("source", ONE.values(), ids=ONE)
def test_sort(source):
    assert ps.aggregate(QUERY, source(), sort=True).to_pylist() == EXPECTED


def test_sort_is_stable_and_by_input():
    query = ps.Query(ps.Window(100), None, {"first": ps.first("v"), "last": ps.last("v"), "n": ps.count()})
    rng = np.random.default_rng(1)
    inputs = [{"ts": rng.integers(0, 50, 10_000), "v": np.arange(10_000)} for _ in range(3)]
    in_order = [{n: c[np.argsort(one["ts"], kind="stable")] for n, c in one.items()} for one in inputs]
    with pytest.raises(ps.DisorderError, match="sort=True"):
        ps.aggregate(query, inputs)
    for parts in (
        inputs,
        [[{n: c[:99] for n, c in one.items()}, {n: c[99:] for n, c in one.items()}] for one in inputs],
    ):
        assert ps.aggregate(query, parts, sort=True) == ps.aggregate(query, in_order)


def test_sort_takes_batches_of_several_layouts():
    text = pa.array(["b", "a"])
    parts = [{"ts": [5, 4], "k": text}, {"ts": [3, 2], "k": text.dictionary_encode()}, {"ts": [1], "k": [None]}]
    query = ps.Query(ps.Window(10), None, {"first": ps.first("k"), "last": ps.last("k"), "n": ps.count()})
    assert ps.aggregate(query, [parts], sort=True).to_pylist() == [{"ts": 0, "first": "a", "last": "b", "n": 5}]


def test_sort_names_the_row_of_a_null_timestamp():
    query = ps.Query(ps.Window(10), None, {"n": ps.count()})
    with pytest.raises(ps.SchemaError, match="input 0: row 2: timestamp 'ts' is null"):
        ps.aggregate(query, [[{"ts": [3]}, {"ts": [2, None, 1]}]], sort=True)


def test_sort_of_nothing():
    assert ps.aggregate(QUERY, [[], FLAT.slice(0, 0), FLAT], sort=True).to_pylist() == EXPECTED


# ---- what is left out, and what is made of it ----


@pytest.mark.parametrize("make", [ds.dataset, lambda t: pl.from_arrow(t).lazy(), lambda t: t, lambda t: t.to_pylist()])
def test_a_missing_column_lists_all_there_are(make, tmp_path):
    """Also of what is pruned to the columns that a query needs."""
    table = FLAT.rename_columns(["ts", "k", "vv", "w"])
    said = "input 0: .*column 'v' is missing; there are 'ts', 'k', 'vv', 'w'; did you mean 'vv'?"
    pq.write_table(table, tmp_path / "a.parquet")
    for source in (make(table), tmp_path / "a.parquet", [[tmp_path / "a.parquet"]]):
        for sort in (False, True):
            with pytest.raises(ps.SchemaError, match=said):
                ps.aggregate(QUERY, source, sort=sort)


def test_files_in_a_list_of_their_own_are_one_input(tmp_path):
    for i in range(3):
        pq.write_table(FLAT.slice(i, 1), tmp_path / f"{i}.parquet")
    query = ps.Query(ps.Window(100), None, {"first": ps.first("v"), "last": ps.last("v")})
    paths = [str(tmp_path / f"{i}.parquet") for i in range(3)]
    assert ps.aggregate(query, [paths]).to_pylist() == [{"ts": 0, "first": 0.5, "last": 4.0}]
    with pytest.raises(ps.DisorderError, match="input 0, row 1: timestamp 2 is below 11"):
        ps.aggregate(query, [paths[::-1]])


def test_dates_are_midnights(tmp_path):
    query = ps.Query(ps.Window("2d"), None, {"n": ps.count()})
    days = pd.date_range("2024-01-01", periods=4).date.tolist()
    (tmp_path / "a.csv").write_text("ts\n" + "\n".join(map(str, days)) + "\n")
    sources = [{"ts": days}, pl.DataFrame({"ts": days}), tmp_path / "a.csv", [{"ts": day} for day in days]]
    for source in [*sources, {"ts": pa.array(days, pa.date64())}]:
        result = ps.aggregate(query, source)
        assert [str(ts)[:10] for ts in result["ts"].to_pylist()] == ["2023-12-31", "2024-01-02", "2024-01-04"]
        assert result["n"].to_pylist() == [1, 2, 1]
    with ps.Operator(query, 1, pa.schema([("ts", pa.timestamp("s"))])) as op:
        op.add(0, {"ts": days})
        op.close(0)
        assert pa.Table.from_batches(list(op))["n"].to_pylist() == [1, 2, 1]


def test_polars_objects_are_refused_where_they_are_needed():
    """Polars hands over their addresses as bytes."""
    frame = pl.DataFrame({"ts": [1], "k": ["a"], "v": [1.0], "w": [2], "o": pl.Series([object()], dtype=pl.Object)})
    assert ps.aggregate(QUERY, frame)["n"].to_pylist() == [1]
    query = ps.Query(ps.Window(10), "o", {"n": ps.count()})
    for source in (frame, [iter([frame])]):
        with pytest.raises(ps.SchemaError, match="input 0: column 'o' holds Python objects"):
            ps.aggregate(query, source)
    schema = pa.schema([("ts", pa.int64()), ("o", pa.binary(8))])
    with (
        ps.Operator(query, 1, schema) as op,
        pytest.raises(ps.SchemaError, match="input 0: column 'o' holds Python objects"),
    ):
        op.add(0, frame)
