/*
 * doorbell.h - lets one thread sleep until another has something for it.
 *
 * The sleeper calls doorbell_prepare, looks once more for work, and only then doorbell_sleep (or doorbell_skip if it
 * found some). A ringer makes its work visible, then calls doorbell_ring.
 *
 * No wake-up is lost, although nothing but this word is common to the two: prepare and ring are read-modify-writes of
 * it, so one of them comes first. If it is the ring, prepare reads what the ring wrote (or a later ring did, which
 * continues its release sequence), and the work, made visible before, is seen by the look that follows. If it is
 * prepare, the ring finds the mark and wakes. (In spec/Operator.tla: output_arm against add_check, update_arm against
 * add_check, output_arm against update_check. A plain store and a plain load would not do: each could pass the other.)
 *
 * A ring that meets a sleeper which has just skipped leaves `rung` set; the next sleep then ends at once, and its
 * thread looks once more for nothing.
 */
#pragma once

#include <pthread.h>

#include "base/atomics.h"
#include "base/base.h"

typedef struct {
  cell tickets; /* + 2 for every ring, + 1 while the sleeper is about to sleep or asleep */
  pthread_mutex_t lock;
  pthread_cond_t bell;
  bool rung; /* behind the lock */
} doorbell;

bool doorbell_init(doorbell *d);
void doorbell_free(doorbell *d);

void doorbell_prepare(doorbell *d);
void doorbell_skip(doorbell *d);
void doorbell_sleep(doorbell *d);

void doorbell_wake(doorbell *d); /* whether it is asleep or not */
static inline void doorbell_ring(doorbell *d) {
  AT(add_check);
  if (tickets_draw(&d->tickets, 2) & 1) doorbell_wake(d);
}
