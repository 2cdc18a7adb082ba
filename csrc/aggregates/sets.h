/*
 * sets.h - functions over multisets: what sets.c (states, slices, folds) and set_results.c (results) share.
 *
 * All of them keep the values of a key as words with counts (base/multiset.h) and differ in what the word of a value is:
 *
 *   n_unique                                  its place in the order of keys: -0.0 and 0.0 are one value
 *   median, quantile, top_k, bottom_k         its place in the order of values: -0.0 below 0.0, NaN above all
 *   approx_quantile                           its bucket, in the same order
 *   histogram                                 how many edges are at or below it
 *
 * Equal values have equal words, so what enters a total can leave it again, and neither the order of values nor that of
 * merging leaves a trace.
 *
 * A bucket is the values whose doubles share the exponent and the first `bits` bits of the mantissa. Its middle is
 * within 1 / 2^(bits + 1) of each of them. Subnormal doubles are scaled by 2^52 first, so they have exponents of their
 * own. Zero, infinities and NaN have buckets of their own. Conversion is all integers: no logarithm, which would depend
 * on the machine.
 */
#pragma once

#include "base/multiset.h"
#include "base/value.h"
#include "aggregates/aggregate.h"

/* A copy of the caller's description. NULL: out of memory. */
ps_set *set_new(const ps_set *from);
void set_free(ps_set *s);

/* ---- buckets ---- */

#define BUCKET_ZERO VALUE_SIGN
#define BUCKET_NAN UINT64_MAX
#define BUCKET_SCALE 52 /* log2 of what subnormals are multiplied by */

/* The least number of a normal double's bucket, and that of infinity's. */
static inline uint64_t bucket_normal(int32_t bits) { return (uint64_t)(BUCKET_SCALE + 1) << bits; }
static inline uint64_t bucket_infinite(int32_t bits) { return (uint64_t)(0x7ff + BUCKET_SCALE) << bits; }

/* The bucket of a positive double, or of infinity. */
static inline uint64_t bucket_of(uint64_t x, int32_t bits) {
  bool normal = x >> 52 != 0;
  if (!normal) x = double_bits(bits_double(x) * 0x1p52);
  return (x >> (52 - bits)) + (normal ? (uint64_t)BUCKET_SCALE << bits : 0);
}

/* The middle of a bucket. */
static inline double bucket_middle(uint64_t bucket, int32_t bits) {
  if (bucket == bucket_infinite(bits)) return (double)INFINITY;
  bool normal = bucket >= bucket_normal(bits);
  if (normal) bucket -= (uint64_t)BUCKET_SCALE << bits;
  double x = bits_double((bucket << (52 - bits)) | UINT64_C(1) << (51 - bits));
  return normal ? x : x * 0x1p-52;
}

/* The double nearest to a value. */
static inline double value_double(uint64_t value, ps_type type) {
  if (type_is_float(type)) return bits_double(value);
  return type_is_unsigned(type) ? (double)value : (double)(int64_t)value;
}

/* ---- words ---- */

static inline uint64_t key_word(const aggregate *a, uint64_t value) { return value_key(value, a->type); }

static inline uint64_t ordered_word(const aggregate *a, uint64_t value) {
  return value_ordered(value_canonical(value, a->type), a->type);
}

static inline uint64_t bucket_word(const aggregate *a, uint64_t value) {
  uint64_t x = double_bits(value_double(value, a->type)), size = x & ~VALUE_SIGN;
  if (size > double_bits((double)INFINITY)) return BUCKET_NAN;
  if (size == 0) return BUCKET_ZERO;
  uint64_t bucket = bucket_of(size, a->set->bits);
  return x & VALUE_SIGN ? BUCKET_ZERO - bucket : BUCKET_ZERO + bucket;
}

/* How many edges are at or below the value. */
static inline uint64_t bin_word(const aggregate *a, uint64_t value) {
  const uint64_t *edge = a->set->edge;
  uint64_t word = ordered_word(a, value);
  int32_t from = 0;
  for (int32_t n = a->set->edges, half; n > 0; n = half) {
    half = n / 2;
    from += edge[from + half] <= word ? n - half : 0;
  }
  return (uint64_t)from;
}

/* ---- results ---- */

ps_code distinct_finish_many(const partial_results *r);
ps_code quantile_finish_many(const partial_results *r);
ps_code bucket_finish_many(const partial_results *r);
ps_code best_finish_many(const partial_results *r);
ps_code bins_finish_many(const partial_results *r);
