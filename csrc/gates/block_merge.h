/*
 * block_merge.h - merges short sorted lists of timestamps into one, with nothing that a processor would have to guess.
 *
 * Timestamps of a list that are equal may make a group. A group becomes one integer, the key, so that order and ties
 * are one comparison; where in its list the group is, and how many are in it, comes last and changes no order:
 *
 *   key = (ts - base + 1), the list's number, place of the first, size - 1     never 0 or UINT64_MAX: block_merge_spans
 *
 * Keys lie in one of two buffers, each list between two guards, and pairs of lists are merged from one buffer into the
 * other until one is left:
 *
 *   0 [list 0] ~0  0 [list 1] ~0  0 [list 2] ~0
 *   0 [lists 0 and 1      ] ~0    0 [list 2] ~0
 *
 * Which of two keys is the lower one is as good as random when inputs interleave. Hence a step takes one or the other
 * without a branch, and the guards spare it to ask for the end of a list. A step waits for the one before it, so that
 * four ways go side by side: from both ends and from the middle, which a search finds, in both directions.
 *
 * For one thread. Memory is allocated by init alone.
 */
#pragma once

#include "base/base.h"

typedef struct {
  uint64_t *first;
  int64_t n;
} block_list;

typedef struct {
  uint64_t *keys, *spare;          /* the buffer that holds the lists, and the one to merge into */
  int64_t each;                    /* the most timestamps of a list */
  int64_t base;                    /* of the timestamps */
  int32_t number_bits, place_bits; /* of a key */
  int32_t lists;
  uint64_t *end;    /* behind the last list */
  block_list *list; /* in the order of their numbers */
} block_merge;

/* Room for so many lists of at most `each` timestamps. False when out of memory. */
bool block_merge_init(block_merge *m, int32_t lists, int64_t each);
void block_merge_free(block_merge *m);

/* Whether keys can tell timestamps from base to base + span apart. */
static inline bool block_merge_spans(const block_merge *m, uint64_t span) {
  return span < (UINT64_MAX >> (m->number_bits + 2 * m->place_bits)) - 1;
}

/* Begins anew: no list, timestamps at or above base. */
void block_merge_begin(block_merge *m, int64_t base);
/* A list: those of the n sorted timestamps that are not above `most`, `each` at the most; how many these are. Its
   number, in 0 .. lists - 1, is above those of the lists before. Of equal timestamps those of the lower number come
   first. `ties`: many are equal, so that it pays to look for groups; else each is one of its own. */
int64_t block_merge_add(block_merge *m, int32_t number, const int64_t *ts, int64_t n, int64_t most, bool ties);
/* All groups in order; they stay until begin. At least one list has been added. */
block_list block_merge_all(block_merge *m);

/* What is in a key. */
static inline int64_t block_merge_field(uint64_t of, int32_t above, int32_t bits) {
  return (int64_t)(of >> above & (((uint64_t)1 << bits) - 1));
}
static inline int64_t block_merge_size(const block_merge *m, uint64_t of) {
  return block_merge_field(of, 0, m->place_bits) + 1;
}
static inline int64_t block_merge_place(const block_merge *m, uint64_t of) {
  return block_merge_field(of, m->place_bits, m->place_bits);
}
static inline int32_t block_merge_number(const block_merge *m, uint64_t of) {
  return (int32_t)block_merge_field(of, 2 * m->place_bits, m->number_bits);
}
static inline int64_t block_merge_ts(const block_merge *m, uint64_t of) {
  return (int64_t)((of >> (m->number_bits + 2 * m->place_bits)) - 1 + (uint64_t)m->base);
}
