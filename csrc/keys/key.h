/*
 * key.h - keys as byte strings whose memcmp order is the contract's key order.
 *
 * One encoding for all key types: per column a byte 0 (value) or 1 (null, so nulls sort last), then
 *   integers   8 bytes, big-endian, sign bit inverted if signed
 *   floats     8 bytes, sign-magnitude turned into an unsigned order; -0.0 is 0.0, every NaN is one NaN above +inf
 *   strings    the bytes with 00 written as 00 FF, terminated by 00 00, so that no key is a prefix of another
 *
 * The key_table stores each distinct key once per operator, at an address and with a number that do not change while
 * the key exists. Each input has a key_cache of its own in front of it, used only by that input's thread: the table's
 * mutex is taken only when an input finds a key for the first time.
 *
 * Keys that nothing refers to are removed in sweeps: key_sweep.h.
 */
#pragma once

#include <pthread.h>

#include "base/atomics.h"
#include "base/base.h"

struct batch;

typedef struct key {
  uint64_t hash;
  int64_t length;
  uint32_t number; /* 0, 1, 2, ... in order of the first lookup; numbers of removed keys are reused */
  uint8_t sweep;   /* low bits of table->sweep at the last lookup (sweep_stamp); guarded by table->lock */
  uint8_t data[];
} key;

/* Open addressing with linear probing, at most half full. */
typedef struct {
  key **slots;
  int64_t capacity; /* a power of two, or 0 */
  int64_t used;
} key_set;

/* Keys by number, in blocks that double and never move: a thread that has learned a number, itself or by a release and
   acquire from one that has, may look it up without the lock. */
#define KEY_BLOCK_FIRST SIZED(64, 1)
#define KEY_BLOCKS 26
#define KEY_NUMBERS_MAX (((INT64_C(1) << KEY_BLOCKS) - 1) * KEY_BLOCK_FIRST)

/* Keys are stored one after the other. A removed key leaves a hole for the next one of its size. */
#define KEY_WORD sizeof(uint64_t)
#define KEY_WORDS_MAX SIZED(64, 3) /* larger ones are allocated singly: rare, and holes would seldom fit */

typedef struct key_hole {
  struct key_hole *next;
} key_hole;

typedef struct key_shelf {
  struct key_shelf *next; /* the one filled before */
  size_t used, size;
  uint64_t room[];
} key_shelf;

typedef struct {
  pthread_mutex_t lock;
  key_set set;
  key_shelf *shelf;
  key_hole *hole[KEY_WORDS_MAX + 1]; /* by size in words */
  key **block[KEY_BLOCKS];           /* block i has KEY_BLOCK_FIRST << i keys */
  int64_t numbers;                   /* assigned so far; `spare` holds those free again */
  uint32_t *spare;
  int64_t spares, spare_capacity;
  uint32_t sweep;
  ps_counter known; /* keys in the set; writes guarded by lock */
} key_table;

typedef struct {
  key_table *table;
  key_set set;
  uint8_t *scratch;
  int64_t scratch_capacity;
} key_cache;

bool key_table_init(key_table *t);
void key_table_free(key_table *t);

/* The key encoded as these bytes, stored if it is new. NULL: out of memory. */
const key *key_table_key(key_table *t, const uint8_t *data, int64_t length);

/* Begins a sweep: from now on, lookups stamp keys with its number. Returns the end of the numbers assigned so far. */
int64_t key_table_begin_sweep(key_table *t);

/* Removes those of the keys that were not looked up since the sweep began; skips numbers without a key. Out of memory:
   some stay. Returns how many were removed. No other thread may hold their numbers (key_sweep.h). */
int64_t key_table_free_unmet(key_table *t, const uint32_t *numbers, int64_t n);

static inline const key *key_table_at(const key_table *t, uint32_t number) {
  uint64_t n = (uint64_t)number + KEY_BLOCK_FIRST;
  int top = 63 - __builtin_clzll(n);
  return t->block[top - __builtin_ctz(KEY_BLOCK_FIRST)][n - (UINT64_C(1) << top)];
}

void key_cache_init(key_cache *c, key_table *t);
void key_cache_free(key_cache *c);
void key_cache_forget(key_cache *c); /* empties it */

/* Fills b->keys, allocated if NULL, from columns 1..keys. False: out of memory. */
bool key_cache_fill(key_cache *c, struct batch *b, int32_t keys);

/* The key of one row; NULL: out of memory. key_cache_past bypasses the cache, for callers with a map of their own. */
const key *key_cache_row(key_cache *c, const struct batch *b, int32_t keys, int64_t row);
const key *key_cache_past(key_cache *c, const struct batch *b, int32_t keys, int64_t row);

int key_compare(const key *a, const key *b);

/* One column of a key, decoded. */
typedef struct {
  bool null;
  bool escaped;        /* string columns: it contains zero bytes */
  uint64_t bits;       /* fixed-width columns */
  const uint8_t *data; /* string columns: still escaped */
  int64_t length;      /* bytes after unescaping */
} key_part;

/* Decodes the column that starts at `at`. Returns the start of the next one. */
const uint8_t *key_decode(const uint8_t *at, ps_type type, key_part *out);
void key_unescape(const key_part *part, uint8_t *to);
