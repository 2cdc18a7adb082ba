/*
 * subject_doorbell.c - a design's hand-over to its worker, under the model: an input publishes the number of tuples and
 * rings (publish in sliced.c); the worker looks for work, prepares to sleep, looks once more and sleeps (work in
 * worker.c).
 *
 * A worker that finds nothing is asleep from then on. `sleep` returns when it has been woken; `wake` returns whether it
 * has been.
 */
#include "model/subject.h"

#include "base/doorbell.h"

enum { PUT, RING, TAKE, SLEEP, WAKE };
enum { PUTS_MAX = 16 };

static const char *const operations[] = {[PUT] = "put()",     [RING] = "ring()", [TAKE] = "take()",
                                         [SLEEP] = "sleep()", [WAKE] = "wake()", NULL};

typedef struct {
  doorbell bell;
  cell added;
  int64_t puts;           /* used by the input */
  int64_t work[PUTS_MAX]; /* what the count is about */
  int64_t seen;           /* used by the worker, as is `asleep` */
  bool asleep;
} object;

static void *create(const int64_t *parameter) {
  (void)parameter;
  object *o = memory_new(sizeof *o);
  cell_init(&o->added, 0);
  return doorbell_init(&o->bell) ? o : NULL;
}

static void put(object *o) {
  assert(o->puts < PUTS_MAX);
  WRITES(o->work[o->puts]);
  o->puts++;
  AT(add_update);
  merged_publish(&o->added, (uint64_t)o->puts);
  doorbell_ring(&o->bell);
}

/* The number added since the last look. */
static int64_t look(object *o) {
  AT(output_next);
  int64_t added = (int64_t)merged_read(&o->added), fresh = added - o->seen;
  for (; o->seen < added; o->seen++) READS(o->work[o->seen]);
  return fresh;
}

static int64_t take(object *o) {
  if (o->asleep) return 0;
  int64_t fresh = look(o);
  if (fresh) return fresh;
  doorbell_prepare(&o->bell);
  fresh = look(o);
  o->asleep = fresh == 0;
  if (fresh) doorbell_skip(&o->bell);
  return fresh;
}

static void sleep_on(object *o) {
  if (o->asleep) doorbell_sleep(&o->bell);
  o->asleep = false;
}

static bool wake(object *o) {
  pthread_mutex_lock(&o->bell.lock);
  bool rung = o->bell.rung;
  pthread_mutex_unlock(&o->bell.lock);
  if (o->asleep && !rung) return false;
  sleep_on(o);
  return true;
}

static void call(void *subject_object, int32_t operation, const int64_t *a, model_answer *answer) {
  (void)a;
  object *o = subject_object;
  switch (operation) {
    case PUT: put(o); break;
    case RING: doorbell_ring(&o->bell); break;
    case SLEEP: sleep_on(o); break;
    case TAKE: answer_with(answer, take(o)); break;
    default: answer_with(answer, wake(o));
  }
}

static void destroy(void *subject_object) {
  object *o = subject_object;
  doorbell_free(&o->bell);
  memory_free(o);
}

extern const subject doorbell_subject;
const subject doorbell_subject = {"doorbell", operations, create, call, destroy};
