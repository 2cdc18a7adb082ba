/*
 * ledger.h - the tuples of one input that are not passed yet: their number and their batches.
 *
 * Bounds the tuples held (max_pending) and keeps batches alive: a batch is removed when its last tuple is passed. Small
 * batches may be copied into one that has room (coalesce.h): a batch that is the last one and not full is open, and is
 * not removed.
 *
 * Roles       one adder at a time (guarded by the input's lock): ledger_fits, ledger_put, ledger_extend. One passer
 *             (the output thread): ledger_pass, ledger_ready. Any thread: the others.
 * Invariants  I1 `held` counts the tuples put and not passed. It is at most held_max, except for a single batch that
 *                is larger and was put when nothing was held, because a batch is taken whole.
 *             I2 the batches from `first` on are those with tuples not passed, and the open one, in the order put.
 *             I3 only the last batch grows; threads other than the adder read its number of rows from `last_rows`.
 * Guarantees  G1 a reader of `last_rows` sees the rows that it counts: ledger_put and ledger_extend release,
 *                ledger_pass, ledger_ready and ledger_count_above acquire.
 * Progress    put takes the mutex once, extend never, pass at most three times, for any number of batches; wait blocks
 *             for at most `ms`.
 *
 * No wake-up is lost: the count and the mark "a thread waits" are one word, changed only by read-modify-writes. A
 * waiter sets the mark with the mutex held, and tests the count that the same operation returned. A later passer finds
 * the mark and takes the mutex, which the waiter releases only by sleeping.
 */
#pragma once

#include <pthread.h>

#include "base/atomics.h"
#include "columns/batch.h"

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t freed;
  cell held;      /* 2 * tuples, + 1 if a thread waits for room; the mark is guarded by lock */
  cell last_rows; /* rows of the last batch, if any */
  int64_t held_max;
  int64_t waiting_for; /* guarded by lock: the fewest rows that a waiter needs room for; 0: no waiter */
  batch *first, *last; /* guarded by lock */
  bool cancelled;      /* guarded by lock */
} ledger;

bool ledger_init(ledger *l, int64_t held_max);
batch *ledger_free(ledger *l); /* returns the batches still held, linked by `next` */

/* Adder. */
bool ledger_fits(ledger *l, int64_t rows);
/* Returns the bytes that b->unseen adds to what the ledger keeps alive. Consecutive views of the same buffers keep
   these until the last view is removed, and only the last one counts them. */
int64_t ledger_put(ledger *l, batch *b);

/* Adds `rows` rows, already written, to `open`, the last batch, which has room for them. `held` changes before
   `last_rows`: a passer must learn of new rows from elsewhere, not from `held`. */
void ledger_extend(ledger *l, batch *open, int64_t rows);

/* Passer: passes the n oldest tuples. Returns the batches that are done, linked by `next`. */
batch *ledger_pass(ledger *l, int64_t n);

/* Passer: number of tuples not passed before the first one with a timestamp above `ts`. */
int64_t ledger_ready(ledger *l, int64_t ts);

/* Any thread. */
int64_t ledger_held(ledger *l);

/* Number of tuples with timestamps above `ts`, and the lowest of these timestamps (INT64_MAX: none). The input's tuples
   up to `ts` must be ready, so that none above it has been passed. */
typedef struct {
  int64_t held; /* all tuples held, including those above */
  int64_t above;
  int64_t first;
} ledger_view;
ledger_view ledger_count_above(ledger *l, int64_t ts);

/* Marks that a thread wants room for `rows` rows. True: there is none, so the passer must be rung. */
bool ledger_want(ledger *l, int64_t rows);
bool ledger_pressed(ledger *l); /* whether the mark is set */

ps_code ledger_wait(ledger *l, int64_t rows, int32_t ms); /* PS_OK: they fit; PS_FULL: not in time; PS_CLOSED */
void ledger_cancel(ledger *l);
void ledger_limit(ledger *l, int64_t held_max); /* only while no adder runs */
