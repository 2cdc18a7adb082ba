"""T-Gate: against a plain model, under Python threads, out of memory, with wrong input."""

from __future__ import annotations

import doctest
import gc
import itertools
import random
import shutil
import weakref
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from producers import ProducerMachine
from threads import run_together, until_ended
from tools import run

import pystream as ps
from pystream import _native

ROOT = Path(__file__).parent.parent
FOREVER = (1 << 63) - 1

pytestmark = pytest.mark.usefixtures("nothing_left")


class Model:
    """The contract, in plain Python: what is ready, in which order, for whom."""

    def __init__(self, inputs: int, readers: int) -> None:
        self.tuples: list[tuple[int, int, int, object]] = []  # ts, input, position, payload
        self.latest = [-1] * inputs
        self.closed = [False] * inputs
        self.had = [0] * readers

    def insert(self, ts: int, payload: object, input: int) -> None:
        self.tuples.append((ts, input, len(self.tuples), payload))
        self.latest[input] = ts

    def reach(self) -> list[tuple[float, int]]:
        return [(float("inf") if c else t, k) for k, (t, c) in enumerate(zip(self.latest, self.closed, strict=True))]

    def ready(self, reader: int) -> list[tuple[int, int, object]]:
        """What the reader has not had yet."""
        bound = min(self.reach())
        order = sorted((*t[:3], i) for i, t in enumerate(self.tuples) if t[:2] <= bound)
        return [(ts, input, self.tuples[i][3]) for ts, input, _, i in order][self.had[reader] :]

    def position(self) -> int:
        return min(FOREVER if c else max(t, 0) for t, c in zip(self.latest, self.closed, strict=True))


class Machine(ProducerMachine):
    """Calls in any order, each compared with the model. Long batches make slabs, fronts and reuse common."""

    @initialize(inputs=st.integers(1, 4), readers=st.integers(1, 3))
    def begin(self, inputs, readers):
        self.begin_with(ps.TGate(inputs, readers), Model(inputs, readers))
        self.names = itertools.count()

    @precondition(lambda self: not all(self.model.closed))
    @rule(data=st.data(), steps=st.lists(st.sampled_from([0, 0, 1, 2, 50]), min_size=1, max_size=6))
    def insert_one_by_one(self, data, steps):
        k = self.pick_open(data)
        for step in steps:
            ts, payload = max(self.model.latest[k], 0) + step, next(self.names)
            self.structure.insert_tuple(ts, payload, k)
            self.model.insert(ts, payload, k)

    @precondition(lambda self: not all(self.model.closed))
    @rule(data=st.data(), n=st.integers(0, 200), step=st.sampled_from([0, 1, 3]))
    def insert_batch(self, data, n, step):
        k = self.pick_open(data)
        times = [max(self.model.latest[k], 0) + step * i for i in range(n)]
        payloads = list(itertools.islice(self.names, n))
        self.structure.insert_tuples(np.array(times, np.int64), payloads, k)
        for ts, payload in zip(times, payloads, strict=True):
            self.model.insert(ts, payload, k)

    @rule(data=st.data(), back=st.integers(1, 5))
    def insert_too_low(self, data, back):
        k = self.pick(data, self.model.latest)
        with pytest.raises(ps.ClosedError if self.model.closed[k] else ps.DisorderError):
            self.structure.insert_tuples([self.model.latest[k] + 1, self.model.latest[k] - back], "xy", k)

    @rule(data=st.data())
    def get_one(self, data):
        r = self.pick(data, self.model.had)
        ready = self.model.ready(r)
        assert self.structure.get_next_ready_tuple(r) == (ready[0] if ready else None)
        self.model.had[r] += bool(ready)
        if not ready:
            assert self.structure.position(r) == self.model.position()
            assert self.structure.finished(r) == all(self.model.closed)

    @rule(data=st.data(), most=st.integers(1, 1000))
    def get_many(self, data, most):
        r = self.pick(data, self.model.had)
        ready = self.model.ready(r)[:most]
        assert self.structure.get_ready_tuples(most, r) == ready
        self.model.had[r] += len(ready)

    @invariant()
    def no_payload_is_kept_in_vain(self):
        for had, kept in zip(self.model.had, self.structure._parts[1], strict=True):
            assert len(kept) == len(self.model.tuples) - had

    def teardown(self):
        if hasattr(self, "structure"):
            for r, _ in enumerate(self.model.had):
                assert self.structure.get_ready_tuples(10**6, r) == self.model.ready(r)


TestAgainstTheModel = Machine.TestCase
TestAgainstTheModel.settings = settings(stateful_step_count=30)


# ---- the contract, case by case ----


def test_the_example_in_the_documentation():
    (example,) = doctest.DocTestFinder(recurse=False).find(ps.TGate, globs={"ps": ps})
    assert doctest.DocTestRunner().run(example) == (0, len(example.examples))
    assert example.examples


def test_order_and_readiness():
    gate = ps.TGate(2)
    gate.insert_tuple(4, "b", 1)
    assert gate.get_next_ready_tuple() is None  # input 0 has sent nothing
    gate.insert_tuple(4, "a", 0)
    assert gate.get_next_ready_tuple() == (4, 0, "a")
    assert gate.get_next_ready_tuple() is None  # another (4, 0) would come before (4, 1)
    gate.insert_tuple(5, "c", 0)
    assert gate.get_next_ready_tuple() == (4, 1, "b")
    assert gate.get_next_ready_tuple() is None
    assert gate.position() == 4


def test_a_tuple_at_the_end_of_time_comes_before_the_end():
    gate = ps.TGate(3)
    gate.insert_tuple(FOREVER, "last", 1)
    for k in range(3):
        gate.close(k)
    assert gate.get_ready_tuples(9) == [(FOREVER, 1, "last")]
    assert gate.get_next_ready_tuple() is None
    assert gate.finished()


def test_tuples_are_read_as_they_lie():
    fields = dict(_native.ffi.typeof("ps_t_gate_tuple").fields)
    assert [fields[name].offset for name in ("ts", "token", "input")] == [0, 8, 16]
    assert _native.ffi.sizeof("ps_t_gate_tuple") == _native.T_GATE_TUPLE.size


def test_every_reader_has_everything():
    gate = ps.TGate(1, readers=3)
    gate.insert_tuples(range(5), "abcde", 0)
    for reader in range(3):
        assert [payload for _, _, payload in gate.get_ready_tuples(9, reader)] == list("abcde")


def test_the_longest_ties_stay_in_order():
    gate = ps.TGate(2)
    for k in (1, 0):
        gate.insert_tuples(np.zeros(3000, np.int64), range(3000), k)
        gate.close(k)
    assert gate.get_ready_tuples(10**6) == [(0, k, i) for k in (0, 1) for i in range(3000)]


def test_an_idle_input_comes_back():
    """Its hints lead into memory that has been freed and used again."""
    gate = ps.TGate(3)
    gate.insert_tuple(0, "early", 1)
    gate.insert_tuple(0, "early", 2)
    for k in (1, 2):
        gate.heartbeat(k, 10_000)
    for start in range(0, 10_000, 100):
        gate.insert_tuples(np.arange(start, start + 100), range(100), 0)
        gate.get_ready_tuples(10**6)
    gate.insert_tuples(np.arange(10_000, 10_050), range(50), 1)
    gate.insert_tuples(np.arange(10_000, 10_050), range(50), 2)
    gate.heartbeat(0, 20_000)
    expected = sorted((10_000 + i, k, i) for k in (1, 2) for i in range(50))
    assert gate.get_ready_tuples(10**6) == expected[:-1]  # (10_049, 2) might follow another (10_049, 1)


@pytest.mark.usual_sizes
@pytest.mark.parametrize("idle", ["heartbeat", "closed"])
def test_memory_stays_flat(idle):
    gate = ps.TGate(4)
    gate.heartbeat(2, FOREVER)
    if idle == "closed":
        gate.close(2)
    gate.close(3)
    most = []
    for start in range(0, 100_000, 500):
        for k in (0, 1):
            gate.insert_tuples(np.arange(start, start + 500), range(500), k)
        gate.get_ready_tuples(10**6)
        most.append(_native.memory_live())
    assert max(most) < 60  # 13 slabs for 1000 tuples, spares, and the gate itself


def test_a_burst_gives_its_memory_back():
    gate = ps.TGate(1)
    before = _native.memory_live()
    gate.insert_tuples(np.arange(50_000), range(50_000), 0)
    assert _native.memory_live() - before > 300
    gate.get_ready_tuples(10**6)
    gate.get_ready_tuples(10**6)
    assert _native.memory_live() - before < 30


# ---- threads ----


def timeline(seed: int, n: int) -> list[int]:
    dice = random.Random(seed)
    return list(itertools.accumulate(dice.choices([0, 0, 1, 2], k=n)))


def feed(gate, k, times, batches):
    if batches:
        for start in range(0, len(times), 7):
            gate.insert_tuples(times[start : start + 7], range(start, min(start + 7, len(times))), k)
    else:
        for i, ts in enumerate(times):
            gate.insert_tuple(ts, i, k)
            if i % 5 == 0:
                gate.heartbeat(k, ts)
    gate.close(k)


def read(gate, reader, out, most):
    while not gate.finished(reader):
        out += gate.get_ready_tuples(most, reader)


def check_one_order(inputs, readers, tuples, seed):
    gate = ps.TGate(inputs, readers)
    times = [timeline(seed * 10 + k, tuples) for k in range(inputs)]
    outs = [[] for _ in range(readers)]
    feeders = [partial(feed, gate, k, times[k], (k + seed) % 2) for k in range(inputs)]
    run_together(*feeders, *[partial(read, gate, r, outs[r], 1 + 20 * r) for r in range(readers)])
    expected = sorted((ts, k, i) for k in range(inputs) for i, ts in enumerate(times[k]))
    assert outs == [expected] * readers


@pytest.mark.usefixtures("many_switches")
@pytest.mark.parametrize(("rounds", "tuples"), [(25, 40), (2, 3000)])
@pytest.mark.parametrize(("inputs", "readers"), [(1, 1), (3, 2)])
def test_threads_see_one_order(rounds, tuples, inputs, readers):
    for seed in range(rounds):
        check_one_order(inputs, readers, tuples, seed)


@pytest.mark.usefixtures("many_switches")
def test_calls_of_one_input_and_of_one_reader_take_turns():
    gate = ps.TGate(1)
    outs = [[], []]
    feeders = [lambda f=f: [gate.insert_tuple(5, (f, i), 0) for i in range(2000)] for f in range(3)]
    readers = [lambda out=out: [out.extend(gate.get_ready_tuples(3)) for _ in range(2000)] for out in outs]
    run_together(*feeders, *readers)
    gate.close(0)
    rest = gate.get_ready_tuples(10**6)
    payloads = sorted(payload for out in (*outs, rest) for _, _, payload in out)
    assert payloads == [(f, i) for f in range(3) for i in range(2000)]


def check_ending(gate):
    run_together(
        lambda: until_ended(lambda i: gate.insert_tuple(i, object(), 0)),
        lambda: until_ended(lambda i: gate.heartbeat(1, i)),
        lambda: until_ended(lambda _: gate.get_ready_tuples(9)),
        lambda: until_ended(lambda i: gate.end() if i == 50 else gate.position()),
    )


@pytest.mark.usefixtures("many_switches")
def test_ending_in_the_middle():
    for _ in range(20):
        check_ending(ps.TGate(2))


@pytest.fixture(scope="module", params=["-DPYSTREAM_SHAKE", "-DNDEBUG"], ids=["shaken", "at full speed"])
def stress(request, tmp_path_factory):
    """The C driver without Python and sanitizers; shaken threads give up the processor now and then (atomics.h)."""
    cc = shutil.which("cc")
    if cc is None:
        pytest.skip("no C compiler; Debian's gcc will do")
    driver = tmp_path_factory.mktemp("t_gate") / "stress"
    names = ("gates/t_gate", "gates/reclaim", "gates/slab", "gates/skip_list", "base/memory")
    core = [ROOT / "csrc" / f"{name}.c" for name in names]
    flags = [request.param, "-std=c11", "-D_GNU_SOURCE", "-O2", "-I", ROOT / "csrc", "-pthread", "-o", driver]
    run(cc, *flags, ROOT / "tests/stress/t_gate_stress.c", *core)
    return driver


@pytest.mark.parametrize("arguments", ["threads 3 2 200 56", "threads 8 1 100 28", "flat 30000"])
def test_c_threads(stress, arguments):
    run(stress, *arguments.split(), seconds=120)


@pytest.mark.deep
@pytest.mark.parametrize("arguments", ["threads 4 3 2000 28", "threads 20 2 300 14", "flat 1000000"])
def test_c_threads_for_long(stress, arguments):
    run(stress, *arguments.split(), seconds=1200)


# ---- memory ----


class Thing:
    pass


def test_a_payload_lives_until_every_reader_has_had_it():
    gate = ps.TGate(1, readers=2)
    gate.insert_tuples([1, 1], things := [Thing(), Thing()], 0)
    dead = weakref.WeakSet(things)
    del things
    gate.get_ready_tuples(2, 0)
    assert len(dead) == 2
    gate.get_next_ready_tuple(1)
    assert len(dead) == 1
    gate.get_next_ready_tuple(1)
    assert len(dead) == 0


def test_payloads_go_with_the_gate():
    alive = weakref.WeakSet()
    for end in (True, False):
        gate = ps.TGate(1)
        thing = Thing()
        thing.gate = gate  # a cycle
        alive.add(thing)
        gate.insert_tuple(1, thing, 0)
        if end:
            gate.end()
        del gate, thing
        gc.collect()
        assert len(alive) == 0


def test_a_refused_payload_is_not_kept():
    gate = ps.TGate(1)
    gate.insert_tuple(5, None, 0)
    things = [Thing(), Thing()]
    alive = weakref.WeakSet(things)
    with pytest.raises(ps.DisorderError):
        gate.insert_tuples([6, 5], things, 0)
    del things
    gc.collect()
    assert len(alive) == 0


def test_every_allocation_may_fail(failing_memory):
    """New, insert and heartbeat either happen or leave everything as it was; close always happens."""
    for countdown in itertools.count(1):
        failing_memory(countdown)
        failed = 0
        calls = [
            lambda gate: gate.insert_tuples(range(400), range(400), 0),
            lambda gate: gate.heartbeat(0, 500),
            lambda gate: [gate.insert_tuple(600 + i, i, 1) for i in range(1)],
            lambda gate: gate.insert_tuples(range(700, 1000), range(300), 0),
        ]
        try:
            gate = ps.TGate(2)
        except MemoryError:
            continue
        for call in calls:
            try:
                call(gate)
            except MemoryError:
                failed += 1
                failing_memory(0)
                call(gate)
        gate.close(0)
        gate.close(1)
        failing_memory(0)
        got = gate.get_ready_tuples(10**6)
        assert [(ts, k) for ts, k, _ in got] == [
            *((i, 0) for i in range(400)),
            (600, 1),
            *((i, 0) for i in range(700, 1000)),
        ]
        assert gate._parts[1] == [{}]
        if not failed:
            break
    assert countdown > 15


# ---- wrong input ----


def test_disorder_names_the_place():
    gate = ps.TGate(2)
    gate.insert_tuple(7, "x", 1)
    with pytest.raises(ps.DisorderError, match="input 1: timestamp 6 is below 7, the latest timestamp") as caught:
        gate.insert_tuple(6, "y", 1)
    assert (caught.value.input, caught.value.row, caught.value.ts, caught.value.latest) == (1, None, 6, 7)
    with pytest.raises(ps.DisorderError, match="input 1, row 2: timestamp 8 is below 9") as caught:
        gate.insert_tuples([7, 9, 8], "abc", 1)
    assert caught.value.row == 2
    with pytest.raises(ps.DisorderError, match="input 0: timestamp -1 is negative"):
        gate.insert_tuple(-1, "x", 0)
    with pytest.raises(ps.DisorderError, match="timestamp -5 is negative"):
        gate.heartbeat(0, -5)
    gate.close(0)
    gate.close(1)
    assert gate.get_ready_tuples(9) == [(7, 1, "x")]


def test_closed():
    gate = ps.TGate(2)
    gate.close(0)
    gate.close(0)
    for call in (lambda: gate.insert_tuple(1, None, 0), lambda: gate.heartbeat(0, 1)):
        with pytest.raises(ps.ClosedError, match="input 0 is closed"):
            call()
    with gate:
        pass
    gate.end()
    for call in (
        lambda: gate.insert_tuple(1, None, 1),
        lambda: gate.heartbeat(1, 1),
        lambda: gate.close(1),
        gate.get_next_ready_tuple,
        gate.position,
        gate.finished,
    ):
        with pytest.raises(ps.ClosedError, match="has ended"):
            call()


@pytest.mark.parametrize(
    ("error", "call"),
    [
        (ValueError, lambda: ps.TGate(0)),
        (ValueError, lambda: ps.TGate(1 << 17)),
        (ValueError, lambda: ps.TGate(1, readers=0)),
        (TypeError, lambda: ps.TGate("2")),
        (ValueError, lambda: ps.TGate(2).insert_tuple(1, None, 2)),
        (ValueError, lambda: ps.TGate(2).insert_tuple(1, None, -1)),
        (ValueError, lambda: ps.TGate(2).heartbeat(2, 1)),
        (ValueError, lambda: ps.TGate(2).close(2)),
        (ValueError, lambda: ps.TGate(2).get_next_ready_tuple(1)),
        (ValueError, lambda: ps.TGate(2).get_ready_tuples(0)),
        (ValueError, lambda: ps.TGate(2).position(-1)),
        (ValueError, lambda: ps.TGate(1).insert_tuple(1 << 63, None, 0)),
        (ValueError, lambda: ps.TGate(1).insert_tuples(np.array([1 << 63], np.uint64), [1], 0)),
        (ValueError, lambda: ps.TGate(1).insert_tuples([1, 2], [1], 0)),
        (ValueError, lambda: ps.TGate(1).insert_tuples([[1]], [1], 0)),
        (TypeError, lambda: ps.TGate(1).insert_tuples([1.5], [1], 0)),
        (TypeError, lambda: ps.TGate(1).insert_tuples([1 << 70], [1], 0)),
        (TypeError, lambda: ps.TGate(1).insert_tuple("1", None, 0)),
        (TypeError, lambda: ps.TGate(1).insert_tuple(1.0, None, 0)),
    ],
)
def test_bad_arguments(error, call):
    with pytest.raises(error):
        call()


def test_other_integers_are_integers():
    gate = ps.TGate(np.int32(1))
    gate.insert_tuple(np.int64(3), "a", np.int8(0))
    gate.insert_tuples(np.array([3, 4], np.uint8), "bc", 0)
    gate.insert_tuples(np.arange(10, 20)[::5], "de", 0)
    gate.insert_tuples([], [], 0)
    gate.close(0)
    assert gate.get_ready_tuples(9) == [(3, 0, "a"), (3, 0, "b"), (4, 0, "c"), (10, 0, "d"), (15, 0, "e")]
