"""What tests of T-Gate and W-Hive against a model have in common: the promises of producers."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

import pystream as ps


class ProducerMachine(RuleBasedStateMachine):
    """Calls in any order, each compared with the model, which knows what is `latest` and `closed` of each producer."""

    def begin_with(self, structure, model):
        self.structure = structure
        self.model = model

    def pick(self, data, many):
        return data.draw(st.integers(0, len(many) - 1))

    def pick_open(self, data):
        return data.draw(st.sampled_from([k for k, closed in enumerate(self.model.closed) if not closed]))

    @rule(data=st.data(), ahead=st.integers(-3, 30) | st.integers(-3, 400))
    def heartbeat(self, data, ahead):
        k = self.pick(data, self.model.latest)
        ts = max(self.model.latest[k] + ahead, 0)
        if self.model.closed[k]:
            with pytest.raises(ps.ClosedError):
                self.structure.heartbeat(k, ts)
            return
        self.structure.heartbeat(k, ts)
        self.model.latest[k] = max(self.model.latest[k], ts)

    @rule(data=st.data(), really=st.integers(0, 3))
    def close(self, data, really):
        if really == 0:
            k = self.pick(data, self.model.latest)
            self.structure.close(k)
            self.model.closed[k] = True
