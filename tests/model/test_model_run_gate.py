"""Run-Gate at every interleaving: the C code of the release build under the model's scheduler."""

from __future__ import annotations

import itertools

import pytest
from frame import SIX_CALLS, side_by_side
from judge import judge_all, judge_needed, stronger_than_relaxed

from pystream.verify.scheduler import Program

#: inputs, readers
SMALL = (2, 1)
TWO_READERS = (2, 2)
GET = ("get", 0)
GET_RUN = ("get_run", 0)
GET_BLOCK = ("get_block", 0)
GETS = [GET, GET_RUN, GET_BLOCK]


def insert(input, ts, step=0, n=1):
    return ("insert_run", input, ts, step, n, 100 * input + 10 * ts)


BOTH_AT_1_AND_2 = [insert(0, 1), insert(1, 1), insert(0, 2), insert(1, 2)]

# ---- all schedules of all small programs ----


def promise_of(call):
    """After this call the input sends nothing below."""
    return call[2] if call[0] == "heartbeat" else call[2] + call[3] * (call[4] - 1)


def may_follow(call, before):
    return before[0] != "close" and (call[0] == "close" or call[2] >= promise_of(before) + (call[0] == "heartbeat"))


def input_calls(input, calls):
    """Every sequence of so many calls of an input: runs of one tuple and of two, timestamps 1 and 2."""
    each = [insert(input, 1), insert(input, 1, 1, 2), insert(input, 2), ("heartbeat", input, 2), ("close", input)]
    for sequence in itertools.product(each, repeat=calls):
        if all(may_follow(call, before) for before, call in itertools.pairwise(sequence)):
            yield list(sequence)


def programs(*calls, gets, get=GET, last=GET, parameters=SMALL, **options):
    """Every program in which input k makes calls[k] calls and a reader `gets` gets, with more gets afterwards."""
    after = [last] * (2 * sum(calls) + 1)
    for threads in side_by_side(input_calls, calls, [get] * gets):
        yield Program("run_gate", threads, parameters=parameters, after=after, **options)


@pytest.mark.parametrize("get", GETS)
def test_two_threads_of_two_calls(get):
    assert judge_all(programs(2, 2, gets=0, get=get))["programs"] == 121
    assert judge_all(programs(2, gets=2, get=get, parameters=(1, 1)))["programs"] == 11
    assert judge_all(programs(2, 0, gets=2, get=get))["programs"] == 11


@pytest.mark.parametrize("get", GETS)
def test_three_threads(get):
    assert judge_all(programs(1, 1, gets=1, get=get))["programs"] == 25
    assert judge_all(programs(1, 1, gets=2, get=get))["programs"] == 25
    assert judge_all(programs(2, 1, gets=2, get=get))["programs"] == 55


def test_blocks():
    """Runs of up to four tuples, longer than a block takes of one input: cut anywhere, also among equal timestamps."""
    shapes = [(ts, step, n) for ts in (1, 2) for step in (0, 1) for n in (1, 3, 4)]
    for first, second in itertools.product(shapes, repeat=2):
        runs = [insert(0, *first), insert(1, *second)]
        later = [insert(0, 9), insert(1, 9)]
        judge_all([Program("run_gate", [[GET_BLOCK], later], SMALL, before=runs, after=[GET_BLOCK, GET_RUN] * 5)])


def two_readers(**options):
    """Readers that leave the same runs, alone and while an input goes on."""
    gets = [[("get", 0)] * 2, [("get", 1)] * 2]
    after = [("get", 0), ("get", 1)] * 5
    for inputs in ([], [[insert(0, 3)]], [[insert(0, 3)], [("heartbeat", 1, 4)]]):
        yield Program("run_gate", [*gets, *inputs], TWO_READERS, before=BOTH_AT_1_AND_2, after=after, **options)


def test_two_readers():
    assert judge_all(two_readers())["executions"] > 5_000


@pytest.mark.parametrize("talk", [False, True])
def test_weak_memory(talk):
    for get in GETS:
        assert judge_all(programs(1, 1, gets=1, get=get, weak=True, talk=talk), stale=3)["programs"] == 25
        assert judge_all(programs(2, 0, gets=2, get=get, weak=True, talk=talk), stale=3)["programs"] == 11
    judge_all(list(two_readers(weak=True, talk=talk))[:2], stale=2)


def test_stopped_threads_and_failing_allocations():
    other = {"parameters": TWO_READERS, "last": ("get", 1)}  # nobody can go on for a reader that stopped in a call
    assert judge_all(programs(1, 1, gets=2, **other), kills=1)["executions"] > 1_000
    assert judge_all(programs(2, 0, gets=2, **other), kills=1, failures=1)["programs"] == 11
    assert judge_all(programs(1, 1, gets=1), failures=2)["programs"] == 25


def test_lock_freedom():
    """From every state, whoever is stalled, some call of the others ends within B steps."""
    assert judge_all(programs(1, 1, gets=1), probe=True)["bound"] <= 5
    assert judge_all(programs(2, 1, gets=2), probe=True)["bound"] <= 7
    assert judge_all(list(two_readers())[:2], probe=True)["bound"] <= 7


@pytest.mark.deep
@SIX_CALLS
def test_every_program_of_six_calls_on_three_threads(calls):
    """Two inputs and a reader, up to three calls each: every schedule; stale loads as many as there can be."""
    first, second, gets = calls
    for get in GETS:
        judge_all(programs(first, second, gets=gets, get=get))
        judge_all(programs(first, second, gets=gets, get=get, weak=True), stale=2)


# ---- every memory order is needed ----


def leaving(talk):
    """Programs in which runs are read and freed while inputs and other readers go on."""
    options = {"weak": True, "talk": talk}
    yield Program("run_gate", [[insert(0, 1)], [insert(1, 1)], [GET]], SMALL, after=[GET], **options)
    yield from list(two_readers(**options))[:1]


ORDERS = stronger_than_relaxed(*leaving(talk=True))


def test_which_orders_there_are():
    assert ORDERS == [
        ("holders_leave", "acquire"),
        ("holders_leave", "release"),
        ("run_link_publish", "relaxed"),
        ("run_link_read", "relaxed"),
    ]


@pytest.mark.parametrize(("accessor", "order"), ORDERS)
def test_every_order_is_needed(accessor, order):
    judge_needed(accessor, order, leaving(talk=True))
