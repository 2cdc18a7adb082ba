/*
 * slice.h - the private slice of one input: its tuples since the last edge, folded into one partial per key and
 * aggregate.
 *
 *   entry     0     1     2   ...  n-1          in the order in which the keys were met
 *   keys     [17]  [4]   [230]                  key numbers
 *   rows     [3]   [1]   [1]                    tuples of the key
 *   columns  one array of partials per aggregate (partial.h)
 *
 *   slot     key number -> generation and entry; valid only if the generation is this slice's, so that nothing has to be reset when
 *            a new slice begins
 *
 * Rows are folded in blocks, column by column: first the entry of each row is found, then every aggregate runs its own
 * loop over the block. A slice is used by one thread.
 */
#pragma once

#include "aggregates/partial.h"

typedef struct {
  const aggregates *functions;
  const partial_kind **kinds; /* of each aggregate */
  uint64_t input;             /* PARTIAL_INPUT + its number */
  int64_t n, capacity;
  uint32_t *keys;
  int64_t *rows;
  void **columns;
  string_copy **copies; /* of each string aggregate: the strings that are not in a batch at hand */
  uint64_t *slot;
  uint32_t generation; /* which slice of the input this is, but for the width */
  int64_t slot_capacity;
} slice;

bool slice_init(slice *s, const aggregates *functions, const partial_kind **kinds, int32_t input);
void slice_free(slice *s);

/* Before folding: numbers up to `keys_max` will come. False when out of memory; nothing has changed. */
bool slice_expect(slice *s, uint32_t keys_max);

/* Folds the rows [from, to) of the batch, whose keys are `numbers[from]`, ... With `settle`, the slice does not refer
   to the batch afterwards. False when out of memory: the slice is then good for nothing but being freed. */
bool slice_fold(slice *s, const batch *b, const uint32_t *numbers, int64_t from, int64_t to, bool settle);

/* The keys of the n rows: `keys` and `rows` are filled, and row[i] is the first row of the i-th key. Nothing is folded;
   the slice, which is empty, stays so. Gives how many there are; -1: out of memory. */
int64_t slice_find_first(slice *s, const uint32_t *numbers, int64_t n, uint16_t *row);

typedef struct packed packed;

/* Folds in what was handed over of the same time, by whatever input; not strings. Expect the keys first. False when out
   of memory, as above. */
bool slice_merge(slice *s, const packed *p);

/* A slice for handing over, in one block of memory: keys, rows, the partials of one aggregate behind the other, the
   bytes of strings. */
struct packed {
  int64_t n;
  uint64_t plain; /* bit a: the sums of aggregate a are plain (partial.h) */
  uint32_t *keys;
  int64_t *rows; /* NULL: unfolded (slice_unfolded.h), one each */
  uint8_t *columns;
  bool dense; /* see slice_sum.h */
};

static inline size_t packed_round(size_t size) { return (size + 15) / 16 * 16; } /* partials hold 128-bit integers */

static inline packed packed_view(void *place, int64_t n, uint64_t plain, bool unfolded) {
  uint8_t *at = place;
  packed p = {.n = n, .plain = plain, .keys = (uint32_t *)(void *)at};
  at += packed_round((size_t)n * sizeof *p.keys);
  if (!unfolded) {
    p.rows = (int64_t *)(void *)at;
    at += packed_round((size_t)n * sizeof *p.rows);
  }
  p.columns = at;
  return p;
}

#define PACKED_PLAIN_MAX SIZED(64, 3) /* aggregates that have a bit in `plain` */

static inline bool packed_is_plain(uint64_t plain, int32_t a) { return a < PACKED_PLAIN_MAX && (plain >> a & 1); }

static inline size_t packed_column_size(const partial_kind *kind, int64_t n, bool plain) {
  return packed_round((size_t)n * (plain ? sizeof(int128) : kind->size));
}

/* Its size, without the bytes of strings. */
size_t packed_size(const aggregates *functions, const partial_kind *const *kinds, int64_t n, uint64_t plain);

/* The partials of aggregate a; going through all of them, `at` starts at p->columns and moves on. */
static inline partial_list packed_next(const packed *p, const partial_kind *kind, int32_t a, uint8_t **at) {
  bool plain = packed_is_plain(p->plain, a);
  partial_list list = {p->keys, *at, p->n, plain, p->rows, p->dense};
  *at += packed_column_size(kind, p->n, plain);
  return list;
}

/* Packing in two steps: which sums are plain and how many bytes it takes; then the move to `place`, which is as large
   as that and aligned to 16 bytes, and leaves the slice empty. *owns says whether partials in it hold memory.
   slice_pack_copy leaves the slice as it is; such memory stays the slice's. */
size_t slice_packed_size(const slice *s, uint64_t *plain);
void slice_pack(slice *s, void *place, uint64_t plain, bool *owns);
void slice_pack_copy(const slice *s, void *place, uint64_t plain, bool *owns);
