/*
 * slice_sum.h - the slices of all inputs that begin at one edge, added up by key number.
 *
 * Slices held are touched again when they leave and, where two stacks are needed, once in between. Where many inputs
 * have tuples of few keys, what they hand over of one edge is more than there are keys: added up it is less, and lies
 * in the order of key numbers, so that going over it again is a plain loop over arrays.
 *
 *   keys      [0] [1] [2] [3] ...            all numbers below `limit`
 *   rows      [3] [0] [7] [1]                0: no tuple, and all partials of the key are zero
 *   columns   partials by key number; sums are plain (partial.h)
 */
#pragma once

#include "slices/pane.h"

/* Whether what these functions hand over can be added up: strings belong to nodes, and so does memory
   that partials hold; but sums are plain. */
bool slice_sum_suits(const aggregates *functions, const partial_kind *const *kinds);

/* What `plain` of a slice has to be (slice.h): all its sums are. */
uint64_t slice_sum_plain(const aggregates *functions, const partial_kind *const *kinds);

/* An empty node for so many key numbers. NULL when out of memory. */
pane *slice_sum_new(const aggregates *functions, const partial_kind *const *kinds, uint64_t begin, int64_t limit);

/* Adds the slice of the same edge, whose sums are plain and whose key numbers are below the limit. False: some sum
   would become too large; nothing has changed. */
bool slice_sum_add(pane *node, pane *other, const aggregates *functions, const partial_kind *const *kinds);
