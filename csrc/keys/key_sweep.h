/*
 * key_sweep.h - removes keys that nothing refers to; their numbers and memory are reused.
 *
 * Ours, not in the paper. Specified in spec/KeySweep.tla; read that first: its labels are the AT(...) here. This file
 * holds what all designs share, in terms of the sliced design; the others have batches in place of slices:
 * key_forget.h.
 *
 * A number may be in a window, in slices on their way to it, in an input's private slice, in its map of keys, or in its
 * current batch. The output thread sees only the window. So it begins a sweep and publishes its number. Each input,
 * before its next lookup of a key, empties its map, and its slices from then on carry the sweep's number (pane.h). When
 * such a slice of every input has been read, numbers from before the sweep are in the window or nowhere. Then keys are
 * removed that are not listed there (key_order.h) and were not looked up in the table since the sweep began.
 *
 * Roles    inputs' threads: key_sweep_current. Output thread: key_sweep_step. They may run together.
 * Cost     an input reads one word per batch, which stays in its cache; after a sweep it looks up each key in the table
 *          once more. The output thread visits all numbers, a share per window. A sweep begins when the table has twice
 *          as many keys as the last sweep has left and as the window has. So a stream with constant keys is never
 *          swept, and one whose keys come and go pays per key about what listing it in the window again costs.
 *
 * Invariants
 *   I1  a number that any thread holds is of the key for which it was learned
 *   I2  a key that is not listed and has an old stamp is in no slice and no map, from the time when all inputs have
 *       swept until the next sweep begins
 *   I3  memory: about twice the keys that were needed at the last sweep or are in the window, and SWEEP_LEAST; arrays
 *       by key number are as long as there were keys at one time
 * Progress   a silent input that has unread slices, or one begun, delays a sweep, as it delays the windows after them;
 *            for other silent inputs, closed or not, the output thread takes their lock (pane_hive_skip).
 */
#pragma once

#include "keys/key_order.h"

typedef struct {
  cell word;         /* the sweep begun last; 0: none */
  uint8_t apart[64]; /* separates what the inputs read from what the output thread writes */
  key_table *table;  /* from here on used only by the output thread */
  uint32_t number;   /* of the sweep */
  bool under_way;    /* begun and not ended */
  int64_t next, end; /* numbers to visit; next = 0: some input has not swept yet, or no number is visited */
  int64_t kept;      /* keys that existed when it began and are not removed */
} key_sweep;

void key_sweep_init(key_sweep *s, key_table *table);

/* Input: the sweep begun last. */
static inline uint32_t key_sweep_current(const key_sweep *s) {
  AT(add_sweep);
  return (uint32_t)sweep_read(&s->word);
}

/* Output thread: the sweep that waits for inputs; 0: none. */
static inline uint32_t key_sweep_awaited(const key_sweep *s) { return s->under_way && s->next == 0 ? s->number : 0; }

/* Output thread, regularly: begins a sweep if one is due, or continues it. `listed`: the keys that windows refer to;
   NULL: to none that may be removed. `swept`: if the sweep is awaited, whether all inputs have swept. */
void key_sweep_step(key_sweep *s, const key_order *listed, bool swept);
