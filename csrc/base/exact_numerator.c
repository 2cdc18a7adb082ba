/* exact_numerator.c - see exact_numerator.h. */
#include "base/exact_numerator.h"

/* to->limb holds sum(x * y), with its sign extended. xy is room for the product of x and y, which have `half` limbs,
   and zero above it. */
__attribute__((always_inline)) static inline void finish(exact_numerator *to, uint64_t *xy, int limbs, int64_t n,
                                                         const uint64_t *x, const uint64_t *y, int half,
                                                         bool opposite) {
  to->limbs = limbs;
  bool negative = limbs_sign(to->limb, limbs);
  if (negative) limbs_negate(to->limb, limbs);
  limbs_scale(to->limb, limbs, (uint64_t)n);
  if (negative) limbs_negate(to->limb, limbs);
  limbs_multiply(xy, x, half, y, half);
  limbs_add(to->limb, xy, limbs, opposite ? LIMBS_PLUS : LIMBS_MINUS);
  to->negative = limbs_sign(to->limb, limbs);
  if (to->negative) limbs_negate(to->limb, limbs);
}

bool exact_sum_words(const ps_exact_sum *sum, uint64_t word[2]) {
  bool negative = sum->narrow < 0;
  uint128 magnitude = negative ? -(uint128)sum->narrow : (uint128)sum->narrow;
  word[0] = (uint64_t)magnitude;
  word[1] = (uint64_t)(magnitude >> 64);
  return negative;
}

void exact_numerator_narrow(exact_numerator *to, int64_t n, exact_column x, exact_column y, const exact_product *xy) {
  uint64_t x_word[2], y_word[2], product[EXACT_NARROW_LIMBS] = {0};
  bool opposite = exact_sum_words(x.sum, x_word) != exact_sum_words(y.sum, y_word);
  memcpy(to->limb, xy->word, sizeof xy->word);
  to->limb[EXACT_PRODUCT_WORDS] = limbs_sign(xy->word, EXACT_PRODUCT_WORDS);
  finish(to, product, EXACT_NARROW_LIMBS, n, x_word, y_word, 2, opposite);
  to->exponent = -(int)x.unit - (int)y.unit;
}

bool exact_sum_limbs(exact_column x, uint64_t limb[EXACT_SUM_LIMBS]) {
  uint64_t word[2];
  uint64_t sign = exact_sum_words(x.sum, word) ? LIMBS_MINUS : LIMBS_PLUS;
  memset(limb, 0, EXACT_SUM_LIMBS * sizeof *limb);
  if (x.sum->wide) memcpy(limb, x.sum->wide->limb, sizeof x.sum->wide->limb);
  limbs_add_term(limb, EXACT_SUM_LIMBS, (uint128)word[1] << 64 | word[0], (uint64_t)(1074 - (int)x.unit), sign);
  bool negative = limbs_sign(limb, EXACT_SUM_LIMBS);
  if (negative) limbs_negate(limb, EXACT_SUM_LIMBS);
  return negative;
}

void exact_numerator_wide(exact_numerator *to, int64_t n, exact_column x, exact_column y, const exact_product *xy) {
  uint64_t x_limb[EXACT_SUM_LIMBS], y_limb[EXACT_SUM_LIMBS], product[EXACT_WIDE_LIMBS];
  bool opposite = exact_sum_limbs(x, x_limb) != exact_sum_limbs(y, y_limb);
  exact_product_limbs(xy, (int)x.unit + (int)y.unit, to->limb);
  uint64_t sign = limbs_sign(to->limb, EXACT_PRODUCT_LIMBS);
  for (int i = EXACT_PRODUCT_LIMBS; i < EXACT_WIDE_LIMBS; i++) to->limb[i] = sign;
  finish(to, product, EXACT_WIDE_LIMBS, n, x_limb, y_limb, EXACT_SUM_LIMBS, opposite);
  to->exponent = -EXACT_PRODUCT_UNIT;
}
