"""W-Hive: against a plain model and aggregate(), under Python threads, out of memory, with wrong input."""

from __future__ import annotations

import itertools
import math
import random
import re
import struct
from fractions import Fraction
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule
from producers import ProducerMachine
from threads import run_together, until_ended

import pystream as ps
from pystream import _native

FOREVER = (1 << 63) - 1
FUNCTIONS = {"count": ps.count(), **{f.__name__: f("value") for f in (ps.sum, ps.avg, ps.min, ps.max)}}

pytestmark = pytest.mark.usefixtures("nothing_left")

SIZES = st.one_of(st.integers(1, 12), st.just(FOREVER))
KEYS = st.one_of(st.integers(-2, 2), st.sampled_from(["", "a", "ab", "\0", None, (1, "a"), (1, None), (1 << 80,)]))
INTEGERS = st.one_of(st.integers(-9, 9), st.integers(-(1 << 40), 1 << 40))
REALS = st.one_of(st.floats(), st.sampled_from([0.0, -0.0, 1e300, -1e300, 5e-324, math.inf, math.nan]))


# ---- what a window's values give, in plain Python ----


def nan_last(x: float) -> tuple[bool, float, bool]:
    return math.isnan(x), 0.0 if math.isnan(x) else x, math.copysign(1, x) > 0


def exact_sum(values: list[float], n: int = 1) -> float:
    """The sum of floats divided by n, rounded once."""
    special = [v for v in values if not math.isfinite(v)]
    if special:
        return sum(special)
    exact = sum(map(Fraction, values), Fraction(0)) / n
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def average(values: list[float]) -> float:
    n = len(values)
    return exact_sum(values, n) if isinstance(values[0], float) else float(Fraction(sum(values), n))


def result_of(function: str, values: list[float | None]) -> float | None:
    if function == "count":
        return len(values)
    given = [v for v in values if v is not None]
    if any(isinstance(v, float) for v in given):
        given = [float(v) for v in given]
    if not given:
        return None
    if function == "sum":
        return exact_sum(given) if isinstance(given[0], float) else sum(given)
    if function == "avg":
        return average(given)
    return (min if function == "min" else max)(given, key=nan_last)


def bits(x: object) -> object:
    """Equal only if nothing tells the two apart, but that there is one NaN."""
    if isinstance(x, float):
        return "nan" if math.isnan(x) else struct.pack("<d", x)
    if isinstance(x, dict):
        return {key: bits(value) for key, value in x.items()}
    return tuple(map(bits, x)) if isinstance(x, tuple) else x


class Model:
    """The contract: which winset comes next, and what is in it."""

    def __init__(self, size: int, advance: int, function: str, threads: int) -> None:
        self.size, self.advance, self.function = size, advance, function
        self.latest = [-1] * threads
        self.closed = [False] * threads
        self.open: dict[int, dict] = {}  # start -> key -> values

    def starts(self, ts: int) -> list[int]:
        first = 0 if ts < self.size else (ts - self.size) // self.advance + 1
        return [n * self.advance for n in range(first, ts // self.advance + 1)]

    def update(self, ts: int, key: object, value: float | None, thread: int) -> None:
        self.latest[thread] = ts
        for start in self.starts(ts):
            self.open.setdefault(start, {}).setdefault(key, []).append(value)

    def is_complete(self, start: int) -> bool:
        return all(c or t >= start + self.size for t, c in zip(self.latest, self.closed, strict=True))

    def next(self) -> tuple[int, dict] | None:
        start = min(self.open, default=None)
        if start is None or not self.is_complete(start):
            return None
        return start, {key: result_of(self.function, values) for key, values in self.open.pop(start).items()}


class Machine(ProducerMachine):
    @initialize(
        size=SIZES,
        advance=SIZES,
        function=st.sampled_from(list(FUNCTIONS)),
        threads=st.integers(1, 3),
        values=st.sampled_from([INTEGERS, REALS, st.one_of(INTEGERS, REALS, st.none())]),
    )
    def begin(self, size, advance, function, threads, values):
        hive = ps.WHive(ps.Window(size, advance), FUNCTIONS[function], threads)
        self.begin_with(hive, Model(size, advance, function, threads))
        self.values = values

    @precondition(lambda self: not all(self.model.closed))
    @rule(data=st.data(), step=st.integers(0, 15), key=KEYS)
    def update(self, data, step, key):
        t = self.pick_open(data)
        ts, value = max(self.model.latest[t], 0) + step, data.draw(self.values)
        self.structure.update_windows(ts, key, value, t)
        self.model.update(ts, key, value, t)

    @precondition(lambda self: not all(self.model.closed))
    @rule(data=st.data(), steps=st.lists(st.sampled_from([0, 0, 1, 3, 40]), max_size=20))
    def update_batch(self, data, steps):
        t = self.pick_open(data)
        times = list(itertools.accumulate(steps, initial=max(self.model.latest[t], 0)))[1:]
        keys = [data.draw(KEYS) for _ in times]
        values = [data.draw(self.values) for _ in times]
        self.structure.update_windows_batch(times, keys, values, t)
        for row in zip(times, keys, values, strict=True):
            self.model.update(*row, t)

    @rule(data=st.data(), back=st.integers(1, 5))
    def update_too_low(self, data, back):
        t = self.pick(data, self.model.latest)
        with pytest.raises(ps.ClosedError if self.model.closed[t] else ps.DisorderError):
            self.structure.update_windows(self.model.latest[t] - back, "a", 1, t)

    @rule()
    def get_next_winset(self):
        expected = self.model.next()
        assert bits(self.structure.get_next_winset()) == bits(expected)
        assert self.structure.finished() == (expected is None and all(self.model.closed))

    @rule()
    def position(self):
        position = self.structure.position()
        reached = [FOREVER if c else max(t, 0) for t, c in zip(self.model.latest, self.model.closed, strict=True)]
        first = min(reached)
        if first == FOREVER:
            assert position == FOREVER
        else:
            before = 0 if first < self.model.size else (first - self.model.size) // self.model.advance + 1
            assert position == min(before * self.model.advance, FOREVER)

    def teardown(self):
        if hasattr(self, "structure"):
            while (expected := self.model.next()) is not None:
                assert bits(self.structure.get_next_winset()) == bits(expected)
            assert self.structure.get_next_winset() is None


TestAgainstTheModel = Machine.TestCase
TestAgainstTheModel.settings = settings(stateful_step_count=30)


# ---- the contract, case by case ----


def drain(hive) -> list[tuple[int, dict]]:
    return list(iter(hive.get_next_winset, None))


def test_a_thread_that_has_not_begun_holds_everything_back():
    hive = ps.WHive(ps.Window(2), ps.count(), 2)
    hive.update_windows(0, "a", None, 0)
    hive.update_windows(100, "a", None, 0)
    assert hive.get_next_winset() is None
    hive.update_windows(1, "b", None, 1)
    assert hive.get_next_winset() is None
    hive.heartbeat(1, 2)
    assert hive.get_next_winset() == (0, {"a": 1, "b": 1})
    assert hive.get_next_winset() is None


def test_a_complete_winset_does_not_wait_for_a_tuple_in_a_later_window():
    hive = ps.WHive(ps.Window(2, 10), ps.count(), 1)
    hive.update_windows(1, "a", None, 0)
    hive.update_windows(5, "a", None, 0)  # between two windows
    assert hive.get_next_winset() == (0, {"a": 1})
    hive.update_windows(10, "a", None, 0)
    hive.heartbeat(0, 11)
    assert hive.get_next_winset() is None
    hive.heartbeat(0, 12)
    assert hive.get_next_winset() == (10, {"a": 1})


def test_a_winset_behind_the_first_comes_in_order():
    hive = ps.WHive(ps.Window(10), ps.sum("value"), 2)
    hive.update_windows(25, "a", 4, 1)
    hive.update_windows(5, "a", 1, 0)
    hive.update_windows(15, "a", 2, 0)
    hive.update_windows(29, "a", 8, 0)
    for t in (0, 1):
        hive.close(t)
    assert drain(hive) == [(0, {"a": 1}), (10, {"a": 2}), (20, {"a": 12})]
    assert hive.finished()


@pytest.mark.parametrize(
    ("size", "advance"), [(1, 1), (FOREVER, FOREVER), (7, FOREVER), (FOREVER, FOREVER - 3), (1, 3)]
)
def test_the_end_of_time(size, advance):
    hive = ps.WHive(ps.Window(size, advance), ps.count(), 2)
    model = Model(size, advance, "count", 2)
    for ts in (0, FOREVER - 1, FOREVER):
        hive.update_windows(ts, "a", None, 1)
        model.update(ts, "a", None, 1)
    for t in (0, 1):
        hive.close(t)
        model.closed[t] = True
    assert drain(hive) == list(iter(model.next, None))


def test_keys_come_in_order_and_as_they_were_given():
    hive = ps.WHive(ps.Window(1), ps.count(), 1)
    keys = [None, "b", (2, "a"), -5, "é", (1, None), 10**30, 3, "a", (1, "z"), "", np.int64(4)]
    hive.update_windows_batch([0] * len(keys), keys, [None] * len(keys), 0)
    hive.close(0)
    _, winset = hive.get_next_winset()
    assert list(winset) == [-5, 3, 4, 10**30, "", "a", "b", "é", (1, "z"), (1, None), (2, "a"), None]


def test_overlapping_windows_of_a_long_search():
    """Thousands of open winsets: searches use all levels, and every one of them is found again."""
    hive = ps.WHive(ps.Window(3000, 1), ps.count(), 2)
    model = Model(3000, 1, "count", 2)
    for ts, t in itertools.product((2999, 3000, 5000), (0, 1)):
        hive.update_windows(ts, "a", None, t)
        model.update(ts, "a", None, t)
    hive.close(0)
    hive.close(1)
    model.closed = [True, True]
    assert drain(hive) == list(iter(model.next, None))


def test_windows_are_found_again_wherever_searches_begin():
    """Long enough for nodes of full height, to which threads move the begin of their searches."""
    hive = ps.WHive(ps.Window(12, 1), ps.count(), 2)
    model = Model(12, 1, "count", 2)
    for ts, t in itertools.product(range(300), (0, 1, 1, 0)):
        hive.update_windows(ts, "a", None, t)
        model.update(ts, "a", None, t)
    model.closed = [True, True]
    hive.close(0)
    hive.close(1)
    assert drain(hive) == list(iter(model.next, None))


# ---- bit for bit what aggregate() gives ----


def tables(data, threads, type):
    values = st.none() | {pa.int64(): INTEGERS, pa.float64(): REALS}[type]
    rows = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 3), values), max_size=30)
    for _ in range(threads):
        each = sorted(data.draw(rows), key=lambda row: row[0])
        columns = list(zip(*each, strict=True)) or [(), (), ()]
        arrays = [pa.array(c, t) for c, t in zip(columns, (pa.int64(), pa.int64(), type), strict=True)]
        yield pa.table(arrays, names=["ts", "key", "value"])


@given(st.data(), st.integers(1, 9), st.integers(1, 9), st.sampled_from(list(FUNCTIONS)))
def test_results_are_those_of_aggregate(data, size, advance, function):
    inputs = list(tables(data, 3, data.draw(st.sampled_from([pa.int64(), pa.float64()]))))
    query = ps.Query(ps.Window(size, advance), "key", {"result": FUNCTIONS[function]})
    expected: dict[int, dict] = {}
    for row in ps.aggregate(query, inputs).to_pylist():
        expected.setdefault(row["ts"], {})[row["key"]] = row["result"]
    hive = ps.WHive(query.window, FUNCTIONS[function], 3)
    for t, table in enumerate(inputs):
        hive.update_windows_batch(*(table.column(name).combine_chunks() for name in table.column_names), t)
        hive.close(t)
    assert bits(dict(drain(hive))) == bits(expected)


def test_sums_of_integers_that_do_not_fit():
    hive = ps.WHive(ps.Window(10), ps.sum("value"), 2)
    for t in (0, 1):
        hive.update_windows(1, "large", FOREVER, t)
        hive.update_windows(11, "small", 3, t)
        hive.close(t)
    with pytest.raises(ps.SumOverflowError, match="window 0"):
        hive.get_next_winset()
    assert drain(hive) == [(10, {"small": 6})]


# ---- threads ----


def timeline(seed: int, n: int) -> list[tuple[int, int, int]]:
    dice = random.Random(seed)
    times = itertools.accumulate(dice.choices([0, 0, 1, 2], k=n))
    return [(ts, dice.randrange(6), dice.randrange(-99, 100)) for ts in times]


def feed(hive, t, rows, batches):
    if batches:
        for start in range(0, len(rows), 7):
            hive.update_windows_batch(*zip(*rows[start : start + 7], strict=True), t)
    else:
        for i, row in enumerate(rows):
            hive.update_windows(*row, t)
            if i % 5 == 0:
                hive.heartbeat(t, row[0])
    hive.close(t)


def read(hive, out):
    while not hive.finished():
        out += drain(hive)


def check_one_output(threads, tuples, window, seed):
    hive = ps.WHive(ps.Window(*window), ps.sum("value"), threads)
    rows = [timeline(seed * 10 + t, tuples) for t in range(threads)]
    out = []
    feeders = [partial(feed, hive, t, rows[t], (t + seed) % 2) for t in range(threads)]
    run_together(*feeders, partial(read, hive, out))
    model = Model(*window, "sum", threads)
    for t in range(threads):
        for row in rows[t]:
            model.update(*row, t)
    model.closed = [True] * threads
    assert out == list(iter(model.next, None))


@pytest.mark.usefixtures("many_switches")
@pytest.mark.parametrize(("rounds", "tuples"), [(25, 40), (2, 2000)])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("window", [(4, 4), (6, 2), (2, 5)])
def test_threads_give_one_output(rounds, tuples, threads, window):
    for seed in range(rounds):
        check_one_output(threads, tuples, window, seed)


@pytest.mark.usefixtures("many_switches")
def test_calls_of_one_thread_and_of_the_reader_take_turns():
    hive = ps.WHive(ps.Window(1), ps.count(), 1)
    outs = [[], []]
    feeders = [lambda f=f: [hive.update_windows(5, (f, i % 3), None, 0) for i in range(1000)] for f in range(3)]
    readers = [lambda out=out: [out.append(hive.get_next_winset()) for _ in range(500)] for out in outs]
    run_together(*feeders, *readers)
    assert set(outs[0] + outs[1]) == {None}
    hive.close(0)
    expected = {(f, k): len(range(k, 1000, 3)) for f in range(3) for k in range(3)}
    run_together(*readers)
    assert [winset for winset in outs[0] + outs[1] if winset] == [(5, expected)]


def check_ending(hive):
    run_together(
        lambda: until_ended(lambda i: hive.update_windows(i, i % 4, i / 3, 0)),
        lambda: until_ended(lambda i: hive.heartbeat(1, i)),
        lambda: until_ended(lambda _: hive.get_next_winset()),
        lambda: until_ended(lambda i: hive.end() if i == 50 else hive.position()),
    )


@pytest.mark.usefixtures("many_switches")
def test_ending_in_the_middle():
    for _ in range(20):
        check_ending(ps.WHive(ps.Window(7, 3), ps.avg("value"), 2))


# ---- memory ----


@pytest.mark.usual_sizes
@pytest.mark.parametrize("idle", ["heartbeats", "closed", "behind"])
def test_memory_stays_flat(idle):
    """An idle thread holds nothing but what it must: empty nodes, up to the next one of full height."""
    hive = ps.WHive(ps.Window(10, 5), ps.sum("value"), 3)
    hive.close(1)
    if idle == "closed":
        hive.close(2)
    most = []
    for start in range(0, 50_000, 50):
        hive.update_windows_batch(range(start, start + 50), range(50), np.ones(50), 0)
        if idle == "heartbeats":
            hive.heartbeat(2, start + 50)
        if idle == "behind":
            hive.update_windows(start, "slow", 1, 2)
        drain(hive)
        most.append(_native.memory_live())
    assert max(most[100:]) <= max(most[:100]) + 20
    assert max(most) < 300


def test_what_was_not_read_goes_with_the_hive():
    hive = ps.WHive(ps.Window(10, 1), ps.sum("value"), 2)
    for t in (0, 1):
        hive.update_windows_batch(range(100), range(100), [1e300] * 100, t)
    assert hive.get_next_winset() is not None


def failing_calls():
    """Winsets, windows, wide sums, keys; two threads in the same windows."""
    rows = [(3, "a", 1e300, 0), (4, "b", -1.5, 1), (4, "a", 2.5e-300, 1), (9, None, 7, 0), (30, "c" * 40, math.inf, 0)]
    rows += [(31, i, float(i), 1) for i in range(20)]
    rows += [(50, "i", 5, 0), (50, "i", 1 << 50, 1)]  # of which only one is wide
    return rows


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_allocation_may_fail(function, threads, failing_memory):
    """New, update and get either happen or leave everything as it was. One thread shares its windows with nobody."""
    rows = [(ts, key, value, thread % threads) for ts, key, value, thread in failing_calls()]
    model = Model(6, 2, function, threads)
    for row in rows:
        model.update(*row)
    model.closed = [True] * threads
    expected = bits(tuple(iter(model.next, None)))
    for countdown in itertools.count(1):
        failed = 0
        failing_memory(countdown)
        try:
            hive = ps.WHive(ps.Window(6, 2), FUNCTIONS[function], threads)
        except MemoryError:
            continue

        def stubborn(call, *arguments):
            nonlocal failed
            try:
                return call(*arguments)
            except MemoryError:
                failed += 1
                failing_memory(0)
                return call(*arguments)

        for row in rows:
            stubborn(hive.update_windows, *row)
        for t in range(threads):
            hive.heartbeat(t, 31)
            hive.close(t)
        out = tuple(iter(partial(stubborn, hive.get_next_winset), None))
        failing_memory(0)
        assert bits(out) == expected
        if not failed:
            break
    assert countdown > 40


def test_a_batch_says_how_many_rows_it_has_taken(failing_memory):
    hive = ps.WHive(ps.Window(1), ps.sum("value"), 1)
    columns = [list(range(200)), ["a"] * 200, [1] * 200]
    failing_memory(150)
    with pytest.raises(MemoryError) as caught:
        hive.update_windows_batch(*columns, 0)
    failing_memory(0)
    row = int(re.search(r"row (\d+)", str(caught.value))[1])
    assert 0 < row < 200
    hive.update_windows_batch(*(column[row:] for column in columns), 0)
    hive.close(0)
    assert drain(hive) == [(i, {"a": 1}) for i in range(200)]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_tuple_that_was_refused_leaves_no_window(threads, failing_memory):
    hive = ps.WHive(ps.Window(4, 2), ps.count(), threads)
    for other in range(1, threads):
        hive.close(other)
    countdown, failed = 0, True
    while failed:
        countdown += 1
        failing_memory(countdown)
        try:
            hive.update_windows(10 * countdown, countdown, None, 0)
            failed = False
        except MemoryError:
            failing_memory(0)
    hive.close(0)
    failing_memory(0)
    assert countdown > 3
    starts = [10 * countdown - 2, 10 * countdown]
    assert drain(hive) == [(start, {countdown: 1}) for start in starts]


# ---- wrong input ----


def test_disorder_names_the_thread_the_row_and_both_timestamps():
    hive = ps.WHive(ps.Window(5), ps.count(), 2)
    hive.update_windows(7, "a", 1, 1)
    with pytest.raises(ps.DisorderError, match=r"thread 1: timestamp 6 is below 7"):
        hive.update_windows(6, "a", 1, 1)
    with pytest.raises(ps.DisorderError, match=r"thread 1, row 2: timestamp 7 is below 8") as caught:
        hive.update_windows_batch([7, 8, 7], "abc", [1, 1, 1], 1)
    assert (caught.value.input, caught.value.row, caught.value.ts, caught.value.latest) == (1, 2, 7, 8)
    with pytest.raises(ps.DisorderError, match="negative"):
        hive.update_windows(-1, "a", 1, 0)
    with pytest.raises(ps.DisorderError, match="negative"):
        hive.heartbeat(0, -1)
    hive.update_windows(7, "a", 1, 1)
    for t in (0, 1):
        hive.close(t)
    assert drain(hive) == [(5, {"a": 2})]  # nothing of what was refused


def test_nothing_after_close():
    hive = ps.WHive(ps.Window(5), ps.count(), 2)
    hive.close(1)
    hive.close(1)
    for call in (partial(hive.update_windows, 1, "a", 1), partial(hive.update_windows_batch, [1], "a", [1])):
        with pytest.raises(ps.ClosedError, match="thread 1 is closed"):
            call(1)
    with pytest.raises(ps.ClosedError):
        hive.heartbeat(1, 5)
    with hive:
        pass
    for call in (hive.get_next_winset, hive.position, hive.finished, partial(hive.close, 0)):
        with pytest.raises(ps.ClosedError, match="ended"):
            call()


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((10, ps.count(), 1), TypeError),
        ((ps.Window("10s"), ps.count(), 1), ValueError),
        ((ps.Window(10), "count", 1), TypeError),
        ((ps.Window(10), ps.count, 1), TypeError),
        ((ps.Window(10), ps.first("x"), 1), ValueError),
        ((ps.Window(10), ps.last("x"), 1), ValueError),
        ((ps.Window(10), ps.udf(list), 1), ValueError),
        ((ps.Window(10), ps.count(where=pc.field("x") > 1), 1), ValueError),
        ((ps.Window(10), ps.count(), 0), ValueError),
        ((ps.Window(10), ps.count(), 1 << 20), ValueError),
        ((ps.Window(10), ps.count(), 1.5), TypeError),
    ],
)
def test_wrong_hives_are_refused(arguments, error):
    with pytest.raises(error):
        ps.WHive(*arguments)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((1.5, "a", 1, 0), TypeError),
        ((None, "a", 1, 0), TypeError),
        ((1 << 63, "a", 1, 0), ValueError),
        ((1, 1.5, 1, 0), TypeError),
        ((1, True, 1, 0), TypeError),
        ((1, ["a"], 1, 0), TypeError),
        ((1, ("a", (1,)), 1, 0), TypeError),
        ((1, "a", "1", 0), TypeError),
        ((1, "a", True, 0), TypeError),
        ((1, "a", 1j, 0), TypeError),
        ((1, "a", 1 << 63, 0), ValueError),
        ((1, "a", 1, -1), ValueError),
        ((1, "a", 1, 2), ValueError),
        ((1, "a", 1, "0"), TypeError),
    ],
)
def test_wrong_tuples_are_refused(arguments, error):
    hive = ps.WHive(ps.Window(10), ps.sum("value"), 2)
    *row, thread = arguments
    with pytest.raises(error):
        hive.update_windows(*arguments)
    with pytest.raises(error):
        hive.update_windows_batch(*([x] for x in row), thread)
    for t in (0, 1):
        hive.close(t)
    assert hive.get_next_winset() is None


def test_columns_of_different_lengths_are_refused():
    hive = ps.WHive(ps.Window(10), ps.sum("value"), 1)
    for columns in (([1], "ab", [1, 1]), ([1, 2], "a", [1, 1]), ([1, 2], "ab", [1])):
        with pytest.raises(ValueError, match="timestamps"):
            hive.update_windows_batch(*columns, 0)
    with pytest.raises(ValueError, match="dimension"):
        hive.update_windows_batch([[1, 2]], "ab", [1, 1], 0)
    hive.update_windows_batch([], [], [], 0)


def test_arrays_of_every_kind_do():
    rows = [(1, 5, 2), (2, 6, 3)]
    for make in (list, np.array, pa.array):
        hive = ps.WHive(ps.Window(10), ps.sum("value"), 1)
        hive.update_windows_batch(*(make([row[i] for row in rows]) for i in range(3)), 0)
        hive.close(0)
        assert drain(hive) == [(0, {5: 2, 6: 3})]
