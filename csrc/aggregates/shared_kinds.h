/* shared_kinds.h - how each function adds to shared words (shared.h), for the families and shared.c. */
#pragma once

#include "aggregates/aggregate.h"
#include "base/atomics.h"

/* The state of extremes.c, as take fills it and put reads it. */
typedef struct {
  uint64_t word;
  uint64_t present; /* 0: none */
} least;

struct shared_kind {
  int32_t words;
  void (*add)(const aggregate *a, cell *words, const column *c, int64_t row);
  bool (*is_rare)(const column *c, int64_t row); /* add wants reserve first; NULL: never */
  bool (*reserve)(cell *words);                  /* false: out of memory */
  bool (*take)(const cell *words, void *state);  /* fills an empty state; false: out of memory */
  bool (*put)(cell *words, const void *state);   /* copies it into empty words; false: out of memory */
  void (*drop)(cell *words);                     /* NULL: nothing to free */
};

extern const shared_kind shared_count, shared_integers, shared_floats, shared_least;

/* ---- steps, in line ---- */

/* Adds n to the first word and returns the carry out of it. */
static inline uint64_t shared_add(cell *word, uint64_t n) {
  AT(window_process);
  return word_add(word, n) > UINT64_MAX - n;
}

/* The same for the next words, into which a carry comes. n and the carry may add up to nothing: then all that came in
   goes out. */
static inline uint64_t shared_carry(cell *word, uint64_t n, uint64_t carry) {
  uint64_t sum = n + carry;
  if (sum == 0) return carry;
  AT(window_carry);
  return word_add(word, sum) > UINT64_MAX - sum;
}

/* The reader's: a word that nobody adds to any more. */
static inline uint64_t shared_read(const cell *word) {
  AT(next_take);
  return word_read(word);
}
