/*
 * w_hive_stress.c - a W-Hive under real threads, for the sanitizer builds: updaters that add tuples and send
 * heartbeats, one reader. Ends with 0 if every winset came out once, in order and complete, and nothing was left
 * behind.
 *
 *   w_hive_stress THREADS TUPLES ROUNDS     each thread adds that many tuples, to other windows in each round
 *   w_hive_stress THREADS TUPLES flat       one long round in which the number of allocations must not grow, while
 *                                           thread 0 of several only sends heartbeats; no sums are kept to compare with
 */
#include "windows/w_hive.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { KEYS_MAX = 300, TICK = 3, AHEAD_MAX = 50, COLUMNS = 2 };

typedef struct {
  int64_t size, advance;
  int32_t levels;
  int64_t keys;
  bool apart; /* no two threads meet in a window start: each links its own nodes before or behind the others' */
} shape;

/* Few keys, several of one hash; or many, so that threads need shortcuts. */
static const shape shapes[] = {{10, 10, 0, 11, false},         {10, 3, 1, 11, false}, {3, 10, 2, 11, false},
                               {64, 1, 3, 11, false},          {7, 2, 8, 11, false},  {1, 1, 1, 2, true},
                               {500, 400, 0, KEYS_MAX, false}, {2, 2, 2, 3, true}};
static const shape shape_flat = {2, 1, 0, 5, false};

typedef struct {
  w_hive *hive;
  shape shape;
  int32_t threads;
  int64_t tuples;
  bool flat;
  key **keys;
  _Atomic int64_t delivered; /* the start of the winset that came out last */
} run;

typedef struct {
  run *run;
  int32_t thread;
} updater_argument;

static void check(bool right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s\n", what);
  abort();
}

/* ---- the tuples: thread t's i-th ---- */

static int64_t ts_of(const run *r, int32_t t, int64_t i) {
  return r->shape.apart ? r->shape.size * (i * r->threads + t) : i / TICK + t % 2;
}
static int64_t key_of(shape s, int32_t t, int64_t i) { return (i * 7 + i / 5 + t) % s.keys; }
static int64_t value_of(int32_t t, int64_t i) { return i % 1000 * 100 + t + 1; }

static key *key_make(int64_t number, bool spread) {
  key *k = malloc(sizeof *k + 9);
  k->hash = spread ? hash_mix((uint64_t)number + 1) : (uint64_t)number % 4;
  k->length = 9;
  memset(k->data, 0, 8);
  k->data[0] = 0;
  k->data[1] = 0x80; /* the sign of int64, flipped */
  k->data[7] = (uint8_t)(number >> 8);
  k->data[8] = (uint8_t)number;
  return k;
}

/* ---- updaters ---- */

/* Nobody runs far ahead of the reader, so that memory is bounded by the hive and not by luck. */
static void keep_pace(run *r, int64_t ts) {
  while (r->flat && ts > atomic_load(&r->delivered) + r->shape.size + AHEAD_MAX) sched_yield();
}

static void *update(void *argument) {
  run *r = ((updater_argument *)argument)->run;
  int32_t t = ((updater_argument *)argument)->thread;
  batch *b = calloc(1, sizeof *b + COLUMNS * sizeof(column));
  int64_t value;
  b->columns[1] = (column){.type = PS_I64, .values = &value};
  for (int64_t i = 0; i < r->tuples; i++) {
    int64_t ts = ts_of(r, t, i);
    keep_pace(r, ts);
    if (r->flat && t == 0 && r->threads > 1) {
      w_hive_heartbeat(r->hive, t, ts);
      continue;
    }
    value = value_of(t, i);
    check(w_hive_update_windows(r->hive, t, ts, r->keys[key_of(r->shape, t, i)], b, 0, NULL) == PS_OK, "no memory");
    if (i % 97 == 0) w_hive_heartbeat(r->hive, t, ts);
    if (r->shape.apart || i % 511 == t) sched_yield();
  }
  w_hive_close(r->hive, t);
  free(b);
  return NULL;
}

/* ---- what must come out ---- */

typedef struct {
  int64_t n, sum;
} expected;

/* Windows times keys; all tuples of all threads, added one after the other. */
static expected *expect(const run *r, int64_t *windows) {
  *windows = ts_of(r, 1, r->tuples) / r->shape.advance + 1;
  expected *all = calloc((size_t)(*windows * r->shape.keys), sizeof *all);
  for (int32_t t = 0; t < r->threads; t++) {
    for (int64_t i = 0; i < r->tuples; i++) {
      for (int64_t n = ts_of(r, t, i) / r->shape.advance;
           n >= 0 && n * r->shape.advance + r->shape.size > ts_of(r, t, i); n--) {
        expected *e = &all[n * r->shape.keys + key_of(r->shape, t, i)];
        e->n++;
        e->sum += value_of(t, i);
      }
    }
  }
  return all;
}

static int64_t keys_in(const run *r, const expected *all, int64_t n) {
  int64_t keys = 0;
  for (int64_t k = 0; k < r->shape.keys; k++) keys += all[n * r->shape.keys + k].n > 0;
  return keys;
}

static int64_t number_at(const out_rows *rows, int32_t column, int64_t row) {
  return ((const int64_t *)rows->column[column].values)[row];
}

/* The winset's rows, and that no window before it was left out. */
static void compare(const run *r, const expected *all, const out_rows *rows, int64_t *next) {
  int64_t n = number_at(rows, 0, 0) / r->shape.advance;
  for (; *next < n; ++*next) check(keys_in(r, all, *next) == 0, "a winset was left out");
  check(*next == n, "a winset came twice or out of order");
  check(rows->rows == keys_in(r, all, n), "not all keys, or a key twice");
  for (int64_t i = 0; i < rows->rows; i++) {
    const expected *e = &all[n * r->shape.keys + number_at(rows, 1, i)];
    check(number_at(rows, 2, i) == e->n && number_at(rows, 3, i) == e->sum, "a window is not complete");
    check(i == 0 || number_at(rows, 1, i - 1) < number_at(rows, 1, i), "keys out of order");
  }
  ++*next;
}

/* ---- the reader ---- */

/* Allocations must stay below what is open and what the other threads may be ahead. */
static void check_flat(const run *r) {
  int64_t starts = (r->shape.size + AHEAD_MAX) / r->shape.advance + 3;
  int64_t each = 2 + 3 * 2 * r->threads; /* node, winset, a few blocks of each thread */
  check(ps_memory_live() < starts * each + 100, "memory grows");
}

static void read_all(run *r, const expected *all, int64_t windows) {
  const ps_type key_type = PS_I64;
  out_rows rows;
  check(out_rows_init(&rows, 4, NULL), "no memory");
  int64_t next = 0, polls = 0;
  for (;;) {
    win_set *set;
    ps_code code = w_hive_get_next_winset(r->hive, &set);
    if (code == PS_END) break;
    if (code == PS_EMPTY) {
      sched_yield();
      continue;
    }
    ps_fault fault;
    atomic_store(&r->delivered, win_set_start(set));
    check(win_set_output(set, 1, &key_type, &rows, &fault) == PS_OK, "no output");
    if (all) compare(r, all, &rows, &next);
    if (r->flat && ++polls % 64 == 0) check_flat(r);
    rows.rows = 0;
    win_set_free(set);
  }
  for (; all && next < windows; next++) check(keys_in(r, all, next) == 0, "the last winsets are missing");
  out_rows_free(&rows);
}

/* ---- a round ---- */

static void round_once(int32_t threads, int64_t tuples, shape s, w_hive_sharing sharing, bool flat) {
  ps_type types[COLUMNS] = {PS_I64, PS_I64};
  ps_aggregate each[2] = {{.function = PS_COUNT, .column = -1, .mask = -1},
                          {.function = PS_SUM, .column = 1, .mask = -1}};
  ps_query query = {s.size, s.advance, COLUMNS, types, 0, 2, each, NULL};
  aggregates functions;
  check(aggregates_init(&functions, &query), "no memory");
  run r = {.shape = s, .threads = threads, .tuples = tuples, .flat = flat};
  r.hive = w_hive_new(s.size, s.advance, &functions, threads, sharing, s.levels);
  check(r.hive != NULL, "no memory");
  r.keys = calloc((size_t)s.keys, sizeof *r.keys);
  for (int64_t i = 0; i < s.keys; i++) r.keys[i] = key_make(i, s.keys == KEYS_MAX);
  int64_t windows = 0;
  expected *all = flat ? NULL : expect(&r, &windows);
  pthread_t *ids = calloc((size_t)threads, sizeof *ids);
  updater_argument *arguments = calloc((size_t)threads, sizeof *arguments);
  for (int32_t i = 0; i < threads; i++) {
    arguments[i] = (updater_argument){&r, i};
    check(pthread_create(&ids[i], NULL, update, &arguments[i]) == 0, "no thread");
  }
  read_all(&r, all, windows);
  for (int32_t i = 0; i < threads; i++) pthread_join(ids[i], NULL);
  w_hive_free(r.hive);
  aggregates_free(&functions);
  for (int64_t i = 0; i < s.keys; i++) free(r.keys[i]);
  free(r.keys);
  free(all);
  free(ids);
  free(arguments);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  int32_t threads = atoi(argv[1]);
  int64_t tuples = atoll(argv[2]);
  bool flat = strcmp(argv[3], "flat") == 0;
  int rounds = flat ? 1 : atoi(argv[3]);
  const size_t kinds = sizeof shapes / sizeof *shapes;
  for (int i = 0; i < rounds; i++) {
    w_hive_sharing sharing =
        ((size_t)i + (size_t)i / kinds) % 2 ? W_HIVE_LANES : W_HIVE_WORDS; /* each shape with both */
    round_once(threads, tuples, flat ? shape_flat : shapes[(size_t)i % kinds], sharing, flat);
  }
  check(ps_memory_live() == 0, "allocations were left");
  printf("%d rounds of %d x %lld tuples\n", rounds, threads, (long long)tuples);
  return 0;
}
