"""The checker of histories against known answers and brute force, the fast checkers against the general one."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from dataclasses import replace

import pytest
from histories import calls, explained, in_order, long_gate, split, stamped
from hypothesis import given, settings
from hypothesis import strategies as st

from pystream.verify import linearizability as lin
from pystream.verify.linearizability import Call, Refusal, SequentialQueue, SequentialTGate, SequentialWinSet, check


class Register:
    """A read-write register with compare-and-swap; starts with 0."""

    def initial(self):
        return 0

    def step(self, state, call):
        if call.name == "write":
            return call.args[0]
        if call.name == "swap":
            right = state == call.args[0]
            return (
                Refusal(f"it holds {state}") if call.result not in (right, None) else call.args[1] if right else state
            )
        return state if call.pending or call.result == state else Refusal(f"it holds {state}")


# ---- known answers ----

REGISTER = {
    "a read may see a write that overlaps": (
        True,
        calls(("a", "write", (1,), None, 0, 3), ("b", "read", (), 1, 1, 2)),
    ),
    "or not see it": (True, calls(("a", "write", (1,), None, 0, 3), ("b", "read", (), 0, 1, 2))),
    "a read after a write sees it": (False, calls(("a", "write", (1,), None, 0, 1), ("b", "read", (), 0, 2, 3))),
    "once seen by one it is seen by all": (
        False,
        calls(("a", "write", (1,), None, 0, 9), ("b", "read", (), 1, 1, 2), ("c", "read", (), 0, 3, 4)),
    ),
    "two readers must agree on the order of two writes": (
        False,
        calls(
            ("a", "write", (1,), None, 0, 3),
            ("b", "write", (2,), None, 1, 2),
            ("c", "read", (), 1, 4, 5),
            ("c", "read", (), 2, 6, 7),
        ),
    ),
    "one of two swaps wins": (
        True,
        calls(("a", "swap", (0, 1), True, 0, 3), ("b", "swap", (0, 2), False, 1, 2)),
    ),
    "not both": (False, calls(("a", "swap", (0, 1), True, 0, 3), ("b", "swap", (0, 2), True, 1, 2))),
    "a pending write may have taken effect": (
        True,
        calls(("a", "write", (1,), None, 0, None), ("b", "read", (), 1, 1, 2)),
    ),
    "or not yet": (
        True,
        calls(("a", "write", (1,), None, 0, None), ("b", "read", (), 0, 1, 2), ("b", "read", (), 1, 3, 4)),
    ),
    "but not be undone": (
        False,
        calls(("a", "write", (1,), None, 0, None), ("b", "read", (), 1, 1, 2), ("b", "read", (), 0, 3, 4)),
    ),
    "nor happen before it began": (
        False,
        calls(("b", "read", (), 1, 0, 1), ("a", "write", (1,), None, 2, None)),
    ),
    "equal stamps overlap": (True, calls(("a", "write", (1,), None, 0, 1), ("b", "read", (), 0, 1, 2))),
}

QUEUE = {
    "two enqueues that overlap come out in either order": (
        True,
        calls(
            ("a", "enqueue", (1,), None, 0, 3),
            ("b", "enqueue", (2,), None, 1, 2),
            ("a", "dequeue", (), 2, 4, 5),
            ("b", "dequeue", (), 1, 6, 7),
        ),
    ),
    "one after the other come out in that order": (
        False,
        calls(("a", "enqueue", (1,), None, 0, 1), ("b", "enqueue", (2,), None, 2, 3), ("a", "dequeue", (), 2, 4, 5)),
    ),
    "a value comes out once": (
        False,
        calls(("a", "enqueue", (1,), None, 0, 1), ("a", "dequeue", (), 1, 2, 5), ("b", "dequeue", (), 1, 3, 4)),
    ),
    "empty only when it is": (
        False,
        calls(("a", "enqueue", (1,), None, 0, 1), ("a", "is_empty", (), True, 2, 3), ("a", "dequeue", (), 1, 4, 5)),
    ),
    "empty, said by a call that began in time": (
        True,
        calls(("b", "dequeue", (), None, 0, 9), ("a", "enqueue", (1,), None, 1, 2), ("a", "peek", (), 1, 3, 4)),
    ),
    "a peek sees the front": (
        False,
        calls(("a", "enqueue", (1,), None, 0, 1), ("a", "enqueue", (2,), None, 2, 3), ("b", "peek", (), 2, 4, 5)),
    ),
    "a failed call changes nothing": (
        True,
        calls(("a", "enqueue", (1,), lin.NO_MEMORY, 0, 1), ("a", "dequeue", (), None, 2, 3)),
    ),
}


@pytest.mark.parametrize("name", REGISTER)
def test_registers(name):
    expected, history = REGISTER[name]
    assert check(history, Register()).linearizable is expected


@pytest.mark.parametrize("name", QUEUE)
def test_queues(name):
    expected, history = QUEUE[name]
    assert check(history, SequentialQueue()).linearizable is expected


def test_a_bounded_queue_says_full_when_it_is_or_may_look_so():
    history = calls(("a", "enqueue", (1,), None, 0, 1), ("a", "enqueue", (2,), lin.FULL, 2, 3))
    assert check(history, SequentialQueue(room=1))
    assert not check(history, SequentialQueue(room=2))
    assert check(history, SequentialQueue(room=2, early=1))
    assert not check(history, SequentialQueue())
    assert not check([*history, *calls(("a", "enqueue", (3,), None, 4, 5))], SequentialQueue(room=1))


def test_a_window_set_gives_all_callers_the_same_window():
    offers = calls(("a", "find_or_insert", ("k", 1), 2, 0, 3), ("b", "find_or_insert", ("k", 2), 2, 1, 2))
    assert check(offers, SequentialWinSet())
    assert check(
        [*offers, *calls(("c", "find", ("k",), 2, 4, 5), ("c", "find", ("m",), None, 6, 7))], SequentialWinSet()
    )
    assert not check([*offers, *calls(("c", "find", ("k",), None, 4, 5))], SequentialWinSet())
    assert not check([*offers, *calls(("c", "find_or_insert", ("k", 3), 3, 4, 5))], SequentialWinSet())


@pytest.mark.parametrize(
    ("expected", "answers"),
    [
        (True, [(4, 1, "b"), (5, 0, "a"), None]),
        (True, [(4, 1, "b"), None, (5, 0, "a")]),  # the heartbeat comes between the last two
        (True, [None, (4, 1, "b"), (5, 0, "a")]),
        (False, [(5, 0, "a"), (4, 1, "b"), None]),
        (False, [(4, 1, "b"), (5, 0, "A"), None]),
        (False, [(4, 1, "b"), (5, 0, "a"), lin.END]),
    ],
)
def test_t_gate_by_hand(expected, answers):
    history = calls(
        (0, "insert", (0, 5, "a"), None, 0, 1),
        (1, "insert", (1, 4, "b"), None, 2, 7),
        (1, "heartbeat", (1, 5), None, 8, 20),
    )
    history += [Call("r", "get", (0,), answer, 6 + 3 * i, 7 + 3 * i) for i, answer in enumerate(answers)]
    assert check(history, SequentialTGate(2)).linearizable is expected
    assert lin.check_t_gate(history, 2).linearizable is expected


# ---- against brute force ----

VALUE = st.integers(1, 2)
OPERATIONS = {
    "register": st.one_of(
        st.builds(lambda v: ("write", (v,), None), VALUE),
        st.builds(lambda v: ("read", (), v), st.integers(0, 2)),
        st.builds(lambda a, b, r: ("swap", (a, b), r), VALUE, VALUE, st.booleans()),
    ),
    "queue": st.one_of(
        st.builds(lambda v: ("enqueue", (v,), None), VALUE),
        st.builds(lambda v: ("enqueue", (v,), None), VALUE),
        st.builds(lambda v: ("dequeue", (), v), st.one_of(VALUE, st.none())),
        st.builds(lambda v: ("peek", (), v), st.one_of(VALUE, st.none())),
        st.builds(lambda v: ("is_empty", (), v), st.booleans()),
    ),
    "win_set": st.one_of(
        st.builds(lambda k, w, r: ("find_or_insert", (k, w), r), VALUE, VALUE, VALUE),
        st.builds(lambda k, r: ("find", (k,), r), VALUE, st.one_of(VALUE, st.none())),
    ),
}
SEQUENTIAL = {"register": Register(), "queue": SequentialQueue(), "win_set": SequentialWinSet()}


class ByKey:
    """A whole winset as one object, for brute force: SequentialWinSet itself is one key."""

    def initial(self):
        return ()

    def step(self, state, call):
        windows = dict(state)
        after = SequentialWinSet().step(windows.get(call.args[0]), call)
        return after if isinstance(after, Refusal) else tuple(sorted({**windows, call.args[0]: after}.items()))


@pytest.mark.parametrize("structure", OPERATIONS)
def test_the_general_checker_judges_as_brute_force_does(structure):
    sequential = SEQUENTIAL[structure]
    whole = ByKey() if structure == "win_set" else sequential
    verdicts = Counter()

    @given(st.data())
    @settings(max_examples=settings.default.max_examples * 3)
    def judge(data):
        operations = data.draw(st.lists(OPERATIONS[structure], min_size=2, max_size=6))
        history = data.draw(stamped(split(data.draw, operations, ["a", "b", "c"])))
        verdict = check(history, sequential)
        assert verdict.linearizable is explained(history, whole)
        if verdict:
            assert in_order(verdict.order, whole)
            assert {c.invoked for c in history if not c.pending} <= {c.invoked for c in verdict.order}
        verdicts[verdict.linearizable] += 1

    judge()
    assert min(verdicts[True], verdicts[False]) > sum(verdicts.values()) / 10, verdicts


class Last:
    """A stack that calls itself a queue, slow enough for threads to meet."""

    def __init__(self):
        self.values = []

    def enqueue(self, value):
        self.values.append(value)

    def dequeue(self):
        return self.values.pop() if self.values else None


class First(Last):
    def dequeue(self):
        try:
            return self.values.pop(0)
        except IndexError:
            return None


def recorded(queue):
    """Three threads that use a queue of their own making."""
    recorder = lin.Recorder()

    def work(me):
        for i in range(4):
            recorder.call(me, "enqueue", ((me, i),), lambda i=i: queue.enqueue((me, i)))
            recorder.call(me, "dequeue", (), queue.dequeue)

    threads = [threading.Thread(target=work, args=(t,)) for t in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    recorder.call("main", "enqueue", (1,), lambda: queue.enqueue(1))
    recorder.call("main", "enqueue", (2,), lambda: queue.enqueue(2))
    recorder.call("main", "dequeue", (), queue.dequeue)
    return recorder.history()


def test_recorded_python_threads():
    history = recorded(First())
    assert len(history) == 27
    assert check(history, SequentialQueue())
    assert not check(recorded(Last()), SequentialQueue())


def test_a_call_that_raises_is_recorded_as_pending():
    recorder = lin.Recorder()
    with pytest.raises(ZeroDivisionError):
        recorder.call("a", "write", (1,), lambda: 1 / 0)
    assert recorder.call("b", "read", (), lambda: 1) == 1
    assert [call.pending for call in recorder.history()] == [True, False]
    assert check(recorder.history(), Register())


# ---- what people see ----


def test_the_report_shows_who_did_what_and_why_it_cannot_be():
    history = calls(
        ("a", "enqueue", (1,), None, 0, 1),
        ("b", "enqueue", (2,), None, 2, 5),
        ("a", "dequeue", (), 2, 3, 4),
        ("c", "peek", (), 1, 6, None),
    )
    verdict = check(history, SequentialQueue())
    assert verdict.report() == REPORT
    assert verdict.culprit == history[2]
    assert verdict.order == [history[0]]


REPORT = """\
not linearizable: no place for dequeue() = 2 by 'a'

          a           b
       0  enqueue(1)
       1  = None
       2              enqueue(2)
       3  dequeue()   |
       4  = 2 ???     |

1. dequeue answered 2 where the queue is (1,)
   after
     'a': enqueue(1) = None
   the state is (1,)

2. dequeue answered 2 where the queue is (1, 2)
   after
     'a': enqueue(1) = None
     'b': enqueue(2) = None
   the state is (1, 2)"""


def test_a_long_report_shows_the_end():
    history = long_gate(100)
    report = check([*history[:-1], replace(history[-1], result=lin.END)], SequentialTGate(2)).report()
    assert "moments before)" in report
    assert "other calls and" in report
    assert len(report.splitlines()) < 100


def test_the_search_gives_up_with_an_error():
    writes = [Call(i, "write", (i,), None, 0, 2) for i in range(40)]
    with pytest.raises(lin.SearchLimitError, match="undecided after 5,000 configurations of a history of 41 calls"):
        check([*writes, Call("r", "read", (), 99, 0, 2)], Register(), limit=5000)


def test_histories_that_cannot_be_are_refused():
    with pytest.raises(ValueError, match="returned at 1, before 2"):
        check(calls(("a", "read", (), 0, 2, 1)), Register())
    gets = calls(("a", "get", (0,), None, 0, 2), ("b", "get", (0,), None, 1, 3))
    assert check(gets, SequentialTGate(1))
    with pytest.raises(ValueError, match="overlap: one thread at a time per input and per reader"):
        lin.check_t_gate(gets, 1)


def test_the_example_of_the_documentation_runs():
    example = lin.__doc__.split("\n\n")[2:4]
    exec("\n".join(line[4:] for part in example for line in part.splitlines()), {})  # noqa: S102 - our own words


def test_the_checker_needs_nothing_but_the_standard_library():
    code = "import sys; import pystream.verify.linearizability; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not {"pyarrow", "numpy", "cffi", "pystream._core"} & set(out.split())
