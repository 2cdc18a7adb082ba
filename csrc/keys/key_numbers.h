/*
 * key_numbers.h - the keys of a batch as dense numbers, for the thread of one input.
 *
 * The operator's key_table gives each distinct key a number. Each input has a map of its own in front of it, so that a
 * key costs the table's lock and the general encoding only when the input finds it for the first time:
 *
 *   no key column             every row has number 0, of the one empty key
 *   one fixed-width column    an array indexed by value - lowest value, while the values are close together;
 *                             else a hash table of values
 *   one string column         a hash table of strings
 *   anything else, nulls      key_cache, row by row
 */
#pragma once

#include "columns/batch.h"
#include "keys/key.h"

typedef struct {
  uint64_t word;    /* the value, or the hash of the string */
  const key *known; /* NULL: the slot is empty */
  uint32_t number;
} key_entry;

typedef struct {
  key_cache *cache;
  int32_t keys;
  uint32_t *direct; /* number + 1 of the value lowest + i; 0: not known; NULL: the hash table is in use */
  uint64_t lowest;  /* lowest value of `direct`, as value_key returns it */
  uint64_t direct_length;
  key_entry *slots;     /* open addressing, at most half full */
  int64_t capacity;     /* a power of two */
  int64_t used;         /* number of keys in either map */
  uint64_t least, most; /* range of the values known */
  uint32_t *numbers;    /* of the rows of the current batch */
  int64_t limit;        /* above all numbers used */
  int64_t numbers_capacity;
} key_numbers;

void key_numbers_init(key_numbers *n, key_cache *cache, int32_t keys);
void key_numbers_free(key_numbers *n);
void key_numbers_forget(key_numbers *n); /* forgets all keys, also in the cache */

/* Fills n->numbers for the rows of the batch. False: out of memory; keys found so far stay known. */
bool key_numbers_fill(key_numbers *n, const batch *b);
