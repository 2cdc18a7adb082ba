/* exact_means.c - see exact_means.h. */
#include "base/exact_means.h"

#define LANES 4

typedef uint64_t words __attribute__((vector_size(LANES * 8)));
typedef double reals __attribute__((vector_size(LANES * 8)));

_Static_assert(EXACT_MEANS % LANES == 0, "blocks are made of whole vectors");

#define ALL(x) ((words){x, x, x, x})
#define REALS(x) ((reals){x, x, x, x})

/* Integers as the fraction of a double: below 2^52, and between -2^51 and 2^51. */
#define AT_52 UINT64_C(0x4330000000000000)
#define AT_51 UINT64_C(0x4338000000000000)

/* Four means; a lane of *open is not 0 where the mean is not decided. */
__attribute__((always_inline)) static inline void means(const exact_means_block *b, int64_t at, reals *out,
                                                        words *open) {
  words low = *(const words *)(const void *)&b->low[at], high = *(const words *)(const void *)&b->high[at];
  words count = *(const words *)(const void *)&b->n[at];
  reals h = ((reals)(high + ALL(AT_51)) - REALS(0x1.8p52)) * 0x1p-16;
  reals l = ((reals)(low >> 12 | ALL(AT_52)) - REALS(0x1p52)) * 0x1p-68;
  reals n = (reals)(count | ALL(AT_52)) - REALS(0x1p52);
  reals inverse = 1.0 / n, q = (h + l) * inverse;
  reals upper = (reals)((words)q & ALL(~((UINT64_C(1) << 27) - 1))), lower = q - upper;
  reals c = (((h - upper * n) - lower * n) + l) * inverse, bound = q * 0x1p-66;
  reals one = q + (c + bound), other = q + (c - bound);
  words small = (words)((reals)((words)h & ALL(INT64_MAX)) < REALS(1.0)); /* |S| < 2^80 */
  words large = (high + ALL(UINT64_C(1) << 49)) >> 50 | (count - 1) >> 26;
  *out = one;
  *open = ((words)one ^ (words)other) | small | large;
}

/* Computes the means that are not decided. */
static void decide(const exact_means_block *b, int64_t count, const uint64_t *open, double *out) {
  for (int64_t i = 0; i < count; i++) {
    int128 sum = (int128)((uint128)b->high[i] << 64 | b->low[i]);
    if (open[i]) out[i] = exact_mean(sum, (int64_t)b->n[i], -EXACT_SUM_NARROW_UNIT);
  }
}

__attribute__((always_inline)) static inline void all_means(const exact_means_block *b, int64_t count, double *out) {
  words open[EXACT_MEANS / LANES], any = ALL(0);
  for (int64_t at = 0; at < count; at += LANES) {
    reals four;
    means(b, at, &four, &open[at / LANES]);
    any |= open[at / LANES];
    memcpy(out + at, &four, sizeof four);
  }
  if ((any[0] | any[1] | any[2] | any[3]) != 0) decide(b, count, (const uint64_t *)(const void *)open, out);
}

#if defined(__x86_64__) && !defined(__AVX2__)
/* Twice as fast, on processors that have AVX2. */
__attribute__((target("avx2"))) static void all_means_avx2(const exact_means_block *b, int64_t count, double *out) {
  all_means(b, count, out);
}
#endif

static void whole_means(const exact_means_block *b, int64_t count, double *out) {
#if defined(__x86_64__) && !defined(__AVX2__)
  if (__builtin_cpu_supports("avx2")) {
    all_means_avx2(b, count, out);
    return;
  }
#endif
  all_means(b, count, out);
}

void exact_means(exact_means_block *b, int64_t count, double *out) {
  if (count == EXACT_MEANS) {
    whole_means(b, count, out);
    return;
  }
  double all[EXACT_MEANS] = {0};
  for (int64_t at = count; at % LANES != 0; at++) { /* fill up the last vector */
    b->low[at] = 0;
    b->high[at] = UINT64_C(1) << 20;
    b->n[at] = 1;
  }
  whole_means(b, count, all);
  memcpy(out, all, (size_t)count * sizeof *out);
}
