/*
 * place.h - which row the value of an entry comes from, for placed.c and strings.c.
 *
 * Partials of slices have (ts, input), see partial_place: of one input's tuples with equal timestamps the fold keeps
 * the right one. Entries of folds take rows in any order, so they have (ts, stream, position), which no two rows share.
 */
#pragma once

#include "aggregates/aggregate.h"

/* ---- slices; without a tuple `when` is 0, which the subtraction makes the largest ---- */

static inline bool place_is_before(partial_place a, partial_place b) {
  return (a.when - 1 < b.when - 1) | ((a.when == b.when) & (a.input < b.input));
}

static inline bool place_is_after(partial_place a, partial_place b) {
  return a.when > b.when || (a.when == b.when && a.input > b.input);
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

/* A value takes the place of the one held if it comes before it (first) or after it (last). */
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

/* As columns: ts, stream, position, the last three of the aggregate's; the first of them, and a row. */
static inline int32_t place_column(const aggregate *a) { return a->kernel->columns - 3; }

static inline row_place place_in(const aggregate *a, const kernel_input *in, int64_t row) {
  int32_t from = in->from + place_column(a);
  return (row_place){(uint64_t)input_integer(in, from, row) + 1, input_integer(in, from + 1, row),
                     input_integer(in, from + 2, row)};
}

/* Entries begin with the place; if there is a second column, its word (rank.h) is at this offset and goes to the column
   after the value's. False: out of memory. */
bool place_export(const kernel_output *o, size_t word_offset);

/* The row is there twice: PS_TWICE, and which one. Of rows that are folded, and of entries that come in. */
ps_code place_twice(const kernel_target *t, const counted_rows *c, int64_t i);
ps_code place_twice_in(const kernel_target *t, const kernel_input *in, int64_t row);
