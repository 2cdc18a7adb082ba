/*
 * atomics.h - the only file that spells a memory order.
 *
 * A word that several threads use without a lock is a `cell`: a struct, so that only the accessors below can touch it.
 * Accessors are named after their use; each documents why its order is enough and which accessor is its partner. They
 * are made of four primitives (load, store, swap, add).
 *
 * In the release build a primitive is the C11 operation of that name and nothing else. In the model build
 * (PYSTREAM_MODEL, the extension pystream._model) it first calls a scheduler, which decides which thread continues and,
 * within what the memory order allows, which value a load returns. For that build the lock-free code has
 *   AT(label)      before every access to a cell: the label in spec/ that this access mirrors
 *   READS(place)   before reading a plain field that another thread has written, WRITES(place) before writing one that
 *                  another thread will read: unordered pairs are data races, and freed memory must not be touched
 * All three are empty in the release build. Stress drivers are also built with PYSTREAM_SHAKE: real threads that
 * sometimes yield the processor at an AT, so that rare interleavings become common.
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

void model_init(cell *c, uint64_t value);
uint64_t model_load(const cell *c, memory_order order, const char *accessor);
void model_store(cell *c, uint64_t value, memory_order order, const char *accessor);
bool model_swap(cell *c, uint64_t *expected, uint64_t value, memory_order order, memory_order failed,
                const char *accessor);
uint64_t model_add(cell *c, uint64_t n, memory_order order, const char *accessor);
void model_at(const char *label, const char *file, int line);
void model_reads(const void *place, size_t bytes, const char *file, int line);
void model_writes(const void *place, size_t bytes, const char *file, int line);

#define CELL_INIT(c, value) model_init(c, value)
#define CELL_LOAD(c, order) model_load(c, order, __func__)
#define CELL_STORE(c, value, order) model_store(c, value, order, __func__)
#define CELL_SWAP(c, expected, value, order, failed) model_swap(c, expected, value, order, failed, __func__)
#define CELL_ADD(c, n, order) model_add(c, n, order, __func__)
#define AT(label) model_at(#label, __FILE__, __LINE__)
#define READS(place) model_reads(&(place), sizeof(place), __FILE__, __LINE__)
#define WRITES(place) model_writes(&(place), sizeof(place), __FILE__, __LINE__)

#else

#ifdef PYSTREAM_SHAKE
#include <sched.h>

static inline void shake(void) {
  static _Thread_local uint64_t dice;
  dice = dice * 6364136223846793005u + (uintptr_t)&dice;
  if (dice >> 61 == 0) sched_yield();
}
#endif

#define CELL_INIT(c, value) atomic_init(&(c)->bits, value)
#define CELL_LOAD(c, order) atomic_load_explicit(&(c)->bits, order)
#define CELL_STORE(c, value, order) atomic_store_explicit(&(c)->bits, value, order)
#define CELL_SWAP(c, expected, value, order, failed) \
  atomic_compare_exchange_strong_explicit(&(c)->bits, expected, value, order, failed)
#define CELL_ADD(c, n, order) atomic_fetch_add_explicit(&(c)->bits, n, order)
#ifdef PYSTREAM_SHAKE
#define AT(label) shake()
#else
#define AT(label) ((void)0)
#endif
#define READS(place) ((void)0)
#define WRITES(place) ((void)0)

#endif

/* Before the word is shared, or when only one thread is left. Not a step of any spec. */
static inline void cell_init(cell *c, uint64_t value) { CELL_INIT(c, value); }

/* ---- statistics and hints ---- */

typedef _Atomic int64_t ps_counter;

/* Statistics: each value stands alone and orders nothing. */
static inline int64_t ps_counter_add(ps_counter *c, int64_t n) {
  return atomic_fetch_add_explicit(c, n, memory_order_relaxed) + n;
}

static inline int64_t ps_counter_get(ps_counter *c) { return atomic_load_explicit(c, memory_order_relaxed); }

static inline void ps_counter_set(ps_counter *c, int64_t n) { atomic_store_explicit(c, n, memory_order_relaxed); }

typedef _Atomic int ps_flag;

/* A hint to another thread. Relaxed is enough where both threads also take a common mutex between setting what the flag
   is about and reading the flag; each use names that mutex. */
static inline int ps_flag_get(ps_flag *f) { return atomic_load_explicit(f, memory_order_relaxed); }

static inline void ps_flag_set(ps_flag *f, int value) { atomic_store_explicit(f, value, memory_order_relaxed); }

/* ---- ledger.h: tuples held of one input ---- */

/* Relaxed: the caller is the only adder, and may read a value that is too large; or it reads again later. A lower count
   carries no data that the reader would use. */
static inline uint64_t held_read(const cell *c) { return CELL_LOAD(c, memory_order_relaxed); }

/* The same for statistics, by any thread. Not a step of any spec. */
static inline uint64_t held_count(const cell *c) { return CELL_LOAD(c, memory_order_relaxed); }

/* Returns the count before the change. Relaxed: the mark of a waiter and the change of a passer are ordered because
   they change one word; other data is guarded by the mutex. */
static inline uint64_t held_change(cell *c, int64_t by) { return CELL_ADD(c, (uint64_t)by, memory_order_relaxed); }

/* Release: the rows copied into the last batch. Partner: last_rows_read (ledger.h, G1). */
static inline void last_rows_publish(cell *rows, uint64_t n) { CELL_STORE(rows, n, memory_order_release); }
static inline uint64_t last_rows_read(const cell *rows) { return CELL_LOAD(rows, memory_order_acquire); }

/* ---- doorbell.h, wake_marks.h ---- */

/* Returns the word before the change. Release: what the ringer published before it rang; acquire: the sleeper looks for
   work after it. Partner: the other draws of the same word; as read-modify-writes, all of them continue the release
   sequences of the earlier ones. */
static inline uint64_t tickets_draw(cell *c, int64_t by) { return CELL_ADD(c, (uint64_t)by, memory_order_acq_rel); }

/* ---- ms_queue.h: every word is {tag, node}; all changes of head, tail and top are compare-and-swaps ---- */

/* The top of the pool. Acquire: the node's `next`, written before it was pushed. Partner: ms_top_push, whose release
   sequence every later push and pop continues. */
static inline uint64_t ms_top_read(const cell *top) { return CELL_LOAD(top, memory_order_acquire); }

/* The top of the pool, for a push: relaxed, because the node is not read. */
static inline uint64_t ms_top_peek(const cell *top) { return CELL_LOAD(top, memory_order_relaxed); }

/* Relaxed: the popper has acquired the node by ms_top_read, and publishes nothing. */
static inline bool ms_top_pop(cell *top, uint64_t old, uint64_t now) {
  return CELL_SWAP(top, &old, now, memory_order_relaxed, memory_order_relaxed);
}

/* Release: the node's `next`, and its last owner's accesses. Partner: ms_top_read. */
static inline bool ms_top_push(cell *top, uint64_t old, uint64_t now) {
  return CELL_SWAP(top, &old, now, memory_order_release, memory_order_relaxed);
}

/* `next` of a node in the pool. Relaxed: ms_top_read has acquired it; if it was popped meanwhile, the pop fails. */
static inline uint64_t ms_link_read(const cell *next) { return CELL_LOAD(next, memory_order_relaxed); }

/* `next` of a node that is not linked. Release: a thread that reads it in a node reused meanwhile (ms_next_read) must
   then find head or tail changed (ms_end_check); head was changed before the node was in the pool. */
static inline void ms_next_write(cell *next, uint64_t word) { CELL_STORE(next, word, memory_order_release); }

/* Acquire: the next node, its value and its `next`. Partner: ms_next_link; and ms_next_write, see there. */
static inline uint64_t ms_next_read(const cell *next) { return CELL_LOAD(next, memory_order_acquire); }

/* Release: value and `next` of the linked node. Partner: ms_next_read. */
static inline bool ms_next_link(cell *next, uint64_t old, uint64_t now) {
  return CELL_SWAP(next, &old, now, memory_order_release, memory_order_relaxed);
}

/* Release and acquire: a thread that reads the value of a node reused meanwhile must then find head changed. */
static inline void ms_value_write(cell *value, uint64_t x) { CELL_STORE(value, x, memory_order_release); }
static inline uint64_t ms_value_read(const cell *value) { return CELL_LOAD(value, memory_order_acquire); }

/* head or tail. Acquire: the node's `next` as its enqueuer wrote it, passed on by the thread that moved head or tail to
   it. Partner: ms_end_swing. */
static inline uint64_t ms_end_read(const cell *end) { return CELL_LOAD(end, memory_order_acquire); }

/* head or tail, again. Relaxed: what it must see was acquired by ms_next_read or ms_value_read. */
static inline uint64_t ms_end_check(const cell *end) { return CELL_LOAD(end, memory_order_relaxed); }

/* Release: the node that head or tail moves to, which this thread has acquired. Partner: ms_end_read. */
static inline bool ms_end_swing(cell *end, uint64_t old, uint64_t now) {
  return CELL_SWAP(end, &old, now, memory_order_release, memory_order_relaxed);
}

/* ---- tuml_mc.c, wiml.c, sliced.c: number of an input's tuples that are in their windows or slices ---- */

/* Release: the thread's position in the hive, and its reads of the tuples' batch. Partner: merged_read. */
static inline void merged_publish(cell *merged, uint64_t tuples) { CELL_STORE(merged, tuples, memory_order_release); }

/* Acquire: the search for complete winsets that follows finds what those tuples completed. Partner: merged_publish. */
static inline uint64_t merged_read(const cell *merged) { return CELL_LOAD(merged, memory_order_acquire); }

/* ---- queue.h (lock-free), wiml.c, sliced.c: promises of one input ---- */

/* Release: the tuples enqueued before, so that a reader that finds the queue empty after reading the promise has missed
   none that it covers. Partner: promise_read, which is before the read of the queue (spec/Operator.tla, CloseAs). */
static inline void promise_write(cell *promise, uint64_t word) { CELL_STORE(promise, word, memory_order_release); }
static inline uint64_t promise_read(const cell *promise) { return CELL_LOAD(promise, memory_order_acquire); }
/* A word that no other thread uses any more. Not a step of any spec. */
static inline uint64_t cell_last(const cell *c) { return atomic_load_explicit(&c->bits, memory_order_relaxed); }

/* A cell in an array, on a cache line of its own: the stride separates neighbours wherever the array begins. */
typedef struct {
  cell word;
  uint8_t apart[64 - sizeof(cell)];
} cell_alone;

/* ---- skip_list: a link is the address of the next node on its level, 0 after the last one ---- */

/* Acquire: the fields of the node that the link leads to, and that node's own link. Partner: link_swap. */
static inline void *link_read(const cell *link) { return (void *)(uintptr_t)CELL_LOAD(link, memory_order_acquire); }

/* Release: the fields of `node` and its link on this level. Partner: link_read. Failure is relaxed: it only means that
   another thread linked here, and the caller reads again. */
static inline bool link_swap(cell *link, const void *found, const void *node) {
  uint64_t expected = (uintptr_t)found;
  return CELL_SWAP(link, &expected, (uintptr_t)node, memory_order_release, memory_order_relaxed);
}

/* The link of a node that is not linked on this level yet, so no other thread can read it; link_swap publishes it. */
static inline void link_init(cell *link, const void *node) { cell_init(link, (uintptr_t)node); }

/* The link of a node that no other thread can reach any more. */
static inline void *link_last(const cell *link) { return (void *)(uintptr_t)cell_last(link); }

/* ---- slab: memory returned to its input ---- */

/* Relaxed: the giver finds what it pushed itself, the taker follows it only after returned_take. */
static inline void *returned_read(const cell *top) { return (void *)(uintptr_t)CELL_LOAD(top, memory_order_relaxed); }

/* Release: all that this thread knows to have ended (reclaim) has ended for the taker too. Partner: returned_take. */
static inline bool returned_push(cell *top, const void *found, const void *slab) {
  uint64_t expected = (uintptr_t)found;
  return CELL_SWAP(top, &expected, (uintptr_t)slab, memory_order_release, memory_order_relaxed);
}

/* Takes all slabs. Acquire: partner of returned_push; the slabs below the newest one were pushed before it. */
static inline bool returned_take(cell *top, const void *found) {
  uint64_t expected = (uintptr_t)found;
  return CELL_SWAP(top, &expected, 0, memory_order_acquire, memory_order_relaxed);
}

/* ---- reclaim (G2): an input announces its call, then reads front; the reclaimer moves front, then reads the calls.
   Neither may read before its own write is visible to all, and both must agree on one order: all four accesses are
   sequentially consistent. Then either the input reads the new front or the reclaimer sees the call. ---- */

/* Adds one and returns the new value (odd: in a call). A read-modify-write is the cheapest such store on x86. */
static inline uint64_t active_enter(cell *active) { return CELL_ADD(active, 1, memory_order_seq_cst) + 1; }

/* Sequentially consistent, see above; as an acquire it also shows the node and its links. Partner: front_move. */
static inline void *front_read(const cell *front) { return (void *)(uintptr_t)CELL_LOAD(front, memory_order_seq_cst); }

static inline void front_move(cell *front, const void *node) {
  CELL_STORE(front, (uintptr_t)node, memory_order_seq_cst);
}

/* Sequentially consistent, see above; as an acquire it is the partner of active_leave. */
static inline uint64_t active_read(const cell *active) { return CELL_LOAD(active, memory_order_seq_cst); }

/* Release: the input's accesses to nodes, which happen before any of them is freed. Partner: active_read. */
static inline void active_leave(cell *active, uint64_t value) { CELL_STORE(active, value, memory_order_release); }

/* Release: the reader's accesses to the nodes counted, which happen before they are freed. Partner: passed_read. */
static inline void passed_count(cell *passed, uint64_t nodes) { CELL_STORE(passed, nodes, memory_order_release); }

/* Acquire: partner of passed_count. */
static inline uint64_t passed_read(const cell *passed) { return CELL_LOAD(passed, memory_order_acquire); }

/* ---- t_gate: written[k] is the last linked node of input k ---- */

/* Release: the node's links on all its levels (TGate G3). Partner: written_read. */
static inline void written_publish(cell *written, const void *node) {
  CELL_STORE(written, (uintptr_t)node, memory_order_release);
}

/* Acquire: the read of next that follows must not happen before it and must find what was linked (TGate G3). Partner:
   written_publish. */
static inline const void *written_read(const cell *written) {
  return (const void *)(uintptr_t)CELL_LOAD(written, memory_order_acquire);
}

/* ---- aggregates/shared.h: the words of a window that several threads add to ---- */

/* Returns the word before the change. Relaxed: each word amounts to what was added, in any order, and who reads it all
   has acquired the adders' positions. Partner: position_publish, position_read. */
static inline uint64_t word_add(cell *word, uint64_t n) { return CELL_ADD(word, n, memory_order_relaxed); }

/* Relaxed: a stale word makes the swap fail, or the mark be set once more. */
static inline uint64_t word_read(const cell *word) { return CELL_LOAD(word, memory_order_relaxed); }
static inline bool word_swap(cell *word, uint64_t held, uint64_t value) {
  return CELL_SWAP(word, &held, value, memory_order_relaxed, memory_order_relaxed);
}

/* Relaxed: all that write it write the same. */
static inline void word_mark(cell *word) { CELL_STORE(word, 1, memory_order_relaxed); }

/* ---- w_hive ---- */

/* Release: all that the thread has added to windows before this position. Partner: position_read. */
static inline void position_publish(cell *written, uint64_t position) {
  CELL_STORE(written, position, memory_order_release);
}

/* Acquire: all links and states of the windows before the position. Partner: position_publish. */
static inline uint64_t position_read(const cell *written) { return CELL_LOAD(written, memory_order_acquire); }

/* Release: the thread's accesses to nodes before its new anchor. Partner: anchor_read. */
static inline void anchor_move(cell *anchor, uint64_t start) { CELL_STORE(anchor, start, memory_order_release); }

/* Acquire: the thread's accesses to nodes before the anchor have ended, so they may be freed. A stale value only frees
   less. Partner: anchor_move. */
static inline uint64_t anchor_read(const cell *anchor) { return CELL_LOAD(anchor, memory_order_acquire); }

/* ---- pane_hive.h ---- */

/* Release: the slice and the position in the linked node. Partner: pane_link_read. */
static inline void pane_link_publish(cell *next, void *node) {
  CELL_STORE(next, (uint64_t)(uintptr_t)node, memory_order_release);
}

/* Acquire: the contents of the next node. Partner: pane_link_publish. */
static inline void *pane_link_read(const cell *next) {
  return (void *)(uintptr_t)CELL_LOAD(next, memory_order_acquire);
}

/* ---- key_sweep.h ---- */

/* Relaxed: the table's sweep number was raised before, guarded by its lock (KeySweep G1), and a thread that has read
   the word takes that lock before it uses the number. It cannot have held the lock before the number was raised: then
   its read would have happened before the word was written. Partner: sweep_read. */
static inline void sweep_publish(cell *word, uint64_t sweep) { CELL_STORE(word, sweep, memory_order_relaxed); }

/* Relaxed: as above; keys looked up from now on get the stamp of this sweep. Partner: sweep_publish. */
static inline uint64_t sweep_read(const cell *word) { return CELL_LOAD(word, memory_order_relaxed); }

/* ---- run_gate.h ---- */

/* Release: the run, its tuples, its promise and its holders. Partner: run_link_read (RunGate G2). */
static inline void run_link_publish(cell *next, void *run) {
  CELL_STORE(next, (uint64_t)(uintptr_t)run, memory_order_release);
}

/* Acquire: the contents of the next run. Partner: run_link_publish (RunGate G2). */
static inline void *run_link_read(const cell *next) { return (void *)(uintptr_t)CELL_LOAD(next, memory_order_acquire); }

/* ---- run_gate.c, share.c: which thread frees ---- */

/* Relaxed: the thread that adds a holder is one itself. */
static inline void holders_join(cell *holders) { CELL_ADD(holders, 1, memory_order_relaxed); }

/* Removes one holder; returns how many there were. Release: this holder's accesses; acquire: the others', for the one
   that frees (RunGate G3). */
static inline uint64_t holders_leave(cell *holders) { return CELL_ADD(holders, (uint64_t)-1, memory_order_acq_rel); }
