/*
 * bare_loop.c - the limit that bench_peers.py compares with: one thread, arrays that are merged already, keys that are
 * small integers, one function, panes of one advance (size must be a multiple of it), no nulls, no checks, sums of
 * plain doubles. What a programmer would write by hand for just this query.
 *
 * bare_loop    few keys, most of them in every pane: panes are arrays by key, added up for every window
 * bare_sparse  many keys, few in a window, COUNT alone: counts of the window go up with its newest pane and down with
 *              its oldest; a bit per key tells which are there, so that rows come out in the order of keys
 * bare_memory  the sum of an array: one pass over memory
 *
 * Windows come out as arrays ts, key, value; the number of rows is returned. Keys without tuples are left out.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT, AVG, FIRST };

typedef struct {
  int function;
  int64_t n;
  const int64_t *ts;
  const int32_t *key;
  const double *value;          /* AVG and FIRST */
  const uint8_t *counts;        /* COUNT, if not NULL: whether the tuple counts; it makes its row all the same */
  int64_t advance, panes, keys; /* a window is so many panes */
  int64_t *out_ts;
  int32_t *out_key;
  double *out_value;
} bare_job;

typedef struct {
  int64_t *count; /* [panes][keys], a ring */
  double *value;  /* sums, or first values */
  int64_t *window_count;
  double *window_value;
} bare_state;

static void combine(const bare_job *j, bare_state *s, int64_t last_pane) {
  memset(s->window_count, 0, (size_t)j->keys * sizeof *s->window_count);
  memset(s->window_value, 0, (size_t)j->keys * sizeof *s->window_value);
  for (int64_t p = 0; p < j->panes; p++) {
    int64_t pane = last_pane - p; /* newest first: the oldest value of FIRST stays */
    if (pane < 0) break;
    const int64_t *count = s->count + pane % j->panes * j->keys;
    const double *value = s->value + pane % j->panes * j->keys;
    if (j->function == FIRST) {
      for (int64_t k = 0; k < j->keys; k++) s->window_value[k] = count[k] ? value[k] : s->window_value[k];
    } else if (j->function == AVG) {
      for (int64_t k = 0; k < j->keys; k++) s->window_value[k] += value[k];
    }
    for (int64_t k = 0; k < j->keys; k++) s->window_count[k] += count[k];
  }
}

static int64_t put_out(const bare_job *j, const bare_state *s, int64_t start, int64_t row) {
  for (int64_t k = 0; k < j->keys; k++) {
    int64_t count = s->window_count[k];
    j->out_ts[row] = start;
    j->out_key[row] = (int32_t)k;
    j->out_value[row] = j->function == COUNT ? (double)count
                        : j->function == AVG ? s->window_value[k] / (double)count
                                             : s->window_value[k];
    row += count != 0;
  }
  return row;
}

/* The windows that end with this pane, whose tuples are all there. */
static int64_t end_pane(const bare_job *j, bare_state *s, int64_t pane, int64_t row) {
  if (pane >= j->panes - 1) {
    combine(j, s, pane);
    row = put_out(j, s, (pane - j->panes + 1) * j->advance, row);
  }
  int64_t next = (pane + 1) % j->panes * j->keys;
  memset(s->count + next, 0, (size_t)j->keys * sizeof *s->count);
  memset(s->value + next, 0, (size_t)j->keys * sizeof *s->value);
  return row;
}

/* The tuples from i on that lie before `end`; gives the first that does not. */
static int64_t fold(const bare_job *j, int64_t *count, double *value, int64_t i, int64_t end) {
  if (j->function == COUNT) {
    for (; i < j->n && j->ts[i] < end; i++) count[j->key[i]]++;
  } else if (j->function == AVG) {
    for (; i < j->n && j->ts[i] < end; i++) {
      count[j->key[i]]++;
      value[j->key[i]] += j->value[i];
    }
  } else {
    for (; i < j->n && j->ts[i] < end; i++) {
      if (count[j->key[i]]++ == 0) value[j->key[i]] = j->value[i];
    }
  }
  return i;
}

int64_t bare_loop(const bare_job *j) {
  size_t cells = (size_t)(j->panes * j->keys);
  bare_state s = {calloc(cells, sizeof(int64_t)), calloc(cells, sizeof(double)),
                  calloc((size_t)j->keys, sizeof(int64_t)), calloc((size_t)j->keys, sizeof(double))};
  int64_t row = 0, pane = 0;
  for (int64_t i = 0; i < j->n; pane++) {
    int64_t at = pane % j->panes * j->keys;
    i = fold(j, s.count + at, s.value + at, i, (pane + 1) * j->advance);
    row = end_pane(j, &s, pane, row);
  }
  for (int64_t rest = 1; rest < j->panes; rest++, pane++) row = end_pane(j, &s, pane, row);
  free(s.count);
  free(s.value);
  free(s.window_count);
  free(s.window_value);
  return row;
}

/* ---- many keys ---- */

typedef struct {
  int32_t *tuples, *counted; /* [keys], of the window */
  uint64_t *there;           /* a bit per key: whether tuples is not 0 */
} sparse_state;

static int64_t put_out_sparse(const bare_job *j, const sparse_state *s, int64_t start, int64_t row) {
  for (int64_t w = 0; w <= j->keys / 64; w++) {
    for (uint64_t bits = s->there[w]; bits != 0; bits &= bits - 1) {
      int64_t key = w * 64 + __builtin_ctzll(bits);
      j->out_ts[row] = start;
      j->out_key[row] = (int32_t)key;
      j->out_value[row++] = s->counted[key];
    }
  }
  return row;
}

static int64_t enter(const bare_job *j, sparse_state *s, int64_t i, int64_t end) {
  for (; i < j->n && j->ts[i] < end; i++) {
    int32_t key = j->key[i];
    s->there[key / 64] |= UINT64_C(1) << key % 64;
    s->tuples[key]++;
    s->counted[key] += j->counts ? j->counts[i] : 1;
  }
  return i;
}

static int64_t leave(const bare_job *j, sparse_state *s, int64_t i, int64_t end) {
  for (; i < j->n && j->ts[i] < end; i++) {
    int32_t key = j->key[i];
    if (--s->tuples[key] == 0) s->there[key / 64] &= ~(UINT64_C(1) << key % 64);
    s->counted[key] -= j->counts ? j->counts[i] : 1;
  }
  return i;
}

int64_t bare_sparse(const bare_job *j) {
  size_t keys = (size_t)j->keys;
  sparse_state s = {calloc(keys, sizeof(int32_t)), calloc(keys, sizeof(int32_t)), calloc(keys / 64 + 1, 8)};
  int64_t row = 0, entered = 0, left = 0;
  for (int64_t window = 0; left < j->n; window++) {
    entered = enter(j, &s, entered, (window + j->panes) * j->advance);
    row = put_out_sparse(j, &s, window * j->advance, row);
    left = leave(j, &s, left, (window + 1) * j->advance);
  }
  free(s.tuples);
  free(s.counted);
  free(s.there);
  return row;
}

/* ---- no keys at all ---- */

uint64_t bare_memory(const uint64_t *words, int64_t n) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < n; i++) sum += words[i];
  return sum;
}
