/*
 * output.h - finished rows, built as Arrow columns.
 *
 * Fixed-width results are written as 64-bit values and strings with 64-bit offsets; Python casts them to the types of
 * the output schema. A table of rows belongs to one thread at a time; export moves its buffers out without a copy.
 */
#pragma once

#include "base/base.h"
#include "columns/batch.h"

typedef struct {
  bool is_bytes;
  uint8_t *validity; /* bitmap; NULL until the first null */
  int64_t validity_capacity;
  int64_t covered; /* rows that the bitmap covers; later ones are valid */
  void *values;    /* 64-bit values, or int64_t offsets */
  int64_t values_capacity;
  int64_t values_expected; /* as many as there were at the last export */
  uint8_t *data;           /* strings only */
  int64_t data_capacity;
} out_column;

typedef struct {
  int32_t columns;
  int64_t rows;
  out_column *column;
} out_rows;

bool out_rows_init(out_rows *rows, int32_t columns, const bool *is_bytes);

/* With `numbers` columns of numbers, then n of these types. */
bool out_rows_init_types(out_rows *rows, int32_t numbers, int32_t n, const ps_type *types);
void out_rows_free(out_rows *rows);

/* Put one value per column, then end the row. A row that is not ended (out of memory) does not exist. */
bool out_put_bits(out_rows *rows, int32_t to, uint64_t bits);
bool out_put_bytes(out_rows *rows, int32_t to, const uint8_t *data, int64_t length);
bool out_put_null(out_rows *rows, int32_t to);
static inline void out_end_row(out_rows *rows) { rows->rows++; }

/* Many rows at once, column by column. out_reserve returns the place of the next n values, for the caller to write
   (NULL: out of memory). Nulls among them and strings follow in ascending order of `row`, which counts from the first
   of them. */
uint64_t *out_reserve(out_rows *rows, int32_t to, int64_t n);
bool out_put_null_at(out_rows *rows, int32_t to, int64_t row);
uint8_t *out_put_space_at(out_rows *rows, int32_t to, int64_t row, int64_t length);
static inline void out_end_rows(out_rows *rows, int64_t n) { rows->rows += n; }

/* Space for a string of this length, which the caller writes. NULL: out of memory. */
uint8_t *out_put_space(out_rows *rows, int32_t to, int64_t length);

/* Export in two steps, so that two tables can be exported together or not at all: out_rows_shell makes an array of the
   right shape without contents (false: out of memory); out_rows_move moves all rows into it and empties the table. */
bool out_rows_shell(out_rows *rows, struct ArrowArray *to);
void out_rows_move(out_rows *rows, struct ArrowArray *to);
