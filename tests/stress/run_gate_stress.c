/*
 * run_gate_stress.c - a Run-Gate under real threads: every input has a thread that inserts runs of random length,
 * heartbeats and a close; every reader has a thread that must get all tuples in the order (ts, input, position), by all
 * three calls in turn, or by blocks alone.
 *
 *   run_gate_stress INPUTS READERS TUPLES ROUNDS
 */
#include "gates/run_gate.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct {
  run_gate *gate;
  int32_t number;
  int32_t inputs;
  int64_t tuples;
  uint64_t random;
  int64_t run_max; /* tuples */
  int64_t *ts;     /* an input's tuples; they stay until all readers are done */
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
    int64_t n = 1 + (int64_t)(draw(a) % (uint64_t)a->run_max);
    if (n > a->tuples - i) n = a->tuples - i;
    if (draw(a) % 8 == 0) run_gate_heartbeat(a->gate, a->number, reserve(a), a->ts[i]);
    run_gate_insert_run(a->gate, a->number, reserve(a), a->ts + i, n, a);
    i += n;
  }
  run_gate_close(a->gate, a->number, reserve(a));
  return NULL;
}

static ps_code get(actor *a, bool blocks, run_block *b) {
  b->n = 0;
  switch (blocks ? 2 : draw(a) % 3) {
    case 0: return run_gate_get_next_ready_run(a->gate, a->number, &b->slice);
    case 1: return run_gate_get_next_ready_tuple(a->gate, a->number, &b->slice);
    default: return run_gate_get_next_ready_block(a->gate, a->number, b);
  }
}

/* What a reader has had: how many of each input, and the last one. */
typedef struct {
  int64_t *of, total, ts;
  int32_t input;
} had;

/* The tuples are not below the last one, and the next of their input. */
static bool follow(had *h, const run_slice *s) {
  bool ok = true;
  for (int64_t i = s->from; i < s->from + s->n; i++) {
    ok &= s->ts[i] > h->ts || (s->ts[i] == h->ts && s->input >= h->input);
    ok &= s->ts + i == ((actor *)s->owner)->ts + h->of[s->input]++;
    h->total++;
    h->ts = s->ts[i];
    h->input = s->input;
  }
  return ok;
}

static bool check(had *h, run_block *b) {
  bool ok = b->n > 0 || follow(h, &b->slice);
  while (b->n > 0) {
    run_slice slice = run_block_next(b);
    ok &= follow(h, &slice);
  }
  return ok;
}

static void *read_all(void *argument) {
  actor *a = argument;
  had h = {calloc((size_t)a->inputs, sizeof(int64_t)), 0, -1, -1};
  bool blocks = draw(a) % 2;
  run_block b;
  a->ok = true;
  for (ps_code code; (code = get(a, blocks, &b)) != PS_END;) {
    if (code == PS_OK) a->ok &= check(&h, &b);
  }
  a->ok &= h.total == a->inputs * a->tuples;
  free(h.of);
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
    actors[i] = (actor){.gate = &gate, .number = feeds ? i : i - inputs, .inputs = inputs, .tuples = tuples};
    actors[i].random = seed * 1000 + (uint64_t)i * 1000003;
    actors[i].run_max = seed % 2 ? 7 : 200; /* short runs, and such that blocks pay */
    actors[i].ok = true;
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
