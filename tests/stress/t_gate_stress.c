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
#include "atomics.h"
#include "t_gate.h"

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
  ps_counter *left_behind; /* per input: tuples that reader 0 has had; NULL: feed without looking */
  int64_t failures;
} worker;

enum { BATCH_MAX = 64, AHEAD = 4096 };

static uint64_t roll(uint64_t *state) { return *state = hash_mix(*state + 0x9e3779b97f4a7c15u); }

static bool fail(worker *w, const char *what, int64_t at) {
  if (w->failures++ == 0) fprintf(stderr, "%s, thread %d, at %lld\n", what, w->number, (long long)at);
  return false;
}

static void pace(const worker *w, int64_t sent) {
  while (w->left_behind && sent - ps_counter_get(&w->left_behind[w->number]) > AHEAD) sched_yield();
}

/* Timestamps with ties within and across inputs, heartbeats in between, gaps now and then. */
static void *feed(void *argument) {
  worker *w = argument;
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
    if (roll(&dice) % 8 == 0 && t_gate_heartbeat(w->gate, w->number, ts, &fault) != PS_OK) fail(w, "heartbeat", i);
  }
  t_gate_close(w->gate, w->number);
  return NULL;
}

/* Is `now` after `before`, and the next of its input? */
static bool right(worker *w, const t_gate_tuple *before, const t_gate_tuple *now, int64_t *had) {
  if (now->payload[0] != (uint64_t)now->input) return fail(w, "payload of another input", now->ts);
  if (now->payload[1] != (uint64_t)had[now->input]) return fail(w, "tuple lost or doubled", now->ts);
  had[now->input]++;
  if (now->ts < before->ts || (now->ts == before->ts && now->input < before->input)) {
    return fail(w, "out of order", now->ts);
  }
  return true;
}

static void *read_all(void *argument) {
  worker *w = argument;
  t_gate_tuple last = {.ts = -1}, out[BATCH_MAX];
  int64_t *had = calloc((size_t)w->inputs, sizeof *had);
  int64_t got, position = 0;
  ps_code code;
  while ((code = t_gate_get_ready_tuples(w->gate, w->number, w->batch, out, &got)) != PS_END) {
    for (int64_t i = 0; i < got; last = out[i++]) right(w, &last, &out[i], had);
    if (got && out[0].ts < position) fail(w, "position was too far", position);
    position = t_gate_position(w->gate, w->number);
    if (position < last.ts) fail(w, "position is behind", position);
    for (int64_t k = 0; got && w->left_behind && k < w->inputs; k++) ps_counter_set(&w->left_behind[k], had[k]);
    if (code == PS_EMPTY) sched_yield();
  }
  for (int64_t k = 0; k < w->inputs; k++) {
    if (had[k] != w->tuples) fail(w, "tuples are missing", had[k]);
  }
  free(had);
  return NULL;
}

/* Every level ascends and is a sublist of the level below (T-Gate I1, I2); nobody else may be at work. */
static int64_t misplaced(const t_gate *gate) {
  int64_t wrong = 0;
  for (int level = 0; level < gate->options.levels; level++) {
    const skip_node *below = gate->reclaim.moved;
    for (const skip_node *n = below, *next; (next = link_last(&n->next[level])); n = next) {
      wrong += !skip_key_less(n->key, next->key) || next->height <= level;
      while (level && below && below != next) below = link_last(&below->next[level - 1]);
      wrong += level && below != next;
    }
  }
  if (wrong) fprintf(stderr, "%lld links are wrong\n", (long long)wrong);
  return wrong;
}

static void start(pthread_t *ids, worker *workers, int32_t from, int32_t to, void *(*work)(void *)) {
  for (int32_t i = from; i < to; i++) pthread_create(&ids[i], NULL, work, &workers[i]);
}

static int64_t join(const pthread_t *ids, const worker *workers, int32_t from, int32_t to) {
  int64_t failures = 0;
  for (int32_t i = from; i < to; i++) {
    pthread_join(ids[i], NULL);
    failures += workers[i].failures;
  }
  return failures;
}

/* All threads together, or first the inputs and then the readers. */
static int64_t run_threads(t_gate_options options, int64_t tuples, int64_t batch, bool together) {
  t_gate *gate;
  if (t_gate_new(&options, &gate) != PS_OK) abort();
  int32_t inputs = options.inputs, threads = inputs + options.readers;
  worker *workers = calloc((size_t)threads, sizeof *workers);
  pthread_t *ids = calloc((size_t)threads, sizeof *ids);
  for (int32_t i = 0; i < threads; i++) {
    workers[i] = (worker){gate, i < inputs ? i : i - inputs, tuples, batch, inputs, NULL, 0};
  }
  start(ids, workers, 0, inputs, feed);
  if (together) start(ids, workers, inputs, threads, read_all);
  int64_t failures = join(ids, workers, 0, inputs);
  if (!together) {
    failures += misplaced(gate);
    start(ids, workers, inputs, threads, read_all);
  }
  failures += join(ids, workers, inputs, threads) + misplaced(gate);
  t_gate_free(gate);
  free(workers);
  free(ids);
  return failures;
}

static int threads_mode(int32_t inputs, int32_t readers, int64_t tuples, int rounds) {
  for (int i = 0; i < rounds; i++) {
    t_gate_options options = {.inputs = inputs, .readers = readers, .levels = 1 + i % 4};
    if (i % 3 != 2) options.full_every = 1 + i % 5;
    if (i % 4 != 3) options.count_every = 1 + i % 7;
    if (i % 2 == 0) options.slab_bytes = 1;
    if (i % 2 == 0) options.slab_spares = -1;
    if (run_threads(options, tuples, i % 3 ? 9 : 1, i % 7 != 6)) return 1;
  }
  if (ps_memory_live() != 0) {
    printf("%lld allocations left\n", (long long)ps_memory_live());
    return 1;
  }
  printf("%d rounds of %d x %lld tuples, %d readers\n", rounds, inputs, (long long)tuples, readers);
  return 0;
}

static int64_t rss_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/* Reads to the end, watching the number of allocations alive. */
static int64_t read_watching(t_gate *gate, worker *w, int64_t *early, int64_t *rss_early) {
  t_gate_tuple out[BATCH_MAX];
  int64_t had[4] = {0}, got, most = 0, sum = 0;
  t_gate_tuple last = {.ts = -1};
  for (ps_code code; (code = t_gate_get_ready_tuples(gate, 0, BATCH_MAX, out, &got)) != PS_END; sum += got) {
    for (int64_t i = 0; i < got; last = out[i++]) right(w, &last, &out[i], had);
    for (int k = 0; k < 2; k++) ps_counter_set(&w->left_behind[k], had[k]);
    if (ps_memory_live() > most) most = ps_memory_live();
    if (sum < w->tuples / 10) *early = most, *rss_early = rss_kib();
    if (had[0] + had[1] == w->tuples) t_gate_close(gate, 2); /* awakes after all this time */
    if (code == PS_EMPTY) sched_yield();
  }
  return most;
}

static int flat_mode(int64_t tuples) {
  t_gate *gate;
  t_gate_options options = {.inputs = 4, .readers = 1};
  if (t_gate_new(&options, &gate) != PS_OK) abort();
  ps_fault fault;
  ps_counter left_behind[4] = {0};
  worker workers[3];
  pthread_t ids[2];
  t_gate_heartbeat(gate, 2, INT64_MAX, &fault); /* idle from now on */
  t_gate_close(gate, 3);
  for (int32_t k = 0; k < 2; k++) {
    workers[k] = (worker){gate, k, tuples / 2, BATCH_MAX, 4, left_behind, 0};
    pthread_create(&ids[k], NULL, feed, &workers[k]);
  }
  workers[2] = (worker){gate, 0, tuples / 2 * 2, BATCH_MAX, 4, left_behind, 0};
  int64_t early = 0, rss_early = 0, most = read_watching(gate, &workers[2], &early, &rss_early);
  for (int k = 0; k < 2; k++) pthread_join(ids[k], NULL);
  t_gate_free(gate);
  printf("%lld tuples, at most %lld allocations alive (%lld in the first tenth), %lld KiB (%lld)\n", (long long)tuples,
         (long long)most, (long long)early, (long long)rss_kib(), (long long)rss_early);
  return workers[0].failures || workers[1].failures || workers[2].failures || ps_memory_live() != 0;
}

static int speed_mode(int32_t inputs, int64_t tuples, int64_t batch) {
  t_gate_options options = {.inputs = inputs, .readers = 1};
  struct timespec from, to;
  clock_gettime(CLOCK_MONOTONIC, &from);
  if (run_threads(options, tuples / inputs, batch, true)) return 1;
  clock_gettime(CLOCK_MONOTONIC, &to);
  double seconds = (double)(to.tv_sec - from.tv_sec) + 1e-9 * (double)(to.tv_nsec - from.tv_nsec);
  printf("%d inputs, batches of up to %lld: %.1f million tuples/s\n", inputs, (long long)batch,
         1e-6 * (double)tuples / seconds);
  return 0;
}

int main(int argc, char **argv) {
  if (argc == 6 && !strcmp(argv[1], "threads")) {
    return threads_mode(atoi(argv[2]), atoi(argv[3]), atoll(argv[4]), atoi(argv[5]));
  }
  if (argc == 3 && !strcmp(argv[1], "flat")) return flat_mode(atoll(argv[2]));
  if (argc == 5 && !strcmp(argv[1], "speed")) return speed_mode(atoi(argv[2]), atoll(argv[3]), atoll(argv[4]));
  return 2;
}
