/*
 * rank.h - values as words in whose unsigned order the least wins, for extremes.c, placed.c and strings.c.
 *
 * max and arg_max invert all words. All NaNs are equal and above +inf (value.h). Of equal words the first in the order
 * of tuples wins: in arg_min and arg_max.
 */
#pragma once

#include "aggregates/place.h"

static inline uint64_t rank_inversion(const aggregate *a) { return a->kernel->greatest ? UINT64_MAX : 0; }

static inline uint64_t rank_of(uint64_t bits, ps_type type, uint64_t inversion) {
  return value_ordered(value_canonical(bits, type), type) ^ inversion;
}

/* The inverse. */
static inline uint64_t rank_value(uint64_t word, ps_type type, uint64_t inversion) {
  return value_unordered(word ^ inversion, type);
}

/* ---- arg_min, arg_max: the second column ---- */

/* The word of a row; c is the aggregate's column in the array of the batch's columns. */
static inline uint64_t rank_of_row(const aggregate *a, const column *c, int64_t row) {
  return rank_of(column_bits(c + (a->by - a->column), row), a->by_type, rank_inversion(a));
}

/* Slices: whether a partial with the first place and word wins over the other one. */
static inline bool rank_better(partial_place a, uint64_t word, partial_place b, uint64_t other) {
  if (!a.when || !b.when) return a.when != 0;
  return word != other ? word < other : place_is_before(a, b);
}

/* Folds: as place_compete, but the word decides before the place. */
static inline place_outcome rank_compete(row_place *held, uint64_t *held_word, const row_place *p, uint64_t word) {
  if (held->when && word != *held_word) {
    if (word > *held_word) return PLACE_KEPT;
    held->when = 0; /* whatever its place */
  }
  *held_word = word;
  return place_compete(held, p, false);
}

/* Snapshots: the value of the second column, 0 unless `any`. Reading checks it. */
bool rank_write(const aggregate *a, uint64_t word, bool any, byte_buffer *to);
uint64_t rank_read(const aggregate *a, bool any, state_reader *from);

/* Of an entry that comes in. */
uint64_t rank_in(const aggregate *a, const kernel_input *in, int64_t row);

/* kernel_check_values, and that each value has one in the second column, in its range. */
bool rank_check(const aggregate *a, const kernel_input *in);
