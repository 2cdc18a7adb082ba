"""`pystream run`: the paper's queries over stored streams, from the files to the result, and what can go wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import pystream as ps
from pystream.cli import main, run_on_spark
from pystream.data import stored_streams
from pystream.data.sample import comments, smart_meters
from pystream.data.stored_streams import ParquetStreams
from pystream.operator import designs_for
from pystream.queries import PAPER

MAKERS = {"EC": smart_meters, "SC": comments}
COUNT = PAPER["k-OI"].query


def invoke(*args: object, exit_code: int = 0):
    result = CliRunner(env={"COLUMNS": "200"}).invoke(main, ["run", *map(str, args)])
    assert result.exit_code == exit_code, result.output
    assert "Traceback" not in result.output
    return result


def mixed(streams: list[pa.Table]) -> pa.Table:
    """All streams in one table, in the order of time, with the columns `stream` and `position`."""
    parts = [
        t.append_column("stream", pa.array([i] * len(t), pa.int32())).append_column("position", pa.array(range(len(t))))
        for i, t in enumerate(streams)
    ]
    return pa.concat_tables(parts).sort_by([("ts", "ascending"), ("stream", "ascending"), ("position", "ascending")])


def store_mixed(folder, streams, files=3, row_group_size=100):
    table = mixed(streams)
    step = -(-len(table) // files)
    for i in range(files):
        pq.write_table(table.slice(i * step, step), folder / f"part-{i:04}.parquet", row_group_size=row_group_size)
    return folder


def store_apart(folder, streams, row_group_size=100):
    for i, stream in enumerate(streams):
        pq.write_table(stream, folder / f"stream-{i:02}.parquet", row_group_size=row_group_size)
    return folder


@pytest.mark.parametrize("query", PAPER)
def test_every_query_in_every_design_that_allows_it(query, tmp_path):
    streams = MAKERS[PAPER[query].dataset](3, 600, seed=2, span_s=25)
    data = store_mixed(tmp_path, streams)
    expected = ps.aggregate(PAPER[query].query, streams)
    assert expected.num_rows > 100
    for design in designs_for(PAPER[query].query):
        out = tmp_path / f"{design}.arrow"
        said = invoke(query, "--data", data, "--out", out, "--design", design, "--threads", 2).output
        assert f"{query}: 600 tuples in, {expected.num_rows:,} rows out" in said
        assert pa.ipc.open_file(out).read_all() == expected


def test_a_design_that_cannot_run_the_query_refuses(tmp_path):
    data = store_apart(tmp_path, smart_meters(2, 100, seed=1))
    said = invoke("k-OS", "--data", data, "--out", tmp_path / "o.csv", "--design", "wiml", exit_code=1).stderr
    assert "tuml-sc" in said
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("store", [store_mixed, store_apart])
@pytest.mark.parametrize("ending", [".parquet", ".csv", ".arrow", ".jsonl"])
def test_layouts_and_formats(store, ending, tmp_path):
    streams = smart_meters(5, 1_000, seed=3)
    out = tmp_path / f"rows{ending}"
    out.write_text("old")
    data = tmp_path / "data"
    data.mkdir()
    refused = invoke("w-OI", "--data", store(data, streams), "--out", out, exit_code=2).stderr
    assert f"'{out}' is there already; --force overwrites it" in refused
    assert out.read_text() == "old"
    invoke("w-OI", "--data", data, "--out", out, "--force")
    expected = ps.aggregate(PAPER["w-OI"].query, streams)
    read = {
        ".parquet": pq.read_table,
        ".csv": pyarrow.csv.read_csv,
        ".arrow": lambda path: pa.ipc.open_file(path).read_all(),
        ".jsonl": pyarrow.json.read_json,
    }
    got = read[ending](out)
    assert got.cast(expected.schema) == expected
    assert not list(tmp_path.glob(".rows*"))  # the name it had while it was written
    assert out.stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    now = os.umask(0)
    os.umask(now)
    return now


def test_the_order_of_streams_is_that_of_their_numbers(tmp_path):
    """Equal timestamps count by stream, whatever lies first in the files, and gaps in the numbers do not matter."""
    rows = pa.table({"ts": [1, 1, 1], "stream": [70, 7, 0], "meter": pa.array([5, 5, 5]), "cons": [1.0, 2.0, 3.0]})
    pq.write_table(rows, tmp_path / "a.parquet")
    out = tmp_path / "o.arrow"
    invoke("k-OS", "--data", tmp_path, "--out", out)
    assert pa.ipc.open_file(out).read_all().to_pylist() == [{"ts": 0, "meter": 5, "first": 3.0}]


def test_no_rows(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(smart_meters(1, 0, seed=1)[0], data / "a.parquet")
    said = invoke("k-OI", "--data", data, "--out", tmp_path / "o.parquet").output
    assert "0 tuples in, 0 rows out" in said
    assert pq.read_schema(tmp_path / "o.parquet").names == ["ts", "meter", "count"]
    assert pq.read_schema(tmp_path / "o.parquet").field("meter").type == pa.int32()


# ---- reading ----


def test_a_row_group_is_read_once_while_streams_stay_together(tmp_path, monkeypatch):
    reads = []
    read = ParquetStreams._read
    monkeypatch.setattr(ParquetStreams, "_read", lambda self, group: reads.append(group) or read(self, group))
    source = ParquetStreams(store_mixed(tmp_path, smart_meters(4, 2_000, seed=1, span_s=2_000)), COUNT)
    assert source.rows == 2_000
    for _ in zip(*source.streams, strict=True):
        pass
    assert len(reads) == len(set(reads)) == 21  # 667 + 667 + 666 rows in groups of 100


def test_few_row_groups_are_kept_and_a_late_stream_reads_again(tmp_path):
    source = ParquetStreams(store_mixed(tmp_path, smart_meters(2, 2_000, seed=1)), COUNT)
    first, second = (pa.concat_tables(list(s)) for s in source.streams)
    assert len(source._cache) == stored_streams.GROUPS_KEPT
    assert (first.num_rows, second.num_rows) == (1000, 1000)


def test_only_the_columns_of_the_query_are_read(tmp_path):
    store_mixed(tmp_path, comments(2, 300, seed=1))
    names = {id: ParquetStreams(tmp_path, PAPER[id].query).streams for id in ("K-OI", "f-OI", "K-OS")}
    for id, extra in (("K-OI", set()), ("f-OI", {"cmt"}), ("K-OS", {"cmt"})):
        read = set(next(iter(names[id][0])).column_names)
        assert read == {"ts", "song", "position", *extra}


def test_streams_are_found_without_statistics(tmp_path):
    table = mixed(smart_meters(3, 300, seed=1))
    pq.write_table(table, tmp_path / "a.parquet", write_statistics=False)
    assert len(ParquetStreams(tmp_path, COUNT).streams) == 3


def test_an_error_in_reading_reaches_every_stream_that_waits_for_it(tmp_path, monkeypatch):
    data = store_mixed(tmp_path, smart_meters(3, 300, seed=1))
    source = ParquetStreams(data, COUNT)
    monkeypatch.setattr(ParquetStreams, "_read", lambda _self, _group: 1 / 0)
    for stream in source.streams:
        with pytest.raises(ZeroDivisionError):
            next(iter(stream))


# ---- what is wrong with the data ----


def table(**columns) -> pa.Table:
    length = len(columns["ts"])
    return pa.table({"meter": [1] * length, "cons": [1.0] * length, **columns})


@pytest.mark.parametrize(
    ("files", "message"),
    [
        (
            [table(ts=[1, 2, 9], stream=[0, 1, 0]), table(ts=[3, 8], stream=[1, 0])],
            "b.parquet, row 1: timestamp 8 is below 9, that of the row of stream 0 before it",
        ),
        (
            [table(ts=[5, 1, 4, 6, 3], stream=[0, 1, 1, 0, 1])],
            "a.parquet, row 4: timestamp 3 is below 4, that of the row of stream 1 before it",
        ),
        ([table(ts=[5, 4])], "a.parquet, row 1: timestamp 4 is below 5"),
        (
            [table(ts=[5, 5, 5], stream=[0, 0, 0], position=[3, 4, 4])],
            "a.parquet, row 2: position 4 does not come after 4, that of the row of stream 0 before it",
        ),
        (
            [table(ts=[5, 5], stream=[0, 0], position=[3, 9]), table(ts=[5], stream=[0], position=[4])],
            "b.parquet, row 0: position 4 does not come after 9",
        ),
        ([table(ts=[-1, 4])], "timestamp -1 is negative"),
        ([table(ts=pa.array([1, None, 4]))], "a.parquet, row 1: 'ts' is null"),
        ([table(ts=[1.5])], "a.parquet: column 'ts' has type double; it must be an integer"),
        ([table(ts=[1], stream=["x"])], "a.parquet: column 'stream' has type string; it must be an integer"),
        ([table(ts=[1, 2], stream=pa.array([1, None]))], "a.parquet, row 1: 'stream' is null"),
        ([table(ts=[1], stream=[1]), table(ts=[1])], "b.parquet: column 'stream' is in some files and not in others"),
        ([table(ts=[1]).drop_columns(["meter"])], "a.parquet: column 'meter' is missing"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_bad_data_is_named_by_file_and_row(files, message, tmp_path):
    for name, content in zip("abc", files, strict=False):
        pq.write_table(content, tmp_path / f"{name}.parquet", row_group_size=2)
    said = invoke("k-OI", "--data", tmp_path, "--out", tmp_path / "o.csv", exit_code=1).stderr
    assert said.startswith("Error: ")
    assert said.count("\n") == 1
    assert message in said
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.parquet", "b.parquet"][: len(files)]


def test_what_is_no_parquet_file(tmp_path):
    (tmp_path / "a.parquet").write_bytes(b"no")
    assert "a.parquet: " in invoke("k-OI", "--data", tmp_path, "--out", tmp_path / "o.csv", exit_code=1).stderr
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "_hidden.parquet").write_bytes(b"no")
    assert "no parquet files" in invoke("k-OI", "--data", tmp_path, "--out", tmp_path / "o.csv", exit_code=1).stderr


# ---- usage ----


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["k-OI", "--data", ".", "--out", "rows.txt"], "must end in one of .parquet, .csv, .arrow, .jsonl"),
        (["k-OI", "--data", ".", "--out", "rows.parquet"], "lies among the data"),
        (["k-OI", "--data", ".", "--out", "no/such/rows.csv"], "there is no folder 'no/such'"),
        (["k-OI", "--data", "no-such", "--out", "rows.csv"], "does not exist"),
        (["x-OI", "--data", ".", "--out", "rows.csv"], "'x-OI' is not one of"),
        (["k-OI"], "which files?"),
        (["k-OI", "--data", ".", "--out", "rows.csv", "--design", "fast"], "'fast' is not one of"),
        (["k-OI", "--data", ".", "--out", "rows.csv", "--engine", "flink"], "'flink' is not one of"),
    ],
)
def test_usage(args, message):
    assert message in invoke(*args, exit_code=2).stderr


def test_ctrl_c_leaves_nothing_behind(tmp_path):
    """Interrupted while rows are written: exit code 130, one line, no half-written file."""
    store_apart(tmp_path, smart_meters(2, 5_000, seed=1))
    code = """if True:
        import os, signal, sys, time
        from pystream.data import stored_streams
        from pystream.cli import main
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job inherits that it is ignored
        part = stored_streams.ParquetStreams.part
        def slow(self, group, number):
            if group.index == 20:
                os.write(2, b"started\\n")  # both inputs come here: a line of one must not cut the other's
                time.sleep(60)
            return part(self, group, number)
        stored_streams.ParquetStreams.part = slow
        main(["run", "k-OI", "--data", sys.argv[1], "--out", sys.argv[1] + "/o.csv"])
    """
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stderr.readline() == "started\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out, err.replace("started\n", "")) == (130, "", "Interrupted.\n")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["stream-00.parquet", "stream-01.parquet"]


# ---- Spark ----


def test_spark_is_an_extra(tmp_path, monkeypatch):
    store_apart(tmp_path, smart_meters(1, 10, seed=1))
    monkeypatch.setattr(run_on_spark.importlib.util, "find_spec", lambda _name: None)
    said = invoke("k-OI", "--data", tmp_path, "--out", tmp_path / "o.csv", "--engine", "spark", exit_code=1).stderr
    assert said == 'Error: --engine spark needs the extra: pip install "pystream-core[spark]"\n'
