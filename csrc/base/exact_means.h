/*
 * exact_means.h - the means of many exact sums at once: same bits as exact_mean of exact_sum.h, at a third of the cost.
 *
 * Four sums at a time, with doubles. A sum S is H + L, its upper and its lower half, both exact except for the lowest
 * bits of L. Then
 *     q = (H + L) / n          within some units in the last place
 *     c = (H + L - q * n) / n  the error of q: q is split so that both products with n are exact
 * and the mean is between q + (c - b) and q + (c + b), where b bounds what was dropped or rounded. If both are the same
 * double, that is the nearest one to the mean. If not, the mean is halfway between two doubles, or almost, and
 * exact_mean decides: one in 150 of readings with one decimal, whose sums are hardly longer than a double.
 *
 * In units of the narrow sum, 2^-80: the lowest 12 bits of L are dropped, and H - q * n is rounded at 2^12 at most. So
 * the error of c is at most 2^13 / n, and b = q * 2^-66 is larger from |S| = 2^80 on. The rest is exact, or rounded in
 * places far below that, for n < 2^26 and |S| < 2^113.
 */
#pragma once

#include "base/exact_sum.h"

#define EXACT_MEANS SIZED(32, 4) /* per block: most windows have more keys, and few places stay empty */

typedef struct {
  _Alignas(32) uint64_t low[EXACT_MEANS]; /* halves of the sums */
  _Alignas(32) uint64_t high[EXACT_MEANS];
  _Alignas(32) uint64_t n[EXACT_MEANS];
} exact_means_block;

/* Puts a sum into the block. Not 0: it has no mean, or needs exact_sum_mean. (Without a branch or comparison: this is
   half the cost of a mean.) */
static inline uint64_t exact_means_put(exact_means_block *b, int64_t at, const ps_exact_sum *s) {
  uint64_t n = (uint64_t)s->n;
  b->low[at] = (uint64_t)s->narrow;
  b->high[at] = (uint64_t)(s->narrow >> 64);
  b->n[at] = n;
  return (n - 1) >> 63 | (uint64_t)(uintptr_t)s->wide;
}

/* The means of the first `count`; overwrites the rest of the block. */
void exact_means(exact_means_block *b, int64_t count, double *out);
