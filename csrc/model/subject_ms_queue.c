/* subject_ms_queue.c - the queue of Michael and Scott, under the model. */
#include "model/subject.h"

#include "gates/ms_queue.h"

enum { ENQUEUE, DEQUEUE, PEEK, IS_EMPTY };

enum { VALUES = 60 }; /* more than any program enqueues, so that "full" cannot happen */

static const char *const operations[] = {
    [ENQUEUE] = "enqueue(value)", [DEQUEUE] = "dequeue()", [PEEK] = "peek()", [IS_EMPTY] = "is_empty()", NULL};

static void *create(const int64_t *parameter) {
  (void)parameter;
  ms_queue *q = memory_new(sizeof *q);
  return ms_queue_init(q) && ms_queue_reserve(q, VALUES) ? q : NULL;
}

static void call(void *object, int32_t operation, const int64_t *a, model_answer *answer) {
  uint64_t value = 0;
  bool found = false;
  switch (operation) {
    case ENQUEUE: answer_with(answer, ms_queue_enqueue(object, (uint64_t)a[0])); return;
    case IS_EMPTY: answer_with(answer, ms_queue_is_empty(object)); return;
    case DEQUEUE: found = ms_queue_dequeue(object, &value); break;
    default: found = ms_queue_peek(object, &value);
  }
  answer_with(answer, found);
  if (found) answer_with(answer, (int64_t)value);
}

static void destroy(void *object) {
  ms_queue_free(object);
  memory_free(object);
}

extern const subject ms_queue_subject;
const subject ms_queue_subject = {"ms_queue", operations, create, call, destroy};
