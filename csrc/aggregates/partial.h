/*
 * partial.h - what a window function knows of the tuples of a key in a slice, for many keys at once.
 *
 * A partial is a small block of bytes, all zero when no tuple counted; partials of one aggregate lie in an array, so
 * that the loops over them are long, typed and without calls. Functions differ in how a window that slides forgets:
 *
 *   count, sum, avg,  one total per key: a slice that enters is added, one that leaves is subtracted. Sums are exact
 *   var, std          (exact_sum.h, exact_moments.h), so nothing is left over.
 *
 *   last              one total per key, the newest so far. If the slice that it is of leaves, so have all others.
 *
 *   the others        cannot be taken back. Per key two stacks, folded into one value each: `front`, the best of the
 *                     older slices that are still in the window, and `back`, the best of those that came since the
 *                     front was last filled. A window's value is the better of the two. When the front runs out, all
 *                     slices move there, newest first (push): each keeps in its own place what the front was without
 *                     it, so that its leaving is one copy back (pop).
 *
 * Either way a slice costs a constant number of steps per key, however many windows it is in.
 *
 * first, last, arg_min and arg_max carry (ts, input), so that the order in which slices come does not matter; of one
 * input's tuples with equal timestamps, all of which lie in one slice, the fold has kept the right one.
 */
#pragma once

#include "aggregates/aggregate.h"

typedef kernel partial_kind;

/* NULL: no design has slices of it. */
static inline const partial_kind *partial_kind_of(const aggregate *a) {
  return a->kernel->finish_many ? a->kernel : NULL;
}

/* Adds plain sums to those by key number. False: one would not fit; nothing has changed. And takes the first n of them
   out again (sums.c). */
bool partial_add_plain(int128 *to, const partial_list *list);
void partial_subtract_plain(int128 *to, const partial_list *list, int64_t n);

/* Frees what the partials hold. */
static inline void partial_drop(const partial_kind *kind, void *partials, int64_t n) {
  if (kind->drop_many) kind->drop_many(partials, n);
}

/* Snapshots: a key's total as the state of aggregate.h, which refers to the total's memory, and back; `rows` of the
   key. Tuples behind `until` will be added again: they have been taken out of the sums, and for min and max it does not
   matter. A first, last, arg_min or arg_max behind it is left out: it will be added again, and wins over those before
   it. */
static inline void partial_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows,
                                partial_place until, void *state) {
  size_t size = a->kernel->size;
  memset(state, 0, a->size);
  if (a->kernel->save) {
    a->kernel->save(a, t, k, rows, until, state);
  } else {
    memcpy(state, (const uint8_t *)t->total + k * size, size);
  }
}

static inline void partial_load(const aggregate *a, const void *state, partial_place place, void *partial) {
  size_t size = a->kernel->size;
  memset(partial, 0, size);
  if (a->kernel->load) {
    a->kernel->load(a, state, place, partial);
  } else {
    memcpy(partial, state, size);
  }
}

/* Puts the results of the keys into column `to`, as rows to come. PS_OVERFLOW leaves the first row that failed in *row.
 */
static inline ps_code partial_finish(const aggregate *a, const partial_totals *t, const partial_list *keys,
                                     const int64_t *rows_of, out_rows *rows, int32_t to, int64_t *row) {
  return a->kernel->finish_many(&(partial_results){a, t, keys, rows_of, rows, to, row});
}
