/*
 * block_merge.h - merges short sorted lists of timestamps into one, without unpredictable branches.
 *
 * Equal timestamps of a list may form a group. A group is one integer, the key, so that timestamp and tie are one
 * comparison. The place of the group in its list and its size are in the low bits, where they change no order:
 *
 *   key = (ts - base + 1), number of the list, place of the first, size - 1
 *
 * A key is never 0 or UINT64_MAX (block_merge_spans); these are the guards below.
 *
 * Keys are in one of two buffers, each list between two guards. Pairs of lists are merged from one buffer into the
 * other until one list is left:
 *
 *   0 [list 0] ~0  0 [list 1] ~0  0 [list 2] ~0
 *   0 [lists 0 and 1      ] ~0    0 [list 2] ~0
 *
 * Which of two keys is lower is as good as random when inputs interleave. Hence a step selects one without a branch,
 * and the guards replace the test for the end of a list. A step depends on the one before it, so four merges run side
 * by side: upwards from the start, downwards from the end, and both ways from the middle, which a binary search finds.
 *
 * For one thread. Only init allocates.
 */
#pragma once

#include "base/base.h"

typedef struct {
  uint64_t *first;
  int64_t n;
} block_list;

typedef struct {
  uint64_t *keys, *spare;          /* the buffer that holds the lists, and the one to merge into */
  int64_t each;                    /* most timestamps per list */
  int64_t base;                    /* lowest timestamp */
  int32_t number_bits, place_bits; /* width of two fields of a key */
  int32_t lists;
  uint64_t *end;    /* after the last list's guard */
  block_list *list; /* ordered by number */
} block_merge;

/* Makes room for `lists` lists of at most `each` timestamps. False: out of memory. */
bool block_merge_init(block_merge *m, int32_t lists, int64_t each);
void block_merge_free(block_merge *m);

/* Whether keys can represent timestamps from base to base + span. */
static inline bool block_merge_spans(const block_merge *m, uint64_t span) {
  return span < (UINT64_MAX >> (m->number_bits + 2 * m->place_bits)) - 1;
}

/* Starts over: no lists, timestamps at or above base. */
void block_merge_begin(block_merge *m, int64_t base);
/* Adds a list: the first of the n sorted timestamps that are not above `most`, at most `each`. Returns how many.
   `number` is in 0 .. lists - 1 and above those of earlier lists. Of equal timestamps those with the lower number are
   first. `ties`: many are equal, so groups pay off; otherwise each timestamp is a group of its own. */
int64_t block_merge_add(block_merge *m, int32_t number, const int64_t *ts, int64_t n, int64_t most, bool ties);
/* All groups in order; valid until begin. At least one list was added. */
block_list block_merge_all(block_merge *m);

/* The fields of a key. */
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
