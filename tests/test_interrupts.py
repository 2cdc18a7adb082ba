"""An exception from outside at every point of every call: nothing lost, nothing doubled, nothing held, nothing left.

tests/interrupts.py says what the points are. A scene is what is done: `act` is interrupted, once per run, at one point;
`rest` then goes on as a caller would who has caught the exception, in another thread, so that a lock that is still held
shows; and all that came out in the end must be what comes out without an exception.
"""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import FunctionType
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pytest
from interrupts import chosen, interrupted, points_of
from streams import ALL, stream
from test_partials import ORDER, tagged
from threads import core_threads, patience

import pystream as ps
from pystream._engine import handover
from pystream._native import operator as native_operator
from pystream.partials import Combine, Fold, PackedCombine, PackedFold

SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.int64()), ("s", pa.string())])
QUERY = ps.Query(ps.Window(4, 2), "k", {"n": ps.count(), "low": ps.min("s")})
KINDS = (KeyboardInterrupt, MemoryError, TimeoutError)

pytestmark = [
    pytest.mark.usefixtures("watchdog", "nothing_left"),
    pytest.mark.filterwarnings("ignore:coroutine .* was never awaited"),  # an exception came before the await
]


@pytest.fixture
def watchdog():
    """A call that never returns ends the run, with the stacks of all threads, and does not hang it."""
    faulthandler.dump_traceback_later(600, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def batch(*ts: int) -> pa.RecordBatch:
    columns = [list(ts), [t % 3 for t in ts], [f"{t % 7}" for t in ts]]
    return pa.RecordBatch.from_arrays([pa.array(c) for c in columns], schema=SCHEMA)


BATCHES = [[batch(*range(i, i + 8)) for i in range(0, 24, 8)], [batch(*range(j, j + 6)) for j in range(0, 24, 6)]]


class Order:
    """Notes its tuples: what is processed twice, or not at all, shows."""

    def __init__(self, seen: tuple[int, ...] = ()) -> None:
        self.seen = list(seen)

    def process_tuple(self, row):
        self.seen.append(row["ts"])

    def produce_out_tuple(self):
        return ",".join(map(str, self.seen))

    def to_bytes(self):
        return self.produce_out_tuple().encode()

    @classmethod
    def from_bytes(cls, data):
        return cls(tuple(map(int, data.decode().split(","))))


USER = ps.Query(ps.Window(4, 2), "k", {"n": ps.count(), "a": ps.udf(Order), "b": ps.udf(Order, type=pa.string())})


def rows_of(batches: list[pa.RecordBatch]) -> list[dict]:
    return [row for b in batches for row in b.to_pylist()]


def expected(query: ps.Query) -> list[dict]:
    return ps.aggregate(query, BATCHES).to_pylist()


def in_time(call) -> None:
    """Call in another thread; that it does not come back is a failure."""
    errors = []

    def guard():
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - told to the test
            errors.append(error)

    thread = threading.Thread(target=guard, daemon=True)
    thread.start()
    thread.join(120)
    assert not thread.is_alive(), "a call hangs"
    for error in errors:
        raise error


# ---- scenes ----


class Reading:
    """An operator that has been given everything, with all rows finished."""

    query, design, closed = QUERY, "auto", True

    def __init__(self) -> None:
        self.op = ps.Operator(self.query, 2, SCHEMA, design=self.design)
        self.got: list[pa.RecordBatch] = []
        self.want = expected(self.query)
        self.feed()

    def feed(self) -> None:
        for i, batches in enumerate(BATCHES):
            for one in batches:
                self.op.add(i, one)
            if self.closed:
                self.op.close(i)
        for _ in patience():
            if self.is_ready():
                return

    def is_ready(self) -> bool:
        return self.op.stats()["rows_out"] == len(self.want)

    def act(self) -> None:
        for _ in range(3):
            self.got += self.op.poll()

    def rest(self) -> None:
        for one in self.op:
            self.got.append(one)
        assert rows_of(self.got) == self.want

    def end(self) -> None:
        self.op.end()


class Polling(Reading):
    pass


class PollingUser(Reading):
    query = USER


class PollingAside(Reading):
    """A snapshot has put rows aside."""

    closed = False

    def is_ready(self) -> bool:
        return self.op.stats()["rows_out"] > 4

    def act(self) -> None:
        self.op.snapshot()
        for i in range(2):
            self.op.close(i)
            self.got += self.op.poll()

    def rest(self) -> None:
        for i in range(2):
            self.op.close(i)
        super().rest()


class Iterating(Reading):
    def act(self) -> None:
        for one in self.op:
            self.got.append(one)


class IteratingUser(Iterating):
    query, design = USER, "mq"


class Tabling(Reading):
    """`read`: a table is made of the rows on their way to the caller."""

    def act(self) -> None:
        while (rows := self.op.read()) is not None:
            self.got.append(rows)


class TablingUser(Tabling):
    query = USER


class TablingAside(PollingAside):
    def act(self) -> None:
        self.op.snapshot()
        for i in range(2):
            self.op.close(i)
            self.got.append(self.op.read(timeout=0))


class AsyncIterating(Reading):
    """The last rows come while the task waits."""

    def feed(self) -> None:
        self.op.add(0, BATCHES[0][0])
        self.op.add(1, BATCHES[1][0])

    def feed_rest(self) -> None:
        time.sleep(0.002)  # as a rule the task waits by then; either way the result is the same
        for i in range(2):
            for one in BATCHES[i][1:]:
                self.op.add(i, one)
            self.op.close(i)

    def act(self) -> None:
        self.feeder = threading.Thread(target=self.feed_rest)
        self.feeder.start()
        asyncio.run(self.collect())

    async def collect(self) -> None:
        async for one in self.op:
            self.got.append(one)

    def rest(self) -> None:
        self.feeder.join()
        super().rest()


class Adding:
    """What `tuples_in` says decides which batches are added again."""

    query, design = QUERY, "auto"

    def __init__(self) -> None:
        self.op = ps.Operator(self.query, 2, SCHEMA, design=self.design)
        self.left = [(i, one) for i, batches in enumerate(BATCHES) for one in batches]

    def act(self) -> None:
        while self.left:
            self.op.add(*self.left[0])
            del self.left[0]

    def rest(self) -> None:
        total = sum(one.num_rows for batches in BATCHES for one in batches)
        missing = total - self.op.stats()["tuples_in"]
        left = sum(one.num_rows for _, one in self.left)
        if missing != left:  # the batch had been taken
            assert missing == left - self.left.pop(0)[1].num_rows
        self.act()
        self.op.close(0)
        self.op.close(1)
        assert rows_of(list(self.op)) == expected(self.query)

    def end(self) -> None:
        self.op.end()


class AddingUser(Adding):
    query = USER


class AddingFull(Adding):
    """An input without room."""

    def __init__(self) -> None:
        super().__init__()
        self.full = ps.Operator(QUERY, 2, SCHEMA, max_pending=8)
        self.full.add(0, BATCHES[0][0])

    def act(self) -> None:
        with pytest.raises(TimeoutError, match="had no room"):
            self.full.add(0, BATCHES[0][1], timeout=0.001)
        with pytest.raises(ps.BackpressureError):
            self.full.add(0, BATCHES[0][1], block=False)

    def rest(self) -> None:
        self.full.close(0)
        self.full.close(1)
        assert sum(one["n"] for one in rows_of(list(self.full))) == 2 * 8 - 2  # 0 and 1 are in one window each

    def end(self) -> None:
        super().end()
        self.full.end()


class Promising(Reading):
    """Promises are repeated."""

    closed = False

    def is_ready(self) -> bool:
        return self.op.stats()["tuples_in"] == 48

    def act(self) -> None:
        for i in range(2):
            self.op.heartbeat(i, 30)
            self.op.close(i)

    def rest(self) -> None:
        self.act_again()
        super().rest()

    def act_again(self) -> None:
        for i in range(2):
            if not self.op.engine.input_stats()[i]["closed"]:
                self.op.heartbeat(i, 30)
            self.op.close(i)


class Saving(Reading):
    """The operator goes on, and so does one from a snapshot that comes through later."""

    closed = False

    def is_ready(self) -> bool:
        return self.op.stats()["rows_out"] > 4

    def act(self) -> None:
        self.op.snapshot()

    def rest(self) -> None:
        with ps.Operator.restore(self.query, self.op.snapshot()) as other:
            for op in (self.op, other):
                op.heartbeat(0, 30)
                op.close(0)
                op.close(1)
                assert rows_of(list(op)) == self.want


class SavingUser(Saving):
    query = USER


class SavingThreads(Saving):
    design = "tuml-mc"


class Restoring(Saving):
    def __init__(self) -> None:
        super().__init__()
        self.blob = self.op.snapshot()
        self.restored: ps.Operator | None = None

    def act(self) -> None:
        self.restored = ps.Operator.restore(self.query, self.blob)

    def end(self) -> None:
        super().end()
        if self.restored is not None:
            self.restored.end()


class RestoringUser(Restoring):
    query = USER


class Aggregating:
    """The threads of an interrupted run end by themselves."""

    def __init__(self) -> None:
        self.want = expected(QUERY)

    def act(self) -> None:
        table = ps.aggregate(QUERY, [iter(BATCHES[0]), pa.Table.from_batches(BATCHES[1])])
        assert table.to_pylist() == self.want

    def rest(self) -> None:
        for _ in patience():  # a thread that was joined is still seen for a moment: no count from before is sure
            readers = sum(thread.name.startswith("pystream-input") for thread in threading.enumerate())
            if readers == core_threads() == 0:
                return
            gc.collect()

    def end(self) -> None:
        pass


class Gate:
    """Tuples that are refused for disorder have been taken."""

    def __init__(self) -> None:
        self.gate = ps.TGate(2, readers=2)
        self.left = [(i, t) for t in range(6) for i in range(2)]
        self.got: list[list] = [[], []]

    def act(self) -> None:
        for i, t in self.left:
            self.gate.insert_tuples([t, t], [(i, t, 0), (i, t, 1)], i)
        for i in range(2):
            self.gate.heartbeat(i, 9)
            self.gate.close(i)
        for reader in range(2):
            for tuple_ in self.gate.get_ready_tuples(7, reader):
                self.got[reader].append(tuple_)
            self.got[reader].append(self.gate.get_next_ready_tuple(reader))

    def rest(self) -> None:
        for i in range(2):
            self.gate.close(i)
        for reader, got in enumerate(self.got):
            if any(one is None for one in got):
                got.remove(None)
            while not self.gate.finished(reader):
                assert not got or self.gate.position(reader) >= got[-1][0]
                got.extend(self.gate.get_ready_tuples(5, reader))
            in_gate = [payload for _, _, payload in got]
            assert in_gate == sorted(set(in_gate), key=lambda p: (p[1], p[0], p[2]))
            assert len(in_gate) % 2 == 0  # both of a call, or none
        assert self.got[0] == self.got[1]
        assert self.gate._parts[1] == [{}, {}]  # no payload is left
        assert self.complete in (None, len(self.got[0]))

    complete: int | None = None

    def end(self) -> None:
        self.gate.end()


class GateReading(Gate):
    """All tuples are there before."""

    complete = 24

    def __init__(self) -> None:
        super().__init__()
        for i, t in self.left:
            self.gate.insert_tuples([t, t], [(i, t, 0), (i, t, 1)], i)
        self.left = []


class Hive:
    def __init__(self) -> None:
        self.hive = ps.WHive(ps.Window(4, 2), ps.sum("v"), threads=2)
        self.got: list = []
        self.add()

    def add(self) -> None:
        for thread in range(2):
            self.hive.update_windows_batch([1, 3, 5, 9], ["a", "b", "a", "c"], [1, 2, 2**62, 2], thread)
            self.hive.close(thread)

    def act(self) -> None:
        for _ in range(5):
            try:
                self.got.append(self.hive.get_next_winset())
            except ps.SumOverflowError as error:
                self.got.append(str(error))

    def rest(self) -> None:
        while not self.hive.finished():
            try:
                self.got.append(self.hive.get_next_winset())
            except ps.SumOverflowError as error:
                self.got.append(str(error))
        text = "window {}: a sum of integers does not fit into int64; give the values as floats"
        windows = [(0, {"a": 2, "b": 4}), text.format(2), text.format(4), (6, {"c": 4}), (8, {"c": 4})]
        assert [one for one in self.got if one is not None] == windows

    def end(self) -> None:
        self.hive.end()


class HiveAdding(Hive):
    """Each call is taken whole or not at all, and so are promises."""

    def add(self) -> None:
        pass

    def act(self) -> None:
        for thread in range(2):
            self.hive.update_windows_batch([1, 3], ["a", "b"], [1, 2], thread)
            self.hive.update_windows(7, "a", 1.5, thread)
            self.hive.heartbeat(thread, 8)
            self.hive.close(thread)

    def rest(self) -> None:
        for thread in range(2):
            self.hive.close(thread)
        sums: dict[int, dict] = {}
        while not self.hive.finished():
            winset = self.hive.get_next_winset()
            sums |= {} if winset is None else {winset[0]: winset[1]}
        first, later = sums.get(0, {}), sums.get(4, {})
        calls = first.get("a", 0)
        assert first.get("b", 0) == 2 * calls
        assert calls - 1 <= later.get("a", 0) / 1.5 <= calls


ROWS = tagged([stream(np.random.default_rng(seed), 150, 60, 3) for seed in (1, 2)])
ROW_BATCHES = ROWS.to_batches(max_chunksize=100)
WIDE = ps.Query(ps.Window(10, 4), "k", {name: ALL[name] for name in ("n", "sum_f", "first_s")})


def windows_of(partials: list[pa.RecordBatch]) -> list[dict]:
    combine = Combine(WIDE, ROWS.schema, **ORDER)
    combine.add(partials)
    return rows_of(list(combine.finish()))


class Folding:
    """The batch that was interrupted counts whole or not at all."""

    def __init__(self) -> None:
        self.fold = Fold(WIDE, ROWS.schema, **ORDER, max_bytes=1)
        self.got: list = []
        self.added = 0

    def act(self) -> None:
        for one in ROW_BATCHES:
            self.got += self.fold.add(one)
            self.added += 1
        for partials in self.fold.finish():
            self.got.append(partials)

    def rest(self) -> None:
        for partials in self.fold.finish():
            self.got.append(partials)
        assert self.windows() in [self.want(n) for n in (self.added, self.added + 1)]

    def windows(self) -> list[dict]:
        return windows_of(self.got)

    def want(self, batches: int) -> list[dict]:
        if batches not in self.wanted:
            combine = Combine(WIDE, ROWS.schema, **ORDER)
            for one in ROW_BATCHES[:batches]:
                combine.add_rows(one)
            self.wanted[batches] = rows_of(list(combine.finish()))
        return self.wanted[batches]

    wanted: ClassVar[dict[int, list[dict]]] = {}

    def end(self) -> None:
        pass


class FoldingAll(Folding):
    """Everything is given at the end."""

    def __init__(self) -> None:
        super().__init__()
        self.fold = Fold(WIDE, ROWS.schema, **ORDER)


class FoldingPacked(Folding):
    def __init__(self) -> None:
        super().__init__()
        self.fold = PackedFold(WIDE, ROWS.schema, **ORDER, max_bytes=1)

    def windows(self) -> list[dict]:
        combine = PackedCombine(WIDE, ROWS.schema, **ORDER)
        for _, parcel in self.got:
            combine.take(parcel)
        return rows_of(list(combine.finish()))


class Combining:
    def __init__(self) -> None:
        self.combine = self.made()
        self.got: list[pa.RecordBatch] = []
        self.fill()

    def made(self) -> Combine:
        return Combine(WIDE, ROWS.schema, **ORDER)

    def fill(self) -> None:
        fold = Fold(WIDE, ROWS.schema, **ORDER)
        for one in ROW_BATCHES:
            self.combine.add(fold.add(one))
        self.combine.add(fold.finish())

    def act(self) -> None:
        for ts in (20, 40):
            for one in self.combine.advance(ts):
                self.got.append(one)
        for one in self.combine.finish():
            self.got.append(one)

    def rest(self) -> None:
        for one in self.combine.finish():
            self.got.append(one)
        assert rows_of(self.got) == Folding().want(len(ROW_BATCHES))

    def end(self) -> None:
        pass


class CombiningPacked(Combining):
    def made(self) -> Combine:
        return PackedCombine(WIDE, ROWS.schema, **ORDER)

    def fill(self) -> None:
        for one in ROW_BATCHES:
            fold = PackedFold(WIDE, ROWS.schema, **ORDER)
            for _, parcel in [*fold.add(one), *fold.finish()]:
                self.combine.take(parcel)


class CombiningAdds:
    """Each batch is taken whole or not at all."""

    def __init__(self) -> None:
        self.combine = Combine(WIDE, ROWS.schema, **ORDER)
        self.partials = [list(self.folded(one)) for one in ROW_BATCHES]
        self.added = 0

    def folded(self, rows: pa.RecordBatch):
        fold = Fold(WIDE, ROWS.schema, **ORDER)
        yield from fold.add(rows)
        yield from fold.finish()

    def act(self) -> None:
        for one in self.partials:
            self.combine.add(one)
            self.added += 1

    def rest(self) -> None:
        got = rows_of(list(self.combine.finish()))
        assert got in [Folding().want(n) for n in (self.added, self.added + 1)]

    def end(self) -> None:
        pass


class CombiningParcels(CombiningAdds):
    def __init__(self) -> None:
        self.combine = PackedCombine(WIDE, ROWS.schema, **ORDER)
        self.partials = [list(self.folded(one)) for one in ROW_BATCHES]
        self.added = 0

    def folded(self, rows: pa.RecordBatch):
        fold = PackedFold(WIDE, ROWS.schema, **ORDER)
        yield from fold.add(rows)
        yield from fold.finish()

    def act(self) -> None:
        for parcels in self.partials:
            for _, parcel in parcels:
                self.combine.take(parcel)
            self.added += 1


SCENES = [
    Polling, PollingUser, PollingAside, Iterating, IteratingUser, Tabling, TablingUser, TablingAside, AsyncIterating,
    Adding, AddingUser, AddingFull, Promising, Saving, SavingUser, SavingThreads, Restoring, RestoringUser, Aggregating,
    Gate, GateReading, Hive, HiveAdding, Folding, FoldingAll, FoldingPacked, Combining, CombiningPacked, CombiningAdds,
    CombiningParcels,
]  # fmt: skip


#: Those that run without --full.
SHOWN = [Iterating, Adding, Saving, Restoring, Aggregating, GateReading, Hive, Combining]


def sweep(scene, times: int | None, kinds) -> list[str]:
    """Interrupt the scene at its points, with each of these kinds at each or, given one at a time, in turn."""
    whole = scene()
    points = list(chosen(points_of(whole.act), times))
    in_time(whole.rest)
    whole.end()
    assert len(points) > 20
    wrong = []
    for number, point in enumerate(points):
        for kind in kinds(number):
            run = scene()
            interrupted(run.act, point, kind())
            try:
                in_time(run.rest)
            except (AssertionError, ps.PystreamError, pytest.fail.Exception) as error:
                wrong.append(f"{kind.__name__} at {point}: {type(error).__name__} {str(error)[:200]}")
            run.end()
    return wrong


@pytest.mark.parametrize("scene", [pytest.param(s, marks=[] if s in SHOWN else pytest.mark.full) for s in SCENES])
def test_an_exception_at_every_place(scene):
    """At each place of the code when it is passed first and last; the kinds in turn."""
    assert sweep(scene, 1, lambda number: (KINDS[number % 3],)) == []


@pytest.mark.deep
@pytest.mark.parametrize("scene", SCENES)
def test_an_exception_at_every_point(scene):
    assert sweep(scene, None, lambda _: KINDS) == []


# ---- the sweep sees what it is for ----


def naive_take(self, bring, most=1):
    """What is lost between its call and its name."""
    out = []
    with self._lock:
        bring()
        while self._queue and (most is None or len(out) < most):
            out.append(self._queue.popleft())
    return out


def naive_put(self, results):
    """What is there twice if the call comes through and the line behind it does not."""
    self._queue.extend(results)
    self.stage = None


@pytest.mark.parametrize("scene", [Iterating, GateReading, Hive, Combining])
@pytest.mark.parametrize(("name", "naive"), [("take", naive_take), ("put", naive_put)])
def test_a_naive_hand_over_is_seen(scene, name, naive, monkeypatch):
    swept = naive.__code__.replace(co_filename=handover.__file__)  # as if it were the package's own
    monkeypatch.setattr(handover.Outbox, name, FunctionType(swept, globals(), name, naive.__defaults__))
    assert sweep(scene, 1, lambda _: (KeyboardInterrupt,)) != []


def test_a_batch_that_arrow_cannot_import_is_not_lost(monkeypatch):
    """Arrow has moved the rows in already, and fails then."""
    run = Polling()
    failures = [MemoryError("no"), MemoryError("no")]
    usual = native_operator.imported

    def failing(array, schema):
        imported = usual(array, schema)
        if failures:
            raise failures.pop()
        return imported

    monkeypatch.setattr(native_operator, "imported", failing)
    for _ in range(2):
        with pytest.raises(MemoryError):
            run.op.poll()
    run.act()
    run.rest()
    run.end()


def test_an_operator_that_was_ended_is_dropped_without_callbacks(monkeypatch):
    """An interrupt in a callback of a weak reference is swallowed, and what it was to free is not."""

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(weakref.finalize, "__call__", interrupted)
    with ps.Operator(ps.Query(ps.Window(10), None, {"n": ps.count()}), 1, [("ts", "int64")]) as op:
        op.add(0, {"ts": [1, 2]})
    del op
    gc.collect()


# ---- real signals ----


@pytest.mark.parametrize("what", ["read", "snapshot", "add", "aggregate"])
def test_real_signals_at_any_moment(what):
    """In a process of its own, which is killed if it hangs."""
    command = [sys.executable, str(Path(__file__).with_name("signals.py")), what, "100"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.startswith("interrupted 0 wrong, 0 left"), done.stdout + done.stderr
