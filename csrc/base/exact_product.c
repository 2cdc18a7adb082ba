/* exact_product.c - see exact_product.h. */
#include "base/exact_product.h"

static bool adds_nothing(double x, double y) {
  return !isfinite(x) || !isfinite(y) || bits_are_zero(double_bits(x)) || bits_are_zero(double_bits(y));
}

static bool wide_ready(exact_product *p) {
  if (!p->wide) p->wide = memory_new(sizeof *p->wide);
  return p->wide != NULL;
}

bool exact_product_reserve(exact_product *p, double x, double y) {
  bool narrow =
      exact_parts_narrow(exact_parts_of(double_bits(x))) && exact_parts_narrow(exact_parts_of(double_bits(y)));
  return narrow || adds_nothing(x, y) || wide_ready(p);
}

bool exact_product_reserve_for(exact_product *p, const exact_product *other) { return !other->wide || wide_ready(p); }

void exact_product_add(exact_product *p, double x, double y) {
  uint64_t x_bits = double_bits(x), y_bits = double_bits(y), sign = 0 - ((x_bits ^ y_bits) >> 63);
  exact_parts a = exact_parts_of(x_bits), b = exact_parts_of(y_bits);
  if (adds_nothing(x, y)) return;
  if (exact_parts_narrow(a) && exact_parts_narrow(b)) {
    exact_product_add_narrow(p, a, b, sign);
  } else {
    a = exact_parts_wide(x_bits);
    b = exact_parts_wide(y_bits);
    limbs_add_term(p->wide->limb, EXACT_PRODUCT_LIMBS, (uint128)a.m * b.m, a.shift + b.shift, sign);
  }
}

void exact_product_combine(exact_product *p, const exact_product *other, uint64_t sign) {
  limbs_add(p->word, other->word, EXACT_PRODUCT_WORDS, sign);
  if (other->wide) limbs_add(p->wide->limb, other->wide->limb, EXACT_PRODUCT_LIMBS, sign);
}

void exact_product_limbs(const exact_product *p, uint64_t limb[EXACT_PRODUCT_LIMBS]) {
  uint64_t word[EXACT_PRODUCT_WORDS], sign = limbs_sign(p->word, EXACT_PRODUCT_WORDS);
  memcpy(word, p->word, sizeof word);
  if (sign) limbs_negate(word, EXACT_PRODUCT_WORDS);
  memset(limb, 0, EXACT_PRODUCT_LIMBS * sizeof *limb);
  if (p->wide) memcpy(limb, p->wide->limb, sizeof p->wide->limb);
  for (uint64_t i = 0; i < EXACT_PRODUCT_WORDS; i++) {
    limbs_add_term(limb, EXACT_PRODUCT_LIMBS, word[i], EXACT_PRODUCT_NARROW_BIT + 64 * i, sign);
  }
}

void exact_product_clear(exact_product *p) {
  memory_free(p->wide);
  *p = (exact_product){0};
}
