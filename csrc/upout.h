/*
 * upout.h - Update and Output by one thread (the paper's upout), for the designs in which the output thread also
 * updates: the list of open winsets, into which tuples go in their order and from which complete winsets leave.
 */
#pragma once

#include "operator.h"

typedef struct {
  window_list windows; /* the output thread's, but for the number of windows */
} upout;

void upout_init(upout *u, ps_operator *op);
void upout_free(upout *u);

/* Output: puts out the winsets that no tuple at or after `ts` can fall into, or all. */
ps_code upout_complete(upout *u, ps_operator *op, int64_t ts, ps_fault *fault);
ps_code upout_all(upout *u, ps_operator *op, ps_fault *fault);

/* Update, in two steps, so that a tuple is taken only when there is a place for what it brings. If begin gives PS_OK,
   either update or skip must follow. */
ps_code upout_begin(ps_operator *op);
ps_code upout_update(upout *u, ps_operator *op, const batch *b, int64_t row);
void upout_skip(ps_operator *op);

void upout_stats(upout *u, ps_stats *out);

/* Snapshots: see design.h. */
bool upout_save(const upout *u, window_visit visit, void *context);
ps_code upout_load(upout *u, int64_t start, const key *k, const uint8_t *state);
void upout_number(upout *u, int64_t next);
