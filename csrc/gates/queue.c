/* queue.c - see queue.h. */
#include "gates/queue.h"

#include "base/poison.h"

bool queue_init(queue *q, queue_kind kind) {
  *q = (queue){.kind = kind, .latest = -1, .dequeued = -1};
  cell_init(&q->promise, 0);
  return kind == QUEUE_MUTEX ? pthread_mutex_init(&q->lock, NULL) == 0 : ms_queue_init(&q->values);
}

void queue_free(queue *q) {
  if (q->kind == QUEUE_LOCK_FREE) {
    ms_queue_free(&q->values);
    return;
  }
  memory_free(q->ring);
  pthread_mutex_destroy(&q->lock);
}

/* ---- the ring guarded by a mutex ---- */

#define RING_FIRST SIZED(64, 1) /* tuples */

static bool ring_reserve(queue *q, int64_t needed) {
  if (needed <= q->capacity) return true;
  int64_t capacity = RING_FIRST;
  while (capacity < needed) capacity *= 2;
  tuple *ring = memory_new((size_t)capacity * sizeof *ring);
  if (!ring) return false;
  for (int64_t i = 0; i < q->size; i++) ring[i] = q->ring[(q->front + i) & (q->capacity - 1)];
  memory_free(q->ring);
  q->ring = ring;
  q->front = 0;
  q->capacity = capacity;
  return true;
}

static void ring_put(queue *q, tuple t) {
  assert(q->size < q->capacity && t.ts >= q->latest);
  q->ring[(q->front + q->size) & (q->capacity - 1)] = t;
  q->size++;
  q->latest = t.ts;
}

static position ring_peek(const queue *q) {
  if (q->size) return (position){QUEUE_TUPLE, q->ring[q->front].ts};
  return q->closed ? (position){QUEUE_DRAINED, INT64_MAX} : (position){QUEUE_PROMISE, q->latest};
}

static tuple ring_take(queue *q) {
  assert(q->size > 0);
  tuple t = q->ring[q->front];
  poison_freed(&q->ring[q->front], sizeof t);
  q->front = (q->front + 1) & (q->capacity - 1);
  q->size--;
  return t;
}

/* ---- the lock-free queue ---- */

static tuple named(const queue *q, uint64_t name) {
  batch *b = q->reading;
  int64_t row = tuple_find(name, &b);
  return (tuple){batch_ts(b, row), row, b};
}

static position lock_free_peek(queue *q) {
  uint64_t name;
  AT(output_peek_shut);
  uint64_t promise = promise_read(&q->promise);
  AT(output_peek);
  if (ms_queue_peek(&q->values, &name)) return (position){QUEUE_TUPLE, named(q, name).ts};
  if (promise == PROMISE_CLOSED) return (position){QUEUE_DRAINED, INT64_MAX};
  int64_t ts = (int64_t)promise - 1;
  return (position){QUEUE_PROMISE, ts > q->dequeued ? ts : q->dequeued};
}

static tuple lock_free_take(queue *q) {
  uint64_t name = 0;
  bool any = ms_queue_dequeue(&q->values, &name);
  assert(any && "dequeue wants a queue that is not empty");
  (void)any;
  tuple t = named(q, name);
  q->reading = t.batch;
  q->dequeued = t.ts;
  return t;
}

/* ---- producer ---- */

bool queue_reserve(queue *q, int64_t tuples) {
  if (q->kind == QUEUE_LOCK_FREE) return ms_queue_reserve(&q->values, tuples);
  pthread_mutex_lock(&q->lock);
  bool ok = ring_reserve(q, tuples);
  pthread_mutex_unlock(&q->lock);
  return ok;
}

void queue_enqueue(queue *q, batch *b, int64_t row) {
  if (q->kind == QUEUE_LOCK_FREE) {
    bool ok = ms_queue_enqueue(&q->values, tuple_name(b, row));
    assert(ok && "room has been reserved");
    (void)ok;
    return;
  }
  pthread_mutex_lock(&q->lock);
  ring_put(q, (tuple){batch_ts(b, row), row, b});
  pthread_mutex_unlock(&q->lock);
}

void queue_promise(queue *q, int64_t ts) {
  if (q->kind == QUEUE_LOCK_FREE) {
    AT(add_enqueue);
    promise_write(&q->promise, (uint64_t)ts + 1);
    return;
  }
  pthread_mutex_lock(&q->lock);
  if (ts > q->latest) q->latest = ts;
  pthread_mutex_unlock(&q->lock);
}

void queue_close(queue *q) {
  if (q->kind == QUEUE_LOCK_FREE) {
    AT(add_enqueue);
    promise_write(&q->promise, PROMISE_CLOSED);
    return;
  }
  pthread_mutex_lock(&q->lock);
  q->closed = true;
  pthread_mutex_unlock(&q->lock);
}

/* ---- consumer ---- */

position queue_peek(queue *q) {
  if (q->kind == QUEUE_LOCK_FREE) return lock_free_peek(q);
  pthread_mutex_lock(&q->lock);
  position p = ring_peek(q);
  pthread_mutex_unlock(&q->lock);
  return p;
}

tuple queue_dequeue(queue *q) {
  if (q->kind == QUEUE_LOCK_FREE) return lock_free_take(q);
  pthread_mutex_lock(&q->lock);
  tuple t = ring_take(q);
  pthread_mutex_unlock(&q->lock);
  return t;
}
