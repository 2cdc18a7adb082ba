"""Windows that all threads of a W-Hive add to without a lock: csrc/aggregates/shared.h."""

from __future__ import annotations

import itertools
import math
import threading

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import pystream as ps

INPUTS = 3
#: Values of which sums leave one word, two words, the range of narrow float sums; and some that are no numbers.
INTEGERS = [0, 1, -1, 5, 2**62, -(2**62), 2**63 - 1, -(2**63), None, -7]
UNSIGNED = [0, 1, 2**64 - 1, 2**63, None, 3]
FLOATS = [1.5, -1.5, 2.0**44, -(2.0**44), 0.0, -0.0, None, 1e300, -1e300, 5e-324, -5e-324, 1e-30, -3.0]
SPECIAL = [math.inf, -math.inf, math.nan, 1.0]
COLUMNS = {
    "integer": (pa.int64(), INTEGERS),
    "unsigned": (pa.uint64(), UNSIGNED),
    "real": (pa.float64(), FLOATS),
    "huge": (pa.float64(), [2.0**44] * 40 + [-(2.0**44)] * 3),
    "deep": (pa.float64(), [-(2.0**44)] * 40 + [1.0]),
    "special": (pa.float64(), SPECIAL),
    "few": (pa.float32(), [0.1, None, -0.1]),
}
SCHEMA = pa.schema([("ts", pa.int64()), ("k", pa.string()), *((name, type) for name, (type, _) in COLUMNS.items())])
LARGE = pc.field("real") > 1


def tables(rows=120):
    """Each input has all values of each column, in windows and keys that it shares with the others."""
    made = []
    for which in range(INPUTS):
        each = range(which, rows * INPUTS, INPUTS)
        columns = {name: [values[(i // 2) % len(values)] for i in each] for name, (_, values) in COLUMNS.items()}
        made.append(pa.table({"ts": [i // 40 for i in each], "k": ["ab"[i % 2] for i in each], **columns}, SCHEMA))
    return made


def query(**aggregates):
    return ps.Query(window=ps.Window(6, 2), key="k", aggregates=aggregates)


FUNCTIONS = {
    "count": ps.count(),
    "count_large": ps.count(where=LARGE),
    "sum_unsigned_avg": ps.avg("unsigned"),
    "avg_integer": ps.avg("integer"),
    "min_integer": ps.min("integer"),
    "max_unsigned": ps.max("unsigned"),
    "sum_real": ps.sum("real"),
    "sum_large": ps.sum("real", where=LARGE),
    "avg_real": ps.avg("real"),
    "sum_huge": ps.sum("huge"),
    "sum_deep": ps.sum("deep"),
    "sum_special": ps.sum("special"),
    "min_real": ps.min("real"),
    "max_special": ps.max("special"),
    "avg_few": ps.avg("few"),
}


def identical(one, other):
    """To the bit: NaN equals itself, and 0.0 is not -0.0."""
    return one.schema == other.schema and repr(one.to_pylist()) == repr(other.to_pylist())


@pytest.mark.parametrize("name", [*FUNCTIONS, "all"])
def test_the_same_as_one_thread_to_the_bit(name):
    q = query(**(FUNCTIONS if name == "all" else {name: FUNCTIONS[name]}))
    assert identical(ps.aggregate(q, tables(), design="wiml"), ps.aggregate(q, tables(), design="mq"))


def test_one_function_that_needs_lanes_puts_all_in_lanes():
    q = query(**FUNCTIONS, spread=ps.var("few"))
    assert identical(ps.aggregate(q, tables(), design="wiml"), ps.aggregate(q, tables(), design="mq"))


@pytest.mark.parametrize("to", ["wiml", "mq"])
@pytest.mark.parametrize("by", ["wiml", "mq"])
def test_snapshots_hold_the_words(by, to):
    q, inputs = query(**FUNCTIONS), tables()
    with ps.Operator(q, INPUTS, SCHEMA, design=by) as op:
        for which, table in enumerate(inputs):
            op.add(which, table[:70])
        before = [*op.poll()]
        blob = op.snapshot()
        before += op.poll()
    with ps.Operator.restore(q, blob, design=to) as op:
        for which, table in enumerate(inputs):
            op.add(which, table[70:])
            op.close(which)
        rest = [*op]
    rows = {(r["ts"], r["k"]): r for batch in before + rest for r in batch.to_pylist()}
    whole = ps.aggregate(q, inputs, design="mq").to_pylist()
    assert repr([rows[r["ts"], r["k"]] for r in whole]) == repr(whole)
    assert len(rows) == len(whole)


def test_a_snapshot_leaves_the_words_as_they_are():
    q, inputs = query(**FUNCTIONS), tables()
    with ps.Operator(q, INPUTS, SCHEMA, design="wiml") as op:
        for which, table in enumerate(inputs):
            op.add(which, table[:70])
        blobs = [op.snapshot() for _ in range(2)]
        for which, table in enumerate(inputs):
            op.add(which, table[70:])
            op.close(which)
        assert identical(pa.Table.from_batches([*op]), ps.aggregate(q, inputs, design="mq"))
    assert len(blobs[0]) == len(blobs[1])


def test_a_snapshot_that_finds_no_memory_may_be_repeated(failing_memory):
    """Of lanes that were combined in vain, no part is combined again."""
    q = ps.Query(window=ps.Window(6), key=None, aggregates={"n": ps.count(), "spread": ps.var("x")})
    inputs = [pa.table({"ts": [0, 1], "x": [float(x), 2.0 * x]}) for x in (1, 1e300, 1e-300)]  # all but one are wide
    whole = ps.aggregate(q, inputs, design="mq")
    failed, countdown = True, 0
    while failed:
        countdown += 1
        with ps.Operator(q, INPUTS, inputs[0].schema, design="wiml") as op:
            for which, table in enumerate(inputs):
                op.add(which, table)
            failing_memory(countdown)
            try:
                op.snapshot()
                failed = False
            except MemoryError:
                failing_memory(0)
            failing_memory(0)
            for which in range(INPUTS):
                op.close(which)
            assert identical(pa.Table.from_batches([*op]), whole)
    assert countdown > 3


def test_a_sum_that_leaves_int64_is_an_error_also_in_words():
    whole = pa.table({"ts": [0, 1], "x": pa.array([2**63 - 1, 1], pa.int64())})
    q = ps.Query(window=ps.Window(2), key=None, aggregates={"s": ps.sum("x")})
    with pytest.raises(ps.SumOverflowError):
        ps.aggregate(q, [whole[:1], whole[1:]], design="wiml")
    back = pa.table({"ts": [1], "x": [-1]})  # and one that comes back to it is none
    assert ps.aggregate(q, [whole[:1], whole[1:], back], design="wiml")["s"].to_pylist() == [2**63 - 1]


@pytest.mark.parametrize("values", [[7, -3], [0.1, -1e300], [5e-324, -1.0]], ids=["integers", "reals", "rare"])
def test_threads_that_add_to_one_window_lose_nothing(values):
    threads, times, chunk = 4, 20, 250
    hive = ps.WHive(ps.Window(size=10), ps.sum("value"), threads)
    gate = threading.Barrier(threads)

    def work(thread):
        gate.wait()
        rows = [*itertools.islice(itertools.cycle(values), chunk)]
        for _ in range(times):
            hive.update_windows_batch([0] * chunk, ["k"] * chunk, rows, thread)
        hive.close(thread)

    workers = [threading.Thread(target=work, args=(t,)) for t in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    added = [*itertools.islice(itertools.cycle(values), chunk)] * (threads * times)
    exact = sum(added) if isinstance(values[0], int) else math.fsum(added)
    assert hive.get_next_winset() == (0, {"k": exact})
