/* wait.h - what POSIX threads lack: waiting with a time limit on a monotonic clock, and names for threads. */
#pragma once

#include <pthread.h>

#include "base/base.h"

bool wait_init(pthread_cond_t *cond);

/* A point in time, for wait_until: `ms` milliseconds from now. */
typedef struct {
  int64_t ns;
} moment;

moment moment_in(int32_t ms);
bool moment_passed(moment m);

/* As pthread_cond_wait; false: the time has passed. */
bool wait_until(pthread_cond_t *cond, pthread_mutex_t *lock, moment until);

/* Names the calling thread for debuggers and `top`; at most 15 characters. */
void name_thread(const char *name);
