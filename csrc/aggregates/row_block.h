/*
 * row_block.h - the rows of a batch, block by block, and which of them count for an aggregate.
 *
 * Rows are folded column by column: first the entry of each row is found, then each aggregate runs a loop of its own
 * over the block. Which rows count for it is decided before that loop, so that the loop has no branch on it.
 *
 *   rows of the block     0  1  2  3  4  5
 *   all                   0  1     3  4  5      those in some window
 *   counted                  1     3     5      those of them that pass the filter and are not null
 *
 * A block is on the stack of one thread and is not cleared: it is large, and most slices are short.
 */
#pragma once

#include "base/base.h"
#include "columns/batch.h"

typedef struct aggregate aggregate;

#define ROW_BLOCK SIZED(1024, 2) /* rows: their entries and widened values, 12 KB, stay in the first-level cache */

_Static_assert(ROW_BLOCK <= UINT16_MAX, "rows within a block have 16 bits");

typedef struct {
  int64_t n;
  uint32_t entry[ROW_BLOCK];
  uint16_t at[ROW_BLOCK]; /* row within the block */
} row_entries;

typedef struct {
  const batch *b;
  int64_t row, rows;                     /* the block */
  const int64_t *ts, *stream, *position; /* of its rows; folds only: stream and position, or NULL */
  uint64_t input;                        /* slices only: see partial_place */
  bool fresh;                            /* slices only: the slice was empty before */
  row_entries all;                       /* `at` is not used, and not written, if n == rows */
  row_entries counted;                   /* scratch of row_block_count, as bits and by */
  uint64_t bits[ROW_BLOCK];
  uint64_t by[ROW_BLOCK];
} row_block;

/* The rows that count. */
typedef struct {
  int64_t n;
  const uint32_t *entry;
  const uint64_t *bits; /* their values: see value.h; NULL: strings, or no column */
  const uint64_t *by;   /* their values of the second column; NULL: none */
  const uint16_t *at;   /* row within the block; NULL: 0, 1, 2, ... */
  const column *values; /* NULL: no column */
  const row_block *block;
} counted_rows;

static inline int64_t counted_at(const counted_rows *c, int64_t i) { return c->at ? c->at[i] : i; }

/* The values of a column of 64-bit integers, from this row on. */
static inline const int64_t *column_integers(const column *c, int64_t row) {
  return (const int64_t *)c->values + c->first + row;
}

/* The rows that count for the aggregate; valid until the next call for the block. */
counted_rows row_block_count(const aggregate *a, row_block *k);
