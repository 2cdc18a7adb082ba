"""The fast checkers of T-Gate and W-Hive against the general one, on right, wrong, long and broken runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from histories import histories, long_gate, long_hive
from hypothesis import Phase, find, given, settings

from pystream.verify import linearizability as lin
from pystream.verify.linearizability import Refusal, SequentialTGate, SequentialWHive, check

FAST = {
    "t_gate": (SequentialTGate(2), lambda history: lin.check_t_gate(history, 2)),
    "t_gate, 3 inputs, 2 readers": (SequentialTGate(3, 2), lambda history: lin.check_t_gate(history, 3, 2)),
    "w_hive, windows overlap": (SequentialWHive(3, 2, 2), lambda history: lin.check_w_hive(history, 3, 2, 2)),
    "w_hive, gaps between windows": (SequentialWHive(1, 2, 3), lambda history: lin.check_w_hive(history, 1, 2, 3)),
    "w_hive, values in order": (
        SequentialWHive(4, 4, 2, tuple),
        lambda history: lin.check_w_hive(history, 4, 4, 2, tuple),
    ),
}


@pytest.mark.parametrize("structure", FAST)
def test_the_fast_checkers_judge_as_the_general_one_does(structure):
    sequential, fast = FAST[structure]
    verdicts = Counter()

    @given(histories(sequential))
    @settings(max_examples=settings.default.max_examples * 3)
    def judge(history):
        verdict, quick = check(history, sequential), fast(history)
        assert verdict.linearizable is quick.linearizable, f"{verdict}\n{quick}"
        verdicts[verdict.linearizable] += 1

    judge()
    assert min(verdicts[True], verdicts[False]) > sum(verdicts.values()) / 10, verdicts


@pytest.mark.parametrize("structure", FAST)
def test_real_runs_are_accepted_whatever_overlaps(structure):
    sequential, fast = FAST[structure]

    @given(histories(sequential, right=True))
    def judge(history):
        assert check(history, sequential)
        assert fast(history)

    judge()


LONG = {
    "general, t_gate": (1000, long_gate, lambda history: check(history, SequentialTGate(2))),
    "general, w_hive": (1000, long_hive, lambda history: check(history, SequentialWHive(2, 1, 2))),
    "fast, t_gate": (8000, long_gate, lambda history: lin.check_t_gate(history, 2)),
    "fast, w_hive": (8000, long_hive, lambda history: lin.check_w_hive(history, 2, 1, 2)),
}


@pytest.mark.parametrize("name", LONG)
def test_long_histories_and_one_wrong_answer_in_them(name):
    rounds, make, judge = LONG[name]
    history = make(rounds)
    assert judge(history)
    gets = [i for i, call in enumerate(history) if call.name.startswith("get") and call.invoked > 9 * rounds]
    given = next(i for i in gets if history[i].result is not None)
    denied = next(i for i in gets if history[i].result is None)
    for i, answer in [(given, None), (denied, history[given].result), (denied, lin.END)]:
        verdict = judge([*history[:i], replace(history[i], result=answer), *history[i + 1 :]])
        assert not verdict
        assert 0 <= verdict.culprit.invoked - history[i].invoked < 20


# ---- deliberately broken structures ----


class TiesByArrival(SequentialTGate):
    def _promise(self, state, call):
        after = super()._promise(state, call)
        arrived = (*state.waiting, (*call.args[1:2], call.args[0], call.args[2])) if call.name == "insert" else ()
        return after._replace(waiting=tuple(sorted(arrived, key=lambda t: t[0]))) if arrived else after


class HoldsBackTheLast(SequentialTGate):
    """The printed rule: a tuple waits for another one of its own input."""

    def _holding(self, latest, found):
        return next((k for k, promise in enumerate(latest) if promise <= found[0]), None)


class UnstartedInputsDoNotHoldBack(SequentialTGate):
    def _holding(self, latest, found):
        return super()._holding([promise if promise >= 0 else 99 for promise in latest], found)


class ForgetsAReader(SequentialTGate):
    """All readers share one position."""

    def _had(self, state, _reader):
        return state._replace(waiting=state.waiting[1:])


class WindowsLeaveEarly(SequentialWHive):
    def _get(self, state, call):
        after = super()._get(state._replace(latest=tuple(p + 1 for p in state.latest)), call)
        return after if isinstance(after, Refusal) else after._replace(latest=state.latest)


class WindowsLeaveLate(SequentialWHive):
    def _get(self, state, call):
        after = super()._get(state._replace(latest=tuple(p - 1 for p in state.latest)), call)
        return after if isinstance(after, Refusal) else after._replace(latest=state.latest)


class LosesATie(SequentialWHive):
    def _promise(self, state, call):
        after = super()._promise(state, call)
        return after._replace(tuples=tuple({t[0]: t for t in after.tuples}.values()))


BROKEN = [
    (TiesByArrival(2), FAST["t_gate"]),
    (HoldsBackTheLast(2), FAST["t_gate"]),
    (UnstartedInputsDoNotHoldBack(2), FAST["t_gate"]),
    (ForgetsAReader(3, 2), FAST["t_gate, 3 inputs, 2 readers"]),
    (WindowsLeaveEarly(3, 2, 2), FAST["w_hive, windows overlap"]),
    (WindowsLeaveLate(3, 2, 2), FAST["w_hive, windows overlap"]),
    (LosesATie(3, 2, 2), FAST["w_hive, windows overlap"]),
]


@pytest.mark.parametrize(("broken", "sound"), BROKEN, ids=[type(b).__name__ for b, _ in BROKEN])
def test_a_broken_structure_is_found_out(broken, sound):
    sequential, fast = sound
    unshrunk = settings(phases=[Phase.generate], max_examples=2000)
    history = find(histories(broken, right=True), lambda h: not check(h, sequential), settings=unshrunk)
    assert not fast(history)
