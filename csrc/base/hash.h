/*
 * hash.h - the hash function of all tables with users' data: keys, and the slices of a fold.
 *
 * Seeded with random bits once per process, so that knowing this code does not allow choosing keys that collide.
 * Nothing that leaves the process depends on the seed: no order of rows, no bytes of a parcel. PYSTREAM_HASH_SEED (any
 * text) fixes it for tests; in the model build it is fixed, so that explorations are repeatable.
 *
 * A step multiplies two words and folds the 128 bits of the product: each half of it depends on all bits of the word
 * through an unknown factor, so no difference between two words gives a known difference between their hashes. The
 * second step spreads what the first leaves weak in the low bits.
 */
#pragma once

#include "base/base.h"

typedef struct {
  uint64_t begin, factor, middle, last; /* the factors are odd */
} hash_secrets;

extern hash_secrets hash_secret; /* written before main, or before dlopen returns */

static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
  uint128 product = (uint128)a * b;
  return (uint64_t)product ^ (uint64_t)(product >> 64);
}

/* For a word all of whose bits matter. */
static inline uint64_t hash_word(uint64_t x) {
  uint64_t h = hash_fold(x ^ hash_secret.begin, hash_secret.factor);
  return hash_fold(h ^ hash_secret.middle, hash_secret.last);
}

uint64_t hash_bytes(const uint8_t *data, int64_t length);
