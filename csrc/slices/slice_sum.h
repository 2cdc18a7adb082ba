/*
 * slice_sum.h - the slices of all inputs that begin at one edge, added up by key number.
 *
 * A slice held is read again when it leaves and, with stacks, once in between. If many inputs have tuples of few keys,
 * their slices of one edge have more partials than there are keys: their sum is smaller, and in the order of key
 * numbers, so that reading it again is a loop over arrays.
 *
 *   keys      [0] [1] [2] [3] ...            all numbers below `limit`
 *   rows      [3] [0] [7] [1]                0: no tuple, and all partials of the key are zero
 *   columns   partials by key number; sums are plain (partial.h)
 */
#pragma once

#include "slices/pane.h"

/* Whether slices of these functions can be added up. Not if partials refer to memory of a node: strings, moments; sums
   that are plain do not. */
bool slice_sum_suits(const aggregates *functions);

/* The `plain` of slices that can be added up (slice.h): all sums are. */
uint64_t slice_sum_plain(const aggregates *functions);

/* An empty node for key numbers below `limit`. NULL: out of memory. */
pane *slice_sum_new(const aggregates *functions, uint64_t begin, int64_t limit);

/* Adds a slice of the same edge, with plain sums and key numbers below the limit. False: a sum would overflow, nothing
   has changed. */
bool slice_sum_add(pane *node, pane *other, const aggregates *functions);
