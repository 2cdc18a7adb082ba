/*
 * sink.h - passes finished rows from the output thread to the reader.
 *
 * One mutex guards everything here. The output thread appends to the table of rows in place and the reader takes it
 * whole, so batches are large exactly when the reader is slow. A waiting reader is woken once for many rows: when the
 * output thread has nothing more to do (sink_post), when there are enough rows, or when the oldest have waited for a
 * while; a reader in bulk mode (sink_bulk) only for many rows, and at the end.
 * The output thread waits while there are rows_max rows or more: a stalled reader stalls the merge, which fills the
 * queues, which stalls the inputs.
 *
 * A reader that must not block (an event loop) registers a file descriptor: one byte is written to it as soon as a take
 * would find something, and it is unregistered. Both are guarded by the lock, so after sink_unwatch nothing is
 * written to the descriptor and its number may be reused. One byte into an empty pipe never blocks.
 */
#pragma once

#include <pthread.h>

#include "columns/output.h"
#include "base/wait.h"

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t filled; /* for the reader */
  pthread_cond_t taken;  /* for the output thread */
  out_rows rows;
  out_rows journal; /* steps of the user's objects; no columns without udf */
  int64_t rows_max;
  int64_t bulk;     /* if not 0: minimum rows per take, however long that takes */
  int64_t kept;     /* rows handed to a snapshot but not yet to the user; still counted against rows_max */
  int64_t rows_out; /* rows taken so far */
  moment patience;  /* the reader is woken for rows at this time at the latest; 0: no rows */
  bool posted;      /* the rows are worth waking the reader for */
  bool ended;       /* no more rows will be added */
  bool cancelled;
  bool pausing;
  int watcher; /* descriptor to write one byte to; -1: none */
  ps_code failure;
  ps_fault fault;
} sink;

bool sink_init(sink *s, int32_t columns, const bool *is_bytes, int32_t journal_columns, int64_t rows_max);
void sink_free(sink *s);

/* Workers: lock, write to s->rows or s->journal, unlock. sink_lock and sink_lock_through wait for room; PS_CLOSED (not
   locked): cancelled. If there is no room and the operator is being paused, sink_lock gives PS_PAUSED (not locked), and
   sink_lock_through locks anyway: update threads must finish what they have read. sink_lock_now does not wait: for
   journal entries that free more than they take. */
ps_code sink_lock(sink *s);
ps_code sink_lock_through(sink *s);
void sink_lock_now(sink *s);
void sink_unlock(sink *s);
void sink_post(sink *s); /* the output thread has nothing more to do for now: wakes the reader for any rows */

/* No rows will follow. Only the first call has an effect. */
void sink_end(sink *s, ps_code failure, const ps_fault *fault);

/* Reader. */
ps_code sink_take(sink *s, int32_t ms, struct ArrowArray *rows, struct ArrowArray *journal, ps_fault *fault);
void sink_cancel(sink *s);
void sink_pause(sink *s, bool pausing);
void sink_limit(sink *s, int64_t rows_max);
void sink_bulk(sink *s, int64_t rows); /* raises rows_max to twice as many */
void sink_keep(sink *s, int64_t rows);
bool sink_watch(sink *s, int descriptor);   /* false: another one is registered */
void sink_unwatch(sink *s, int descriptor); /* unregisters it, if registered */
int64_t sink_rows_out(sink *s);
ps_unread sink_unread(sink *s, int32_t ms); /* waits up to `ms` while there are no rows and some may follow */
