/*
 * w_hive_output.h - Output of the designs that keep their windows in a W-Hive (Alg. 6): the output thread takes winsets as
 * they become complete and puts their rows out.
 */
#pragma once

#include "operator/operator.h"
#include "windows/w_hive.h"

typedef struct {
  w_hive *hive;
  win_set *taken; /* the output thread's: taken out of the hive and not put out yet */
} hive_out;

/* A hive for so many updaters. False when out of memory. */
bool hive_out_init(hive_out *h, ps_operator *op, int32_t updaters, bool own_keys);
void hive_out_free(hive_out *h);

/* Puts out all winsets that are complete. PS_EMPTY: the others are not; PS_END: there are no others and there will be
   none; anything else: it could not go on, and what is left waits for the next call. */
ps_code hive_out_complete(hive_out *h, ps_operator *op, ps_fault *fault);

/* See design.h. */
int64_t hive_out_oldest(const hive_out *h);
int64_t hive_out_newest(const hive_out *h);

void hive_out_stats(hive_out *h, ps_stats *out);

bool hive_out_save(hive_out *h, window_visit visit, void *context); /* snapshots: see design.h */
