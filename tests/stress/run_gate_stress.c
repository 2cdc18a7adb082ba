/*
 * run_gate_stress.c - a Run-Gate under real threads: every input has a thread that inserts runs of random length,
 * heartbeats and a close; every reader has a thread that must get all tuples in the order (ts, input, position).
 *
 *   run_gate_stress INPUTS READERS TUPLES ROUNDS
 */
#include "run_gate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  run_gate *gate;
  int32_t number;
  int32_t inputs;
  int64_t tuples;
  uint64_t random;
  int64_t *ts; /* an input's tuples; they stay until all readers are done */
  bool ok;
} actor;

static uint64_t draw(actor *a) { return hash_mix(a->random++); }

static run *reserve(actor *a) {
  run *r = run_gate_reserve(a->gate);
  if (!r) abort();
  return r;
}

static void *feed(void *argument) {
  actor *a = argument;
  int64_t ts = 0;
  for (int64_t i = 0; i < a->tuples; i++) {
    ts += (int64_t)(draw(a) % 3);
    a->ts[i] = ts;
  }
  for (int64_t i = 0; i < a->tuples;) {
    int64_t n = 1 + (int64_t)(draw(a) % 7);
    if (n > a->tuples - i) n = a->tuples - i;
    if (draw(a) % 8 == 0) run_gate_heartbeat(a->gate, a->number, reserve(a), a->ts[i]);
    run_gate_insert_run(a->gate, a->number, reserve(a), a->ts + i, n, a);
    i += n;
  }
  run_gate_close(a->gate, a->number, reserve(a));
  return NULL;
}

static void *read_all(void *argument) {
  actor *a = argument;
  int64_t *had = calloc((size_t)a->inputs, sizeof *had), last_ts = -1, total = 0;
  int32_t last_input = -1;
  run_slice s;
  ps_code code;
  a->ok = true;
  while ((code = draw(a) % 2 ? run_gate_get_next_ready_run(a->gate, a->number, &s)
                             : run_gate_get_next_ready_tuple(a->gate, a->number, &s)) != PS_END) {
    for (int64_t i = 0; code == PS_OK && i < s.n; i++, total++) {
      int64_t ts = s.ts[s.from + i];
      a->ok &= ts > last_ts || (ts == last_ts && s.input >= last_input);
      a->ok &= s.ts + s.from + i == ((actor *)s.owner)->ts + had[s.input]++; /* the next one of its input */
      last_ts = ts;
      last_input = s.input;
    }
  }
  a->ok &= total == a->inputs * a->tuples;
  free(had);
  return NULL;
}

/* Whether every reader had everything in order. In some rounds nobody reads: freeing must leave nothing. */
static bool round_once(int32_t inputs, int32_t readers, int64_t tuples, uint64_t seed) {
  run_gate gate;
  if (!run_gate_init(&gate, inputs, readers)) abort();
  int32_t n = inputs + readers, started = seed % 5 == 4 ? inputs : n;
  actor *actors = calloc((size_t)n, sizeof *actors);
  pthread_t *threads = calloc((size_t)n, sizeof *threads);
  for (int32_t i = 0; i < n; i++) {
    bool feeds = i < inputs;
    actors[i] = (actor){&gate, feeds ? i : i - inputs, inputs, tuples, seed * 1000 + (uint64_t)i * 1000003, NULL, true};
    if (feeds) actors[i].ts = calloc((size_t)tuples, sizeof(int64_t));
  }
  for (int32_t i = 0; i < started; i++) pthread_create(&threads[i], NULL, i < inputs ? feed : read_all, &actors[i]);
  bool ok = true;
  for (int32_t i = 0; i < started; i++) {
    pthread_join(threads[i], NULL);
    ok &= actors[i].ok;
  }
  run_gate_free(&gate);
  for (int32_t i = 0; i < inputs; i++) free(actors[i].ts);
  free(actors);
  free(threads);
  return ok;
}

int main(int argc, char **argv) {
  if (argc != 5) return 2;
  int32_t inputs = atoi(argv[1]), readers = atoi(argv[2]);
  int64_t tuples = atoll(argv[3]);
  int rounds = atoi(argv[4]);
  for (int i = 0; i < rounds; i++) {
    if (round_once(inputs, readers, tuples, (uint64_t)i)) continue;
    printf("round %d: a reader had too much, too little, or another order\n", i);
    return 1;
  }
  if (ps_memory_live() != 0) {
    printf("%lld allocations left\n", (long long)ps_memory_live());
    return 1;
  }
  printf("%d rounds of %d x %lld tuples, %d readers\n", rounds, inputs, (long long)tuples, readers);
  return 0;
}
