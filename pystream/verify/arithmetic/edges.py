"""Windows and slices: csrc/windows/edges.h, for all timestamps, sizes and advances below 2^63."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import z3

from pystream.verify.arithmetic.c_terms import CTerms
from pystream.verify.arithmetic.c_text import CText
from pystream.verify.arithmetic.claims import Claim, Goal, obligations
from pystream.verify.arithmetic.domains import I64, U64, Naturals, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

FILES = ("windows/edges.h", "pystream.h")
_BELOW = 2**63


class _Edges:
    """Windows [n * advance, n * advance + size), a timestamp, and C's functions of them."""

    def __init__(self, csrc: Path) -> None:
        self.domain = Naturals()
        self.c = CTerms(CText(csrc, *FILES), self.domain)
        size, advance, ts = (self.domain.variable(name, U64) for name in ("size", "advance", "ts"))
        self.w = {"size": size, "advance": advance}
        self.size, self.advance, self.ts = size.term, advance.term, ts.term
        self.n = z3.Int("n")  # the number of any window
        self._given = [self.size > 0, self.advance > 0, *(each < _BELOW for each in (self.size, self.advance, self.ts))]
        self._given.append(self.n >= 0)
        self.start, self.end = self.n * self.advance, self.n * self.advance + self.size

    def __call__(self, function: str, *arguments: Any) -> Any:
        return self.c.call(function, self.w, *(Value(each, U64) for each in arguments)).term

    def covers(self, ts: Any) -> Any:
        """Say that window n has the timestamp in it."""
        return z3.And(self.start <= ts, ts < self.end)

    def _products(self, more: Sequence[Any]) -> list[Any]:
        """Say in which order multiples of the advance are: instances of `_multiples` that the solver does not find."""
        numbers = [self.n, *self.domain.quotients, *more]
        return [_rise(x, y, self.advance) for x in numbers for y in numbers if x is not y]

    def is_edge(self, edge: Any, ts: Any) -> Any:
        """Say that it is a start or an end: of the last window before ts, or of the last one that ends before."""
        starts, _ = self.domain.quotient(ts, self.advance)
        ends, _ = self.domain.quotient(ts - self.size, self.advance)
        return z3.Or(edge == starts * self.advance, z3.And(ts >= self.size, edge == ends * self.advance + self.size))

    def goals(self, *shows: tuple[str, Any], holds: Sequence[Any] = (), numbers: Sequence[Any] = ()) -> list[Goal]:
        """Give what is shown, and first that no operation wraps. `numbers`: more multiples to put in order."""
        known = [*self.domain.facts, *self._given, *holds, *self._products(numbers)]
        return [
            *obligations(self.c.obligations, known),
            *(Goal(what, known, claim) for what, claim in shows),
        ]


def _rise(x: Any, y: Any, step: Any) -> Any:
    return z3.And(z3.Implies(x <= y, x * step <= y * step), z3.Implies(x < y, x * step + step <= y * step))


def _multiples(_csrc: Path) -> list[Goal]:
    x, more, step = z3.Ints("x more step")
    return [Goal("multiples rise with their number", [step > 0, more >= 0], _rise(x, x + more, step))]


def _last_edge(csrc: Path) -> list[Goal]:
    e = _Edges(csrc)
    edge = e("last_edge", e.ts)
    return e.goals(
        ("it is not after ts", z3.And(edge >= 0, edge <= e.ts)),
        ("it is an edge", e.is_edge(edge, e.ts)),
        ("no start is between it and ts", z3.Not(z3.And(edge < e.start, e.start <= e.ts))),
        ("no end is between it and ts", z3.Not(z3.And(edge < e.end, e.end <= e.ts))),
    )


def _next_edge(csrc: Path) -> list[Goal]:
    e = _Edges(csrc)
    edge = e("next_edge", e.ts)
    starts, _ = e.domain.quotient(e.ts, e.advance)
    ends, _ = e.domain.quotient(e.ts - e.size, e.advance)
    of_end = z3.If(e.ts < e.size, e.size, (ends + 1) * e.advance + e.size)
    return e.goals(
        ("it is after", edge > e.ts),
        ("it is an edge", z3.Or(edge == (starts + 1) * e.advance, edge == of_end)),
        ("no start is between", z3.Not(z3.And(e.ts < e.start, e.start < edge))),
        ("no end is between", z3.Not(z3.And(e.ts < e.end, e.end < edge))),
        ("it is at most one advance away", edge <= e.ts + e.advance),
    )


def _slices(csrc: Path) -> list[Goal]:
    e = _Edges(csrc)
    begin = e("last_edge", e.ts)
    end = e("next_edge", begin)
    covered = e("is_covered", begin)
    number, _ = e.domain.quotient(begin, e.advance)
    start = number * e.advance
    return e.goals(
        ("a slice holds the timestamp", z3.And(begin <= e.ts, e.ts < end)),
        ("a window has all of a slice or nothing", e.covers(e.ts) == e.covers(begin)),
        ("and ends after it", z3.Implies(e.covers(begin), end <= e.end)),
        ("what a window covers is covered", z3.Implies(e.covers(begin), covered)),
        (
            "what is covered is so by the last window",
            z3.Implies(covered, z3.And(start <= begin, begin < start + e.size)),
        ),
        holds=(begin >= 0,),
    )


def _starts(csrc: Path) -> list[Goal]:
    e = _Edges(csrc)
    first, last = e("first_start", e.ts), e("last_start", e.ts)
    starts, _ = e.domain.quotient(e.ts, e.advance)
    ends, _ = e.domain.quotient(e.ts - e.size, e.advance)
    return e.goals(
        ("the last one starts a window", last == starts * e.advance),
        ("the first one starts a window", z3.Or(first == 0, first == (ends + 1) * e.advance)),
        ("the first one ends after ts", first + e.size > e.ts),
        ("the windows in between are those that cover ts", e.covers(e.ts) == z3.And(first <= e.start, e.start <= last)),
        ("a window that ends after ts is not before the first", z3.Implies(e.end > e.ts, first <= e.start)),
        (
            "the first is at most an advance after the least possible",
            z3.Implies(first > 0, first <= e.ts - e.size + e.advance),
        ),
        ("a step after the last does not wrap", last + e.advance <= U64.greatest),
    )


def _complete(csrc: Path) -> list[Goal]:
    e = _Edges(csrc)
    start, now, later = e.domain.variable("start", U64), e.domain.variable("now", I64), z3.Int("later")
    done = e.c.call("is_complete", e.w, start, now).term
    covers = z3.And(start.term <= later, later < start.term + e.size)
    return e.goals(
        ("nothing at or after now is in a complete window", z3.Not(z3.And(done, later >= now.term, covers))),
        ("a window that is not complete may get more", z3.Or(done, now.term < 0, start.term + e.size > now.term)),
        ("before the first timestamp none is complete", z3.Not(z3.And(done, now.term == -1))),
        holds=(start.term < _BELOW, now.term >= -1),
    )


def _limit(csrc: Path) -> list[Goal]:
    e = _Edges(csrc)
    greatest = e.c.call("ts_max", e.w).term
    limit = e.c.constant("PS_WINDOWS_MAX").term
    first, last = e("first_start", e.ts), e("last_start", e.ts)
    return e.goals(
        (
            "up to it a tuple is in no more windows",
            z3.Implies(e.ts <= greatest, last - first <= (limit - 1) * e.advance),
        ),
        ("after it a tuple is in more", z3.Implies(e.ts == greatest + 1, last - first >= limit * e.advance)),
        numbers=(limit - 1, e.domain.quotient(e.ts - e.size, e.advance)[0] + limit),
    )


def _claim(name: str, state: Callable[[Path], list[Goal]]) -> Claim:
    return Claim(name, FILES, state)


CLAIMS = (
    _claim("multiples rise with their number", _multiples),
    _claim("the last edge is the last one", _last_edge),
    _claim("the next edge is the next one", _next_edge),
    _claim("a window has all of a slice or nothing of it", _slices),
    _claim("the windows of a timestamp are those from the first start to the last", _starts),
    _claim("a window is complete exactly if nothing can come into it", _complete),
    _claim("the limit of windows per tuple is exact", _limit),
)
