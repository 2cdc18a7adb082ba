/*
 * key.h - keys as byte strings whose memcmp order is the contract's key order.
 *
 * One encoding serves all key types: per column a byte 0 (value) or 1 (null, so nulls come last), then
 *   integers   8 bytes, big-endian, sign bit flipped when signed
 *   floats     8 bytes, sign-magnitude turned into an unsigned order; -0.0 is 0.0, every NaN is one NaN above +inf
 *   strings    the bytes with 00 written as 00 FF, closed by 00 00, so that no key is a prefix of another
 *
 * Each distinct key is stored once per operator in the key_table, at an address and with a number that stay as they are
 * as long as the key does. Each input has a key_cache in front of it, used by that input's thread alone: the table's
 * mutex is taken only when an input meets a key for the first time.
 *
 * Keys that nothing refers to any more leave in sweeps: key_sweep.h.
 */
#pragma once

#include <pthread.h>

#include "base/atomics.h"
#include "base/base.h"

struct batch;

typedef struct key {
  uint64_t hash;
  int64_t length;
  uint32_t number; /* keys are numbered 0, 1, 2, ... as the operator meets them; a free number goes to the next */
  uint8_t sweep;   /* behind the lock: the table's when the key was last asked for, but for the width (sweep_stamp) */
  uint8_t data[];
} key;

/* Open addressing with linear probing, at most half full. */
typedef struct {
  key **slots;
  int64_t capacity; /* a power of two, or 0 */
  int64_t used;
} key_set;

/* Keys by number, in blocks that double and never move: who has learnt a number, directly or through a release and
   acquire from one who has, may look it up without the lock. */
#define KEY_BLOCK_FIRST SIZED(64, 1)
#define KEY_BLOCKS 26
#define KEY_NUMBERS_MAX (((INT64_C(1) << KEY_BLOCKS) - 1) * KEY_BLOCK_FIRST)

/* Where keys lie, one behind the other. What a key leaves behind is a hole for the next one of its size. */
#define KEY_WORD sizeof(uint64_t)
#define KEY_WORDS_MAX SIZED(64, 3) /* larger ones are blocks of their own: rare, and sizes would seldom fit */

typedef struct key_hole {
  struct key_hole *next;
} key_hole;

typedef struct key_shelf {
  struct key_shelf *next; /* the one that was filled before */
  size_t used, size;
  uint64_t room[];
} key_shelf;

typedef struct {
  pthread_mutex_t lock;
  key_set set;
  key_shelf *shelf;
  key_hole *hole[KEY_WORDS_MAX + 1]; /* by size in words */
  key **block[KEY_BLOCKS];           /* block i holds KEY_BLOCK_FIRST << i keys */
  int64_t numbers;                   /* given so far; those that are free again: */
  uint32_t *spare;
  int64_t spares, spare_capacity;
  uint32_t sweep;
  ps_counter known; /* keys in the set; changed under the lock */
} key_table;

typedef struct {
  key_table *table;
  key_set set;
  uint8_t *scratch;
  int64_t scratch_capacity;
} key_cache;

bool key_table_init(key_table *t);
void key_table_free(key_table *t);

/* The key that is encoded as these bytes, which are stored if they are new. NULL when out of memory. */
const key *key_table_key(key_table *t, const uint8_t *data, int64_t length);

/* A sweep begins: which keys are asked for from now on? Gives the end of the numbers that others may have. */
int64_t key_table_begin_sweep(key_table *t);

/* Of these keys, those go that nobody has asked for since the sweep began; numbers without a key are passed over. When
   out of memory some stay. Gives how many went. The caller knows that nobody has their numbers (key_sweep.h). */
int64_t key_table_free_unmet(key_table *t, const uint32_t *numbers, int64_t n);

static inline const key *key_table_at(const key_table *t, uint32_t number) {
  uint64_t n = (uint64_t)number + KEY_BLOCK_FIRST;
  int top = 63 - __builtin_clzll(n);
  return t->block[top - __builtin_ctz(KEY_BLOCK_FIRST)][n - (UINT64_C(1) << top)];
}

void key_cache_init(key_cache *c, key_table *t);
void key_cache_free(key_cache *c);
void key_cache_forget(key_cache *c); /* all keys: as it was in the beginning */

/* Fills b->keys, for which it makes room if there is none, from columns 1..keys. False when out of memory. */
bool key_cache_fill(key_cache *c, struct batch *b, int32_t keys);

/* The key of one row; NULL when out of memory. Past the cache, if the caller keeps it and will not ask again. */
const key *key_cache_row(key_cache *c, const struct batch *b, int32_t keys, int64_t row);
const key *key_cache_past(key_cache *c, const struct batch *b, int32_t keys, int64_t row);

int key_compare(const key *a, const key *b);

/* One column of a key, decoded. */
typedef struct {
  bool null;
  bool escaped;        /* string columns: it has zero bytes */
  uint64_t bits;       /* fixed-width columns */
  const uint8_t *data; /* string columns: still escaped */
  int64_t length;      /* bytes after unescaping */
} key_part;

/* Decodes the column that starts at `at`; returns where the next one starts. */
const uint8_t *key_decode(const uint8_t *at, ps_type type, key_part *out);
void key_unescape(const key_part *part, uint8_t *to);
