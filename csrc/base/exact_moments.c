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

bool exact_pairs_reserve(ps_exact_pairs *p, double x, double y) {
  return exact_product_reserve(&p->x.squares, x, y) && exact_sum_reserve(&p->x.sum, x) && exact_sum_reserve(&p->y, y);
}

bool exact_pairs_add(ps_exact_pairs *p, double x, double y) {
  if (!exact_pairs_reserve(p, x, y)) return false;
  exact_sum_add(&p->x.sum, x);
  exact_sum_add(&p->y, y);
  exact_product_add(&p->x.squares, x, y);
  p->x.sum.n++;
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

bool exact_pairs_combine(ps_exact_pairs *p, const ps_exact_pairs *other, uint64_t sign) {
  if (!sum_reserve_for(&p->y, &other->y) || !exact_moments_combine(&p->x, &other->x, sign)) return false;
  return exact_sum_combine(&p->y, &other->y, sign);
}

void exact_pairs_add_i64(ps_exact_pairs *p, int64_t x, int64_t y) {
  uint64_t sign = (x < 0) == (y < 0) ? LIMBS_PLUS : LIMBS_MINUS;
  p->x.sum.narrow += x;
  p->y.narrow += y;
  p->x.sum.n++;
  exact_product_add_narrow(&p->x.squares, exact_parts_i64(x), exact_parts_i64(y), sign);
}

void exact_pairs_clear(ps_exact_pairs *p) {
  exact_moments_clear(&p->x);
  exact_sum_clear(&p->y);
}

/* ---- the numerator ---- */

/* n * sum(x * y) - sum(x) * sum(y), as sign and magnitude. */
typedef struct {
  uint64_t limb[EXACT_WIDE_LIMBS];
  int limbs;
  int exponent; /* of its unit */
  bool negative;
} numerator;

/* to->limb holds sum(x * y), with its sign extended. xy is room for the product of x and y, which have `half` limbs,
   and zero above it. */
__attribute__((always_inline)) static inline void finish_numerator(numerator *to, uint64_t *xy, int limbs, int64_t n,
                                                                   const uint64_t *x, const uint64_t *y, int half,
                                                                   bool opposite) {
  to->limbs = limbs;
  bool negative = limbs_sign(to->limb, limbs);
  if (negative) limbs_negate(to->limb, limbs);
  limbs_scale(to->limb, limbs, (uint64_t)n);
  if (negative) limbs_negate(to->limb, limbs);
  limbs_multiply(xy, x, y, half);
  limbs_add(to->limb, xy, limbs, opposite ? LIMBS_PLUS : LIMBS_MINUS);
  to->negative = limbs_sign(to->limb, limbs);
  if (to->negative) limbs_negate(to->limb, limbs);
}

static void magnitude_words(int128 x, uint64_t word[2]) {
  uint128 magnitude = x < 0 ? -(uint128)x : (uint128)x;
  word[0] = (uint64_t)magnitude;
  word[1] = (uint64_t)(magnitude >> 64);
}

static void narrow_numerator(numerator *to, const ps_exact_sum *x, const ps_exact_sum *y, const exact_product *xy,
                             exact_unit unit) {
  uint64_t x_word[2], y_word[2], product[EXACT_NARROW_LIMBS] = {0};
  magnitude_words(x->narrow, x_word);
  magnitude_words(y->narrow, y_word);
  memcpy(to->limb, xy->word, sizeof xy->word);
  to->limb[EXACT_PRODUCT_WORDS] = limbs_sign(xy->word, EXACT_PRODUCT_WORDS);
  finish_numerator(to, product, EXACT_NARROW_LIMBS, x->n, x_word, y_word, 2, (x->narrow < 0) != (y->narrow < 0));
  to->exponent = -2 * (int)unit;
}

/* |sum| in units of 2^-1074; whether it is negative. */
static bool wide_sum(const ps_exact_sum *sum, uint64_t limb[EXACT_SUM_LIMBS]) {
  uint64_t word[2];
  magnitude_words(sum->narrow, word);
  memset(limb, 0, EXACT_SUM_LIMBS * sizeof *limb);
  if (sum->wide) memcpy(limb, sum->wide->limb, sizeof sum->wide->limb);
  uint128 narrow = (uint128)word[1] << 64 | word[0];
  limbs_add_term(limb, EXACT_SUM_LIMBS, narrow, EXACT_SUM_NARROW_BIT, sum->narrow < 0 ? UINT64_MAX : 0);
  bool negative = limbs_sign(limb, EXACT_SUM_LIMBS);
  if (negative) limbs_negate(limb, EXACT_SUM_LIMBS);
  return negative;
}

__attribute__((noinline)) static void wide_numerator(numerator *to, const ps_exact_sum *x, const ps_exact_sum *y,
                                                     const exact_product *xy) {
  uint64_t x_limb[EXACT_SUM_LIMBS], y_limb[EXACT_SUM_LIMBS], product[EXACT_WIDE_LIMBS];
  bool opposite = wide_sum(x, x_limb) != wide_sum(y, y_limb);
  exact_product_limbs(xy, to->limb);
  uint64_t sign = limbs_sign(to->limb, EXACT_PRODUCT_LIMBS);
  for (int i = EXACT_PRODUCT_LIMBS; i < EXACT_WIDE_LIMBS; i++) to->limb[i] = sign;
  finish_numerator(to, product, EXACT_WIDE_LIMBS, x->n, x_limb, y_limb, EXACT_SUM_LIMBS, opposite);
  to->exponent = -EXACT_PRODUCT_UNIT;
}

static bool has_special(const ps_exact_sum *sum) {
  return sum->wide && (sum->wide->nan || sum->wide->plus_inf || sum->wide->minus_inf);
}

/* False: there is none, because of a NaN or an infinity. */
static bool numerator_of(numerator *to, const ps_exact_sum *x, const ps_exact_sum *y, const exact_product *xy,
                         exact_unit unit) {
  if (__builtin_expect(!x->wide && !y->wide && !xy->wide, 1)) {
    narrow_numerator(to, x, y, xy, unit);
    return true;
  }
  assert(unit == EXACT_DOUBLES);
  if (has_special(x) || has_special(y)) return false;
  wide_numerator(to, x, y, xy);
  return true;
}

/* ---- results ---- */

static uint128 denominator(int64_t n, int64_t ddof) {
  assert(ddof >= 0 && n > ddof);
  return (uint128)(uint64_t)n * (uint64_t)(n - ddof);
}

double exact_moments_result(const ps_exact_moments *m, exact_unit unit, int64_t ddof, bool root) {
  numerator a; /* large: not cleared */
  a.limbs = EXACT_NARROW_LIMBS;
  a.exponent = -2 * (int)unit;
  if (__builtin_expect(exact_moments_are_narrow(m), 1)) {
    exact_moments_numerator(m, a.limb);
  } else if (!numerator_of(&a, &m->sum, &m->sum, &m->squares, unit)) {
    return (double)NAN;
  }
  return exact_ratio(a.limb, a.limbs, denominator(m->sum.n, ddof), a.exponent, root);
}

double exact_pairs_covar(const ps_exact_pairs *p, exact_unit unit, int64_t ddof) {
  numerator a;
  if (!numerator_of(&a, &p->x.sum, &p->y, &p->x.squares, unit)) return (double)NAN;
  double magnitude = exact_ratio(a.limb, a.limbs, denominator(p->x.sum.n, ddof), a.exponent, false);
  return a.negative ? -magnitude : magnitude;
}

/* ---- states that came as bytes ---- */

#define NARROW_SQUARE_BITS (2 * (53 + EXACT_SUM_SHIFT_MAX)) /* in units of each part */
#define WIDE_SQUARE_BITS (EXACT_PRODUCT_UNIT + 2 * 1024)

/* Whether n squares below 2^bits can add up to it; there is a limb above that of this bit. */
static bool squares_possible(const uint64_t *limb, int limbs, int bits, uint64_t n) {
  int top = limbs_top(limb, limbs), i = bits / 64, offset = bits % 64;
  if (top < bits) return top < 0 || n > 0;
  if (top >= bits + EXACT_PRODUCT_MAX_BITS) return false;
  return (limb[i] >> offset | limb[i + 1] << 1 << (63 - offset)) < n;
}

/* The squares are within their range, and n * sum(x * x) >= sum(x)^2: values with these sums exist, if not as doubles. */
bool exact_moments_possible(const ps_exact_moments *m, exact_unit unit) {
  const exact_sum_wide *wide = m->sum.wide;
  bool integers = unit == EXACT_INTEGERS;
  if (integers && !exact_moments_are_narrow(m)) return false;
  if (wide && !exact_sum_wide_possible(wide, m->sum.n)) return false;
  uint64_t n = (uint64_t)m->sum.n;
  uint64_t special = wide ? (uint64_t)wide->nan + (uint64_t)wide->plus_inf + (uint64_t)wide->minus_inf : 0;
  if (special > n) return false;
  n -= special;
  if (!squares_possible(m->squares.word, EXACT_PRODUCT_WORDS, integers ? 128 : NARROW_SQUARE_BITS, n)) return false;
  if (m->squares.wide && !squares_possible(m->squares.wide->limb, EXACT_PRODUCT_LIMBS, WIDE_SQUARE_BITS, n))
    return false;
  numerator a;
  ps_exact_sum sum = m->sum;
  sum.n = (int64_t)n;
  if (exact_moments_are_narrow(m)) {
    narrow_numerator(&a, &sum, &sum, &m->squares, unit);
  } else {
    wide_numerator(&a, &sum, &sum, &m->squares);
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

ps_exact_pairs *ps_exact_pairs_new(void) { return memory_new(sizeof(ps_exact_pairs)); }

ps_code ps_exact_pairs_add_all(ps_exact_pairs *p, const double *x, const double *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) {
    if (!exact_pairs_add(p, x[i], y[i])) return PS_NO_MEMORY;
  }
  return PS_OK;
}

void ps_exact_pairs_add_i64(ps_exact_pairs *p, const int64_t *x, const int64_t *y, int64_t n) {
  for (int64_t i = 0; i < n; i++) exact_pairs_add_i64(p, x[i], y[i]);
}

ps_code ps_exact_pairs_combine(ps_exact_pairs *p, const ps_exact_pairs *other, int32_t subtract) {
  return exact_pairs_combine(p, other, subtract ? LIMBS_MINUS : LIMBS_PLUS) ? PS_OK : PS_NO_MEMORY;
}

ps_code ps_exact_pairs_covar(const ps_exact_pairs *p, int32_t integers, int64_t ddof, double *out) {
  if (p->x.sum.n <= ddof) return PS_EMPTY;
  *out = exact_pairs_covar(p, integers ? EXACT_INTEGERS : EXACT_DOUBLES, ddof);
  return PS_OK;
}

void ps_exact_pairs_free(ps_exact_pairs *p) {
  if (!p) return;
  exact_pairs_clear(p);
  memory_free(p);
}
