/*
 * exact_deviations.h - variances or deviations of many states at once: those of exact_moments.h, to the bit, in two
 * thirds of their time.
 *
 * One result is a chain of multiplications, divisions and a root, each of which waits for the one before. A block takes
 * the steps in two loops, so that the processor works on several rows at a time: the numerators when states are put
 * into it, and the quick way of exact_ratio.h at the end. What that leaves open, and states that it is not for, take
 * the usual way.
 */
#pragma once

#include "base/exact_moments.h"
#include "base/exact_ratio.h"

#define EXACT_DEVIATIONS SIZED(32, 4) /* rows of a block: as EXACT_MEANS */

typedef struct {
  exact_unit unit;
  int64_t ddof;
  bool root; /* deviations */
  exact_quick quick[EXACT_DEVIATIONS];
  const ps_exact_moments *state[EXACT_DEVIATIONS];
  uint64_t open; /* bit i: row i takes the usual way */
} exact_deviations;

_Static_assert(EXACT_DEVIATIONS <= 64, "open has a bit for each row");

static inline void exact_deviations_init(exact_deviations *b, exact_unit unit, int64_t ddof, bool root) {
  b->unit = unit;
  b->ddof = ddof;
  b->root = root;
  b->open = 0;
}

/* Puts a state with n > ddof into the block. The state must stay as it is until the results are there. */
static inline void exact_deviations_put(exact_deviations *b, int64_t at, const ps_exact_moments *m) {
  uint64_t a[EXACT_NARROW_LIMBS], d = (uint64_t)m->sum.n * (uint64_t)(m->sum.n - b->ddof);
  exact_moments_numerator(m, a);
  int top = limbs_top(a, EXACT_NARROW_LIMBS);
  b->state[at] = m;
  if (__builtin_expect(top < 0 || m->sum.n >> 26 || !exact_moments_are_narrow(m), 0)) {
    b->quick[at] = (exact_quick){VALUE_SIGN, 0, INT64_C(1) << 52, 0}; /* anything that can be computed */
    b->open |= UINT64_C(1) << at;
    return;
  }
  b->quick[at] = exact_quick_of(a, top, d, -2 * (int)b->unit);
}

/* The results of the first `count`. The block is empty again. */
void exact_deviations_results(exact_deviations *b, int64_t count, double *out);
