/*
 * slice.h - the private slice of one input: its tuples since the last edge, folded into one partial per key and
 * aggregate.
 *
 *   entry     0     1     2   ...  n-1          in order of first appearance
 *   keys     [17]  [4]   [230]                  key numbers
 *   rows     [3]   [1]   [1]                    tuples of the key
 *   columns  one array of partials per aggregate (partial.h)
 *
 *   slot     key number -> generation and entry. A slot of another generation is empty: a new slice clears nothing
 *
 * Rows are folded in blocks, column by column (row_block.h). A slice is used by one thread.
 */
#pragma once

#include "aggregates/partial.h"

typedef struct {
  const aggregates *functions;
  uint64_t input; /* PARTIAL_INPUT + its number */
  int64_t n, capacity;
  uint32_t *keys;
  int64_t *rows;
  void **columns;
  string_copy **copies; /* per string aggregate: strings copied out of batches */
  uint64_t *slot;
  uint32_t generation; /* number of the slice, modulo its width */
  int64_t slot_capacity;
} slice;

bool slice_init(slice *s, const aggregates *functions, int32_t input);
void slice_free(slice *s);

/* Reserves slots for key numbers up to `keys_max`; required before folding. False: out of memory, nothing changed. */
bool slice_expect(slice *s, uint32_t keys_max);

/* Folds rows [from, to) of the batch, whose keys are numbers[from], ... `settle`: copies the strings it needs, so that
   the batch may be freed. False: out of memory; the slice can only be freed. */
bool slice_fold(slice *s, const batch *b, const uint32_t *numbers, int64_t from, int64_t to, bool settle);

/* Finds the keys of n rows without folding: fills `keys` and `rows`; row[i] is the first row of the i-th key. The slice
   is empty before and after. Returns the number of keys; -1: out of memory. */
int64_t slice_find_first(slice *s, const uint32_t *numbers, int64_t n, uint16_t *row);

typedef struct flat_slice flat_slice;

/* Adds a slice of the same edge, of any input, without strings; call slice_expect first. False: as slice_fold. */
bool slice_merge(slice *s, const flat_slice *p);

/* A slice in one block of memory: keys, rows, the partials of each aggregate, the bytes of strings. */
struct flat_slice {
  int64_t n;
  uint64_t plain; /* bit a: the sums of aggregate a are plain (partial.h) */
  uint32_t *keys;
  int64_t *rows; /* NULL: unfolded (slice_unfolded.h), one each */
  uint8_t *columns;
  bool dense; /* see slice_sum.h */
};

static inline size_t flat_round(size_t size) { return (size + 15) / 16 * 16; } /* partials hold 128-bit integers */

static inline flat_slice flat_view(void *place, int64_t n, uint64_t plain, bool unfolded) {
  uint8_t *at = place;
  flat_slice p = {.n = n, .plain = plain, .keys = (uint32_t *)(void *)at};
  at += flat_round((size_t)n * sizeof *p.keys);
  if (!unfolded) {
    p.rows = (int64_t *)(void *)at;
    at += flat_round((size_t)n * sizeof *p.rows);
  }
  p.columns = at;
  return p;
}

#define FLAT_PLAIN_MAX SIZED(64, 3) /* aggregates that have a bit in `plain` */

static inline bool flat_is_plain(uint64_t plain, int32_t a) { return a < FLAT_PLAIN_MAX && (plain >> a & 1); }

static inline size_t flat_column_size(const kernel *kind, int64_t n, bool plain) {
  return flat_round((size_t)n * (plain ? sizeof(int128) : kind->size));
}

/* Bytes of a flat slice, without strings. */
size_t flat_size(const aggregates *functions, int64_t n, uint64_t plain);

/* The partials of aggregate a. To be called for all aggregates in order; `at` starts at p->columns and advances. */
static inline partial_list flat_next(const flat_slice *p, const aggregates *functions, int32_t a, uint8_t **at) {
  bool plain = flat_is_plain(p->plain, a);
  partial_list list = {p->keys, *at, p->n, plain, p->rows, p->dense};
  *at += flat_column_size(kernel_at(functions, a), p->n, plain);
  return list;
}

/* Flattens in two steps. slice_flat_size returns the size in bytes and which sums are plain. slice_flatten moves the
   slice to `place`, which has that size and is aligned to 16 bytes; the slice is empty afterwards. *owns: partials in
   `place` own memory. slice_flatten_copy leaves the slice unchanged, as owner of such memory. */
size_t slice_flat_size(const slice *s, uint64_t *plain);
void slice_flatten(slice *s, void *place, uint64_t plain, bool *owns);
void slice_flatten_copy(const slice *s, void *place, uint64_t plain, bool *owns);
