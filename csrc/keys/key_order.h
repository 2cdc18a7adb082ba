/*
 * key_order.h - the keys of the open windows in the order in which they are emitted, for one thread (the reader).
 *
 * A key is appended when it first has rows and sorted in when rows are next emitted: one comparison per (re)appearance
 * of a key, not per window. Keys without rows stay listed until they are the majority.
 */
#pragma once

#include "keys/key.h"
#include "columns/output.h"

typedef struct {
  uint64_t prefix; /* the key's first bytes after the null mark, as a number: decides most comparisons */
  bool listed;
} key_order_entry;

/* One key column. */
typedef struct {
  ps_type type;
  uint64_t *bits;  /* fixed-width columns: the value, by key number */
  key_part *parts; /* string columns: the same */
  uint8_t *nulls;  /* fixed-width columns: whether it is null; NULL until the first null */
} key_order_column;

typedef struct {
  const key_table *table;
  int32_t columns;
  key_order_column *column;
  key_order_entry *entry; /* by key number */
  int64_t capacity;
  uint32_t *order; /* listed keys: sorted ones, then those added since */
  int64_t sorted, length, order_capacity;
  uint32_t *scratch; /* as long as order */
  int64_t scratch_capacity;
  uint32_t *live; /* result of key_order_live; as long as order */
  int64_t live_capacity;
} key_order;

bool key_order_init(key_order *r, const key_table *table, int32_t keys, const ps_type *types);
void key_order_free(key_order *r);

/* Makes room for key numbers below `limit`. */
bool key_order_expect(key_order *r, int64_t limit);

/* Lists keys that have rows. False: out of memory. */
bool key_order_list(key_order *r, const uint32_t *keys, int64_t n);

/* Whether the key is listed; all keys with rows are. */
static inline bool key_order_lists(const key_order *r, int64_t number) {
  return number < r->capacity && r->entry[number].listed;
}

/* The keys that have rows, in order, in r->live until the next call. Returns their number; -1: out of memory. */
int64_t key_order_live(key_order *r, const int64_t *rows);

/* Appends the key columns of the live keys to columns 1, 2, ... of rows not ended yet. `again`: the rows before them
   have the same keys. */
bool key_order_put(const key_order *r, int64_t live, bool again, out_rows *rows);
