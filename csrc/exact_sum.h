/*
 * exact_sum.h - the exact sum of doubles, rounded once, whatever the order.
 *
 * A double is m * 2^e with a 53-bit integer m, so every sum of doubles is an integer multiple of 2^-1074. We keep that
 * integer: adding integers is associative and commutative, hence the result does not depend on the order in which
 * values or partial sums arrive, and rounding it once gives the double nearest to the true sum (what math.fsum
 * returns).
 *
 *   narrow   one 128-bit integer counting units of 2^-80: takes values with 2^-28 <= |x| < 2^46 (and zero) in one add
 *   wide     allocated when a value or the narrow sum does not fit: 35 limbs of 64 bits counting units of 2^-1074,
 *            and how many NaN, +inf and -inf were seen
 *
 *   value = narrow * 2^-80 + wide * 2^-1074
 *
 * An exact zero is +0.0, as with math.fsum. NaN, or both infinities, give NaN. A sum beyond the largest double is
 * infinite.
 */
#pragma once

#include "base.h"

#define EXACT_SUM_LIMBS 35

typedef struct {
  uint64_t limb[EXACT_SUM_LIMBS]; /* two's complement, least significant first */
  int64_t nan, plus_inf, minus_inf;
} exact_sum_wide;

struct ps_exact_sum {
  int128 narrow;
  exact_sum_wide *wide; /* NULL while not needed; all zero bytes is an empty sum */
  int64_t n;            /* the owner's: how many values it counts; it lies where padding would be */
};

/* 2^63 values of the largest exponent (2^1024) and the sign must fit above the unit 2^-1074. */
_Static_assert(EXACT_SUM_LIMBS * 64 >= 1074 + 1024 + 63 + 1, "a sum of 2^63 doubles must not overflow the wide limbs");

#define EXACT_SUM_NARROW_UNIT 80                            /* the narrow sum counts 2^-80 */
#define EXACT_SUM_NARROW_BIT (1074 - EXACT_SUM_NARROW_UNIT) /* where the narrow unit lies in the wide sum */
#define EXACT_SUM_SHIFT_MAX 73                              /* m < 2^53, so m << 73 stays below 2^126 */

/* All of these: false when out of memory; the sum is then unchanged. */
bool exact_sum_add_rare(ps_exact_sum *sum, double x); /* whatever the value */
bool exact_sum_combine(ps_exact_sum *sum, const ps_exact_sum *other);
/* Allocates what adding x would need, so that exact_sum_add(sum, x) cannot fail; the sum's value stays. */
bool exact_sum_reserve(ps_exact_sum *sum, double x);
bool exact_sum_subtract(ps_exact_sum *sum, const ps_exact_sum *other); /* takes back a combine */

/* The common case in line, because it is the inner loop of every float sum: a normal double within the narrow range. */
static inline bool exact_sum_add(ps_exact_sum *sum, double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  uint64_t shift = (bits >> 52 & 0x7ff) - 1 - EXACT_SUM_NARROW_BIT; /* below the range: wraps to a large number */
  if (__builtin_expect(shift > EXACT_SUM_SHIFT_MAX, 0)) return exact_sum_add_rare(sum, x);
  uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
  int128 sign = -(int128)(bits >> 63), total;
  int128 units = (((int128)m << shift) ^ sign) - sign;
  if (__builtin_expect(__builtin_add_overflow(sum->narrow, units, &total), 0)) return exact_sum_add_rare(sum, x);
  sum->narrow = total;
  return true;
}

/* A narrow sum, rounded: once, by the conversion, for the unit is a power of two. */
static inline double exact_sum_narrow_round(int128 narrow) { return (double)narrow * 0x1p-80; }

double exact_sum_round(const ps_exact_sum *sum);
void exact_sum_clear(ps_exact_sum *sum); /* frees what it holds; it is an empty sum again */
