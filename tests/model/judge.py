"""What an execution of each structure is judged by, and the shortest interleaving told when one is wrong."""

from __future__ import annotations

from math import inf

from hypothesis import strategies as st

from pystream.verify.linearizability import Refusal, check
from pystream.verify.scheduler import OBJECTS, Decision, Program, explained, explore, library, replay, run, show

KINDS = st.sampled_from(["switch", "switch", "switch", "stale", "stall", "kill", "fail"])
#: Schedules: few decisions, each a step and what happens there; less of everything is simpler.
SCHEDULES = st.lists(st.builds(Decision, KINDS, st.integers(0, 60), st.integers(1, 3)), max_size=6)


class SequentialInputQueue:
    """The queue of one input: its tuples, and what it has promised. take answers (0, ts), (1, promise) or (2, end)."""

    END = (2, 2**63 - 1)

    def initial(self):
        return (), -1

    def step(self, state, call):
        tuples, latest = state
        if call.name == "close":
            return tuples, inf
        if call.name == "promise":
            return tuples, max(latest, *call.args)
        if call.name == "enqueue":
            return (*tuples, *call.args), max(latest, *call.args)
        right = (0, tuples[0]) if tuples else self.END if latest == inf else (1, latest)
        if call.pending or call.result == right:
            return tuples[1:], latest
        return Refusal(f"take answered {call.result} instead of {right}")


class SequentialLedger:
    """How many tuples are held. A wait that is over without room must not have had any."""

    OK, FULL = 0, 3

    def __init__(self, most):
        self.most = most

    def initial(self):
        return 0, 0

    def step(self, state, call):
        put, passed = state
        held = put - passed
        if call.name == "held":
            return state if call.pending or call.result == held else Refusal(f"{held} are held")
        if call.name == "ready":  # timestamps are 1, 2, 3, ...; the passer may not have heard of all
            most = max(0, min(put, call.args[0]) - passed)
            return state if call.pending or 0 <= call.result <= most else Refusal(f"{most} are ready")
        if call.name == "pass":
            more = min(held, call.args[0]) if call.pending else call.result  # it looked before it passed them
            return (put, passed + more) if more <= held else Refusal(f"{held} are held")
        code = self.OK if held == 0 or call.args[0] <= self.most - held else self.FULL
        if not call.pending and call.result != code:
            return Refusal(f"{held} of {self.most} are held: the code should be {code}")
        return (put + call.args[0], passed) if (call.name, code) == ("put", self.OK) else state


class SequentialDoorbell:
    """A worker that sleeps when there is nothing: how much there is, and whether it is asleep.

    take gives all that there is, 0 for nothing, and then the worker sleeps. It may be woken for nothing, but stays
    asleep only as long as there is nothing.
    """

    def initial(self):
        return 0, False

    def step(self, state, call):
        there, asleep = state
        if call.name in ("put", "ring"):
            return there + (call.name == "put"), asleep
        if call.name == "sleep":
            return there, False
        if call.name == "wake":
            stays = asleep and (call.pending or not call.result)
            return Refusal("the worker sleeps on, and there is work") if stays and there else (there, stays)
        if asleep or not there:
            return Refusal("there is nothing to take") if not call.pending and call.result else (there, True)
        return (0, False) if call.pending or call.result == there else Refusal(f"there are {there}")


def sequential_of(program: Program):
    own = {
        "queue": SequentialInputQueue,
        "doorbell": SequentialDoorbell,
        "ledger": lambda: SequentialLedger(*program.parameters[:1]),
    }
    return own[program.subject]() if program.subject in own else OBJECTS[program.subject](program.parameters)


def told(execution):
    return "\n" + show(execution, sequential_of(execution.program))


def judge_run(program, decisions=()):
    """Run once; nothing may be wrong with memory, progress and history."""
    execution = run(program, decisions)
    assert execution.fine, told(execution)
    if not program.weak or program.talk:
        assert check(execution.history, sequential_of(program)), told(execution)
    assert explained(execution, sequential_of(program)), told(execution)
    return execution


def judge(program, **bounds):
    """Explore; nothing may be wrong in any execution. Gives the exploration."""
    found = explore(program, **bounds)
    bad = found.first_bad(lambda h: explained(h, sequential_of(program)))
    assert bad is None, told(bad)
    assert not found.bad, found.text
    return found


def judge_all(programs, **bounds):
    """Explore all programs, each to its end. Gives how many there were, and the largest bound and gap."""
    count = executions = bound = gap = 0
    for program in programs:
        found = judge(program, **bounds)
        assert found.whole, program
        count += 1
        executions += found.executions
        bound, gap = max(bound, found.bound), max(gap, found.gap)
    return {"programs": count, "executions": executions, "bound": bound, "gap": gap}


def judge_deep(programs, executions, preemptions, **bounds):
    """As many executions of each as that; where there are more, at least all with so many preemptions."""
    for program in programs:
        if not judge(program, executions=executions, **bounds).whole:
            assert judge(program, preemptions=preemptions, executions=10_000_000, **bounds).whole, program


def stronger_than_relaxed(*programs):
    """The accessors with an order stronger than relaxed that these programs use, and all weaker orders worth a try."""
    schedules = ([], [("switch", 0)])
    used = {access.accessor for p in programs for schedule in schedules for access in run(p, schedule).trace} - {""}
    weaker = {"acquire": ["relaxed"], "release": ["relaxed"], "acq_rel": ["acquire", "release"], "seq_cst": ["acq_rel"]}
    orders = library().accessors()  # which a mutex is not
    return [(name, order) for name in sorted(used & orders.keys()) for order in weaker.get(orders[name], [])]


def broken_by(accessor, order, programs, **bounds):
    """An execution of the first of the programs that goes wrong with the weaker order. None: all go well."""
    for program in programs:
        weakened = Program(**{**vars(program), "weaken": {accessor: order}})
        found = explore(weakened, **bounds)
        bad = found.first_bad(lambda h, p=program: explained(h, sequential_of(p)))
        if bad is not None:
            assert run(weakened, bad.decisions).trace == bad.trace, replay(bad)
            return bad
    return None


def judge_needed(accessor, order, programs, **bounds):
    """With the weaker order one of the programs goes wrong, within few decisions."""
    bad = broken_by(accessor, order, programs, stale=2, executions=20_000, **bounds)
    assert bad is not None
    assert len(bad.decisions) <= 4
