"""The checker of histories against known answers and brute force, the fast checkers against the general one."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pystream import linearizability as lin
from pystream.linearizability import Call, QueueModel, Refusal, TGateModel, WHiveModel, WinSetModel, check


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


def calls(*rows):
    """Calls from (thread, name, args, result, invoked, returned)."""
    return [Call(*row) for row in rows]


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
    assert check(history, QueueModel()).linearizable is expected


def test_a_bounded_queue_says_full_when_it_is_or_may_look_so():
    history = calls(("a", "enqueue", (1,), None, 0, 1), ("a", "enqueue", (2,), lin.FULL, 2, 3))
    assert check(history, QueueModel(room=1))
    assert not check(history, QueueModel(room=2))
    assert check(history, QueueModel(room=2, early=1))
    assert not check(history, QueueModel())
    assert not check([*history, *calls(("a", "enqueue", (3,), None, 4, 5))], QueueModel(room=1))


def test_a_window_set_gives_all_callers_the_same_window():
    offers = calls(("a", "find_or_insert", ("k", 1), 2, 0, 3), ("b", "find_or_insert", ("k", 2), 2, 1, 2))
    assert check(offers, WinSetModel())
    assert check([*offers, *calls(("c", "find", ("k",), 2, 4, 5), ("c", "find", ("m",), None, 6, 7))], WinSetModel())
    assert not check([*offers, *calls(("c", "find", ("k",), None, 4, 5))], WinSetModel())
    assert not check([*offers, *calls(("c", "find_or_insert", ("k", 3), 3, 4, 5))], WinSetModel())


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
    assert check(history, TGateModel(2)).linearizable is expected
    assert lin.check_t_gate(history, 2).linearizable is expected


# ---- against brute force ----


def explained(history, model) -> bool:
    """By trying all orders of the calls, with every choice of the pending ones."""
    done = [c for c in history if not c.pending]
    pending = [c for c in history if c.pending]
    for n in range(len(pending) + 1):
        for chosen in itertools.combinations(pending, n):
            if any(in_order(order, model) for order in itertools.permutations([*done, *chosen])):
                return True
    return False


def in_order(order, model) -> bool:
    state = model.initial()
    for i, call in enumerate(order):
        if any(not later.pending and later.returned < call.invoked for later in order[i:]):
            return False
        state = model.step(state, call)
        if isinstance(state, Refusal):
            return False
    return True


@st.composite
def stamped(draw, per_thread):
    """Give each thread's calls, in order, stamps of random overlap; the last calls of some threads are pending."""
    moments = [thread for thread, rows in per_thread.items() for _ in range(2 * len(rows))]
    stamps = {thread: [] for thread in per_thread}
    for stamp, thread in enumerate(draw(st.permutations(moments))):
        stamps[thread].append(stamp)
    history = []
    for thread, rows in per_thread.items():
        times = list(zip(stamps[thread][::2], stamps[thread][1::2], strict=True))
        history += [Call(thread, *row, *time) for row, time in zip(rows, times, strict=True)]
        if rows and draw(st.integers(0, 5)) == 0:
            history[-1] = replace(history[-1], result=None, returned=None)
    return sorted(history, key=lambda c: c.invoked)


def split(draw, operations, threads):
    rows = {t: [] for t in threads}
    for operation in operations:
        rows[draw(st.sampled_from(threads))].append(operation)
    return rows


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
MODELS = {"register": Register(), "queue": QueueModel(), "win_set": WinSetModel()}


class ByKey:
    """A whole winset as one object, for brute force: WinSetModel itself is one key."""

    def initial(self):
        return ()

    def step(self, state, call):
        windows = dict(state)
        after = WinSetModel().step(windows.get(call.args[0]), call)
        return after if isinstance(after, Refusal) else tuple(sorted({**windows, call.args[0]: after}.items()))


@pytest.mark.parametrize("structure", OPERATIONS)
def test_the_general_checker_judges_as_brute_force_does(structure):
    model = MODELS[structure]
    whole = ByKey() if structure == "win_set" else model
    verdicts = Counter()

    @given(st.data())
    @settings(max_examples=settings.default.max_examples * 3)
    def judge(data):
        operations = data.draw(st.lists(OPERATIONS[structure], min_size=2, max_size=6))
        history = data.draw(stamped(split(data.draw, operations, ["a", "b", "c"])))
        verdict = check(history, model)
        assert verdict.linearizable is explained(history, whole)
        if verdict:
            assert in_order(verdict.order, whole)
            assert {c.invoked for c in history if not c.pending} <= {c.invoked for c in verdict.order}
        verdicts[verdict.linearizable] += 1

    judge()
    assert min(verdicts[True], verdicts[False]) > sum(verdicts.values()) / 10, verdicts


# ---- T-Gate and W-Hive: the fast checkers against the general one ----


def producer_calls(draw, name, who, extra):
    """What one producer does: timestamps that never fall, now and then a heartbeat, a mistake or a failure."""
    rows, ts, closed = [], 0, False
    for _ in range(draw(st.integers(1, 4))):
        ts += draw(st.sampled_from([0, 0, 1, 1, 2, 4]))
        kind = draw(st.sampled_from([name, name, name, name, "heartbeat", "heartbeat", "close", "late", "failed"]))
        answer = lin.CLOSED if closed else {"late": lin.DISORDER, "failed": lin.NO_MEMORY}.get(kind)
        if kind == "close":
            rows.append(("close", (who,), None))
            closed = True
        elif kind == "heartbeat":
            rows.append(("heartbeat", (who, ts), answer))
        else:
            rows.append((name, (who, -1 if kind == "late" else ts, *extra(draw)), answer))
    return [*rows, ("close", (who,), None)] if draw(st.booleans()) else rows


def answered(draw, model, order, wrong):
    """Run the calls one after the other in this order; gets get the model's answer, but for the `wrong` one."""
    state, rows = model.initial(), {}
    for number, (thread, (name, args, result)) in enumerate(order):
        answer = result
        if name.startswith("get"):
            answer = right_answer(model, state, Call(thread, name, args, None, 0, 0))
            call = Call(thread, name, args, None, 0, None)
            if number == wrong:
                answer = draw(st.sampled_from([None, lin.END, corrupted(answer)]))
        else:
            call = Call(thread, name, args, result, 0, 0)
        state = model.step(state, call)
        assert not isinstance(state, Refusal), state.why
        rows.setdefault(thread, []).append((name, args, answer))
    return rows


def right_answer(model, state, get):
    """What the model would answer to a get: the one thing that it does not refuse."""
    if isinstance(model, TGateModel):
        candidates = [*state.waiting, lin.END, None]
    else:
        start = model._next_start(state)
        candidates = [lin.END, None] if start is None else [(start, model._winset(state, start)), None]
    return next(a for a in candidates if not isinstance(model.step(state, replace(get, result=a)), Refusal))


def corrupted(answer):
    return (answer[0] + 1, *answer[1:]) if isinstance(answer, tuple) else (0, 0, "nobody's")


@st.composite
def stretched(draw, rows, turns):
    """Each call took effect at its turn; its stamps lie around that, as far as the thread's other calls allow."""
    history = []
    for thread, its in rows.items():
        effects = [turn for turn, t in enumerate(turns) if t == thread]
        begins, ends = [effects[0] - draw(st.integers(0, 5))], []
        for effect, after in pairwise(effects):
            ends.append(draw(st.integers(effect, after - 1)))
            begins.append(draw(st.integers(ends[-1] + 1, after)))
        ends.append(effects[-1] + draw(st.integers(0, 5)))
        stamps = [(4 * b - 1, 4 * e + 1) for b, e in zip(begins, ends, strict=True)]
        history += [Call(thread, *row, *stamp) for row, stamp in zip(its, stamps, strict=True)]
        if draw(st.integers(0, 5)) == 0:
            history[-1] = replace(history[-1], result=None, returned=None)
    return history


@st.composite
def histories(draw, model, right=False):
    """A run of producers and readers: right, or with a wrong answer, or with calls that overlap in other ways."""
    gate = isinstance(model, TGateModel)
    numbers = itertools.count()
    extra = (lambda _: (next(numbers),)) if gate else (lambda d: (d(st.sampled_from("ab")), d(st.integers(1, 3))))
    rows = {
        k: producer_calls(draw, "insert" if gate else "update", k, extra) for k in range(len(model.initial().latest))
    }
    for reader in range(model.readers if gate else 1):
        get = ("get", (reader,), None) if gate else ("get_next_winset", (), None)
        rows[f"r{reader}"] = [get] * draw(st.integers(1, 5))
    turns = draw(st.permutations([thread for thread, its in rows.items() for _ in its]))
    left = {thread: iter(its) for thread, its in rows.items()}
    wrong = -1 if right else draw(st.integers(-1, len(turns)))
    rows = answered(draw, model, [(thread, next(left[thread])) for thread in turns], wrong)
    return draw(stretched(rows, turns) if right or draw(st.booleans()) else stamped(rows))


FAST = {
    "t_gate": (TGateModel(2), lambda history: lin.check_t_gate(history, 2)),
    "t_gate, 3 inputs, 2 readers": (TGateModel(3, 2), lambda history: lin.check_t_gate(history, 3, 2)),
    "w_hive, windows overlap": (WHiveModel(3, 2, 2), lambda history: lin.check_w_hive(history, 3, 2, 2)),
    "w_hive, gaps between windows": (WHiveModel(1, 2, 3), lambda history: lin.check_w_hive(history, 1, 2, 3)),
    "w_hive, values in order": (
        WHiveModel(4, 4, 2, tuple),
        lambda history: lin.check_w_hive(history, 4, 4, 2, tuple),
    ),
}


@pytest.mark.parametrize("structure", FAST)
def test_the_fast_checkers_judge_as_the_general_one_does(structure):
    model, fast = FAST[structure]
    verdicts = Counter()

    @given(histories(model))
    @settings(max_examples=settings.default.max_examples * 3)
    def judge(history):
        verdict, quick = check(history, model), fast(history)
        assert verdict.linearizable is quick.linearizable, f"{verdict}\n{quick}"
        verdicts[verdict.linearizable] += 1

    judge()
    assert min(verdicts[True], verdicts[False]) > sum(verdicts.values()) / 10, verdicts


@pytest.mark.parametrize("structure", FAST)
def test_real_runs_are_accepted_whatever_overlaps(structure):
    model, fast = FAST[structure]

    @given(histories(model, right=True))
    def judge(history):
        assert check(history, model)
        assert fast(history)

    judge()
