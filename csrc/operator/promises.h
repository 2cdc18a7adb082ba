/*
 * promises.h - which heartbeats a design gets, and when.
 *
 * Ours, not in the paper. Specified in spec/Promises.tla; read that first.
 *
 * In a gate or a list of slices a heartbeat is a node, and nodes are held while another input is silent. So such a
 * heartbeat is only noted in in->latest: the input owes it. When the output thread has nothing to do, it delivers the
 * heartbeat owed by the input that blocks it, the one with the lowest (told, number), guarded by that input's lock.
 * A batch or a close replaces what was owed.
 *
 * Roles       inputs' threads, guarded by in->lock: note, kept. Output thread: tell, owes.
 * Invariants  I1 in->told is what the design knows, in->latest what was promised; they differ exactly if the input
 *                owes.
 *             I2 of the heartbeats delivered to a design for one input, the output thread's reader has passed all but
 *                at most one: memory does not depend on the number of heartbeats.
 * Progress    an input's thread that owes something before or after its call rings the output thread after it released
 *             the lock. The output thread only tries that lock, because a thread that pauses the operator holds all
 *             of them and waits for the output thread.
 */
#pragma once

#include "operator/operator.h"

/* The input promises ts, above all its promises so far; the design has reserved memory for it. */
void promises_note(ps_operator *op, int32_t which, int64_t ts);

/* The design knows the input up to ts (INT64_MAX: closed), so it owes nothing. Returns whether it did. */
bool promises_kept(ps_operator *op, input *in, int64_t ts);

static inline bool promises_owes(input *in) { return ps_flag_get(&in->owes); }

/* Output thread, when it has nothing to do: delivers what is owed. Returns whether there was anything. */
bool promises_tell(ps_operator *op);
