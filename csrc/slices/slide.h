/*
 * slide.h - a window that slides over slices: totals per key and aggregate; for one thread.
 *
 * Two drivers: pane_window.c (slices that inputs hand over) and partials/combine.c (slices of a fold). A driver numbers
 * its slices 0, 1, 2, ... by their begins, shows the slide any of them by number (slide_source), and decides which of
 * them make a window. The slide holds the slices of the next window:
 *
 *   number   0    1    2    3    4    5    6    7
 *           (removed) [  ] [  ] [  ] [  ] [  ] (not added)
 *                      ^ first        ^ flipped ^ end: here 2, 5 and 7
 *                     |--- front ---|-- back --|                        see slide.c
 *
 * slide_enter adds slice number `end`, slide_leave removes slice number `first`, slide_emit writes a row per key that
 * has tuples in the slices held.
 *
 * Cost     a slice enters once and leaves once, in O(its keys), whatever the number of windows it is in.
 * Memory   a total per key number and aggregate, two if stacked (partial.h). Slices belong to the driver.
 * Failure  enter, leave and emit fail only when out of memory, emit also with PS_OVERFLOW. If enter or leave failed,
 *          totals are undefined, and only free may be called. If emit failed, nothing changed.
 */
#pragma once

#include "aggregates/partial.h"
#include "columns/output.h"
#include "keys/key_order.h"
#include "windows/window_rows.h"

/* A slice, in the driver's memory. */
typedef struct {
  int64_t n;              /* entries: keys, each once; unfolded: tuples */
  int64_t limit;          /* above all its key numbers */
  const uint32_t *keys;   /* key numbers */
  const int64_t *rows;    /* tuples of each; NULL: unfolded, one each */
  int64_t step;           /* distance between elements of `rows` */
  bool dense;             /* keys are 0, 1, 2, ...; those with 0 rows are not in the slice */
  partial_list *partials; /* of each aggregate; array of the slide, elements written by the driver */
} slide_slice;

/* Shows a slice: writes *to and all elements of to->partials. */
typedef struct {
  void (*show)(const void *driver, uint64_t number, slide_slice *to);
  const void *driver;
} slide_source;

/* The key columns. */
typedef struct {
  const key_table *table;
  int32_t columns;
  const ps_type *types;
} slide_keys;

/* Private: other files use the functions below. */
typedef struct {
  const aggregates *functions;
  bool stacked; /* some function needs the two stacks */
  slide_source source;
  partial_list *partials;       /* of the slice that is shown */
  uint64_t first, flipped, end; /* slices held; those before `flipped` are in the front stacks */
  int64_t capacity;             /* in key numbers */
  int64_t *rows;                /* by key number: tuples in the slices held */
  uint32_t *came;               /* keys that appear with a slice */
  partial_totals *totals;       /* of each function, by key number */
  key_order key_order;
  bool changed; /* a key appeared or disappeared since the last slide_emit */
  int64_t live; /* number of keys with tuples then */
} slide;

/* `functions` stay the caller's. False: out of memory, nothing to free. */
bool slide_init(slide *s, const aggregates *functions, const slide_keys *keys, slide_source source);
void slide_free(slide *s);

/* Makes room for key numbers below `limit`. False: out of memory, nothing changed. */
bool slide_expect(slide *s, int64_t limit);
static inline int64_t slide_limit(const slide *s) { return s->capacity; }

/* Add the next slice; remove the oldest. */
bool slide_enter(slide *s);
bool slide_leave(slide *s);

static inline uint64_t slide_first(const slide *s) { return s->first; }
static inline uint64_t slide_end(const slide *s) { return s->end; }
static inline bool slide_is_empty(const slide *s) { return s->first == s->end; }
static inline bool slide_has_flipped(const slide *s, uint64_t number) { return number < s->flipped; }

/* Appends the rows of the window that starts at `start`, in key order: the start, key columns, aggregates. On
   PS_OVERFLOW *fault names the first failing row and its first failing aggregate, and no row is appended. */
ps_code slide_emit(slide *s, int64_t start, out_rows *rows, ps_fault *fault);

/* Calls visit for each key that has tuples, in key order, with its totals as a state (aggregate.h; `state` has room for
   one) of the tuples up to `until`: see partial_save. False: visit returned false, or out of memory. */
typedef struct {
  int64_t start;
  partial_place until;
  uint8_t *state;
} slide_states;

bool slide_visit(slide *s, const slide_states *what, window_visit visit, void *context);

/* The keys that windows refer to; a key not listed has no tuples. */
static inline const key_order *slide_listed(const slide *s) { return &s->key_order; }

/* ---- slices that are not held: of a snapshot ---- */

/* For showing one; its memory is reused by the next slice shown. */
static inline slide_slice slide_blank(const slide *s) { return (slide_slice){.partials = s->partials}; }

/* Add it to the totals; subtract it, except for stacked functions. */
bool slide_add(slide *s, const slide_slice *slice);
bool slide_subtract(slide *s, const slide_slice *slice);

/* Copies the stacked totals (the back) of the slice's keys into its partials; restores them from there, which undoes
   what was added since. */
void slide_copy_back(const slide *s, const slide_slice *to);
void slide_restore_back(slide *s, const slide_slice *from);

/* Clears the totals of the slice's keys. */
void slide_clear(slide *s, const slide_slice *slice);

/* A copy of the front stacks, by function; NULL: out of memory. */
void **slide_copy_fronts(const slide *s);
void slide_free_fronts(const slide *s, void **fronts);
