/*
 * key_numbers.h - the keys of a batch as dense numbers, for the thread of one input.
 *
 * The operator's key_table gives each distinct key a number. In front of it stands a map of the input's own, so that a
 * key costs the table's lock and the general encoding only when the input meets it for the first time:
 *
 *   no key column             every row has number 0 of the one empty key
 *   one fixed-width column    as long as the values lie close together, an array indexed by value - lowest value;
 *                             else a hash table of values
 *   one string column         a hash table of strings
 *   anything else, nulls      key_cache, row by row
 */
#pragma once

#include "columns/batch.h"
#include "keys/key.h"

typedef struct {
  uint64_t word;    /* the value, or the hash of the string */
  const key *known; /* NULL: an empty slot */
  uint32_t number;
} key_entry;

typedef struct {
  key_cache *cache;
  int32_t keys;
  uint32_t *direct; /* number + 1 of the value lowest + i; 0: not met yet; NULL: the hash table is in use */
  uint64_t lowest;  /* values as value_key gives them */
  uint64_t direct_length;
  key_entry *slots;     /* open addressing, at most half full */
  int64_t capacity;     /* a power of two */
  int64_t used;         /* keys known, in either map */
  uint64_t least, most; /* the range of the values */
  uint32_t *numbers;    /* of the rows of the batch at hand */
  int64_t limit;        /* above all numbers met */
  int64_t numbers_capacity;
} key_numbers;

void key_numbers_init(key_numbers *n, key_cache *cache, int32_t keys);
void key_numbers_free(key_numbers *n);
void key_numbers_forget(key_numbers *n); /* all keys, also in the cache */

/* Fills n->numbers for the rows of the batch. False when out of memory; keys that were met stay known. */
bool key_numbers_fill(key_numbers *n, const batch *b);
