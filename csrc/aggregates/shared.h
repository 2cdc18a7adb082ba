/*
 * shared.h - a window's state in words that several threads add to at the same time, without a lock.
 *
 * A state of aggregate.h has one writer. Where the function allows it, a window may be kept as words instead: count, sum,
 * avg, min and max of fixed-width values. Each word changes in one atomic step (window_process, window_carry and
 * window_swap of spec/WHive.tla), so that no tuple is lost; which words belong to which tuple does not matter, since only
 * what they amount to in the end is looked at:
 *
 *   count      | n |
 *   integers   | low | high | n |                 what the low word held in the step that added to it says whether it ran
 *   floats     | low | high | top | wide | n |    over; one more is then added to the next word (exact_sum.h: narrow units)
 *   min, max   | rank | present |                 the rank is swapped while a better one is brought
 *
 * All words zero: no tuple. Whoever takes the result has acquired what all adders published (W-Hive, G1), so the words
 * need no order among themselves: all steps are relaxed, but for the link to the wide block of a float sum.
 *
 * Roles       adders, any number at a time: reserve, add. One reader, alone: take, drop. Before all of them: put.
 * Guarantees  G1 every add counts, once; the result does not depend on the order of steps.
 * Progress    wait-free, but for min and max and the first wide value, which repeat only because another add succeeded.
 */
#pragma once

#include "aggregates/aggregate.h"
#include "base/atomics.h"

/* Of a window's words, which begin with a mark that a tuple fell into it. Wants all->words > 0. */
void shared_init(const aggregates *all, cell *words);
bool shared_is_empty(const cell *words);

/* Whether adding the row wants shared_reserve first; the same for all windows. */
bool shared_is_rare(const aggregates *all, const batch *b, int64_t row);
bool shared_reserve(const aggregates *all, cell *words, const batch *b, int64_t row);
void shared_row(const aggregates *all, cell *words, const batch *b, int64_t row);

/* Fills a state that is all zero. False: out of memory; the caller drops the state either way. */
bool shared_take(const aggregates *all, const cell *words, uint8_t *state);
/* Copies a state into words that are empty. False: out of memory. */
bool shared_put(const aggregates *all, cell *words, const uint8_t *state);
void shared_drop(const aggregates *all, cell *words);
