/*
 * set_results.c - the results of functions over multisets: see sets.h.
 *
 * Lists are strings of bytes here: 8 for each of their values. Python makes lists of them (pystream/_engine/plan.py).
 */
#include "aggregates/sets.h"

static const multiset *set_at(const partial_results *r, int64_t i) {
  return (const multiset *)r->t->total + r->keys->keys[i];
}

ps_code distinct_finish_many(const partial_results *r) {
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0; i < r->keys->n; i++) out[i] = (uint64_t)set_at(r, i)->distinct;
  return PS_OK;
}

/* ---- quantiles: between two values that are neighbours in order ---- */

/* The words at the place q * (n - 1), rounded down, and after it; the rest of the place, from 0 to below 1. */
static double select_place(const multiset *m, double place, uint64_t word[2]) {
  double whole = floor(place);
  multiset_select(m, (int64_t)whole, word);
  return place - whole;
}

/* As NumPy interpolates; from is not above to. What NumPy makes NaN of a number and an infinity is the infinity. */
static double interpolate(double from, double to, double span, double rest) {
  if (rest <= 0 || from >= to) return from;
  if (isinf(from) || isinf(to)) return from + to;
  if (isinf(span)) return from * (1 - rest) + to * rest;
  return rest < 0.5 ? from + span * rest : to - span * (1 - rest);
}

static double between(const uint64_t value[2], ps_type type, double rest) {
  double from = value_double(value[0], type), to = value_double(value[1], type);
  double span = type_is_float(type) ? to - from : (double)(value[1] - value[0]);
  return interpolate(from, to, span, rest);
}

/* The double nearest to the mean of two values. */
static double middle(const uint64_t value[2], ps_type type) {
  if (type_is_float(type)) {
    double from = bits_double(value[0]), to = bits_double(value[1]), sum = from + to;
    return isinf(sum) ? from / 2 + to / 2 : sum / 2;
  }
  bool is_unsigned = type_is_unsigned(type);
  int128 sum = is_unsigned ? (int128)value[0] + (int128)value[1] : (int128)(int64_t)value[0] + (int64_t)value[1];
  return (double)sum / 2;
}

static uint64_t quantile_of(const aggregate *a, const multiset *m) {
  uint64_t word[2], value[2];
  double place = (double)(m->values - 1) * a->set->q;
  ps_choice choice = a->set->choice;
  if (choice == PS_LOWER) place = floor(place);
  if (choice == PS_HIGHER) place = ceil(place);
  if (choice == PS_NEAREST) place = rint(place); /* half-way: the even one */
  double rest = select_place(m, place, word);
  for (int i = 0; i < 2; i++) value[i] = value_unordered(word[i], a->type);
  if (choice == PS_LINEAR) return double_bits(between(value, a->type, rest));
  if (choice == PS_MIDPOINT) return double_bits(between(value, a->type, rest > 0 ? 0.5 : 0));
  if (choice == PS_MIDDLE && rest > 0) return double_bits(middle(value, a->type));
  return choice == PS_MIDDLE ? double_bits(value_double(value[0], a->type)) : value[0];
}

static double bucket_double(const aggregate *a, uint64_t word) {
  if (word == BUCKET_NAN) return (double)NAN;
  if (word == BUCKET_ZERO) return 0;
  if (word > BUCKET_ZERO) return bucket_middle(word - BUCKET_ZERO, a->set->bits);
  return -bucket_middle(BUCKET_ZERO - word, a->set->bits);
}

static uint64_t bucket_quantile_of(const aggregate *a, const multiset *m) {
  uint64_t word[2];
  double rest = select_place(m, (double)(m->values - 1) * a->set->q, word);
  double from = bucket_double(a, word[0]), to = bucket_double(a, word[1]);
  return double_bits(interpolate(from, to, to - from, rest));
}

/* A value, or null if there are none. */
INLINED ps_code put_values(const partial_results *r, uint64_t (*result)(const aggregate *, const multiset *)) {
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0; i < r->keys->n; i++) {
    const multiset *m = set_at(r, i);
    out[i] = m->values ? value_canonical(result(r->a, m), r->a->type) : 0;
    if (!m->values && !out_put_null_at(r->rows, r->to, i)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

ps_code quantile_finish_many(const partial_results *r) { return put_values(r, quantile_of); }

ps_code bucket_finish_many(const partial_results *r) { return put_values(r, bucket_quantile_of); }

/* ---- lists ---- */

/* Writes a value as often as it was counted, `left` times at most; returns how many are left. */
static int64_t put_often(uint8_t **to, uint64_t value, int64_t count, int64_t left) {
  for (; count > 0 && left > 0; count--, left--) {
    memcpy(*to, &value, sizeof value);
    *to += sizeof value;
  }
  return left;
}

/* The least words in ascending order, or the greatest in descending order. */
static void put_best(const aggregate *a, const multiset *m, int64_t left, uint8_t *to) {
  int32_t runs = multiset_runs(m);
  bool greatest = a->kernel->greatest;
  for (int32_t r = 0; left > 0; r++) {
    multiset_run run = multiset_run_at(m, greatest ? runs - 1 - r : r);
    for (int64_t i = 0; i < run.n && left > 0; i++) {
      counted_word w = run.at[greatest ? run.n - 1 - i : i];
      left = put_often(&to, value_unordered(w.word, a->type), w.count, left);
    }
  }
}

ps_code best_finish_many(const partial_results *r) {
  for (int64_t i = 0; i < r->keys->n; i++) {
    const multiset *m = set_at(r, i);
    int64_t n = m->values < r->a->set->k ? m->values : r->a->set->k;
    uint8_t *space = out_put_space_at(r->rows, r->to, i, 8 * n);
    if (!space || (n == 0 && !out_put_null_at(r->rows, r->to, i))) return PS_NO_MEMORY;
    put_best(r->a, m, n, space);
  }
  return PS_OK;
}

ps_code bins_finish_many(const partial_results *r) {
  int64_t length = 8 * (int64_t)r->a->set->bins;
  for (int64_t i = 0; i < r->keys->n; i++) {
    const multiset *m = set_at(r, i);
    uint8_t *space = out_put_space_at(r->rows, r->to, i, length);
    if (!space) return PS_NO_MEMORY;
    memset(space, 0, (size_t)length);
    for (int32_t b = 0; b < multiset_runs(m); b++) {
      multiset_run run = multiset_run_at(m, b);
      for (int64_t j = 0; j < run.n; j++) memcpy(space + 8 * run.at[j].word, &run.at[j].count, 8);
    }
  }
  return PS_OK;
}
