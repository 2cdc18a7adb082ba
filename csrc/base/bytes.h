/* bytes.h - strings of bytes, their order, and numbers as bytes: little-endian, the same on every machine. */
#pragma once

#include "base/base.h"

typedef struct {
  const uint8_t *data;
  int64_t length;
} bytes;

/* The sign of x - y: as unsigned bytes, a prefix before what it begins. */
static inline int bytes_compare(bytes x, bytes y) {
  int64_t shorter = x.length < y.length ? x.length : y.length;
  int order = shorter ? memcmp(x.data, y.data, (size_t)shorter) : 0;
  return order ? order : (x.length > y.length) - (x.length < y.length);
}

/* Both give where the next number goes. */
static inline uint8_t *bytes_put_word(uint8_t *to, uint64_t word) {
  for (int i = 0; i < 8; i++) *to++ = (uint8_t)(word >> (8 * i));
  return to;
}

static inline uint8_t *bytes_put_int128(uint8_t *to, int128 x) {
  return bytes_put_word(bytes_put_word(to, (uint64_t)(uint128)x), (uint64_t)((uint128)x >> 64));
}

static inline uint64_t bytes_word(const uint8_t *from) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; i--) word = word << 8 | from[i];
  return word;
}

static inline int128 bytes_int128(const uint8_t *from) {
  return (int128)((uint128)bytes_word(from + 8) << 64 | bytes_word(from));
}
