"""The shards of a streaming aggregate, without Spark: any cut into micro-batches and shards gives the same rows."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Collect, canonical, cases

import pystream as ps

pytest.importorskip("pyspark.sql", reason="pip install '.[spark]'")

from pyspark import cloudpickle

from pystream._engine.plan import Plan
from pystream.spark.rows.shard_hash import shard_labels
from pystream.spark.stream.orders import pack_orders, unpacked_orders
from pystream.spark.stream.outgoing import arrived, sent
from pystream.spark.stream.parcels import Told, pack
from pystream.spark.stream.shard import Shard
from pystream.spark.stream.state import FORMAT, Layout, Saved

COUNT = ps.Query(ps.Window(10), "k", {"n": ps.count()})
FIRST = ps.Query(ps.Window(10), "k", {"f": ps.first("v"), "l": ps.last("v")})
SCHEMA = pa.schema([(name, pa.int64()) for name in ("ts", "stream", "position", "k", "v")])


class Stream:
    """A streaming aggregate: takes micro-batches, gives rows, keeps the states as Spark would."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.states: list[Saved | None] = [None] * layout.shards
        self.counts: list[dict[str, int]] = []
        self.holding: list[dict] = []

    def take(self, *partitions: list[dict], again: bool = False, orders: str = "", now: int = 0) -> list[dict]:
        """One micro-batch; `again`: as after a crash, from the states before it."""
        packed = [batch for rows in partitions for batch in pack(self.layout, [self._batch(rows)])]
        packed += pack_orders(self.layout, [{"path": "o.json", "modified": now, "content": orders.encode()}])
        parcels = [p for batch in packed for p in batch.to_pylist()]
        out, after, self.counts = [], [], []
        for shard, (label, state) in enumerate(zip(shard_labels(self.layout.shards), self.states, strict=True)):
            mine = [p for p in parcels if p["shard"] == label]
            marks = [p["marks"] for p in mine if p["marks"] is not None]
            for _ in range(2 if again else 1):
                parts = [p["rows"] for p in mine if p["rows"] is not None]
                done = Shard(self.layout, shard, state).step(parts, marks, now)
            out += [row for batch in self._arrived(done.rows, shard) for row in batch.to_pylist()]
            after.append(Saved.of_state(self.layout, shard, *done.saved.to_state(shard)))
            self.counts.append(done.counts)
            self.holding = self.holding if shard else done.holding
        self.states = after
        return out

    def finish(self) -> list[dict]:
        shards = (Shard(self.layout, i, state) for i, state in enumerate(self.states))
        return [row for shard in shards for batch in shard.finish() for row in batch.to_pylist()]

    def total(self, name: str) -> int:
        return sum(counts[name] for counts in self.counts)

    def _arrived(self, rows: list[pa.RecordBatch], shard: int) -> list[pa.RecordBatch]:
        """Results as they come out of the other end."""
        parts = pa.record_batch([pa.array([None, *sent(rows, shard)], pa.binary())], ["rows"])
        told = Plan(self.layout.query, self.layout.schema).out_schema
        untyped = any(pa.types.is_null(t) for t in told.types)  # a udf whose values tell its type, which Spark refuses
        assert untyped or all(batch.schema.types == told.types for batch in rows)
        return list(arrived([parts], rows[0].schema if untyped and rows else told))

    def _batch(self, rows: list[dict]) -> pa.RecordBatch:
        return pa.RecordBatch.from_pylist(rows, schema=self.layout.schema)


def stream(query=COUNT, shards=2, streams=None, late="error"):
    position = "position" if any(a.function in ("first", "last") for a in query.aggregates.values()) else None
    return Stream(Layout(query, SCHEMA, "stream", position, shards, streams, late == "drop"))


def row(ts, stream=0, position=0, k=1, v=0):
    return {"ts": ts, "stream": stream, "position": position, "k": k, "v": v}


def in_order(query, rows):
    return sorted(canonical(rows), key=lambda r: (r["ts"], *(repr(r[k]) for k in query.key)))


@settings(max_examples=40)
@given(case=cases(most=3), seed=st.integers(0, 2**32), batches=st.integers(1, 4), shards=st.integers(1, 3))
def test_any_cut_gives_the_same_rows(case, seed, batches, shards):
    dice = random.Random(seed)
    schema = case.schema.append(pa.field("stream", pa.int32())).append(pa.field("position", pa.int64()))
    layout = Layout(
        case.query, schema, "stream", "position", shards if case.query.key else 1, tuple(range(len(case.rows)))
    )
    whole = Stream(layout)
    cut: list[list[dict]] = [[] for _ in range(batches)]
    for i, rows in enumerate(case.rows):
        own = [{**r, "stream": i, "position": p} for p, r in enumerate(rows)]
        own.sort(key=lambda r: (r["ts"], dice.random()))  # a later micro-batch may bring the smaller position
        places = sorted(dice.randrange(batches) for _ in own)
        for place, r in zip(places, own, strict=True):
            cut[place].append(r)
    want = case.expected()
    size, got, latest = case.query.window.size, [], [-1] * len(case.rows)
    for rows in cut:
        dice.shuffle(rows)
        for r in rows:
            latest[r["stream"]] = max(latest[r["stream"]], r["ts"])
        middle = dice.randint(0, len(rows))
        if rows:
            got += whole.take(rows[:middle], rows[middle:], again=dice.random() < 0.3)
            finished = [r for r in want if r["ts"] + size <= min(latest)]
            assert in_order(case.query, got) == in_order(case.query, finished)
    if any(cut):
        assert in_order(case.query, got + whole.finish()) == in_order(case.query, want)


def test_equal_timestamps_across_micro_batches():
    """Rows with the latest timestamp wait for others like them, also for those that come before them."""
    s = stream(FIRST)
    assert s.take([row(3, position=5, v=5)]) == []
    assert s.take([row(3, position=2, v=2), row(3, position=9, v=9)]) == []
    assert s.take([row(10, position=10)]) == [{"ts": 0, "k": 1, "f": 2, "l": 9}]


def test_user_code_gets_rows_in_order():
    """With every micro-batch exactly the windows that it finishes, each with its rows in order, ties included."""
    query = ps.Query(ps.Window(6, 4), "k", {"order": ps.udf(Collect)})
    schema = SCHEMA.append(pa.field("id", pa.string()))
    s = Stream(Layout(query, schema, "stream", "position", 2, (0, 1)))
    made = [{**row(i // 3, n, -i, i % 2), "id": f"{n}.{i}"} for i in range(120) for n in (0, 1)]
    inputs = [sorted((r for r in made if r["stream"] == n), key=lambda r: (r["ts"], r["position"])) for n in (0, 1)]
    want = ps.aggregate(query, [pa.Table.from_pylist(rows, schema) for rows in inputs]).to_pylist()
    given = 0
    for i in range(0, len(made), 10):  # a timestamp has six rows: micro-batches share some
        got = s.take(made[i : i + 5], made[i + 5 : i + 10])
        frontier = min(max(r["ts"] for r in made[: i + 10] if r["stream"] == n) for n in (0, 1))
        finished = [r for r in want if r["ts"] + 6 <= frontier]
        assert in_order(query, got) == in_order(query, finished[given:])
        given = len(finished)
    assert given
    assert in_order(query, s.finish()) == in_order(query, want[given:])


def test_a_row_below_an_earlier_micro_batch():
    s = stream(streams=(0, 1))
    s.take([row(20), row(5, 1)])
    before = s.states
    with pytest.raises(
        ps.DisorderError, match="stream 0: timestamp 19 is below 20, the latest timestamp of this stream"
    ) as e:
        s.take([row(19), row(30, 1)])
    assert (e.value.input, e.value.ts, e.value.latest) == (0, 19, 20)
    assert s.states is before
    assert s.take([row(20), row(7, 1)]) == []
    with pytest.raises(ps.DisorderError, match="stream 1: timestamp -1 is negative"):
        s.take([row(-1, 1)])


def test_late_rows_are_dropped_and_counted():
    s = stream(streams=(0, 1), late="drop")
    s.take([row(20), row(5, 1)])
    assert s.take([row(19), row(4, 1), row(5, 1)], [row(25), row(3, 1, k=2)]) == []
    assert (s.total("rows_in"), s.total("rows_late")) == (5, 3)
    assert s.take([row(30, 1)]) == [{"ts": 0, "k": 1, "n": 2}]
    assert sum(state.rows_late for state in s.states) == 3
    for late in (11, 24):  # rows that came too late do not let others in
        s.take([row(late)])
        assert s.total("rows_late") == 1
    assert in_order(COUNT, s.finish()) == [{"ts": 20, "k": 1, "n": 2}, {"ts": 30, "k": 1, "n": 1}]


def test_a_silent_stream_holds_back_if_it_is_declared():
    s = stream(streams=(0, 1))
    assert s.take([row(3), row(50)]) == []
    assert {c["frontier"] for c in s.counts} == {-1}
    assert s.total("held") == 2
    assert s.take([row(12, 1)]) == [{"ts": 0, "k": 1, "n": 1}]
    with pytest.raises(ps.PystreamError, match="stream 2 is not one of the declared: 0, 1"):
        s.take([row(60, 2)])


def test_a_stream_that_appears_late():
    s = stream()
    assert s.take([row(3), row(12)]) == [{"ts": 0, "k": 1, "n": 1}]
    with pytest.raises(ps.DisorderError, match=r"stream 1: timestamp 11 is below 12, up to where .* declare `streams`"):
        s.take([row(11, 1)])
    assert s.take([row(12, 1), row(40)]) == []
    assert s.take([row(20, 1)]) == [{"ts": 10, "k": 1, "n": 2}]


def test_who_holds_back_and_since_when():
    """Those without which a window would be finished; nobody, as long as no row lies beyond the first window."""
    s = stream(streams=(0, 1, 2))
    s.take([row(3), row(9, 1)], now=1000)
    assert s.holding == []
    s.take([row(25), row(11, 1)], now=2000)
    assert s.holding == [{"stream": 2, "at": None, "since_ms": 1000}]
    s.take([row(8, 2)], now=3000)
    assert s.holding == [{"stream": 2, "at": 8, "since_ms": 3000}]
    s.take([row(26), row(12, 2)], now=4000)
    assert s.holding == [{"stream": 1, "at": 11, "since_ms": 2000}, {"stream": 2, "at": 12, "since_ms": 4000}]


def test_a_stream_is_let_go_and_taken_back():
    s = stream(streams=(0, 1))
    assert s.take([row(3), row(50)]) == []
    assert s.take(orders='{"let_go": 1}', again=True) == [{"ts": 0, "k": 1, "n": 1}]
    assert s.holding == []
    assert s.take([row(61), row(52, 1)]) == [{"ts": 50, "k": 1, "n": 2}]  # its rows count, and it holds nothing back
    with pytest.raises(ps.DisorderError, match=r"stream 1: timestamp 60 is below 61, up to where .* did not count"):
        s.take([row(60, 1)])
    assert s.take([row(80)], orders='{"take_back": 1}') == []
    assert s.holding == [{"stream": 1, "at": 52, "since_ms": 0}]
    assert s.take([row(90, 1)]) == [{"ts": 60, "k": 1, "n": 1}]


def test_late_rows_of_a_stream_that_was_let_go_are_dropped():
    s = stream(streams=(0, 1), late="drop")
    s.take([row(3), row(50)], orders='{"let_go": 1}')
    assert s.take([row(49, 1), row(50, 1)]) == []
    assert s.total("rows_late") == 1
    assert s.take([row(60)]) == [{"ts": 50, "k": 1, "n": 2}]


def test_a_promise():
    s = stream(streams=(0, 1))
    s.take([row(3), row(50)])
    assert s.take(orders='{"promise": 1, "ts": 9}') == []
    assert s.take(orders='{"promise": 1, "ts": 10}') == [{"ts": 0, "k": 1, "n": 1}]
    with pytest.raises(ps.DisorderError, match="stream 1: timestamp 9 is below 10, which was promised for this stream"):
        s.take([row(9, 1)])
    assert s.take([row(10, 1)]) == []


def test_no_stream_lags_further_behind():
    s = stream(streams=(0, 1))
    assert s.take([row(3), row(12)], orders='{"lag": 40}') == []
    assert s.take([row(50)]) == [{"ts": 0, "k": 1, "n": 1}]
    assert {c["frontier"] for c in s.counts} == {10}
    assert s.take([row(10, 1)], orders='{"lag": null}') == []
    assert s.take([row(99)]) == []


def test_idle_streams_do_not_count():
    """By the time of the micro-batches; one that never sent anything is silent since the first."""
    s = stream(streams=(0, 1, 2))
    assert s.take([row(3), row(3, 1)], now=0, orders='{"idle_after": "1s"}') == []
    assert s.take([row(12)], now=1000) == []
    assert s.take([row(13)], now=1001, again=True) == [{"ts": 0, "k": 1, "n": 2}]
    assert s.take([row(13, 1), row(22)], now=1500) == []
    assert s.holding == [{"stream": 1, "at": 13, "since_ms": 1500}]


def test_orders_in_the_order_in_which_they_were_given():
    """Whatever task read them, and in whatever order the files came."""
    s = stream()
    files = [
        {"path": "b", "modified": 1, "content": b'{"lag": 2}\n\n{"lag": 3}'},
        {"path": "a", "modified": 1, "content": b'{"lag": 4, "at": 7}'},
        {"path": "c", "modified": 0, "content": b'{"lag": 1}'},
    ]
    for cut in range(4):
        packed = [*pack_orders(s.layout, files[:cut]), *pack_orders(s.layout, files[cut:])]
        blobs = [p["marks"] for b in packed for p in b.to_pylist() if p["shard"] == shard_labels(2)[1]]
        assert unpacked_orders(blobs, 1) == [{"lag": n} for n in (1, 2, 3, 4)]


def test_orders_about_times():
    query = ps.Query(ps.Window("10s"), None, {"n": ps.count()})
    schema = SCHEMA.set(0, pa.field("ts", pa.timestamp("us", "UTC")))
    layout = Layout(query, schema, "stream", None, 1)
    text = b'{"promise": 1, "ts": "1970-01-01T01:00:01+01:00"}\n{"lag": "2m"}\n{"promise": 1, "ts": 5}'
    (batch,) = pack_orders(layout, [{"path": "a", "modified": 1, "content": text}])
    assert unpacked_orders(batch["marks"].to_pylist(), 0) == [
        {"promise": 1, "ts": 10**6},
        {"lag": 120 * 10**6},
        {"promise": 1, "ts": 5},
    ]
    with pytest.raises(ps.PystreamError, match="a time needs its zone"):
        list(pack_orders(layout, [{"path": "a", "modified": 1, "content": b'{"promise": 1, "ts": "1970-01-01"}'}]))


@pytest.mark.parametrize(
    "text",
    [
        '{"let go": 1}',
        '{"let_go": "1"}',
        '{"let_go": true}',
        '{"let_go": 1, "ts": 2}',
        '{"promise": 1}',
        '{"promise": 1, "ts": "2026-11-18T12:00:00Z"}',
        '{"lag": "1h"}',
        '{"idle_after": 10.5}',
        "[1]",
        "let go 1",
    ],
)
def test_what_is_no_order(text):
    with pytest.raises(ps.PystreamError, match=r"in/o\.json, line 2: .* is no order .*known are let_go"):
        list(pack_orders(stream().layout, [{"path": "in/o.json", "modified": 0, "content": f"\n{text}".encode()}]))


def test_the_streams_of_an_older_checkpoint():
    """Pairs of stream and latest timestamp."""
    s = stream(streams=(0, 1))
    s.take([row(3), row(12), row(5, 1)])
    s.states = [state._replace(latest="[[0, 12], [1, 5]]") for state in s.states]
    assert s.take([row(11, 1)], now=7) == [{"ts": 0, "k": 1, "n": 2}]


def test_a_stream_that_has_ended_is_left_out():
    s = stream(streams=(0, 1))
    s.take([row(3), row(3, 1)])
    assert s.take([row(50)]) == []
    s.layout = replace(s.layout, streams=(0,))
    assert s.take([row(51)]) == [{"ts": 0, "k": 1, "n": 2}]


def test_order_that_is_not_determined():
    s = stream(FIRST)
    s.take([row(3, v=1)])
    with pytest.raises(ps.SchemaError, match="two rows have the same ts=3, stream=0, position=0"):
        s.take([row(3, v=2), row(10)])
    with pytest.raises(ps.SchemaError, match="'position' is null"):
        s.take([row(3, position=None)])
    with pytest.raises(ps.SchemaError, match="'ts' is null"):
        s.take([row(None)])


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("query", ps.Query(ps.Window(20), "k", {"n": ps.count()}), "window was"),
        ("query", ps.Query(ps.Window(10), "k", {"n": ps.count(), "m": ps.max("v")}), "aggregates was"),
        ("shards", 3, "shards was 2, is 3"),
        ("schema", SCHEMA.append(pa.field("w", pa.int64())), "columns was"),
    ],
)
def test_the_checkpoint_of_another_query(name, value, what):
    s = stream()
    s.take([row(3)])
    with pytest.raises(ps.PystreamError, match=f"the checkpoint is of another query: {what}"):
        Shard(replace(s.layout, **{name: value}), 0, s.states[0])


def test_a_layout_is_the_same_on_the_executors():
    class Local(Collect):
        """Known here only, so it travels by value and may arrive under another name."""

    query = ps.Query(ps.Window(10), "k", {"order": ps.udf(Local, type=pa.string())})
    layout = Layout(query, SCHEMA, "stream", "position", 1)
    described, Local.__qualname__ = layout.description, "Local"
    assert cloudpickle.loads(cloudpickle.dumps(layout)).description == described


def test_the_layout_of_a_state():
    s = stream(FIRST)
    s.take([row(3)])
    state = s.states[0]
    assert Layout.of(FIRST, state.layout) == s.layout
    with pytest.raises(ps.PystreamError, match="another query: aggregates was"):
        Layout.of(COUNT, state.layout)


@pytest.mark.parametrize("form", [0, FORMAT - 1, FORMAT + 1])
def test_a_state_of_another_version(form):
    """Refused in words, whoever reads it: a running query, or finish."""
    s = stream(FIRST)
    s.take([row(3)])
    layout, body = s.states[0].to_state(0)
    other = json.dumps({**json.loads(layout), "format": form})
    words = f"written by another version of pystream, in format {form}; this one reads format {FORMAT}: end the query"
    for read in (lambda: Saved.of_state(s.layout, 0, other, body), lambda: Layout.of(FIRST, other)):
        with pytest.raises(ps.PystreamError, match=words):
            read()


def test_a_state_of_another_version_of_arrow():
    """It may describe the same schema in other bytes."""
    s = stream()
    s.take([row(3)])
    other = {**json.loads(s.states[0].layout), "schema": "AAAA"}
    s.states[0] = s.states[0]._replace(layout=json.dumps(other))
    assert s.take([row(10)]) == [{"ts": 0, "k": 1, "n": 1}]


def test_state_stays_small():
    """What closed windows held is gone; so is what waited."""
    s, sizes = stream(FIRST, streams=(0, 1)), []
    for ts in range(0, 4000, 100):
        rows = [row(ts + i, n, i, i % 7) for i in range(100) for n in (0, 1)]
        s.take(rows)
        sizes.append(sum(len(state.windows) + len(state.pending) for state in s.states))
    assert max(sizes) < 1.1 * sizes[1]


def test_large_partitions_are_sent_in_parts(monkeypatch):
    monkeypatch.setattr("pystream.spark.stream.parcels.HELD_BYTES", 1000)
    monkeypatch.setattr("pystream.spark.stream.parcels.GATHER_ROWS", 20)
    s = stream(FIRST)
    rows = [row(i, position=i, k=i % 3, v=i) for i in range(100)]
    batches = [s._batch(rows[i : i + 10]) for i in range(0, 100, 10)]
    parcels = [p for b in pack(s.layout, batches) for p in b.to_pylist()]
    assert len(parcels) > 2 * s.layout.shards
    told = [Told.of(p["marks"], shard_labels(2).index(p["shard"])) for p in parcels if p["marks"] is not None]
    assert sum(one.rows_in for one in told) == 100
    assert sum(one.seal.total for one in told) == sum(p["rows"] is not None for p in parcels)
    assert [one.marks.to_pylist() for one in told] == [[{"stream": 0, "least": 0, "greatest": 99}]] * s.layout.shards
    assert list(pack(s.layout, [batches[0].slice(0, 0)])) == []


@pytest.mark.parametrize("numbers", [(0, 1, 2), (7, 5, 900), (-(1 << 63), 0, (1 << 63) - 1)])
def test_marks_whatever_the_streams_are_called(numbers):
    """Near ones are counted in place, others looked up."""
    s = stream(COUNT)
    times = [(5, 0), (3, 1), (9, 0), (4, 1), (0, 2), (5, 0)]
    batch = s._batch([row(ts, numbers[n]) for ts, n in times])
    for parcel in [p for b in pack(s.layout, [batch]) for p in b.to_pylist()]:
        told = Told.of(parcel["marks"], shard_labels(2).index(parcel["shard"]))
        marks = {m["stream"]: (m["least"], m["greatest"]) for m in told.marks.to_pylist()}
        assert marks == dict(zip(numbers, [(5, 9), (3, 4), (0, 0)], strict=True))
