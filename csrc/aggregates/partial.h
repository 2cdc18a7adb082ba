/*
 * partial.h - what a window function knows of the tuples of a key in a slice, for many keys at once.
 *
 * A partial is a small block of bytes, zero if no tuple counted. The partials of one aggregate are an array, so that
 * the loops over them are long, typed and without calls. How a slice leaves a sliding window depends on the function:
 *
 *   count, sum, avg,  one total per key: a slice that enters is added, one that leaves is subtracted. Sums are exact
 *   var, std, covar,  (exact_sum.h, exact_moments.h, exact_pairs.h), so no rounding error remains. Multisets (sets.h)
 *   slope, intercept, likewise: words and their counts.
 *   corr
 *
 *   last              one total per key, the newest so far. When its slice leaves, all older ones have left.
 *
 *   the others        cannot be subtracted: two stacks per key, see slide.c.
 *
 * Each slice costs a constant number of steps per key, whatever the number of windows it is in.
 *
 * first, last, arg_min and arg_max carry (ts, input), so results do not depend on the order in which slices arrive. Of
 * one input's tuples with equal timestamps, all in one slice, the fold has kept the right one.
 */
#pragma once

#include "aggregates/aggregate.h"

/* False: a user's function, of which no design has slices. */
static inline bool partial_exists(const aggregate *a) { return a->kernel->finish_many != NULL; }

/* Adds plain sums to those by key number (false: one would overflow; nothing has changed), and subtracts the first n of
   them again (sums.c). */
bool partial_add_plain(int128 *to, const partial_list *list);
void partial_subtract_plain(int128 *to, const partial_list *list, int64_t n);

/* Frees the memory that partials own. */
static inline void partial_drop(const kernel *kind, void *partials, int64_t n) {
  if (kind->drop_many) kind->drop_many(partials, n);
}

/* Snapshots: a key's total as a window's state, which refers to the total's memory; `rows` of the key. Tuples after
   `until` will be added again: they have been subtracted from sums, and for min and max it does not matter. A first,
   last, arg_min or arg_max after it is left out: it wins again when it is added again. */
void partial_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                  void *state);

/* And a window's state as a partial of this place. */
void partial_load(const aggregate *a, const void *state, partial_place place, void *partial);

/* Writes the results of the keys to column `to` of the next rows. PS_OVERFLOW: *row is the first row that failed. */
static inline ps_code partial_finish(const aggregate *a, const partial_totals *t, const partial_list *keys,
                                     const int64_t *rows_of, out_rows *rows, int32_t to, int64_t *row) {
  return a->kernel->finish_many(&(partial_results){a, t, keys, rows_of, rows, to, row});
}
