/*
 * exact_sum.h - the exact sum of doubles, rounded once, independent of the order.
 *
 * A double is m * 2^e with a 53-bit integer m, so every sum of doubles is an integer multiple of 2^-1074. We keep that
 * integer. Adding integers is associative and commutative, hence the result does not depend on the order of values or
 * partial sums, and rounding it once gives the double nearest to the true sum (as math.fsum does).
 *
 *   narrow   one 128-bit integer in units of 2^-80: takes values with 2^-28 <= |x| < 2^45 (and zero) in one add
 *   wide     allocated when a value or the narrow sum does not fit: 35 limbs of 64 bits in units of 2^-1074, and
 *            counts of NaN, +inf and -inf
 *
 *   value = narrow * 2^-80 + wide * 2^-1074
 *
 * An exact zero is +0.0, as with math.fsum. NaN, or both infinities, give NaN. A sum beyond the largest double is
 * infinite. A mean is the exact sum divided by n and rounded once, so it is finite wherever the values are.
 */
#pragma once

#include "base/value.h"

#define EXACT_SUM_LIMBS 35

typedef struct {
  uint64_t limb[EXACT_SUM_LIMBS]; /* two's complement, least significant first */
  int64_t nan, plus_inf, minus_inf;
} exact_sum_wide;

struct ps_exact_sum {
  int128 narrow;
  exact_sum_wide *wide; /* NULL while not needed; all zero bytes are an empty sum */
  int64_t n;            /* the owner's count of values; stored here because it would be padding */
};

/* 2^63 values of the largest exponent (2^1024) and the sign must fit above the unit 2^-1074. */
_Static_assert(EXACT_SUM_LIMBS * 64 >= 1074 + 1024 + 63 + 1, "a sum of 2^63 doubles must not overflow the wide limbs");

#define EXACT_SUM_NARROW_UNIT 80                            /* the narrow sum is in units of 2^-80 */
#define EXACT_SUM_NARROW_BIT (1074 - EXACT_SUM_NARROW_UNIT) /* bit of the wide sum that is the narrow unit */
#define EXACT_SUM_SHIFT_MAX 72                              /* m < 2^53, so m << 72 is below 2^125 */

/* All of these return false when out of memory; the sum is then unchanged. */
bool exact_sum_add_rare(ps_exact_sum *sum, double x); /* for any value */
/* Adds the other sum (LIMBS_PLUS), or undoes that (LIMBS_MINUS); not their `n`. */
bool exact_sum_combine(ps_exact_sum *sum, const ps_exact_sum *other, uint64_t sign);
/* Allocates what exact_sum_add(sum, x) needs, so that it cannot fail; the value of the sum does not change. */
bool exact_sum_reserve(ps_exact_sum *sum, double x);

/* |x| as m * 2^shift of some unit. */
typedef struct {
  uint64_t m, shift;
} exact_parts;

/* Of a finite double, in units of 2^-1074. */
static inline exact_parts exact_parts_wide(uint64_t bits) {
  uint64_t exponent = bits >> 52 & 0x7ff, fraction = bits & ((UINT64_C(1) << 52) - 1);
  return exponent ? (exact_parts){fraction | UINT64_C(1) << 52, exponent - 1} : (exact_parts){fraction, 0};
}

/* A normal double in the narrow range, in units of the narrow sum. False: it is not, and *units is undefined. Shifts
   the mantissa by multiplications, because processors are slow in shifting 128 bits by a variable number: one factor
   takes at most 62 bits of the shift, the other one the remaining ten. */
static inline bool exact_sum_units(uint64_t bits, int128 *units) {
  uint64_t shift = (bits >> 52 & 0x7ff) - 1 - EXACT_SUM_NARROW_BIT; /* below the range: wraps to a large number */
  uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52, sign = 0 - (bits >> 63);
  uint64_t some = shift > 62 ? EXACT_SUM_SHIFT_MAX - 62 : 0;
  int64_t signed_m = (int64_t)(((m << some) ^ sign) - sign);
  *units = (int128)signed_m * (int64_t)(UINT64_C(1) << ((shift - some) & 63));
  return shift <= EXACT_SUM_SHIFT_MAX;
}

/* The common case, inline, because it is the inner loop of every float sum. False: it is another, nothing changed. */
static inline bool exact_sum_add_narrow(ps_exact_sum *sum, uint64_t bits) {
  int128 units, total;
  if (__builtin_expect(!exact_sum_units(bits, &units), 0)) return false;
  if (__builtin_expect(__builtin_add_overflow(sum->narrow, units, &total), 0)) return false;
  sum->narrow = total;
  return true;
}

static inline bool exact_sum_add(ps_exact_sum *sum, double x) {
  return __builtin_expect(exact_sum_add_narrow(sum, double_bits(x)), 1) || exact_sum_add_rare(sum, x);
}

/* Rounds a narrow sum of 67 to 116 bits: once, in the addition of its halves, which are exact doubles. 53 bits of the
   lower half are enough, if the last one is set when anything is below it: that bit is at least two places below those
   that the result keeps. */
static inline double exact_sum_halves_round(int64_t high, uint64_t low) {
  int64_t lower = (int64_t)(low >> 11 | ((low & 0x7ff) != 0));
  return (double)high * 0x1p-16 + (double)lower * 0x1p-69;
}

/* Rounds any narrow sum: if it is not one of those, once in the conversion of its upper 63 bits, the last of which is
   set when anything is below it; the unit is a power of two. */
static inline double exact_sum_narrow_round(int128 narrow) {
  int64_t half = (int64_t)(narrow >> 64), far = INT64_C(1) << 52;
  if (__builtin_expect((half >= 4 && half < far) || (half < -4 && half > -far), 1)) {
    return exact_sum_halves_round(half, (uint64_t)narrow);
  }
  uint128 magnitude = narrow < 0 ? -(uint128)narrow : (uint128)narrow;
  uint64_t high = (uint64_t)(magnitude >> 64), low = (uint64_t)magnitude;
  if (high == 0) return (double)narrow * 0x1p-80;
  int shift = __builtin_clzll(high); /* 0: only for the lowest number of all */
  uint64_t top = high << shift | low >> 1 >> (63 - shift), below = low << shift;
  double x = (double)(int64_t)(top >> 1 | (top & 1) | (below != 0));
  double unit = bits_double((uint64_t)(1023 + 65 - shift - EXACT_SUM_NARROW_UNIT) << 52);
  return narrow < 0 ? -x * unit : x * unit;
}

/* sum / n * 2^unit, rounded once; n > 0, and the result must not be subnormal (|unit| < 800). The dividend is shifted
   to 127 bits and n to 64, so one division of 128 by 64 bits gives a quotient of 63 or 64 bits. A double keeps 53; of
   the others it matters only whether they are above, at or below a half: the last bit kept here is set when anything is
   below it. */
static inline double exact_mean(int128 sum, int64_t n, int unit) {
  if (sum == 0) return 0.0;
  uint128 magnitude = sum < 0 ? -(uint128)sum : (uint128)sum;
  uint64_t high = (uint64_t)(magnitude >> 64);
  int zeros = high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)magnitude),
      scale = __builtin_clzll((uint64_t)n);
  uint128 dividend = magnitude << zeros >> 1; /* exact: if zeros is 0, magnitude is 2^127 */
  uint64_t divisor = (uint64_t)n << scale, quotient = (uint64_t)(dividend / divisor);
  bool rest = (uint64_t)dividend != quotient * divisor; /* the remainder is below 2^64 */
  double x = (double)(int64_t)(quotient >> 1 | (quotient & 1) | rest);
  double factor = bits_double((uint64_t)(1023 + 2 + scale - zeros + unit) << 52);
  return sum < 0 ? -x * factor : x * factor;
}

double exact_sum_round(const ps_exact_sum *sum);
double exact_sum_mean(const ps_exact_sum *sum, int64_t n); /* the nearest double to sum / n; n > 0 */
void exact_sum_clear(ps_exact_sum *sum);                   /* frees its memory and makes it empty */

/* Whether n doubles can add up to it: of a sum that came as bytes. */
bool exact_sum_wide_possible(const exact_sum_wide *w, int64_t n);

/* How many of its values are NaN or infinite, where that is possible. */
static inline uint64_t exact_sum_specials(const exact_sum_wide *w) {
  return (uint64_t)w->nan + (uint64_t)w->plus_inf + (uint64_t)w->minus_inf;
}
