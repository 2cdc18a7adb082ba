"""Histories of real threads, in C and in Python, judged by the linearizability checkers."""

from __future__ import annotations

import random
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest
from tools import CORE_SOURCES, CSRC, run

import pystream as ps
from pystream.verify import linearizability as lin
from pystream.verify.linearizability import (
    Call,
    SequentialQueue,
    SequentialTGate,
    SequentialWHive,
    SequentialWinSet,
    check,
)

ROOT = Path(__file__).parent.parent

WORDS = {
    "ok": None,
    "none": None,
    "true": True,
    "false": False,
}  # the others mean themselves: lin.DISORDER, lin.END ...

#: structure -> it as a sequential object and its fast checker (or None), from the shape that the recorder prints
STRUCTURES = {
    "t_gate": (SequentialTGate, lin.check_t_gate),
    "w_hive": (SequentialWHive, lin.check_w_hive),
    "win_set": (SequentialWinSet, None),
    "ms_queue": (SequentialQueue, None),
}


# ---- the recorder in C ----


@pytest.fixture(scope="module", params=["release", "shaken"])
def recorder(request, tmp_path_factory):
    """tests/stress/history.c with the core as it is, and with one that changes threads in the middle of calls."""
    folder = tmp_path_factory.mktemp(request.param)
    sources = [ROOT / "tests/stress/history.c", *CORE_SOURCES]
    flags = ["-O3", "-DNDEBUG", "-std=c11", "-D_GNU_SOURCE", "-I", CSRC]
    flags += ["-DPYSTREAM_SHAKE"] if request.param == "shaken" else []
    run("cc", *flags, *sources, "-lpthread", "-lm", "-o", folder / "history")
    return folder / "history"


def recorded(recorder, structure, threads, calls, rounds, seed):
    """Rounds as (shape, history)."""
    for text in run(recorder, structure, threads, calls, rounds, seed, seconds=200).split("#")[1:]:
        shape, *lines = text.splitlines()
        yield tuple(map(int, shape.split())), [call_of(structure, line.split()) for line in lines]


def call_of(structure, tokens):
    equal, at = tokens.index("="), tokens.index("@")
    args, result = tuple(map(int, tokens[2:equal])), tokens[equal + 1 : at]
    invoked, returned = int(tokens[at + 1]), int(tokens[at + 2])
    return Call(int(tokens[0]), tokens[1], args, answer_of(structure, result), invoked, returned)


def answer_of(structure, tokens):
    if tokens[0].isalpha():
        return WORDS.get(tokens[0], tokens[0])
    numbers = tuple(map(int, tokens))
    if structure == "w_hive":
        return numbers[0], dict(zip(numbers[1::2], numbers[2::2], strict=True))
    return numbers if structure == "t_gate" else numbers[0]


def overlaps(history) -> bool:
    return any(a.returned > b.invoked for a, b in pairwise(sorted(history, key=lambda c: c.invoked)))


def judge(structure, shape, history, *, general) -> None:
    sequential, fast = STRUCTURES[structure]
    if general or not fast:
        verdict = check(history, sequential(*shape))
        assert verdict, verdict.report()
    if fast:
        verdict = fast(history, *shape)
        assert verdict, verdict.report()


def short_rounds(recorder, structure, rounds, seed) -> Counter:
    """Judge short histories of two to four threads; count what they were like."""
    seen = Counter()
    for threads, calls in [(2, 8), (3, 6), (4, 4)]:
        for shape, history in recorded(recorder, structure, threads, calls, rounds, seed):
            judge(structure, shape, history, general=True)
            seen["overlap"] += overlaps(history)
            seen.update(f"{call.name} = {type(call.result).__name__}" for call in history)
    return seen


@pytest.mark.parametrize("rounds", [100, pytest.param(300, marks=pytest.mark.full)])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_short_histories_of_c_threads(structure, rounds, recorder):
    seen = short_rounds(recorder, structure, rounds, seed=1)
    if "shaken" in str(recorder):
        assert seen["overlap"] > rounds, seen


@pytest.mark.parametrize("structure", STRUCTURES)
def test_a_long_history_of_c_threads(structure, recorder):
    calls = 34_000 if STRUCTURES[structure][1] else 5_000
    ((shape, history),) = recorded(recorder, structure, 4 if STRUCTURES[structure][1] else 3, calls, 1, seed=2)
    assert len(history) > 2.9 * calls
    judge(structure, shape, history, general=False)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("structure", STRUCTURES)
def test_many_histories_of_c_threads(structure, seed, recorder):
    short_rounds(recorder, structure, 1500, seed)
    calls = 60_000 if STRUCTURES[structure][1] else 10_000
    for shape, history in recorded(recorder, structure, 5, calls, 1, seed):
        judge(structure, shape, history, general=False)


# ---- Python threads ----


def gate_calls(inputs, readers):
    gate = ps.TGate(inputs, readers)
    return {
        "insert": lambda k, ts, payload: gate.insert_tuple(ts, payload, input=k),
        "heartbeat": gate.heartbeat,
        "close": gate.close,
        "get": gate.get_next_ready_tuple,
    }


def hive_calls(size, advance, threads):
    hive = ps.WHive(ps.Window(size, advance), ps.sum("value"), threads)
    return {
        "update": lambda thread, ts, key, value: hive.update_windows(ts, key, value, thread),
        "heartbeat": hive.heartbeat,
        "close": hive.close,
        "get_next_winset": hive.get_next_winset,
    }


def answer(function, args):
    """What a call answers, as the sequential objects have it."""
    try:
        return function(*args)
    except ps.DisorderError:
        return lin.DISORDER
    except ps.ClosedError:
        return lin.CLOSED


def producer_call(dice, names, me, ts, number, calls):
    """A random call of a producer: mostly a tuple, now and then one that comes too late."""
    kind = dice.choices(["tuple", "late", "heartbeat", "close"], [14, 1, 3, 9 / calls])[0]
    if kind in ("heartbeat", "close"):
        return kind, (me, ts)[: 1 + (kind == "heartbeat")]
    rest = (number,) if "insert" in names else (dice.choice("ab"), dice.randrange(1, 9))
    return next(iter(names)), (me, ts - 2 * (kind == "late"), *rest)


def round_of_threads(pool, names, producers, readers, calls, seed) -> list[Call]:
    """One round: `names` are the structure's calls by name; producers come first, readers last."""
    recorder, start = lin.Recorder(), threading.Barrier(producers + readers)

    def make(me, name, args):
        recorder.call(me, name, args, lambda: answer(names[name], args))

    def work(me):
        dice, ts = random.Random(f"{seed} {me}"), 0
        start.wait()
        for i in range(calls if me < producers else calls * producers):
            if me >= producers:
                name = list(names)[-1]
                make(me, name, (me - producers,) if name == "get" else ())
            else:
                ts += dice.randrange(3)
                make(me, *producer_call(dice, names, me, ts, i, calls))

    list(pool.map(work, range(producers + readers)))
    return recorder.history()


@pytest.mark.parametrize("readers", [1, 2])
def test_python_threads_at_a_t_gate(readers, many_switches, nothing_left):
    with ThreadPoolExecutor(2 + readers) as pool:
        for seed in range(250):
            history = round_of_threads(pool, gate_calls(2, readers), 2, readers, 6, seed)
            judge("t_gate", (2, readers), history, general=True)
        long = round_of_threads(pool, gate_calls(2, readers), 2, readers, 3000, seed=1)
        judge("t_gate", (2, readers), long, general=False)


@pytest.mark.parametrize("window", [(4, 4), (5, 2), (1, 3)])
def test_python_threads_at_a_w_hive(window, many_switches, nothing_left):
    with ThreadPoolExecutor(3) as pool:
        for seed in range(150):
            history = round_of_threads(pool, hive_calls(*window, 2), 2, 1, 6, seed)
            judge("w_hive", (*window, 2), history, general=True)
        long = round_of_threads(pool, hive_calls(*window, 2), 2, 1, 2000, seed=1)
        judge("w_hive", (*window, 2), long, general=False)


@pytest.mark.deep
def test_python_threads_for_long(many_switches, nothing_left):
    with ThreadPoolExecutor(5) as pool:
        gate = round_of_threads(pool, gate_calls(3, 2), 3, 2, 20_000, seed=2)
        assert len(gate) > 100_000
        judge("t_gate", (3, 2), gate, general=False)
        hive = round_of_threads(pool, hive_calls(10, 3, 4), 4, 1, 20_000, seed=2)
        assert len(hive) > 100_000
        judge("w_hive", (10, 3, 4), hive, general=False)
