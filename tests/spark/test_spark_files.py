"""Aggregation of files by Spark: who reads what, what a task does with it, and the whole on a session."""

from __future__ import annotations

import os
import pickle
from itertools import accumulate, count
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

import pystream as ps
from pystream.data.sample import DataSet
from pystream.errors import PystreamError
from pystream.queries import PAPER

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pystream.spark import aggregate_files
from pystream.spark.files import file_source, file_tasks, splits
from pystream.spark.files.formats import Piece
from pystream.spark.files.listing import File, list_files
from pystream.spark.rows import phases as spark_phases
from pystream.spark.rows.needed_columns import order_columns
from pystream.spark.rows.phases import Phases
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.rows.spark_types import result_schema

pytestmark = pytest.mark.spark

TUPLES = 6_000
EC = DataSet("EC", streams=3, tuples=TUPLES, seed=5, span_s=1_200)
MIXED = ps.Query(
    ps.Window(30, 7),
    "meter",
    {
        "n": ps.count(),
        "s": ps.sum("cons"),
        "f": ps.first("cons"),
        "l": ps.last("cons", pc.field("cons") > 300),
        "m": ps.min("cons"),
        "a": ps.arg_max("cons", "meter"),  # by the key: all are equal
    },
)


def rows_of(table: pa.Table, query: ps.Query) -> list[dict]:
    return table.sort_by([(name, "ascending") for name in ("ts", *query.key)]).to_pylist()


def here(query, path, tasks, *, way, shards=3, stream="stream", position="position", **options):
    """What the tasks do, one after the other, without Spark between them."""
    order = order_columns(query, stream, position)
    source, pieces = file_source.look(query, path, order, options.get("format"), options.get("filesystem"))
    phases = Phases(query, source.schema, *(order[1:] or (None, None)))
    if way == "time":
        shared = splits.by_time(pieces, tasks, *phases.window)
        assert shared is not None
        out = [b for task in task_batches(shared) for b in file_tasks.windows(phases, source, iter([task]))]
    else:
        shared = splits.by_size(pieces, tasks)
        labels = shard_labels(shards)
        with mock.patch("pystream.spark.rows.phases.task_number", count().__next__):
            packed = [b for task in task_batches(shared) for b in phases.packed(source.rows(iter([task])), labels)]
        assert {i for b in packed for i in b.column("shard").to_pylist()} <= {*labels}
        out = [b for i in labels for b in phases.windows(b.filter(pc.field("shard") == i) for b in packed)]
    return pa.Table.from_batches(out) if out else None


def task_batches(shared):
    return [file_tasks.task_table(shared).slice(i, 1).combine_chunks().to_batches()[0] for i in range(len(shared))]


def store(folder, table, parts=4, row_group_size=100):
    folder.mkdir(parents=True, exist_ok=True)
    step = -(-len(table) // parts)
    for i in range(parts):
        pq.write_table(table.slice(i * step, step), folder / f"part-{i}.parquet", row_group_size=row_group_size)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four files in the order of time."""
    return store(tmp_path_factory.mktemp("files") / "ec", EC.block(0))


@pytest.fixture(scope="module")
def want():
    return ps.aggregate(MIXED, EC.tables()).to_pylist()


# ---- who reads what ----

PIECES = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 50)), min_size=1, max_size=12)

#: Almost in the order of time: each begins a little after the one before, or a little before it.
NEAR = st.lists(st.tuples(st.integers(-10, 20), st.integers(0, 20), st.integers(1, 50)), min_size=3, max_size=12).map(
    lambda steps: [
        (max(0, low), length, weight)
        for low, (_, length, weight) in zip(accumulate(step for step, _, _ in steps), steps, strict=True)
    ]
)


def made(spans) -> list[Piece]:
    file = File(0, "f.parquet", 1, 1)
    return [Piece(file, (i,), 1, weight, low, low + length) for i, (low, length, weight) in enumerate(spans)]


@given(PIECES, st.integers(1, 6), st.integers(1, 20), st.integers(1, 20))
def test_every_window_has_one_task_that_reads_all_of_it(spans, tasks, size, advance):
    pieces = made(spans)
    shared = splits.by_time(pieces, tasks, size, advance)
    if shared is None:
        return
    for start in range(0, 90, advance):
        (task,) = [s for s in shared if s.begin <= start < s.end]
        needed = {p for p in pieces if p.high >= start and p.low < start + size}
        assert needed <= {*task.pieces}
        assert task.begin <= start < start + size <= task.reach or task.reach == splits.FOREVER
    for task in shared:
        for part in task.parts():
            rows = [(pieces[g].low, pieces[g].high) for g in part.groups]
            assert not part.inside or all(task.begin <= low and high < task.reach for low, high in rows)
    assert sum(s.weight for s in shared) <= splits.READ_AGAIN_MAX * sum(p.weight for p in pieces)


@given(PIECES, st.integers(1, 6))
def test_every_piece_has_one_task(spans, tasks):
    pieces = made(spans)
    shared = splits.by_size(pieces, tasks)
    assert [p for s in shared for p in s.pieces] == pieces
    assert len(shared) <= tasks
    share = (sum(p.weight + 1 for p in pieces)) / tasks
    assert all(s.weight <= share + max(p.weight + 1 for p in s.pieces) for s in shared)


@given(PIECES | NEAR, st.integers(1, 60), st.booleans())
def test_parts_are_all_pieces_and_say_what_follows(spans, band, ordered):
    pieces = made(sorted(spans) if ordered else spans)
    with mock.patch.object(splits, "BAND_BYTES", band):
        parts = [*splits.Split(tuple(pieces)).parts()]
    lows = [[pieces[g].low for g in part.groups] for part in parts]
    assert sorted(g for part in parts for g in part.groups) == [*range(len(pieces))]
    for i, part in enumerate(parts):
        assert part.until <= min((low for later in lows[i + 1 :] for low in later), default=0)
        assert bool(part.until) == (i < len(parts) - 1 and min(lows[i + 1]) > 0)


def test_what_cannot_be_cut_by_time():
    apart = made([(i * 10, 9, 100) for i in range(8)])
    assert len(splits.by_time(apart, 4, 5, 5)) == 4
    assert splits.by_time(made([(0, 80, 100)] * 8), 4, 5, 5) is None  # one would read everything
    assert splits.by_time(made([(0, 80, 100)] * 8), 2, 5, 5) is None  # the same with two tasks
    assert splits.by_time(apart, 4, 60, 5) is None  # the same with windows that are as long as the data
    unknown = [*apart, Piece(apart[0].file, (8,), 1, 10)]
    assert splits.by_time(unknown, 4, 5, 5) is None
    assert len(splits.by_time(unknown, 1, 5, 5)) == 1


def test_how_many_tasks():
    pieces = made([(0, 0, splits.TASK_BYTES)])
    assert [splits.task_count(pieces * n, lambda: 2) for n in (0, 1, 2, 64, 128, 129, 257)] == [1, 1, 2, 2, 2, 4, 6]


# ---- what a task does ----


@pytest.mark.parametrize("tasks", [1, 2, 5])
@pytest.mark.parametrize("way", ["time", "size"])
def test_tasks_together_give_all_windows(way, tasks, folder, want):
    assert rows_of(here(MIXED, folder, tasks, way=way), MIXED) == want


def test_windows_come_on_the_way(folder):
    """A task does not read everything before it gives the first window."""
    source, pieces = file_source.look(MIXED, folder, ["ts", "stream", "position"], None, None)
    read = []
    seen = mock.Mock(wraps=source, ts=source.ts)
    seen.rows_of = lambda part: (read.append(part) or batch for batch in source.rows_of(part))
    with mock.patch.object(splits, "BAND_BYTES", 1):
        tasks = task_batches(splits.by_time(pieces, 1, *MIXED.window.ticks(None)))
    phases = Phases(MIXED, source.schema, "stream", "position")
    next(file_tasks.windows(phases, seen, iter(tasks)))
    assert len(read) < len(pieces) / 2


@given(st.data())
def test_any_rows_in_any_files(tmp_path_factory, data):
    """Random keys with nulls, random windows, rows in any order in any number of files."""
    size, advance = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 40))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    n = data.draw(st.integers(0, 60))
    keys = pa.array(rng.choice(["", "a", "b", "é"], n), mask=rng.random(n) < 0.2)
    ts, stream = np.sort(rng.integers(100, size=n)), rng.integers(3, size=n)
    values = pa.array(rng.integers(-9, 9, n).astype(float), mask=rng.random(n) < 0.2)
    table = pa.table([ts, stream, np.arange(n), keys, values], ["ts", "stream", "position", "k", "v"])
    query = ps.Query(
        ps.Window(size, advance),
        "k",
        {"n": ps.count(), "a": ps.avg("v"), "d": ps.std("v"), "l": ps.last("v"), "r": ps.slope("v", "ts")},
    )
    inputs = [table.filter(pc.field("stream") == i) for i in range(3)]
    kept = table.take(rng.permutation(n)) if data.draw(st.booleans()) else table
    place = store(tmp_path_factory.mktemp("any"), kept, parts=data.draw(st.integers(1, 3)), row_group_size=7)
    way = data.draw(st.sampled_from(["size", "time"]))
    tasks = data.draw(st.integers(1, 4)) if way == "size" else 1
    small = data.draw(st.integers(1, 400))
    with mock.patch.object(splits, "BAND_BYTES", small), mock.patch.object(spark_phases, "CHUNK_BYTES", small):
        out = here(query, place, tasks, way=way, shards=data.draw(st.integers(1, 4)))
    assert (rows_of(out, query) if out else []) == ps.aggregate(query, inputs).to_pylist()


@pytest.mark.parametrize("way", ["time", "size"])
def test_formats(way, tmp_path, want):
    table = EC.block(0)
    arrow, text = tmp_path / "a.arrow", tmp_path / "a.csv"
    with pa.ipc.new_file(arrow, table.schema) as writer:
        writer.write_table(table, max_chunksize=1_000)
    pa.csv.write_csv(table, text)
    tasks = 3 if way == "size" else 1
    for path in (arrow, text):
        assert rows_of(here(MIXED, path, tasks, way=way), MIXED) == want
    os.rename(text, tmp_path / "b.txt")  # noqa: PTH104
    assert rows_of(here(MIXED, tmp_path / "b.txt", tasks, way=way, format="csv"), MIXED) == want
    with pytest.raises(PystreamError, match=r"b\.txt: the ending tells no format"):
        here(MIXED, tmp_path / "b.txt", 1, way=way)


def test_folders_give_columns(tmp_path, want):
    table = EC.block(0)
    for i in range(3):
        part = table.filter(pc.field("stream") == i).drop_columns(["stream"])
        store(tmp_path / f"stream={i}", part, parts=2)
    (tmp_path / "_SUCCESS").touch()
    assert rows_of(here(MIXED, tmp_path, 3, way="size"), MIXED) == want
    assert rows_of(here(MIXED, tmp_path, 3, way="time"), MIXED) == want
    assert rows_of(here(MIXED, f"{tmp_path}/stream=*/*.parquet", 2, way="size"), MIXED) == want
    assert rows_of(here(MIXED, [f"file://{tmp_path}/stream={i}" for i in range(3)], 2, way="size"), MIXED) == want


def test_files_as_streams(tmp_path, want):
    """Rows that say neither their stream nor their position: where they lie says it."""
    for i, table in enumerate(EC.tables()):
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=100)
        with pa.ipc.new_file(tmp_path / f"{i}.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=100)
    places = {"stream": file_source.FILE, "position": file_source.ROW}
    for ending, ways in (("parquet", ("time", "size")), ("arrow", ("size",))):
        for way in ways:
            assert rows_of(here(MIXED, f"{tmp_path}/*.{ending}", 3, way=way, **places), MIXED) == want


def test_another_file_system(folder, want):
    """Paths in a file system that is given; what executors get of it goes through pickle."""
    inside = fs.SubTreeFileSystem(str(folder.parent), fs.LocalFileSystem())
    for path in ("ec", "ec/*.parquet", ["ec/part-0.parquet", "ec/part-[1-3].parquet"]):
        assert rows_of(here(MIXED, path, 2, way="size", filesystem=inside), MIXED) == want
    source, pieces = file_source.look(MIXED, "ec", order_columns(MIXED, "stream", "position"), None, inside)
    rows = pickle.loads(pickle.dumps(source)).rows(iter(task_batches(splits.by_size(pieces, 1))))  # noqa: S301
    assert sum(batch.num_rows for batch in rows) == TUPLES


def test_listing(tmp_path):
    for name in ("a/b.parquet", "a/c/d.parquet", "a/.hidden.parquet", "a/_x/e.parquet", "b/[1].parquet"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def found(*paths):
        listed = list_files([f"{tmp_path}/{p}" for p in paths])[1]
        return [os.path.relpath(f.path, tmp_path) for f in listed]

    assert found("a") == ["a/b.parquet", "a/c/d.parquet"]
    assert found("*/*.parquet") == ["a/b.parquet", "b/[1].parquet"]
    assert found("**/d.parquet", "a/b.parquet", "a/*") == ["a/b.parquet", "a/c/d.parquet"]
    assert found("b/[1].parquet") == ["b/[1].parquet"]
    with pytest.raises(PystreamError, match="nothing: no such file or folder"):
        found("nothing")
    with pytest.raises(PystreamError, match="no files"):
        found("c*/*.parquet")


def test_types_go_together(tmp_path):
    """Files of different types for one column, dictionaries, unsigned numbers, time zones."""
    zone = pa.timestamp("ms", "Europe/Berlin")
    keys = pa.array(["x", "y"]).dictionary_encode()
    one = pa.table({"t": pa.array([0, 5], zone), "k": keys, "v": pa.array([1, 2], pa.uint32())})
    keys = pa.array(["y", "x"], pa.large_string())
    values = pa.array([3, None], pa.uint8())
    two = pa.table({"t": pa.array([4_000, 5_000], pa.timestamp("us", "UTC")), "k": keys, "v": values})
    pq.write_table(one, tmp_path / "1.parquet")
    pq.write_table(two, tmp_path / "2.parquet")
    query = ps.Query(ps.Window("5ms"), "k", {"s": ps.sum("v"), "m": ps.max("v")}, ts="t")
    _, pieces = file_source.look(query, tmp_path, ["t"], None, None)
    assert [(p.low, p.high) for p in pieces] == [(None, None), (4_000, 5_000)]  # the first has milliseconds
    out = here(query, tmp_path, 2, way="size")
    assert [str(t) for t in out.schema.types] == ["timestamp[us, tz=UTC]", "string", "int64", "int64"]
    rows = [(r["ts"].microsecond, *list(r.values())[1:]) for r in rows_of(out, query)]
    assert rows == [(0, "x", 1, 1), (0, "y", 3, 3), (5_000, "x", None, None), (5_000, "y", 2, 2)]


# ---- what can go wrong ----


def test_refused(folder, tmp_path):
    pq.write_table(EC.block(0).drop_columns(["cons"]), tmp_path / "x.parquet")
    with pytest.raises(ps.SchemaError, match=r"'cons' is missing; .*x\.parquet has"):
        here(MIXED, tmp_path, 1, way="size")
    with pytest.raises(ps.SchemaError, match=r"x\.parquet: column 'cons' is missing"):
        here(MIXED, [folder, tmp_path], 1, way="size")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(PystreamError, match=r"bad\.parquet: "):
        here(MIXED, tmp_path / "bad.parquet", 1, way="size")
    with pytest.raises(ValueError, match="position"):
        here(MIXED, folder, 1, way="size", position=None)


@pytest.mark.parametrize(("change", "said"), [("gone", "is gone"), ("grown", "changed"), ("touched", "changed")])
def test_files_that_change_after_they_were_listed(change, said, tmp_path):
    store(tmp_path, EC.block(0))
    order = order_columns(MIXED, "stream", "position")
    source, pieces = file_source.look(MIXED, tmp_path, order, None, None)
    tasks = task_batches(splits.by_size(pieces, 1))
    target = tmp_path / "part-2.parquet"
    if change == "gone":
        target.unlink()
    elif change == "grown":
        pq.write_table(EC.block(0), target)
    else:
        os.utime(target, ns=(1, 1))
    with pytest.raises(PystreamError, match=rf"part-2\.parquet: the file .*{said}"):
        list(source.rows(iter(tasks)))


def test_a_file_that_changes_while_it_is_read(tmp_path):
    store(tmp_path, EC.block(0), parts=1)
    order = order_columns(MIXED, "stream", "position")
    source, pieces = file_source.look(MIXED, tmp_path, order, None, None)
    rows = source.rows(iter(task_batches(splits.by_size(pieces, 1))))
    next(rows)
    os.utime(tmp_path / "part-0.parquet", ns=(1, 1))
    with pytest.raises(PystreamError, match=r"part-0\.parquet: the file changed"):
        list(rows)


def test_damaged_pages(tmp_path):
    store(tmp_path, EC.block(0), parts=1)
    target = tmp_path / "part-0.parquet"
    order = order_columns(MIXED, "stream", "position")
    damaged = bytearray(target.read_bytes())
    damaged[4:4000] = bytes(3996)
    target.write_bytes(damaged)
    source, pieces = file_source.look(MIXED, tmp_path, order, None, None)
    with pytest.raises(PystreamError, match=r"part-0\.parquet: "):
        list(source.rows(iter(task_batches(splits.by_size(pieces, 1)))))


def test_null_timestamps(tmp_path):
    """Also where a task takes a part of the rows only: a null is in none."""
    ts = [*range(300), None, *range(301, 900)]
    pq.write_table(
        pa.table({"ts": pa.array(ts, pa.int64()), "k": [1] * 900}), tmp_path / "n.parquet", row_group_size=100
    )
    query = ps.Query(ps.Window(9), "k", {"n": ps.count()})
    for way in ("time", "size"):
        with pytest.raises(ps.SchemaError, match="timestamp 'ts' is null"):
            here(query, tmp_path, 3, way=way)


def test_gaps_between_windows(tmp_path):
    pq.write_table(pa.table({"ts": range(900), "k": [1, 2, 3] * 300}), tmp_path / "g.parquet", row_group_size=50)
    query = ps.Query(ps.Window(7, 11), "k", {"n": ps.count()})
    want = ps.aggregate(query, [pq.read_table(tmp_path / "g.parquet")]).to_pylist()
    for way, tasks in (("time", 5), ("time", 2), ("size", 5)):
        assert rows_of(here(query, tmp_path, tasks, way=way), query) == want


def test_statistics_that_lie(folder, monkeypatch):
    order = order_columns(MIXED, "stream", "position")
    source, pieces = file_source.look(MIXED, folder, order, None, None)
    tasks = task_batches(splits.by_size(pieces, 1))
    monkeypatch.setattr("pystream.spark.files.formats._Bounds.of", lambda *_: (0, 1))
    with pytest.raises(PystreamError, match=r"part-0\.parquet: rows from 0 to 99 have timestamps .* say 0 to 1"):
        list(source.rows(iter(tasks)))


def full(query, path) -> set[str]:
    """The columns of the result of which Spark is told that they have no nulls."""
    order = order_columns(query, "stream", "position")
    source, _ = file_source.look(query, path, order, None, None)
    return {f.name for f in result_schema(query, source.schema) if not f.nullable}


def test_columns_without_nulls(folder, tmp_path):
    """They are known by the statistics or the type; if one file has a null, or a condition leaves nothing over, not."""
    assert full(MIXED, folder) == {"ts", "meter", "n", "s", "f", "m", "a"}
    places = EC.block(0).schema.get_field_index("cons")
    for name, value in ("a", None), ("b", 1.0):
        cons = pa.array([1.0] * (TUPLES - 1) + [value])
        pq.write_table(EC.block(0).set_column(places, "cons", cons), tmp_path / f"{name}.parquet", row_group_size=500)
    assert full(MIXED, tmp_path) == {"ts", "meter", "n"}
    assert full(MIXED, tmp_path / "b.parquet") == {"ts", "meter", "n", "s", "f", "m", "a"}
    spread = ps.Query(ps.Window(30), "meter", {"var": ps.var("cons"), "all": ps.var("cons", ddof=0)})
    assert full(spread, tmp_path / "b.parquet") == {"ts", "meter", "all"}
    pairs = {"c": ps.covar("cons", "ts", ddof=0), "one": ps.covar("cons", "ts"), "r": ps.slope("cons", "ts")}
    assert full(ps.Query(ps.Window(30), "meter", pairs), tmp_path / "b.parquet") == {"ts", "meter", "c"}
    pq.write_table(pq.read_table(tmp_path / "b.parquet"), tmp_path / "b.parquet", write_statistics=False)
    assert full(MIXED, tmp_path / "b.parquet") <= {"ts", "meter", "n"}


def test_a_file_that_says_it_has_no_nulls(tmp_path):
    block = EC.block(0).combine_chunks().to_batches()[0]
    lying = pa.schema([f.with_nullable(False) for f in block.schema])
    encoded = pa.DictionaryArray.from_arrays(pa.array([0] * TUPLES, pa.int32()), pa.nulls(1, pa.float64()))
    for nulls in pa.nulls(TUPLES, pa.float64()), encoded:
        lies = lying.set(lying.get_field_index("cons"), pa.field("cons", nulls.type, nullable=False))
        arrays = [nulls if f.name == "cons" else block.column(f.name) for f in lies]
        with pa.ipc.new_file(tmp_path / "x.arrow", lies) as writer:
            writer.write(pa.record_batch(arrays, schema=lies))
        assert full(MIXED, tmp_path) == {"ts", "meter", "n", "s", "f", "m", "a"}
        with pytest.raises(PystreamError, match=r"x\.arrow: column 'cons' has nulls, the file says that it has none"):
            here(MIXED, tmp_path, 1, way="size")


# ---- on Spark ----


def test_shards_fill_all_partitions_on_spark(spark):
    from pyspark.sql import functions as f  # noqa: PLC0415

    for n in (1, 2, 8, 200):
        labels = shard_labels(n)
        assert len({*labels}) == n
    frame = spark.createDataFrame([(label,) for label in labels], "shard int")
    places = frame.select(f.pmod(f.hash("shard"), f.lit(n))).collect()
    assert sorted(place for (place,) in places) == list(range(n))


def collected(frame, query):
    return rows_of(frame.toArrow(), query)


def test_by_time_on_spark(spark, folder, want, monkeypatch):
    monkeypatch.setattr(splits, "SPLIT_BYTES", 40_000)
    frame = aggregate_files(spark, MIXED, folder)
    assert collected(frame, MIXED) == want
    assert frame.toArrow().schema == ps.aggregate(MIXED, EC.tables()).schema
    plan = frame._jdf.queryExecution().optimizedPlan().toString()
    assert "Exchange" not in plan
    assert "CASE" not in plan  # what hides that there are no nulls is gone when it runs
    assert frame.rdd.getNumPartitions() > 2


@pytest.mark.parametrize("odd", ["m", "N", "", "\n"])
def test_names_of_columns_on_spark(spark, tmp_path, odd):
    """Spark takes n and N for one, and others for more than a name."""
    table = pa.table({"ts": [1, 2], "a.b": [3, 4]})
    pq.write_table(table, tmp_path / "x.parquet")
    query = ps.Query(ps.Window(5), "a.b", {"n": ps.count(), odd: ps.max("a.b"), "x`y": ps.min("a.b"), "0": ps.count()})
    out = aggregate_files(spark, query, tmp_path).toArrow()
    want = ps.aggregate(query, [table])
    assert out.schema == want.schema
    assert rows_of(out, query) == want.to_pylist()


def test_by_size_on_spark(spark, folder, want, monkeypatch):
    monkeypatch.setattr(splits, "SPLIT_BYTES", 40_000)
    monkeypatch.setattr(splits, "READ_AGAIN_MAX", 0)
    assert collected(aggregate_files(spark, MIXED, str(folder)), MIXED) == want


def test_user_code_on_spark(spark, folder):
    class Order:
        def __init__(self):
            self.seen = []

        def process_tuple(self, row):
            self.seen.append(row["cons"])

        def produce_out_tuple(self):
            return repr(self.seen)

    query = ps.Query(ps.Window(100), "meter", {"u": ps.udf(Order, type=pa.string())})
    out = collected(aggregate_files(spark, query, folder), query)
    assert out == ps.aggregate(query, EC.tables()).to_pylist()


def test_a_lost_file_fails_the_job(spark, tmp_path):
    store(tmp_path, EC.block(0))
    frame = aggregate_files(spark, PAPER["k-OI"].query, tmp_path)
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(Exception, match=r"part-1\.parquet: the file is gone"):
        frame.collect()
