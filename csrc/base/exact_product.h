/*
 * exact_product.h - the exact sum of products x * y of doubles or of integers, whatever the order; of squares, with y =
 * x.
 *
 * The sum is an integer that counts a small enough unit, as in exact_sum.h, in two parts:
 *
 *   narrow   5 words that count units of 2^-160: the products of values that the narrow sum of exact_sum.h takes, which
 *            are integers X, Y below 2^125 in units of 2^-80 (2^-28 <= |x| < 2^45, and zero)
 *   wide     allocated for the first other product: 67 words that count units of 2^-2148, the square of the least double
 *
 *   value = narrow * 2^-160 + wide * 2^-2148, both in two's complement
 *
 * Neither part can overflow: 2^62 products of the largest values fit (below). So adding takes no check, and nothing
 * moves from one part to the other: each is the sum of its own products, in whatever order they were added, combined
 * and subtracted.
 *
 * Products of integers count units of 1 in the narrow part alone: |x|, |y| <= 2^64. Those of an integer and a double
 * count 2^-80 in the narrow part: it takes the same doubles.
 *
 * A product with a NaN or an infinity adds nothing here. The owner also sums x and y, and those sums count them.
 */
#pragma once

#include "base/exact_sum.h"
#include "base/limbs.h"

#define EXACT_PRODUCT_WORDS 5
#define EXACT_PRODUCT_LIMBS 67
#define EXACT_PRODUCT_UNIT (2 * 1074)                              /* the wide part counts 2^-2148 */
#define EXACT_PRODUCT_NARROW_BITS (2 * (53 + EXACT_SUM_SHIFT_MAX)) /* of a narrow product of two doubles, at most */
#define EXACT_PRODUCT_MAX_BITS 62                                  /* of the number of products */

_Static_assert(EXACT_PRODUCT_WORDS * 64 >= 2 * (53 + EXACT_SUM_SHIFT_MAX) + EXACT_PRODUCT_MAX_BITS + 1,
               "2^62 narrow products and the sign must fit the narrow words");
_Static_assert(EXACT_PRODUCT_WORDS >= 2 * EXACT_SUM_SHIFT_MAX / 64 + 3, "a shifted narrow product has three words");
_Static_assert(EXACT_PRODUCT_WORDS * 64 >= 2 * 64 + EXACT_PRODUCT_MAX_BITS + 1, "and as many products of integers");
_Static_assert(EXACT_PRODUCT_LIMBS * 64 >= EXACT_PRODUCT_UNIT + 2 * 1024 + EXACT_PRODUCT_MAX_BITS + 1,
               "2^62 products of doubles and the sign must fit the wide limbs");
_Static_assert(EXACT_PRODUCT_LIMBS >= 2 * 2045 / 64 + 3, "a shifted product of the largest doubles has three limbs");

typedef struct {
  uint64_t limb[EXACT_PRODUCT_LIMBS]; /* two's complement, least significant first */
} exact_product_wide;

typedef struct {
  uint64_t word[EXACT_PRODUCT_WORDS]; /* the same */
  exact_product_wide *wide;           /* NULL while not needed; all zero bytes is an empty sum */
} exact_product;

/* A double in units of the narrow sum; shift > EXACT_SUM_SHIFT_MAX: it is not within the narrow range. Zero is, and
   takes no branch: zeros among other values are hard to predict. */
static inline exact_parts exact_parts_of(uint64_t bits) {
  uint64_t some_bit = bits << 1 != 0;
  uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | some_bit << 52;
  uint64_t shift = (bits >> 52 & 0x7ff) - ((0 - some_bit) & (1 + EXACT_SUM_NARROW_BIT));
  return (exact_parts){m, shift}; /* below the range, the shift has wrapped to a large number */
}

/* Of an integer, in units of 1. */
static inline exact_parts exact_parts_i64(int64_t x) { return (exact_parts){x < 0 ? 0 - (uint64_t)x : (uint64_t)x, 0}; }

static inline bool exact_parts_narrow(exact_parts x) { return x.shift <= EXACT_SUM_SHIFT_MAX; }

/* Adds the product of two magnitudes, or subtracts it. */
static inline void exact_product_add_narrow(exact_product *p, exact_parts x, exact_parts y, uint64_t sign) {
  limbs_add_term(p->word, EXACT_PRODUCT_WORDS, (uint128)x.m * y.m, x.shift + y.shift, sign);
}

/* Allocates what adding x * y, or any product, or combining or subtracting the other sum, needs. False: out of memory.
   The value stays. */
bool exact_product_reserve(exact_product *p, double x, double y);
bool exact_product_reserve_wide(exact_product *p);
bool exact_product_reserve_for(exact_product *p, const exact_product *other);

/* After that, these cannot fail. */
void exact_product_add(exact_product *p, double x, double y);
void exact_product_combine(exact_product *p, const exact_product *other, uint64_t sign); /* LIMBS_MINUS: undoes it */

/* Where an add has seen that they do not fit: a product of magnitudes in units of 2^-1074. */
void exact_product_add_wide(exact_product *p, exact_parts x, exact_parts y, uint64_t sign);

/* The whole sum in units of 2^-2148, signed. The narrow part counts units of 2^-unit. */
void exact_product_limbs(const exact_product *p, int unit, uint64_t limb[EXACT_PRODUCT_LIMBS]);

/* Whether n products, of which the narrow ones are below 2^bits units, can add up to it: of a sum that came as bytes. */
bool exact_product_possible(const exact_product *p, int bits, uint64_t n);

void exact_product_clear(exact_product *p); /* frees what it holds; it is an empty sum again */
