"""What a C integer is for the solver: a whole number that never wraps, which has to be proved, or a word of bits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import z3


class CType(NamedTuple):
    """A type of C's integers."""

    bits: int
    signed: bool

    @property
    def least(self) -> int:
        """The least value."""
        return -(1 << (self.bits - 1)) if self.signed else 0

    @property
    def greatest(self) -> int:
        """The greatest value."""
        return (1 << (self.bits - self.signed)) - 1


INT = CType(32, signed=True)
U64 = CType(64, signed=False)
I64 = CType(64, signed=True)
TYPES = {
    "int": INT,
    "int32_t": INT,
    "ps_type": INT,
    "uint32_t": CType(32, signed=False),
    "unsigned char": CType(8, signed=False),
    "int64_t": I64,
    "uint64_t": U64,
    "size_t": U64,
    "int128": CType(128, signed=True),
    "uint128": CType(128, signed=False),
}


class Value(NamedTuple):
    """An integer with its C type; `type` None: a truth value or a double."""

    term: Any
    type: CType | None


@dataclass
class Obligation:
    """What has to hold where an operation is reached."""

    what: str
    path: list[Any]
    claim: Any


@dataclass
class Naturals:
    """Whole numbers. Every operation must stay within its type: that is an obligation, not an assumption.

    Quotients are introduced with what defines them, because the solver knows more of products than of divisions.
    """

    facts: list[Any] = field(default_factory=list)
    _divided: dict[tuple[Any, Any], tuple[Any, Any]] = field(default_factory=dict)

    @property
    def quotients(self) -> list[Any]:
        """Give the quotients so far."""
        return [quotient for quotient, _ in self._divided.values()]

    def variable(self, name: str, type: CType) -> Value:
        """Make a variable with all values of its type."""
        term = z3.Int(name)
        self.facts.append(_within(term, type))
        return Value(term, type)

    def literal(self, number: int, type: CType) -> Value:
        """Make a constant."""
        return Value(z3.IntVal(number), type)

    def cast(self, value: Value, type: CType) -> tuple[Value, Any]:
        """Change the type; the second is what must hold so that the value stays."""
        return Value(value.term, type), _within(value.term, type)

    def apply(self, sign: str, a: Value, b: Value, type: CType) -> tuple[Value, Any]:
        """Apply an operator to two values of the type; the second is what must hold."""
        if sign in "/%":
            quotient, rest = self.quotient(a.term, b.term)
            return Value(quotient if sign == "/" else rest, type), z3.And(a.term >= 0, b.term > 0)
        term = {"+": a.term + b.term, "-": a.term - b.term, "*": a.term * b.term}[sign]
        return Value(term, type), _within(term, type)

    def quotient(self, a: Any, b: Any) -> tuple[Any, Any]:
        """Divide, with remainder, where a >= 0 and b > 0."""
        known = next((found for of, found in self._divided.items() if of[0].eq(a) and of[1].eq(b)), None)
        if known is not None:
            return known
        quotient, rest = z3.FreshInt("q"), z3.FreshInt("r")
        defines = z3.And(a == quotient * b + rest, rest >= 0, rest < b, quotient >= 0)
        self.facts.append(z3.Implies(z3.And(a >= 0, b > 0), defines))
        self._divided[a, b] = quotient, rest
        return quotient, rest

    def compare(self, sign: str, a: Value, b: Value) -> Any:
        """Compare two values of one type."""
        return _compared(sign, a.term, b.term)


@dataclass
class Words:
    """Words of bits, which wrap as C's unsigned numbers do."""

    facts: list[Any] = field(default_factory=list)

    def variable(self, name: str, type: CType) -> Value:
        """Make a variable with all values of its type."""
        return Value(z3.BitVec(name, type.bits), type)

    def literal(self, number: int, type: CType) -> Value:
        """Make a constant."""
        return Value(z3.BitVecVal(number, type.bits), type)

    def cast(self, value: Value, type: CType) -> tuple[Value, Any]:
        """Change the type: cut off, or extended by the sign of the type before."""
        before = value.type or INT
        term, more = value.term, type.bits - before.bits
        if z3.is_bool(term):
            term = z3.If(term, z3.BitVecVal(1, type.bits), z3.BitVecVal(0, type.bits))
        elif more < 0:
            term = z3.Extract(type.bits - 1, 0, term)
        elif more > 0:
            term = z3.SignExt(more, term) if before.signed else z3.ZeroExt(more, term)
        return Value(term, type), True

    def apply(self, sign: str, a: Value, b: Value, type: CType) -> tuple[Value, Any]:
        """Apply an operator; signed overflow, which C does not define, must not be."""
        x, y = a.term, b.term
        if sign in ("<<", ">>"):
            right = x >> y if type.signed else z3.LShR(x, y)
            return Value(x << y if sign == "<<" else right, type), z3.ULT(y, type.bits)
        term = {"+": x + y, "-": x - y, "*": x * y, "&": x & y, "|": x | y, "^": x ^ y}[sign]
        return Value(term, type), _no_overflow(sign, x, y) if type.signed else True

    def compare(self, sign: str, a: Value, b: Value) -> Any:
        """Compare two values of one type."""
        if sign in ("==", "!=") or (a.type or INT).signed:
            return _compared(sign, a.term, b.term)
        return {"<": z3.ULT, "<=": z3.ULE, ">": z3.UGT, ">=": z3.UGE}[sign](a.term, b.term)


Domain = Naturals | Words


def _within(term: Any, type: CType) -> Any:
    return z3.And(term >= type.least, term <= type.greatest)


def _compared(sign: str, a: Any, b: Any) -> Any:
    return {"<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b, "==": a == b, "!=": a != b}[sign]


def _no_overflow(sign: str, x: Any, y: Any) -> Any:
    if sign == "+":
        return z3.And(z3.BVAddNoOverflow(x, y, signed=True), z3.BVAddNoUnderflow(x, y))
    if sign == "-":
        return z3.And(z3.BVSubNoOverflow(x, y), z3.BVSubNoUnderflow(x, y, signed=True))
    if sign == "*":
        if _is_extended(x) and _is_extended(y):
            return True  # a product of words of half the size
        return z3.And(z3.BVMulNoOverflow(x, y, signed=True), z3.BVMulNoUnderflow(x, y))
    return True


def _is_extended(term: Any) -> bool:
    return bool(term.decl().kind() == z3.Z3_OP_SIGN_EXT) and 2 * term.arg(0).size() <= term.size()
