"""Sketches say what executions say; a wrong execution is made as small as it is known to be, within so many steps."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from judge import SCHEDULES, sequential_of
from test_seeded import BUGS, bug_in, shortest, sizes, without_one_call

from pystream.verify.linearizability import check
from pystream.verify.scheduler import Decision, Program, Shrinker, Sketcher, explained, explore, run, show

#: A counter whose increment loads and stores, with one call too many in every place.
CROWDED = Program(
    "counter",
    [[("increment",), ("increment",)], [("increment",), ("get",)], [("increment",)]],
    parameters=(1,),
    before=[("increment",)],
    after=[("get",), ("get",)],
)
#: A switch back and forth that does nothing, and one in the middle of an increment.
SCHEDULE = [Decision("switch", 0), Decision("switch", 1), Decision("stall", 3)]
EARLY = Program(  # a stack that frees too early
    "stack",
    [[("push", 1), ("pop",), ("pop",)], [("push", 2), ("pop",), ("push", 3)]],
    parameters=(1,),
    before=[("push", 4), ("push", 5)],
    after=[("pop",)],
)


def counts(program, execution):
    """Whether every get behind the threads sees all increments; `program` has them."""
    made = sum(call == ("increment",) for _, call in program.calls())
    gets = [c.result for c in execution.history if c.thread == 0 and c.name == "get"]
    return all(result == made for result in gets)


# ---- sketches ----


@given(SCHEDULES, st.sampled_from(["sc", "weak", "talk"]))
@example([Decision("fail", 1), Decision("kill", 3)], "sc")
def test_a_sketch_says_what_an_execution_says(decisions, memory):
    program = Program(
        "stack",
        [[("push", 1), ("pop",)], [("push", 2), ("pop",)]],
        after=[("pop",)],
        weak=memory != "sc",
        talk=memory == "talk",
    )
    whole, sketch = run(program, decisions), Sketcher(program)(decisions)
    assert (sketch.verdict, sketch.history, sketch.after) == (whole.verdict, whole.history, whole.after)
    accesses = [a for a in whole.trace if a.accessor and a.step >= 0]
    assert [(p.step, p.thread, p.kind) for p in sketch.points] == [(a.step, a.thread, a.kind) for a in accesses]


def test_one_sketcher_runs_many_schedules():
    """Nothing of a run is left for the next one; equal answers are equal histories."""
    sketcher = Sketcher(CROWDED)
    once, lost, again = sketcher(), sketcher(SCHEDULE), sketcher()
    assert once.history == again.history != lost.history
    assert once.answers == again.answers != lost.answers
    assert (once.points, once.steps) == (again.points, again.steps)


# ---- made small ----


def test_a_lost_update_of_many_calls_gets_as_small_as_it_can_be():
    """Two increments that meet and a get, one switch; the shrinker may not leave out what the judge needs."""
    assert not counts(CROWDED, run(CROWDED, SCHEDULE))
    program, decisions = Shrinker(counts).smallest(CROWDED, SCHEDULE)
    assert not counts(program, run(program, decisions))
    assert (len(program.calls()), [d.kind for d in decisions]) == (3, ["switch"])


def test_a_bad_verdict_gets_as_small_as_it_can_be():
    start = explore(EARLY, preemptions=2).first_bad()
    program, decisions = Shrinker(lambda *_: True).smallest(EARLY, start.decisions)
    assert run(program, decisions).verdict != "fine"
    assert (len(program.calls()), len(decisions)) == (3, 1)


def right(program, execution):
    if program.weak and not program.talk:
        return explained(execution, sequential_of(program))
    return bool(check(execution.history, sequential_of(program)))


@pytest.mark.parametrize("name", ["t_gate: link_read is relaxed", "win_set: link_swap is relaxed"])
def test_a_seeded_bug_gets_no_larger_than_it_is_known_to_be(name):
    """Its program in seeded.toml is small already; of what comes out no call can be left out."""
    small = bug_in(BUGS[name])
    bad, bounds = shortest(small, **sizes(BUGS[name]))
    program, decisions = Shrinker(right).smallest(small, bad.decisions)
    again = run(program, decisions)
    assert not (again.fine and right(program, again)), show(again)
    assert len(program.calls()) + len(decisions) <= len(small.calls()) + len(bad.decisions)
    for less in without_one_call(program):
        assert shortest(less, **bounds) is None, f"{less} is enough"


# ---- it ends ----


def test_without_steps_all_stays_as_it_was():
    assert Shrinker(counts, steps=0).smallest(CROWDED, SCHEDULE) == (CROWDED, SCHEDULE)


def test_it_ends_when_its_steps_are_spent():
    """What it has then is still wrong; the more steps, the less is left."""
    left = []
    for steps in (0, 50, 500, 100_000):
        program, decisions = Shrinker(counts, steps=steps).smallest(CROWDED, SCHEDULE)
        assert not counts(program, run(program, decisions))
        left.append(len(program.calls()))
    assert left == sorted(left, reverse=True)
    assert left[0] > left[1] > left[-1]


def test_what_is_never_right_ends_with_nothing():
    program, decisions = Shrinker(lambda *_: False).smallest(CROWDED, SCHEDULE)
    assert (program.calls(), decisions) == ([], [])
