"""The structures as sequential objects: ReadyOrder, WindowOrder, WindowMap and Fifo of spec/ in Python.

Calls and results, as the checkers want them recorded; a producer's result is None when it did what it was asked to:

| object  | calls                                                                | results                         |
|---------|----------------------------------------------------------------------|---------------------------------|
| TGate   | insert(input, ts, payload), heartbeat(input, ts), close(input)       | None, DISORDER, CLOSED          |
|         | get(reader)                                                          | (ts, input, payload), None, END |
| WHive   | update(thread, ts, key, value), heartbeat(thread, ts), close(thread) | None, DISORDER, CLOSED          |
|         | get_next_winset()                                                    | (start, by_key), None, END      |
| Queue   | enqueue(value)                                                       | None, FULL                      |
|         | dequeue(), peek(); is_empty()                                        | value, None; bool               |
| WinSet  | find_or_insert(key, window), find(key)                               | the key's window, None          |

Class names begin with Sequential. RunGate and PaneHive have the calls of TGate and WHive but for what they say
themselves. `by_key` maps each key to its result. Any call may also answer NO_MEMORY and then has changed nothing, but
for an update of W-Hive: the tuple is in no window, but its timestamp counts as a heartbeat (csrc/windows/w_hive.h).
"""

from __future__ import annotations

import builtins
from bisect import bisect_right
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from pystream.verify.linearizability.checker import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from pystream.verify.linearizability.history import Call

DISORDER = "disorder"
CLOSED = "closed"
END = "end"
FULL = "full"
NO_MEMORY = "no memory"

_Tuple = TypeVar("_Tuple", bound=tuple[Any, ...])


def first_open_start(ts: int, size: int, advance: int) -> int:
    """Start of the first window that a tuple of this timestamp, or a later one, may fall into."""
    return max(0, (ts - size) // advance + 1) * advance


def failed(call: Call) -> bool:
    """Whether the call came back without memory."""
    return not call.pending and bool(call.result == NO_MEMORY)


def _refused(what: str, call: Call) -> Refusal:
    return Refusal(f"{call.name} answered {call.result!r} where {what}")


def _promised(latest: tuple[float, ...], who: int, ts: float) -> tuple[float, ...]:
    return (*latest[:who], max(ts, latest[who]), *latest[who + 1 :])


def _placed(tuples: tuple[_Tuple, ...], new: _Tuple) -> tuple[_Tuple, ...]:
    """The tuples, which are in the order of (ts, producer), and behind its equals the new one."""
    place = bisect_right(tuples, new[:2], key=lambda t: t[:2])
    return (*tuples[:place], new, *tuples[place:])


def producer_answer(latest: float, call: Call) -> str | None:
    """What insert, update, heartbeat or close must answer when the caller's latest promise is this one.

    A heartbeat that says nothing new changes nothing and is no mistake, and closing twice is closing.
    """
    if call.name == "close":
        return None
    if latest == inf:
        return CLOSED
    return DISORDER if call.args[1] < (0 if call.name == "heartbeat" else max(latest, 0)) else None


class GateState(NamedTuple):
    """The tuples that not every reader has had, in order; each input's promise; how many of them each reader had."""

    waiting: tuple[tuple[int, int, Any], ...]
    latest: tuple[float, ...]
    had: tuple[int, ...]


class HiveState(NamedTuple):
    """The tuples (ts, thread, key, value) of windows that have not come out, in order; promises; the last start out."""

    tuples: tuple[tuple[int, int, Any, Any], ...]
    latest: tuple[float, ...]
    last: int
    lost: frozenset[int] = frozenset()  # SequentialPaneHive only


_State = TypeVar("_State", GateState, HiveState)


class _Producers(Generic[_State]):
    """What T-Gate and W-Hive have in common: producers whose timestamps never fall, and a call that takes out."""

    def step(self, state: _State, call: Call) -> _State | Refusal:
        """Apply one call."""
        if failed(call) and call.name != "update":  # its timestamp counts all the same
            return state
        if call.name in ("get", "get_next_winset"):
            return self._get(state, call)
        right = producer_answer(state.latest[call.args[0]], call)
        if not (call.pending or call.result == right or failed(call)):
            who, latest = call.args[0], state.latest[call.args[0]]
            return _refused(f"it should answer {right!r}: {who} has promised {latest}", call)
        return state if right else self._promise(state, call)

    def _get(self, state: _State, call: Call) -> _State | Refusal:
        raise NotImplementedError

    def _promise(self, state: _State, call: Call) -> _State:
        """What a producer's call changes that does what it was asked to."""
        raise NotImplementedError


class SequentialTGate(_Producers[GateState]):
    """T-Gate: see spec/ReadyOrder.tla. Payloads must be hashable."""

    def __init__(self, inputs: int, readers: int = 1) -> None:
        self.inputs = inputs
        self.readers = readers

    def initial(self) -> GateState:
        """An empty gate; nothing promised."""
        return GateState((), (-1,) * self.inputs, (0,) * self.readers)

    def _promise(self, state: GateState, call: Call) -> GateState:
        input, *rest = call.args
        latest = _promised(state.latest, input, rest[0] if rest else inf)
        if call.name != "insert":
            return state._replace(latest=latest)
        ts, payload = rest
        return state._replace(waiting=_placed(state.waiting, (ts, input, payload)), latest=latest)

    def _get(self, state: GateState, call: Call) -> GateState | Refusal:
        reader = call.args[0]
        had = state.had[reader]
        found = state.waiting[had] if had < len(state.waiting) else None
        holding = None if found is None else self._holding(state.latest, found)
        if found is not None and holding is None:
            if call.pending or call.result == found:
                return self._had(state, reader)
            return _refused(f"{found} is ready and next", call)
        if call.pending or call.result is None:
            return state
        if found is not None:
            return _refused(f"{found} is next and held back by input {holding}: promised is {state.latest}", call)
        if call.result == END and min(state.latest) == inf:
            return state
        return _refused("there is nothing more to get, and not every input is closed", call)

    @staticmethod
    def _holding(latest: tuple[float, ...], found: tuple[int, int, Any]) -> int | None:
        """The first input that could still send something before this tuple."""
        return next((k for k, promise in enumerate(latest) if (promise, k) < found[:2]), None)

    @staticmethod
    def _had(state: GateState, reader: int) -> GateState:
        had = (*state.had[:reader], state.had[reader] + 1, *state.had[reader + 1 :])
        gone = builtins.min(had)
        return GateState(state.waiting[gone:], state.latest, tuple(n - gone for n in had))


class SequentialRunGate(SequentialTGate):
    """Run-Gate: T-Gate whose calls insert and get several tuples at one point.

    insert_run puts in n tuples, ts, ts + step, ts + 2 * step, ...; their payloads count up. get_run gives the tuples of
    one input, as (ts, payload) pairs: one at least, as many as it likes, all of them ready. get_block gives those of
    any inputs, as (ts, input, payload).
    """

    def step(self, state: GateState, call: Call) -> GateState | Refusal:
        """Apply one call."""
        if call.name in ("get_run", "get_block") and not failed(call):
            return self._get_many(state, call)
        return super().step(state, call)

    def _promise(self, state: GateState, call: Call) -> GateState:
        if call.name != "insert_run":
            return super()._promise(state, call)
        input, ts, step, n, payload = call.args
        for i in range(n):
            state = super()._promise(state, replace(call, name="insert", args=(input, ts + i * step, payload + i)))
        return state

    def _get_many(self, state: GateState, call: Call) -> GateState | Refusal:
        if call.pending or not isinstance(call.result, tuple):
            return self._get(state, call)
        tuples = call.result
        if call.name == "get_run":
            input, pairs = call.result
            tuples = tuple((ts, input, payload) for ts, payload in pairs)
        for found in tuples:
            after = self._get(state, replace(call, result=found))
            if isinstance(after, Refusal):
                return after
            state = after
        return state


class SequentialWHive(_Producers[HiveState]):
    """W-Hive: see spec/WindowOrder.tla.

    `function` makes a window's result out of the values of one key, in (ts, thread, position) order. Keys and values
    must be hashable.
    """

    def __init__(
        self, size: int, advance: int, threads: int, function: Callable[[Sequence[Any]], Any] = builtins.sum
    ) -> None:
        self.size = size
        self.advance = advance
        self.threads = threads
        self.function = function

    def initial(self) -> HiveState:
        """No window; nothing promised."""
        return HiveState((), (-1,) * self.threads, -1)

    def _promise(self, state: HiveState, call: Call) -> HiveState:
        thread, *rest = call.args
        latest = _promised(state.latest, thread, rest[0] if rest else inf)
        if call.name != "update" or failed(call):
            return state._replace(latest=latest)
        ts, key, value = rest
        return state._replace(tuples=_placed(state.tuples, (ts, thread, key, value)), latest=latest)

    def _get(self, state: HiveState, call: Call) -> HiveState | Refusal:
        start = self._next_start(state)
        if start is not None and builtins.min(state.latest) >= start + self.size:
            winset = (start, self._winset(state, start))
            if call.pending or call.result == winset:
                return self._out(state, start)
            return _refused(f"{winset} is complete and next", call)
        if call.pending or call.result is None:
            return state
        if start is not None:
            return _refused(f"window {start} is next and not complete: promised is {state.latest}", call)
        if call.result == END and builtins.min(state.latest) == inf:
            return state
        return _refused("there is no window left, and not every thread is closed", call)

    def _next_start(self, state: HiveState) -> int | None:
        """The first window after the last one out that exists."""
        after = (state.last // self.advance + 1) * self.advance
        starts = ((max(after, first_open_start(t[0], self.size, self.advance)), t[0]) for t in state.tuples)
        return next((start for start, ts in starts if start <= ts), None)

    def _winset(self, state: HiveState, start: int) -> dict[Any, Any]:
        values: dict[Any, list[Any]] = {}
        for ts, _, key, value in state.tuples:
            if start <= ts < start + self.size:
                values.setdefault(key, []).append(value)
        return {key: self.function(column) for key, column in values.items()}

    def _out(self, state: HiveState, start: int) -> HiveState:
        """Forget the tuples that lie in no later window, so that equal futures are equal states."""
        later = start + self.advance
        tuples = tuple(t for t in state.tuples if max(later, first_open_start(t[0], self.size, self.advance)) <= t[0])
        return state._replace(tuples=tuples, last=start)


class SequentialPaneHive(SequentialWHive):
    """Pane-Hive: W-Hive but for memory that runs out (csrc/slices/pane_hive.h).

    NO_MEMORY: nothing has changed. An update that ran out of memory half-way answers CLOSED, and so does every later
    call of that input. The tuple is in no window; whether its timestamp became known is open, so from then on there may
    be nothing to get although something is complete.
    """

    def step(self, state: HiveState, call: Call) -> HiveState | Refusal:
        """Apply one call."""
        if failed(call):
            return state
        if call.name == "get_next_winset":
            return state if state.lost and not call.pending and call.result is None else self._get(state, call)
        if call.args[0] in state.lost:
            return state if call.pending or call.result == CLOSED else _refused("its input was lost", call)
        if call.name == "update" and not call.pending and call.result == CLOSED:
            latest = _promised(state.latest, *call.args[:2])
            return state._replace(latest=latest, lost=state.lost | {call.args[0]})
        return super().step(state, call)


class SequentialQueue:
    """A first-in-first-out queue: see spec/Fifo.tla. Values must be hashable.

    With `room`, enqueue may answer FULL once so many values are in it, and up to `early` values before that (a thread
    in the middle of a call may keep a place from the others).
    """

    def __init__(self, room: int | None = None, early: int = 0) -> None:
        self.room = room
        self.early = early

    def initial(self) -> tuple[Any, ...]:
        """An empty queue."""
        return ()

    def step(self, state: tuple[Any, ...], call: Call) -> tuple[Any, ...] | Refusal:
        """Apply one call."""
        if failed(call):
            return state
        if call.name == "enqueue":
            return self._enqueue(state, call)
        front = state[0] if state else None
        right = not state if call.name == "is_empty" else front
        if not call.pending and call.result != right:
            return _refused(f"the queue is {state}", call)
        return state[1:] if call.name == "dequeue" else state

    def _enqueue(self, state: tuple[Any, ...], call: Call) -> tuple[Any, ...] | Refusal:
        if call.result == FULL and not call.pending:
            fits = self.room is not None and len(state) + self.early >= self.room
            return state if fits else _refused(f"there is room: {len(state)} of {self.room} values", call)
        if self.room is not None and len(state) >= self.room:
            return _refused(f"all {self.room} places are taken", call)
        return (*state, call.args[0])


class SequentialWinSet:
    """The windows of one start by key: see spec/WindowMap.tla. Each key is an object of its own."""

    def initial(self) -> Hashable:
        """No window."""
        return None

    def step(self, state: Hashable, call: Call) -> Hashable | Refusal:
        """Apply one call about one key; the state is the key's window."""
        if failed(call):
            return state
        after = call.args[1] if state is None and call.name == "find_or_insert" else state
        if call.pending or call.result == after:
            return after
        return _refused(f"the window of key {call.args[0]!r} is {after!r}", call)

    def part(self, call: Call) -> Hashable:
        """The key."""
        return call.args[0]  # type: ignore[no-any-return]
