/*
 * carried.h - states of a snapshot, by (start, key), until they are used. Starts never decrease. For one thread.
 *
 *   starts    0    0    0    6    6    12        windows, or slices by their begins
 *   numbers  [3]  [0]  [7]  [0]  [3]  [1]        of their keys
 *   states   [..] [..] [..] [..] [..] [..]       of aggregate.h
 *             used    ^ first
 *
 * All states of one start are used together, as a node (carried_node).
 */
#pragma once

#include "slices/pane.h"
#include "windows/window_rows.h"

typedef struct {
  bool slices; /* else windows */
  int64_t *starts;
  uint32_t *numbers; /* of the keys */
  uint8_t *states;   /* the list owns their memory */
  int64_t n, first;  /* those before `first` have been used */
  int64_t starts_capacity, numbers_capacity, states_capacity;
  uint64_t *met; /* by key number: its last start + 1 */
  int64_t met_capacity;
} carried;

void carried_free(carried *c, const aggregates *functions); /* leaves an empty list */

/* Appends a state; after PS_OK the list owns its memory. PS_CORRUPT: starts decrease, or (start, key) exists.
   PS_NO_MEMORY: nothing changed. */
ps_code carried_add(carried *c, const aggregates *functions, int64_t start, uint32_t number, const uint8_t *state);

static inline int64_t carried_left(const carried *c) { return c->n - c->first; }

/* The first unused start; carried_left must not be 0. */
static inline uint64_t carried_start(const carried *c) { return (uint64_t)c->starts[c->first]; }

/* A node of the states of that start; it refers to their memory. Key numbers are below `limit`. NULL: out of memory. */
pane *carried_node(const carried *c, const pane_plan *plan, int64_t limit);

/* Visits the unused states. */
bool carried_visit(const carried *c, const aggregates *functions, const key_table *table, window_visit visit,
                   void *context);
