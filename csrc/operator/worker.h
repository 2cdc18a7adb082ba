/*
 * worker.h - the operator's own threads: how they run, sleep, stand still for a snapshot, and end.
 *
 * A worker calls its design's step in a loop, and sleeps on its doorbell when there is nothing to do.
 *
 * Pausing. The pausing thread holds every input's lock, so no tuple is added. The output thread (worker 0) stops
 * between two steps, with work left: a wait for room in the sink is given up (PS_PAUSED) and repeated after the pause:
 * a stalled reader does not block a pause. Update threads continue until they have nothing left: only then have all of
 * them read the same tuples. They take the mutex when they see the flag, so the step that finds nothing left has seen
 * everything added before the pause.
 * A pause that is not complete in time stays requested and the input locks stay held: if inputs could add between two
 * waits, update threads might never finish.
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
  ps_counter bytes; /* allocated by the worker (memory.h) */
} worker;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  ps_flag wanted;   /* writes guarded by lock */
  int64_t pauses;   /* guarded by lock: number of pauses so far; a worker stands still for one of them */
  int32_t standing; /* guarded by lock: workers that stand still for this pause */
  int32_t running;  /* guarded by lock: workers that have not ended */
  bool held;        /* guarded by lock: a pause has begun and is not undone */
  pthread_t holder; /* guarded by lock: the thread that began it */
} pause_state;

/* Makes `workers` workers, not running yet; op->workers counts those made. False: none is left. */
bool workers_init(ps_operator *op, int32_t workers);
void workers_free(ps_operator *op);

bool workers_start(ps_operator *op); /* false: the system refused a thread; none runs */
void workers_join(ps_operator *op);  /* after ps_operator_cancel */

/* The pausing thread, holding all input locks: stops the workers, and lets them continue. */
void workers_pause(ps_operator *op);
void workers_resume(ps_operator *op);
bool workers_held(ps_operator *op); /* whether a pause by this thread has begun and is not undone */

/* Waits until all workers stand still: PS_OK; PS_EMPTY: not within `ms` milliseconds; PS_CLOSED: cancelled. */
ps_code workers_wait(ps_operator *op, int32_t ms);
void workers_cancel(ps_operator *op); /* wakes workers that sleep or stand still; they find op->cancelled */
