/*
 * fold_find.c - finds or makes the entries of rows: see fold.h.
 *
 * Rows are mostly sorted by time, so a block starts on the short way: run by run, while runs are of fresh slices. From
 * the first row of another slice on, it takes the long way, through the hash table: prefetch the slots of all rows,
 * then look up row by row.
 */
#include "partials/fold.h"

/* ---- slices ---- */

/* ts / advance. */
static inline uint64_t period_of(const ps_fold *f, uint64_t ts) {
  uint64_t advance = f->windows.advance, period = (uint64_t)((uint128)ts * f->reciprocal >> 64);
  return period + (ts - period * advance >= advance); /* the product is exact or too small by 1 */
}

/* The slice of a timestamp, without its number. Edges are the multiples of advance and, from the end of the first
   window on, also multiples + size % advance. */
static fold_slice slice_around(const ps_fold *f, uint64_t ts, uint64_t period) {
  uint64_t advance = f->windows.advance, behind = f->behind;
  uint64_t start = period * advance, end = start + behind;
  fold_slice s = {.begin = start, .length = advance, .covered = true};
  if (behind == 0 || end < f->windows.size) return s;
  if (ts < end) {
    s.length = behind;
    return s;
  }
  s.begin = end;
  s.length = advance - behind;
  s.covered = f->windows.size > advance;
  return s;
}

/* The slice of a timestamp; numbers it if it is new and in some window. */
static fold_slice slice_of(ps_fold *f, uint64_t ts) {
  uint64_t period = period_of(f, ts);
  fold_slice *near = &f->near[period % FOLD_NEAR], s = *near;
  if (ts - s.begin < s.length) return s;
  s = slice_around(f, ts, period);
  *near = s;
  if (!s.covered) return s;
  uint64_t i = hash_word(s.begin), mask = (uint64_t)f->slice_slots - 1;
  while (f->slice_slot[i & mask] && f->begin[f->slice_slot[i & mask] - 1] != s.begin) i++;
  if (!f->slice_slot[i & mask]) {
    s.fresh = true;
    s.first = f->n;
    f->begin[f->slices++] = s.begin;
    f->slice_slot[i & mask] = (uint32_t)f->slices;
  }
  near->high = s.high = (uint64_t)(f->slice_slot[i & mask] - 1) << 32;
  return s;
}

/* ---- the short way: slices that are fresh ---- */

/* The rows from `i` on that are in slice f->now; returns their end. No branch on whether the (slice, key) is new, which
   would be hard to predict: always writes a new entry, and keeps it if it is new. `weighted` is a constant of each
   call. */
static inline int64_t find_run(ps_fold *f, const fold_sought *in, int64_t i, bool weighted, uint32_t *out) {
  fold_slice s = f->now;
  fold_entry *entry = f->entry;
  uint32_t *recent = f->recent;
  int64_t n = f->n, end = in->n;
  for (; i < end && (uint64_t)in->ts[i] - s.begin < s.length; i++) {
    uint32_t number = in->numbers[i];
    int64_t known = recent[number], is_new = known <= s.first; /* 1 or 0; negated, a mask */
    entry[n].pair = s.high | number;
    entry[n].rows = 0;
    n += is_new;
    known ^= (known ^ n) & -is_new;
    recent[number] = (uint32_t)known;
    entry[known - 1].rows += weighted ? in->weights[i] : 1;
    *out++ = (uint32_t)(known - 1);
  }
  f->n = n;
  return i;
}

/* The rows before the first row of a slice that is not fresh; returns their number. */
static int64_t find_fresh(ps_fold *f, const fold_sought *in, row_entries *out) {
  int64_t i = 0;
  while (i < in->n) {
    if ((uint64_t)in->ts[i] - f->now.begin >= f->now.length) f->now = slice_of(f, (uint64_t)in->ts[i]);
    if (!f->now.covered) {
      i++;
      continue;
    }
    if (!f->now.fresh) break;
    uint32_t *to = out->entry + out->n;
    int64_t end = in->weights ? find_run(f, in, i, true, to) : find_run(f, in, i, false, to);
    while (i < end) out->at[out->n++] = (uint16_t)i++;
  }
  return i;
}

/* ---- the long way: any slices ---- */

static uint32_t new_entry(ps_fold *f, uint64_t pair) {
  f->entry[f->n] = (fold_entry){.pair = pair};
  return (uint32_t)f->n++;
}

/* Looks up a (slice, key) in the hash table; makes an entry if there is none. */
static uint32_t entry_of(ps_fold *f, uint64_t pair, uint64_t hash) {
  while (f->indexed < f->n) fold_index(f, f->indexed++);
  uint64_t i = hash, mask = (uint64_t)f->slots - 1;
  for (; f->slot[i & mask]; i++) {
    uint32_t e = f->slot[i & mask] - 1;
    if (f->entry[e].pair == pair) return e;
  }
  f->slot[i & mask] = (uint32_t)++f->indexed;
  return new_entry(f, pair);
}

/* The (slice, key) of each row of a block that is in some window. */
typedef struct {
  uint64_t pair[ROW_BLOCK];
  uint64_t hash[ROW_BLOCK]; /* if not fresh */
  bool fresh[ROW_BLOCK];
} pairs;

/* From row `i` on. */
static void find_pairs(ps_fold *f, const fold_sought *in, int64_t i, pairs *p, row_entries *out) {
  fold_slice now = f->now;
  uint64_t mask = (uint64_t)f->slots - 1;
  int64_t n = out->n;
  for (; i < in->n; i++) {
    uint64_t ts = (uint64_t)in->ts[i];
    if (__builtin_expect(ts - now.begin >= now.length, 0)) now = slice_of(f, ts);
    if (__builtin_expect(!now.covered, 0)) continue;
    uint64_t pair = p->pair[n] = now.high | in->numbers[i];
    p->fresh[n] = now.fresh;
    if (!now.fresh) { /* slots are far apart: prefetch all before the first is read */
      p->hash[n] = hash_word(pair);
      __builtin_prefetch(&f->slot[p->hash[n] & mask]);
    }
    out->at[n++] = (uint16_t)i;
  }
  f->now = now;
  out->n = n;
}

/* Finds the entries of the rows in some window, from the i-th of these on. */
static void find_any(ps_fold *f, const fold_sought *in, int64_t i, const pairs *p, row_entries *out) {
  uint64_t mask = (uint64_t)f->slots - 1;
  for (; i < out->n; i++) {
    int64_t ahead = i + FOLD_AHEAD; /* its slot is cached by now: prefetch the entry */
    if (ahead < out->n && !p->fresh[ahead]) __builtin_prefetch(&f->entry[f->slot[p->hash[ahead] & mask]]);
    uint32_t number = (uint32_t)p->pair[i], e = f->recent[number] - 1;
    if (e >= f->n || f->entry[e].pair != p->pair[i]) {
      e = p->fresh[i] ? new_entry(f, p->pair[i]) : entry_of(f, p->pair[i], p->hash[i]);
      f->recent[number] = e + 1;
    }
    f->entry[e].rows += in->weights ? in->weights[out->at[i]] : 1;
    out->entry[i] = e;
  }
}

/* find_pairs made slices before find_any made their entries: corrects the first entry of the last slice. */
static void find_first(ps_fold *f) {
  int64_t n = f->n;
  while (n && f->entry[n - 1].pair >> 32 == f->now.high >> 32) n--;
  f->now.first = n;
}

/* Clears the states of new entries: those from `from` on. */
static void clear_states(ps_fold *f, int64_t from) {
  for (int32_t i = 0; i < f->functions.n; i++) {
    fold_column *c = &f->column[i];
    if (c->size) memset((uint8_t *)c->states + (size_t)from * c->size, 0, (size_t)(f->n - from) * c->size);
  }
}

void fold_find(ps_fold *f, const fold_sought *in, row_entries *out) {
  int64_t before = f->n;
  out->n = 0;
  int64_t done = find_fresh(f, in, out);
  if (done < in->n) {
    pairs p;
    int64_t fresh = out->n;
    find_pairs(f, in, done, &p, out);
    find_any(f, in, fresh, &p, out);
    if (f->now.fresh) find_first(f);
  }
  clear_states(f, before);
}

void fold_make(ps_fold *f, const fold_sought *in, uint32_t first, row_entries *out) {
  int64_t before = f->n;
  fold_slice now = f->now;
  out->n = 0;
  for (int64_t i = 0; i < in->n; i++) {
    uint64_t ts = (uint64_t)in->ts[i];
    if (ts - now.begin >= now.length) now = slice_of(f, ts);
    if (!now.covered) continue;
    out->at[out->n] = (uint16_t)i;
    out->entry[out->n++] = (uint32_t)f->n;
    f->entry[f->n++] = (fold_entry){.pair = now.high | (first + (uint32_t)i), .rows = 1};
  }
  f->now = now;
  clear_states(f, before);
}
