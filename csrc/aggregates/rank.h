/*
 * rank.h - values as words in whose unsigned order the least wins, for extremes.c, arg_extremes.c and strings.c.
 *
 * max and arg_max take the complement of all words. Every NaN is one and is above +inf (value.h). Of equal words the
 * first in the order of tuples wins, where the place matters: arg_min and arg_max.
 */
#pragma once

#include "aggregates/place.h"

static inline uint64_t rank_flip(const aggregate *a) { return a->kernel->greatest ? UINT64_MAX : 0; }

static inline uint64_t rank_of(uint64_t bits, ps_type type, uint64_t flip) {
  return value_ordered(value_canonical(bits, type), type) ^ flip;
}

/* The inverse. */
static inline uint64_t rank_value(uint64_t word, ps_type type, uint64_t flip) {
  return value_unordered(word ^ flip, type);
}

/* ---- arg_min, arg_max: the second column ---- */

/* The word of a row, given the first column: those of a batch are one array. */
static inline uint64_t rank_of_row(const aggregate *a, const column *c, int64_t row) {
  return rank_of(column_bits(c + (a->by - a->column), row), a->by_type, rank_flip(a));
}

/* Slices: what decides between two partials. */
typedef struct {
  uint64_t word, when, input; /* when = 0: none */
} rank;

static inline bool rank_better(rank a, rank b) {
  if (!a.when || !b.when) return a.when != 0;
  if (a.word != b.word) return a.word < b.word;
  return a.when < b.when || (a.when == b.when && a.input < b.input);
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

/* Its bytes in snapshots: the value of the second column. Reading checks it; `any`: there is one, else it is 0. */
bool rank_write(const aggregate *a, uint64_t word, bool any, byte_buffer *to);
uint64_t rank_read(const aggregate *a, bool any, state_reader *from);

/* As a column of entries that travel: words lie `offset` bytes into states that begin with the place. False when out of
   memory. */
bool rank_export(const kernel_output *o, size_t size, size_t offset, int32_t to);
uint64_t rank_in(const aggregate *a, const kernel_input *in, int64_t row);

/* kernel_check_values, and that a value has one of the second column, in its range. */
bool rank_check(const aggregate *a, const kernel_input *in);
