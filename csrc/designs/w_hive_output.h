/*
 * w_hive_output.h - Output of the designs that keep their windows in a W-Hive (Alg. 6): the output thread takes winsets
 * as they become complete and emits their rows. The state of such a design begins with a w_hive_output.
 */
#pragma once

#include "operator/operator.h"
#include "windows/w_hive.h"

typedef struct {
  w_hive *hive;
  win_set *taken; /* output thread: taken out of the hive and not emitted yet */
} w_hive_output;

/* Makes a hive for `updaters` threads. False: out of memory. */
bool w_hive_output_init(ps_operator *op, int32_t updaters, w_hive_sharing sharing);
void w_hive_output_free(ps_operator *op);

/* Emits all complete winsets. PS_EMPTY: the others are not complete; PS_END: there are no others and will be none;
   other codes: stopped early, the next call continues. */
ps_code w_hive_output_complete(ps_operator *op, ps_fault *fault);

/* Entries of the table of functions: see design.h. */
int64_t w_hive_output_oldest(ps_operator *op);
int64_t w_hive_output_newest(ps_operator *op);
bool w_hive_output_save(ps_operator *op, window_visit visit, void *context);
void w_hive_output_stats(ps_operator *op, ps_stats *out);
