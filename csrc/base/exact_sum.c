/* exact_sum.c - see exact_sum.h. */
#include "base/exact_sum.h"

#include <math.h>

#include "base/limbs.h"

/* A finite double as sign * m * 2^(pos - 1074). */
typedef struct {
  uint64_t m;
  int pos;
  bool negative;
} parts;

static parts split(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  int exponent = (int)(bits >> 52 & 0x7ff);
  uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);
  bool normal = exponent > 0;
  return (parts){normal ? fraction | UINT64_C(1) << 52 : fraction, normal ? exponent - 1 : 0, bits >> 63 != 0};
}

static void wide_add_narrow(exact_sum_wide *w, int128 narrow) {
  uint64_t sign = narrow < 0 ? UINT64_MAX : 0;
  uint128 magnitude = sign ? -(uint128)narrow : (uint128)narrow;
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

/* Adds to the narrow sum; on overflow, its old value first moves to the wide one. */
static bool add_narrow(ps_exact_sum *sum, int128 x) {
  int128 total;
  if (__builtin_add_overflow(sum->narrow, x, &total)) {
    if (!wide_ready(sum)) return false;
    wide_add_narrow(sum->wide, sum->narrow);
    total = x;
  }
  sum->narrow = total;
  return true;
}

/* The value in units of the narrow sum; false: it does not fit. */
static bool narrow_units(parts p, int128 *units) {
  int shift = p.pos - EXACT_SUM_NARROW_BIT;
  if (shift < 0 || shift > EXACT_SUM_SHIFT_MAX) return false;
  *units = p.negative ? -((int128)p.m << shift) : (int128)p.m << shift;
  return true;
}

bool exact_sum_add_rare(ps_exact_sum *sum, double x) {
  if (!isfinite(x)) return add_special(sum, x);
  parts p = split(x);
  int128 units;
  if (narrow_units(p, &units)) return add_narrow(sum, units);
  if (p.m == 0) return true;
  if (!wide_ready(sum)) return false;
  limbs_add_term(sum->wide->limb, EXACT_SUM_LIMBS, p.m, (uint64_t)p.pos, p.negative ? UINT64_MAX : 0);
  return true;
}

bool exact_sum_reserve(ps_exact_sum *sum, double x) {
  if (!isfinite(x)) return wide_ready(sum);
  parts p = split(x);
  if (p.m == 0) return true;
  int128 units, total;
  if (narrow_units(p, &units) && !__builtin_add_overflow(sum->narrow, units, &total)) return true;
  return wide_ready(sum);
}

bool exact_sum_combine(ps_exact_sum *sum, const ps_exact_sum *other) {
  if (other->wide && !wide_ready(sum)) return false;
  if (!add_narrow(sum, other->narrow)) return false;
  if (!other->wide) return true;
  limbs_add(sum->wide->limb, other->wide->limb, EXACT_SUM_LIMBS);
  sum->wide->nan += other->wide->nan;
  sum->wide->plus_inf += other->wide->plus_inf;
  sum->wide->minus_inf += other->wide->minus_inf;
  return true;
}

/* The lowest narrow sum has no negative in 128 bits: its magnitude is added to the wide one. */
static bool subtract_narrow(ps_exact_sum *sum, int128 x) {
  uint128 lowest = (uint128)1 << 127;
  if ((uint128)x != lowest) return add_narrow(sum, -x);
  if (!wide_ready(sum)) return false;
  limbs_add_term(sum->wide->limb, EXACT_SUM_LIMBS, lowest, EXACT_SUM_NARROW_BIT, 0);
  return true;
}

bool exact_sum_subtract(ps_exact_sum *sum, const ps_exact_sum *other) {
  if (other->wide && !wide_ready(sum)) return false;
  if (!subtract_narrow(sum, other->narrow)) return false;
  if (!other->wide) return true;
  limbs_subtract(sum->wide->limb, other->wide->limb, EXACT_SUM_LIMBS);
  sum->wide->nan -= other->wide->nan;
  sum->wide->plus_inf -= other->wide->plus_inf;
  sum->wide->minus_inf -= other->wide->minus_inf;
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

/* The value of a wide sum, or its quotient, with 64 bits more below the unit: limbs in units of 2^-1138. */
#define FINE_LIMBS (EXACT_SUM_LIMBS + 1)
#define FINE_BIT (1074 + 64)

typedef struct {
  uint64_t limb[FINE_LIMBS]; /* a magnitude, least significant first */
  bool negative;
} fine;

static fine fine_of(exact_sum_wide w) {
  fine f = {.limb = {0}, .negative = limbs_sign(w.limb, EXACT_SUM_LIMBS)};
  if (f.negative) limbs_negate(w.limb, EXACT_SUM_LIMBS);
  memcpy(f.limb + 1, w.limb, sizeof w.limb);
  return f;
}

/* Limb by limb; n < 2^63. The last remainder can be dropped: a tie times n is a multiple of 2^-1075, as the sum is, so
   a mean next to a tie differs from it by 2^-1138 or more, and those bits are here. */
static void fine_divide(fine *f, uint64_t n) {
  uint64_t rest = 0;
  for (int i = FINE_LIMBS - 1; i >= 0; i--) {
    uint128 part = (uint128)rest << 64 | f->limb[i];
    f->limb[i] = (uint64_t)(part / n);
    rest = (uint64_t)part - f->limb[i] * n;
  }
}

static bool bit_at(const fine *f, int pos) { return f->limb[pos / 64] >> (pos % 64) & 1; }

static bool any_below(const fine *f, int pos) {
  for (int i = 0; i < pos / 64; i++) {
    if (f->limb[i]) return true;
  }
  return pos % 64 && f->limb[pos / 64] << (64 - pos % 64);
}

/* The bits [pos, pos + 53) as an integer. */
static uint64_t bits_from(const fine *f, int pos) {
  int i = pos / 64, offset = pos % 64;
  uint64_t bits = f->limb[i] >> offset;
  if (offset && i + 1 < FINE_LIMBS) bits |= f->limb[i + 1] << (64 - offset);
  return bits & ((UINT64_C(1) << 53) - 1);
}

/* Nearest double, ties to even. Bit 64 is the smallest subnormal, so keeping the top 53 bits but none below bit 64
   rounds subnormals right too; ldexp is exact up to the overflow to infinity. */
static double fine_round(const fine *f) {
  int top = limbs_top(f->limb, FINE_LIMBS);
  int low = top - 52 > 64 ? top - 52 : 64;
  uint64_t m = bits_from(f, low);
  if (bit_at(f, low - 1) && (any_below(f, low - 1) || (m & 1))) m++;
  double magnitude = ldexp((double)m, low - FINE_BIT);
  return f->negative ? -magnitude : magnitude;
}

/* Whether NaN or an infinity alone determines the value. */
static bool is_special(const exact_sum_wide *w, double *value) {
  *value = w->nan || (w->plus_inf && w->minus_inf) ? (double)NAN : (double)(w->plus_inf ? INFINITY : -INFINITY);
  return w->nan || w->plus_inf || w->minus_inf;
}

static fine fine_value(const ps_exact_sum *sum) {
  exact_sum_wide total = *sum->wide;
  wide_add_narrow(&total, sum->narrow);
  return fine_of(total);
}

double exact_sum_round(const ps_exact_sum *sum) {
  double special;
  if (!sum->wide) return exact_sum_narrow_round(sum->narrow);
  if (is_special(sum->wide, &special)) return special;
  fine value = fine_value(sum);
  return fine_round(&value);
}

double exact_sum_mean(const ps_exact_sum *sum, int64_t n) {
  double special;
  if (!sum->wide) return exact_mean(sum->narrow, n, -EXACT_SUM_NARROW_UNIT);
  if (is_special(sum->wide, &special)) return special;
  fine value = fine_value(sum);
  fine_divide(&value, (uint64_t)n);
  return fine_round(&value);
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
  return exact_sum_combine(sum, other) ? PS_OK : PS_NO_MEMORY;
}

double ps_exact_sum_round(const ps_exact_sum *sum) { return exact_sum_round(sum); }

double ps_exact_sum_mean(const ps_exact_sum *sum, int64_t n) { return exact_sum_mean(sum, n); }

void ps_exact_sum_free(ps_exact_sum *sum) {
  if (!sum) return;
  exact_sum_clear(sum);
  memory_free(sum);
}
