/*
 * multiset.h - a sorted set of words, each with a count: what functions over multisets keep (aggregates/sets.h).
 *
 *   few words       own     [3 x1] [7 x2]                      in the struct itself: no allocation
 *   one block       block   [2 x1] [3 x1] [7 x2] ...           its array doubles up to MULTISET_BLOCK words
 *   several         block   [2 ... 90] [95 ... 400] ...        of MULTISET_BLOCK words each, in ascending order
 *
 * A word is found by two binary searches and inserted by moving at most one block; a rank is found by adding up the
 * counts of blocks, then those within one. A full block splits in halves; a word above all others in a full last block
 * begins a new one, so ascending words leave full blocks. Two neighbours that fit into half a block become one, so
 * memory is bounded by the words held, but for the list of blocks, which only grows until the set is empty.
 *
 * Zero bytes are an empty set, and an empty set is zero bytes. For one thread. A call that runs out of memory leaves the
 * set as it was.
 */
#pragma once

#include "base/base.h"

#define MULTISET_OWN 4               /* the values of most keys in most slices: no allocation */
#define MULTISET_FIRST SIZED(8, 5)   /* words of the first array */
#define MULTISET_BLOCK SIZED(128, 6) /* words: 2 KB, moved in the time of a cache miss */
#define MULTISET_SPARSE (MULTISET_BLOCK / 2)

typedef struct {
  uint64_t word;
  int64_t count; /* above 0 */
} counted_word;

typedef struct {
  counted_word *at;
  int64_t values; /* the sum of its counts */
  uint64_t first; /* at[0].word */
  int32_t n, capacity;
} multiset_block;

typedef struct ps_multiset multiset;

struct ps_multiset {
  int64_t values;   /* the sum of all counts */
  int64_t distinct; /* words */
  int64_t held;     /* bytes allocated */
  int32_t blocks;   /* 0: the words are in `own` */
  int32_t room;     /* blocks allocated */
  union {
    counted_word own[MULTISET_OWN];
    multiset_block *block;
  };
};

_Static_assert(sizeof(multiset) == 96, "the header says what is in it");

void multiset_clear(multiset *m);

/* Makes room for a word, so that adding it cannot fail. */
bool multiset_reserve(multiset *m, uint64_t word);

/* Adds a count above 0 that keeps the sum of all below 2^63. */
bool multiset_insert(multiset *m, uint64_t word, int64_t count);

static inline bool multiset_add(multiset *m, uint64_t word) {
  if (m->blocks == 0 && m->distinct > 0 && m->own[0].word == word) { /* most often the only one */
    m->own[0].count++;
    m->values++;
    return true;
  }
  return multiset_insert(m, word, 1);
}

/* Subtracts a count that is in the set. */
void multiset_remove(multiset *m, uint64_t word, int64_t count);

/* Adds the other set; subtracts one that is in it. */
bool multiset_plus(multiset *m, const multiset *other);
void multiset_minus(multiset *m, const multiset *other);

/* ---- reading: runs of words, in ascending order ---- */

typedef struct {
  const counted_word *at;
  int64_t n, values;
} multiset_run;

static inline int32_t multiset_runs(const multiset *m) { return m->blocks ? m->blocks : m->values > 0; }

static inline multiset_run multiset_run_at(const multiset *m, int32_t i) {
  if (m->blocks == 0) return (multiset_run){m->own, m->distinct, m->values};
  return (multiset_run){m->block[i].at, m->block[i].n, m->block[i].values};
}

/* The words of rank `rank` and of the next one, or of the last one again; ranks are below m->values. */
void multiset_select(const multiset *m, int64_t rank, uint64_t word[2]);
