/* subject_queue.c - the queue of one input with its promises, under the model: lock-free (MQ_LF) or guarded by a mutex
   (MQ). */
#include "model/subject.h"

#include "gates/queue.h"

enum { ENQUEUE, PROMISE, CLOSE, TAKE };
enum { TUPLES_MAX = 16 };

static const char *const operations[] = {
    [ENQUEUE] = "enqueue(ts)", [PROMISE] = "promise(ts)", [CLOSE] = "close()", [TAKE] = "take()", NULL};

typedef struct {
  queue queue;
  batch *batch; /* of all tuples, filled from the front */
  int64_t n;    /* used by the producer */
  int64_t ts[TUPLES_MAX];
} object;

/* Parameters: whether it is guarded by a mutex. */
static void *create(const int64_t *parameter) {
  queue_kind kind = parameter[0] ? QUEUE_MUTEX : QUEUE_LOCK_FREE;
  object *o = memory_new(sizeof *o);
  o->batch = memory_new(sizeof *o->batch + sizeof *o->batch->columns);
  o->batch->columns[0] = (column){.type = PS_I64, .values = o->ts};
  return queue_init(&o->queue, kind) && queue_reserve(&o->queue, TUPLES_MAX) ? o : NULL;
}

static void enqueue(object *o, int64_t ts) {
  assert(o->n < TUPLES_MAX);
  WRITES(o->ts[o->n]);
  o->ts[o->n] = ts;
  queue_enqueue(&o->queue, o->batch, o->n++);
}

/* The front tuple, or the promise; and which of the two. */
static void take(object *o, model_answer *answer) {
  position p = queue_peek(&o->queue);
  int64_t ts = p.ts;
  if (p.state == QUEUE_TUPLE) {
    tuple t = queue_dequeue(&o->queue);
    READS(o->ts[t.row]);
    ts = t.ts;
  }
  answer_with(answer, p.state);
  answer_with(answer, ts);
}

static void call(void *subject_object, int32_t operation, const int64_t *a, model_answer *answer) {
  object *o = subject_object;
  switch (operation) {
    case ENQUEUE: enqueue(o, a[0]); break;
    case PROMISE: queue_promise(&o->queue, a[0]); break;
    case CLOSE: queue_close(&o->queue); break;
    default: take(o, answer);
  }
}

static void destroy(void *subject_object) {
  object *o = subject_object;
  queue_free(&o->queue);
  memory_free(o->batch);
  memory_free(o);
}

extern const subject queue_subject;
const subject queue_subject = {"queue", operations, create, call, destroy};
