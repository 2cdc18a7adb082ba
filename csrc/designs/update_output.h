/*
 * update_output.h - Update and Output by one thread (the paper's update_output), for designs in which the output thread
 * also updates: a list of open winsets, updated in tuple order and emitted as they become complete.
 */
#pragma once

#include "operator/operator.h"

typedef struct {
  window_list windows; /* of the output thread, except the counter of windows */
} update_output;

void update_output_init(update_output *u, ps_operator *op);
void update_output_free(update_output *u);

/* Output: emits the winsets that no tuple at or after `ts` can be in, or all. */
ps_code update_output_complete(update_output *u, ps_operator *op, int64_t ts, ps_fault *fault);
ps_code update_output_all(update_output *u, ps_operator *op, ps_fault *fault);

/* Update, in two steps, so that a tuple is dequeued only when there is room for the rows it completes. After
   update_output_begin returned PS_OK, either update or skip must follow. */
ps_code update_output_begin(ps_operator *op);
ps_code update_output_update(update_output *u, ps_operator *op, const batch *b, int64_t row);
void update_output_skip(ps_operator *op);

void update_output_stats(update_output *u, ps_stats *out);

/* Snapshots: see design.h. */
bool update_output_save(const update_output *u, window_visit visit, void *context);
ps_code update_output_load(update_output *u, int64_t start, const key *k, const uint8_t *state);
void update_output_number(update_output *u, int64_t next);
