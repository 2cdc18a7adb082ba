/*
 * worker.h - the operator's own threads: how they run, sleep, stand still for a snapshot, and end.
 *
 * A worker takes one step of its design after the other. When there is nothing to do it sleeps on its doorbell.
 *
 * Pausing. Whoever pauses holds every input's lock, so nothing new comes in. The output thread (worker 0) stops between
 * two steps, whatever is left to do: if it waits for room in the sink, it gives that up (PS_PAUSED) and tries again
 * afterwards, so a reader that has stalled does not matter. Update threads go on until there is nothing left for them:
 * only then have all of them read the same tuples. They pass the mutex when they see the flag, so what was added before
 * the pause is seen by the step that decides that there is nothing left.
 * A pause that is not complete in time stays wanted, and the locks stay held: inputs that could add between two waits
 * would keep update threads busy for ever.
 */
#pragma once

#include <pthread.h>

#include "base/atomics.h"
#include "base/base.h"
#include "base/doorbell.h"
#include "base/wait.h"

typedef struct {
  ps_operator *op;
  int32_t number; /* 0: the output thread */
  pthread_t thread;
  doorbell doorbell;
  ps_counter bytes; /* that the worker has taken for the operator: memory.h */
} worker;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  ps_flag wanted;   /* changed behind the lock */
  int64_t pauses;   /* behind the lock: how many there were; a worker stands still for one of them */
  int32_t standing; /* behind the lock: workers that stand still for this one */
  int32_t running;  /* behind the lock: workers that have not ended */
  bool held;        /* behind the lock: a pause has begun and is not undone */
  pthread_t holder; /* behind the lock: the thread that began it */
} pause_state;

/* Makes so many workers, not running yet; counts in op->workers how many are ready. False: nothing can run. */
bool workers_init(ps_operator *op, int32_t workers);
void workers_free(ps_operator *op);

bool workers_start(ps_operator *op); /* false: the system refused to start one; none runs */
void workers_join(ps_operator *op);  /* after ps_operator_cancel */

/* The thread that pauses, with all locks: have the workers stand still, and undo that. */
void workers_pause(ps_operator *op);
void workers_resume(ps_operator *op);
bool workers_held(ps_operator *op); /* whether a pause of this thread has begun and is not undone */

/* Until all workers stand still: PS_OK, PS_EMPTY after `ms` milliseconds, PS_CLOSED if the operator is cancelled. */
ps_code workers_wait(ps_operator *op, int32_t ms);
void workers_cancel(ps_operator *op); /* wakes those that sleep or stand still, to find op->cancelled */
