"""Tell whether a recorded history of a concurrent structure is linearizable.

A history is a list of calls: who called what, what came back, and when the call began and ended (integers from one
clock that all threads share; only their order counts). It is linearizable when every call can be given a moment between
its beginning and its end such that the calls, one after the other at these moments, are what a sequential object
allows.

    from pystream.verify.linearizability import Call, SequentialQueue, check

    history = [
        Call(thread="a", name="enqueue", args=(1,), result=None, invoked=0, returned=3),
        Call(thread="b", name="dequeue", args=(), result=None, invoked=1, returned=2),  # found nothing: came first
        Call(thread="b", name="dequeue", args=(), result=1, invoked=4, returned=5),
    ]
    verdict = check(history, SequentialQueue())
    assert verdict, verdict.report()

A sequential object of your own has two methods (`Sequential`): `initial()` gives a state, `step(state, call)` the state
after the call, or a `Refusal` that says why the call cannot come next with this result. `Recorder` records histories of
Python threads. `check_t_gate` and `check_w_hive` decide long histories of these two structures in near-linear time.
"""

from pystream.verify.linearizability.checker import Refusal, SearchLimitError, Sequential, SequentialParts, check
from pystream.verify.linearizability.fast import check_t_gate, check_w_hive
from pystream.verify.linearizability.history import Call, Recorder
from pystream.verify.linearizability.sequential import (
    CLOSED,
    DISORDER,
    END,
    FULL,
    NO_MEMORY,
    SequentialPaneHive,
    SequentialQueue,
    SequentialRunGate,
    SequentialTGate,
    SequentialWHive,
    SequentialWinSet,
)
from pystream.verify.linearizability.verdict import Attempt, Verdict

__all__ = [
    "CLOSED",
    "DISORDER",
    "END",
    "FULL",
    "NO_MEMORY",
    "Attempt",
    "Call",
    "Recorder",
    "Refusal",
    "SearchLimitError",
    "Sequential",
    "SequentialPaneHive",
    "SequentialParts",
    "SequentialQueue",
    "SequentialRunGate",
    "SequentialTGate",
    "SequentialWHive",
    "SequentialWinSet",
    "Verdict",
    "check",
    "check_t_gate",
    "check_w_hive",
]
