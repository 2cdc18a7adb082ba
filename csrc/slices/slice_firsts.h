/*
 * slice_firsts.h - folds and flattens a slice in one step, for queries whose functions are all firsts.
 *
 * Only the first tuple of each key and the number of tuples matter. One loop over the key numbers finds them; values
 * are copied to the block that is handed over. Same result as slice_fold and slice_flatten.
 */
#pragma once

#include "slices/slice.h"

/* Longest slice this shortcut takes: its row offsets are on the stack. */
#define SLICE_FIRSTS_ROWS_MAX ROW_BLOCK

/* Whether all functions are firsts without a filter. */
bool slice_firsts_suit(const aggregates *functions);

/* Flattens rows [from, to) of the batch, whose keys are numbers[from], ..., to `place`, which has room for a key per
   row. The slice is empty before and after. Returns the number of keys; -1: fold the rows instead, because a value may
   be null or memory ran out. */
int64_t slice_firsts_flatten(slice *s, const batch *b, const uint32_t *numbers, int64_t from, int64_t to, void *place);
