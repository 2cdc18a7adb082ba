/*
 * ledger.h - what one input has handed over and the operator has not passed yet: how many tuples, and their batches.
 *
 * It bounds the tuples held (max_pending) and keeps batches alive: a batch leaves when its last tuple has been passed.
 * Small batches may be copied into one that has room: as long as it is the last one and not full, it is open, and does
 * not leave.
 *
 * Roles       one adder at a time (under the input's lock): ledger_fits, ledger_put, ledger_extend. One passer (the
 *             output thread): ledger_pass, ledger_ready. Any thread: the others.
 * Invariants  I1 `held` counts the tuples put and not passed; it is at most held_max, but for a single batch that is
 *                larger than that and came when nothing was held, since a batch must be taken whole;
 *             I2 the batches from `first` on are those with tuples not passed, and the one that is open, in the order
 *                in which they were put;
 *             I3 of a batch that is put, only the last one's rows grow; who is not the adder knows them by `last_rows`.
 * Guarantees  G1 who reads `last_rows` sees the rows that it counts: ledger_extend releases, look acquires
 * Progress    put takes the mutex once, extend never, pass at most twice, however many batches it passes; wait blocks,
 *             at most as long as it is told.
 *
 * No wake-up is lost: the count and the mark that somebody waits are one word, changed by read-modify-writes only. A
 * waiter sets the mark (under the mutex) and looks at the count that it found together with it; a passer that comes
 * later finds the mark, and takes the mutex, which the waiter gives up only by sleeping.
 */
#pragma once

#include <pthread.h>

#include "base/atomics.h"
#include "columns/batch.h"

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t freed;
  cell held;      /* 2 * tuples, + 1 if somebody waits for room; the mark changes only under the lock */
  cell last_rows; /* of the last batch, if there is one */
  int64_t held_max;
  int64_t waiting_for; /* behind the lock: the fewest tuples that a waiter needs room for; 0: nobody waits */
  batch *first, *last; /* behind the lock */
  bool cancelled;      /* behind the lock */
} ledger;

bool ledger_init(ledger *l, int64_t held_max);
batch *ledger_free(ledger *l); /* gives back the batches that it still holds, linked by `next` */

/* Adder. */
bool ledger_fits(ledger *l, int64_t rows);
/* Gives how much b->unseen adds to what the batches held keep: views of the same buffers that follow each other keep
   these until the last of them leaves, and only that one counts them. */
int64_t ledger_put(ledger *l, batch *b);

/* The last batch, `open`, which has room for them, has got so many rows more. They are
   held before they are told of: who passes some has to know from elsewhere that they have come, not from `held`. */
void ledger_extend(ledger *l, batch *open, int64_t rows);

/* Passer: n tuples, which have been put before, are done with. Gives back the batches that are, linked by `next`. */
batch *ledger_pass(ledger *l, int64_t n);

/* Passer: how many of the tuples put and not passed come before the first one above `ts`. */
int64_t ledger_ready(ledger *l, int64_t ts);

/* Any thread. */
int64_t ledger_held(ledger *l);

/* Tuples with timestamps above `ts`, and the first of those timestamps, if there is any. For a `ts` up to which the
   input's tuples are ready: none of those above can have been passed. */
typedef struct {
  int64_t held; /* all tuples held, those above among them */
  int64_t above;
  int64_t first;
} ledger_view;
ledger_view ledger_look(ledger *l, int64_t ts);

/* Marks that somebody wants room for so many rows; whether the passer has to know, for there is none. */
bool ledger_want(ledger *l, int64_t rows);
bool ledger_pressed(ledger *l); /* whether there is such a mark */

ps_code ledger_wait(ledger *l, int64_t rows, int32_t ms); /* PS_OK: they fit; PS_FULL: not in time; PS_CLOSED */
void ledger_cancel(ledger *l);
void ledger_limit(ledger *l, int64_t held_max); /* no adder runs */
