/* exact_product.c - see exact_product.h. */
#include "base/exact_product.h"

static bool adds_nothing(double x, double y) {
  return !isfinite(x) || !isfinite(y) || bits_are_zero(double_bits(x)) || bits_are_zero(double_bits(y));
}

bool exact_product_reserve_wide(exact_product *p) {
  if (!p->wide) p->wide = memory_new(sizeof *p->wide);
  return p->wide != NULL;
}

bool exact_product_reserve(exact_product *p, double x, double y) {
  bool narrow =
      exact_parts_narrow(exact_parts_of(double_bits(x))) && exact_parts_narrow(exact_parts_of(double_bits(y)));
  return narrow || adds_nothing(x, y) || exact_product_reserve_wide(p);
}

bool exact_product_reserve_for(exact_product *p, const exact_product *other) {
  return !other->wide || exact_product_reserve_wide(p);
}

void exact_product_add(exact_product *p, double x, double y) {
  uint64_t x_bits = double_bits(x), y_bits = double_bits(y), sign = 0 - ((x_bits ^ y_bits) >> 63);
  exact_parts a = exact_parts_of(x_bits), b = exact_parts_of(y_bits);
  if (adds_nothing(x, y)) return;
  if (exact_parts_narrow(a) && exact_parts_narrow(b)) {
    exact_product_add_narrow(p, a, b, sign);
  } else {
    exact_product_add_wide(p, exact_parts_wide(x_bits), exact_parts_wide(y_bits), sign);
  }
}

void exact_product_add_wide(exact_product *p, exact_parts x, exact_parts y, uint64_t sign) {
  limbs_add_term(p->wide->limb, EXACT_PRODUCT_LIMBS, (uint128)x.m * y.m, x.shift + y.shift, sign);
}

void exact_product_combine(exact_product *p, const exact_product *other, uint64_t sign) {
  limbs_add(p->word, other->word, EXACT_PRODUCT_WORDS, sign);
  if (other->wide) limbs_add(p->wide->limb, other->wide->limb, EXACT_PRODUCT_LIMBS, sign);
}

void exact_product_limbs(const exact_product *p, int unit, uint64_t limb[EXACT_PRODUCT_LIMBS]) {
  uint64_t word[EXACT_PRODUCT_WORDS], sign = limbs_sign(p->word, EXACT_PRODUCT_WORDS);
  memcpy(word, p->word, sizeof word);
  if (sign) limbs_negate(word, EXACT_PRODUCT_WORDS);
  memset(limb, 0, EXACT_PRODUCT_LIMBS * sizeof *limb);
  if (p->wide) memcpy(limb, p->wide->limb, sizeof p->wide->limb);
  for (uint64_t i = 0; i < EXACT_PRODUCT_WORDS; i++) {
    limbs_add_term(limb, EXACT_PRODUCT_LIMBS, word[i], (uint64_t)(EXACT_PRODUCT_UNIT - unit) + 64 * i, sign);
  }
}

/* Whether n terms below 2^bits can add up to it, signed; there is a limb above that of this bit. */
static bool possible(const uint64_t *from, int limbs, int bits, uint64_t n) {
  uint64_t limb[EXACT_PRODUCT_LIMBS];
  memcpy(limb, from, (size_t)limbs * sizeof *limb);
  if (limbs_sign(limb, limbs)) limbs_negate(limb, limbs);
  int top = limbs_top(limb, limbs), i = bits / 64, offset = bits % 64;
  if (top < bits) return top < 0 || n > 0;
  if (top >= bits + EXACT_PRODUCT_MAX_BITS) return false;
  return (limb[i] >> offset | limb[i + 1] << 1 << (63 - offset)) < n;
}

#define WIDE_BITS (EXACT_PRODUCT_UNIT + 2 * 1024)

bool exact_product_possible(const exact_product *p, int bits, uint64_t n) {
  if (!possible(p->word, EXACT_PRODUCT_WORDS, bits, n)) return false;
  return !p->wide || possible(p->wide->limb, EXACT_PRODUCT_LIMBS, WIDE_BITS, n);
}

void exact_product_clear(exact_product *p) {
  memory_free(p->wide);
  *p = (exact_product){0};
}
