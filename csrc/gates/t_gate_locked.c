/*
 * t_gate_locked.c - T-Gate for callers that do not keep to one thread per input and reader, such as Python's threads.
 *
 * One mutex per input and per reader, held for one call, never two at a time: calls of the same input or reader run one
 * after the other, others concurrently. t_gate.c itself has no lock.
 */
#include "gates/t_gate.h"

#include <pthread.h>

typedef struct {
  pthread_mutex_t lock;
} guard;

struct ps_t_gate {
  t_gate *gate;
  guard *guard; /* of the inputs, then of the readers */
  int32_t inputs, guards;
};

ps_code ps_t_gate_new(int32_t inputs, int32_t readers, ps_t_gate **out) {
  t_gate_options options = {.inputs = inputs, .readers = readers};
  ps_t_gate *g = memory_new(sizeof *g);
  if (!g) return PS_NO_MEMORY;
  *g = (ps_t_gate){.inputs = inputs};
  g->guard = memory_new(((size_t)inputs + (size_t)readers) * sizeof *g->guard);
  if (!g->guard || t_gate_new(&options, &g->gate) != PS_OK) {
    ps_t_gate_free(g);
    return PS_NO_MEMORY;
  }
  for (; g->guards < inputs + readers; g->guards++) {
    if (pthread_mutex_init(&g->guard[g->guards].lock, NULL) != 0) {
      ps_t_gate_free(g);
      return PS_NO_MEMORY;
    }
  }
  *out = g;
  return PS_OK;
}

void ps_t_gate_free(ps_t_gate *g) {
  if (!g) return;
  for (int32_t i = 0; i < g->guards; i++) pthread_mutex_destroy(&g->guard[i].lock);
  t_gate_free(g->gate);
  memory_free(g->guard);
  memory_free(g);
}

static guard *guard_take(ps_t_gate *g, int32_t which) {
  pthread_mutex_lock(&g->guard[which].lock);
  return &g->guard[which];
}

static void guard_release(guard *t) { pthread_mutex_unlock(&t->lock); }

ps_code ps_t_gate_insert_tuples(ps_t_gate *g, int32_t input, int64_t n, const int64_t *ts, uint64_t token,
                                ps_fault *fault) {
  const uint64_t payload[2] = {0, token};
  guard *t = guard_take(g, input);
  ps_code code = t_gate_insert_tuples(g->gate, input, n, ts, payload, fault);
  guard_release(t);
  return code;
}

ps_code ps_t_gate_heartbeat(ps_t_gate *g, int32_t input, int64_t ts, ps_fault *fault) {
  guard *t = guard_take(g, input);
  ps_code code = t_gate_heartbeat(g->gate, input, ts, fault);
  guard_release(t);
  return code;
}

void ps_t_gate_close(ps_t_gate *g, int32_t input) {
  guard *t = guard_take(g, input);
  t_gate_close(g->gate, input);
  guard_release(t);
}

enum { AT_ONCE = SIZED(64, 2) };

ps_code ps_t_gate_get_ready_tuples(ps_t_gate *g, int32_t reader, int64_t n, ps_t_gate_tuple *out, int64_t *got) {
  t_gate_tuple some[AT_ONCE];
  ps_code code = PS_OK;
  int64_t sum = 0, more = 0;
  guard *t = guard_take(g, g->inputs + reader);
  while (sum < n && code == PS_OK) {
    code = t_gate_get_ready_tuples(g->gate, reader, n - sum < AT_ONCE ? n - sum : AT_ONCE, some, &more);
    for (int64_t i = 0; i < more; i++) out[sum++] = (ps_t_gate_tuple){some[i].ts, some[i].payload[1], some[i].input};
  }
  guard_release(t);
  *got = sum;
  return sum ? PS_OK : code;
}

int64_t ps_t_gate_position(ps_t_gate *g, int32_t reader) {
  guard *t = guard_take(g, g->inputs + reader);
  int64_t position = t_gate_position(g->gate, reader);
  guard_release(t);
  return position;
}

int32_t ps_t_gate_ended(ps_t_gate *g, int32_t reader) {
  guard *t = guard_take(g, g->inputs + reader);
  bool ended = t_gate_ended(g->gate, reader);
  guard_release(t);
  return ended;
}
