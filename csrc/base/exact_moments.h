/*
 * exact_moments.h - variance and deviation of doubles or integers: each the double nearest to the exact value, whatever
 * the order.
 *
 * The state is n, the exact sum of the values (exact_sum.h) and the exact sum of their squares (exact_product.h).
 * Adding, combining and subtracting are exact, so what was subtracted leaves no trace, and there is no cancellation:
 *
 *   variance     (n * sum(x * x) - sum(x)^2) / (n * (n - ddof))
 *
 * The numerator is computed as one integer (exact_numerator.h), then divided and rounded once (exact_ratio.h). The
 * denominator is below 2^124. A deviation is the root of the exact variance, rounded once, not the root of the rounded
 * one.
 *
 * There are fewer than 2^62 values (EXACT_PRODUCT_MAX_BITS). A NaN or an infinity among them gives NaN, and so does
 * every result until all of these have been subtracted. One thread at a time.
 */
#pragma once

#include "base/exact_numerator.h"

/* Layout, for those who save it: n, the narrow sum and its wide part (exact_sum.h); the five words of the products and
   their wide part (exact_product.h). All zero bytes is an empty state. */
struct ps_exact_moments {
  ps_exact_sum sum; /* with n */
  exact_product squares;
};

_Static_assert(sizeof(struct ps_exact_moments) == 80, "ten words: there is one for each key of a slice");

/* All that give a bool: false when out of memory; the state is then as it was. */
bool exact_moments_add_rare(ps_exact_moments *m, double x); /* whatever the value */
bool exact_moments_combine_rare(ps_exact_moments *m, const ps_exact_moments *other, uint64_t sign);
/* Allocates what adding x needs, so that exact_moments_add(m, x) cannot fail. */
bool exact_moments_reserve(ps_exact_moments *m, double x);

/* The common case in line, because it is an inner loop: values below 2^35, for which one multiplication makes units of
   the narrow sum of m. False: it is another, nothing changed. */
static inline bool exact_moments_add_narrow(ps_exact_moments *m, uint64_t bits) {
  int128 total;
  exact_parts parts = exact_parts_of(bits);
  if (__builtin_expect(parts.shift > 62, 0)) return false;
  uint64_t sign = 0 - (bits >> 63);
  int128 units = (int128)(int64_t)((parts.m ^ sign) - sign) * (int64_t)(UINT64_C(1) << parts.shift);
  if (__builtin_expect(__builtin_add_overflow(m->sum.narrow, units, &total), 0)) return false;
  m->sum.narrow = total;
  m->sum.n++;
  exact_product_add_narrow(&m->squares, parts, parts, LIMBS_PLUS);
  return true;
}

static inline bool exact_moments_add(ps_exact_moments *m, double x) {
  return __builtin_expect(exact_moments_add_narrow(m, double_bits(x)), 1) || exact_moments_add_rare(m, x);
}

/* Integers: |sum| <= 2^64 * 2^62 fits, and nothing is ever allocated. */
static inline void exact_moments_add_integer(ps_exact_moments *m, uint64_t bits, bool is_unsigned) {
  exact_parts parts = is_unsigned ? (exact_parts){bits, 0} : exact_parts_i64((int64_t)bits);
  m->sum.narrow += is_unsigned ? (int128)bits : (int128)(int64_t)bits;
  m->sum.n++;
  exact_product_add_narrow(&m->squares, parts, parts, LIMBS_PLUS);
}

static inline bool exact_moments_are_narrow(const ps_exact_moments *m) { return !m->sum.wide && !m->squares.wide; }

/* Adds the other state (LIMBS_PLUS), or undoes that (LIMBS_MINUS): a constant where it is called. */
static inline bool exact_moments_combine(ps_exact_moments *m, const ps_exact_moments *other, uint64_t sign) {
  int128 total;
  bool over = sign ? __builtin_sub_overflow(m->sum.narrow, other->sum.narrow, &total)
                   : __builtin_add_overflow(m->sum.narrow, other->sum.narrow, &total);
  if (__builtin_expect(over || !exact_moments_are_narrow(other), 0)) return exact_moments_combine_rare(m, other, sign);
  m->sum.narrow = total;
  m->sum.n += sign ? -other->sum.n : other->sum.n;
  limbs_add(m->squares.word, other->squares.word, EXACT_PRODUCT_WORDS, sign);
  return true;
}

/* n * sum(x * x) - sum(x)^2 of a narrow state, in units of the sum squared; written out because it is a third of what a
   result costs, and nothing in it is negative. |sum| <= 2^127, so twice the product of its halves is below 2^128. */
static inline void exact_moments_numerator(const ps_exact_moments *m, uint64_t to[EXACT_NARROW_LIMBS]) {
  uint128 sum = m->sum.narrow < 0 ? -(uint128)m->sum.narrow : (uint128)m->sum.narrow;
  uint64_t low = (uint64_t)sum, high = (uint64_t)(sum >> 64);
  uint128 first = (uint128)low * low, middle = (uint128)low * high << 1, last = (uint128)high * high;
  unsigned char over = 0;
  uint64_t square[EXACT_NARROW_LIMBS] = {(uint64_t)first};
  square[1] = limbs_step((uint64_t)(first >> 64), (uint64_t)middle, &over);
  square[2] = limbs_step((uint64_t)last, (uint64_t)(middle >> 64), &over);
  square[3] = (uint64_t)(last >> 64) + over;
  memcpy(to, m->squares.word, sizeof m->squares.word);
  to[EXACT_PRODUCT_WORDS] = 0;
  limbs_scale(to, EXACT_NARROW_LIMBS, (uint64_t)m->sum.n);
  limbs_add(to, square, EXACT_NARROW_LIMBS, LIMBS_MINUS);
}

/* The variance or its root, the deviation; 0 <= ddof < n: with fewer values there is no result. */
double exact_moments_result(const ps_exact_moments *m, exact_unit unit, int64_t ddof, bool root);

void exact_moments_clear(ps_exact_moments *m); /* frees what it holds; it is empty again */

/* Whether n values can have led to the state, as far as results depend on it: of one that came as bytes. What is
   combined from possible states is possible. */
bool exact_moments_possible(const ps_exact_moments *m, exact_unit unit);
