/*
 * key_order.h - the keys of the open windows in the order in which they are put out, for one thread (the reader).
 *
 * Keys are listed when they are met and sorted in when rows are next put out, so a key is compared once for each time
 * it comes back after it had been away, not once per window. Keys without rows stay listed until they are the larger
 * part.
 */
#pragma once

#include "keys/key.h"
#include "columns/output.h"

typedef struct {
  uint64_t prefix; /* the key's first bytes behind the null mark as a number: decides most comparisons */
  bool listed;
} key_order_entry;

/* One key column. */
typedef struct {
  ps_type type;
  uint64_t *bits;  /* fixed-width columns: the value by key number */
  key_part *parts; /* string columns: the same */
  uint8_t *nulls;  /* fixed-width columns: whether it is null; NULL until the first null */
} key_order_column;

typedef struct {
  const key_table *table;
  int32_t columns;
  key_order_column *column;
  key_order_entry *entry; /* by key number */
  int64_t capacity;
  uint32_t *order; /* listed keys, sorted, and behind them those met since, not sorted */
  int64_t sorted, length, order_capacity;
  uint32_t *scratch; /* as long as order */
  int64_t scratch_capacity;
  uint32_t *live; /* what key_order_live gave: as long as order */
  int64_t live_capacity;
} key_order;

bool key_order_init(key_order *r, const key_table *table, int32_t keys, const ps_type *types);
void key_order_free(key_order *r);

/* Key numbers below `limit` may come from now on. */
bool key_order_expect(key_order *r, int64_t limit);

/* These keys have rows. False when out of memory. */
bool key_order_list(key_order *r, const uint32_t *keys, int64_t n);

/* Keys with rows are listed. */
static inline bool key_order_lists(const key_order *r, int64_t number) {
  return number < r->capacity && r->entry[number].listed;
}

/* The keys that have rows, in order, until the next call; their number, or -1 when out of memory. */
int64_t key_order_live(key_order *r, const int64_t *rows);

/* Puts the key columns of the live keys into columns 1, 2, ... as rows to come. `again`: the rows before them are of
   the same keys. */
bool key_order_put(const key_order *r, int64_t live, bool again, out_rows *rows);
