"""The exact float sum: equal to math.fsum, whatever the order and the grouping."""

from __future__ import annotations

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
