/*
 * key_sweep.h - keys that nothing refers to any more give back their numbers and memory.
 *
 * Ours, not in the paper; spec/KeySweep.tla is the text to read first, and the labels there are the AT(...) here. This
 * file has what all designs share, in the words of the sliced one; the others hand over batches instead of slices:
 * key_forget.h.
 *
 * A number is in a window, in slices on their way to it, in an input's private slice, in its map of keys, or in the
 * batch at hand. The window is all that the output thread sees. So it begins a sweep and says so; each input, before it
 * next looks up a key, forgets its map, and its slices from then on bear the sweep's number (pane.h). When such a slice
 * of every input has been read, the numbers from before are in the window or nowhere: keys go that are not listed there
 * (key_order.h) and that no input has asked the table for since the sweep began.
 *
 * Roles    inputs' threads: key_sweep_said. The output thread: key_sweep_step. They may run together.
 * Cost     an input reads one word per batch, which stays in its cache; after a sweep it asks the table once more for
 *          each key. The output thread goes over all numbers, a share with each window. A sweep begins when the table
 *          has become twice as large as what the last one left of it, and has twice as many keys as the window: so a
 *          stream whose keys stay is never swept, and one whose keys go and come back pays for each of them about what
 *          it costs to list it in the window again.
 *
 * Invariants
 *   I1  a number that anybody holds stands for the key it was learnt for
 *   I2  a key that is not listed and bears an old stamp is in no slice and no map, from the time that all inputs have
 *       swept until the next sweep begins
 *   I3  memory: about twice the keys that were needed at the last sweep or are in the window, and SWEEP_LEAST; arrays
 *       by key number are as long as there have been keys at one time
 * Progress   a silent input whose slices are not all read, or that has one begun, holds a sweep up, as it holds up the
 *            windows behind them; for others, closed or not, the output thread takes their lock (pane_hive_skip).
 */
#pragma once

#include "keys/key_order.h"

typedef struct {
  cell word;         /* the sweep that was begun last; 0: none */
  uint8_t apart[64]; /* what the inputs read from what the output thread writes */
  key_table *table;  /* all of these are the output thread's */
  uint32_t number;   /* of the sweep */
  bool under_way;    /* it has begun and not ended */
  int64_t next, end; /* numbers to go over; next = 0: not all inputs have swept yet, or nothing is done */
  int64_t kept;      /* of the keys that were there when it began, those that it has left */
} key_sweep;

void key_sweep_init(key_sweep *s, key_table *table);

/* An input: the sweep that was begun last. */
static inline uint32_t key_sweep_said(const key_sweep *s) {
  AT(add_sweep);
  return (uint32_t)sweep_read(&s->word);
}

/* The output thread: the sweep that waits for inputs; 0: none does. */
static inline uint32_t key_sweep_awaited(const key_sweep *s) { return s->under_way && s->next == 0 ? s->number : 0; }

/* The output thread, now and then: begins a sweep if it is time, or goes on with one. `listed`: the keys that windows
   refer to; NULL: none of those that would be freed. `swept`: if the sweep is awaited, whether it need not be any more.
 */
void key_sweep_step(key_sweep *s, const key_order *listed, bool swept);
