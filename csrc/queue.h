/*
 * queue.h - the queue of one input (Alg. 2): a ring of tuples behind a mutex.
 *
 * Roles       one producer at a time (the input's thread), one consumer (the output thread).
 * Invariants  I1 timestamps from front to back never decrease, and none is above `latest`;
 *             I2 every later tuple has a timestamp of at least `latest`;
 *             I3 size <= capacity, and room reserved by queue_reserve stays reserved until it is used.
 * Progress    blocking (the mutex); every critical section is a few instructions but for growing the ring.
 *
 * A position says where an input stands in the order: at its front tuple, or, with none queued, at the promise that
 * nothing below `latest` will follow.
 */
#pragma once

#include <pthread.h>

#include "batch.h"

typedef struct {
  int64_t ts;
  int64_t row;
  batch *batch;
} tuple;

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t space; /* signalled when tuples leave while somebody waits for room */
  tuple *ring;
  int64_t capacity; /* a power of two, or 0 */
  int64_t front, size;
  int64_t latest; /* -1: nothing received yet */
  int64_t size_max;
  int64_t waiting_for; /* rows that a blocked producer needs room for; 0: none */
  bool closed;
  bool cancelled;
} queue;

typedef enum { QUEUE_TUPLE, QUEUE_PROMISE, QUEUE_DRAINED } queue_state;

typedef struct {
  queue_state state;
  int64_t ts; /* of the front tuple or of the promise */
} position;

bool queue_init(queue *q, int64_t size_max);
void queue_free(queue *q, void (*drop)(void *context, batch *b), void *context); /* drop is called per queued tuple */

/* Producer. Reserve makes room in the ring for `rows` more tuples, so that enqueue cannot fail. */
ps_code queue_reserve(queue *q, int64_t rows);
void queue_enqueue(queue *q, tuple t);
void queue_promise(queue *q, int64_t ts);
void queue_close(queue *q);
ps_code queue_wait_space(queue *q, int64_t rows, int32_t ms);

/* Consumer. Dequeue wants a queue that is not empty. */
position queue_peek(queue *q);
tuple queue_dequeue(queue *q);

/* Any thread. */
int64_t queue_size(queue *q);
int64_t queue_latest(queue *q);
bool queue_closed(queue *q);
void queue_cancel(queue *q);
