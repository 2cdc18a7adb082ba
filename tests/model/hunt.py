"""The state machine that hunts: a program of generators.py, and a walk through its schedules.

Every rule adds a decision behind those that are there, at a point of what the execution does from there on, or goes
back; so schedules are as long as the run, and every beginning of a schedule is judged. Hypothesis is told how many
pairs of places have met (`target`). What goes wrong is made small by the scheduler itself (shrink.py), which finds the
fewest departures by search; Hypothesis only finds it.

`hunt` lets a machine loose on a build with a seeded bug (test_hunt.py), `machine` makes one for the tests.
"""

from __future__ import annotations

import contextlib
from dataclasses import replace

import generators
from hypothesis import HealthCheck, Phase, Verbosity, note, seed, settings, target
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from judge import sequential_of

from pystream.verify.linearizability import check
from pystream.verify.scheduler import Decision, Shrinker, Sketcher, explained, run, show

#: By structure: its programs, and whether a reader may stop for ever in a call (then nobody can go on for it).
STRUCTURES = {
    "t_gate": (generators.t_gate, True),
    "w_hive": (generators.w_hive, True),
    "win_set": (generators.win_set, True),
    "ms_queue": (generators.ms_queue, True),
    "queue": (generators.queue, False),
    "mutex_queue": (generators.mutex_queue, False),
    "run_gate": (generators.run_gate, False),
    "pane_hive": (generators.pane_hive, False),
    "doorbell": (generators.doorbell, False),
    "ledger": (generators.ledger, False),
}
LOCKED = ("mutex_queue", "doorbell", "ledger")  # whoever stops for ever may have the lock
EXAMPLES = 100
#: A hunt is over after so many accesses of all its executions together: a bug may make each of them endless.
STEPS_MAX = 5_000_000
#: Hypothesis begins anew after so many: it varies what it has, and 100 examples of one run have 17 programs.
ROUND = 10
WALKS = 12
FAILURES = 8
STEPS = 5
DICE = st.randoms(use_true_random=True)
#: A place in the rest of the run, scaled to its length.
PLACE = st.integers(0, 999)
KINDS = st.sampled_from(["switch", "switch", "switch", "stale", "stale", "stall", "kill", "fail"])
QUIET = {
    "deadline": None,
    "database": None,
    "suppress_health_check": list(HealthCheck),
    "stateful_step_count": STEPS,
    "phases": (Phase.explicit, Phase.generate, Phase.target),  # no shrinking: shrink.py
    "verbosity": Verbosity.quiet,
    "report_multiple_bugs": False,
}


class WrongError(AssertionError):
    """An execution that must not be, as found and as small as it gets."""

    def __init__(self, program, decisions, library):
        self.found = program, decisions
        shrinker = Shrinker(is_right, library, generators.simpler)
        self.program, self.decisions = shrinker.smallest(program, decisions)
        super().__init__("\n" + show(run(self.program, self.decisions, library), sequential_of(self.program)))

    @property
    def size(self):
        """Calls and departures."""
        return len(self.program.calls()), len(self.decisions)


def is_right(program, execution):
    if program.weak and not program.talk:
        return explained(execution, sequential_of(program))
    return bool(check(execution.history, sequential_of(program)))


class SpentError(Exception):
    """The hunt has run as many steps as it may."""


class Hunt(RuleBasedStateMachine):
    """Rules for any structure; `machine` makes the class of one."""

    structure = ""
    library = None
    seen = None  # counts what was tried, and has what was found

    def start(self, program, first, dice):
        """Begin with this thread, and switch at every place where threads meet; fail everywhere; walk."""
        note(repr(program))
        self.program = program
        self.sketcher = Sketcher(program, self.library)
        self.judged = set()
        self.met = set()
        self.go([])
        if first:
            self.go([Decision("switch", 0, first)])
        self.every("switch", 1)
        for number in range(1, FAILURES if self.structure != "ledger" else 0):
            self.judge(program, [Decision("fail", number)])
        self.walks(dice)

    def judge(self, program, decisions):
        """Run under these decisions; nothing may be wrong."""
        if self.seen["wrong"] is None and self.seen["steps"] >= STEPS_MAX:
            raise SpentError
        sketch = (self.sketcher if program is self.program else Sketcher(program, self.library))(decisions)
        self.seen["executions"] += 1
        self.seen["steps"] += sketch.steps
        if sketch.verdict != "fine" or (sketch.answers not in self.judged and not is_right(program, sketch)):
            raise self.wrong(program, decisions)
        self.judged.add(sketch.answers)
        return sketch

    def wrong(self, program, decisions):
        """What was found; made small once, though Hypothesis runs the example again to see it fail."""
        if self.seen["wrong"] is None:
            self.seen["found"] = self.seen["examples"] + 1
            self.seen["wrong"] = WrongError(program, decisions, self.library)
        return self.seen["wrong"]

    def go(self, decisions):
        """Judge this schedule and walk on from it."""
        self.sketch = self.judge(self.program, decisions)
        self.decisions = decisions
        self.crowded, self.fresh, met = places(self.sketch.points)
        self.met |= met

    @rule(kind=KINDS, place=PLACE, value=st.sampled_from([1, 1, 1, 2, 3]))
    def depart(self, kind, place, value):
        """Another decision, behind those that are there."""
        if kind == "fail" and self.structure != "ledger" and not any(d.kind == "fail" for d in self.decisions):
            self.go([*self.decisions, Decision("fail", 1 + place % 6)])
        if kind == "kill" and self.structure not in LOCKED:
            self.kill(place)
        if kind in ("switch", "stall", "stale"):
            steps = self.rest(kind)
            if steps:
                self.go([*self.decisions, Decision(kind, scaled(place, steps), value)])

    @rule(kind=st.sampled_from(["switch", "switch", "stale"]), value=st.sampled_from([1, 1, 1, 2]))
    def every(self, kind, value):
        """At every place that is worth it, one after the other; the walk goes on from where it was."""
        if kind == "stale" and not self.program.weak:
            kind = "switch"
        for step in self.rest(kind):
            self.judge(self.program, [*self.decisions, Decision(kind, step, value)])

    @rule(dice=DICE)
    def walks(self, dice):
        """Some schedules from the first step on: who begins, one to three switches, every stale access behind them."""
        for _ in range(WALKS):
            self.go([Decision("switch", 0, dice.randrange(1, 4))] if dice.random() < 0.7 else [])
            for _ in range(dice.choice([1, 1, 2, 3])):
                if steps := self.rest("switch"):
                    self.go([*self.decisions, Decision("switch", dice.choice(steps), dice.choice([1, 1, 1, 2]))])
            if self.program.weak:
                self.every("stale", 1)

    def rest(self, kind):
        """The steps behind the last decision where this can change something.

        A switch does so before an access to what other threads access too, a stale access where another thread wrote.
        """
        last = max((d.step for d in self.decisions if d.kind != "fail"), default=-1)
        points = [point for point in self.sketch.points if point.step > last]
        if kind == "stale":
            return [p.step for p in points if p.step in self.fresh] if self.program.weak else []
        return [p.step for p in points if p.address in self.crowded]

    def kill(self, place):
        """A thread stops for ever. What comes behind the threads is left out: nobody closes for who has stopped."""
        points = [p.step for p in self.sketch.points if STRUCTURES[self.structure][1] or not self.reads(p.thread)]
        if points:
            decisions = [*self.decisions, Decision("kill", scaled(place, points) + 1)]
            self.judge(replace(self.program, after=[]), decisions)

    def reads(self, thread):
        return any(call[0].startswith(("get", "take")) for call in self.program.threads[thread - 1])

    @rule(all=st.booleans())
    def back(self, all):
        self.go([] if all else self.decisions[:-1])

    def teardown(self):
        self.seen["examples"] += 1
        if hasattr(self, "met"):
            target(float(len(self.met)), label="pairs of places that met")


def scaled(place, steps):
    """The step that is so many thousandths into them."""
    return steps[place * len(steps) // 1000]


def places(points):
    """The addresses that several threads access, the steps at which one sees what another did, and who met where."""
    last, threads, fresh, met = {}, {}, set(), set()
    for p in points:
        threads.setdefault(p.address, set()).add(p.thread)
        before = last.get(p.address)
        if before is not None and before.thread != p.thread:
            met.add((before.label, p.label))
            fresh.add(p.step)
        if p.kind not in ("load", "failed swap") or before is None:
            last[p.address] = p
    return {address for address, by in threads.items() if len(by) > 1}, fresh, met


def machine(structure, *, library=None, weaken=None, seen=None):
    """The state machine of one structure."""

    class Machine(Hunt):
        @initialize(dice=DICE, first=st.sampled_from([0, 0, 1, 2]))
        def begin(self, dice, first):
            program = STRUCTURES[structure][0](dice)
            self.start(replace(program, weaken=weaken) if weaken else program, first, dice)

    Machine.structure, Machine.library, Machine.seen = structure, library, seen
    Machine.__name__ = Machine.__qualname__ = f"Hunt_{structure}"
    return Machine


def hunt(structure, number, *, library=None, weaken=None, examples=EXAMPLES):
    """Let the machine loose on a build, or on weaker orders, with this seed.

    Gives what it found, if anything, and how many examples, executions and steps that took.
    """
    seen = {"examples": 0, "executions": 0, "steps": 0, "found": 0, "wrong": None}
    for start in range(0, examples, ROUND):
        hunter = seed(1000 * number + start)(machine(structure, library=library, weaken=weaken, seen=seen))
        with contextlib.suppress(WrongError, SpentError):
            run_state_machine_as_test(hunter, settings=settings(max_examples=min(ROUND, examples - start), **QUIET))
        if seen["wrong"] or seen["steps"] >= STEPS_MAX:
            break
    return seen.pop("wrong"), seen
