"""What the tests of the structures with inputs and a reader have in common: how their programs are made."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from judge import SCHEDULES, judge_run

from pystream.verify.scheduler import Program

MEMORY = st.sampled_from(["sc", "weak", "weak and talk"])

#: Calls of two inputs and a reader: up to three each, up to six together.
SIX_CALLS = pytest.mark.parametrize(
    "calls", [c for c in itertools.product(range(4), repeat=3) if sum(c) <= 6 and c[0] >= c[1] > 0]
)


class AnyProgram(RuleBasedStateMachine):
    """Rules put calls into the threads' programs and decisions into the schedule; then all of it runs."""

    subject = ""
    first = 0  # timestamp

    def start(self, parameters, inputs, readers, memory):
        self.parameters = parameters
        self.memory = {"weak": memory != "sc", "talk": memory == "weak and talk"}
        self.calls = [[] for _ in range(inputs + readers)]
        self.latest = [self.first] * inputs
        self.schedule = []

    def after(self):
        """The calls behind all others."""
        raise NotImplementedError

    def stopped(self):
        """Whether a thread may have stopped in a call; nobody can go on for a reader that did."""
        return any(decision.kind == "kill" for decision in self.schedule)

    @rule(decisions=SCHEDULES)
    def decide(self, decisions):
        self.schedule += decisions

    def teardown(self):
        if hasattr(self, "calls"):
            program = Program(self.subject, self.calls, self.parameters, after=self.after(), **self.memory)
            judge_run(program, self.schedule)


class AnyRightProgram(AnyProgram):
    """For structures that leave it to their callers to check the order and to refuse calls behind a close."""

    def open_input(self, input):
        input %= len(self.latest)
        return None if ("close", input) in self.calls[input] else input

    @rule(input=st.integers(0, 2), later=st.integers(1, 4))
    def heartbeat(self, input, later):
        if (input := self.open_input(input)) is not None:
            self.latest[input] += later
            self.calls[input].append(("heartbeat", input, self.latest[input]))

    @rule(input=st.integers(0, 2))
    def close(self, input):
        if (input := self.open_input(input)) is not None:
            self.calls[input].append(("close", input))


def in_order(each, calls):
    """Every sequence of so many of these calls whose timestamps never fall and which goes on behind no close."""
    for sequence in itertools.product(each, repeat=calls):
        kinds = [c[0] for c in sequence]
        stamps = [c[2] for c in sequence if c[0] != "close"]
        if stamps == sorted(stamps) and "close" not in kinds[:-1]:
            yield list(sequence)


def side_by_side(input_calls, calls, gets):
    """The threads of every program in which input k makes calls[k] calls, and a reader these gets."""
    for sequences in itertools.product(*(list(input_calls(k, n)) for k, n in enumerate(calls))):
        yield [s for s in (*sequences, gets) if s]
