/*
 * limbs.h - integers of many 64-bit limbs, least significant first: naturals, or two's complement where it says signed.
 *
 * All loops run over the given number of limbs; a carry out of the last one is lost, so the caller chooses enough of
 * them.
 */
#pragma once

#include "base/base.h"

/* a + b + *carry, and the carry out of it: not with __builtin_add_overflow, of which gcc makes jumps, half of them taken. */
static inline uint64_t limbs_step(uint64_t a, uint64_t b, unsigned char *carry) {
#ifdef __x86_64__
  unsigned long long sum;
  *carry = __builtin_ia32_addcarryx_u64(*carry, a, b, &sum);
  return sum;
#else
  uint128 sum = (uint128)a + b + *carry;
  *carry = (unsigned char)(sum >> 64);
  return (uint64_t)sum;
#endif
}

/* Whether something is added or subtracted, as a mask: -z is ~z + 1. */
#define LIMBS_PLUS UINT64_C(0)
#define LIMBS_MINUS UINT64_MAX

/* a += b, or -= b, which has as many limbs. */
static inline void limbs_add(uint64_t *a, const uint64_t *b, int n, uint64_t sign) {
  unsigned char carry = sign & 1;
  for (int i = 0; i < n; i++) a[i] = limbs_step(a[i], b[i] ^ sign, &carry);
}

/* a = -a, signed. */
static inline void limbs_negate(uint64_t *a, int n) {
  uint64_t carry = 1;
  for (int i = 0; i < n; i++) {
    a[i] = ~a[i] + carry;
    carry &= a[i] == 0;
  }
}

/* All bits are set if a, signed, is negative; else none. */
static inline uint64_t limbs_sign(const uint64_t *a, int n) { return 0 - (a[n - 1] >> 63); }

/* a *= factor. */
static inline void limbs_scale(uint64_t *a, int n, uint64_t factor) {
  uint64_t carry = 0;
  for (int i = 0; i < n; i++) {
    uint128 part = (uint128)a[i] * factor + carry;
    a[i] = (uint64_t)part;
    carry = (uint64_t)(part >> 64);
  }
}

/* to = a * b, in n + m limbs. */
static inline void limbs_multiply(uint64_t *to, const uint64_t *a, int n, const uint64_t *b, int m) {
  memset(to, 0, (size_t)(n + m) * sizeof *to);
  for (int i = 0; i < n; i++) {
    uint64_t carry = 0;
    for (int j = 0; j < m; j++) {
      uint128 part = (uint128)a[i] * b[j] + to[i + j] + carry;
      to[i + j] = (uint64_t)part;
      carry = (uint64_t)(part >> 64);
    }
    to[i + m] = carry;
  }
}

/* The number of the highest bit that is set; -1: a is 0. */
static inline int limbs_top(const uint64_t *a, int n) {
  for (int i = n - 1; i >= 0; i--) {
    if (a[i]) return i * 64 + 63 - __builtin_clzll(a[i]);
  }
  return -1;
}

/* a += 1, or -= 1. */
void limbs_carry(uint64_t *a, int n, uint64_t sign);

/* a += term << pos, or -= it. The shifted term has three limbs, which must lie within a. It is shifted by a
   multiplication, because processors are slow in shifting 128 bits by a variable number. The limbs above these three
   change once in many additions. */
static inline void limbs_add_term(uint64_t *a, int n, uint128 term, uint64_t pos, uint64_t sign) {
  uint64_t factor = UINT64_C(1) << (pos & 63), *at = a + (pos >> 6);
  uint128 low = (uint128)(uint64_t)term * factor, high = (uint128)(uint64_t)(term >> 64) * factor;
  uint64_t zero = (uint64_t)low ^ sign, one = ((uint64_t)(low >> 64) | (uint64_t)high) ^ sign,
           two = (uint64_t)(high >> 64) ^ sign;
  unsigned char carry = sign & 1;
  at[0] = limbs_step(at[0], zero, &carry);
  at[1] = limbs_step(at[1], one, &carry);
  at[2] = limbs_step(at[2], two, &carry);
  if (__builtin_expect(carry != (sign & 1), 0)) limbs_carry(at + 3, (int)(a + n - at) - 3, sign);
}
