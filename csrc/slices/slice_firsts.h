/*
 * slice_firsts.h - a slice folded and flattened at once, for queries with nothing but firsts.
 *
 * Only the first tuple of each key matters, and the number of tuples. So one loop over the key numbers finds those
 * rows, and their values are copied to the block of memory that is handed over. The result is that of slice_fold and
 * slice_flatten.
 */
#pragma once

#include "slices/slice.h"

/* Longest slice that this shortcut takes: its row offsets are on the stack. */
#define SLICE_FIRSTS_ROWS_MAX ROW_BLOCK

/* Whether all functions are firsts without a filter. */
bool slice_firsts_suit(const aggregates *functions);

/* Flattens rows [from, to) of the batch, whose keys are numbers[from], ..., to `place`, which has room for a key per
   row. The slice is empty before and after. Returns the number of keys; -1: fold the rows, because a value may be null
   or memory ran out. */
int64_t slice_firsts_flatten(slice *s, const batch *b, const uint32_t *numbers, int64_t from, int64_t to, void *place);
