/*
 * t_gate_stress.c - a T-Gate under real threads, for the sanitizer builds and for long runs.
 *
 *   t_gate_stress threads INPUTS READERS TUPLES ROUNDS   every reader must have every tuple, in the one right order
 *   t_gate_stress flat TUPLES                            memory stays flat: two busy inputs, one idle, one closed
 *   t_gate_stress speed INPUTS TUPLES BATCH              million tuples per second, one reader
 *
 * Rounds differ in levels, in how often nodes are of full height, counted and freed, and in how nodes lie in memory: in
 * every other round each node is an allocation of its own and none is used again, so that AddressSanitizer sees a touch
 * too late.
 */
#include "base/atomics.h"
#include "gates/t_gate.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

typedef struct {
  t_gate *gate;
  int32_t number;
  int64_t tuples;
  int64_t batch;
  int64_t inputs;
  ps_counter *left_behind; /* per input: tuples that reader 0 has had */
  int64_t ahead;           /* no input is further ahead of reader 0 */
} worker;

enum { BATCH_MAX = 64, AHEAD = 4096, ALONE = 0 };

static uint64_t roll(uint64_t *state) { return *state = hash_mix(*state + 0x9e3779b97f4a7c15u); }

/* At once: the other threads may wait for ever for what went wrong. */
_Noreturn static void fail(const worker *w, const char *what, int64_t at) {
  fprintf(stderr, "%s, thread %d, at %lld\n", what, w ? w->number : -1, (long long)at);
  _Exit(1);
}

static void pace(const worker *w, int64_t sent) {
  while (sent - ps_counter_get(&w->left_behind[w->number]) > w->ahead) sched_yield();
}

/* A heartbeat, and a pause in which the others go on and what lies before it is freed. */
static void promise(const worker *w, int64_t ts, uint64_t pauses) {
  ps_fault fault;
  if (t_gate_heartbeat(w->gate, w->number, ts, &fault) != PS_OK) fail(w, "heartbeat refused", ts);
  while (pauses-- > 0) sched_yield();
}

/* Timestamps with ties within and across inputs, heartbeats in between, gaps now and then. */
static void *feed(void *argument) {
  const worker *w = argument;
  uint64_t dice = (uint64_t)w->number + 1;
  int64_t ts = 0, times[BATCH_MAX];
  ps_fault fault;
  for (int64_t i = 0; i < w->tuples;) {
    int64_t n = 1 + (int64_t)(roll(&dice) % (uint64_t)w->batch);
    if (n > w->tuples - i) n = w->tuples - i;
    for (int64_t j = 0; j < n; j++) times[j] = ts += (int64_t)(roll(&dice) % 3);
    pace(w, i);
    uint64_t payload[2] = {(uint64_t)w->number, (uint64_t)i};
    ps_code code = n == 1 ? t_gate_insert_tuple(w->gate, w->number, ts, payload, &fault)
                          : t_gate_insert_tuples(w->gate, w->number, n, times, payload, &fault);
    if (code != PS_OK) fail(w, "insert refused", i);
    i += n;
    if (roll(&dice) % 16 == 0) ts += (int64_t)(roll(&dice) % 40);
    if (roll(&dice) % 8 == 0) promise(w, ts += (int64_t)(roll(&dice) % 40), roll(&dice) % 8);
  }
  t_gate_close(w->gate, w->number);
  return NULL;
}

/* Is `now` after `before`, and the next of its input? */
static void check(const worker *w, const t_gate_tuple *before, const t_gate_tuple *now, int64_t *had) {
  if (now->payload[0] != (uint64_t)now->input) fail(w, "payload of another input", now->ts);
  if (now->payload[1] != (uint64_t)had[now->input]++) fail(w, "tuple lost or doubled", now->ts);
  bool after = now->ts > before->ts || (now->ts == before->ts && now->input >= before->input);
  if (!after) fail(w, "out of order", now->ts);
}

static void *read_all(void *argument) {
  const worker *w = argument;
  t_gate_tuple last = {.ts = -1}, out[BATCH_MAX];
  int64_t *had = calloc((size_t)w->inputs, sizeof *had);
  int64_t got, position = 0;
  ps_code code;
  while ((code = t_gate_get_ready_tuples(w->gate, w->number, w->batch, out, &got)) != PS_END) {
    for (int64_t i = 0; i < got; last = out[i++]) check(w, &last, &out[i], had);
    if (got && out[0].ts < position) fail(w, "position was too far", position);
    position = t_gate_position(w->gate, w->number);
    if (position < last.ts) fail(w, "position is behind", position);
    for (int64_t k = 0; got && w->number == 0 && k < w->inputs; k++) ps_counter_set(&w->left_behind[k], had[k]);
    if (code == PS_EMPTY) sched_yield();
  }
  for (int64_t k = 0; k < w->inputs; k++) {
    if (had[k] != w->tuples) fail(w, "tuples are missing", had[k]);
  }
  free(had);
  return NULL;
}

/* Every level ascends and is a sublist of the level below (T-Gate I1, I2); nobody else may be at work. */
static void check_levels(const t_gate *gate) {
  int64_t wrong = 0;
  for (int level = 0; level < gate->options.levels; level++) {
    const skip_node *below = gate->reclaim.moved;
    for (const skip_node *n = below, *next; (next = link_last(&n->next[level])); n = next) {
      wrong += !skip_key_less(n->key, next->key) || next->height <= level;
      while (level && below && below != next) below = link_last(&below->next[level - 1]);
      wrong += level && below != next;
    }
  }
  if (wrong) fail(NULL, "links are wrong", wrong);
}

static void start(pthread_t *ids, worker *workers, int32_t from, int32_t to, void *(*work)(void *)) {
  for (int32_t i = from; i < to; i++) pthread_create(&ids[i], NULL, work, &workers[i]);
}

static void join(const pthread_t *ids, int32_t from, int32_t to) {
  for (int32_t i = from; i < to; i++) pthread_join(ids[i], NULL);
}

/* All threads together, no input too far ahead; or, with ALONE, first the inputs and then the readers. */
static void run_threads(t_gate_options options, int64_t tuples, int64_t batch, int64_t ahead) {
  t_gate *gate;
  if (t_gate_new(&options, &gate) != PS_OK) abort();
  int32_t inputs = options.inputs, threads = inputs + options.readers;
  bool together = ahead != ALONE;
  ps_counter *left_behind = calloc((size_t)inputs, sizeof *left_behind);
  worker *workers = calloc((size_t)threads, sizeof *workers);
  pthread_t *ids = calloc((size_t)threads, sizeof *ids);
  for (int32_t i = 0; i < threads; i++) {
    int32_t number = i < inputs ? i : i - inputs;
    workers[i] = (worker){gate, number, tuples, batch, inputs, left_behind, together ? ahead : tuples};
  }
  start(ids, workers, 0, inputs, feed);
  if (together) start(ids, workers, inputs, threads, read_all);
  join(ids, 0, inputs);
  if (!together) {
    check_levels(gate);
    start(ids, workers, inputs, threads, read_all);
  }
  join(ids, inputs, threads);
  check_levels(gate);
  t_gate_free(gate);
  free(left_behind);
  free(workers);
  free(ids);
}

static void threads_mode(int32_t inputs, int32_t readers, int64_t tuples, int rounds) {
  for (int i = 0; i < rounds; i++) {
    t_gate_options options = {.inputs = inputs, .readers = readers, .levels = 1 + i % 4};
    if (i % 3 != 2) options.full_every = 1 + i % 5;
    if (i % 4 != 3) options.count_every = 1 + i % 7;
    if (i % 2 == 0) options.slab_bytes = 1;
    if (i % 2 == 0) options.slab_spares = -1;
    run_threads(options, tuples, i % 3 ? 9 : 1, i % 7 == 6 ? ALONE : i % 7 < 4 ? 12 : tuples);
  }
  printf("%d rounds of %d x %lld tuples, %d readers\n", rounds, inputs, (long long)tuples, readers);
}

static int64_t rss_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/* Reads to the end, watching the number of allocations alive. */
static int64_t read_watching(t_gate *gate, const worker *w, int64_t *early, int64_t *rss_early) {
  t_gate_tuple out[BATCH_MAX];
  int64_t had[4] = {0}, got, most = 0, sum = 0;
  t_gate_tuple last = {.ts = -1};
  for (ps_code code; (code = t_gate_get_ready_tuples(gate, 0, BATCH_MAX, out, &got)) != PS_END; sum += got) {
    for (int64_t i = 0; i < got; last = out[i++]) check(w, &last, &out[i], had);
    for (int k = 0; k < 2; k++) ps_counter_set(&w->left_behind[k], had[k]);
    if (ps_memory_live() > most) most = ps_memory_live();
    if (sum < w->tuples / 10) *early = most, *rss_early = rss_kib();
    if (had[0] + had[1] == w->tuples) t_gate_close(gate, 2); /* awakes after all this time */
    if (code == PS_EMPTY) sched_yield();
  }
  return most;
}

static void flat_mode(int64_t tuples) {
  t_gate *gate;
  t_gate_options options = {.inputs = 4, .readers = 1, .slab_bytes = 4064, .slab_spares = 16}; /* as users have it */
  if (t_gate_new(&options, &gate) != PS_OK) abort();
  ps_fault fault;
  ps_counter left_behind[4] = {0};
  worker workers[3];
  pthread_t ids[2];
  t_gate_heartbeat(gate, 2, INT64_MAX, &fault); /* idle from now on */
  t_gate_close(gate, 3);
  for (int32_t k = 0; k < 2; k++) {
    workers[k] = (worker){gate, k, tuples / 2, BATCH_MAX, 4, left_behind, AHEAD};
    pthread_create(&ids[k], NULL, feed, &workers[k]);
  }
  workers[2] = (worker){gate, 0, tuples / 2 * 2, BATCH_MAX, 4, left_behind, AHEAD};
  int64_t early = 0, rss_early = 0, most = read_watching(gate, &workers[2], &early, &rss_early);
  for (int k = 0; k < 2; k++) pthread_join(ids[k], NULL);
  t_gate_free(gate);
  printf("%lld tuples, at most %lld allocations alive (%lld in the first tenth), %lld KiB (%lld)\n", (long long)tuples,
         (long long)most, (long long)early, (long long)rss_kib(), (long long)rss_early);
}

static void speed_mode(int32_t inputs, int64_t tuples, int64_t batch) {
  t_gate_options options = {.inputs = inputs, .readers = 1};
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  run_threads(options, tuples / inputs, batch, AHEAD);
  clock_gettime(CLOCK_MONOTONIC, &to);
  double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
  printf("%d inputs, batches of up to %lld: %.1f million tuples/s\n", inputs, (long long)batch,
         1e-6 * (double)tuples / seconds);
}

int main(int argc, char **argv) {
  if (argc == 6 && !strcmp(argv[1], "threads")) {
    threads_mode(atoi(argv[2]), atoi(argv[3]), atoll(argv[4]), atoi(argv[5]));
  } else if (argc == 3 && !strcmp(argv[1], "flat")) {
    flat_mode(atoll(argv[2]));
  } else if (argc == 5 && !strcmp(argv[1], "speed")) {
    speed_mode(atoi(argv[2]), atoll(argv[3]), atoll(argv[4]));
  } else {
    return 2;
  }
  if (ps_memory_live() != 0) fail(NULL, "allocations left", ps_memory_live());
  return 0;
}
