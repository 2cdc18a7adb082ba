/*
 * t_gate_input.h - Add of the designs that merge through a T-Gate (Alg. 3): the input's thread inserts its tuples,
 * workers read them merged.
 *
 * Every reader is a worker, and is rung when there may be something for it. Payload of a tuple: its batch and row.
 */
#pragma once

#include "operator/operator.h"
#include "gates/t_gate.h"

/* Reader r of the gate is worker `first + r`. */
typedef struct {
  t_gate *gate;
  int32_t first, readers;
} gate_in;

bool gate_in_init(gate_in *g, ps_operator *op, int32_t first, int32_t readers);
void gate_in_free(gate_in *g);

void gate_in_add(gate_in *g, ps_operator *op, int32_t which, batch *b);
void gate_in_heartbeat(gate_in *g, ps_operator *op, int32_t which, int64_t ts);
bool gate_in_piles(ps_operator *op, int32_t which, int64_t ts); /* see design.h */
void gate_in_close(gate_in *g, ps_operator *op, int32_t which);

static inline batch *gate_batch(const t_gate_tuple *t) { return (batch *)(uintptr_t)t->payload[0]; }
static inline int64_t gate_row(const t_gate_tuple *t) { return (int64_t)t->payload[1]; }
