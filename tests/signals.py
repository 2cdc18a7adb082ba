"""A program: real signals at random moments while rows are read, added, saved or aggregated; prints what was lost.

python signals.py read|snapshot|add|aggregate ROUNDS
"""

from __future__ import annotations

import gc
import itertools
import random
import signal
import sys
import threading
import time

import pyarrow as pa

import pystream as ps
from pystream import _native

SCHEMA = pa.schema([("ts", pa.int64())])
QUERY = ps.Query(ps.Window(1), None, {"n": ps.count()})
BATCHES, ROWS = 40, 5


def batch(number: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"ts": list(range(number * ROWS, (number + 1) * ROWS))})


def feed(op: ps.Operator) -> None:
    for i in range(BATCHES):
        op.add(0, batch(i))
    op.close(0)


def within(seconds: float, call) -> bool:
    """Call while a signal is on its way; whether it came."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)  # may come at once: on a loaded machine it does
        call()
        signal.setitimer(signal.ITIMER_REAL, 0)
        time.sleep(0)  # what came at the last moment is raised here at the latest
    except KeyboardInterrupt:
        return True
    return False


def read(rng: random.Random) -> tuple[bool, list[int]]:
    with ps.Operator(QUERY, 1, SCHEMA) as op:
        feeder = threading.Thread(target=feed, args=(op,))
        feeder.start()
        got: list[pa.RecordBatch] = []

        def reading():
            for one in op:
                got.append(one)  # noqa: PERF402 - a list that is made by one call would be lost with it

        hit = within(rng.uniform(0.0001, 0.004), reading)
        reading()
        feeder.join()
    return hit, [ts for one in got for ts in one["ts"].to_pylist()]


def snapshot(rng: random.Random) -> tuple[bool, list[int]]:
    with ps.Operator(QUERY, 1, SCHEMA) as op:
        op.add(0, batch(0))
        hit = within(rng.uniform(0.00005, 0.001), lambda: [op.snapshot() for _ in range(3)])
        for i in range(1, BATCHES):
            op.add(0, batch(i), timeout=60)
        with ps.Operator.restore(QUERY, op.snapshot()) as other:
            op.close(0)
            other.close(0)
            rows, again = ([ts for one in each for ts in one["ts"].to_pylist()] for each in (op, other))
            assert rows == again
            return hit, rows


def add(rng: random.Random) -> tuple[bool, list[int]]:
    with ps.Operator(QUERY, 1, SCHEMA) as op:
        numbers = itertools.count()

        def adding():
            for i in numbers:
                if i >= BATCHES:
                    return
                op.add(0, batch(i))

        hit = within(rng.uniform(0.00005, 0.002), adding)
        taken = op.stats()["tuples_in"]
        assert taken % ROWS == 0
        for i in range(taken // ROWS, BATCHES):
            op.add(0, batch(i))
        op.close(0)
        return hit, [ts for one in op for ts in one["ts"].to_pylist()]


def aggregate(rng: random.Random) -> tuple[bool, list[int]]:
    got: list[pa.Table] = []
    whole = [batch(i) for i in range(BATCHES)]
    hit = within(rng.uniform(0.0001, 0.004), lambda: got.append(ps.aggregate(QUERY, [iter(whole)])))
    if not got:
        got.append(ps.aggregate(QUERY, [iter(whole)]))
    return hit, got[-1]["ts"].to_pylist()


def main(what: str, rounds: int) -> None:
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    rng, hits, wrong = random.Random(1), 0, 0
    for _ in range(rounds):
        hit, rows = {"read": read, "snapshot": snapshot, "add": add, "aggregate": aggregate}[what](rng)
        hits += hit
        wrong += rows != list(range(BATCHES * ROWS))
    while threading.active_count() > 1:
        time.sleep(0.001)
    gc.collect()
    times = "interrupted" if hits else "never interrupted"
    sys.stdout.write(f"{times} {wrong} wrong, {_native.memory_live()} left; {hits} of {rounds}\n")


main(sys.argv[1], int(sys.argv[2]))
