/*
 * locks.c - mutexes and condition variables of the model; base.h substitutes them for POSIX's.
 *
 * Taking a mutex is a step; releasing it is not, since nothing that others do is observable between it and what was
 * before. A thread that waits for a mutex or sleeps is not a candidate for the next step (model.c). Time does not pass:
 * a sleep with a limit ends without a wake-up only when no thread can take a step, which before and after the threads is
 * at once. There are no spurious wake-ups: the code tests its condition again after each wake-up, so they would show
 * nothing more.
 */
#include "model/engine.h"

#include <errno.h>

enum { LOCKS_MAX = 64 };

static struct lock {
  uintptr_t address;
  int32_t owner;         /* -1: none */
  vector_clock released; /* what the next owner learns */
} locks[LOCKS_MAX];
static int32_t locks_met;

static bool used; /* by threads */

bool locks_used(void) { return used; }
void locks_forget(void) { used = false; }

void locks_reset(void) { locks_met = 0; }

static struct lock *lock_of(uintptr_t address) {
  for (int32_t i = 0; i < locks_met; i++)
    if (locks[i].address == address) return &locks[i];
  if (locks_met == LOCKS_MAX) execution_fail(MODEL_MISUSE, "more mutexes than the model has room for");
  locks[locks_met] = (struct lock){.address = address, .owner = -1};
  return &locks[locks_met++];
}

bool lock_is_free(uintptr_t address) { return lock_of(address)->owner < 0; }

static void take(uintptr_t address, const char *access, const char *file, int line) {
  thread *self = running_thread();
  self->wants = address;
  used = used || execution.parallel;
  model_at(access, file, line);
  execution_step(address);
  self->wants = 0;
  struct lock *l = lock_of(address);
  if (l->owner >= 0) execution_fail(MODEL_ENDLESS, "%s: thread %d holds the mutex", here(), l->owner);
  l->owner = execution.running;
  vector_clock_join(&self->knows, &l->released);
  execution_wrote();
  trace(access, "mutex", 0, 0, address, 0);
  execution_after();
}

int model_lock(pthread_mutex_t *m, const char *file, int line) {
  take((uintptr_t)m, "lock", file, line);
  return 0;
}

int model_unlock(pthread_mutex_t *m) {
  struct lock *l = lock_of((uintptr_t)m);
  assert(l->owner == execution.running);
  l->owner = -1;
  vector_clock_join(&l->released, &running_thread()->knows);
  execution_after();
  return 0;
}

int model_sleep(pthread_cond_t *c, pthread_mutex_t *m, bool limited, const char *file, int line) {
  thread *self = running_thread();
  model_unlock(m);
  if (!execution.parallel && !limited)
    execution_fail(MODEL_ENDLESS, "%s:%d: nobody is there to end this sleep", file, line);
  self->sleeps = execution.parallel ? (uintptr_t)c : 0;
  self->limited = limited;
  self->late = !execution.parallel;
  take((uintptr_t)m, "wake", file, line);
  return self->late ? ETIMEDOUT : 0;
}

bool model_late(void) { return running_thread()->late; }

int model_rouse(pthread_cond_t *c, bool all) {
  for (int t = 1; t < THREADS; t++) {
    thread *other = &execution.threads[t];
    if (other->sleeps != (uintptr_t)c) continue;
    other->sleeps = 0;
    if (!all) break;
  }
  return 0;
}
