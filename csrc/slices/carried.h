/*
 * carried.h - states by (start, key) from a snapshot, starts never decreasing; for one thread.
 *
 *   starts    0    0    0    6    6    12        windows, or slices by their begins
 *   numbers  [3]  [0]  [7]  [0]  [3]  [1]        of their keys
 *   states   [..] [..] [..] [..] [..] [..]       of aggregate.h
 *             used    ^ first
 *
 * The states of the first start left are used together, as a node (carried_node).
 */
#pragma once

#include "slices/pane.h"
#include "windows/window_rows.h"

typedef struct {
  bool slices; /* or windows */
  int64_t *starts;
  uint32_t *numbers; /* of the keys */
  uint8_t *states;   /* owned */
  int64_t n, first;  /* those before `first` have been used */
  int64_t starts_capacity, numbers_capacity, states_capacity;
  uint64_t *met; /* by key number: its last start + 1 */
  int64_t met_capacity;
} carried;

void carried_free(carried *c, const aggregates *functions); /* empty then */

/* Appends a state; PS_OK: the list owns its memory. PS_CORRUPT: starts decrease, or (start, key) is in the list.
   PS_NO_MEMORY: nothing has changed. */
ps_code carried_add(carried *c, const aggregates *functions, int64_t start, uint32_t number, const uint8_t *state);

static inline int64_t carried_left(const carried *c) { return c->n - c->first; }

/* The first start left. */
static inline uint64_t carried_start(const carried *c) { return (uint64_t)c->starts[c->first]; }

/* The states of that start as a node, which refers to them; key numbers are below `limit`. NULL: out of memory. */
pane *carried_node(const carried *c, const pane_plan *plan, int64_t limit);

/* Visits the states left. */
bool carried_visit(const carried *c, const aggregates *functions, const key_table *table, window_visit visit,
                   void *context);
