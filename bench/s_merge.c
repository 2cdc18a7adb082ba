/*
 * s_merge.c - S-Merge alone, one tuple per call, for bench_t_gate.py: an input thread per input, one output thread.
 *
 *   s_merge t_gate|mq|mq_lf INPUTS TUPLES PENDING
 *
 * t_gate  T-Gate
 * mq      a queue behind a mutex per input; the output thread looks at the fronts of all of them for each tuple
 * mq_lf   the same with the queues of Michael and Scott
 *
 * TUPLES in all; an input waits while PENDING of its tuples have not come out. Prints the seconds from the moment all
 * threads are ready to the last tuple out. Ends with 1 if a tuple is missing, doubled or out of order.
 */
#include "queue.h"
#include "t_gate.h"

#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { INPUTS_MAX = 64, TELL_EVERY = 64 };

typedef struct {
  _Atomic int64_t n;
  uint8_t apart[64 - sizeof(int64_t)];
} counter;

typedef struct {
  const char *design;
  int32_t inputs;
  int64_t each, pending;
  t_gate *gate;
  queue queue[INPUTS_MAX];
  batch *batch[INPUTS_MAX];
  int64_t *ts[INPUTS_MAX];
  counter out[INPUTS_MAX]; /* tuples of the input that have come out, told now and then */
  _Atomic int32_t ready;
} run;

static run r;

static void check(bool right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

/* ---- the tuples: meters that report every minute or so, many at the same second ---- */

static void make_input(int32_t k) {
  r.ts[k] = malloc((size_t)r.each * sizeof(int64_t));
  uint64_t random = hash_mix((uint64_t)k + 1);
  int64_t ts = 0;
  for (int64_t i = 0; i < r.each; i++) {
    random = hash_mix(random + (uint64_t)i);
    ts += random % 4 == 0; /* four tuples a second on average, per input */
    r.ts[k][i] = ts;
  }
  r.batch[k] = calloc(1, sizeof(batch) + sizeof(column));
  r.batch[k]->columns[0] = (column){.type = PS_I64, .values = r.ts[k]};
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

static void *feed(void *argument) {
  int32_t k = (int32_t)(intptr_t)argument;
  int64_t room = 0;
  ps_fault fault;
  wait_for_start();
  for (int64_t i = 0; i < r.each; i++) {
    if (i >= room) room = wait_for_room(k, i);
    if (r.gate) {
      uint64_t payload[2] = {(uint64_t)i, 0};
      check(t_gate_insert_tuple(r.gate, k, r.ts[k][i], payload, &fault) == PS_OK, "not inserted");
    } else {
      queue_enqueue(&r.queue[k], r.batch[k], i);
    }
  }
  if (r.gate) {
    t_gate_close(r.gate, k);
  } else {
    queue_close(&r.queue[k]);
  }
  return NULL;
}

/* ---- output ---- */

typedef struct {
  int64_t ts;
  int32_t input;
} taken;

static ps_code take_from_gate(taken *t) {
  t_gate_tuple tuple;
  ps_code code = t_gate_get_next_ready_tuple(r.gate, 0, &tuple);
  if (code == PS_OK) *t = (taken){tuple.ts, tuple.input};
  return code;
}

static ps_code take_from_queues(taken *t) {
  position best = {QUEUE_DRAINED, INT64_MAX};
  int32_t which = 0;
  for (int32_t k = 0; k < r.inputs; k++) {
    position p = queue_peek(&r.queue[k]);
    if (p.state != QUEUE_DRAINED && (best.state == QUEUE_DRAINED || p.ts < best.ts)) best = p, which = k;
  }
  if (best.state != QUEUE_TUPLE) return best.state == QUEUE_DRAINED ? PS_END : PS_EMPTY;
  *t = (taken){queue_dequeue(&r.queue[which]).ts, which};
  return PS_OK;
}

static void read_all(void) {
  int64_t had[INPUTS_MAX] = {0};
  taken last = {-1, 0}, t = {0};
  ps_code code;
  while ((code = r.gate ? take_from_gate(&t) : take_from_queues(&t)) != PS_END) {
    if (code == PS_EMPTY) {
      for (int32_t k = 0; k < r.inputs; k++) atomic_store(&r.out[k].n, had[k]);
      sched_yield();
      continue;
    }
    check(t.ts > last.ts || (t.ts == last.ts && t.input >= last.input), "out of order");
    last = t;
    if (++had[t.input] % TELL_EVERY == 0) atomic_store(&r.out[t.input].n, had[t.input]);
  }
  for (int32_t k = 0; k < r.inputs; k++) check(had[k] == r.each, "not every tuple came out once");
}

/* ---- a run ---- */

static void make(void) {
  bool gate = !strcmp(r.design, "t_gate"), lock_free = !strcmp(r.design, "mq_lf");
  if (!gate && !lock_free && strcmp(r.design, "mq") != 0) exit(2);
  t_gate_options options = {.inputs = r.inputs, .readers = 1};
  if (gate) check(t_gate_new(&options, &r.gate) == PS_OK, "no memory");
  for (int32_t k = 0; k < r.inputs; k++) {
    make_input(k);
    if (gate) continue;
    check(queue_init(&r.queue[k], lock_free ? QUEUE_LOCK_FREE : QUEUE_MUTEX), "no memory");
    check(queue_reserve(&r.queue[k], r.pending + 1), "no memory");
  }
}

static void unmake(void) {
  t_gate_free(r.gate);
  for (int32_t k = 0; k < r.inputs; k++) {
    if (!r.gate) queue_free(&r.queue[k]);
    free(r.batch[k]);
    free(r.ts[k]);
  }
}

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  r.design = argv[1];
  r.inputs = atoi(argv[2]);
  r.pending = atoll(argv[4]);
  if (r.inputs < 1 || r.inputs > INPUTS_MAX || r.pending < 2 * TELL_EVERY) return 2;
  r.each = atoll(argv[3]) / r.inputs;
  make();
  pthread_t ids[INPUTS_MAX];
  for (int32_t k = 0; k < r.inputs; k++) {
    check(pthread_create(&ids[k], NULL, feed, (void *)(intptr_t)k) == 0, "no thread");
  }
  while (atomic_load(&r.ready) < r.inputs) sched_yield();
  double start = seconds();
  atomic_fetch_add(&r.ready, 1);
  read_all();
  printf("%.6f\n", seconds() - start);
  for (int32_t k = 0; k < r.inputs; k++) pthread_join(ids[k], NULL);
  unmake();
  return 0;
}
