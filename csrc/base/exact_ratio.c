/* exact_ratio.c - see exact_ratio.h. */
#include "base/exact_ratio.h"

/* ---- to a double ---- */

/* m * 2^exponent where the unit of a double is 2^-1074, a larger one than m's: the last bit of m is set if there is
   anything below it. */
static double round_subnormal(uint64_t m, int exponent) {
  int shift = -1074 - exponent;
  if (shift > 63) return 0; /* m < 2^63: less than a half */
  uint64_t kept = m >> shift, half = UINT64_C(1) << (shift - 1), below = m & (2 * half - 1);
  kept += below > half || (below == half && (kept & 1));
  return ldexp((double)kept, -1074);
}

/* m * 2^exponent, where 2^61 <= m < 2^64, and a rest below it if there is one. */
static double rounded(uint64_t m, bool rest, int exponent) {
  m = m >> 1 | (m & 1) | rest; /* its last bit is far below a half, so it can stand for all below it */
  exponent++;
  int top = 63 - __builtin_clzll(m) + exponent;
  if (__builtin_expect(top < -1022, 0)) return round_subnormal(m, exponent);
  double x = (double)(int64_t)m; /* the one rounding */
  if (__builtin_expect(exponent < -1022 || exponent > 1023, 0)) return ldexp(x, exponent);
  return x * bits_double((uint64_t)(1023 + exponent) << 52);
}

/* ---- division ---- */

/* One digit of a quotient by the normalized d, as in long division: *rest < d becomes the rest of (*rest, next) / d.
   The first guess divides by the upper half of d, and is too large by 2 at most. */
static uint64_t digit(uint128 *rest, uint64_t next, uint128 d) {
  uint64_t d_high = (uint64_t)(d >> 64), d_low = (uint64_t)d, high = (uint64_t)(*rest >> 64);
  uint64_t q = high >= d_high ? UINT64_MAX : (uint64_t)(*rest / d_high);
  uint128 left = *rest - (uint128)q * d_high, lower = (uint128)q * d_low;
  while (left >> 64 == 0 && lower > (left << 64 | next)) {
    q--;
    left += d_high;
    lower -= d_low;
  }
  *rest = (left << 64 | next) - lower;
  return q;
}

#define HEAD 4 /* limbs: 256 bits */

typedef struct {
  uint64_t limb[HEAD]; /* a >> shift, the highest of the 256 bits being 0 and the next one 1 */
  int shift;
  bool rest; /* whether a has bits below it */
} head;

/* The 64 bits of a from pos on, the lowest of which may be below a and the highest above it. */
static uint64_t bits_at(const uint64_t *a, int n, int pos) {
  int i = pos >> 6, offset = pos & 63; /* rounded down, below 0 as well */
  uint64_t low = i >= 0 ? a[i] : 0, high = i + 1 >= 0 && i + 1 < n ? a[i + 1] : 0;
  return low >> offset | high << 1 << (63 - offset);
}

static bool any_below(const uint64_t *a, int pos) {
  for (int i = 0; i < pos / 64; i++) {
    if (a[i]) return true;
  }
  return pos > 0 && pos % 64 && a[pos / 64] << (64 - pos % 64);
}

static head head_of(const uint64_t *a, int n, int top) {
  head h = {.shift = top - (HEAD * 64 - 2)};
  for (int i = 0; i < HEAD; i++) h.limb[i] = bits_at(a, n, h.shift + 64 * i);
  h.rest = any_below(a, h.shift);
  return h;
}

static int zeros(uint128 d) {
  uint64_t high = (uint64_t)(d >> 64);
  return high ? __builtin_clzll(high) : 64 + __builtin_clzll((uint64_t)d);
}

/* floor(sqrt(v)), v between 2^123 and 2^126: a root of the upper half in doubles, off by 2^12 at most; one step of
   Newton's method, off by less than 1 before it is cut; and what the cut did. */
static uint64_t integer_root(uint128 v) {
  uint64_t r = (uint64_t)(sqrt((double)(int64_t)(v >> 64)) * 0x1p32);
  double short_of = (double)(int64_t)((int128)(v - (uint128)r * r) >> 32) * 0x1p31;
  r += (uint64_t)(int64_t)(short_of / (double)(int64_t)r);
  while ((uint128)r * r > v) r--;
  while ((uint128)(r + 1) * (r + 1) <= v) r++;
  return r;
}

/* ---- results ---- */

/* q is a quotient of 127 or 128 bits, and there is a rest or not. */
static double quotient_root(uint128 q, bool rest, int exponent) {
  int shift = 2 + (exponent & 1);
  uint128 v = q >> shift;
  uint64_t r = integer_root(v);
  bool more = rest || (q & ((1u << shift) - 1)) || (uint128)r * r != v;
  return rounded(r, more, (exponent + shift) / 2);
}

__attribute__((noinline)) static double short_ratio(const uint64_t *a, int n, int top, uint128 d, int exponent,
                                                    bool root) {
  int scale = zeros(d);
  head h = head_of(a, n, top);
  uint128 rest = (uint128)h.limb[3] << 64 | h.limb[2];
  uint64_t high = digit(&rest, h.limb[1], d << scale);
  exponent += h.shift + scale;
  if (!root) return rounded(high, rest || h.limb[0] || h.rest, exponent + 64);
  uint64_t low = digit(&rest, h.limb[0], d << scale);
  return quotient_root((uint128)high << 64 | low, rest || h.rest, exponent);
}

double exact_ratio(const uint64_t *a, int n, uint128 d, int exponent, bool root) {
  int top = limbs_top(a, n);
  double x;
  if (top < 0) return 0;
  if (exact_quick_fits(top, d, exponent)) {
    exact_quick quick = exact_quick_of(a, top, (uint64_t)d, exponent);
    if (root ? exact_quick_root(quick, &x) : exact_quick_round(quick, &x)) return x;
  }
  return short_ratio(a, n, top, d, exponent, root);
}

/* ---- long division by many limbs ---- */

/* The next digit of a quotient by the normalized d of m > 1 limbs: the upper m of the m + 1 limbs a are below d; all
   become the rest, and the uppermost is 0. Two limbs of d give a guess that is too large by 1 at most. */
static uint64_t long_digit(uint64_t *a, const uint64_t *d, int m) {
  uint128 upper = (uint128)a[m] << 64 | a[m - 1], divisor = (uint128)d[m - 1] << 64 | d[m - 2];
  uint64_t q = upper < divisor ? digit(&upper, a[m - 2], divisor) : UINT64_MAX, carry = 0;
  unsigned char borrow = 1; /* a - x is a + ~x + 1 */
  for (int i = 0; i < m; i++) {
    uint128 part = (uint128)d[i] * q + carry;
    carry = (uint64_t)(part >> 64);
    a[i] = limbs_step(a[i], ~(uint64_t)part, &borrow);
  }
  a[m] = limbs_step(a[m], ~carry, &borrow);
  if (a[m] >> 63) { /* below 0 */
    q--;
    unsigned char over = 0;
    for (int i = 0; i < m; i++) a[i] = limbs_step(a[i], d[i], &over);
    a[m] += over;
  }
  return q;
}

double exact_long_ratio(const uint64_t *a, int n, const uint64_t *d, int m, int exponent, bool root) {
  int top = limbs_top(a, n), highest = limbs_top(d, m), limbs = highest < 128 ? 2 : highest / 64 + 1;
  uint64_t by[EXACT_RATIO_LIMBS], rest[EXACT_RATIO_LIMBS + 2];
  assert(limbs >= 2 && limbs <= EXACT_RATIO_LIMBS && highest >= 0);
  if (top < 0) return 0;
  /* The highest bit of `by` is 1, of `rest` that is 0 and the next one 1: so the quotient has 127 or 128 bits. */
  int up = highest - (64 * limbs - 1), down = top - (64 * limbs + 126);
  for (int i = 0; i < limbs; i++) by[i] = bits_at(d, m, up + 64 * i);
  for (int i = 0; i < limbs + 2; i++) rest[i] = bits_at(a, n, down + 64 * i);
  uint64_t high = long_digit(rest + 1, by, limbs), low = long_digit(rest, by, limbs);
  bool more = any_below(a, down) || limbs_top(rest, limbs) >= 0;
  exponent += down - up;
  return root ? quotient_root((uint128)high << 64 | low, more, exponent) : rounded(high, more || low, exponent + 64);
}

double ps_exact_ratio(const uint64_t *a, int32_t n, const uint64_t *d, int32_t m, int32_t exponent, int32_t root) {
  if (m > 2) return exact_long_ratio(a, n, d, m, exponent, root);
  return exact_ratio(a, n, (uint128)d[1] << 64 | d[0], exponent, root);
}
