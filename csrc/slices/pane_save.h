/*
 * pane_save.h - saves the slices of a paused hive as states by (begin of the slice, key).
 *
 * A snapshot is taken at a place in the order of tuples. Tuples after it are not ready: they are saved as tuples and
 * added again after loading. But slices contain them already, as inputs fold tuples on arrival. So they are folded once
 * more, into owed slices (pane_saver_owe), which are subtracted from the sums; other functions: see partial_save.
 *
 * For a slice in the front stacks (slide.c), stacked functions know only the best value of it and all later slices in
 * the front. That is enough: a window that covers the slice covers those too.
 */
#pragma once

#include "slices/pane_hive.h"

typedef struct {
  pane *node;
  pane_loan loan;
} pane_source;

typedef struct {
  pane_hive *hive;
  const pane_plan *plan;
  partial_place until;
  pane_source *source; /* all slices */
  int64_t n, capacity;
  slide sums;    /* of the slices of one edge, all inputs */
  void **fronts; /* per stacked function: the front without the slices saved so far */
  uint8_t *state;
} pane_saver;

/* False: out of memory. */
bool pane_saver_init(pane_saver *s, pane_hive *h, const slide_keys *keys, partial_place until);
void pane_saver_free(pane_saver *s);

/* The input's rows from `from` on are after `until`; key numbers are below `limit`. */
bool pane_saver_owe(pane_saver *s, int32_t input, const batch *b, const uint32_t *numbers, int64_t from, int64_t limit);

/* Calls visit for every slice and key, begins never decreasing, until it returns false. May be called once. */
bool pane_saver_run(pane_saver *s, window_visit visit, void *context);
