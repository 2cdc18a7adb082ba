"""Exact variance, deviation and covariance: the double nearest to the exact value, whatever the order."""

from __future__ import annotations

import itertools
import math
import random
import statistics
from fractions import Fraction

import pytest
from exact_moments import Moments, Pairs, covar_of, covariance, deviations, nearest, ratio, root, same, std_of, var_of
from hypothesis import example, given
from hypothesis import strategies as st
from memory import with_failing_memory
from pystream._core import ffi, lib

LARGEST, LEAST, NORMAL = 1.7976931348623157e308, 5e-324, 2.2250738585072014e-308
#: Where the narrow sums end, on both sides.
EDGES = [2.0**45, math.nextafter(2.0**45, 0), 2.0**-28, math.nextafter(2.0**-28, 0)]
SPECIAL = [math.nan, math.inf, -math.inf]
INT = {"i64": (-(2**63), 2**63 - 1), "u64": (0, 2**64 - 1)}

FINITE = st.floats(allow_nan=False, allow_infinity=False)
EVERYDAY = st.floats(-1e6, 1e6)
READINGS = st.integers(-1000, 1000).map(lambda i: i / 10)
FAR = st.integers(-8, 8).map(lambda i: 1e15 + i / 8)
TINY = st.integers(-9, 9).map(lambda i: i * LEAST)
CHOSEN = st.sampled_from([0.0, -0.0, 1.0, 1e300, -1e300, 1e-300, LEAST, NORMAL, LARGEST, -LARGEST, *EDGES])
ANY = st.one_of(FINITE, EVERYDAY, CHOSEN)
VALUES = st.one_of(*(st.lists(kind, max_size=12) for kind in (ANY, EVERYDAY, READINGS, FAR, TINY, CHOSEN)))
DDOF = st.integers(0, 2)


def agrees(m: Moments, values: list, ddof: int = 1) -> bool:
    return same(m.var(ddof), var_of(values, ddof)) and same(m.std(ddof), std_of(values, ddof))


# ---- the oracle ----


@given(st.lists(st.one_of(EVERYDAY, FAR, TINY, st.floats(-1e150, 1e150)), min_size=2, max_size=9))
def test_the_oracle_is_pythons(values):
    assert var_of(values) == statistics.variance(values)
    assert std_of(values) == statistics.stdev(values)
    assert std_of(values, 0) == statistics.pstdev(values)


# ---- results ----


@given(VALUES, DDOF)
@example([1.0], 0)
@example([LARGEST, -LARGEST], 1)  # the variance is beyond all doubles, the deviation is not
@example([LARGEST, -LARGEST], 0)
@example([1e154, -1e154], 1)
@example([LEAST, 0.0], 0)  # a variance below all doubles
@example([1e-162, 0.0], 1)  # a subnormal one
@example([1e300, 1e-300], 1)
@example([2.0**45, 2.0**-28, 2.0**-29], 2)
def test_is_the_nearest_double(values, ddof):
    assert agrees(Moments(values), values, ddof)


@given(st.lists(st.integers(*INT["i64"]) | st.sampled_from([0, 1, -1, *INT["i64"]]), max_size=9), DDOF)
@example([*INT["i64"]] * 3, 1)
def test_of_signed_integers(values, ddof):
    assert agrees(Moments(values, "i64"), values, ddof)


@given(st.lists(st.integers(*INT["u64"]) | st.sampled_from([0, 1, *INT["u64"]]), max_size=9), DDOF)
@example([*INT["u64"]] * 3, 1)
def test_of_unsigned_integers(values, ddof):
    assert agrees(Moments(values, "u64"), values, ddof)


@given(VALUES, VALUES, DDOF)
@example([LARGEST, -LARGEST], [-LARGEST, LARGEST], 0)
@example([LEAST, 0.0], [-LEAST, 0.0], 0)  # rounds to -0.0
def test_covariance_is_the_nearest_double(x, y, ddof):
    pairs = list(zip(x, y, strict=False))
    assert same(Pairs(pairs).covar(ddof), covar_of(pairs, ddof))


@given(st.lists(st.tuples(*[st.integers(*INT["i64"]) | st.sampled_from([0, 1, *INT["i64"]])] * 2), max_size=9), DDOF)
def test_covariance_of_integers(pairs, ddof):
    assert same(Pairs(pairs, "i64").covar(ddof), covar_of(pairs, ddof))


@pytest.mark.parametrize("value", [0.0, -0.0, 0.1, 1e15, 1e300, LEAST, -LARGEST, *EDGES])
@pytest.mark.parametrize("n", [1, 2, 3, 1000])
def test_of_equal_values_it_is_zero(value, n):
    m = Moments([value] * n)
    assert same(m.var(0), 0.0)
    assert same(m.std(0), 0.0)
    assert same(m.var(1), 0.0 if n > 1 else None)
    assert same(Pairs([(value, 0.1)] * n).covar(0), 0.0)


@pytest.mark.parametrize("ddof", range(4))
def test_there_must_be_more_values_than_ddof(ddof):
    for kind in ("f64", "i64", "u64"):
        values = list(range(ddof))
        assert Moments(values, kind).var(ddof) is Moments(values, kind).std(ddof) is None
        assert Moments([*values, 7], kind).var(ddof) == var_of([*values, 7], ddof)
    assert Pairs([(1.0, 2.0)] * ddof).covar(ddof) is None


@given(st.lists(st.one_of(EVERYDAY, st.sampled_from([*SPECIAL, 1e300])), min_size=1, max_size=6), st.integers(0, 5))
def test_nan_and_infinities_give_nan(values, at):
    values.insert(at, SPECIAL[at % 3])
    assert math.isnan(Moments(values).var(0))
    assert math.isnan(Moments(values).std(0))
    for pairs in ([(v, 1.0) for v in values], [(1.0, v) for v in values], [(v, 0.0) for v in values]):
        assert math.isnan(Pairs(pairs).covar(0))


@pytest.mark.parametrize("special", SPECIAL)
@pytest.mark.parametrize("values", [[0.1, 0.2, 0.4], [1e300, 1e-300, 1.0]])
def test_specials_leave_no_trace(special, values):
    m = Moments([*values, special])
    assert math.isnan(m.var())
    m.subtract(Moments([special]))
    assert agrees(m, values)
    p = Pairs([*((v, 2 * v) for v in values), (special, 1.0), (3.0, special)])
    assert math.isnan(p.covar())
    p.subtract(Pairs([(special, 1.0), (3.0, special)]))
    assert same(p.covar(), covar_of([(v, 2 * v) for v in values]))


# ---- rounding: at ties, and as little as can be beside them ----

#: Denominators as the quick way takes them, larger ones, and such for which the first guess of a digit is too large.
DIVISORS = st.one_of(
    st.integers(1, 99),
    st.integers(1, 2**53 - 1),
    st.integers(1, 2**124),
    st.integers(0, 60).map(lambda i: 2**64 - 1 << i | i),
    st.builds(lambda i, up: (2**63 + i << 60 | 2**60 - 1) << up, st.integers(0, 99), st.integers(0, 3)),
)
MANTISSAS = st.one_of(st.integers(2**52, 2**53 - 1), st.sampled_from([2**52, 2**52 + 1, 2**53 - 2, 2**53 - 1]))
FEW = st.one_of(MANTISSAS, st.integers(1, 2**20))


def twice(a: int, d: int, exponent: int, *, of_root: bool) -> bool:
    """With one limb more below, which changes nothing but the way through the limbs."""
    exact = Fraction(a, d) * Fraction(2) ** exponent
    want = root(exact) if of_root else nearest(exact)
    return all(same(ratio(a << up, d, exponent - up, of_root=of_root), want) for up in (0, 64))


@given(st.integers(0, 2**400), DIVISORS, st.integers(-1300, 1100), st.booleans())
@example(0, 1, 0, False)
@example(0, 1, 0, True)
@example(2**128 - 1, 1, 0, True)
@example(2**255 - 1, 2**127 - 1, 0, False)
def test_ratios(a, d, exponent, of_root):
    assert twice(a, d, exponent, of_root=of_root)


@given(MANTISSAS, DIVISORS, st.integers(0, 200), st.sampled_from([-1, 0, 1]), st.integers(-900, 700), st.booleans())
def test_ratios_at_and_beside_ties(m, d, up, beside, exponent, of_root):
    """A number of 54 bits, the last one set, is halfway between two doubles: that, or 1 beside."""
    tie = 2 * m + 1
    a = (tie**2 * d << 2 * up) + beside if of_root else (tie * d << up) + beside
    assert twice(a, d, exponent - exponent % 2, of_root=of_root)


@given(FEW, DIVISORS, st.integers(0, 100), st.sampled_from([-1, 0, 1]), st.sampled_from([-1, 0, 1]), st.booleans())
def test_ratios_at_and_beside_doubles(m, d, up, beside, odd, of_root):
    """The same at a double, where nothing may be left over."""
    a = (m**2 * d << 2 * up) + beside if of_root else (m * d << up) + beside
    assert twice(a, d, -2 * up + odd, of_root=of_root)


@given(FEW, DIVISORS, st.integers(0, 130), st.sampled_from([-1, 0, 1]), st.booleans())
@example(0, 1, 0, 0, False)  # 2^-1075: to even, which is 0
@example(1, 1, 0, 0, False)
def test_subnormal_ratios_at_and_beside_ties(m, d, up, beside, of_root):
    """Halfway between two subnormal numbers, or beside it."""
    tie = 2 * m + 1
    if of_root:
        assert twice((tie**2 * d << 2 * up) + beside, d, -2 * (1075 + up), of_root=True)
    else:
        assert twice((tie * d << up) + beside, d, -(1075 + up), of_root=False)


@pytest.mark.parametrize("m", [2**52, 2**52 + 1, 2**53 - 1])
@pytest.mark.parametrize("d", [1, 4, 2**60 + 1, 2**100 + 1])
def test_ratios_beside_ties_at_every_distance(m, d):
    """What is beside a tie lies in the last bits of the quotient, in the rest, or below what is divided at all."""
    tie = 2 * m + 1
    for up, beside in itertools.product(range(0, 250, 3), (-3, -1, 0, 1, 2, 5)):
        a = (tie * d << up) + beside
        assert same(ratio(a, d, 0), nearest(Fraction(a, d)))
        for odd in (0, 1):
            a = (tie**2 * d << up + odd) + beside
            assert same(ratio(a, d, up % 2 - odd, of_root=True), root(Fraction(a, d) * Fraction(2) ** (up % 2 - odd)))


@given(DIVISORS, st.integers(0, 100), st.sampled_from([-1, 0, 1]))
def test_ratios_where_infinity_begins(d, up, beside):
    assert twice(((2**54 - 1) * d << up) + beside, d, 1024 - 54 - up, of_root=False)


def squares_of(variance: Fraction, unit: Fraction) -> list[float]:
    """Multiples of the unit whose sum is 0 and whose squares sum up to the variance: each with its negative."""
    n = variance / (2 * unit**2)
    assert n.denominator == 1
    left, found = int(n), []
    while left:
        root = math.isqrt(left)
        few = max(0, root.bit_length() - 53)  # doubles have no more
        found.append(root >> few << few)
        left -= found[-1] ** 2
    return [s * float(x * unit) for x in found for s in (1, -1)]


@pytest.mark.parametrize("exponent", [-60, -1, 0, 7, 20])
@pytest.mark.parametrize("m", [2**52, 2**52 + 1, 2**53 - 1])
@pytest.mark.parametrize("beside", [-1, 0, 1])
def test_variance_at_and_beside_ties(m, exponent, beside):
    """The sum of squares is that of a number halfway between two doubles, and the sum is 0."""
    unit = Fraction(2) ** -70
    tie = Fraction(2 * m + 1, 2) * Fraction(2) ** (exponent - 52)
    exact = tie + beside * 2 * unit**2
    values = squares_of(exact, unit)
    assert sum(Fraction(v) ** 2 for v in values) == exact
    assert same(Moments(values).var(len(values) - 1), nearest(exact))


@pytest.mark.parametrize("bits", [54, 55, 60])
@pytest.mark.parametrize("seed", range(10))
def test_deviation_at_and_beside_ties(bits, seed):
    """Of the integers r, -r the deviation with ddof 0 is r: with 54 bits and the last one set, a tie. Beside it, one
    value is larger by 1: the least difference that integers can have."""
    rng = random.Random(seed)
    r = (rng.getrandbits(bits - 1) | 1 << (bits - 1)) >> bits - 54 << bits - 54 | 1 << bits - 54
    assert same(Moments([r, -r], "i64").std(0), float(r))
    for other in ([r, -r - 1], [r, -r + 1], [r] * 500 + [-r] * 499 + [-r - 1], [r] * 500 + [-r] * 499 + [-r + 1]):
        assert same(Moments(other, "i64").std(0), std_of(other, 0))
        scaled = [float(v) if float(v) == v else None for v in other]
        if None not in scaled:
            assert agrees(Moments(scaled), scaled, 0)


@pytest.mark.parametrize("exponent", range(-1080, -1020, 3))
@pytest.mark.parametrize("m", [1, 2**20 + 1, 2**53 - 1])
def test_subnormal_variances_are_rounded_once(exponent, m):
    """Two values whose variance is about 2^exponent, at and around every place of the last bit of a subnormal."""
    for k in range(-2, 3):
        d = math.ldexp(m, exponent // 2 - m.bit_length()) * (1 + k * 2.0**-30)
        for values in ([d, 0.0], [d, 0.0, 0.0], [d, d, 0.0, 1e-300]):
            assert agrees(Moments(values), values)
            assert agrees(Moments(values), values, 0)


@pytest.mark.parametrize("k", range(-3, 4))
def test_subnormal_ties(k):
    """With n = 2 and ddof 1 the variance is d * d / 2: 2^-1075, half of the least double, is a tie to 0."""
    d = math.ldexp(1.0, -537)
    for x in (d * (1 + k * 2.0**-52), d * (1.5 + k * 2.0**-51), 3 * d, 5 * d):
        assert agrees(Moments([x, 0.0]), [x, 0.0])
    assert Moments([d, 0.0]).var() == 0.0
    assert Moments([math.nextafter(d, 1), 0.0]).var() == LEAST


@pytest.mark.parametrize("k", range(-4, 5))
def test_where_infinity_begins(k):
    """The variance of r, -r with ddof 0 is r * r: around the largest double and the tie above it."""
    r = math.sqrt(LARGEST)
    r = math.ldexp(math.frexp(r)[0] + k * 2.0**-53, math.frexp(r)[1])
    assert agrees(Moments([r, -r]), [r, -r], 0)
    values = [2.0**512, -(2.0**512)]  # exactly 2^1024, less 2^970 or a little more or less of it
    for less in (2.0**458 * (1 + k * 2.0**-30), 2.0**457.5, 2.0**458.5):
        with_less = [*values, less, -less]
        assert agrees(Moments(with_less), with_less, 0)


# ---- counts that no test can reach by adding ----


def doubled(m: Moments, times: int) -> Moments:
    for _ in range(times):
        other = Moments([], m.kind)
        other.combine(m)
        m.combine(other)
    return m


@given(st.lists(ANY, min_size=2, max_size=5), st.integers(1, 58), st.integers(0, 3))
def test_many_values_by_doubling(values, doublings, ddof):
    """The state combined with itself: n grows up to 2^60, the exact variance hardly changes."""
    values = [v for v in values if abs(v) < 1e300]
    m = doubled(Moments(values), doublings)
    n = len(values) << doublings
    if n <= ddof:
        return
    exact = covariance([(v, v) for v in values], 0) * n / (n - ddof) if values else Fraction()
    assert same(m.var(ddof), nearest(exact))
    assert same(m.std(ddof), root(exact))


@pytest.mark.parametrize("kind", INT)
def test_many_integers_by_doubling(kind):
    least, most = INT[kind]
    for values in ([least, most], [most, most], [least, most, 0]):
        m = doubled(Moments(values, kind), 59)
        n = len(values) << 59
        exact = covariance([(v, v) for v in values], 0) * n / (n - 1)
        assert same(m.var(), nearest(exact))
        assert same(m.std(), root(exact))


# ---- blocks ----


@pytest.mark.parametrize("count", [1, 3, 4, 5, 32, 33, 100])
@pytest.mark.parametrize("kind", ["f64", "i64", "u64"])
def test_blocks_of_states(count, kind):
    """Each row is what its state gives alone: also states that are wide, large, or of equal values."""
    rng = random.Random(count)

    def values() -> list:
        n = rng.randrange(3, 9)
        if kind != "f64":
            return rng.choice(
                [[rng.randrange(99) for _ in range(n)], [rng.choice(INT[kind]) for _ in range(n)], [7] * n]
            )
        odd = 2 * rng.randrange(2**51, 2**52) + 1
        return rng.choice(
            [
                *([rng.randrange(1000) / 10 for _ in range(n)] for _ in range(3)),
                [rng.choice([1e300, 1e-300, 1.0]) for _ in range(n)],
                [rng.random() * 2.0 ** rng.randint(-40, 50) for _ in range(n)],
                [0.1] * n,
                [float(odd), 0.0, float(odd), 0.0],
                [0.5, math.nan, 0.25],
            ]
        )

    states = [doubled(Moments(values(), kind), rng.choice([0, 0, 0, 5, 24, 27, 50])) for _ in range(count)]
    for ddof in (0, 1, 2):
        assert all(map(same, deviations(states, ddof, of_root=False), [m.var(ddof) for m in states]))
        assert all(map(same, deviations(states, ddof, of_root=True), [m.std(ddof) for m in states]))


# ---- any order, any grouping, and back ----


@given(st.lists(VALUES, max_size=5), st.randoms(use_true_random=False), DDOF)
def test_parts_combine_in_any_order_and_grouping(parts, rng, ddof):
    states = [Moments(part) for part in parts]
    rng.shuffle(states)
    whole = Moments()
    while states:
        target = states[0] if len(states) > 1 and rng.random() < 0.5 else whole
        target.combine(states.pop())
    assert agrees(whole, [v for part in parts for v in part], ddof)


@given(st.lists(VALUES, min_size=1, max_size=6), st.integers(1, 3), DDOF)
def test_a_window_that_slides(parts, width, ddof):
    """Parts enter and leave: what is left is as if the others had never been there."""
    states, window = [Moments(part) for part in parts], Moments()
    pairs = [[(v, v / 3) for v in part] for part in parts]
    pair_states, pair_window = [Pairs(part) for part in pairs], Pairs()
    for i in range(len(parts)):
        window.combine(states[i])
        pair_window.combine(pair_states[i])
        if i >= width:
            window.subtract(states[i - width])
            pair_window.subtract(pair_states[i - width])
        inside = range(max(0, i - width + 1), i + 1)
        assert agrees(window, [v for k in inside for v in parts[k]], ddof)
        assert same(pair_window.covar(ddof), covar_of([p for k in inside for p in pairs[k]], ddof))


@pytest.mark.parametrize("kind", INT)
@pytest.mark.parametrize("seed", range(5))
def test_a_window_of_integers_that_slides(kind, seed):
    rng = random.Random(seed)
    values = [rng.choice([*INT[kind], rng.randint(*INT[kind]), rng.randrange(9)]) for _ in range(40)]
    window = Moments([], kind)
    for i, value in enumerate(values):
        window.add([value])
        if i >= 7:
            window.subtract(Moments([values[i - 7]], kind))
        assert agrees(window, values[max(0, i - 6) : i + 1])


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("n", [7, 8, 9, 100])
def test_the_narrow_sum_leaves_its_range(n, sign):
    """At 2^127 units of 2^-80, which is exactly eight times 2^44: the sum of values does, that of squares cannot."""
    values = [sign * 2.0**44] * n + [0.5]
    m, others = Moments(values), Moments(values[: n - 1])
    assert agrees(m, values)
    m.combine(others)
    assert agrees(m, values + values[: n - 1])
    m.subtract(others)
    m.subtract(Moments(values[:n]))
    assert agrees(m, [0.5], 0)
    pairs = [(v, -v) for v in values]
    p, others = Pairs(pairs), Pairs(pairs[: n - 1])
    p.combine(others)
    p.combine(Pairs(pairs[:n]))
    p.subtract(others)
    p.subtract(Pairs(pairs[:n]))
    assert same(p.covar(), covar_of(pairs))


@pytest.mark.parametrize("seed", range(10))
def test_long_ill_conditioned_sums(seed):
    rng = random.Random(seed)
    values = [rng.choice([-1, 1]) * rng.random() * 2.0 ** rng.randint(-100, 100) for _ in range(300)]
    assert agrees(Moments(values), values)
    pairs = [(x, rng.choice([-1, 1]) * rng.random() * 2.0 ** rng.randint(-40, 50)) for x in values]
    assert same(Pairs(pairs).covar(), covar_of(pairs))


# ---- out of memory ----


def refused(failing_memory, act, unchanged) -> int:
    """Let the n-th allocation of the act and all later ones fail, until it gets through; how often it did not.

    Nothing may have changed then. What was allocated may be kept, so there can be fewer than allocations.
    """
    for n in itertools.count(1):
        failing_memory(n)
        try:
            act()
        except MemoryError:
            failing_memory(0)
            assert unchanged()
            continue
        failing_memory(0)
        return n - 1
    raise AssertionError


def with_negatives(values: list[float]) -> list[tuple[float, float]]:
    return [(v, -v) for v in values]


def covaries(p: Pairs, values: list[float]) -> bool:
    return same(p.covar(), covar_of(with_negatives(values)))


#: Seven of them fit the narrow sum, eight do not.
SEVEN, EIGHT = [2.0**44] * 7, [2.0**44] * 8


@pytest.mark.parametrize(
    ("before", "value", "fails"),
    [
        ([0.1, 0.7], 1e300, 2),  # a sum, and the sum of products
        ([0.1, 0.7], LEAST, 2),
        ([0.1, 1e300], LEAST, 0),
        ([0.1, 0.7], math.nan, 1),
        ([0.1, 0.7], 2.0**44, 0),
        ([*SEVEN, 0.1], 2.0**44, 1),
    ],
)
def test_out_of_memory_while_adding(before, value, fails, failing_memory, nothing_left):
    m, p, after = Moments(before), Pairs(with_negatives(before)), [*before, value]
    assert refused(failing_memory, lambda: m.add([value]), lambda: agrees(m, before)) == fails
    assert agrees(m, after)
    assert refused(failing_memory, lambda: p.add([(value, -value)]), lambda: covaries(p, before)) >= fails
    assert covaries(p, after)


@pytest.mark.parametrize("value", [1e300, 1e-300, LEAST, math.inf, 2.0**44, 1.0, 0.0])
def test_what_is_reserved_can_be_added(value, failing_memory):
    before = [*SEVEN, 0.1] if value == 2.0**44 else [0.1, 0.7]
    m = Moments(before)
    refused(failing_memory, lambda: m.reserve(value), lambda: agrees(m, before))
    assert agrees(m, before)
    failing_memory(1)
    m.add([value])
    failing_memory(0)
    assert agrees(m, [*before, value])


@pytest.mark.parametrize("other", [[1e300], [LEAST, 1.0], EIGHT, [-v for v in (*EIGHT, 0.1)], [*SEVEN, math.nan]])
def test_out_of_memory_while_combining(other, failing_memory, nothing_left):
    """All or nothing."""
    base = [0.1, 2.0**44]
    m, p, after = Moments(base), Pairs(with_negatives(base)), base + other
    more, more_pairs = Moments(other), Pairs(with_negatives(other))
    assert refused(failing_memory, lambda: m.combine(more), lambda: agrees(m, base)) > 0
    assert agrees(m, after)
    assert refused(failing_memory, lambda: p.combine(more_pairs), lambda: covaries(p, base)) > 0
    assert covaries(p, after)


@pytest.mark.parametrize("sign", [1, -1])
def test_out_of_memory_while_subtracting(sign, failing_memory, nothing_left):
    """The state never left the narrow range, for values of both signs came in turns; those of one sign leave it."""
    eight = [sign * v for v in EIGHT]
    both = [v for pair in zip(eight, (-v for v in eight), strict=True) for v in pair]
    m, p, left = Moments(both), Pairs(with_negatives(both)), [-v for v in eight]
    part, part_pairs = Moments(eight), Pairs(with_negatives(eight))
    assert refused(failing_memory, lambda: m.subtract(part), lambda: agrees(m, both)) > 0
    assert agrees(m, left)
    assert refused(failing_memory, lambda: p.subtract(part_pairs), lambda: covaries(p, both)) > 0
    assert covaries(p, left)


def test_out_of_memory_while_subtracting_first(failing_memory, nothing_left):
    """What has not been combined yet may be taken back before."""
    m, p, more, more_pairs = Moments([0.1, 0.7]), Pairs([(0.1, 0.7)]), Moments([1e300]), Pairs([(1e300, 1.0)])
    m.combine(Moments([3.0]))
    assert refused(failing_memory, lambda: m.subtract(more), lambda: agrees(m, [0.1, 0.7, 3.0])) > 0
    assert refused(failing_memory, lambda: p.subtract(more_pairs), lambda: same(p.covar(0), 0.0)) > 0
    m.combine(more)
    p.combine(more_pairs)
    assert agrees(m, [0.1, 0.7, 3.0])
    assert same(p.covar(0), 0.0)


def test_freeing_nothing(nothing_left):
    lib.ps_exact_moments_free(ffi.NULL)
    lib.ps_exact_pairs_free(ffi.NULL)


def test_out_of_memory_everywhere():
    def work():
        m, p = Moments([0.1, 1e300, math.nan]), Pairs([(1e300, 1.0), (0.1, 1e-300)])
        m.combine(Moments([LEAST]))
        p.combine(Pairs([(2.0**44, 2.0**44)] * 8))
        m.subtract(Moments([math.nan]))
        return m.var(), p.covar()

    got, allocations = with_failing_memory(work)
    assert same(got[0], var_of([0.1, 1e300, LEAST]))
    assert same(got[1], covar_of([(1e300, 1.0), (0.1, 1e-300), *[(2.0**44, 2.0**44)] * 8]))
    assert allocations > 8
