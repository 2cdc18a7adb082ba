/*
 * fuzz.h - what the harnesses share: drawing from the fuzzer's bytes, tables of values, and the same as Arrow arrays.
 *
 * A harness draws a query and rows, makes valid bytes of them (a snapshot, partials, a parcel), changes some of what it
 * has made as the input says, and hands it to the core. What the core accepts must mean the same when it is written
 * and read once more; what it refuses must leave nothing behind.
 */
#pragma once

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A broken promise of the core, which libFuzzer reports with the input. Unlike assert it is never compiled out. */
#define CLAIM(truth) ((truth) ? (void)0 : claim_failed(#truth, __FILE__, __LINE__))
_Noreturn void claim_failed(const char *truth, const char *file, int line);

/* ---- drawing ---- */

/* Bytes that are used up from the front; behind the end all are zero. */
typedef struct {
  const uint8_t *at;
  size_t left;
} draw;

uint8_t draw_byte(draw *d);
int64_t draw_below(draw *d, int64_t n); /* one byte; n is at most 256 */
uint64_t draw_word(draw *d);            /* small, close to a border, or any 64 bits */

/* ---- tables ---- */

typedef struct {
  bool null;
  uint64_t word; /* a number, widened as in value.h */
  uint8_t *data; /* a string: owned */
  int64_t length;
} field;

typedef struct {
  int64_t rows;
  int32_t columns;
  field *fields; /* row by row */
} table;

table table_new(int64_t rows, int32_t columns);
void table_free(table *t);
field *table_at(const table *t, int64_t row, int32_t column);
void field_set(field *c, const uint8_t *data, int64_t length);
field draw_field(draw *d, ps_type type, bool nulls);

/* What the core gives: 64-bit numbers and strings with 64-bit offsets. Appends the rows and releases the array. */
void table_take(table *t, struct ArrowArray *wide);
bool table_equal(const table *a, const table *b);
void table_sort(table *t); /* the rows, so that tables without an order can be compared */

/* Changes fields, drops, repeats and swaps rows, up to `most` times. */
void table_edit(draw *d, table *t, const ps_type *types, int64_t most);

/* The columns as Arrow has them, in buffers with no byte to spare, so that AddressSanitizer sees one read too far.
   `slack` leaves so many rows of rubbish in front, as a slice of a longer array has. */
struct ArrowArray table_arrow(const table *t, const ps_type *types, int64_t slack);

/* ---- queries ---- */

enum { SHAPE_KEYS = 2, SHAPE_VALUES = 3, SHAPE_AGGREGATES = 4, SHAPE_COLUMNS = 1 + SHAPE_KEYS + SHAPE_VALUES + 3 };

/* Columns: ts, keys, values, a mask, stream, position. */
typedef struct {
  ps_query query;
  ps_type types[SHAPE_COLUMNS];
  ps_aggregate aggregate[SHAPE_AGGREGATES];
  int32_t mask, stream, position; /* numbers of columns */
  bool ordered;                   /* some function wants the order of tuples */
} shape;

void draw_shape(draw *d, shape *s);

/* Rows of that query with rising timestamps, from *ts on; positions from *position on. */
table draw_rows(draw *d, const shape *s, int64_t rows, int64_t stream, int64_t *ts, int64_t *position);

/* A fold of the query, and all its partials or windows; PS_OK or the code that it ended with. */
ps_fold *shape_fold(const shape *s);
ps_code fold_windows(ps_fold *f, table *out);
ps_code fold_partials(ps_fold *f, table *out);

/* An operator of the query in a design that can run it; and all rows that come out of it until it ends. */
ps_design draw_design(draw *d, const shape *s);
ps_operator *shape_operator(const shape *s, ps_design design, int32_t inputs, int32_t threads);
ps_code operator_rows(ps_operator *op, table *out);
ps_code operator_pause(ps_operator *op); /* however long that takes */
