/*
 * history.c - records what real threads call and are told, for the linearizability checker (tests/test_histories.py).
 *
 *   history t_gate|w_hive|win_set|ms_queue THREADS CALLS ROUNDS SEED
 *
 * Each round makes a structure anew, of a shape that the seed decides, and lets the threads make that many calls each.
 * A call is stamped before and after from one counter. Stamps are sequentially consistent fetch-and-adds, so what the
 * calls do is a little more orderly than in real life; the model build covers what this hides. On few cores calls
 * seldom meet, so the tests also build all of it with PYSTREAM_SHAKE (atomics.h): threads change in the middle of
 * calls. Prints
 *
 *   # SHAPE...                                         per round
 *   THREAD NAME ARGUMENT... = RESULT... @ INVOKED RETURNED      per call
 */
#include "gates/ms_queue.h"
#include "gates/t_gate.h"
#include "windows/w_hive.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { THREADS_MAX = 8, KEYS = 3, RESULTS_MAX = 1 + 2 * KEYS, COLUMNS = 2 };

typedef struct {
  const char *name, *word; /* word: the result, when it is not numbers */
  int64_t argument[4], result[RESULTS_MAX];
  int32_t arguments, results;
  int64_t invoked, returned;
} call;

typedef struct {
  call *calls;
  int64_t used;
  uint64_t random;
} worker;

typedef struct {
  int64_t size, advance;
  int32_t threads, producers; /* the other threads read */
  int64_t calls;
  union {
    t_gate *gate;
    w_hive *hive;
    win_set *set;
    ms_queue queue;
  } at;
  aggregates functions;
  win_set_shape shape;
  worker worker[THREADS_MAX];
  _Atomic int64_t clock, turn, done;
} run;

typedef struct {
  const char *name;
  void (*make)(run *r, uint64_t dice);
  void (*work)(run *r, int32_t me);
  void (*unmake)(run *r);
} structure;

static run all;
static const structure *chosen;
static key *keys[KEYS];

static void check(bool right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

/* ---- recording ---- */

static uint64_t roll(worker *w, uint64_t sides) {
  w->random += 0x9e3779b97f4a7c15u;
  return hash_mix(w->random) % sides;
}

/* Waits a little, or gives the core away, so that calls of short rounds meet in many ways; then the call begins. */
static call *begin(run *r, worker *w, const char *name, int32_t arguments, const int64_t *argument) {
  call *c = &w->calls[w->used++];
  *c = (call){.name = name, .arguments = arguments};
  for (int32_t i = 0; i < arguments; i++) c->argument[i] = argument[i];
  if (roll(w, 16) == 0) sched_yield();
  c->invoked = atomic_fetch_add(&r->clock, 1);
  return c;
}

static void finish(run *r, call *c, const char *word) {
  c->returned = atomic_fetch_add(&r->clock, 1);
  c->word = word;
}

static const char *word_of(ps_code code) {
  switch (code) {
    case PS_OK: return "ok";
    case PS_EMPTY: return "none";
    case PS_END: return "end";
    case PS_DISORDER: return "disorder";
    case PS_CLOSED: return "closed";
    default: return "broken";
  }
}

static void print_call(int32_t thread, const call *c) {
  printf("%d %s", thread, c->name);
  for (int32_t i = 0; i < c->arguments; i++) printf(" %lld", (long long)c->argument[i]);
  printf(" =");
  if (c->results == 0) printf(" %s", c->word);
  for (int32_t i = 0; i < c->results; i++) printf(" %lld", (long long)c->result[i]);
  printf(" @ %lld %lld\n", (long long)c->invoked, (long long)c->returned);
}

/* About every fourth producer closes before it has made all its calls. */
static bool closes_early(const run *r, worker *w) { return roll(w, 4 * (uint64_t)r->calls) == 0; }

/* ---- T-Gate ---- */

/* Small and odd shapes: towers of one level, a node per allocation, memory given back at once. */
static void gate_make(run *r, uint64_t dice) {
  int32_t readers = r->threads > 2 && dice % 3 == 0 ? 2 : 1;
  t_gate_options options = {.inputs = r->threads - readers,
                            .readers = readers,
                            .levels = (int32_t)(dice / 3 % 3 + 1),
                            .full_every = 2,
                            .count_every = (int32_t)(dice / 9 % 2 + 1),
                            .slab_bytes = dice / 18 % 2 ? 1 : 0,
                            .slab_spares = dice / 36 % 2 ? -1 : 0};
  r->producers = options.inputs;
  check(t_gate_new(&options, &r->at.gate) == PS_OK, "no memory");
  printf("# %d %d\n", options.inputs, readers);
}

static void gate_feed(run *r, int32_t me) {
  worker *w = &r->worker[me];
  int64_t ts = 0;
  ps_fault fault;
  for (int64_t i = 0; i < r->calls; i++) {
    ts += (int64_t)roll(w, 3);
    uint64_t kind = roll(w, 20);
    if (i == r->calls - 1 || closes_early(r, w)) {
      call *c = begin(r, w, "close", 1, (int64_t[]){me});
      t_gate_close(r->at.gate, me);
      finish(r, c, "ok");
      if (roll(w, 4)) return;
    } else if (kind < 4) {
      call *c = begin(r, w, "heartbeat", 2, (int64_t[]){me, ts});
      finish(r, c, word_of(t_gate_heartbeat(r->at.gate, me, ts, &fault)));
    } else {
      int64_t sent = kind == 4 ? ts - 2 : ts; /* now and then too late */
      call *c = begin(r, w, "insert", 3, (int64_t[]){me, sent, i});
      ps_code code = t_gate_insert_tuple(r->at.gate, me, sent, (uint64_t[]){(uint64_t)i, 0}, &fault);
      finish(r, c, word_of(code));
    }
  }
}

static void gate_read(run *r, int32_t me) {
  worker *w = &r->worker[me];
  int32_t reader = me - r->producers;
  ps_code code = PS_OK;
  for (int64_t i = 0; i < 2 * r->calls && code != PS_END; i++) {
    t_gate_tuple t;
    call *c = begin(r, w, "get", 1, (int64_t[]){reader});
    code = t_gate_get_next_ready_tuple(r->at.gate, reader, &t);
    finish(r, c, word_of(code));
    if (code == PS_EMPTY) sched_yield();
    if (code != PS_OK) continue;
    c->results = 3;
    c->result[0] = t.ts;
    c->result[1] = t.input;
    c->result[2] = (int64_t)t.payload[0];
  }
}

static void gate_work(run *r, int32_t me) {
  if (me < r->producers) {
    gate_feed(r, me);
  } else {
    gate_read(r, me);
  }
}

static void gate_unmake(run *r) { t_gate_free(r->at.gate); }

/* ---- W-Hive: the sum of the values per key ---- */

static void functions_make(run *r) {
  ps_type types[COLUMNS] = {PS_I64, PS_I64};
  ps_aggregate sum = {.function = PS_SUM, .column = 1, .mask = -1};
  ps_query query = {r->size, r->advance, COLUMNS, types, 0, 1, &sum, NULL};
  check(aggregates_init(&r->functions, &query), "no memory");
}

static void hive_make(run *r, uint64_t dice) {
  static const int64_t shapes[][2] = {{4, 4}, {3, 2}, {1, 3}, {6, 1}};
  r->producers = r->threads - 1;
  r->size = shapes[dice % 4][0];
  r->advance = shapes[dice % 4][1];
  functions_make(r);
  w_hive_sharing sharing = dice / 12 % 2 ? W_HIVE_LANES : W_HIVE_WORDS;
  r->at.hive = w_hive_new(r->size, r->advance, &r->functions, r->producers, sharing, (int32_t)(dice / 4 % 3 + 1));
  check(r->at.hive != NULL, "no memory");
  printf("# %lld %lld %d\n", (long long)r->size, (long long)r->advance, r->producers);
}

static void hive_add(run *r, int32_t me, int64_t ts, batch *b, int64_t *value) {
  worker *w = &r->worker[me];
  int64_t k = (int64_t)roll(w, KEYS);
  *value = (int64_t)roll(w, 100) + 1;
  call *c = begin(r, w, "update", 4, (int64_t[]){me, ts, k, *value});
  finish(r, c, word_of(w_hive_update_windows(r->at.hive, me, ts, keys[k], b, 0, NULL)));
}

static void hive_feed(run *r, int32_t me) {
  worker *w = &r->worker[me];
  batch *b = calloc(1, sizeof *b + COLUMNS * sizeof(column));
  int64_t value = 0, ts = 0;
  b->columns[1] = (column){.type = PS_I64, .values = &value};
  for (int64_t i = 0; i < r->calls; i++) {
    ts += (int64_t)roll(w, 3);
    if (i == r->calls - 1 || closes_early(r, w)) {
      call *c = begin(r, w, "close", 1, (int64_t[]){me});
      w_hive_close(r->at.hive, me);
      finish(r, c, "ok");
      break;
    }
    if (roll(w, 6) == 0) {
      call *c = begin(r, w, "heartbeat", 2, (int64_t[]){me, ts});
      w_hive_heartbeat(r->at.hive, me, ts);
      finish(r, c, "ok");
    } else {
      hive_add(r, me, ts, b, &value);
    }
  }
  free(b);
}

static int64_t number_at(const out_rows *rows, int32_t column, int64_t row) {
  return ((const int64_t *)rows->column[column].values)[row];
}

/* Written down after the call: whatever is added to a delivered winset too late shows. */
static void hive_note(call *c, win_set *set, out_rows *rows) {
  const ps_type key_type = PS_I64;
  ps_fault fault;
  check(win_set_output(set, 1, &key_type, rows, &fault) == PS_OK, "no output");
  check(rows->rows <= KEYS, "more keys than there are");
  c->result[0] = win_set_start(set);
  for (int64_t i = 0; i < rows->rows; i++) {
    c->result[1 + 2 * i] = number_at(rows, 1, i);
    c->result[2 + 2 * i] = number_at(rows, 2, i);
  }
  c->results = (int32_t)(1 + 2 * rows->rows);
  rows->rows = 0;
  win_set_free(set);
}

static void hive_read(run *r, int32_t me) {
  worker *w = &r->worker[me];
  out_rows rows;
  check(out_rows_init(&rows, 3, NULL), "no memory");
  ps_code code = PS_OK;
  for (int64_t i = 0; i < 2 * r->calls && code != PS_END; i++) {
    win_set *set;
    call *c = begin(r, w, "get_next_winset", 0, NULL);
    code = w_hive_get_next_winset(r->at.hive, &set);
    finish(r, c, word_of(code));
    if (code == PS_EMPTY) sched_yield();
    if (code == PS_OK) hive_note(c, set, &rows);
  }
  out_rows_free(&rows);
}

static void hive_work(run *r, int32_t me) {
  if (me < r->producers) {
    hive_feed(r, me);
  } else {
    hive_read(r, me);
  }
}

static void hive_unmake(run *r) {
  w_hive_free(r->at.hive);
  aggregates_free(&r->functions);
}

/* ---- winset: windows are told by their addresses ---- */

static void set_make(run *r, uint64_t dice) {
  functions_make(r);
  r->shape = (win_set_shape){&r->functions, r->threads, r->threads};
  r->at.set = win_set_new(&r->shape, 0, 1 << dice % 2);
  check(r->at.set != NULL, "no memory");
  printf("#\n");
}

/* What a thread offers is the window that it inserted, or, if it inserted none, something that nobody else is told. */
static void set_work(run *r, int32_t me) {
  worker *w = &r->worker[me];
  for (int64_t i = 0; i < r->calls; i++) {
    int64_t k = (int64_t)roll(w, KEYS), inserted = win_set_inserted(r->at.set, me);
    bool look = roll(w, 3) == 0;
    call *c = begin(r, w, look ? "find" : "find_or_insert", look ? 1 : 2, (int64_t[]){k, -1});
    window *found = look ? win_set_find(r->at.set, keys[k]) : win_set_find_or_insert(r->at.set, me, keys[k]);
    finish(r, c, "none");
    c->results = found != NULL;
    c->result[0] = (int64_t)(uintptr_t)found;
    if (win_set_inserted(r->at.set, me) > inserted) c->argument[1] = c->result[0];
  }
}

static void set_unmake(run *r) {
  win_set_free(r->at.set);
  aggregates_free(&r->functions);
}

/* ---- the queue of Michael and Scott ---- */

static void queue_make(run *r, uint64_t dice) {
  (void)dice;
  check(ms_queue_init(&r->at.queue), "no memory");
  printf("# %lld %d\n", (long long)r->at.queue.nodes - 1, r->threads - 1);
}

static void queue_work(run *r, int32_t me) {
  worker *w = &r->worker[me];
  for (int64_t i = 0; i < r->calls; i++) {
    uint64_t kind = roll(w, 10), value;
    if (kind < 3) { /* fewer than dequeues: the order of a long queue would long be open, and the search wide */
      value = (uint64_t)(i * THREADS_MAX + me + 1);
      call *c = begin(r, w, "enqueue", 1, (int64_t[]){(int64_t)value});
      finish(r, c, ms_queue_enqueue(&r->at.queue, value) ? "ok" : "full");
    } else if (kind == 9) {
      call *c = begin(r, w, "is_empty", 0, NULL);
      finish(r, c, ms_queue_is_empty(&r->at.queue) ? "true" : "false");
    } else {
      call *c = begin(r, w, kind == 8 ? "peek" : "dequeue", 0, NULL);
      bool found = kind == 8 ? ms_queue_peek(&r->at.queue, &value) : ms_queue_dequeue(&r->at.queue, &value);
      finish(r, c, "none");
      c->results = found;
      c->result[0] = found ? (int64_t)value : 0;
    }
  }
}

static void queue_unmake(run *r) { ms_queue_free(&r->at.queue); }

/* ---- rounds ---- */

static const structure structures[] = {{"t_gate", gate_make, gate_work, gate_unmake},
                                       {"w_hive", hive_make, hive_work, hive_unmake},
                                       {"win_set", set_make, set_work, set_unmake},
                                       {"ms_queue", queue_make, queue_work, queue_unmake}};

/* Threads stay for all rounds and wait for each without sleeping, so that they start at the same time. */
static void *work(void *argument) {
  int32_t me = (int32_t)(intptr_t)argument;
  for (int64_t turn = 1;; turn++) {
    while (atomic_load(&all.turn) != turn) {
      if (atomic_load(&all.turn) < 0) return NULL;
      sched_yield();
    }
    chosen->work(&all, me);
    atomic_fetch_add(&all.done, 1);
  }
}

static void round_once(int64_t number, uint64_t seed) {
  chosen->make(&all, hash_mix(seed + (uint64_t)number) >> 8);
  atomic_store(&all.clock, 0);
  atomic_store(&all.done, 0);
  for (int32_t t = 0; t < all.threads; t++) {
    all.worker[t].used = 0;
    all.worker[t].random = hash_mix(seed + (uint64_t)(number * THREADS_MAX + t));
  }
  atomic_store(&all.turn, number);
  while (atomic_load(&all.done) < all.threads) sched_yield();
  for (int32_t t = 0; t < all.threads; t++) {
    for (int64_t i = 0; i < all.worker[t].used; i++) print_call(t, &all.worker[t].calls[i]);
  }
  chosen->unmake(&all);
}

static void keys_make(void) {
  for (int64_t i = 0; i < KEYS; i++) {
    keys[i] = calloc(1, sizeof *keys[i] + 9);
    keys[i]->hash = (uint64_t)i / 2; /* two keys of one hash */
    keys[i]->length = 9;
    keys[i]->data[1] = 0x80; /* the sign of int64, flipped */
    keys[i]->data[8] = (uint8_t)i;
  }
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  for (size_t i = 0; i < sizeof structures / sizeof *structures; i++) {
    if (!strcmp(structures[i].name, argv[1])) chosen = &structures[i];
  }
  all.threads = atoi(argv[2]);
  all.calls = atoll(argv[3]);
  if (!chosen || all.threads < 2 || all.threads > THREADS_MAX || all.calls < 1) return 2;
  keys_make();
  all.size = all.advance = 1;
  pthread_t ids[THREADS_MAX];
  for (int32_t t = 0; t < all.threads; t++) {
    all.worker[t].calls = calloc((size_t)(2 * all.calls), sizeof(call));
    check(pthread_create(&ids[t], NULL, work, (void *)(intptr_t)t) == 0, "no thread");
  }
  for (int64_t n = 1; n <= atoll(argv[4]); n++) round_once(n, strtoull(argv[5], NULL, 10));
  atomic_store(&all.turn, -1);
  for (int32_t t = 0; t < all.threads; t++) {
    pthread_join(ids[t], NULL);
    free(all.worker[t].calls);
  }
  for (int64_t i = 0; i < KEYS; i++) free(keys[i]);
  check(ps_memory_live() == 0, "allocations were left");
  return 0;
}
