/*
 * shared_floats.c - sums of floats in shared words (shared.h).
 *
 * Values in the range of a narrow sum (exact_sum.h) are added in its units, to three words: 192 bits, which 2^63 such
 * values do not leave. The others, NaN and the infinities go into a wide block that the first of them links. Its limbs
 * are words as well: a carry goes on from limb to limb, each in a step of its own.
 */
#include <math.h>

#include "aggregates/shared_kinds.h"
#include "base/exact_sum.h"
#include "base/limbs.h"

enum { LOW, HIGH, TOP, WIDE, N, FLOAT_WORDS };
enum { NAN_COUNT, PLUS_INF, MINUS_INF, SPECIALS };

typedef struct {
  cell limb[EXACT_SUM_LIMBS];
  cell special[SPECIALS];
} wide_words;

static wide_words *wide_new(void) {
  wide_words *w = memory_new(sizeof *w);
  for (int i = 0; w && i < EXACT_SUM_LIMBS; i++) cell_init(&w->limb[i], 0);
  for (int i = 0; w && i < SPECIALS; i++) cell_init(&w->special[i], 0);
  return w;
}

/* ---- adding ---- */

static bool float_is_rare(const column *c, int64_t row) {
  int128 units;
  return !exact_sum_units(column_bits(c, row), &units);
}

static bool float_reserve(cell *words) {
  AT(window_process);
  if (link_read(&words[WIDE])) return true;
  wide_words *w = wide_new();
  if (!w) return false;
  AT(window_swap);
  if (!link_swap(&words[WIDE], NULL, w)) memory_free(w); /* another thread linked one first */
  return true;
}

/* Adds a number of at most three limbs at limb `at`; `sign` fills those above it. */
static void wide_add(wide_words *w, int at, const uint64_t *limb, uint64_t sign) {
  uint64_t carry = 0;
  for (int i = at; i < EXACT_SUM_LIMBS; i++) {
    if (i >= at + 3 && sign + carry == 0) return; /* nothing is left to add */
    carry = shared_carry(&w->limb[i], i < at + 3 ? limb[i - at] : sign, carry);
  }
}

static void add_rare(cell *words, uint64_t bits) {
  AT(window_process);
  wide_words *w = link_read(&words[WIDE]);
  double x = bits_double(bits);
  if (!isfinite(x)) {
    shared_add(&w->special[isnan(x) ? NAN_COUNT : x > 0 ? PLUS_INF : MINUS_INF], 1);
    return;
  }
  uint64_t sum[EXACT_SUM_LIMBS] = {0}, sign = 0 - (bits >> 63), exponent = bits >> 52 & 0x7ff;
  uint64_t m = (bits & ((UINT64_C(1) << 52) - 1)) | (uint64_t)(exponent > 0) << 52, pos = exponent ? exponent - 1 : 0;
  if (m == 0) return;
  limbs_add_term(sum, EXACT_SUM_LIMBS, m, pos, sign);
  wide_add(w, (int)(pos / 64), &sum[pos / 64], sign);
}

static void float_add(const aggregate *a, cell *words, const column *c, int64_t row) {
  (void)a;
  uint64_t bits = column_bits(c, row);
  int128 units;
  if (__builtin_expect(exact_sum_units(bits, &units), 1)) {
    uint64_t carry = shared_add(&words[LOW], (uint64_t)units);
    carry = shared_carry(&words[HIGH], (uint64_t)((uint128)units >> 64), carry);
    shared_carry(&words[TOP], units < 0 ? UINT64_MAX : 0, carry);
  } else {
    add_rare(words, bits);
  }
  shared_add(&words[N], 1);
}

/* ---- the reader ---- */

static void wide_take(const wide_words *w, exact_sum_wide *to) {
  for (int i = 0; i < EXACT_SUM_LIMBS; i++) to->limb[i] = shared_read(&w->limb[i]);
  to->nan = (int64_t)shared_read(&w->special[NAN_COUNT]);
  to->plus_inf = (int64_t)shared_read(&w->special[PLUS_INF]);
  to->minus_inf = (int64_t)shared_read(&w->special[MINUS_INF]);
}

/* 192 bits, at the unit of narrow sums. */
static void add_beyond(exact_sum_wide *to, int128 upper, uint64_t low) {
  uint64_t sign = upper < 0 ? UINT64_MAX : 0;
  uint128 magnitude = sign ? -(uint128)upper : (uint128)upper;
  limbs_add_term(to->limb, EXACT_SUM_LIMBS, magnitude, EXACT_SUM_NARROW_BIT + 64, sign);
  limbs_add_term(to->limb, EXACT_SUM_LIMBS, low, EXACT_SUM_NARROW_BIT, 0);
}

static bool float_take(const cell *words, void *state) {
  ps_exact_sum *s = state;
  uint64_t low = shared_read(&words[LOW]), high = shared_read(&words[HIGH]), top = shared_read(&words[TOP]);
  AT(next_take);
  const wide_words *w = link_read(&words[WIDE]);
  bool fits = top == 0 - (high >> 63);
  s->n = (int64_t)shared_read(&words[N]);
  if (fits) s->narrow = (int128)((uint128)high << 64 | low);
  if (fits && !w) return true;
  s->wide = memory_new(sizeof *s->wide);
  if (!s->wide) return false;
  if (w) wide_take(w, s->wide);
  if (!fits) add_beyond(s->wide, (int128)((uint128)top << 64 | high), low);
  return true;
}

static bool float_put(cell *words, const void *state) {
  const ps_exact_sum *s = state;
  cell_init(&words[LOW], (uint64_t)s->narrow);
  cell_init(&words[HIGH], (uint64_t)((uint128)s->narrow >> 64));
  cell_init(&words[TOP], s->narrow < 0 ? UINT64_MAX : 0);
  cell_init(&words[N], (uint64_t)s->n);
  if (!s->wide) return true;
  wide_words *w = wide_new();
  if (!w) return false;
  for (int i = 0; i < EXACT_SUM_LIMBS; i++) cell_init(&w->limb[i], s->wide->limb[i]);
  cell_init(&w->special[NAN_COUNT], (uint64_t)s->wide->nan);
  cell_init(&w->special[PLUS_INF], (uint64_t)s->wide->plus_inf);
  cell_init(&w->special[MINUS_INF], (uint64_t)s->wide->minus_inf);
  link_init(&words[WIDE], w);
  return true;
}

static void float_drop(cell *words) {
  memory_free(link_last(&words[WIDE]));
  link_init(&words[WIDE], NULL);
}

const shared_kind shared_floats = {.words = FLOAT_WORDS,
                                   .add = float_add,
                                   .is_rare = float_is_rare,
                                   .reserve = float_reserve,
                                   .take = float_take,
                                   .put = float_put,
                                   .drop = float_drop};
