/*
 * exact_ratio.h - the double nearest to a / d * 2^exponent, and to its square root, for integers a of many limbs and d.
 *
 * Of a the highest 255 bits are taken, and of the others whether there are any: a rest. They are divided by d shifted
 * to 128 bits, so the quotient has 127 or 128 bits, and again a rest. A double keeps 53 bits of the result, or fewer;
 * of what is below them it matters only whether it is more than a half, exactly a half or less. Two bits more and
 * whether there is a rest decide that, and there are at least nine more:
 *
 *   the quotient   its upper 63 or 64 bits; a rest is what was left at any step
 *   the root       of the quotient shifted by 2 or 3 bits, so that its exponent is even: the integer root has 62 or 63
 *                  bits; a rest is what was left at any step, or that the quotient is no square
 *
 * Rounding is to nearest, ties to even; to subnormal numbers as well, once; and to infinity from 2^1024 - 2^970 on.
 */
#pragma once

#include <math.h>

#include "base/limbs.h"
#include "base/value.h"

/* The quotient or its root; d > 0, a has n limbs and no sign. */
double exact_ratio(const uint64_t *a, int n, uint128 d, int exponent, bool root);

/* The same for d of m limbs, at most EXACT_RATIO_LIMBS. It is shifted so that its highest bit is that of a limb, and of a
   two limbs more are divided by it: the quotient has 127 or 128 bits, as above. */
#define EXACT_RATIO_LIMBS 140
double exact_long_ratio(const uint64_t *a, int n, const uint64_t *d, int m, int exponent, bool root);

/* ---- The quick way, which exact_ratio tries first; in line for those who have many ratios.

   Quotient and root are almost always decided by a few operations on doubles and 128-bit integers, whose result is known up
   to an error far below a half: if both ends of what it may be round to the same double, that is it. Else exact_ratio decides.

   t is the highest 114 bits of a, d is shifted to 53 bits, so q = t / d is between 2^60 and 2^62. A guess from doubles is
   off by 2^12 at most, so t - guess * d is exact and below 2^66: divided by d, in doubles, it is what the guess is short
   of, within 2^-38. What t has lost is below 2^-52 of q. ---- */
typedef struct {
  uint64_t high, low; /* the highest 128 bits of a */
  int64_t d;          /* shifted to 53 bits */
  int exponent;       /* of q's unit */
} exact_quick;

typedef struct {
  int64_t guess;
  double short_of; /* q - guess */
} exact_quotient;

#define EXACT_QUICK_ERROR 0x1p-30 /* far above the error, and far below what decides between two doubles */

/* Whether d fits, and the result is so far from the ends of the doubles that it can be multiplied by powers of two. */
static inline bool exact_quick_fits(int top, uint128 d, int exponent) {
  return d >> 53 == 0 && exponent + top > -900 && exponent + top < 900;
}

/* `top` is the highest bit of a. */
static inline exact_quick exact_quick_of(const uint64_t *a, int top, uint64_t d, int exponent) {
  int i = top >> 6, up = 63 - (top & 63), scale = __builtin_clzll(d) - 11;
  uint64_t second = i > 0 ? a[i - 1] : 0, third = i > 1 ? a[i - 2] : 0;
  uint64_t high = a[i] << up | second >> 1 >> (63 - up), low = second << up | third >> 1 >> (63 - up);
  return (exact_quick){high, low, (int64_t)(d << scale), exponent + top - 113 + scale};
}

static inline exact_quotient exact_quick_divide(exact_quick x) {
  uint128 t = ((uint128)x.high << 64 | x.low) >> 14;
  double inverse = 1.0 / (double)x.d;
  int64_t guess = (int64_t)((double)(int64_t)(x.high >> 1) * inverse * 0x1p51);
  int128 rest = (int128)t - (int128)guess * x.d;
  return (exact_quotient){guess, (double)(int64_t)(rest >> 12) * 0x1p12 * inverse};
}

static inline double exact_quick_power(int exponent) { return bits_double((uint64_t)(1023 + exponent) << 52); }

/* False: not decided. */
static inline bool exact_quick_round(exact_quick x, double *out) {
  exact_quotient q = exact_quick_divide(x);
  double upper = (double)(q.guess & ~INT64_C(1023)), lower = (double)(q.guess & 1023) + q.short_of; /* upper: exact */
  double one = upper + (lower - EXACT_QUICK_ERROR), other = upper + (lower + EXACT_QUICK_ERROR);
  *out = one * exact_quick_power(x.exponent);
  return double_bits(one) == double_bits(other);
}

/* The root of the guess in doubles, shifted by 22 bits, is an integer r between 2^52 and 2^54, off by 2^4 at most. One
   step of Newton's method gives what it is short of, within 2^-44; the differences in it are exact and below 2^58. */
static inline bool exact_quick_root(exact_quick x, double *out) {
  exact_quotient q = exact_quick_divide(x);
  int odd = x.exponent & 1;
  double twice = 1 + odd, root = sqrt((double)q.guess * twice) * 0x1p22;
  int64_t r = (int64_t)root;
  int128 square = (int128)q.guess << 44 << odd;
  double rest = (double)(int64_t)(square - (int128)r * r) + q.short_of * 0x1p44 * twice;
  double short_of = rest * 0.5 / root;
  double one = root + (short_of - EXACT_QUICK_ERROR), other = root + (short_of + EXACT_QUICK_ERROR);
  *out = one * exact_quick_power((x.exponent - odd) / 2 - 22);
  return double_bits(one) == double_bits(other);
}
