/*
 * operator_stress.c - an operator under real threads, for the sanitizer builds: every input has a thread that adds
 * small batches, one thread reads (in every other round as an event loop does, woken through a pipe), one takes
 * snapshots, and some rounds are cancelled half-way. A native udf counts too, in the designs that keep the order. Ends
 * with 0 if no tuple was lost or doubled.
 *
 *   operator_stress DESIGN THREADS INPUTS TUPLES ROUNDS [fresh]       DESIGN: its number in ps_design
 *                                                                     fresh: each window has keys of its own
 */
#include "arrow_batch.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct {
  ps_operator *op;
  int32_t input;
  int64_t tuples;
} feeder;

typedef struct {
  ps_operator *op;
  int32_t inputs;
  atomic_bool done;
} saver;

enum { KEYS = 7, WINDOW = 10, BATCH = 5 };

static bool fresh;

static int64_t first_key(int64_t ts) { return fresh ? ts / WINDOW * KEYS : 0; }

/* Timestamps i / 3, so that ties are everywhere. */
static struct ArrowArray batch(int64_t first, int64_t rows) {
  struct ArrowArray a = batch_with(rows, 2);
  for (int c = 0; c < 2; c++) a.children[c] = column(rows, 0, 2);
  int64_t *ts = values_of(a.children[0], sizeof *ts), *key = values_of(a.children[1], sizeof *key);
  for (int64_t i = 0; i < rows; i++) {
    ts[i] = (first + i) / 3;
    key[i] = first_key(ts[i]) + (first + i) % KEYS;
  }
  return a;
}

static void *feed(void *argument) {
  feeder *f = argument;
  ps_fault fault;
  for (int64_t i = 0; i < f->tuples; i += BATCH) {
    int64_t rows = f->tuples - i < BATCH ? f->tuples - i : BATCH;
    struct ArrowArray a = batch(i, rows);
    ps_code code;
    while ((code = ps_operator_add(f->op, f->input, 0, &a, &fault)) == PS_FULL) {
      ps_operator_wait_space(f->op, f->input, rows, 10);
    }
    ps_arrow_release(&a);
    if (code != PS_OK) return NULL; /* cancelled */
    if (i % 50 == 0) ps_operator_heartbeat(f->op, f->input, (i + rows - 1) / 3, &fault);
  }
  ps_operator_close(f->op, f->input);
  return NULL;
}

static void drop(ps_code code, struct ArrowArray *a) {
  if (code != PS_OK) abort();
  ps_arrow_release(a);
}

/* In short waits, as Python does; false: the operator is cancelled. */
static bool pause_all(ps_operator *op) {
  ps_code code = PS_EMPTY;
  while (code == PS_EMPTY) code = ps_operator_pause(op, 1);
  return code == PS_OK;
}

/* What is added, merged and put out; never less than before. */
static int64_t progress(ps_operator *op) {
  ps_stats s;
  ps_operator_stats(op, &s);
  return 2 * s.tuples_in - s.pending + s.rows_out;
}

/* Snapshots, one after the other, until the operator is done with or cancelled. In between something has to happen:
 * locks are not fair, and whoever takes all of them without a rest keeps the others waiting. */
static void *save(void *argument) {
  saver *run = argument;
  while (!atomic_load(&run->done) && pause_all(run->op)) {
    struct ArrowArray out = {0};
    int64_t start_next;
    drop(ps_operator_save_windows(run->op, &out), &out);
    drop(ps_operator_save_slices(run->op, &out, &start_next), &out);
    for (int32_t i = 0; i < run->inputs; i++) drop(ps_operator_save_pending(run->op, i, &out), &out);
    int64_t before = progress(run->op);
    ps_operator_resume(run->op);
    while (!atomic_load(&run->done) && progress(run->op) == before) sched_yield();
  }
  return NULL;
}

/* ---- a native udf that counts; it fails if tuples come out of order ---- */

typedef struct {
  int64_t n, latest;
} counted;

static int32_t process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  counted *c = state;
  if (ts < c->latest || nulls[0] || values[0] - (uint64_t)first_key(ts) >= KEYS) return 1;
  c->latest = ts;
  c->n++;
  return 0;
}

static int32_t produce(const void *state, uint64_t *result, uint8_t *null) {
  const counted *c = state;
  *result = (uint64_t)c->n;
  *null = 0;
  return 0;
}

/* ---- reading ---- */

/* Sleeps until take has something to say. */
static void wait_at_pipe(ps_operator *op) {
  int ends[2];
  char byte;
  if (pipe(ends) != 0 || ps_operator_watch(op, ends[1]) != PS_OK || read(ends[0], &byte, 1) != 1) abort();
  ps_operator_unwatch(op, ends[1]);
  close(ends[0]);
  close(ends[1]);
}

/* The counts of all rows; -1 if the two functions disagree, or a key is not of its window. */
static int64_t add_up(const struct ArrowArray *rows) {
  int64_t sum = 0;
  const int64_t *ts = rows->children[0]->buffers[1], *key = rows->children[1]->buffers[1];
  const int64_t *n = rows->children[2]->buffers[1], *native = n;
  if (rows->n_children > 3) native = rows->children[3]->buffers[1];
  for (int64_t i = 0; i < rows->length; i++) {
    if (n[i] != native[i] || key[i] < first_key(ts[i]) || key[i] >= first_key(ts[i]) + KEYS) return -1;
    sum += n[i];
  }
  return sum;
}

/* Reads to the end, or cancels after so many takes; the sum of all counts, or -1. */
static int64_t read_all(ps_operator *op, int64_t takes_max, bool at_pipe) {
  int64_t sum = 0;
  for (int64_t takes = 0;; takes++) {
    struct ArrowArray rows = {0}, journal = {0};
    ps_fault fault;
    if (takes == takes_max) ps_operator_cancel(op);
    ps_code code = ps_operator_take(op, at_pipe ? 0 : 10, &rows, &journal, &fault);
    if (code == PS_END) return sum;
    if (code == PS_EMPTY && at_pipe) wait_at_pipe(op);
    if (code == PS_EMPTY) continue;
    if (code != PS_OK) return -1;
    int64_t more = add_up(&rows);
    if (more < 0) return -1;
    sum += more;
    ps_arrow_release(&rows);
    ps_arrow_release(&journal);
  }
}

typedef struct {
  ps_design design;
  int32_t threads, inputs;
  int64_t tuples;
} setup;

static int64_t round_once(setup how, int64_t takes_max, bool at_pipe) {
  int32_t inputs = how.inputs, key = 1;
  ps_type types[] = {PS_I64, PS_I64};
  ps_native native = {process, produce, sizeof(counted), 1, &key, NULL};
  ps_aggregate counts[] = {{PS_COUNT, -1, -1, NULL}, {PS_NATIVE, 0, -1, &native}};
  ps_query query = {WINDOW, WINDOW, 2, types, 1, how.design == PS_WIML || how.design == PS_SLICED ? 1 : 2,
                    counts, NULL};
  ps_operator *op;
  if (ps_operator_new(&query, inputs, how.design, how.threads, 0, 64, &op) != PS_OK) abort();
  pthread_t *threads = calloc((size_t)inputs, sizeof *threads);
  feeder *feeders = calloc((size_t)inputs, sizeof *feeders);
  for (int32_t i = 0; i < inputs; i++) {
    feeders[i] = (feeder){op, i, how.tuples};
    pthread_create(&threads[i], NULL, feed, &feeders[i]);
  }
  saver run = {.op = op, .inputs = inputs};
  pthread_t saving;
  pthread_create(&saving, NULL, save, &run);
  int64_t sum = read_all(op, takes_max, at_pipe);
  atomic_store(&run.done, true);
  pthread_join(saving, NULL);
  for (int32_t i = 0; i < inputs; i++) pthread_join(threads[i], NULL);
  ps_operator_free(op);
  free(threads);
  free(feeders);
  return sum;
}

int main(int argc, char **argv) {
  fresh = argc == 7 && strcmp(argv[6], "fresh") == 0;
  if (argc != 6 && !fresh) return 2;
  setup how = {(ps_design)atoi(argv[1]), atoi(argv[2]), atoi(argv[3]), atoll(argv[4])};
  int rounds = atoi(argv[5]);
  for (int i = 0; i < rounds; i++) {
    bool cancel = i % 3 == 2;
    int64_t sum = round_once(how, cancel ? i : -1, i % 2 == 1);
    if (!cancel && sum != how.inputs * how.tuples) {
      printf("round %d: %lld tuples came out of %lld\n", i, (long long)sum, (long long)(how.inputs * how.tuples));
      return 1;
    }
  }
  if (ps_memory_live() != 0) {
    printf("%lld allocations left\n", (long long)ps_memory_live());
    return 1;
  }
  printf("%d rounds of %d x %lld tuples\n", rounds, how.inputs, (long long)how.tuples);
  return 0;
}
