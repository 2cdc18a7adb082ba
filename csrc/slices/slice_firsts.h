/*
 * slice_firsts.h - a slice folded and packed at once, where firsts are all that is asked for.
 *
 * Of a key only the first tuple in the slice matters, and how many there are. So one loop over the key numbers finds
 * which rows those are, and their values are copied straight to the place where the slice is handed over. What comes
 * out is what slice_fold and slice_pack would have made.
 */
#pragma once

#include "slices/slice.h"

/* Of how many rows, at most. */
#define SLICE_FIRSTS_ROWS_MAX ROW_BLOCK

/* Whether it can be done for these functions. */
bool slice_firsts_suit(const aggregates *functions, const partial_kind *const *kinds);

/* Packs the rows [from, to) of the batch, whose keys are `numbers[from]`, ..., to `place`, which is large enough for a
   key per row; the slice, which is empty, stays so. Gives the number of keys; -1: out of memory, or some value may be
   null, and the rows have to be folded. */
int64_t slice_firsts_pack(slice *s, const batch *b, const uint32_t *numbers, int64_t from, int64_t to, void *place);
