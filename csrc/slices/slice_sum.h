/*
 * slice_sum.h - the sum of all inputs' slices of one edge: an entry per key number.
 *
 * A held slice is read again when it leaves and, with stacks, once before. If the inputs' slices of one edge have more
 * partials than there are keys, their sum is smaller, and is read in a loop over arrays without looking up keys.
 *
 *   keys      [0] [1] [2] [3] ...            all numbers below `limit`
 *   rows      [3] [0] [7] [1]                0: no tuple, and all partials of the key are zero
 *   columns   partials by key number; all sums are plain (partial.h)
 */
#pragma once

#include "slices/pane.h"

/* Whether slices of these functions can be added up. Not if partials refer to memory of a node: strings, moments; sums
   that are plain do not. */
bool slice_sum_suits(const aggregates *functions);

/* flat_slice.plain of slices that can be added up: all sums are plain. */
uint64_t slice_sum_plain(const aggregates *functions);

/* An empty node for key numbers below `limit`. NULL: out of memory. */
pane *slice_sum_new(const aggregates *functions, uint64_t begin, int64_t limit);

/* Adds a slice of the same edge, with plain sums and key numbers below the limit. False: a sum would overflow, nothing
   has changed. */
bool slice_sum_add(pane *node, pane *other, const aggregates *functions);
