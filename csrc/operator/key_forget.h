/*
 * key_forget.h - removes keys that no pending tuple and no open window refers to (all designs but sliced).
 *
 * Works in sweeps, as in key_sweep.h and spec/KeySweep.tla, with batches in place of slices:
 *
 *   the spec                  here
 *   an input's map            in->keys; forgotten before the first key of a batch is looked up (key_forget_keep_up)
 *   a slice in the list       a batch in the ledger; b->sweep is the sweep that its input knew of
 *   the slice is read         the batch is settled: all of its tuples are in their windows
 *   an open slice             does not exist: the ledger takes whole batches
 *   the window                all open windows
 *
 * Windows refer to keys by address and are many, so they are not searched. Instead: once every input has a settled
 * batch of this sweep, every window that refers to a key from before the sweep exists. When the newest of these windows
 * has been emitted, no window refers to such a key, and the keys not looked up since the sweep began are removed. That
 * is later than the spec demands, never earlier.
 *
 * Roles    inputs' threads, guarded by in->lock: key_forget_keep_up. Output thread: key_forget_settled and
 *          key_forget_step, which tries the lock of inputs that are in no call.
 * Cost     an input reads one word per batch. A key stays until the windows open at its last lookup have been emitted
 *          and the table has grown by as many keys again.
 */
#pragma once

#include "operator/operator.h"

/* Input's thread, guarded by in->lock, before a key is looked up: empties the input's cache if a sweep has begun. */
void key_forget_keep_up(ps_operator *op, input *in);

/* Output thread: these batches of the input, oldest first, are settled. */
void key_forget_settled(input *in, const batch *done);

/* Output thread, at every settle: begins a sweep if one is due, or continues the current one. */
void key_forget_step(ps_operator *op);
