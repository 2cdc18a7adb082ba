/*
 * doorbell.h - lets one thread sleep until another has something for it.
 *
 * The sleeper calls doorbell_prepare, looks once more for work, and only then doorbell_sleep (or doorbell_skip if it
 * found some). A ringer makes its work visible, then calls doorbell_ring.
 *
 * No wake-up is lost as long as looking for work and making it visible pass through a common mutex (here: a queue's
 * lock). Either the look comes later and sees the work, or it comes earlier, and then `asleep`, set before the look, is
 * seen by the ringer, who passed the mutex after it. (spec/Operator.tla models this; without the second look TLC finds
 * the lost wake-up.)
 */
#pragma once

#include <pthread.h>

#include "atomics.h"
#include "base.h"

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t bell;
  ps_flag asleep; /* read by ringers on every tuple, so it is not behind the lock */
  bool rung;
} doorbell;

bool doorbell_init(doorbell *d);
void doorbell_free(doorbell *d);

void doorbell_prepare(doorbell *d);
void doorbell_skip(doorbell *d);
void doorbell_sleep(doorbell *d);

void doorbell_wake(doorbell *d);
static inline void doorbell_ring(doorbell *d) {
  if (ps_flag_get(&d->asleep)) doorbell_wake(d);
}
