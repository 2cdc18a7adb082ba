"""Near-linear checkers for T-Gate and W-Hive.

Why a search is not needed. Both structures hand out items (tuples, winsets) in an order that the inputs alone decide,
and the only thing that timing decides is WHEN an item becomes ready: when every producer has made the call that takes
it to the item or past it. Let need_k(N) be that call of producer k for item N. A history is linearizable exactly if

  1. what each reader has had is a beginning of the items in order, with the right contents; and
  2. moments for the producers' calls exist, each within its call, such that for each item N
        all of need_k(N) come before the return of every get that gave N, and
        some need_k(N) comes after the invocation of every get that said "nothing" when N was next for its reader.

A get that gave an item may take effect as late as its return, a get that said "nothing" as early as its invocation;
that asks least. All bounds of the first kind are upper bounds, and a later moment only helps with the second kind. So
give every call its latest moment that the first kind allows, and look whether the second kind holds.

Items and calls of a producer ascend, so the bounds do too: a call's upper bound is that of the first item that needs
it. A pending call of a producer counts as made only if some item that was given needs it; it is the last of its
producer, so leaving it out can only help the others. A pending get changes nothing for anybody.

Calls of one producer, or of one reader, must not overlap: that is the structures' contract, and a ValueError here.
"""

from __future__ import annotations

import builtins
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING, Any

from pystream.verify.linearizability.history import Call, events_of
from pystream.verify.linearizability.sequential import END, failed, first_open_start, producer_answer
from pystream.verify.linearizability.verdict import Attempt, Verdict

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

#: Where an item stands in the order, and how far a producer has come. Compared as tuples.
_Key = tuple[float, ...]


class _Violation(Exception):  # noqa: N818 - a finding, not an error; it never leaves this module
    def __init__(self, call: Call, why: str) -> None:
        super().__init__(why)
        self.call = call
        self.why = why


@dataclass(slots=True)
class _Timed:
    """A call, and where its two moments stand among all moments of the history; a pending one returns at the end."""

    call: Call
    begins: int
    ends: int
    reaches: _Key = ()  # how far its producer is after it
    latest: int = 0  # its latest moment that the gets allow: just before this position


@dataclass(slots=True)
class _Item:
    key: _Key
    answer: Any
    before: float = inf  # must be ready before this position: the return of a get that gave it
    given: Call | None = None
    after: int = -1  # must not be ready before this position: the invocation of a get that said "nothing"
    denied: Call | None = None


def check_t_gate(history: Iterable[Call], inputs: int, readers: int = 1) -> Verdict:
    """Judge a history of T-Gate as `check(history, SequentialTGate(inputs, readers))` does, in near-linear time."""
    return _verdict(_TGate(inputs, readers), history)


def check_w_hive(
    history: Iterable[Call],
    size: int,
    advance: int,
    threads: int,
    function: Callable[[Sequence[Any]], Any] = builtins.sum,
) -> Verdict:
    """Judge a history of W-Hive as `check(history, SequentialWHive(...))` does, in near-linear time."""
    return _verdict(_WHive(size, advance, threads, function), history)


class _TGate:
    """T-Gate's items: the tuples by (ts, input, number within the input)."""

    get = "get"
    end: _Key = (inf, -1, 0)  # every closed input has come so far

    def __init__(self, inputs: int, readers: int) -> None:
        self.producers = inputs
        self.readers = readers

    def reader(self, call: Call) -> int:
        return int(call.args[0])

    def reached(self, who: int, latest: float, items: int) -> _Key:
        return (latest, who, items)

    def given_key(self, gets: list[_Timed]) -> _Key:
        """How far producers must have come for what this reader has had; answers out of order are found elsewhere."""
        count: dict[int, int] = defaultdict(int)
        furthest: _Key = (-1, -1, 0)
        for get in gets:
            if get.call.result == END:
                return self.end
            if isinstance(get.call.result, tuple):
                ts, input, _ = get.call.result
                count[input] += 1
                furthest = max(furthest, (ts, input, count[input]))
        return furthest

    def items(self, producers: list[list[_Timed]]) -> list[_Item]:
        inserts = [t for calls in producers for t in calls if t.call.name == "insert"]
        tuples = [_Item(t.reaches, (t.call.args[1], t.call.args[0], t.call.args[2])) for t in inserts]
        return sorted(tuples, key=lambda item: item.key)


class _WHive:
    """W-Hive's items: the windows that exist, by start. A producer is past one when it has come to its end."""

    get = "get_next_winset"
    end: _Key = (inf,)
    readers = 1

    def __init__(self, size: int, advance: int, threads: int, function: Callable[[Sequence[Any]], Any]) -> None:
        self.size = size
        self.advance = advance
        self.producers = threads
        self.function = function

    def reader(self, call: Call) -> int:  # noqa: ARG002 - there is one
        return 0

    def reached(self, who: int, latest: float, items: int) -> _Key:  # noqa: ARG002 - the latest promise says it all
        return (latest,)

    def given_key(self, gets: list[_Timed]) -> _Key:
        if any(get.call.result == END for get in gets):
            return self.end
        starts = (get.call.result[0] for get in gets if isinstance(get.call.result, tuple))
        return (max(starts, default=-1 - self.size) + self.size,)

    def items(self, producers: list[list[_Timed]]) -> list[_Item]:
        updates = [t.call.args for calls in producers for t in calls if t.call.name == "update" and not failed(t.call)]
        windows: dict[int, dict[Any, list[Any]]] = {}
        for _, ts, key, value in sorted(updates, key=lambda args: (args[1], args[0])):
            for start in range(first_open_start(ts, self.size, self.advance), ts + 1, self.advance):
                windows.setdefault(start, {}).setdefault(key, []).append(value)
        winsets = ((start, {k: self.function(v) for k, v in windows[start].items()}) for start in sorted(windows))
        return [_Item((winset[0] + self.size,), winset) for winset in winsets]


def _verdict(structure: _TGate | _WHive, history: Iterable[Call]) -> Verdict:
    calls, events = events_of(history)
    try:
        _check(structure, _timed(calls, events))
    except _Violation as found:
        return Verdict(calls, [], found.call, [Attempt([], None, found.why)], len(calls))
    return Verdict(calls, explored=len(calls))


def _timed(calls: list[Call], events: list[tuple[int, bool]]) -> list[_Timed]:
    timed = [_Timed(call, 0, len(events)) for call in calls]
    for position, (i, returns) in enumerate(events):
        if returns:
            timed[i].ends = position
        else:
            timed[i].begins = position
    return timed


def _check(structure: _TGate | _WHive, timed: list[_Timed]) -> None:
    producers: list[list[_Timed]] = [[] for _ in range(structure.producers)]
    readers: list[list[_Timed]] = [[] for _ in range(structure.readers)]
    for t in timed:
        if failed(t.call) and t.call.name != "update":
            continue
        is_get = t.call.name == structure.get
        (readers[structure.reader(t.call)] if is_get else producers[t.call.args[0]]).append(t)
    for calls in (*producers, *readers):
        _refuse_overlap(calls)
    readers = [[get for get in gets if not get.call.pending] for gets in readers]
    furthest = max(structure.given_key(gets) for gets in readers)
    made = [_made(structure, who, calls, furthest) for who, calls in enumerate(producers)]
    items = structure.items(made)
    items.append(_Item(structure.end, END))
    for gets in readers:
        _read(gets, items)
    _place(made, items)


def _refuse_overlap(calls: list[_Timed]) -> None:
    for a, b in pairwise(calls):
        if a.ends > b.begins:
            raise ValueError(f"{a.call} and {b.call} overlap: one thread at a time per input and per reader")


def _made(structure: _TGate | _WHive, who: int, calls: list[_Timed], furthest: _Key) -> list[_Timed]:
    """The calls of a producer that took effect, each with how far it got; one in its wrong place is a violation."""
    latest: float = -1
    items = 0
    made: list[_Timed] = []
    for t in calls:
        right = producer_answer(latest, t.call)
        reached = structure.reached(who, latest, items)
        if t.call.pending and (right is not None or reached >= furthest):
            continue
        if not t.call.pending and t.call.result != right and not failed(t.call):
            raise _Violation(t.call, f"it should answer {right!r}: the latest promise of {who} is {latest}")
        if right is not None:
            continue
        latest = max(latest, t.call.args[1]) if t.call.name != "close" else inf
        items += t.call.name in ("insert", "update")
        t.reaches = structure.reached(who, latest, items)
        made.append(t)
    return made


def _read(gets: list[_Timed], items: list[_Item]) -> None:
    """Rule 1 for one reader, and the bounds for rule 2."""
    had = 0
    for get in gets:
        item, answer = items[had], get.call.result
        if answer is None:
            if get.begins > item.after and item.answer != END:
                item.after, item.denied = get.begins, get.call
            continue
        if answer != item.answer:
            expected = "the end" if item.answer == END else f"{item.answer}"
            raise _Violation(get.call, f"next in order for this reader is {expected}")
        if get.ends < item.before:
            item.before, item.given = get.ends, get.call
        had += item.answer != END


def _place(made: list[list[_Timed]], items: list[_Item]) -> None:
    """Rule 2: the latest moment of every call, and whether it is late enough for the gets that said "nothing"."""
    turn = [0] * len(made)
    for calls in made:
        for t in calls:
            t.latest = t.ends
    for item in items:
        ready = -1.0
        for who, calls in enumerate(made):
            i = turn[who]
            while i < len(calls) and calls[i].reaches < item.key:
                i += 1
            turn[who] = i
            if i == len(calls):
                ready = inf
                if item.given is not None:
                    raise _Violation(item.given, f"{item.answer} never became ready: {who} did not come so far")
                continue
            t = calls[i]
            t.latest = int(min(t.latest, item.before))
            if t.latest <= t.begins:
                assert item.given is not None  # noqa: S101 - only such a get makes the moment earlier than the return
                raise _Violation(item.given, f"{item.answer} was not ready before {t.call} by {t.call.thread!r} began")
            ready = max(ready, t.latest)
        if ready <= item.after:
            assert item.denied is not None  # noqa: S101 - only such a get sets `after`
            raise _Violation(item.denied, f"{item.answer} was ready before this call began, and next for the reader")
