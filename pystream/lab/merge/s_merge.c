/*
 * s_merge.c - S-Merge alone, for bench_t_gate.py and `pystream bench`: an input thread per input, one output thread.
 *
 *   s_merge DESIGN ties|distinct|FILE INPUTS TUPLES PENDING RATE
 *
 * t_gate      T-Gate, a tuple per call
 * mq          a queue behind a mutex per input, a tuple per call; the output thread looks at the fronts of all of them
 *             for each tuple
 * mq_lf       the same with the queues of Michael and Scott
 * run_gate    Run-Gate, RUN_TUPLES tuples per call; they are taken out in merged blocks
 * run_gate_1  Run-Gate, a tuple per call
 * heap        no threads and no hand-over: a binary heap over arrays that are there already; the limit of merging
 *
 * ties: four tuples of an input share a timestamp on average, and inputs share theirs. distinct: no two tuples share
 * one. FILE: timestamps as int64, those of input 0, of input 1, ... TUPLES in all; an input waits while PENDING of its
 * tuples have not come out. RATE: tuples per second of all inputs together; 0: as fast as they are taken. Prints the
 * seconds from the moment all threads are ready to the last tuple out, and, with a rate, the mean milliseconds from
 * when a tuple was due to when it came out. Ends with 1 if a tuple is missing, doubled or out of order.
 */
#include "gates/queue.h"
#include "gates/run_gate.h"
#include "gates/t_gate.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { INPUTS_MAX = 64, TELL_EVERY = 64, RUN_TUPLES = 1000 };
typedef enum { T_GATE, MQ, MQ_LF, RUN_GATE, RUN_GATE_1, HEAP, DESIGNS } design_name;

static const char *const NAMES[DESIGNS] = {"t_gate", "mq", "mq_lf", "run_gate", "run_gate_1", "heap"};

typedef struct {
  _Atomic int64_t n;
  uint8_t apart[64 - sizeof(int64_t)];
} counter;

typedef struct {
  design_name design;
  const char *times;
  int32_t inputs;
  int64_t each, pending;
  double rate, start, waited; /* waited: seconds that tuples took from when they were due, all together */
  t_gate *gate;
  run_gate runs;
  queue queue[INPUTS_MAX];
  batch *batch[INPUTS_MAX];
  int64_t *ts[INPUTS_MAX];
  counter out[INPUTS_MAX]; /* tuples of the input that have come out, told now and then */
  _Atomic int32_t ready;
} contest;

static contest r;

static void check(bool right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

/* ---- the tuples: meters that report every minute or so, many at the same second ---- */

static void draw_times(int32_t k) {
  bool ties = !strcmp(r.times, "ties");
  uint64_t random = hash_mix((uint64_t)k + 1);
  int64_t ts = 0;
  for (int64_t i = 0; i < r.each; i++) {
    random = hash_mix(random + (uint64_t)i);
    ts += ties ? random % 4 == 0 : 1 + (int64_t)(random % 3); /* a few tuples a second, or one in a few */
    r.ts[k][i] = ties ? ts : ts * r.inputs + k;
  }
}

static void read_times(int32_t k) {
  FILE *file = fopen(r.times, "rb");
  check(file != NULL, "the file of timestamps cannot be opened");
  check(fseek(file, (long)(k * r.each * (int64_t)sizeof(int64_t)), SEEK_SET) == 0, "it is too short");
  check(fread(r.ts[k], sizeof(int64_t), (size_t)r.each, file) == (size_t)r.each, "it is too short");
  fclose(file);
}

static void make_input(int32_t k) {
  r.ts[k] = malloc((size_t)r.each * sizeof(int64_t));
  bool drawn = !strcmp(r.times, "ties") || !strcmp(r.times, "distinct");
  (drawn ? draw_times : read_times)(k);
  r.batch[k] = calloc(1, sizeof(batch) + sizeof(column));
  r.batch[k]->columns[0] = (column){.type = PS_I64, .values = r.ts[k]};
}

/* ---- time ---- */

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* When the input's i-th tuple is due. */
static double due(int32_t k, int64_t i) { return r.start + (double)(i * r.inputs + k) / r.rate; }

static void wait_until(double moment) {
  double left = moment - seconds();
  if (left <= 0) return;
  nanosleep(&(struct timespec){(time_t)left, (long)(1e9 * (left - (double)(time_t)left))}, NULL);
}

/* ---- inputs ---- */

static void wait_for_start(void) {
  atomic_fetch_add(&r.ready, 1);
  while (atomic_load(&r.ready) <= r.inputs) sched_yield();
}

/* The threads look at the counter of what is out only when they might be too far ahead. */
static int64_t wait_for_room(int32_t k, int64_t sent) {
  int64_t out;
  while (sent - (out = atomic_load(&r.out[k].n)) >= r.pending) sched_yield();
  return out + r.pending;
}

static void feed_one(int32_t k, int64_t i) {
  ps_fault fault;
  uint64_t payload[2] = {(uint64_t)i, 0};
  if (r.design == T_GATE) {
    check(t_gate_insert_tuple(r.gate, k, r.ts[k][i], payload, &fault) == PS_OK, "not inserted");
  } else {
    queue_enqueue(&r.queue[k], r.batch[k], i);
  }
}

static void feed_run(int32_t k, int64_t from, int64_t n) {
  run *made = run_gate_reserve(&r.runs);
  check(made != NULL, "no memory");
  run_gate_insert_run(&r.runs, k, made, r.ts[k] + from, n, NULL);
}

static void feed_end(int32_t k) {
  if (r.design == T_GATE) {
    t_gate_close(r.gate, k);
  } else if (r.design == RUN_GATE || r.design == RUN_GATE_1) {
    run *made = run_gate_reserve(&r.runs);
    check(made != NULL, "no memory");
    run_gate_close(&r.runs, k, made);
  } else {
    queue_close(&r.queue[k]);
  }
}

static void *feed(void *argument) {
  int32_t k = (int32_t)(intptr_t)argument;
  bool runs = r.design == RUN_GATE || r.design == RUN_GATE_1;
  int64_t room = 0, step = r.design == RUN_GATE ? RUN_TUPLES : 1;
  wait_for_start();
  for (int64_t i = 0; i < r.each; i += step) {
    int64_t n = r.each - i < step ? r.each - i : step;
    if (i + n > room) room = wait_for_room(k, i + n - 1);
    if (r.rate > 0) wait_until(due(k, i + n - 1));
    if (runs) {
      feed_run(k, i, n);
    } else {
      feed_one(k, i);
    }
  }
  feed_end(k);
  return NULL;
}

/* ---- output ---- */

/* Tuples of one input, one after the other. */
typedef struct {
  int32_t input;
  const int64_t *ts;
  int64_t n;
} taken;

static ps_code take_from_gate(taken *t) {
  static t_gate_tuple tuple;
  ps_code code = t_gate_get_next_ready_tuple(r.gate, 0, &tuple);
  if (code == PS_OK) *t = (taken){tuple.input, &tuple.ts, 1};
  return code;
}

static ps_code take_from_queues(taken *t) {
  static int64_t ts;
  position best = {QUEUE_DRAINED, INT64_MAX};
  int32_t which = 0;
  for (int32_t k = 0; k < r.inputs; k++) {
    position p = queue_peek(&r.queue[k]);
    if (p.state != QUEUE_DRAINED && (best.state == QUEUE_DRAINED || p.ts < best.ts)) best = p, which = k;
  }
  if (best.state != QUEUE_TUPLE) return best.state == QUEUE_DRAINED ? PS_END : PS_EMPTY;
  ts = queue_dequeue(&r.queue[which]).ts;
  *t = (taken){which, &ts, 1};
  return PS_OK;
}

static ps_code take_from_runs(taken *t) {
  run_slice slice;
  ps_code code = run_gate_get_next_ready_run(&r.runs, 0, &slice);
  if (code == PS_OK) *t = (taken){slice.input, slice.ts + slice.from, slice.n};
  return code;
}

/* ---- the heap: places[0] is the input whose next tuple is the first of all ---- */

static struct {
  int32_t places[INPUTS_MAX], size;
  int64_t next[INPUTS_MAX]; /* position by input */
} heap;

static bool earlier(int32_t a, int32_t b) {
  int64_t x = r.ts[a][heap.next[a]], y = r.ts[b][heap.next[b]];
  return x < y || (x == y && a < b);
}

static void sink(int32_t place) {
  int32_t moved = heap.places[place];
  for (int32_t child; (child = 2 * place + 1) < heap.size; place = child) {
    if (child + 1 < heap.size && earlier(heap.places[child + 1], heap.places[child])) child++;
    if (!earlier(heap.places[child], moved)) break;
    heap.places[place] = heap.places[child];
  }
  heap.places[place] = moved;
}

static void heap_init(void) {
  for (int32_t k = 0; k < r.inputs && r.each > 0; k++) heap.places[heap.size++] = k;
  for (int32_t place = heap.size / 2 - 1; place >= 0; place--) sink(place);
}

static ps_code take_from_heap(taken *t) {
  if (heap.size == 0) return PS_END;
  int32_t k = heap.places[0];
  *t = (taken){k, &r.ts[k][heap.next[k]], 1};
  if (++heap.next[k] == r.each) heap.places[0] = heap.places[--heap.size];
  if (heap.size > 0) sink(0);
  return PS_OK;
}

/* ---- reading ---- */

/* What the output thread has had. */
typedef struct {
  int64_t of[INPUTS_MAX], ts;
  int32_t input;
} had;

static void tell(const had *h, int32_t k, int64_t n) {
  if (h->of[k] / TELL_EVERY != (h->of[k] - n) / TELL_EVERY) atomic_store(&r.out[k].n, h->of[k]);
}

static void tell_all(const had *h) {
  for (int32_t k = 0; k < r.inputs; k++) atomic_store(&r.out[k].n, h->of[k]);
}

/* A reader touches every tuple, however many it is given at once. */
static void read_taken(had *h, const taken *t) {
  for (int64_t i = 0; i < t->n; i++) {
    check(t->ts[i] > h->ts || (t->ts[i] == h->ts && t->input >= h->input), "out of order");
    h->ts = t->ts[i], h->input = t->input;
  }
  if (r.rate > 0) r.waited += (double)t->n * (seconds() - due(t->input, h->of[t->input] + t->n - 1));
  h->of[t->input] += t->n;
  tell(h, t->input, t->n);
}

/* Of a slice, whose timestamps are one, the first and the last tuple: runs are sorted. Without a branch, as whoever
   reads blocks to be fast would do it. */
static void read_block(had *h, run_block b) {
  int64_t last = h->ts;
  int32_t input = h->input;
  while (b.n > 0) {
    run_slice slice = run_block_next(&b);
    const int64_t *ts = slice.ts + slice.from;
    check(ts[0] > last || (ts[0] == last && slice.input >= input), "out of order");
    if (slice.n > 1) check(ts[slice.n - 1] == ts[0], "not of one timestamp");
    last = ts[0], input = slice.input;
    h->of[input] += slice.n;
  }
  h->ts = last, h->input = input;
  tell_all(h);
}

static ps_code read_from_runs(had *h) {
  run_block b;
  ps_code code = run_gate_get_next_ready_block(&r.runs, 0, &b);
  if (code != PS_OK) return code;
  if (b.n > 0) {
    read_block(h, b);
  } else {
    read_taken(h, &(taken){b.slice.input, b.slice.ts + b.slice.from, b.slice.n});
  }
  return PS_OK;
}

static ps_code take(taken *t) {
  switch (r.design) {
    case T_GATE: return take_from_gate(t);
    case RUN_GATE_1: return take_from_runs(t);
    case HEAP: return take_from_heap(t);
    default: return take_from_queues(t);
  }
}

static ps_code read_some(had *h) {
  if (r.design == RUN_GATE) return read_from_runs(h);
  taken t;
  ps_code code = take(&t);
  if (code == PS_OK) read_taken(h, &t);
  return code;
}

static void read_all(void) {
  had h = {.ts = -1};
  for (ps_code code; (code = read_some(&h)) != PS_END;) {
    if (code == PS_OK) continue;
    tell_all(&h);
    sched_yield();
  }
  for (int32_t k = 0; k < r.inputs; k++) check(h.of[k] == r.each, "not every tuple came out once");
}

/* ---- a run ---- */

static bool has_queues(void) { return r.design == MQ || r.design == MQ_LF; }

static void make(void) {
  t_gate_options options = {.inputs = r.inputs, .readers = 1};
  if (r.design == T_GATE) check(t_gate_new(&options, &r.gate) == PS_OK, "no memory");
  if (r.design == RUN_GATE || r.design == RUN_GATE_1) check(run_gate_init(&r.runs, r.inputs, 1), "no memory");
  for (int32_t k = 0; k < r.inputs; k++) {
    make_input(k);
    if (!has_queues()) continue;
    check(queue_init(&r.queue[k], r.design == MQ_LF ? QUEUE_LOCK_FREE : QUEUE_MUTEX), "no memory");
    check(queue_reserve(&r.queue[k], r.pending + 1), "no memory");
  }
}

static void unmake(void) {
  if (r.design == T_GATE) t_gate_free(r.gate);
  if (r.design == RUN_GATE || r.design == RUN_GATE_1) run_gate_free(&r.runs);
  for (int32_t k = 0; k < r.inputs; k++) {
    if (has_queues()) queue_free(&r.queue[k]);
    free(r.batch[k]);
    free(r.ts[k]);
  }
}

static void report(double took) {
  double tuples = (double)(r.each * r.inputs);
  printf("%.6f %.6f\n", took, r.rate > 0 ? 1e3 * r.waited / tuples : 0.0);
}

static void merge_by_heap(void) {
  make();
  r.start = seconds();
  heap_init();
  read_all();
  report(seconds() - r.start);
  unmake();
}

static void merge_by_threads(void) {
  make();
  pthread_t ids[INPUTS_MAX];
  for (int32_t k = 0; k < r.inputs; k++) {
    check(pthread_create(&ids[k], NULL, feed, (void *)(intptr_t)k) == 0, "no thread");
  }
  while (atomic_load(&r.ready) < r.inputs) sched_yield();
  r.start = seconds(); /* the threads read it after the barrier */
  atomic_fetch_add(&r.ready, 1);
  read_all();
  report(seconds() - r.start);
  for (int32_t k = 0; k < r.inputs; k++) pthread_join(ids[k], NULL);
  unmake();
}

int main(int argc, char **argv) {
  if (argc != 7) return 2;
  while (r.design < DESIGNS && strcmp(argv[1], NAMES[r.design]) != 0) r.design++;
  r.times = argv[2];
  r.inputs = atoi(argv[3]);
  r.pending = atoll(argv[5]);
  r.rate = atof(argv[6]);
  if (r.design == DESIGNS || ((r.design == RUN_GATE || r.design == HEAP) && r.rate > 0)) return 2;
  if (r.inputs < 1 || r.inputs > INPUTS_MAX || r.pending < 2 * RUN_TUPLES) return 2;
  r.each = atoll(argv[4]) / r.inputs;
  if (r.design == HEAP) {
    merge_by_heap();
  } else {
    merge_by_threads();
  }
  return 0;
}
