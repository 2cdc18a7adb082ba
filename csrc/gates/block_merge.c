/* block_merge.c - see block_merge.h. */
#include "gates/block_merge.h"

enum { GUARDS = 2 }; /* per list */

/* Bits that number n things. */
static int32_t bits_for(int64_t n) {
  int32_t bits = 0;
  while (((int64_t)1 << bits) < n) bits++;
  return bits;
}

bool block_merge_init(block_merge *m, int32_t lists, int64_t each) {
  *m = (block_merge){.each = each, .number_bits = bits_for(lists), .place_bits = bits_for(each)};
  size_t places = (size_t)lists * (size_t)(each + GUARDS);
  m->keys = memory_new(places * sizeof *m->keys);
  m->spare = memory_new(places * sizeof *m->spare);
  m->list = memory_new((size_t)lists * sizeof *m->list);
  bool ok = m->keys && m->spare && m->list;
  if (!ok) block_merge_free(m);
  return ok;
}

void block_merge_free(block_merge *m) {
  memory_free(m->keys);
  memory_free(m->spare);
  memory_free(m->list);
  *m = (block_merge){0};
}

/* ---- lists ---- */

void block_merge_begin(block_merge *m, int64_t base) {
  m->base = base;
  m->lists = 0;
  m->end = m->keys;
}

/* Where the next list's keys are written, after the last list. */
static uint64_t *next_list(const block_merge *m) { return m->end + 1; }

/* Completes a list of n keys that were written at next_list. */
static void put_guards(block_merge *m, int64_t n) {
  uint64_t *first = next_list(m);
  first[-1] = 0;
  first[n] = UINT64_MAX;
  m->end = first + n + 1;
  m->list[m->lists++] = (block_list){first, n};
}

/* What all keys of a list share. */
typedef struct {
  uint64_t below, number;        /* base - 1; the list's number, shifted to its place */
  int32_t ts_above, place_above; /* bits below these fields */
} key_form;

static inline uint64_t key_of(key_form f, int64_t ts, int64_t place) {
  return ((uint64_t)ts - f.below) << f.ts_above | f.number | (uint64_t)place << f.place_above;
}

/* One group per timestamp, correct for any list. CHUNK at a time, so that the compiler can vectorize. The timestamps
   are in another thread's memory, so they are prefetched AHEAD bytes early; at the end, those of the next block.
   (Computed as an integer, because there may be no such element.) */
static int64_t add_single(key_form f, uint64_t *key, const int64_t *ts, int64_t n, int64_t most) {
  enum { CHUNK = SIZED(8, 2), AHEAD = 96 * sizeof *ts };
  int64_t i = 0;
  for (; i + CHUNK <= n && ts[i + CHUNK - 1] <= most; i += CHUNK) {
    __builtin_prefetch((const void *)((uintptr_t)(ts + i) + AHEAD));
    for (int64_t k = i; k < i + CHUNK; k++) key[k] = key_of(f, ts[k], k);
  }
  for (; i < n && ts[i] <= most; i++) key[i] = key_of(f, ts[i], i);
  return i;
}

/* One group per distinct timestamp: while a group continues, its key is overwritten with a larger size. */
static int64_t add_groups(key_form f, uint64_t **key, const int64_t *ts, int64_t n, int64_t most) {
  uint64_t *to = *key - 1;
  int64_t i = 0, more = 0, last = -1; /* more: group size - 1 */
  for (; i < n && ts[i] <= most; i++) {
    bool begins = ts[i] != last;
    last = ts[i];
    to += begins;
    more = (more + 1) & ((int64_t)begins - 1);
    *to = key_of(f, last, i - more) | (uint64_t)more;
  }
  *key = to + 1;
  return i;
}

int64_t block_merge_add(block_merge *m, int32_t number, const int64_t *ts, int64_t n, int64_t most, bool ties) {
  int32_t places = 2 * m->place_bits;
  key_form f = {(uint64_t)m->base - 1, (uint64_t)number << places, m->number_bits + places, m->place_bits};
  uint64_t *end = next_list(m);
  int64_t limit = n < m->each ? n : m->each;
  int64_t taken = ties ? add_groups(f, &end, ts, limit, most) : add_single(f, end, ts, limit, most);
  int64_t keys = ties ? end - next_list(m) : taken;
  if (keys > 0) put_guards(m, keys);
  return taken;
}

/* ---- merging ---- */

/* One merge of two lists: the next key of each, and where the lower or higher one is written. */
typedef struct {
  const uint64_t *a, *b;
  uint64_t *to;
} way;

static inline void step_up(way *w) {
  uint64_t a = *w->a, b = *w->b;
  bool second = b < a;
  *w->to++ = second ? b : a;
  w->a += !second;
  w->b += second;
}

static inline void step_down(way *w) {
  uint64_t a = *w->a, b = *w->b;
  bool second = a < b;
  *w->to-- = second ? b : a;
  w->a -= !second;
  w->b -= second;
}

/* How many of the n lowest keys of both lists are in a: key i of a is one if it is below key n - 1 - i of b. */
static int64_t share(const block_list *a, const block_list *b, int64_t n) {
  int64_t low = n > b->n ? n - b->n : 0, left = (n < a->n ? n : a->n) - low;
  while (left > 0) {
    int64_t half = (left + 1) / 2, i = low + half - 1;
    low += half & -(int64_t)(a->first[i] < b->first[n - 1 - i]);
    left -= half;
  }
  return low;
}

/* The four merges meet at one and three quarters; what is left by rounding is merged upwards. */
static void merge_two(const block_list *a, const block_list *b, uint64_t *to) {
  int64_t n = a->n + b->n, half = n / 2, quarter = half / 2, cut = share(a, b, half);
  const uint64_t *a_half = a->first + cut, *b_half = b->first + (half - cut);
  way low_up = {a->first, b->first, to}, low_down = {a_half - 1, b_half - 1, to + half - 1};
  way high_up = {a_half, b_half, to + half}, high_down = {a->first + a->n - 1, b->first + b->n - 1, to + n - 1};
  for (int64_t i = 0; i < quarter; i++) {
    step_up(&low_up);
    step_down(&low_down);
    step_up(&high_up);
    step_down(&high_down);
  }
  if (half % 2 > 0) step_up(&low_up);
  for (int64_t left = n - half - 2 * quarter; left > 0; left--) step_up(&high_up);
}

static void swap_buffers(block_merge *m) {
  uint64_t *keys = m->keys;
  m->keys = m->spare;
  m->spare = keys;
  m->end = m->keys;
  m->lists = 0;
}

/* One round: merges neighbours, which keeps lists ordered by number; the last one may have no neighbour. */
static void merge_pairs(block_merge *m) {
  int32_t lists = m->lists;
  swap_buffers(m);
  for (int32_t i = 0; i < lists; i += 2) {
    block_list a = m->list[i];
    if (i + 1 == lists) {
      memcpy(next_list(m), a.first, (size_t)a.n * sizeof *a.first);
      put_guards(m, a.n);
    } else {
      block_list b = m->list[i + 1];
      merge_two(&a, &b, next_list(m));
      put_guards(m, a.n + b.n);
    }
  }
}

block_list block_merge_all(block_merge *m) {
  assert(m->lists > 0);
  while (m->lists > 1) merge_pairs(m);
  return m->list[0];
}
