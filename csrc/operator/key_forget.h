/*
 * key_forget.h - keys leave that no pending tuple and no open window refers to (all designs but sliced).
 *
 * In sweeps, as key_sweep.h says and spec/KeySweep.tla specifies, with batches in place of slices:
 *
 *   the spec                  here
 *   an input's map            in->keys; forgotten before the first key of a batch is looked up (key_forget_keep_up)
 *   a slice in the list       a batch in the ledger; b->sweep is the sweep that its input knew of
 *   the slice is read         the batch is settled: all of its tuples are in their windows
 *   an open slice             there is none: a batch goes into the ledger whole
 *   the window                all windows that are open
 *
 * Windows refer to keys by address and are many, so nobody looks for a key in them. Instead, once a batch of the sweep
 * has been settled of every input, every window that refers to a key from before exists: when the newest of these has
 * left, such keys are in no window, and those go that nobody has asked the table for since the sweep began. That is
 * later than the spec demands, never earlier.
 *
 * Roles    inputs' threads, under in->lock: key_forget_keep_up. The output thread: key_forget_settled and
 *          key_forget_step; it takes the lock of inputs that are in no call, if it is free.
 * Cost     an input reads one word per batch. A key stays until the windows that were open when it was last met are
 *          out, and as many keys again have come.
 */
#pragma once

#include "operator/operator.h"

/* An input's thread, under in->lock, before it looks up keys: forgets those that it knows if a sweep has begun. */
void key_forget_keep_up(ps_operator *op, input *in);

/* The output thread: these batches of the input, oldest first, are settled. */
void key_forget_settled(input *in, const batch *done);

/* The output thread, now and then: begins a sweep if it is time, or goes on with one. */
void key_forget_step(ps_operator *op);
