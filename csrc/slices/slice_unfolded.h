/*
 * slice_unfolded.h - a slice handed over without being folded: one entry per tuple.
 *
 * Where most tuples of a slice are of different keys, folding them is more work than it saves: finding each key's
 * entry, packing the entries. A unfolded slice is written straight to the place where it is handed over:
 *
 *   keys      [17] [4] [17] [230]            key numbers, in the order of the tuples
 *   columns   of each sum one 128-bit integer per tuple: a plain partial (partial.h)
 *
 * It enters and leaves the totals like any other. Since sums are exact, nobody can tell from the results whether a
 * slice was unfolded. Only counts and sums can be: min, max, first and last want one entry per key.
 */
#pragma once

#include "slices/slice.h"

/* Whether slices of these functions can be unfolded. */
bool slice_unfolded_suits(const aggregates *functions, const partial_kind *const *kinds);

/* The bytes that n tuples take, and which sums are plain: all. */
size_t slice_unfolded_size(const aggregates *functions, const partial_kind *const *kinds, int64_t n, uint64_t *plain);

/* Writes the rows [from, to) of the batch, whose keys are `numbers[from]`, ..., to `place`. False: some value is null,
   or not within the range of narrow sums; then the slice has to be folded. */
bool slice_unfolded_pack(const aggregates *functions, const partial_kind *const *kinds, const batch *b,
                         const uint32_t *numbers, int64_t from, int64_t to, void *place);
