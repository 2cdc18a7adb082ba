/* exact_deviations.c - see exact_deviations.h. */
#include "base/exact_deviations.h"

/* `root` is known where this is called. */
static inline void quick_results(exact_deviations *b, int64_t count, bool root, double *out) {
  for (int64_t i = 0; i < count; i++) {
    bool decided = root ? exact_quick_root(b->quick[i], &out[i]) : exact_quick_round(b->quick[i], &out[i]);
    b->open |= (uint64_t)!decided << i;
  }
}

void exact_deviations_results(exact_deviations *b, int64_t count, double *out) {
  b->root ? quick_results(b, count, true, out) : quick_results(b, count, false, out);
  for (; b->open; b->open &= b->open - 1) {
    int i = __builtin_ctzll(b->open);
    out[i] = exact_moments_result(b->state[i], b->unit, b->ddof, b->root);
  }
}

void ps_exact_deviations(const ps_exact_moments *const *states, int64_t n, int32_t integers, int64_t ddof, int32_t root,
                         double *out) {
  exact_deviations b;
  exact_deviations_init(&b, integers ? EXACT_INTEGERS : EXACT_DOUBLES, ddof, root);
  for (int64_t from = 0; from < n; from += EXACT_DEVIATIONS) {
    int64_t count = n - from < EXACT_DEVIATIONS ? n - from : EXACT_DEVIATIONS;
    for (int64_t i = 0; i < count; i++) exact_deviations_put(&b, i, states[from + i]);
    exact_deviations_results(&b, count, out + from);
  }
}
