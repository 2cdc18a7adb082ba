/*
 * promises.h - which heartbeats reach a design, and when.
 *
 * Ours, not in the paper; spec/Promises.tla is the text to read first.
 *
 * In a gate or a list of slices a heartbeat is a node, and nodes behind a silent input are held. So such a heartbeat is
 * only noted (in->latest): the input owes it. The output thread, when it finds nothing to do, tells the design what the
 * input owes that holds it up, the one with the lowest (told, number), under that input's lock. A batch or a close says
 * more than what was owed.
 *
 * Roles       inputs' threads, under in->lock: note, kept. The output thread: tell, owes.
 * Invariants  I1 in->told is what the design knows, in->latest what was promised; they differ just if the input owes.
 *             I2 of the heartbeats that a design was told of an input, at most one has not been passed by the reader
 *             with the output thread, so that memory does not depend on how many there are.
 * Progress    who owes something in the end, or did in the beginning, rings the output thread when the lock is free
 *             again: that one only tries for it, because who pauses the operator has all locks and waits for it.
 */
#pragma once

#include "operator/operator.h"

/* The input promises ts, above all that it has promised; the design has reserved memory for it. */
void promises_note(ps_operator *op, int32_t which, int64_t ts);

/* The input is told to the design up to ts, INT64_MAX for ever: it owes nothing. Whether it did. */
bool promises_kept(ps_operator *op, input *in, int64_t ts);

static inline bool promises_owes(input *in) { return ps_flag_get(&in->owes); }

/* The output thread, having nothing to do: whether the design has been told anything. */
bool promises_tell(ps_operator *op);
