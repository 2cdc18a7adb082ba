/* subject.h - the interface of a structure that is run under the model. */
#pragma once

#include "base/base.h"

#include "model/model.h"

#include "base/atomics.h"

typedef struct {
  const char *name;
  const char *const *operations; /* "name(argument, ...)", NULL after the last one */
  void *(*create)(const int64_t *parameter);
  void (*call)(void *object, int32_t operation, const int64_t *argument, model_answer *answer);
  void (*destroy)(void *object);
} subject;

extern const subject *const subjects[]; /* NULL after the last one */

/* Whether a sleep of the current call ended because its time limit passed (locks.c). */
bool model_late(void);

static inline void answer_with(model_answer *answer, int64_t result) {
  assert(answer->results < MODEL_RESULTS_MAX);
  answer->result[answer->results++] = result;
}
