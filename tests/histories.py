"""Random histories of calls, and brute force to judge them by."""

from __future__ import annotations

import itertools
from dataclasses import replace
from itertools import pairwise

from hypothesis import strategies as st

from pystream.verify import linearizability as lin
from pystream.verify.linearizability import Call, Refusal, SequentialTGate


def calls(*rows):
    """Calls from (thread, name, args, result, invoked, returned)."""
    return [Call(*row) for row in rows]


def explained(history, sequential) -> bool:
    """By trying all orders of the calls, with every choice of the pending ones."""
    done = [c for c in history if not c.pending]
    pending = [c for c in history if c.pending]
    for n in range(len(pending) + 1):
        for chosen in itertools.combinations(pending, n):
            if any(in_order(order, sequential) for order in itertools.permutations([*done, *chosen])):
                return True
    return False


def in_order(order, sequential) -> bool:
    state = sequential.initial()
    for i, call in enumerate(order):
        if any(not later.pending and later.returned < call.invoked for later in order[i:]):
            return False
        state = sequential.step(state, call)
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


def answered(draw, sequential, order, wrong):
    """Run the calls one after the other in this order; gets get the right answer, but for the `wrong` one."""
    state, rows = sequential.initial(), {}
    for number, (thread, (name, args, result)) in enumerate(order):
        answer = result
        if name.startswith("get"):
            answer = right_answer(sequential, state, Call(thread, name, args, None, 0, 0))
            call = Call(thread, name, args, None, 0, None)
            if number == wrong:
                answer = draw(st.sampled_from([None, lin.END, corrupted(answer)]))
        else:
            call = Call(thread, name, args, result, 0, 0)
        state = sequential.step(state, call)
        assert not isinstance(state, Refusal), state.why
        rows.setdefault(thread, []).append((name, args, answer))
    return rows


def right_answer(sequential, state, get):
    """What the sequential object would answer to a get: the one thing that it does not refuse."""
    if isinstance(sequential, SequentialTGate):
        candidates = [*state.waiting, lin.END, None]
    else:
        start = sequential._next_start(state)
        candidates = [lin.END, None] if start is None else [(start, sequential._winset(state, start)), None]
    return next(a for a in candidates if not isinstance(sequential.step(state, replace(get, result=a)), Refusal))


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
def histories(draw, sequential, right=False):
    """A run of producers and readers: right, or with a wrong answer, or with calls that overlap in other ways."""
    gate = isinstance(sequential, SequentialTGate)
    numbers = itertools.count()
    extra = (lambda _: (next(numbers),)) if gate else (lambda d: (d(st.sampled_from("ab")), d(st.integers(1, 3))))
    rows = {
        k: producer_calls(draw, "insert" if gate else "update", k, extra)
        for k in range(len(sequential.initial().latest))
    }
    for reader in range(sequential.readers if gate else 1):
        get = ("get", (reader,), None) if gate else ("get_next_winset", (), None)
        rows[f"r{reader}"] = [get] * draw(st.integers(1, 5))
    turns = draw(st.permutations([thread for thread, its in rows.items() for _ in its]))
    left = {thread: iter(its) for thread, its in rows.items()}
    wrong = -1 if right else draw(st.integers(-1, len(turns)))
    rows = answered(draw, sequential, [(thread, next(left[thread])) for thread in turns], wrong)
    return draw(stretched(rows, turns) if right or draw(st.booleans()) else stamped(rows))


def long_gate(rounds):
    """Two inserts that overlap, then what is ready: the second one of the round before, the first one, nothing."""
    history = []
    for i in range(rounds):
        answers = [(i - 1, 1, -i + 1), (i, 0, i), None][i == 0 :]
        history += calls(
            (0, "insert", (0, i, i), None, 9 * i, 9 * i + 2), (1, "insert", (1, i, -i), None, 9 * i + 1, 9 * i + 3)
        )
        history += [Call("r", "get", (0,), a, 9 * i + 4 + n, 9 * i + 5 + n) for n, a in enumerate(answers)]
    return [replace(c, invoked=2 * c.invoked, returned=2 * c.returned - 1) for c in history]


def long_hive(rounds):
    """Two updates that overlap, then the window that they complete, then nothing."""
    history = []
    for i in range(rounds):
        answers = [(i - 2, {"k": 4}), None][i < 2 :]
        history += [Call(t, "update", (t, i, "k", 1), None, 9 * i + t, 9 * i + t + 2) for t in (0, 1)]
        history += [Call("r", "get_next_winset", (), a, 9 * i + 4 + n, 9 * i + 5 + n) for n, a in enumerate(answers)]
    return [replace(c, invoked=2 * c.invoked, returned=2 * c.returned - 1) for c in history]
