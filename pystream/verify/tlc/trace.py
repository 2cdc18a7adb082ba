"""A counterexample told for a person: one line a step, one column a thread.

The thread that acts is the one whose pc changed, and what it did is the label it stood at. Steps that move no pc (a
crash, a spin) are told by TLC's name of the action, in the column of the thread whose part of the state changed.
"""

import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pystream.verify.tlc.messages import Message
from pystream.verify.tlc.result import Kind, Result
from pystream.verify.tlc.values import Function, Set, Value, changes, parse_value

_INITIAL_CODES = frozenset({2107, 2108})
_STATE, _STUTTERING, _BACK = 2217, 2218, 2122
_HEAD = re.compile(r"(\d+): (?:<(\w+)|.*)")
_VARIABLE = re.compile(r"^/\\ (\w+) = ", re.MULTILINE)


@dataclass(frozen=True)
class State:
    """A state of a counterexample, and the action that led to it (empty for the first)."""

    number: int
    action: str
    variables: Mapping[str, Value]


@dataclass(frozen=True)
class Step:
    """One line: which thread did what, and what changed."""

    number: int
    thread: str | None
    label: str
    changed: tuple[str, ...]


@dataclass(frozen=True)
class Trace:
    """A counterexample: its threads, where each starts, its steps, and how it ends."""

    threads: tuple[str, ...]
    start: Mapping[str, str]
    steps: tuple[Step, ...]
    end: str


def read_trace(result: Result, labels: Collection[str]) -> Trace | None:
    """Return the counterexample that TLC printed, if it did; `labels` are all labels of the algorithms."""
    states = list(_states(result.messages))
    if not states:
        return None
    start = _pcs(states[0])
    steps = tuple(_step(before, after, labels) for before, after in itertools.pairwise(states))
    return Trace(tuple(start), start, steps, _end(result))


def _states(messages: Iterable[Message]) -> Iterable[State]:
    for message in messages:
        if message.code == _STATE:
            head, _, body = message.body.partition("\n")
            found = _HEAD.match(head)
            yield State(int(found[1]) if found else 0, (found and found[2]) or "", _variables(body))
        elif message.code in _INITIAL_CODES:
            yield State(1, "", _variables(message.body.partition("\n")[2]))


def _variables(body: str) -> dict[str, Value]:
    # A state of a single variable comes without its /\.
    text = body if body.startswith("/\\") else "/\\ " + body
    pieces = _VARIABLE.split(text)[1:]
    # TLC prints variables in an order of its own, which changes from module to module.
    return {name: parse_value(value) for name, value in sorted(zip(pieces[::2], pieces[1::2], strict=True))}


def _pcs(state: State) -> dict[str, str]:
    """Return where each thread stands; an algorithm without processes has one thread, a module without pc none."""
    pc = state.variables.get("pc")
    if isinstance(pc, Function):
        return {thread: str(label).strip('"') for thread, label in pc.entries.items()}
    return {"main": pc.strip('"')} if isinstance(pc, str) else {}


def _step(before: State, after: State, labels: Collection[str]) -> Step:
    stood, stands = _pcs(before), _pcs(after)
    moved = [thread for thread in stood if stood[thread] != stands[thread]]
    changed = tuple(
        change
        for name, value in after.variables.items()
        if name != "pc"
        for change in changes(name, before.variables.get(name, ""), value)
    )
    if len(moved) == 1:
        thread = moved[0]
        return Step(after.number, thread, _move(stood[thread], stands[thread], labels), changed)
    return Step(after.number, _guess(before, after, stood), after.action, changed)


def _move(label: str, target: str, labels: Collection[str]) -> str:
    """Return the label that was run, or, if the thread went where no label is, what became of it."""
    return label if target in labels or target == "Done" else f"{target} at {label}"


def _guess(before: State, after: State, stood: Mapping[str, str]) -> str | None:
    """Return the only thread at the action's label, or else the only one whose part of the state changed."""
    standing = [thread for thread, label in stood.items() if label == after.action]
    if len(standing) == 1:
        return standing[0]
    touched = {
        thread
        for name, value in after.variables.items()
        for thread in _touched(before.variables.get(name, ""), value)
        if thread in stood
    }
    return touched.pop() if len(touched) == 1 else None


def _touched(old: Value, new: Value) -> Iterable[str]:
    if isinstance(old, Set) and isinstance(new, Set):
        return set(old.members) ^ set(new.members)
    # A sequence that grows or shrinks has positions, not threads.
    if isinstance(old, Function) and isinstance(new, Function) and old.entries.keys() == new.entries.keys():
        return {key for key, value in new.entries.items() if old.entries[key] != value}
    return ()


def _end(result: Result) -> str:
    for message in result.messages:
        if message.code == _STUTTERING:
            return f"and nothing more happens: {result.outcome} is violated"
        if message.code == _BACK:
            return f"and for ever again from step {message.body.partition(':')[0]}: {result.outcome} is violated"
    if result.kind is Kind.DEADLOCK:
        return "no step is possible here: deadlock"
    if result.kind in (Kind.INVARIANT, Kind.PROPERTY):
        return f"{result.outcome} is violated here"
    return f"{result.kind}: {' '.join(result.detail.split())}"


def lines(trace: Trace) -> list[str]:
    """Return the trace as text: a heading, the start, a line a step, the end."""
    rows = [["step", *(f"thread {thread}" for thread in trace.threads), "what changed"]]
    rows.append(["1", *trace.start.values(), "(start)"])
    rows += [_row(step, trace.threads) for step in trace.steps]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    told = [_aligned(row, widths) for row in rows]
    return [*told, f"{'':{widths[0]}}  {trace.end}"]


def _row(step: Step, threads: Sequence[str]) -> list[str]:
    columns = [step.label if thread == step.thread else "·" for thread in threads]
    changed = list(step.changed) or ["-"]
    if step.thread is None:
        changed.insert(0, f"{step.label or 'step'}:")
    return [str(step.number), *columns, "  ".join(changed)]


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    number, *columns = row
    aligned = [f"{column:{width}}" for column, width in zip(columns, widths[1:], strict=True)]
    return "  ".join([f"{number:>{widths[0]}}", *aligned]).rstrip()
