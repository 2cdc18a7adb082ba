/* wait.c - see wait.h. */
#include "base/wait.h"

#include <time.h>

#define NS_PER_S INT64_C(1000000000)

static int64_t now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

moment moment_in(int32_t ms) { return (moment){now_ns() + (int64_t)ms * 1000000}; }

bool moment_passed(moment m) { return now_ns() >= m.ns; }

static struct timespec timespec_of(int64_t ns) {
  return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = ns % NS_PER_S};
}

#ifdef __APPLE__ /* has no condattr_setclock, but can wait for a duration */

void name_thread(const char *name) { pthread_setname_np(name); }

bool wait_init(pthread_cond_t *cond) { return pthread_cond_init(cond, NULL) == 0; }

bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, moment until) {
  int64_t left = until.ns - now_ns();
  if (left <= 0) return false;
  struct timespec span = timespec_of(left);
  return pthread_cond_timedwait_relative_np(cond, lock, &span) == 0;
}

#else

void name_thread(const char *name) { pthread_setname_np(pthread_self(), name); }

bool wait_init(pthread_cond_t *cond) {
  pthread_condattr_t attributes;
  if (pthread_condattr_init(&attributes) != 0) return false;
  bool ok = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 && pthread_cond_init(cond, &attributes) == 0;
  pthread_condattr_destroy(&attributes);
  return ok;
}

bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, moment until) {
  struct timespec at = timespec_of(until.ns);
  return pthread_cond_timedwait(cond, lock, &at) == 0;
}

#endif
