/* exact_deviations.c - see exact_deviations.h. */
#include "base/exact_deviations.h"

void exact_deviations_var(exact_deviations *b, int64_t count, exact_unit unit, int64_t ddof, double *out) {
  for (int64_t i = 0; i < count; i++) b->open |= (uint64_t)!exact_quick_round(b->quick[i], &out[i]) << i;
  for (; b->open; b->open &= b->open - 1) {
    int i = __builtin_ctzll(b->open);
    out[i] = exact_moments_var(b->state[i], unit, ddof);
  }
}

void exact_deviations_std(exact_deviations *b, int64_t count, exact_unit unit, int64_t ddof, double *out) {
  for (int64_t i = 0; i < count; i++) b->open |= (uint64_t)!exact_quick_root(b->quick[i], &out[i]) << i;
  for (; b->open; b->open &= b->open - 1) {
    int i = __builtin_ctzll(b->open);
    out[i] = exact_moments_std(b->state[i], unit, ddof);
  }
}

void ps_exact_deviations(const ps_exact_moments *const *states, int64_t n, int32_t integers, int64_t ddof,
                         int32_t of_root, double *out) {
  exact_unit unit = integers ? EXACT_INTEGERS : EXACT_DOUBLES;
  exact_deviations b = {.open = 0};
  for (int64_t from = 0; from < n; from += EXACT_DEVIATIONS) {
    int64_t count = n - from < EXACT_DEVIATIONS ? n - from : EXACT_DEVIATIONS;
    for (int64_t i = 0; i < count; i++) exact_deviations_put(&b, i, states[from + i], unit, ddof);
    (of_root ? exact_deviations_std : exact_deviations_var)(&b, count, unit, ddof, out + from);
  }
}
