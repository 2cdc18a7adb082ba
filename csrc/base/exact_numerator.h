/*
 * exact_numerator.h - n * sum(x * y) - sum(x) * sum(y) as one integer, for variances (y = x), covariances and lines.
 *
 * Each column counts units of its own in the narrow parts: 1 for integers, 2^-80 for doubles; the wide parts count
 * 2^-1074 and 2^-2148 (exact_sum.h, exact_product.h).
 *
 *   narrow   5 words times n < 2^62 are 6, less than 2^375; the product of two narrow sums, of 2^127 at most, is 4
 *   wide     67 limbs times n are 68; the product of two sums of 35 limbs is 70
 */
#pragma once

#include "base/exact_product.h"

#define EXACT_NARROW_LIMBS (EXACT_PRODUCT_WORDS + 1)
#define EXACT_WIDE_LIMBS (2 * EXACT_SUM_LIMBS)

_Static_assert(EXACT_NARROW_LIMBS * 64 >= EXACT_PRODUCT_WORDS * 64 + EXACT_PRODUCT_MAX_BITS,
               "n times the narrow words");
_Static_assert(EXACT_WIDE_LIMBS >= EXACT_PRODUCT_LIMBS + 1, "n times the wide limbs");

/* What a state counts: doubles, or integers. A column of a state has been given one kind only. */
typedef enum { EXACT_INTEGERS = 0, EXACT_DOUBLES = EXACT_SUM_NARROW_UNIT } exact_unit;

/* Sign and magnitude; the limbs above `limbs` are not set. */
typedef struct {
  uint64_t limb[EXACT_WIDE_LIMBS];
  int limbs;
  int exponent; /* of its unit */
  bool negative;
} exact_numerator;

/* A sum and its unit. */
typedef struct {
  const ps_exact_sum *sum;
  exact_unit unit;
} exact_column;

/* Of the narrow parts alone: for states without wide ones. */
void exact_numerator_narrow(exact_numerator *to, int64_t n, exact_column x, exact_column y, const exact_product *xy);
void exact_numerator_wide(exact_numerator *to, int64_t n, exact_column x, exact_column y, const exact_product *xy);

/* |sum| as limbs; whether it is negative. The narrow one alone, and all of it in units of 2^-1074. */
bool exact_sum_words(const ps_exact_sum *sum, uint64_t word[2]);
bool exact_sum_limbs(exact_column x, uint64_t limb[EXACT_SUM_LIMBS]);

static inline bool exact_sum_has_special(const ps_exact_sum *sum) {
  return sum->wide && (sum->wide->nan || sum->wide->plus_inf || sum->wide->minus_inf);
}
