/*
 * batch.h - a batch of tuples: the caller's Arrow buffers, read in place; or rows copied from small batches
 * (coalesce.h).
 *
 * Python has checked the layout before (pystream/_engine/plan.py): the right number of columns, the right types, buffers long
 * enough, offsets in range, no null timestamp, no null in a mask. C checks the order of the timestamps.
 */
#pragma once

#include "base/atomics.h"
#include "base/base.h"
#include "base/value.h"

typedef struct key key; /* keys/key.h; here only pointers to it */

typedef struct {
  ps_type type;
  const uint8_t *validity; /* bitmap; NULL: no nulls */
  const void *values;      /* fixed-width values, or the bytes of strings */
  const void *offsets;     /* strings only */
  int64_t first;           /* Arrow's offset: row r lies at first + r */
} column;

typedef struct batch {
  struct ArrowArray arrow; /* owned; released by batch_free */
  int64_t number;          /* the caller's name for it in the udf journal */
  int64_t rows;
  int64_t passed;     /* rows that the output thread has passed: see ledger.h */
  int64_t room;       /* rows that it has memory of its own for; 0: it views the caller's */
  int64_t bytes;      /* about how much of the caller's memory it views, */
  int64_t unseen;     /* and how much more of the same buffers it keeps; 0 if a later batch counts it: ledger.h */
  uint32_t sweep;     /* the input's when its keys were looked up: key_forget.h */
  const key **keys;   /* the key of each row; NULL: not looked up (key_cache_fill) */
  struct batch *next; /* in the ledger, or in the list of batches to release */
  column columns[];
} batch;

typedef struct {
  const uint8_t *data;
  int64_t length;
} bytes;

/* Views *arrow, which stays the caller's until batch_own. NULL when out of memory. */
batch *batch_new(const struct ArrowArray *arrow, int32_t columns, const ps_type *types);
void batch_own(batch *b, struct ArrowArray *arrow);

/* Releases the Arrow buffers if owned; that may take Python's GIL, so hold no lock. Empty leaves the batch for another
   use: batch_view, with as many columns. */
void batch_free(batch *b);
void batch_empty(batch *b);
void batch_view(batch *b, const struct ArrowArray *arrow, int32_t columns, const ps_type *types);

static inline bool bitmap_get(const uint8_t *bitmap, int64_t i) { return bitmap[i >> 3] >> (i & 7) & 1; }

static inline bool column_is_null(const column *c, int64_t row) {
  return c->validity && !bitmap_get(c->validity, c->first + row);
}

static inline bool column_bool(const column *c, int64_t row) { return bitmap_get(c->values, c->first + row); }

static inline int64_t batch_ts(const batch *b, int64_t row) {
  const column *c = &b->columns[0];
  const int64_t *ts = (const int64_t *)c->values + c->first + row;
  READS(*ts);
  return *ts;
}

/* A tuple's name in 64 bits, for structures whose payload is one word. The tuples of an input are read in the order in
   which they were added, so only the first of a batch has to say which batch it is: its name is the batch's address +
   1, the others' twice their row. */
static inline uint64_t tuple_name(const batch *b, int64_t row) {
  return row == 0 ? (uint64_t)(uintptr_t)b | 1 : (uint64_t)row << 1;
}

/* The row; *b, the batch of the tuple before it, becomes the batch of this one. */
static inline int64_t tuple_find(uint64_t name, batch **b) {
  if (!(name & 1)) return (int64_t)(name >> 1);
  *b = (batch *)(uintptr_t)(name - 1);
  return 0;
}

/* How many bits of the column's values, or offsets, a row takes. */
int64_t type_bits(ps_type type);

/* A fixed-width value widened to 64 bits: see value.h. */
uint64_t column_bits(const column *c, int64_t row);
/* Many of them: in place if they have 64 bits already, else in `bits`. */
const uint64_t *column_widen(const column *c, int64_t row, int64_t n, uint64_t *bits);
bytes column_bytes(const column *c, int64_t row);

/* How far an input has come, in one word (atomics.h, promise_write): 0 for nothing, the timestamp + 1, or this. */
#define PROMISE_CLOSED UINT64_MAX
