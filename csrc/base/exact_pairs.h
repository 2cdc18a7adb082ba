/*
 * exact_pairs.h - covariance, regression line and correlation of pairs (u, v) of doubles or integers: each the double
 * nearest to the exact value, whatever the order.
 *
 * The state is n, the exact sums of u and of v (exact_sum.h), and exact sums of products (exact_product.h), of which a
 * result needs one to three. Adding, combining and subtracting are exact. With
 *
 *   uv = n * sum(u * v) - sum(u) * sum(v)      vv = n * sum(v * v) - sum(v)^2      uu = n * sum(u * u) - sum(u)^2
 *
 * which are integers (exact_numerator.h), the results are
 *
 *   covariance    uv / (n * (n - ddof))
 *   slope         uv / vv, of the line u = slope * v + intercept
 *   intercept     (sum(u) * sum(v * v) - sum(v) * sum(u * v)) / vv
 *   correlation   uv / sqrt(uu * vv): the root of uv^2 / (uu * vv), with the sign of uv
 *
 * Each numerator and denominator is one integer; they are divided and rounded once (exact_ratio.h). There is no line
 * where all v are equal, and no correlation where all u are, either.
 *
 *   limbs of        narrow   wide
 *   an intercept    7        102: sum(u) has 2 or 35, sum(v * v) 5 or 67
 *   uv^2, uu * vv   12       140
 *
 * A column is of integers or of doubles, each counts its own unit. There are fewer than 2^62 pairs. A NaN or an
 * infinity on either side gives NaN, until all of these have been subtracted. One thread at a time.
 */
#pragma once

#include "base/exact_moments.h"

enum { EXACT_UV, EXACT_VV, EXACT_UU, EXACT_PAIR_PRODUCTS };

/* All zero bytes is an empty state. It may be shorter: what has `products` products is exact_pairs_size(products) long. */
struct ps_exact_pairs {
  ps_exact_sum u; /* with n */
  ps_exact_sum v; /* v.n stays 0 */
  exact_product product[EXACT_PAIR_PRODUCTS];
};

static inline size_t exact_pairs_size(int products) {
  return offsetof(ps_exact_pairs, product) + (size_t)products * sizeof(exact_product);
}

_Static_assert(offsetof(struct ps_exact_pairs, product) % 16 == 0 && sizeof(exact_product) % 16 == 0,
               "states of any length lie side by side");

typedef enum { EXACT_COVAR, EXACT_SLOPE, EXACT_INTERCEPT, EXACT_CORR } exact_pair_result;

static inline int exact_pair_products(exact_pair_result result) {
  return result == EXACT_COVAR ? 1 : result == EXACT_CORR ? 3 : 2;
}

/* What a column holds. */
typedef struct {
  exact_unit unit;
  uint64_t sign; /* which of the highest bits is a sign: all or none */
} exact_values;

typedef struct {
  exact_values u, v;
  int products;
} exact_pair_kind;

static inline exact_values exact_values_of(ps_type type) {
  return (exact_values){type_is_float(type) ? EXACT_DOUBLES : EXACT_INTEGERS, type_is_unsigned(type) ? 0 : UINT64_MAX};
}

/* A value: a magnitude in units of its column, and a sign as a mask. */
typedef struct {
  exact_parts parts;
  uint64_t sign;
} exact_term;

static inline exact_term exact_term_of(exact_values values, uint64_t bits) {
  uint64_t sign = (0 - (bits >> 63)) & values.sign;
  if (values.unit == EXACT_DOUBLES) return (exact_term){exact_parts_of(bits), sign};
  return (exact_term){{(bits ^ sign) - sign, 0}, sign};
}

/* Adds it to a sum, where the shift is below 63. False: the sum overflows. */
static inline bool exact_term_total(int128 narrow, exact_term x, int128 *total) {
  uint128 units = (uint128)x.parts.m * (UINT64_C(1) << (x.parts.shift & 63)), sign = 0 - (uint128)(x.sign & 1);
  return !__builtin_add_overflow(narrow, (int128)((units ^ sign) - sign), total);
}

static inline void exact_term_multiply(exact_product *to, exact_term x, exact_term y) {
  exact_product_add_narrow(to, x.parts, y.parts, x.sign ^ y.sign);
}

/* All that give a bool: false when out of memory; the state is then as it was. */
bool exact_pairs_add_rare(ps_exact_pairs *p, exact_pair_kind kind, uint64_t u, uint64_t v); /* whatever the values */
bool exact_pairs_combine_rare(ps_exact_pairs *p, const ps_exact_pairs *other, int products, uint64_t sign);
/* Allocates what adding the pair needs, so that this cannot fail. */
bool exact_pairs_reserve(ps_exact_pairs *p, exact_pair_kind kind, uint64_t u, uint64_t v);

/* The common case in line, as in exact_moments.h. False: it is another, nothing changed. */
static inline bool exact_pairs_add_narrow(ps_exact_pairs *p, exact_pair_kind kind, uint64_t u_bits, uint64_t v_bits) {
  exact_term u = exact_term_of(kind.u, u_bits), v = exact_term_of(kind.v, v_bits);
  int128 u_total, v_total;
  if (__builtin_expect((u.parts.shift > 62) | (v.parts.shift > 62), 0)) return false;
  if (__builtin_expect(!exact_term_total(p->u.narrow, u, &u_total), 0)) return false;
  if (__builtin_expect(!exact_term_total(p->v.narrow, v, &v_total), 0)) return false;
  p->u.narrow = u_total;
  p->v.narrow = v_total;
  p->u.n++;
  exact_term_multiply(&p->product[EXACT_UV], u, v);
  if (kind.products > EXACT_VV) exact_term_multiply(&p->product[EXACT_VV], v, v);
  if (kind.products > EXACT_UU) exact_term_multiply(&p->product[EXACT_UU], u, u);
  return true;
}

static inline bool exact_pairs_add(ps_exact_pairs *p, exact_pair_kind kind, uint64_t u, uint64_t v) {
  return __builtin_expect(exact_pairs_add_narrow(p, kind, u, v), 1) || exact_pairs_add_rare(p, kind, u, v);
}

static inline bool exact_pairs_are_narrow(const ps_exact_pairs *p, int products) {
  bool narrow = !p->u.wide && !p->v.wide;
  for (int i = 0; i < products; i++) narrow &= !p->product[i].wide;
  return narrow;
}

/* Adds the other state (LIMBS_PLUS), or undoes that (LIMBS_MINUS). */
static inline bool exact_pairs_combine(ps_exact_pairs *p, const ps_exact_pairs *other, int products, uint64_t sign) {
  int128 u, v;
  bool u_over = sign ? __builtin_sub_overflow(p->u.narrow, other->u.narrow, &u)
                     : __builtin_add_overflow(p->u.narrow, other->u.narrow, &u);
  bool v_over = sign ? __builtin_sub_overflow(p->v.narrow, other->v.narrow, &v)
                     : __builtin_add_overflow(p->v.narrow, other->v.narrow, &v);
  if (__builtin_expect(u_over || v_over || !exact_pairs_are_narrow(other, products), 0)) {
    return exact_pairs_combine_rare(p, other, products, sign);
  }
  p->u.narrow = u;
  p->v.narrow = v;
  p->u.n += sign ? -other->u.n : other->u.n;
  for (int i = 0; i < products; i++) {
    limbs_add(p->product[i].word, other->product[i].word, EXACT_PRODUCT_WORDS, sign);
  }
  return true;
}

/* False: there is none, because there are too few pairs, or all values are equal. ddof: of covariances. */
bool exact_pairs_result(const ps_exact_pairs *p, exact_pair_kind kind, exact_pair_result which, int64_t ddof,
                        double *out);

void exact_pairs_clear(ps_exact_pairs *p, int products); /* frees what it holds; it is empty again */

/* Whether n pairs can have led to the state, as exact_moments_possible. */
bool exact_pairs_possible(const ps_exact_pairs *p, exact_pair_kind kind);
