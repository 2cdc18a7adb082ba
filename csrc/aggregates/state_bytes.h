/*
 * state_bytes.h - a window's state as bytes, the same on every machine, and back.
 *
 * Numbers are little-endian and of fixed width. The aggregates follow each other in the order of the query:
 *   count                       8   n
 *   sum, avg of integers        16  the sum, two's complement;  8  n
 *   sum, avg of floats          16  the narrow sum;  8  n;  1  whether a wide sum follows:
 *                               8 * EXACT_SUM_LIMBS  its limbs;  3 * 8  counts of NaN, +inf, -inf
 *   var, std                    8   n;  1, 1  whether a wide sum follows, and wide squares;  the moments (moments.c)
 *   covar, slope, intercept,    8   n;  the pairs, whose first byte says which wide parts follow (pairs.c)
 *   corr
 *   min, max, first, last       8   the value's bits;  8  n: written as 0 or 1
 *   the same of strings         1   whether there is one;  8  its length, and its bytes
 *   n_unique, quantile, ...     8   how many values;  8  the length of the set, and its bytes (sets.c)
 *   arg_min, arg_max            as first, last;  8  the bits of the second column's value, 0 if there is none
 *   native udf                  8   the code it failed with, or 0;  the user's bytes
 *   udf                         nothing: the user's objects are kept by Python
 * Reading checks everything, and that text is UTF-8: whatever the bytes, tuples could have led to the state, or nothing
 * computed from it is undefined. Each family writes and reads its own states (kernel.h), with the functions below.
 */
#pragma once

#include "aggregates/aggregate.h"

struct byte_buffer {
  uint8_t *data;
  int64_t length, capacity;
};

struct state_reader {
  const uint8_t *at;
  int64_t left;
  int64_t tuples; /* the largest count in this state */
  ps_code code;   /* PS_OK until something is wrong */
};

/* Replaces what the buffer holds. False when out of memory. */
bool state_save(const aggregates *all, const uint8_t *state, byte_buffer *to);

/* Into a state of zero bytes. PS_CORRUPT or PS_NO_MEMORY: the state is zero again. *tuples, 0 at first, bounds the sum
   of the counts of all states loaded: combining them must not overflow. */
ps_code state_load(const aggregates *all, bytes from, uint8_t *state, int64_t *tuples);

/* Whether a widened value is one that a column of this type can have. */
bool value_in_range(uint64_t bits, ps_type type);

/* Appends. False when out of memory. */
bool state_put(byte_buffer *to, const void *data, int64_t length);
bool state_put_flag(byte_buffer *to, bool flag);
bool state_put_word(byte_buffer *to, uint64_t word);
bool state_put_int128(byte_buffer *to, int128 x);

/* Read the next bytes, or return 0 and set the reader's code to PS_CORRUPT. */
bool state_get(state_reader *from, void *to, int64_t length);
bool state_get_flag(state_reader *from);
uint64_t state_get_word(state_reader *from);
int128 state_get_int128(state_reader *from);
int64_t state_get_count(state_reader *from);         /* of tuples */
int64_t state_count(state_reader *from, uint64_t n); /* the same, of a number that was read */
void state_require(state_reader *from, bool right);
