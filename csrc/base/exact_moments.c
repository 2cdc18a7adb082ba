/* exact_moments.c - see exact_moments.h. */
#include "base/exact_moments.h"

#include "base/exact_ratio.h"

/* ---- adding, combining, subtracting: what can fail comes before the first change ---- */

bool exact_moments_reserve(ps_exact_moments *m, double x) {
  return exact_product_reserve(&m->squares, x, x) && exact_sum_reserve(&m->sum, x);
}

bool exact_moments_add_rare(ps_exact_moments *m, double x) {
  if (!exact_product_reserve(&m->squares, x, x) || !exact_sum_add_rare(&m->sum, x)) return false;
  exact_product_add(&m->squares, x, x);
  m->sum.n++;
  return true;
}

bool exact_moments_combine_rare(ps_exact_moments *m, const ps_exact_moments *other, uint64_t sign) {
  if (!exact_product_reserve_for(&m->squares, &other->squares)) return false;
  if (!exact_sum_combine(&m->sum, &other->sum, sign)) return false;
  exact_product_combine(&m->squares, &other->squares, sign);
  m->sum.n += sign ? -other->sum.n : other->sum.n;
  return true;
}

void exact_moments_clear(ps_exact_moments *m) {
  exact_sum_clear(&m->sum);
  exact_product_clear(&m->squares);
}

/* ---- results ---- */

static uint128 denominator(int64_t n, int64_t ddof) {
  assert(ddof >= 0 && n > ddof);
  return (uint128)(uint64_t)n * (uint64_t)(n - ddof);
}

double exact_moments_result(const ps_exact_moments *m, exact_unit unit, int64_t ddof, bool root) {
  exact_numerator a; /* large: not cleared */
  a.limbs = EXACT_NARROW_LIMBS;
  a.exponent = -2 * (int)unit;
  if (__builtin_expect(exact_moments_are_narrow(m), 1)) {
    exact_moments_numerator(m, a.limb);
  } else {
    assert(unit == EXACT_DOUBLES);
    if (exact_sum_has_special(&m->sum)) return (double)NAN;
    exact_column x = {&m->sum, unit};
    exact_numerator_wide(&a, m->sum.n, x, x, &m->squares);
  }
  return exact_ratio(a.limb, a.limbs, denominator(m->sum.n, ddof), a.exponent, root);
}

/* ---- states that came as bytes ---- */

/* The squares are within their range, and n * sum(x * x) >= sum(x)^2: values with these sums exist, if not as doubles. */
bool exact_moments_possible(const ps_exact_moments *m, exact_unit unit) {
  const exact_sum_wide *wide = m->sum.wide;
  bool integers = unit == EXACT_INTEGERS;
  if (integers && !exact_moments_are_narrow(m)) return false;
  if (wide && !exact_sum_wide_possible(wide, m->sum.n)) return false;
  uint64_t n = (uint64_t)m->sum.n;
  uint64_t special = wide ? exact_sum_specials(wide) : 0;
  if (special > n) return false;
  n -= special;
  if (!exact_product_possible(&m->squares, integers ? 128 : EXACT_PRODUCT_NARROW_BITS, n)) return false;
  exact_numerator a;
  exact_column x = {&m->sum, unit};
  if (exact_moments_are_narrow(m)) {
    exact_numerator_narrow(&a, (int64_t)n, x, x, &m->squares);
  } else {
    exact_numerator_wide(&a, (int64_t)n, x, x, &m->squares);
  }
  return !a.negative;
}

/* ---- for tests ---- */

ps_exact_moments *ps_exact_moments_new(void) { return memory_new(sizeof(ps_exact_moments)); }

ps_code ps_exact_moments_add_all(ps_exact_moments *m, const double *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (!exact_moments_add(m, values[i])) return PS_NO_MEMORY;
  }
  return PS_OK;
}

void ps_exact_moments_add_integers(ps_exact_moments *m, const uint64_t *values, int64_t n, int32_t is_unsigned) {
  for (int64_t i = 0; i < n; i++) exact_moments_add_integer(m, values[i], is_unsigned);
}

int32_t ps_exact_moments_reserve(ps_exact_moments *m, double x) { return exact_moments_reserve(m, x); }

ps_code ps_exact_moments_combine(ps_exact_moments *m, const ps_exact_moments *other, int32_t subtract) {
  return exact_moments_combine(m, other, subtract ? LIMBS_MINUS : LIMBS_PLUS) ? PS_OK : PS_NO_MEMORY;
}

ps_code ps_exact_moments_result(const ps_exact_moments *m, int32_t integers, int64_t ddof, int32_t root, double *out) {
  if (m->sum.n <= ddof) return PS_EMPTY;
  *out = exact_moments_result(m, integers ? EXACT_INTEGERS : EXACT_DOUBLES, ddof, root);
  return PS_OK;
}

void ps_exact_moments_free(ps_exact_moments *m) {
  if (!m) return;
  exact_moments_clear(m);
  memory_free(m);
}
