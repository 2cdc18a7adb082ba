/*
 * sink.h - where the output thread puts finished rows and the reader takes them.
 *
 * One mutex guards everything here. The output thread fills the table of rows in place and the reader takes it whole,
 * so rows collect in large batches just when the reader is slow. A reader that waits is woken once for many rows: when
 * the output thread has nothing more to do (sink_post), or enough rows lie here, or the oldest have lain for a while;
 * a reader that is in no hurry (sink_bulk) only for many, and at the end.
 * The output thread waits while more than `rows_max` rows lie here: a stalled reader stalls the merge, which fills the
 * queues, which stalls the inputs.
 *
 * A reader that must not block (an event loop) leaves a file descriptor instead of waiting: one byte is written to it
 * as soon as a take would find something, and it is then forgotten. That happens behind the lock, so once
 * sink_unwatch has taken a descriptor back, nothing is written to it any more and its number may be used again. One
 * byte into an empty pipe never blocks.
 */
#pragma once

#include <pthread.h>

#include "columns/output.h"
#include "base/wait.h"

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t filled; /* the reader waits */
  pthread_cond_t taken;  /* the output thread waits */
  out_rows rows;
  out_rows journal; /* steps of the user's objects; without udf it has no columns */
  int64_t rows_max;
  int64_t bulk;     /* not 0: the reader wants so many rows at a time, however long it takes */
  int64_t kept;     /* rows that were taken and count as if they lay here still */
  int64_t rows_out; /* all rows finished so far */
  moment patience;  /* until then the rows that lie here may wait for more */
  bool posted;      /* the rows are worth waking the reader for */
  bool ended;       /* no more rows will come */
  bool cancelled;
  bool pausing;
  int watcher; /* descriptor to write a byte to; -1: none */
  ps_code failure;
  ps_fault fault;
} sink;

bool sink_init(sink *s, int32_t columns, const bool *is_bytes, int32_t journal_columns, int64_t rows_max);
void sink_free(sink *s);

/* Workers: lock, write to s->rows or s->journal, unlock. Lock waits for room; PS_CLOSED (not locked) when cancelled. If
   there is none and the operator is being paused, sink_lock gives PS_PAUSED (not locked), and sink_lock_through goes
   on: that is for update threads, which have to come to the end of what they have. sink_lock_now does not wait: it is
   for notes that free more than they take. */
ps_code sink_lock(sink *s);
ps_code sink_lock_through(sink *s);
void sink_lock_now(sink *s);
void sink_unlock(sink *s);
void sink_post(sink *s); /* the output thread has nothing more to do for now: the reader may have what there is */

/* No rows will follow. The first end counts. */
void sink_end(sink *s, ps_code failure, const ps_fault *fault);

/* Reader. */
ps_code sink_take(sink *s, int32_t ms, struct ArrowArray *rows, struct ArrowArray *journal, ps_fault *fault);
void sink_cancel(sink *s);
void sink_pause(sink *s, bool pausing);
void sink_limit(sink *s, int64_t rows_max);
void sink_bulk(sink *s, int64_t rows); /* up to twice as many lie here then */
void sink_keep(sink *s, int64_t rows);
bool sink_watch(sink *s, int descriptor);   /* false: another one is there already */
void sink_unwatch(sink *s, int descriptor); /* takes it back, if it is there */
int64_t sink_rows_out(sink *s);
ps_unread sink_unread(sink *s, int32_t ms); /* waits up to `ms` while there are no rows and some may come */
