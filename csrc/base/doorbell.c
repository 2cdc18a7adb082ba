/* doorbell.c - see doorbell.h. */
#include "base/doorbell.h"

bool doorbell_init(doorbell *d) {
  *d = (doorbell){.rung = false};
  cell_init(&d->tickets, SIZED(0, UINT64_MAX - 7)); /* any even number: it may wrap */
  if (pthread_mutex_init(&d->lock, NULL) != 0) return false;
  if (pthread_cond_init(&d->bell, NULL) == 0) return true;
  pthread_mutex_destroy(&d->lock);
  return false;
}

void doorbell_free(doorbell *d) {
  pthread_cond_destroy(&d->bell);
  pthread_mutex_destroy(&d->lock);
}

void doorbell_prepare(doorbell *d) {
  AT(output_arm);
  tickets_draw(&d->tickets, 1);
}

void doorbell_skip(doorbell *d) {
  AT(output_sleep);
  tickets_draw(&d->tickets, -1);
}

void doorbell_sleep(doorbell *d) {
  pthread_mutex_lock(&d->lock);
  while (!d->rung) pthread_cond_wait(&d->bell, &d->lock);
  d->rung = false;
  pthread_mutex_unlock(&d->lock);
  doorbell_skip(d);
}

void doorbell_wake(doorbell *d) {
  pthread_mutex_lock(&d->lock);
  d->rung = true;
  pthread_cond_signal(&d->bell);
  pthread_mutex_unlock(&d->lock);
}
