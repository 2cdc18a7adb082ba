/* exact_product.c - see exact_product.h. */
#include "base/exact_product.h"

#include <math.h>

#include "base/value.h"

/* The magnitude of a finite double in units of 2^-1074. */
static exact_parts wide_parts(uint64_t bits) {
  uint64_t exponent = bits >> 52 & 0x7ff, fraction = bits & ((UINT64_C(1) << 52) - 1);
  return exponent ? (exact_parts){fraction | UINT64_C(1) << 52, exponent - 1} : (exact_parts){fraction, 0};
}

static bool is_zero(double x) { return double_bits(x) << 1 == 0; }

static bool adds_nothing(double x, double y) { return !isfinite(x) || !isfinite(y) || is_zero(x) || is_zero(y); }

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

static void add_wide(exact_product_wide *wide, exact_parts x, exact_parts y, uint64_t sign) {
  limbs_add_term(wide->limb, EXACT_PRODUCT_LIMBS, (uint128)x.m * y.m, x.shift + y.shift, sign);
}

void exact_product_add(exact_product *p, double x, double y) {
  uint64_t x_bits = double_bits(x), y_bits = double_bits(y), sign = 0 - ((x_bits ^ y_bits) >> 63);
  exact_parts a = exact_parts_of(x_bits), b = exact_parts_of(y_bits);
  if (adds_nothing(x, y)) return;
  if (exact_parts_narrow(a) && exact_parts_narrow(b)) {
    exact_product_add_narrow(p, a, b, sign);
  } else {
    add_wide(p->wide, wide_parts(x_bits), wide_parts(y_bits), sign);
  }
}

void exact_product_combine(exact_product *p, const exact_product *other) {
  limbs_add(p->word, other->word, EXACT_PRODUCT_WORDS);
  if (other->wide) limbs_add(p->wide->limb, other->wide->limb, EXACT_PRODUCT_LIMBS);
}

void exact_product_subtract(exact_product *p, const exact_product *other) {
  limbs_subtract(p->word, other->word, EXACT_PRODUCT_WORDS);
  if (other->wide) limbs_subtract(p->wide->limb, other->wide->limb, EXACT_PRODUCT_LIMBS);
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
