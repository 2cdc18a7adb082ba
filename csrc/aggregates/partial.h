/*
 * partial.h - what a window function knows of the tuples of a key in a slice, for many keys at once.
 *
 * A partial is a small block of bytes, all zero when no tuple counted; partials of one aggregate lie in an array, so
 * that the loops over them are long, typed and without calls. Functions differ in how a window that slides forgets:
 *
 *   count, sum, avg   one total per key: a slice that enters is added, one that leaves is subtracted. Sums are exact
 *                     (exact_sum.h), so nothing is left over.
 *
 *   last              one total per key, the newest so far. If the slice that it is of leaves, so have all others.
 *
 *   min, max, first   cannot be taken back. Per key two stacks, folded into one value each: `front`, the best of the
 *                     older slices that are still in the window, and `back`, the best of those that came since the
 *                     front was last filled. A window's value is the better of the two. When the front runs out, all
 *                     slices move there, newest first (partial_push): each keeps in its own place what the front was
 *                     without it, so that its leaving is one copy back (partial_pop).
 *
 * Either way a slice costs a constant number of steps per key, however many windows it is in.
 *
 * first and last carry (ts, input), so that the order in which slices come does not matter; of one input's tuples with
 * equal timestamps, all of which lie in one slice, the fold has kept the right one.
 */
#pragma once

#include "aggregates/aggregate.h"
#include "columns/output.h"

typedef struct {
  uint64_t word; /* the value in an order of unsigned numbers in which the least wins */
  uint64_t present;
} least_partial;

/* Whose a partial is, in the order of tuples of one timestamp: what came with a snapshot is before what comes later. */
enum { PARTIAL_OF_WINDOW, PARTIAL_OF_SLICE, PARTIAL_INPUT };

typedef struct {
  uint64_t when;  /* ts + 1; 0: none */
  uint64_t input; /* PARTIAL_INPUT + its number, or one of those before it */
  uint64_t bits;
} placed_partial;

typedef struct {
  uint64_t when; /* ts + 1; 0: none */
  uint64_t input;
  const uint8_t *data;
  int64_t length;
} bytes_partial;

/* The reader's side of one aggregate: its totals by key number. */
typedef struct {
  void *total; /* min, max, first: the back; the others: the total */
  void *front;
} partial_totals;

/* Which partials of an aggregate belong to which keys. Sums may be plain: every tuple counted and no sum is wide, so
   that the sum alone is kept, half as large. */
typedef struct {
  const uint32_t *keys; /* their numbers, each once; but unfolded: as often as it has tuples */
  void *partials;       /* plain: int128 each */
  int64_t n;
  bool plain;
  const int64_t *rows; /* plain: how many tuples each one has; NULL: unfolded (slice_unfolded.h), one each */
  bool dense;          /* keys are 0, 1, 2, ...; partials of keys without tuples are zero (slice_sum.h) */
} partial_list;

typedef struct {
  size_t size;   /* of a partial; 0: the rows of the key say it all */
  bool stacked;  /* min, max, first */
  bool sums;     /* sum, avg: may be plain */
  bool owns;     /* partials may hold memory of their own: float sums */
  bool is_bytes; /* partials refer to bytes elsewhere */
  bool (*enter)(const partial_totals *t, const partial_list *list); /* false: out of memory */
  bool (*leave)(const partial_totals *t, const partial_list *list); /* not stacked; false: out of memory */
  void (*push)(const partial_totals *t, const partial_list *list);  /* stacked */
  void (*pop)(const partial_totals *t, const partial_list *list);   /* stacked */
} partial_kind;

const partial_kind *partial_kind_of(const aggregate *a);

/* Adds plain sums to those by key number. False: one would not fit; nothing has changed. And takes the first n of them
   out again. */
bool partial_add_plain(int128 *to, const partial_list *list);
void partial_subtract_plain(int128 *to, const partial_list *list, int64_t n);

/* Frees what the partials hold. */
void partial_drop(const partial_kind *kind, void *partials, int64_t n);

/* A place in the order of tuples. */
typedef struct {
  uint64_t when; /* ts + 1 */
  uint64_t input;
} partial_place;

/* Snapshots: a key's total as the state of aggregate.h, which refers to the total's memory, and back; `rows` of the
   key. Tuples behind `until` will be added again: they have been taken out of the sums, and for min and max it does not
   matter. A first or last behind it is left out: of those before it there is none, or it will be replaced. */
void partial_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                  void *state);
void partial_load(const aggregate *a, const void *state, partial_place place, void *partial);

/* Puts the results of the keys into column `to`, as rows to come. PS_OVERFLOW leaves the first row that failed in *row.
 */
ps_code partial_finish(const aggregate *a, const partial_totals *t, const partial_list *keys, const int64_t *rows_of,
                       out_rows *rows, int32_t to, int64_t *row);
