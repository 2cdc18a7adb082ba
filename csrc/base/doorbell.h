/*
 * doorbell.h - lets one thread sleep until another has work for it.
 *
 * The sleeper calls doorbell_prepare, looks for work once more, and only then calls doorbell_sleep (or doorbell_skip if
 * it found some). A ringer publishes its work, then calls doorbell_ring.
 *
 * No wake-up is lost, although the two share only this word: prepare and ring are read-modify-writes of it, so one of
 * them is first. If it is the ring, prepare reads what the ring wrote (or what a later ring wrote, which continues its
 * release sequence), and the search that follows sees the work published before. If it is prepare, the ring finds the
 * mark and wakes. (In spec/Operator.tla: output_arm against add_check, update_arm against add_check, output_arm against
 * update_check. A plain store and a plain load would not do: each could pass the other.)
 *
 * A ring for a sleeper that has just skipped leaves `rung` set; the next sleep then ends at once, and its thread looks
 * for work once in vain.
 */
#pragma once

#include <pthread.h>

#include "base/atomics.h"
#include "base/base.h"

typedef struct {
  cell tickets; /* + 2 per ring, + 1 while the sleeper is about to sleep or asleep */
  pthread_mutex_t lock;
  pthread_cond_t bell;
  bool rung; /* guarded by lock */
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
