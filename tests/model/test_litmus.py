"""What the model's memory allows and forbids, on the usual small programs: C11 without load buffering."""

from __future__ import annotations

import pytest

from pystream.verify.scheduler import Program, explore

RELAXED, ACQUIRE, RELEASE, ACQ_REL, SEQ_CST = range(5)
X, Y, Z = range(3)


def load(cell, order=RELAXED):
    return ("load", cell, order)


def store(cell, value, order=RELAXED):
    return ("store", cell, value, order)


def add(cell, n, order=RELAXED):
    return ("add", cell, n, order)


def swap(cell, expected, value, order=RELAXED, failed=RELAXED):
    return ("swap", cell, expected, value, order, failed)


def outcomes(*threads, after=(), reduce=True, stale=4, weak=True):
    """What the loads, swaps and adds of an execution return, thread by thread, for all executions."""
    program = Program("litmus", threads, parameters=(3,), after=after, weak=weak)
    found = explore(program, stale=stale, reduce=reduce)
    assert found.fine, found
    return {
        tuple(
            c.result for c in sorted(h.history, key=lambda c: (c.thread == 0, c.thread, c.invoked)) if c.name != "store"
        )
        for h in found.histories
    }


def verdicts(*threads):
    program = Program("litmus", threads, parameters=(3,), weak=True)
    return {h.verdict for h in explore(program, stale=4, keep_going=True).histories}


def message_passing(publish, look):
    return [store(X, 1), store(Y, 1, publish)], [load(Y, look), load(X)]


@pytest.mark.parametrize(("publish", "look"), [(RELAXED, RELAXED), (RELEASE, RELAXED), (RELAXED, ACQUIRE)])
def test_message_passing_without_a_pair_may_miss_the_message(publish, look):
    assert outcomes(*message_passing(publish, look)) == {(0, 0), (0, 1), (1, 0), (1, 1)}


@pytest.mark.parametrize(("publish", "look"), [(RELEASE, ACQUIRE), (SEQ_CST, SEQ_CST), (RELEASE, SEQ_CST)])
def test_message_passing_by_a_pair(publish, look):
    assert outcomes(*message_passing(publish, look)) == {(0, 0), (0, 1), (1, 1)}


def test_message_passing_of_plain_data():
    writer = [("write", X, 1), store(Y, 1, RELEASE)]
    spinning = [[load(Y, ACQUIRE)], [load(Y, RELAXED)]]
    # The reader reads the data whatever it saw: a race, unless the schedule and the pair order the two.
    assert verdicts(writer, [*spinning[0], ("read", X)]) == {"fine", "race"}
    assert verdicts(writer, [*spinning[1], ("read", X)]) == {"race"}


def store_buffering(first, second):
    return [store(X, 1, first), load(Y, second)], [store(Y, 1, first), load(X, second)]


def test_store_buffering():
    everything = {(0, 0), (0, 1), (1, 0), (1, 1)}
    assert outcomes(*store_buffering(RELAXED, RELAXED)) == everything
    assert outcomes(*store_buffering(RELEASE, ACQUIRE)) == everything
    assert outcomes(*store_buffering(SEQ_CST, ACQUIRE)) == everything
    assert outcomes(*store_buffering(RELEASE, SEQ_CST)) == everything
    assert outcomes(*store_buffering(SEQ_CST, SEQ_CST)) == everything - {(0, 0)}


def test_load_buffering_is_not_modelled():
    """C11 allows (1, 1) for relaxed accesses; the model does not show it (model.c, N1)."""
    assert outcomes([load(X), store(Y, 1)], [load(Y), store(X, 1)]) == {(0, 0), (0, 1), (1, 0)}


def test_coherence_of_two_reads():
    """Whoever has seen the newer value does not see the older one again."""
    seen = outcomes([store(X, 1), store(X, 2)], [load(X), load(X)])
    assert seen == {(a, b) for a in range(3) for b in range(3) if a <= b}


def test_coherence_of_own_stores():
    """A thread sees its own store or a newer one; both threads agree on the order of the stores."""
    assert outcomes([store(X, 1), load(X)], [store(X, 2)]) == {(1,), (2,)}
    seen = outcomes([store(X, 1)], [store(X, 2)], [load(X), load(X)], [load(X), load(X)])
    assert (1, 2, 2, 1) not in seen
    assert {(1, 2, 1, 2), (2, 1, 2, 1), (0, 0, 2, 1)} <= seen


def test_coherence_passes_through_acquire():
    """What a releasing thread has read, the acquiring one cannot read an older value of."""
    seen = outcomes([store(X, 1)], [load(X), store(Y, 1, RELEASE)], [load(Y, ACQUIRE), load(X)])
    assert (1, 1, 0) not in seen
    assert {(1, 0, 0), (0, 1, 0), (1, 1, 1)} <= seen


@pytest.mark.parametrize(("order", "allowed"), [(RELAXED, True), (RELEASE, True), (SEQ_CST, False)])
def test_stores_in_two_orders(order, allowed):
    """2+2W: each thread's first store ends up behind the other thread's second one."""
    seen = outcomes(
        [store(X, 1, order), store(Y, 2, order)], [store(Y, 1, order), store(X, 2, order)], after=[load(X), load(Y)]
    )
    assert ((1, 1) in seen) == allowed
    assert {(1, 2), (2, 1), (2, 2)} - {(2, 2)} <= seen


@pytest.mark.parametrize(("put", "look", "allowed"), [(RELEASE, ACQUIRE, True), (SEQ_CST, SEQ_CST, False)])
def test_independent_reads_of_independent_writes(put, look, allowed):
    seen = outcomes(
        [store(X, 1, put)], [store(Y, 1, put)], [load(X, look), load(Y, look)], [load(Y, look), load(X, look)]
    )
    assert ((1, 0, 1, 0) in seen) == allowed


def test_write_to_read_causality():
    """Release and acquire are transitive."""
    seen = outcomes(
        [store(X, 1)],
        [load(X), store(Y, 1, RELEASE)],
        [load(Y, ACQUIRE), store(Z, 1, RELEASE)],
        [load(Z, ACQUIRE), load(X)],
    )
    assert (1, 1, 1, 0) not in seen
    assert (1, 1, 0, 0) in seen


def test_release_sequence():
    """A read-modify-write of anybody passes on what the store before it released; a plain store of another does not."""
    writer, reader = [store(X, 1), store(Y, 1, RELEASE)], [load(Y, ACQUIRE), load(X)]
    seen = outcomes(writer, [add(Y, 1)], reader)
    assert (1, 2, 0) not in seen
    assert {(1, 2, 1), (0, 1, 0)} <= seen
    seen = outcomes(writer, [swap(Y, 1, 2)], reader)
    assert (True, 2, 0) not in seen
    assert (True, 2, 1) in seen
    assert (2, 0) in outcomes(writer, [store(Y, 2)], reader)


def test_only_one_swap_succeeds():
    order = (ACQ_REL, ACQUIRE)
    seen = outcomes([swap(X, 0, 1, *order)], [swap(X, 0, 2, *order)], [swap(X, 0, 3, *order)], after=[load(X)])
    assert seen == {(1, 0, 0, 1), (0, 1, 0, 2), (0, 0, 1, 3)}


def test_a_swap_that_fails_may_see_an_old_value():
    """It is a load: a thread that knows of no later store may see 0 still, and fail because it expects 1."""
    assert outcomes([store(X, 1)], [swap(X, 1, 2)]) == {(0,), (1,)}
    later = [load(Y, ACQUIRE), swap(X, 1, 2)]
    assert (1, 0) in outcomes([store(X, 1), store(Y, 1)], later)
    assert (1, 0) not in outcomes([store(X, 1), store(Y, 1, RELEASE)], later)


def test_additions_are_never_lost():
    assert outcomes([add(X, 1), add(X, 1)], [add(X, 1)], after=[load(X)], stale=6) == {
        (0, 1, 2, 3),
        (0, 2, 1, 3),
        (1, 2, 0, 3),
    }


def test_nothing_comes_between_a_swap_and_what_it_read():
    """The store of 9 goes before both or behind both."""
    seen = outcomes([store(X, 9)], [swap(X, 0, 1), load(X)], after=[load(X)])
    assert (1, 9, 1) not in seen
    assert {(1, 1, 9), (1, 9, 9), (0, 9, 9), (0, 0, 9)} >= seen
    assert (1, 1, 9) in seen


def test_sequentially_consistent_memory_has_no_stale_loads():
    assert outcomes(*store_buffering(RELAXED, RELAXED), weak=False) == {(0, 1), (1, 0), (1, 1)}
    assert outcomes(*message_passing(RELAXED, RELAXED), weak=False) == {(0, 0), (0, 1), (1, 1)}


def test_weakening_an_accessor():
    program = Program("litmus", message_passing(RELEASE, ACQUIRE), parameters=(3,), weak=True)
    weaker = Program(**{**vars(program), "weaken": {"litmus_store": "relaxed"}})

    def loads(p):
        return {tuple(c.result for c in h.history if c.name == "load") for h in explore(p, stale=4).histories}

    assert (1, 0) not in loads(program)
    assert (1, 0) in loads(weaker)
    assert (1, 0) not in loads(program)
