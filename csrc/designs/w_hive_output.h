/*
 * w_hive_output.h - Output of the designs that keep their windows in a W-Hive (Alg. 6): the output thread takes winsets
 * as they become complete and emits their rows.
 */
#pragma once

#include "operator/operator.h"
#include "windows/w_hive.h"

typedef struct {
  w_hive *hive;
  win_set *taken; /* output thread: taken out of the hive and not emitted yet */
} w_hive_output;

/* Makes a hive for `updaters` threads. False: out of memory. */
bool w_hive_output_init(w_hive_output *h, ps_operator *op, int32_t updaters, w_hive_sharing sharing);
void w_hive_output_free(w_hive_output *h);

/* Emits all complete winsets. PS_EMPTY: the others are not complete; PS_END: there are no others and will be none;
   other codes: stopped early, the next call continues. */
ps_code w_hive_output_complete(w_hive_output *h, ps_operator *op, ps_fault *fault);

/* See design.h. */
int64_t w_hive_output_oldest(const w_hive_output *h);
int64_t w_hive_output_newest(const w_hive_output *h);

void w_hive_output_stats(w_hive_output *h, ps_stats *out);

bool w_hive_output_save(w_hive_output *h, window_visit visit, void *context); /* snapshots: see design.h */
