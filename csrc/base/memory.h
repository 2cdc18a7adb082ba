/*
 * memory.h - whose memory it is: bytes are counted where they are taken and given back.
 *
 * Whatever is taken for an operator is given back for it, but seldom by the thread that took it. So a thread enters an
 * account before it works for an operator, and what it takes and gives back meanwhile is counted there. An operator has
 * several accounts, one for each of those who work for it at the same time; only their sum means something.
 */
#pragma once

#include "base/atomics.h"
#include "base/base.h"

/* From now on the calling thread works for this account; NULL: for nobody. Gives the one before, to be entered again.
 */
ps_counter *memory_enter(ps_counter *account);

/* The block, which memory_free_large would free with this size, is not the account's any more. NULL is allowed. */
void memory_leave(const void *block, size_t bytes);
