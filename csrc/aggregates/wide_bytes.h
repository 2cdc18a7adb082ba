/* wide_bytes.h - wide sums (exact_sum.h) as bytes, little-endian: the limbs; how many NaN, +inf and -inf. */
#pragma once

#include "base/bytes.h"
#include "base/exact_sum.h"

#define WIDE_BYTES (8 * EXACT_SUM_LIMBS + 3 * 8)

/* Gives where the next bytes go. */
static inline uint8_t *put_wide(uint8_t *to, const exact_sum_wide *w) {
  for (int i = 0; i < EXACT_SUM_LIMBS; i++) to = bytes_put_word(to, w->limb[i]);
  to = bytes_put_word(to, (uint64_t)w->nan);
  to = bytes_put_word(to, (uint64_t)w->plus_inf);
  return bytes_put_word(to, (uint64_t)w->minus_inf);
}

static inline exact_sum_wide wide_at(const uint8_t *from) {
  exact_sum_wide w;
  for (int i = 0; i < EXACT_SUM_LIMBS; i++, from += 8) w.limb[i] = bytes_word(from);
  w.nan = (int64_t)bytes_word(from);
  w.plus_inf = (int64_t)bytes_word(from + 8);
  w.minus_inf = (int64_t)bytes_word(from + 16);
  return w;
}
