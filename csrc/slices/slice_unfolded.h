/*
 * slice_unfolded.h - a slice with one entry per tuple.
 *
 * If most tuples of a slice have different keys, folding costs more than it saves. An unfolded slice is written
 * straight to the block that is handed over:
 *
 *   keys      [17] [4] [17] [230]            key numbers, in the order of the tuples
 *   columns   of each sum one 128-bit integer per tuple: a plain partial (partial.h)
 *
 * It enters and leaves the totals like any other, with the same results, as sums are exact. Only for counts and sums:
 * other functions need one entry per key.
 */
#pragma once

#include "slices/slice.h"

/* Whether slices of these functions can be unfolded. */
bool slice_unfolded_suits(const aggregates *functions);

/* Bytes of n tuples; *plain: all sums. */
size_t slice_unfolded_size(const aggregates *functions, int64_t n, uint64_t *plain);

/* Writes rows [from, to) of the batch, whose keys are numbers[from], ..., to `place`. False: fold the slice instead,
   because a value may be null or is outside the range of narrow sums. */
bool slice_unfolded_flatten(const aggregates *functions, const batch *b, const uint32_t *numbers, int64_t from,
                            int64_t to, void *place);
