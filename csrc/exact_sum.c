/* exact_sum.c - see exact_sum.h. */
#include "exact_sum.h"

#include <math.h>

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

static void wide_add_limb(exact_sum_wide *w, int i, uint64_t x) {
  for (; x && i < EXACT_SUM_LIMBS; i++) {
    uint64_t before = w->limb[i];
    w->limb[i] = before + x;
    x = w->limb[i] < before;
  }
}

static void wide_sub_limb(exact_sum_wide *w, int i, uint64_t x) {
  for (; x && i < EXACT_SUM_LIMBS; i++) {
    uint64_t before = w->limb[i];
    w->limb[i] = before - x;
    x = w->limb[i] > before;
  }
}

/* Adds or subtracts magnitude << pos. */
static void wide_add_bits(exact_sum_wide *w, uint128 magnitude, int pos, bool negative) {
  void (*step)(exact_sum_wide *, int, uint64_t) = negative ? wide_sub_limb : wide_add_limb;
  int i = pos / 64, offset = pos % 64;
  uint64_t low = (uint64_t)magnitude, high = (uint64_t)(magnitude >> 64);
  step(w, i, low << offset);
  step(w, i + 1, high << offset);
  if (offset) {
    step(w, i + 1, low >> (64 - offset));
    step(w, i + 2, high >> (64 - offset));
  }
}

static void wide_add_narrow(exact_sum_wide *w, int128 narrow) {
  bool negative = narrow < 0;
  uint128 magnitude = negative ? -(uint128)narrow : (uint128)narrow;
  wide_add_bits(w, magnitude, EXACT_SUM_NARROW_BIT, negative);
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

/* Adds to the narrow sum; when that overflows, its old value moves to the wide one first. */
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

/* Whether the narrow sum can take the value, and how many of its units it is. */
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
  wide_add_bits(sum->wide, p.m, p.pos, p.negative);
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
  for (int i = 0; i < EXACT_SUM_LIMBS; i++) wide_add_limb(sum->wide, i, other->wide->limb[i]);
  sum->wide->nan += other->wide->nan;
  sum->wide->plus_inf += other->wide->plus_inf;
  sum->wide->minus_inf += other->wide->minus_inf;
  return true;
}

/* The lowest narrow sum has no negative in 128 bits: its magnitude goes to the wide one. */
static bool subtract_narrow(ps_exact_sum *sum, int128 x) {
  uint128 lowest = (uint128)1 << 127;
  if ((uint128)x != lowest) return add_narrow(sum, -x);
  if (!wide_ready(sum)) return false;
  wide_add_bits(sum->wide, lowest, EXACT_SUM_NARROW_BIT, false);
  return true;
}

bool exact_sum_subtract(ps_exact_sum *sum, const ps_exact_sum *other) {
  if (other->wide && !wide_ready(sum)) return false;
  if (!subtract_narrow(sum, other->narrow)) return false;
  if (!other->wide) return true;
  for (int i = 0; i < EXACT_SUM_LIMBS; i++) wide_sub_limb(sum->wide, i, other->wide->limb[i]);
  sum->wide->nan -= other->wide->nan;
  sum->wide->plus_inf -= other->wide->plus_inf;
  sum->wide->minus_inf -= other->wide->minus_inf;
  return true;
}

static int highest_bit(const exact_sum_wide *w) {
  for (int i = EXACT_SUM_LIMBS - 1; i >= 0; i--) {
    if (w->limb[i]) return i * 64 + 63 - __builtin_clzll(w->limb[i]);
  }
  return -1;
}

static bool bit_at(const exact_sum_wide *w, int pos) { return w->limb[pos / 64] >> (pos % 64) & 1; }

static bool any_below(const exact_sum_wide *w, int pos) {
  for (int i = 0; i < pos / 64; i++) {
    if (w->limb[i]) return true;
  }
  return pos % 64 && w->limb[pos / 64] << (64 - pos % 64);
}

/* The bits [pos, pos + 53) as an integer. */
static uint64_t bits_from(const exact_sum_wide *w, int pos) {
  int i = pos / 64, offset = pos % 64;
  uint64_t bits = w->limb[i] >> offset;
  if (offset && i + 1 < EXACT_SUM_LIMBS) bits |= w->limb[i + 1] << (64 - offset);
  return bits & ((UINT64_C(1) << 53) - 1);
}

static void negate(exact_sum_wide *w) {
  for (int i = 0; i < EXACT_SUM_LIMBS; i++) w->limb[i] = ~w->limb[i];
  wide_add_limb(w, 0, 1);
}

/* Nearest double, ties to even. Bit 0 is the smallest subnormal, so keeping the top 53 bits but none below bit 0
   rounds subnormals right too; ldexp is exact up to the overflow to infinity. */
static double round_wide(exact_sum_wide w) {
  bool negative = w.limb[EXACT_SUM_LIMBS - 1] >> 63;
  if (negative) negate(&w);
  int top = highest_bit(&w);
  int low = top - 52 > 0 ? top - 52 : 0;
  uint64_t m = bits_from(&w, low);
  if (low > 0 && bit_at(&w, low - 1) && (any_below(&w, low - 1) || (m & 1))) m++;
  double magnitude = ldexp((double)m, low - 1074);
  return negative ? -magnitude : magnitude;
}

double exact_sum_round(const ps_exact_sum *sum) {
  if (!sum->wide) return exact_sum_narrow_round(sum->narrow);
  const exact_sum_wide *w = sum->wide;
  if (w->nan || (w->plus_inf && w->minus_inf)) return (double)NAN;
  if (w->plus_inf) return (double)INFINITY;
  if (w->minus_inf) return (double)-INFINITY;
  exact_sum_wide total = *w;
  wide_add_narrow(&total, sum->narrow);
  return round_wide(total);
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

void ps_exact_sum_free(ps_exact_sum *sum) {
  if (!sum) return;
  exact_sum_clear(sum);
  memory_free(sum);
}
