/* t_gate_input.c - see t_gate_input.h. */
#include "designs/t_gate_input.h"

#define RING_EVERY SIZED(256, 2) /* tuples between two rings: sleeping readers start early on a long batch */

bool gate_in_init(gate_in *g, ps_operator *op, int32_t first, int32_t readers) {
  *g = (gate_in){.first = first, .readers = readers};
  return t_gate_new(&(t_gate_options){.inputs = op->inputs, .readers = readers, .levels = op->levels}, &g->gate) ==
         PS_OK;
}

void gate_in_free(gate_in *g) { t_gate_free(g->gate); }

static void ring_readers(gate_in *g, ps_operator *op) {
  for (int32_t r = 0; r < g->readers; r++) operator_ring(op, g->first + r);
}

/* Cannot fail: the operator has checked the order and reserved memory, and calls nothing after a close. */
static void expect(ps_code code) {
  assert(code == PS_OK);
  (void)code;
}

void gate_in_add(gate_in *g, ps_operator *op, int32_t which, batch *b) {
  ps_fault fault;
  const int64_t *ts = (const int64_t *)b->columns[0].values + b->columns[0].first;
  int64_t rows = b->rows; /* after the last insert b may be freed */
  for (int64_t row = 0; row < rows; row += RING_EVERY) {
    int64_t n = rows - row < RING_EVERY ? rows - row : RING_EVERY;
    const uint64_t payload[2] = {(uintptr_t)b, (uint64_t)row};
    expect(t_gate_insert_tuples(g->gate, which, n, ts + row, payload, &fault));
    ring_readers(g, op);
  }
}

void gate_in_heartbeat(gate_in *g, ps_operator *op, int32_t which, int64_t ts) {
  ps_fault fault;
  expect(t_gate_heartbeat(g->gate, which, ts, &fault));
  ring_readers(g, op);
}

bool gate_in_piles(ps_operator *op, int32_t which, int64_t ts) {
  (void)op, (void)which, (void)ts; /* each heartbeat is a node of the gate */
  return true;
}

void gate_in_close(gate_in *g, ps_operator *op, int32_t which) {
  t_gate_close(g->gate, which);
  ring_readers(g, op);
}
