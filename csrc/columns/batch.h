/*
 * batch.h - a batch of tuples: the caller's Arrow buffers, read in place; or rows copied from small batches
 * (coalesce.h).
 *
 * Python has checked the layout (pystream/_engine/plan.py): number and types of columns, lengths of buffers, offsets
 * in range, no null timestamp, no null in a mask. C checks the order of the timestamps.
 */
#pragma once

#include "base/atomics.h"
#include "base/base.h"
#include "base/bytes.h"
#include "base/value.h"

typedef struct key key; /* keys/key.h; here only pointers to it */

typedef struct {
  ps_type type;
  const uint8_t *validity; /* bitmap; NULL: no nulls */
  const void *values;      /* fixed-width values, or the bytes of strings */
  const void *offsets;     /* strings only */
  int64_t first;           /* Arrow's offset: row r is at first + r */
} column;

typedef struct batch {
  struct ArrowArray arrow; /* owned; released by batch_free */
  int64_t number;          /* the caller's name for it in the udf journal */
  int64_t rows;
  int64_t passed; /* rows that the output thread has passed: ledger.h */
  int64_t room;   /* rows that its own memory holds; 0: it views the caller's */
  int64_t bytes;  /* bytes of the caller's memory that it views, roughly */
  int64_t unseen; /* further bytes of the same buffers that it keeps alive; 0 if a later batch counts them: ledger.h */
  uint32_t sweep; /* the input's sweep when its keys were looked up: key_forget.h */
  const key **keys;   /* by row; NULL: not looked up (key_cache_fill) */
  struct batch *next; /* in the ledger, or in the list of batches to release */
  column columns[];
} batch;

/* A view of *arrow, which stays the caller's until batch_own. NULL: out of memory. */
batch *batch_new(const struct ArrowArray *arrow, int32_t columns, const ps_type *types);
void batch_own(batch *b, struct ArrowArray *arrow);

/* Both release the Arrow buffers if owned. That may take Python's GIL, so hold no lock. batch_empty keeps the batch for
   reuse by batch_view, with as many columns. */
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

/* A tuple's name in 64 bits, for structures whose payload is one word. The tuples of an input are read in the order
   added, so only the first of a batch has to identify the batch: its name is the batch's address + 1, the others' is
   twice their row. */
static inline uint64_t tuple_name(const batch *b, int64_t row) {
  return row == 0 ? (uint64_t)(uintptr_t)b | 1 : (uint64_t)row << 1;
}

/* Returns the row. *b: in, the batch of the tuple before; out, the batch of this one. */
static inline int64_t tuple_find(uint64_t name, batch **b) {
  if (!(name & 1)) return (int64_t)(name >> 1);
  *b = (batch *)(uintptr_t)(name - 1);
  return 0;
}

/* Bits of the values, or offsets, per row. */
int64_t type_bits(ps_type type);

/* A fixed-width value widened to 64 bits: value.h. */
uint64_t column_bits(const column *c, int64_t row);
/* n of them: in place if they have 64 bits already, else in `bits`. */
const uint64_t *column_widen(const column *c, int64_t row, int64_t n, uint64_t *bits);
bytes column_bytes(const column *c, int64_t row);

/* Progress of an input in one word (atomics.h, promise_write): 0: none, timestamp + 1, or this. */
#define PROMISE_CLOSED UINT64_MAX
