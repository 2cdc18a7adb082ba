"""T-Gate at every interleaving: the C code of the release build under the model's scheduler."""

from __future__ import annotations

import pytest
from frame import SIX_CALLS, in_order, side_by_side
from judge import judge, judge_all, judge_deep, judge_needed, stronger_than_relaxed

from pystream.verify.scheduler import Decision, Program, explore

#: inputs, readers, levels, full_every, count_every, slab_bytes, slab_spares: every node is a block of its own that goes
#: back to the system as soon as it can be freed, so that every use of freed memory is seen.
SMALL = (2, 1, 1, 1, 1, 1, -1)
TOWERS = (2, 1, 2, 2, 1, 1, -1)
TWO_READERS = (2, 2, 1, 1, 1, 1, -1)
SPARES = (2, 1, 1, 1, 1, 1, 4)  # freed nodes are used again
GET = ("get", 0)


def insert(input, ts):
    return ("insert", input, ts, 100 * input + ts)


BOTH_AT_1_AND_2 = [insert(0, 1), insert(1, 1), insert(0, 2), insert(1, 2)]

# ---- all schedules of all small programs ----


def input_calls(input, calls):
    """Every sequence of so many calls of an input, timestamps 1 and 2, none below the one before."""
    each = [insert(input, 1), insert(input, 2), ("heartbeat", input, 2), ("close", input)]
    return in_order(each, calls)


def programs(*calls, gets, parameters=SMALL, **options):
    """Every program in which input k makes calls[k] calls and a reader `gets` gets, with more gets afterwards."""
    after = [GET] * (sum(calls) + 1)
    for threads in side_by_side(input_calls, calls, [GET] * gets):
        yield Program("t_gate", threads, parameters=parameters, after=after, **options)


def test_two_threads_of_two_calls():
    assert judge_all(programs(2, 2, gets=0))["programs"] == 100
    assert judge_all(programs(2, 2, gets=0, parameters=TOWERS))["programs"] == 100
    assert judge_all(programs(2, gets=2))["programs"] == 10
    assert judge_all(programs(2, 0, gets=2))["programs"] == 10


def test_three_threads():
    assert judge_all(programs(1, 1, gets=1))["programs"] == 16
    assert judge_all(programs(1, 1, gets=2))["programs"] == 16


def test_two_readers():
    gets = [[("get", 0)] * 2, [("get", 1)] * 2]
    after = [("get", 0), ("get", 1)] * 4
    assert judge(Program("t_gate", gets, TWO_READERS, before=BOTH_AT_1_AND_2, after=after)).whole
    found = judge(Program("t_gate", [*gets, [insert(0, 3)]], TWO_READERS, before=BOTH_AT_1_AND_2, after=after))
    assert found.whole


@pytest.mark.parametrize("talk", [False, True])
def test_weak_memory(talk):
    for parameters in (SMALL, TOWERS):
        judge_all(programs(1, 1, gets=1, parameters=parameters, weak=True, talk=talk), stale=2)
    judge_all(programs(2, 0, gets=2, weak=True, talk=talk), stale=3)
    for program in reclaiming(talk):
        judge(program, stale=1, executions=20_000)


def test_stopped_threads_and_failing_allocations():
    assert judge_all(programs(1, 1, gets=1), kills=1)["executions"] > 30_000
    assert judge_all(programs(2, gets=1), kills=1, failures=1)["programs"] == 10
    assert judge_all(programs(1, 1, gets=1), failures=2)["programs"] == 16


def test_lock_freedom():
    """From every state, whoever is stalled, some call of the others ends within B steps."""
    assert judge_all(programs(1, 1, gets=1), probe=True)["bound"] <= 17
    assert judge_all(programs(1, 1, gets=1, parameters=TOWERS), probe=True)["bound"] <= 19
    assert judge_all(programs(2, gets=2), probe=True)["bound"] <= 17


@pytest.mark.deep
@SIX_CALLS
def test_every_program_of_six_calls_on_three_threads(calls):
    """Two inputs and a reader, up to three calls each.

    Every schedule up to so many executions; for the programs that have more, every schedule of up to two preemptions.
    """
    first, second, gets = calls
    judge_deep(programs(first, second, gets=gets), executions=20_000, preemptions=2)
    judge_deep(programs(first, second, gets=gets, weak=True), executions=5_000, preemptions=1, stale=1)


# ---- every memory order is needed ----


def reclaiming(talk):
    """Programs in which nodes are freed, and used again, while inputs search."""
    later = {"before": BOTH_AT_1_AND_2, "after": [GET, GET], "weak": True, "talk": talk}
    gets = [[("get", 0)] * 2, [("get", 1)] * 2]
    yield Program("t_gate", [[insert(0, 1)], [insert(1, 1)], [GET]], SMALL, after=[GET, GET], weak=True, talk=talk)
    yield Program("t_gate", gets, TWO_READERS, **later)
    yield Program("t_gate", [[insert(0, 3), insert(0, 4)], [GET] * 3], SPARES, **later)


ORDERS = stronger_than_relaxed(*reclaiming(talk=True))


def test_which_orders_there_are():
    names = ["active_enter", "active_leave", "active_read", "front_move", "front_read", "link_read", "link_swap"]
    names += ["passed_count", "passed_read", "returned_push", "returned_take", "written_publish", "written_read"]
    assert [name for name, _ in ORDERS] == names


@pytest.mark.parametrize(("accessor", "order"), ORDERS)
def test_every_order_is_needed(accessor, order):
    judge_needed(accessor, order, reclaiming(talk=True))


# ---- what the model must find in T-Gate's neighbourhood ----


def test_a_reader_that_looks_in_the_wrong_order_is_found_within_three_switches():
    """written_read relaxed lets a reader see `written` move and the list as it was: that is the order turned round."""
    program = Program("t_gate", [[insert(0, 1)], [insert(1, 1)], [GET]], SMALL, after=[GET], weak=True)
    weak = Program(**{**vars(program), "weaken": {"written_read": "relaxed"}})
    found = explore(weak, stale=1)
    assert not found.fine
    bad = found.first_bad()
    assert bad is not None
    assert all(isinstance(d, Decision) for d in bad.decisions)
    assert len(bad.decisions) <= 3
