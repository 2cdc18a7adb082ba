/*
 * memory.h - accounts: bytes are counted where they are allocated and freed.
 *
 * What is allocated for an operator is freed for it, but seldom by the same thread. So a thread enters an account
 * before it works for an operator, and its allocations and frees are counted there. An operator has several accounts,
 * one per concurrent thread; only their sum is meaningful.
 */
#pragma once

#include "base/atomics.h"
#include "base/base.h"

/* From now on the calling thread's allocations count for this account; NULL: for none. Returns the previous one, to be
   entered again. */
ps_counter *memory_enter(ps_counter *account);

/* Removes a block from the account without freeing it; `bytes` as for memory_free_large. NULL is allowed. */
void memory_leave(const void *block, size_t bytes);
