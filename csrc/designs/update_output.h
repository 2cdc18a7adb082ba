/*
 * update_output.h - Update and Output by one thread (the paper's update_output), for designs in which the output thread
 * also updates: a list of open winsets, updated in tuple order and emitted as they become complete. The state of such a
 * design begins with an update_output.
 */
#pragma once

#include "operator/operator.h"

typedef struct {
  window_list windows; /* of the output thread, except the counter of windows */
} update_output;

void update_output_init(ps_operator *op);
void update_output_free(ps_operator *op);

/* Output: emits the winsets that no tuple at or after `ts` can be in, or all. */
ps_code update_output_complete(ps_operator *op, int64_t ts, ps_fault *fault);
ps_code update_output_all(ps_operator *op, ps_fault *fault);

/* A step without a ready tuple, because merging gave `got`: Output up to `position`, or if PS_END of all; settles.
   Returns `got`. */
ps_code update_output_idle(ps_operator *op, ps_code got, int64_t position, ps_fault *fault);

/* Update, in two steps, so that a tuple is dequeued only when there is room for the rows it completes. After
   update_output_begin returned PS_OK, either update or skip must follow. */
ps_code update_output_begin(ps_operator *op);
ps_code update_output_update(ps_operator *op, const batch *b, int64_t row);
void update_output_skip(ps_operator *op);

/* Entries of the table of functions: see design.h. */
int64_t update_output_oldest(ps_operator *op);
int64_t update_output_newest(ps_operator *op);
bool update_output_save(ps_operator *op, window_visit visit, void *context);
ps_code update_output_load(ps_operator *op, int64_t start, const key *k, const uint8_t *state);
void update_output_number(ps_operator *op, int64_t next);
void update_output_stats(ps_operator *op, ps_stats *out);
