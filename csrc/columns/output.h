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
  int64_t covered; /* rows for which the bitmap is written; those behind are valid */
  void *values;    /* 64-bit values, or int64_t offsets */
  int64_t values_capacity;
  int64_t values_expected; /* as many as there were when they were last handed over */
  uint8_t *data;           /* strings only */
  int64_t data_capacity;
} out_column;

typedef struct {
  int32_t columns;
  int64_t rows;
  out_column *column;
} out_rows;

bool out_rows_init(out_rows *rows, int32_t columns, const bool *is_bytes);
void out_rows_free(out_rows *rows);

/* Put one value per column, then end the row. A row that is not ended (out of memory on the way) does not exist. */
bool out_put_bits(out_rows *rows, int32_t to, uint64_t bits);
bool out_put_bytes(out_rows *rows, int32_t to, const uint8_t *data, int64_t length);
bool out_put_null(out_rows *rows, int32_t to);
static inline void out_end_row(out_rows *rows) { rows->rows++; }

/* Many rows at once, column by column. Reserve gives the place of the coming `n` values, to be written (NULL when out
   of memory); nulls among them and strings follow in rising order of `row`, which counts from the first of them. */
uint64_t *out_reserve(out_rows *rows, int32_t to, int64_t n);
bool out_put_null_at(out_rows *rows, int32_t to, int64_t row);
uint8_t *out_put_space_at(out_rows *rows, int32_t to, int64_t row, int64_t length);
static inline void out_end_rows(out_rows *rows, int64_t n) { rows->rows += n; }

/* Room for a string of this length, to be filled by the caller. NULL when out of memory. */
uint8_t *out_put_space(out_rows *rows, int32_t to, int64_t length);

/* Handing over in two steps, so that two tables can go together or not at all: an array of the right shape without
   contents (false when out of memory), and then the move of all rows into it, which leaves the table empty. */
bool out_rows_shell(out_rows *rows, struct ArrowArray *to);
void out_rows_move(out_rows *rows, struct ArrowArray *to);
