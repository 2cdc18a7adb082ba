"""Exact variance, deviation and covariance: the C states (csrc/base/exact_moments.h), and what they must give."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from typing import TYPE_CHECKING

from pystream._core import ffi, lib

if TYPE_CHECKING:
    from collections.abc import Sequence

Number = int | float


def check(code: int) -> None:
    if code == lib.PS_NO_MEMORY:
        raise MemoryError
    assert code == lib.PS_OK


def answer(function, *arguments) -> float | None:
    """None: there are no more values than ddof."""
    out = ffi.new("double *")
    code = function(*arguments, out)
    if code == lib.PS_EMPTY:
        return None
    check(code)
    return out[0]


class Moments:
    """A state of doubles, or of integers: "i64" or "u64"."""

    def __init__(self, values: Sequence[Number] = (), kind: str = "f64") -> None:
        state = lib.ps_exact_moments_new()
        if state == ffi.NULL:
            raise MemoryError
        self.kind, self.state = kind, ffi.gc(state, lib.ps_exact_moments_free)
        self.add(values)

    def add(self, values: Sequence[Number]) -> None:
        if self.kind == "f64":
            check(lib.ps_exact_moments_add_all(self.state, ffi.new("double[]", list(values)), len(values)))
        else:
            bits = ffi.new("uint64_t[]", [int(value) % 2**64 for value in values])
            lib.ps_exact_moments_add_integers(self.state, bits, len(values), self.kind == "u64")

    def reserve(self, value: float) -> None:
        if not lib.ps_exact_moments_reserve(self.state, value):
            raise MemoryError

    def combine(self, other: Moments) -> None:
        check(lib.ps_exact_moments_combine(self.state, other.state, False))

    def subtract(self, other: Moments) -> None:
        check(lib.ps_exact_moments_combine(self.state, other.state, True))

    def var(self, ddof: int = 1) -> float | None:
        return answer(lib.ps_exact_moments_result, self.state, self.kind != "f64", ddof, False)

    def std(self, ddof: int = 1) -> float | None:
        return answer(lib.ps_exact_moments_result, self.state, self.kind != "f64", ddof, True)


TYPES = {"f64": lib.PS_F64, "i64": lib.PS_I64, "u64": lib.PS_U64}


class Pairs:
    """A state of pairs (u, v) of doubles or of integers."""

    def __init__(self, pairs: Sequence[tuple[Number, Number]] = (), u: str = "f64", v: str | None = None) -> None:
        state = lib.ps_exact_pairs_new()
        if state == ffi.NULL:
            raise MemoryError
        self.state = ffi.gc(state, lib.ps_exact_pairs_free)
        self.kinds = u, v or u
        self.types = [TYPES[kind] for kind in self.kinds]
        self.add(pairs)

    def add(self, pairs: Sequence[tuple[Number, Number]]) -> None:
        words = (
            [
                [struct.unpack("<Q", struct.pack("<d", x))[0] if kind == "f64" else x % 2**64 for x in column]
                for kind, column in zip(self.kinds, zip(*pairs, strict=True), strict=True)
            ]
            if pairs
            else [[], []]
        )
        u, v = (ffi.new("uint64_t[]", column) for column in words)
        check(lib.ps_exact_pairs_add_all(self.state, *self.types, u, v, len(pairs)))

    def combine(self, other: Pairs) -> None:
        check(lib.ps_exact_pairs_combine(self.state, other.state, False))

    def subtract(self, other: Pairs) -> None:
        check(lib.ps_exact_pairs_combine(self.state, other.state, True))

    def covar(self, ddof: int = 1) -> float | None:
        return answer(lib.ps_exact_pairs_result, self.state, *self.types, lib.PS_COVAR, ddof)

    def slope(self) -> float | None:
        return answer(lib.ps_exact_pairs_result, self.state, *self.types, lib.PS_SLOPE, 0)

    def intercept(self) -> float | None:
        return answer(lib.ps_exact_pairs_result, self.state, *self.types, lib.PS_INTERCEPT, 0)

    def corr(self) -> float | None:
        return answer(lib.ps_exact_pairs_result, self.state, *self.types, lib.PS_CORR, 0)


def deviations(states: Sequence[Moments], ddof: int, *, of_root: bool) -> list[float]:
    """Of states that have more values than ddof, in blocks."""
    out, integers = ffi.new("double[]", len(states)), states[0].kind != "f64"
    pointers = ffi.new("ps_exact_moments *[]", [m.state for m in states])
    lib.ps_exact_deviations(pointers, len(states), integers, ddof, of_root, out)
    return list(out)


def ratio(a: int, d: int, exponent: int, *, of_root: bool = False) -> float:
    limbs = [a >> i & 2**64 - 1 for i in range(0, max(1, a.bit_length()), 64)]
    limbs += [0] * (len(limbs) % 3)  # as in a sum that is smaller than it could be
    parts = [d >> i & 2**64 - 1 for i in range(0, max(2 * 64, d.bit_length()), 64)]
    words = ffi.new("uint64_t[]", limbs), len(limbs), ffi.new("uint64_t[]", parts), len(parts)
    return lib.ps_exact_ratio(*words, exponent, of_root)


# ---- what they must give, by the definition and in fractions ----


def covariance(pairs: Sequence[tuple[Number, Number]], ddof: int) -> Fraction:
    """The definition: deviations from the means, multiplied."""
    x, y = ([Fraction(pair[i]) for pair in pairs] for i in (0, 1))
    x_mean, y_mean = sum(x, Fraction()) / len(x), sum(y, Fraction()) / len(y)
    return sum(((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)), Fraction()) / (len(x) - ddof)


def nearest(x: Fraction) -> float:
    try:
        return float(x)  # rounds once
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def root(x: Fraction) -> float:
    """The double nearest to the square root."""
    if x == 0:
        return 0.0
    # The integer root has more than 110 bits, and an odd last bit if it is not exact: it lies strictly on its side of
    # all doubles and of all numbers halfway between two of them, so rounding it once is rounding the root once.
    scale = max(0, 230 - x.numerator.bit_length() + x.denominator.bit_length())
    scale += scale % 2
    scaled = (x.numerator << scale) // x.denominator
    integer = math.isqrt(scaled)
    exact = integer * integer * x.denominator == x.numerator << scale
    return nearest(Fraction(integer * 4 + (0 if exact else 1), 1 << scale // 2 + 2))


def has_special(values: Sequence[Number]) -> bool:
    return not all(map(math.isfinite, values))


def var_of(values: Sequence[Number], ddof: int = 1) -> float | None:
    if len(values) <= ddof:
        return None
    return math.nan if has_special(values) else nearest(covariance([(v, v) for v in values], ddof))


def std_of(values: Sequence[Number], ddof: int = 1) -> float | None:
    if len(values) <= ddof:
        return None
    return math.nan if has_special(values) else root(covariance([(v, v) for v in values], ddof))


def covar_of(pairs: Sequence[tuple[Number, Number]], ddof: int = 1) -> float | None:
    if len(pairs) <= ddof:
        return None
    return math.nan if any(map(has_special, pairs)) else nearest(covariance(pairs, ddof))


def line_of(pairs: Sequence[tuple[Number, Number]]) -> tuple[float | None, float | None, float | None]:
    """Slope and intercept of the line u = slope * v + intercept, and the correlation, of pairs (u, v)."""
    if len(pairs) < 2:
        return None, None, None
    if any(map(has_special, pairs)):
        return math.nan, math.nan, math.nan
    uv, vv, uu = (covariance([(p[i], p[j]) for p in pairs], 0) for i, j in ((0, 1), (1, 1), (0, 0)))
    if vv == 0:
        return None, None, None
    u_mean, v_mean = (sum(Fraction(p[i]) for p in pairs) / len(pairs) for i in (0, 1))
    corr = None if uu == 0 else math.copysign(root(uv * uv / (uu * vv)), -1 if uv < 0 else 1)
    return nearest(uv / vv), nearest(u_mean - uv / vv * v_mean), corr


def same(got: float | None, want: float | None) -> bool:
    """To the bit, any NaN being as good as another."""
    if got is None or want is None:
        return got is want
    return math.isnan(got) if math.isnan(want) else got == want and math.copysign(1, got) == math.copysign(1, want)
