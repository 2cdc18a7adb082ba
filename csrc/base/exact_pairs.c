/* exact_pairs.c - see exact_pairs.h. */
#include "base/exact_pairs.h"

#include "base/exact_ratio.h"

/* ---- adding, combining, subtracting: what can fail comes before the first change ---- */

/* A value as all forms in which it is added. */
typedef struct {
  exact_term narrow;
  exact_parts wide; /* the magnitude in units of 2^-1074 */
  bool fits;        /* within the narrow range */
  bool adds;        /* to products: it is finite and not 0 */
  bool is_double;
} any_value;

static any_value any_value_of(exact_values values, uint64_t bits) {
  any_value x = {.narrow = exact_term_of(values, bits), .is_double = values.unit == EXACT_DOUBLES};
  x.wide = x.is_double ? exact_parts_wide(bits) : (exact_parts){x.narrow.parts.m, 1074};
  x.fits = exact_parts_narrow(x.narrow.parts);
  x.adds = x.wide.m && (!x.is_double || isfinite(bits_double(bits)));
  return x;
}

static bool product_reserve(exact_product *to, const any_value *x, const any_value *y) {
  bool wide = x->adds && y->adds && !(x->fits && y->fits);
  return !wide || exact_product_reserve_wide(to);
}

static void product_add(exact_product *to, const any_value *x, const any_value *y) {
  if (!x->adds || !y->adds) return;
  if (x->fits && y->fits) {
    exact_term_multiply(to, x->narrow, y->narrow);
  } else {
    exact_product_add_wide(to, x->wide, y->wide, x->narrow.sign ^ y->narrow.sign);
  }
}

static bool value_reserve(ps_exact_sum *to, const any_value *x, uint64_t bits) {
  return !x->is_double || exact_sum_reserve(to, bits_double(bits));
}

static void value_add(ps_exact_sum *to, const any_value *x, uint64_t bits) {
  if (x->is_double) {
    exact_sum_add(to, bits_double(bits));
  } else {
    to->narrow += x->narrow.sign ? -(int128)x->narrow.parts.m : (int128)x->narrow.parts.m;
  }
}

bool exact_pairs_reserve(ps_exact_pairs *p, exact_pair_kind kind, uint64_t u, uint64_t v) {
  any_value x = any_value_of(kind.u, u), y = any_value_of(kind.v, v);
  return value_reserve(&p->u, &x, u) && value_reserve(&p->v, &y, v) && product_reserve(&p->product[EXACT_UV], &x, &y) &&
         (kind.products <= EXACT_VV || product_reserve(&p->product[EXACT_VV], &y, &y)) &&
         (kind.products <= EXACT_UU || product_reserve(&p->product[EXACT_UU], &x, &x));
}

bool exact_pairs_add_rare(ps_exact_pairs *p, exact_pair_kind kind, uint64_t u, uint64_t v) {
  if (!exact_pairs_reserve(p, kind, u, v)) return false;
  any_value x = any_value_of(kind.u, u), y = any_value_of(kind.v, v);
  value_add(&p->u, &x, u);
  value_add(&p->v, &y, v);
  p->u.n++;
  product_add(&p->product[EXACT_UV], &x, &y);
  if (kind.products > EXACT_VV) product_add(&p->product[EXACT_VV], &y, &y);
  if (kind.products > EXACT_UU) product_add(&p->product[EXACT_UU], &x, &x);
  return true;
}

/* Allocates what combining with the other sum may need: its wide part, if it has one or if the narrow sum leaves its
   range on either side. */
static bool sum_reserve_for(ps_exact_sum *sum, const ps_exact_sum *other) {
  int128 total;
  bool fits = !__builtin_add_overflow(sum->narrow, other->narrow, &total) &&
              !__builtin_sub_overflow(sum->narrow, other->narrow, &total);
  if (!sum->wide && (other->wide || !fits)) sum->wide = memory_new(sizeof *sum->wide);
  return sum->wide || (!other->wide && fits);
}

bool exact_pairs_combine_rare(ps_exact_pairs *p, const ps_exact_pairs *other, int products, uint64_t sign) {
  if (!sum_reserve_for(&p->u, &other->u) || !sum_reserve_for(&p->v, &other->v)) return false;
  for (int i = 0; i < products; i++) {
    if (!exact_product_reserve_for(&p->product[i], &other->product[i])) return false;
  }
  bool ok = exact_sum_combine(&p->u, &other->u, sign) && exact_sum_combine(&p->v, &other->v, sign);
  assert(ok && "what they need is reserved");
  for (int i = 0; i < products; i++) exact_product_combine(&p->product[i], &other->product[i], sign);
  p->u.n += sign ? -other->u.n : other->u.n;
  return ok;
}

void exact_pairs_clear(ps_exact_pairs *p, int products) {
  exact_sum_clear(&p->u);
  exact_sum_clear(&p->v);
  for (int i = 0; i < products; i++) exact_product_clear(&p->product[i]);
}

/* ---- results ---- */

/* Which columns a product is of. */
static exact_numerator numerator_of(const ps_exact_pairs *p, exact_pair_kind kind, int product, bool wide) {
  exact_column u = {&p->u, kind.u.unit}, v = {&p->v, kind.v.unit};
  exact_column x = product == EXACT_VV ? v : u, y = product == EXACT_UU ? u : v;
  exact_numerator a;
  if (wide) {
    exact_numerator_wide(&a, p->u.n, x, y, &p->product[product]);
  } else {
    exact_numerator_narrow(&a, p->u.n, x, y, &p->product[product]);
  }
  return a;
}

static double signed_ratio(bool negative, double magnitude) { return negative ? -magnitude : magnitude; }

static double covariance(const ps_exact_pairs *p, const exact_numerator *uv, int64_t ddof) {
  assert(ddof >= 0 && p->u.n > ddof);
  uint128 d = (uint128)(uint64_t)p->u.n * (uint64_t)(p->u.n - ddof);
  return signed_ratio(uv->negative, exact_ratio(uv->limb, uv->limbs, d, uv->exponent, false));
}

#define INTERCEPT_LIMBS (EXACT_SUM_LIMBS + EXACT_PRODUCT_LIMBS)

_Static_assert(INTERCEPT_LIMBS * 64 > 2098 + 2 * 2098 + 2 * EXACT_PRODUCT_MAX_BITS + 2,
               "the difference of two products of a sum with a sum of products, and its sign");

/* sum(x) * sum(product), signed, in `limbs` limbs. */
static void sum_times(exact_column x, const exact_product *product, int unit, bool wide, uint64_t *to) {
  uint64_t sum[EXACT_SUM_LIMBS], other[EXACT_PRODUCT_LIMBS];
  int n = wide ? EXACT_SUM_LIMBS : 2, m = wide ? EXACT_PRODUCT_LIMBS : EXACT_PRODUCT_WORDS;
  bool negative = wide ? exact_sum_limbs(x, sum) : exact_sum_words(x.sum, sum);
  if (wide) {
    exact_product_limbs(product, unit, other);
  } else {
    memcpy(other, product->word, sizeof product->word);
  }
  if (limbs_sign(other, m)) {
    limbs_negate(other, m);
    negative = !negative;
  }
  limbs_multiply(to, sum, n, other, m);
  if (negative) limbs_negate(to, n + m);
}

static double intercept(const ps_exact_pairs *p, exact_pair_kind kind, const exact_numerator *vv, bool wide) {
  uint64_t a[INTERCEPT_LIMBS], b[INTERCEPT_LIMBS];
  int u = (int)kind.u.unit, v = (int)kind.v.unit, limbs = wide ? INTERCEPT_LIMBS : 2 + EXACT_PRODUCT_WORDS;
  sum_times((exact_column){&p->u, kind.u.unit}, &p->product[EXACT_VV], 2 * v, wide, a);
  sum_times((exact_column){&p->v, kind.v.unit}, &p->product[EXACT_UV], u + v, wide, b);
  limbs_add(a, b, limbs, LIMBS_MINUS);
  bool negative = limbs_sign(a, limbs);
  if (negative) limbs_negate(a, limbs);
  int exponent = wide ? -1074 : -u;
  return signed_ratio(negative, exact_long_ratio(a, limbs, vv->limb, vv->limbs, exponent, false));
}

_Static_assert(2 * EXACT_WIDE_LIMBS <= EXACT_RATIO_LIMBS, "uu * vv");

static double correlation(const exact_numerator *uv, const exact_numerator *uu, const exact_numerator *vv) {
  uint64_t square[2 * EXACT_WIDE_LIMBS], both[2 * EXACT_WIDE_LIMBS];
  int n = uv->limbs;
  limbs_multiply(square, uv->limb, n, uv->limb, n);
  limbs_multiply(both, uu->limb, n, vv->limb, n);
  return signed_ratio(uv->negative, exact_long_ratio(square, 2 * n, both, 2 * n, 0, true));
}

static bool is_zero(const exact_numerator *a) { return limbs_top(a->limb, a->limbs) < 0; }

bool exact_pairs_result(const ps_exact_pairs *p, exact_pair_kind kind, exact_pair_result which, int64_t ddof,
                        double *out) {
  bool wide = !exact_pairs_are_narrow(p, kind.products);
  if (p->u.n <= (which == EXACT_COVAR ? ddof : 1)) return false;
  *out = (double)NAN;
  if (exact_sum_has_special(&p->u) || exact_sum_has_special(&p->v)) return true;
  exact_numerator uv, vv;
  if (which != EXACT_INTERCEPT) uv = numerator_of(p, kind, EXACT_UV, wide);
  if (which == EXACT_COVAR) {
    *out = covariance(p, &uv, ddof);
    return true;
  }
  vv = numerator_of(p, kind, EXACT_VV, wide);
  if (is_zero(&vv)) return false;
  if (which == EXACT_CORR) {
    exact_numerator uu = numerator_of(p, kind, EXACT_UU, wide);
    if (is_zero(&uu)) return false;
    *out = correlation(&uv, &uu, &vv);
  } else if (which == EXACT_SLOPE) {
    int exponent = uv.exponent - vv.exponent;
    *out = signed_ratio(uv.negative, exact_long_ratio(uv.limb, uv.limbs, vv.limb, vv.limbs, exponent, false));
  } else {
    *out = intercept(p, kind, &vv, wide);
  }
  return true;
}

/* ---- states that came as bytes ---- */

/* Whether n values can add up to it. */
static bool sum_possible(const ps_exact_sum *sum, exact_unit unit, int64_t n) {
  if (n == 0 && sum->narrow) return false;
  if (unit == EXACT_INTEGERS) {
    int128 most = (int128)n << 64;
    return !sum->wide && -most <= sum->narrow && sum->narrow <= most;
  }
  if (!sum->wide) return true;
  return exact_sum_wide_possible(sum->wide, n) && exact_sum_specials(sum->wide) <= (uint64_t)n;
}

/* Bits of a narrow value. */
static int value_bits(exact_unit unit) { return unit == EXACT_INTEGERS ? 64 : 53 + EXACT_SUM_SHIFT_MAX; }

static bool moments_possible(const ps_exact_sum *sum, int64_t n, const exact_product *squares, exact_unit unit) {
  ps_exact_moments m = {*sum, *squares}; /* only read */
  m.sum.n = n;
  return exact_moments_possible(&m, unit);
}

/* No correlation is above 1: uv^2 <= uu * vv. */
static bool correlation_possible(const ps_exact_pairs *p, exact_pair_kind kind) {
  bool wide = !exact_pairs_are_narrow(p, kind.products);
  exact_numerator uv = numerator_of(p, kind, EXACT_UV, wide), vv = numerator_of(p, kind, EXACT_VV, wide),
                  uu = numerator_of(p, kind, EXACT_UU, wide);
  uint64_t square[2 * EXACT_WIDE_LIMBS], both[2 * EXACT_WIDE_LIMBS];
  int n = uv.limbs;
  limbs_multiply(square, uv.limb, n, uv.limb, n);
  limbs_multiply(both, uu.limb, n, vv.limb, n);
  limbs_add(both, square, 2 * n, LIMBS_MINUS);
  return !limbs_sign(both, 2 * n);
}

bool exact_pairs_possible(const ps_exact_pairs *p, exact_pair_kind kind) {
  int64_t n = p->u.n;
  const exact_product *product = p->product;
  bool integers = kind.u.unit == EXACT_INTEGERS && kind.v.unit == EXACT_INTEGERS;
  if (!sum_possible(&p->u, kind.u.unit, n) || !sum_possible(&p->v, kind.v.unit, n)) return false;
  if (integers && product[EXACT_UV].wide) return false;
  int bits = value_bits(kind.u.unit) + value_bits(kind.v.unit);
  if (!exact_product_possible(&product[EXACT_UV], bits, (uint64_t)n)) return false;
  if (kind.products > EXACT_VV && !moments_possible(&p->v, n, &product[EXACT_VV], kind.v.unit)) return false;
  if (kind.products <= EXACT_UU) return true;
  if (!moments_possible(&p->u, n, &product[EXACT_UU], kind.u.unit)) return false;
  bool special = exact_sum_has_special(&p->u) || exact_sum_has_special(&p->v);
  return special || correlation_possible(p, kind);
}

/* ---- for tests ---- */

static exact_pair_kind kind_of(ps_type u, ps_type v) {
  return (exact_pair_kind){exact_values_of(u), exact_values_of(v), EXACT_PAIR_PRODUCTS};
}

ps_exact_pairs *ps_exact_pairs_new(void) { return memory_new(sizeof(ps_exact_pairs)); }

ps_code ps_exact_pairs_add_all(ps_exact_pairs *p, ps_type u_type, ps_type v_type, const uint64_t *u, const uint64_t *v,
                               int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (!exact_pairs_add(p, kind_of(u_type, v_type), u[i], v[i])) return PS_NO_MEMORY;
  }
  return PS_OK;
}

ps_code ps_exact_pairs_combine(ps_exact_pairs *p, const ps_exact_pairs *other, int32_t subtract) {
  uint64_t sign = subtract ? LIMBS_MINUS : LIMBS_PLUS;
  return exact_pairs_combine(p, other, EXACT_PAIR_PRODUCTS, sign) ? PS_OK : PS_NO_MEMORY;
}

ps_code ps_exact_pairs_result(const ps_exact_pairs *p, ps_type u, ps_type v, ps_function which, int64_t ddof,
                              double *out) {
  static const exact_pair_result results[PS_FUNCTIONS] = {
      [PS_COVAR] = EXACT_COVAR, [PS_SLOPE] = EXACT_SLOPE, [PS_INTERCEPT] = EXACT_INTERCEPT, [PS_CORR] = EXACT_CORR};
  return exact_pairs_result(p, kind_of(u, v), results[which], ddof, out) ? PS_OK : PS_EMPTY;
}

void ps_exact_pairs_free(ps_exact_pairs *p) {
  if (!p) return;
  exact_pairs_clear(p, EXACT_PAIR_PRODUCTS);
  memory_free(p);
}
