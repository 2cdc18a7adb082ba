/*
 * place.h - which row a first or last comes from, for first_last.c and strings.c.
 *
 * Partials of slices have (ts, input): of one input's tuples with equal timestamps the fold keeps the right one.
 * Entries of folds take rows in any order, so they have (ts, stream, position), which no two rows share.
 */
#pragma once

#include "aggregates/aggregate.h"

/* ---- slices ---- */

/* Whether a tuple of a snapshot's windows or slices, or one that is ready by then. */
static inline bool place_is_within(uint64_t when, uint64_t input, partial_place until) {
  return input < PARTIAL_INPUT || when < until.when || (when == until.when && input <= until.input);
}

/* ---- folds ---- */

typedef struct {
  uint64_t when; /* ts + 1; 0: there is none */
  int64_t stream, position;
} row_place;

static inline row_place place_of(const row_block *k, int64_t at) {
  return (row_place){(uint64_t)k->ts[at] + 1, k->stream ? k->stream[at] : 0, k->position ? k->position[at] : 0};
}

/* The sign of a - b; both are there. */
static inline int place_order(const row_place *a, const row_place *b) {
  if (a->when != b->when) return a->when < b->when ? -1 : 1;
  if (a->stream != b->stream) return a->stream < b->stream ? -1 : 1;
  return (a->position > b->position) - (a->position < b->position);
}

/* Takes a value in whose place is known, if it comes before (first) or behind (last) the one that is there. */
typedef enum { PLACE_KEPT, PLACE_REPLACED, PLACE_TWICE } place_outcome;

static inline place_outcome place_compete(row_place *held, const row_place *p, bool last) {
  if (held->when) {
    int order = place_order(p, held);
    if (order == 0) return PLACE_TWICE;
    if ((order > 0) != last) return PLACE_KEPT;
  }
  *held = *p;
  return PLACE_REPLACED;
}

/* As columns: ts, stream, position, from column `from` on. */
static inline row_place place_in(const kernel_input *in, int32_t from, int64_t row) {
  return (row_place){(uint64_t)input_integer(in, from, row) + 1, input_integer(in, from + 1, row),
                     input_integer(in, from + 2, row)};
}

/* States of `size` bytes, which begin with the place. False when out of memory. */
bool place_export(const kernel_output *o, size_t size, int32_t to);

/* The row is there twice: PS_TWICE, and which one. Of rows that were folded, and of those that came in. */
ps_code place_twice(const kernel_target *t, const counted_rows *c, int64_t i);
ps_code place_twice_in(const kernel_target *t, const kernel_input *in, int64_t row);
