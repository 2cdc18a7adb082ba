/* queue.c - see queue.h. */
#include "queue.h"

#include "wait.h"

bool queue_init(queue *q, int64_t size_max) {
  *q = (queue){.latest = -1, .size_max = size_max};
  if (pthread_mutex_init(&q->lock, NULL) != 0) return false;
  if (wait_init(&q->space)) return true;
  pthread_mutex_destroy(&q->lock);
  return false;
}

void queue_free(queue *q, void (*drop)(void *context, batch *b), void *context) {
  for (int64_t i = 0; i < q->size; i++) drop(context, q->ring[(q->front + i) & (q->capacity - 1)].batch);
  memory_free(q->ring);
  pthread_cond_destroy(&q->space);
  pthread_mutex_destroy(&q->lock);
}

/* ---- producer ---- */

static bool ring_grow(queue *q, int64_t needed) {
  if (needed <= q->capacity) return true;
  int64_t capacity = 64;
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

/* A batch larger than the limit is let in when the queue is empty, since it must be taken whole. */
static bool has_space(const queue *q, int64_t rows) { return q->size == 0 || rows <= q->size_max - q->size; }

ps_code queue_reserve(queue *q, int64_t rows) {
  pthread_mutex_lock(&q->lock);
  ps_code code = PS_OK;
  if (q->closed || q->cancelled) {
    code = PS_CLOSED;
  } else if (!has_space(q, rows)) {
    code = PS_FULL;
  } else if (!ring_grow(q, q->size + rows)) {
    code = PS_NO_MEMORY;
  }
  pthread_mutex_unlock(&q->lock);
  return code;
}

void queue_enqueue(queue *q, tuple t) {
  pthread_mutex_lock(&q->lock);
  assert(q->size < q->capacity && t.ts >= q->latest);
  q->ring[(q->front + q->size) & (q->capacity - 1)] = t;
  q->size++;
  q->latest = t.ts;
  pthread_mutex_unlock(&q->lock);
}

void queue_promise(queue *q, int64_t ts) {
  pthread_mutex_lock(&q->lock);
  if (ts > q->latest) q->latest = ts;
  pthread_mutex_unlock(&q->lock);
}

void queue_close(queue *q) {
  pthread_mutex_lock(&q->lock);
  q->closed = true;
  pthread_mutex_unlock(&q->lock);
}

ps_code queue_wait_space(queue *q, int64_t rows, int32_t ms) {
  moment until = moment_in(ms);
  pthread_mutex_lock(&q->lock);
  q->waiting_for = rows;
  bool in_time = true;
  while (!has_space(q, rows) && !q->cancelled && in_time) in_time = wait_until(&q->space, &q->lock, until);
  q->waiting_for = 0;
  ps_code code = q->cancelled ? PS_CLOSED : has_space(q, rows) ? PS_OK : PS_FULL;
  pthread_mutex_unlock(&q->lock);
  return code;
}

/* ---- consumer ---- */

position queue_peek(queue *q) {
  pthread_mutex_lock(&q->lock);
  position p = {QUEUE_PROMISE, q->latest};
  if (q->size) {
    p = (position){QUEUE_TUPLE, q->ring[q->front].ts};
  } else if (q->closed) {
    p = (position){QUEUE_DRAINED, INT64_MAX};
  }
  pthread_mutex_unlock(&q->lock);
  return p;
}

tuple queue_dequeue(queue *q) {
  pthread_mutex_lock(&q->lock);
  assert(q->size > 0);
  tuple t = q->ring[q->front];
  q->front = (q->front + 1) & (q->capacity - 1);
  q->size--;
  if (q->waiting_for && has_space(q, q->waiting_for)) pthread_cond_signal(&q->space);
  pthread_mutex_unlock(&q->lock);
  return t;
}

/* ---- any thread ---- */

int64_t queue_size(queue *q) {
  pthread_mutex_lock(&q->lock);
  int64_t size = q->size;
  pthread_mutex_unlock(&q->lock);
  return size;
}

int64_t queue_latest(queue *q) {
  pthread_mutex_lock(&q->lock);
  int64_t latest = q->latest;
  pthread_mutex_unlock(&q->lock);
  return latest;
}

bool queue_closed(queue *q) {
  pthread_mutex_lock(&q->lock);
  bool closed = q->closed || q->cancelled;
  pthread_mutex_unlock(&q->lock);
  return closed;
}

void queue_cancel(queue *q) {
  pthread_mutex_lock(&q->lock);
  q->cancelled = true;
  pthread_cond_broadcast(&q->space);
  pthread_mutex_unlock(&q->lock);
}
