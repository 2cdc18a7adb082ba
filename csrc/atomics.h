/*
 * atomics.h - the only file that spells a memory order.
 *
 * Accessors carry the name of what they are for; each says why its order is enough.
 */
#pragma once

#include <stdatomic.h>
#include <stdint.h>

typedef _Atomic int64_t ps_counter;

/* Statistics: each value stands alone and orders nothing. */
static inline int64_t ps_counter_add(ps_counter *c, int64_t n) {
  return atomic_fetch_add_explicit(c, n, memory_order_relaxed) + n;
}

static inline int64_t ps_counter_get(ps_counter *c) { return atomic_load_explicit(c, memory_order_relaxed); }

static inline void ps_counter_set(ps_counter *c, int64_t n) { atomic_store_explicit(c, n, memory_order_relaxed); }

typedef _Atomic int ps_flag;

/* A hint to another thread. Relaxed is enough wherever both sides also pass through a common mutex between setting
   what the flag is about and reading the flag; each use names that mutex. */
static inline int ps_flag_get(ps_flag *f) { return atomic_load_explicit(f, memory_order_relaxed); }

static inline void ps_flag_set(ps_flag *f, int value) { atomic_store_explicit(f, value, memory_order_relaxed); }
