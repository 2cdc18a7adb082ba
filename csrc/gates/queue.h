/*
 * queue.h - the queue of one input (Alg. 2), in two implementations: a ring guarded by a mutex (MQ), and the lock-free
 * queue of Michael and Scott (MQ_LF, ms_queue.h).
 *
 * Roles       one producer at a time (the input's thread), one consumer (the output thread).
 * Invariants  I1 timestamps from front to back never decrease, and none is above what the producer promised last;
 *             I2 every later tuple has a timestamp of at least the last promise and the last tuple.
 * Progress    mutex: critical sections are a few instructions, except when the ring grows. Lock-free: wait-free, since
 *             there is one enqueuer and one dequeuer.
 *
 * A position is an input's place in the order: its front tuple, or, if the queue is empty, the promise that no tuple
 * below it will follow. The lock-free queue reads the promise before the queue. Everything enqueued before that promise
 * was made is then visible, so an empty queue means that only later tuples are missing. (In the other order, a tuple
 * and a close between the two reads would be lost: CloseAs = "flag_last" in spec/Operator.tla.)
 */
#pragma once

#include <pthread.h>

#include "columns/batch.h"
#include "gates/ms_queue.h"

typedef struct {
  int64_t ts;
  int64_t row;
  batch *batch;
} tuple;

typedef enum { QUEUE_MUTEX, QUEUE_LOCK_FREE } queue_kind;

typedef struct {
  queue_kind kind;
  /* QUEUE_MUTEX: guarded by lock */
  pthread_mutex_t lock;
  tuple *ring;
  int64_t capacity; /* a power of two, or 0 */
  int64_t front, size;
  int64_t latest; /* of tuples and promises; -1: none yet */
  bool closed;
  /* QUEUE_LOCK_FREE */
  ms_queue values;  /* tuples by name: batch.h */
  cell promise;     /* 0: none, ts + 1, or PROMISE_CLOSED */
  batch *reading;   /* consumer: the batch of the last tuple */
  int64_t dequeued; /* consumer: timestamp of the last tuple; -1: none */
} queue;

typedef enum { QUEUE_TUPLE, QUEUE_PROMISE, QUEUE_DRAINED } queue_state;

typedef struct {
  queue_state state;
  int64_t ts; /* of the front tuple or of the promise */
} position;

bool queue_init(queue *q, queue_kind kind);
void queue_free(queue *q);

/* Producer. queue_reserve makes room for `tuples` tuples in total, so enqueue cannot fail. False: out of memory. */
bool queue_reserve(queue *q, int64_t tuples);
void queue_enqueue(queue *q, batch *b, int64_t row);
void queue_promise(queue *q, int64_t ts); /* above all promises before */
void queue_close(queue *q);

/* Consumer. The queue must not be empty for queue_dequeue. */
position queue_peek(queue *q);
tuple queue_dequeue(queue *q);
