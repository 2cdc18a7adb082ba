/*
 * queue.h - the queue of one input (Alg. 2), of two kinds behind one face: a ring behind a mutex (MQ), and the
 * lock-free queue of Michael and Scott (MQ_LF, ms_queue.h).
 *
 * Roles       one producer at a time (the input's thread), one consumer (the output thread).
 * Invariants  I1 timestamps from front to back never decrease, and none is above what the producer promised last;
 *             I2 every later tuple has a timestamp of at least the last promise and the last tuple.
 * Progress    mutex: every critical section is a few instructions but for growing the ring. Lock-free: wait-free, since
 *             there is one enqueuer and one dequeuer.
 *
 * A position says where an input stands in the order: at its front tuple, or, with none queued, at the promise that
 * nothing below it will follow. Without a lock the promise is read before the queue: whatever was enqueued before that
 * promise was made is then seen, so an empty queue means that only later tuples are missing. (The other way round, a
 * tuple and a close that come between the two looks are lost: CloseAs = "flag_last" in spec/Operator.tla.)
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
  /* mutex: all of these behind the lock */
  pthread_mutex_t lock;
  tuple *ring;
  int64_t capacity; /* a power of two, or 0 */
  int64_t front, size;
  int64_t latest; /* of tuples and promises; -1: nothing received yet */
  bool closed;
  /* lock-free */
  ms_queue values;  /* tuples by name: see batch.h */
  cell promise;     /* 0: none, ts + 1, or PROMISE_CLOSED */
  batch *reading;   /* the consumer's: the batch of the last tuple */
  int64_t dequeued; /* the consumer's: timestamp of the last tuple, -1: none */
} queue;

typedef enum { QUEUE_TUPLE, QUEUE_PROMISE, QUEUE_DRAINED } queue_state;

typedef struct {
  queue_state state;
  int64_t ts; /* of the front tuple or of the promise */
} position;

bool queue_init(queue *q, queue_kind kind);
void queue_free(queue *q);

/* Producer. Reserve makes room for so many tuples in all, so that enqueue cannot fail. False: out of memory. */
bool queue_reserve(queue *q, int64_t tuples);
void queue_enqueue(queue *q, batch *b, int64_t row);
void queue_promise(queue *q, int64_t ts); /* above what was promised before */
void queue_close(queue *q);

/* Consumer. Dequeue wants a queue that is not empty. */
position queue_peek(queue *q);
tuple queue_dequeue(queue *q);
