/*
 * pane_save.h - the slices of a hive, while it stands still, as states by (begin of the slice, key).
 *
 * Inputs fold tuples as they arrive, but a snapshot is of a place in the order of tuples: tuples after it, which are
 * not ready, are saved as tuples and added again. So they are folded once more, into slices that are owed
 * (pane_saver_owe), and subtracted from the sums; for the other functions see partial_save.
 *
 * Of a slice in the front stacks (slide.c), only the best of it and of all later slices in the front is known to the
 * stacked functions. That is enough: a window that covers the slice covers those too.
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
  slide sums;    /* of one slice, all inputs together */
  void **fronts; /* of each stacked function: the front after the slices before it have left */
  uint8_t *state;
} pane_saver;

/* All: false when out of memory. */
bool pane_saver_init(pane_saver *s, pane_hive *h, const slide_keys *keys, partial_place until);
void pane_saver_free(pane_saver *s);

/* The input's rows from `from` on come after `until`; key numbers are below `limit`. */
bool pane_saver_owe(pane_saver *s, int32_t input, const batch *b, const uint32_t *numbers, int64_t from, int64_t limit);

/* Calls visit for every slice and key, begins never decreasing, until it returns false. To be called once. */
bool pane_saver_run(pane_saver *s, window_visit visit, void *context);
