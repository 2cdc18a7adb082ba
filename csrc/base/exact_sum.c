/* exact_sum.c - see exact_sum.h. */
#include "base/exact_sum.h"

#include "base/exact_ratio.h"

static void wide_add_narrow(exact_sum_wide *w, int128 narrow, uint64_t sign) {
  uint128 magnitude = narrow < 0 ? -(uint128)narrow : (uint128)narrow;
  if (narrow < 0) sign = ~sign;
  limbs_add_term(w->limb, EXACT_SUM_LIMBS, magnitude, EXACT_SUM_NARROW_BIT, sign);
}

static bool wide_ready(ps_exact_sum *sum) {
  if (!sum->wide) sum->wide = memory_new(sizeof *sum->wide);
  return sum->wide != NULL;
}

static bool add_special(ps_exact_sum *sum, double x) {
  if (!wide_ready(sum)) return false;
  if (isnan(x)) {
    sum->wide->nan++;
  } else if (x > 0) {
    sum->wide->plus_inf++;
  } else {
    sum->wide->minus_inf++;
  }
  return true;
}

/* Adds to the narrow sum, or subtracts; on overflow, both its old value and x move to the wide one. */
static bool combine_narrow(ps_exact_sum *sum, int128 x, uint64_t sign) {
  int128 total;
  bool over = sign ? __builtin_sub_overflow(sum->narrow, x, &total) : __builtin_add_overflow(sum->narrow, x, &total);
  if (over) {
    if (!wide_ready(sum)) return false;
    wide_add_narrow(sum->wide, sum->narrow, LIMBS_PLUS);
    wide_add_narrow(sum->wide, x, sign);
    total = 0;
  }
  sum->narrow = total;
  return true;
}

bool exact_sum_add_rare(ps_exact_sum *sum, double x) {
  if (!isfinite(x)) return add_special(sum, x);
  int128 units;
  uint64_t bits = double_bits(x);
  if (exact_sum_units(bits, &units)) return combine_narrow(sum, units, LIMBS_PLUS);
  exact_parts p = exact_parts_wide(bits);
  if (p.m == 0) return true;
  if (!wide_ready(sum)) return false;
  limbs_add_term(sum->wide->limb, EXACT_SUM_LIMBS, p.m, p.shift, 0 - (bits >> 63));
  return true;
}

bool exact_sum_reserve(ps_exact_sum *sum, double x) {
  int128 units, total;
  uint64_t bits = double_bits(x);
  bool narrow = exact_sum_units(bits, &units) && !__builtin_add_overflow(sum->narrow, units, &total);
  return narrow || bits_are_zero(bits) || wide_ready(sum);
}

bool exact_sum_combine(ps_exact_sum *sum, const ps_exact_sum *other, uint64_t sign) {
  if (other->wide && !wide_ready(sum)) return false;
  if (!combine_narrow(sum, other->narrow, sign)) return false;
  if (!other->wide) return true;
  int64_t by = sign ? -1 : 1;
  limbs_add(sum->wide->limb, other->wide->limb, EXACT_SUM_LIMBS, sign);
  sum->wide->nan += by * other->wide->nan;
  sum->wide->plus_inf += by * other->wide->plus_inf;
  sum->wide->minus_inf += by * other->wide->minus_inf;
  return true;
}

/* A value is below 2^1024, bit 2098 of the wide sum; that many bits and more are those of limb 32 above its 50th. */
bool exact_sum_wide_possible(const exact_sum_wide *w, int64_t n) {
  _Static_assert(EXACT_SUM_LIMBS == 35, "the limbs below are the upper ones");
  int128 high = (int128)((uint128)w->limb[33] << 64 | w->limb[32]);
  if (w->limb[34] != (high < 0 ? UINT64_MAX : 0)) return false;
  high >>= 2098 - 2048;
  if (high > n || high < -(int128)n - 1) return false;
  if (w->nan < 0 || w->nan > n || w->plus_inf < 0 || w->plus_inf > n) return false;
  return w->minus_inf >= 0 && w->minus_inf <= n;
}

/* ---- rounding ---- */

/* A wide sum divided by n, rounded once. */
static double wide_mean(const ps_exact_sum *sum, int64_t n) {
  exact_sum_wide w = *sum->wide;
  if (w.nan || (w.plus_inf && w.minus_inf)) return (double)NAN;
  if (w.plus_inf || w.minus_inf) return (double)(w.plus_inf ? INFINITY : -INFINITY);
  wide_add_narrow(&w, sum->narrow, LIMBS_PLUS);
  bool negative = limbs_sign(w.limb, EXACT_SUM_LIMBS);
  if (negative) limbs_negate(w.limb, EXACT_SUM_LIMBS);
  double magnitude = exact_ratio(w.limb, EXACT_SUM_LIMBS, (uint64_t)n, -1074, false);
  return negative ? -magnitude : magnitude;
}

double exact_sum_round(const ps_exact_sum *sum) {
  return sum->wide ? wide_mean(sum, 1) : exact_sum_narrow_round(sum->narrow);
}

double exact_sum_mean(const ps_exact_sum *sum, int64_t n) {
  return sum->wide ? wide_mean(sum, n) : exact_mean(sum->narrow, n, -EXACT_SUM_NARROW_UNIT);
}

void exact_sum_clear(ps_exact_sum *sum) {
  memory_free(sum->wide);
  *sum = (ps_exact_sum){0};
}

ps_exact_sum *ps_exact_sum_new(void) { return memory_new(sizeof(ps_exact_sum)); }

ps_code ps_exact_sum_add_all(ps_exact_sum *sum, const double *values, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (!exact_sum_add(sum, values[i])) return PS_NO_MEMORY;
  }
  return PS_OK;
}

ps_code ps_exact_sum_combine(ps_exact_sum *sum, const ps_exact_sum *other) {
  return exact_sum_combine(sum, other, LIMBS_PLUS) ? PS_OK : PS_NO_MEMORY;
}

double ps_exact_sum_round(const ps_exact_sum *sum) { return exact_sum_round(sum); }

double ps_exact_sum_mean(const ps_exact_sum *sum, int64_t n) { return exact_sum_mean(sum, n); }

void ps_exact_sum_free(ps_exact_sum *sum) {
  if (!sum) return;
  exact_sum_clear(sum);
  memory_free(sum);
}
