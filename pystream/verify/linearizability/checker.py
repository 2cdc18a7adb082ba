"""The general checker: a search for an order of the calls that a sequential object allows.

After Wing and Gong, with Lowe's two ideas. Just in time: a call is given its place only when some call returns that has
none yet; placing it earlier, with no return in between, explains nothing more. Memoisation: a configuration is how far
we are in the history, which of the calls under way have been placed, and the state of the object; each is looked at
once. The calls under way are bits of a small number, so a configuration stays small however long the history is.

The search is a loop over a stack of its own, never recursive, and gives up with an error after `limit` configurations.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

from pystream.errors import PystreamError
from pystream.verify.linearizability.history import Call, events_of
from pystream.verify.linearizability.verdict import Attempt, Verdict

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

State = TypeVar("State")

#: How many ways in which the call could not be placed a verdict tells.
ATTEMPTS_MAX = 8


@dataclass(frozen=True, slots=True)
class Refusal:
    """A sequential object's answer to a call that cannot come next, with the reason in words."""

    why: str


class Sequential(Protocol[State]):
    """What a structure does when it is used by one thread. States are hashable and never changed in place."""

    def initial(self) -> State:
        """Give the state before the first call."""
        ...

    def step(self, state: State, call: Call) -> State | Refusal:
        """Give the state after the call, or the reason why it cannot come next with the result that it had.

        The result of a pending call (`call.pending`) is not known: give the state that the call leads to. That it may
        not have taken effect at all is the checker's business.
        """
        ...


@runtime_checkable
class SequentialParts(Protocol):
    """One of many independent parts, such as a map by key: calls with different parts do not touch each other.

    Then the history is linearizable exactly if the calls of each part are, which is far faster to find out.
    """

    def part(self, call: Call) -> Hashable:
        """Say which object the call is about."""
        ...


class SearchLimitError(PystreamError, RuntimeError):
    """The checker looked at as many configurations as it was allowed to, and does not know."""


def check(history: Iterable[Call], sequential: Sequential[State], *, limit: int = 1_000_000) -> Verdict:
    """Find an order of the calls that the sequential object allows, or say that there is none.

    Raises SearchLimitError after `limit` configurations (per part), ValueError for a call that ends before it begins.
    """
    if not isinstance(sequential, SequentialParts):
        return _Search(sequential, history, limit).run()
    parts: dict[Hashable, list[Call]] = defaultdict(list)
    for call in history:
        parts[sequential.part(call)].append(call)
    searches = [_Search(sequential, calls, limit) for calls in parts.values()]
    verdicts = []
    for search in searches:
        verdicts.append(search.run())
        if not verdicts[-1]:
            return verdicts[-1]
    placed = heapq.merge(*(search.placed() for search in searches), key=lambda place: place[0])
    calls = [call for part in parts.values() for call in part]
    return Verdict(calls, [call for _, call in placed], explored=sum(v.explored for v in verdicts))


#: The calls placed so far, last one first: (index of the call, before which event, the ones before).
_Trail = tuple[int, int, "_Trail"] | None


class _Search(Generic[State]):
    """One run of the checker over one object."""

    def __init__(self, sequential: Sequential[State], history: Iterable[Call], limit: int) -> None:
        self.sequential = sequential
        self.limit = limit
        self.calls, self.events = events_of(history)
        self.bit = [0] * len(self.calls)  # of a call while it is under way; used again afterwards
        self.open: dict[int, list[int]] = {}  # at the event of a return: the calls under way, the returning one last
        self.trail: _Trail = None  # how the end, or the first of the furthest configurations, was reached
        self.furthest = -1
        self.stuck: list[Attempt] = []
        self._prepare()

    def _prepare(self) -> None:
        """Give each call a bit that no other call under way has, and note who is under way at each return."""
        under_way: list[int] = []
        free: list[int] = []
        for at, (call, returns) in enumerate(self.events):
            if not returns:
                self.bit[call] = free.pop() if free else 1 << len(under_way)
                under_way.append(call)
                continue
            under_way.remove(call)
            self.open[at] = [*reversed(under_way), call]
            free.append(self.bit[call])

    def run(self) -> Verdict:
        sequential, events = self.sequential, self.events
        start = self._next_return(0, 0)
        stack: list[tuple[int, int, State, _Trail]] = [(start[0], start[1], sequential.initial(), None)]
        seen = {stack[0][:3]}
        while stack:
            at, placed, state, trail = stack.pop()
            if at == len(events):
                self.trail = trail
                return Verdict(self.calls, self._order(trail), explored=len(seen))
            for call in self.open[at]:
                bit = self.bit[call]
                if placed & bit:
                    continue
                after = sequential.step(state, self.calls[call])
                if isinstance(after, Refusal):
                    if call == events[at][0]:
                        self._remember(at, state, trail, after)
                    continue
                goes_on = self._next_return(at, placed | bit)
                found = (*goes_on, after)
                if found not in seen:
                    seen.add(found)
                    stack.append((*found, (call, at, trail)))
            if len(seen) > self.limit:
                raise SearchLimitError(self._undecided())
        culprit = self.calls[events[self.furthest][0]]
        return Verdict(self.calls, self._order(self.trail), culprit, self.stuck, len(seen))

    def _next_return(self, at: int, placed: int) -> tuple[int, int]:
        """Go on to the next return of a call that has no place yet; calls that have one return on the way."""
        events, bits = self.events, self.bit
        while at < len(events):
            call, returns = events[at]
            if returns:
                if not placed & bits[call]:
                    break
                placed ^= bits[call]
            at += 1
        return at, placed

    def _remember(self, at: int, state: State, trail: _Trail, refusal: Refusal) -> None:
        """Keep the attempts to place the call that returns at the furthest event."""
        if at > self.furthest:
            self.furthest, self.trail, self.stuck = at, trail, []
        if at == self.furthest and len(self.stuck) < ATTEMPTS_MAX:
            self.stuck.append(Attempt(order=self._order(trail), state=state, why=refusal.why))

    def _order(self, trail: _Trail) -> list[Call]:
        order = []
        while trail is not None:
            call, _, trail = trail
            order.append(self.calls[call])
        return order[::-1]

    def placed(self) -> list[tuple[int, Call]]:
        """The calls in order, each with a moment at which it may have taken effect: just before this stamp."""
        places, trail = [], self.trail
        while trail is not None:
            call, at, trail = trail
            places.append((self.calls[self.events[at][0]].returned or 0, self.calls[call]))
        return places[::-1]

    def _undecided(self) -> str:
        return (
            f"undecided after {self.limit:,} configurations of a history of {len(self.calls):,} calls, of which up to "
            f"{max(map(len, self.open.values()))} run at the same time: give a larger limit, record shorter histories "
            "with fewer threads, or let the sequential object split them (SequentialParts)"
        )
