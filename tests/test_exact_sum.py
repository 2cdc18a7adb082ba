"""The exact float sum: equal to math.fsum, whatever the order and the grouping."""

from __future__ import annotations

import itertools
import math
import random
import struct
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pystream._native import ExactSum

FINITE = st.floats(allow_nan=False, allow_infinity=False)
EVERYDAY = st.floats(-1e6, 1e6)
TINY = st.floats(-1e-300, 1e-300)
VALUES = st.lists(
    st.one_of(FINITE, EVERYDAY, TINY, st.sampled_from([0.0, -0.0, 5e-324, 1.7e308, -1.7e308, 2.0**46, 2.0**-28]))
)


def bits(x: float) -> bytes:
    return struct.pack("<d", x)


def exact(values: list[float]) -> float:
    true_sum = sum(map(Fraction, values), Fraction(0))
    try:
        return float(true_sum)
    except OverflowError:
        return math.inf if true_sum > 0 else -math.inf


def total(values: list[float]) -> float:
    s = ExactSum()
    s.add(values)
    return s.round()


@given(VALUES)
@example([1e16, 1.0, -1e16])
@example([2.0**53, 1.0, 2.0**-60])  # a half, and a bit far below it, decide the rounding
@example([2.0**53, 1.0])  # ties to even
@example([2.0**53, 3.0])
@example([5e-324] * 3)
@example([1.7976931348623157e308, 1e292])  # rounds to infinity
@example([-0.0, -0.0])
def test_is_the_nearest_double_to_the_true_sum(values):
    assert bits(total(values)) == bits(exact(values))


@given(VALUES)
def test_equals_fsum(values):
    try:
        expected = math.fsum(values)
    except OverflowError:  # fsum gives up on intermediate overflow; the exact sum does not
        return
    assert bits(total(values)) == bits(expected)


@given(st.lists(VALUES, max_size=6), st.randoms(use_true_random=False))
def test_parts_combine_in_any_order_and_grouping(parts, rng):
    sums = []
    for part in parts:
        sums.append(ExactSum())
        sums[-1].add(part)
    rng.shuffle(sums)
    result = ExactSum()
    while sums:
        if len(sums) > 1 and rng.random() < 0.5:
            sums[0].combine(sums.pop())
        else:
            result.combine(sums.pop())
    assert bits(result.round()) == bits(exact([v for part in parts for v in part]))


@given(st.lists(st.one_of(EVERYDAY, st.sampled_from([math.inf, -math.inf, math.nan])), min_size=1))
def test_nan_and_infinities(values):
    special = [v for v in values if not math.isfinite(v)]
    expected = sum(special) if special else exact(values)
    got = total(values)
    assert math.isnan(got) if math.isnan(expected) else bits(got) == bits(expected)


def units(n: int) -> list[float]:
    """Values that the narrow sum takes and that add up to n * 2^-80."""
    low, middle, high = n & (1 << 52) - 1, n >> 52 & (1 << 40) - 1, n >> 92
    return [2.0**-28 + low * 2.0**-80, -(2.0**-28), middle * 2.0**-28, high * 2.0**12]


@pytest.mark.parametrize("length", range(54, 125))
def test_narrow_sums_of_every_length_are_rounded_once(length):
    """At a half between two doubles, and as little as can be beside it."""
    for step in (1, 2, 3, 2**51 + 1, 2**52 - 1):  # doubles from the lowest of that length on
        half = (1 << 52) + step << length - 53 | (1 << length - 53) >> 1
        for n in (half - 1, half, half + 1):
            assert bits(total(units(n))) == bits(exact(units(n)))
            assert bits(total([-v for v in units(n)])) == bits(exact([-v for v in units(n)]))


def test_narrow_sum_spills_when_it_overflows():
    large = 2.0**45 - 1  # below that, the narrow sum takes it
    for values in ([large] * 9, [-large] * 9, [large] * 4096 + [1e-9] * 100 + [-large] * 4095):
        assert bits(total(values)) == bits(exact(values))


@pytest.mark.parametrize("seed", range(20))
def test_long_ill_conditioned_sums(seed):
    rng = random.Random(seed)
    values = [rng.choice([-1, 1]) * rng.random() * 2.0 ** rng.randint(-200, 200) for _ in range(2000)]
    values += [-v for v in rng.sample(values, 1000)]
    rng.shuffle(values)
    assert bits(total(values)) == bits(math.fsum(values))


# ---- means ----

#: Values whose sums overflow, whose means are subnormal, or that lie where the narrow sum ends.
EDGES = [1.7976931348623157e308, -1.7976931348623157e308, 5e-324, -5e-324, 2.2250738585072014e-308, 2.0**45, 2.0**-28]
MANY = st.one_of(
    st.lists(EVERYDAY, min_size=1), st.lists(st.one_of(FINITE, TINY, EVERYDAY, st.sampled_from(EDGES)), min_size=1)
)
COUNTS = st.one_of(st.integers(1, 2**63 - 1), st.integers(0, 62).map(lambda e: 2**e), st.integers(1, 50))


def mean(values: list[float], n: int) -> float:
    s = ExactSum()
    s.add(values)
    return s.mean(n)


@given(MANY)
@example([1.7976931348623157e308] * 3)  # the sum is beyond the largest double, the mean is not
@example([1e308, 1e308])
@example([5e-324, 0.0])  # half of the least subnormal: to even, which is 0
@example([5e-324] * 3 + [0.0])
@example([-5e-324, 0.0])
@example([2.0**53, 1.0, 2.0**-60])
@example([0.1, 0.2, 0.3])
@example([1e300, 1.0, -1e300])  # the wide sum is in use, what is left is small
def test_mean_is_the_nearest_double_to_the_true_mean(values):
    assert bits(mean(values, len(values))) == bits(float(sum(map(Fraction, values)) / len(values)))


@given(MANY, COUNTS)
@example([2.0**46] * 4, 2**63 - 1)
@example([2.0**-28], 2**63 - 1)
@example([-(2.0**44)] * 3, 3)
def test_mean_rounds_once_whatever_the_count(values, n):
    true_mean = sum(map(Fraction, values)) / n
    if abs(true_mean) < Fraction(2) ** 1024 - Fraction(2) ** 970:  # more values than n: it may be beyond all doubles
        assert bits(mean(values, n)) == bits(float(true_mean))


@given(
    st.one_of(st.integers(2**52, 2**53 - 1), st.integers(1, 9)),
    st.sampled_from([-1, 0, 1]),
    st.one_of(st.integers(1, 2**20), st.integers(1, 2**63 - 1)),
    st.sampled_from([(-1074, -1074), (-1000, -1074), (900, -1074), (-70, -80), (-60, -80), (-79, -80)]),
)
@example(2, 1, 2**61, (-1074, -1074))  # a bit above a tie that is further from its top than a double is long
def test_mean_at_and_beside_ties(m, beside, n, places):
    """The sum is n times a number halfway between two doubles, subnormal ones too, or the least bit beside it."""
    exponent, least = places
    n *= 2  # or half of the last place would be below the least bit
    if n >= 2**63:
        n = 2**62
    half = Fraction(2 * m + 1, 2) * Fraction(2) ** exponent
    exact_sum, parts = half * n + beside * Fraction(2) ** least, []
    rest = exact_sum
    while rest:  # into doubles, the largest first
        parts.append(float(rest))
        rest -= Fraction(parts[-1])
    assert bits(mean(parts, n)) == bits(float(exact_sum / n))


@pytest.mark.parametrize("n", [1, 3, 7, 49, 1000, 2**20 + 1])
def test_narrow_mean_at_and_beside_ties(n):
    """As above, with values that the narrow sum takes: the least bit shows in nothing but the rest of the division."""
    for m, shift, beside in itertools.product([2**52, 2**52 + 1, 2**53 - 2], range(12, 50, 7), [-1, 0, 1]):
        values = units(n * (2 * m + 1 << shift) + beside)
        want = float(sum(map(Fraction, values)) / n)
        assert bits(mean(values, n)) == bits(want)
        assert bits(mean([-v for v in values], n)) == bits(-want)


@pytest.mark.parametrize("special", [[math.inf], [-math.inf], [math.nan], [math.inf, -math.inf], [math.inf, 1e308]])
def test_mean_of_specials(special):
    expected = sum(v for v in special if not math.isfinite(v))
    assert bits(mean([*special, 1.0], 3)) == bits(expected) or (math.isnan(expected) and math.isnan(mean(special, 2)))
