/*
 * atomics.h - the only file that spells a memory order.
 *
 * A word that several threads use without a lock is a `cell`: a struct, so that nothing but the accessors below can
 * touch it. Accessors carry the name of what they are for; each says why its order is enough and where its partner is.
 * They are made of four primitives (load, store, swap, add).
 *
 * In the release build a primitive is the C11 operation of that name and nothing else. In the model build
 * (PYSTREAM_MODEL, the extension pystream._model) it hands control to a scheduler first, which decides who goes on and,
 * within what the memory order allows, which value a load sees. For the sake of that build the lock-free code says
 *   AT(label)      before every access to a cell: the label in spec/ that this access mirrors
 *   READS(place)   before reading a plain field that another thread has written, WRITES(place) before writing one that
 *                  another thread will read: unordered pairs are data races, and freed memory must not be touched
 * All three are empty in the release build.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  _Atomic uint64_t bits;
} cell;

#ifdef PYSTREAM_MODEL

uint64_t model_load(const cell *c, memory_order order, const char *accessor);
void model_store(cell *c, uint64_t value, memory_order order, const char *accessor);
bool model_swap(cell *c, uint64_t *expected, uint64_t value, memory_order order, memory_order failed,
                const char *accessor);
uint64_t model_add(cell *c, uint64_t n, memory_order order, const char *accessor);
void model_at(const char *label, const char *file, int line);
void model_reads(const void *place, size_t bytes, const char *file, int line);
void model_writes(const void *place, size_t bytes, const char *file, int line);

#define CELL_LOAD(c, order) model_load(c, order, __func__)
#define CELL_STORE(c, value, order) model_store(c, value, order, __func__)
#define CELL_SWAP(c, expected, value, order, failed) model_swap(c, expected, value, order, failed, __func__)
#define CELL_ADD(c, n, order) model_add(c, n, order, __func__)
#define AT(label) model_at(#label, __FILE__, __LINE__)
#define READS(place) model_reads(&(place), sizeof(place), __FILE__, __LINE__)
#define WRITES(place) model_writes(&(place), sizeof(place), __FILE__, __LINE__)

#else

#define CELL_LOAD(c, order) atomic_load_explicit(&(c)->bits, order)
#define CELL_STORE(c, value, order) atomic_store_explicit(&(c)->bits, value, order)
#define CELL_SWAP(c, expected, value, order, failed) \
  atomic_compare_exchange_strong_explicit(&(c)->bits, expected, value, order, failed)
#define CELL_ADD(c, n, order) atomic_fetch_add_explicit(&(c)->bits, n, order)
#define AT(label) ((void)0)
#define READS(place) ((void)0)
#define WRITES(place) ((void)0)

#endif

/* Before the word is shared, or after everybody else has gone. Not a step of any spec. */
static inline void cell_init(cell *c, uint64_t value) { atomic_init(&c->bits, value); }

/* ---- statistics and hints ---- */

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

/* ---- pane_hive.h ---- */

/* Release: the slice and the position in the node that is linked. Partner: pane_link_read. */
static inline void pane_link_publish(cell *next, void *node) {
  CELL_STORE(next, (uint64_t)(uintptr_t)node, memory_order_release);
}

/* Acquire: what is in the node behind. Partner: pane_link_publish. */
static inline void *pane_link_read(const cell *next) {
  return (void *)(uintptr_t)CELL_LOAD(next, memory_order_acquire);
}
