"""Values as words whose unsigned order is theirs: csrc/base/value.h and the narrow sums of csrc/base/exact_sum.h."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import z3

from pystream.verify.arithmetic.c_terms import DOUBLE, CTerms
from pystream.verify.arithmetic.c_text import CText
from pystream.verify.arithmetic.claims import Claim, Goal, obligations
from pystream.verify.arithmetic.domains import U64, Value, Words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILES = ("base/value.h", "base/exact_sum.h", "pystream.h")
_FLOATS, _UNSIGNED = ("PS_F32", "PS_F64"), ("PS_BOOL", "PS_U8", "PS_U16", "PS_U32", "PS_U64")
_SIGNED = ("PS_I8", "PS_I16", "PS_I32", "PS_I64")


class _Values:
    """Two values of one type, widened to 64 bits, and C's functions of them."""

    def __init__(self, csrc: Path) -> None:
        self.c = CTerms(CText(csrc, *FILES), Words())
        self.a, self.b = z3.BitVecs("a b", U64.bits)

    def __call__(self, function: str, word: Any, type: str) -> Any:
        return self.c.call(function, Value(word, U64), self.c.constant(type)).term

    def each(self, *types: str, shows: Callable[[str], Any], what: str) -> list[Goal]:
        """Give a goal for each type."""
        goals = [Goal(f"{what}, {type}", [], shows(type)) for type in types]
        return [*obligations(self.c.obligations, []), *goals]


def _below(a: Any, b: Any, type: str) -> Any:
    """Say that a comes before b in the order of the type: -0.0 below 0.0, all NaNs equal and above every number."""
    if type in _UNSIGNED:
        return z3.ULT(a, b)
    if type in _SIGNED:
        return a < b
    x, y = z3.fpBVToFP(a, DOUBLE), z3.fpBVToFP(b, DOUBLE)
    zeros = z3.And(z3.fpIsZero(x), z3.fpIsZero(y), z3.fpIsNegative(x), z3.fpIsPositive(y))
    return z3.And(z3.Not(z3.fpIsNaN(x)), z3.Or(z3.fpIsNaN(y), z3.fpLT(x, y), zeros))


def _same_key(a: Any, b: Any, type: str) -> Any:
    if type not in _FLOATS:
        return a == b
    x, y = z3.fpBVToFP(a, DOUBLE), z3.fpBVToFP(b, DOUBLE)
    return z3.Or(z3.fpEQ(x, y), z3.And(z3.fpIsNaN(x), z3.fpIsNaN(y)))


def _order(csrc: Path) -> list[Goal]:
    v = _Values(csrc)

    def word(x: Any, type: str) -> Any:
        return v("value_ordered", v("value_canonical", x, type), type)

    def shows(type: str) -> Any:
        return z3.ULT(word(v.a, type), word(v.b, type)) == _below(v.a, v.b, type)

    return v.each(*_SIGNED, *_UNSIGNED, *_FLOATS, shows=shows, what="words are ordered as values")


def _inverse(csrc: Path) -> list[Goal]:
    v = _Values(csrc)

    def shows(type: str) -> Any:
        there = v("value_unordered", v("value_ordered", v.a, type), type) == v.a
        return z3.And(there, v("value_ordered", v("value_unordered", v.a, type), type) == v.a)

    return v.each(*_SIGNED, *_UNSIGNED, *_FLOATS, shows=shows, what="the inverse gives back the value")


def _keys(csrc: Path) -> list[Goal]:
    v = _Values(csrc)

    def shows(type: str) -> Any:
        a, b = v("value_key", v.a, type), v("value_key", v.b, type)
        same = _same_key(v.a, v.b, type)
        return z3.And((a == b) == same, z3.ULT(a, b) == z3.And(_below(v.a, v.b, type), z3.Not(same)))

    return v.each(*_SIGNED, *_UNSIGNED, *_FLOATS, shows=shows, what="equal keys, and only those, have equal words")


# ---- sums ----

_NARROW_FROM, _NARROW_TO = 1 + 1074 - 80, 1 + 1074 - 80 + 72  # exponents of 2^-28 and of 2^44


def _units(csrc: Path) -> list[Goal]:
    """Each exponent of the narrow range by itself, because all shifts are constants then; the others together."""
    text, goals = CText(csrc, *FILES), []
    sign, exponent, fraction = z3.BitVec("sign", 1), z3.BitVec("exponent", 11), z3.BitVec("fraction", 52)
    c, fits, _ = _units_of(text, z3.Concat(sign, exponent, fraction))
    outside = z3.Or(z3.ULT(exponent, _NARROW_FROM), z3.UGT(exponent, _NARROW_TO))
    goals += [*obligations(c.obligations, []), Goal("other exponents are refused", [outside], z3.Not(fits))]
    for each in range(_NARROW_FROM, _NARROW_TO + 1):
        _, fits, units = _units_of(text, z3.Concat(sign, z3.BitVecVal(each, 11), fraction))
        magnitude = z3.Concat(z3.BitVecVal(1, 76), fraction) << (each - _NARROW_FROM)
        exact = units == z3.If(sign == 1, -magnitude, magnitude)
        goals.append(Goal(f"a double of exponent {each}", [], z3.And(fits, exact, z3.LShR(magnitude, 125) == 0)))
    return goals


def _units_of(text: CText, bits: Any) -> tuple[CTerms, Any, Any]:
    c = CTerms(text, Words())
    ends = c.call("exact_sum_units", Value(bits, U64))
    return c, ends["return"].term, ends["*units"].term


def _claim(name: str, state: Callable[[Path], list[Goal]]) -> Claim:
    return Claim(name, FILES, state)


CLAIMS = (
    _claim("words are ordered as the values", _order),
    _claim("a word gives back its value", _inverse),
    _claim("keys are equal exactly if their words are", _keys),
    _claim("a double in the narrow range is its units, to the bit", _units),
)
