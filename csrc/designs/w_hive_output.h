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
} hive_out;

/* Makes a hive for `updaters` threads. False: out of memory. */
bool hive_out_init(hive_out *h, ps_operator *op, int32_t updaters, bool own_keys);
void hive_out_free(hive_out *h);

/* Emits all complete winsets. PS_EMPTY: the others are not complete; PS_END: there are no others and will be none;
   other codes: stopped early, the next call continues. */
ps_code hive_out_complete(hive_out *h, ps_operator *op, ps_fault *fault);

/* See design.h. */
int64_t hive_out_oldest(const hive_out *h);
int64_t hive_out_newest(const hive_out *h);

void hive_out_stats(hive_out *h, ps_stats *out);

bool hive_out_save(hive_out *h, window_visit visit, void *context); /* snapshots: see design.h */
