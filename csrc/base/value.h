/*
 * value.h - fixed-width values as 64 bits, and their order.
 *
 * A value is widened to int64_t, uint64_t or double, depending on its type, and handled as the bits of that.
 */
#pragma once

#include <math.h>

#include "base/base.h"

#define VALUE_SIGN (UINT64_C(1) << 63)
#define VALUE_NAN UINT64_C(0x7ff8000000000000) /* represents all NaNs */

static inline bool type_is_bytes(ps_type t) { return t == PS_BYTES32 || t == PS_BYTES64; }
static inline bool type_is_float(ps_type t) { return t == PS_F32 || t == PS_F64; }
static inline bool type_is_unsigned(ps_type t) { return t == PS_BOOL || (t >= PS_U8 && t <= PS_U64); }

static inline double bits_double(uint64_t bits) {
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static inline uint64_t double_bits(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

/* Zero, of either sign. */
static inline bool bits_are_zero(uint64_t bits) { return bits << 1 == 0; }

/* Maps every NaN to one, so that no result shows which of them was first. */
static inline uint64_t value_canonical(uint64_t bits, ps_type type) {
  return type_is_float(type) && isnan(bits_double(bits)) ? VALUE_NAN : bits;
}

/* Bits whose unsigned order is the order of the (canonical) values: -0.0 below 0.0, NaN above +inf. */
static inline uint64_t value_ordered(uint64_t bits, ps_type type) {
  if (type_is_unsigned(type)) return bits;
  return type_is_float(type) && (bits & VALUE_SIGN) ? ~bits : bits ^ VALUE_SIGN;
}

/* The inverse. */
static inline uint64_t value_unordered(uint64_t bits, ps_type type) {
  if (type_is_unsigned(type)) return bits;
  return type_is_float(type) && !(bits & VALUE_SIGN) ? ~bits : bits ^ VALUE_SIGN;
}

/* The same for keys: -0.0 and 0.0 are one key. */
static inline uint64_t value_key(uint64_t bits, ps_type type) {
  if (type_is_float(type) && bits == VALUE_SIGN) bits = 0;
  return value_ordered(value_canonical(bits, type), type);
}
