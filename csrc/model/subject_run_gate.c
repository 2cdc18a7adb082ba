/* subject_run_gate.c - Run-Gate, under the model: T-Gate's operations, with runs for tuples. */
#include "model/subject.h"

#include "gates/run_gate.h"

enum { INSERT, HEARTBEAT, CLOSE, GET, GET_RUN, GET_BLOCK };

static const char *const operations[] = {
    [INSERT] = "insert_run(input, ts, step, n, payload)", /* n tuples: ts, ts + step, ...; payloads count up */
    [HEARTBEAT] = "heartbeat(input, ts)",
    [CLOSE] = "close(input)",
    [GET] = "get(reader)",
    [GET_RUN] = "get_run(reader)",
    [GET_BLOCK] = "get_block(reader)",
    NULL,
};

/* The tuples of a run: its owner. Freed when the only reader has got the last of them, or at the end. */
typedef struct tuples {
  struct tuples *next; /* of the same input */
  int64_t n, payload;
  bool gone;
  int64_t *ts;
} tuples;

typedef struct {
  run_gate gate;
  tuples *made[MODEL_THREADS_MAX]; /* by input */
} object;

/* Parameters: inputs, readers. */
static void *create(const int64_t *parameter) {
  object *o = memory_new(sizeof *o);
  return run_gate_init(&o->gate, (int32_t)parameter[0], (int32_t)parameter[1]) ? o : NULL;
}

static tuples *tuples_new(const int64_t *a) {
  tuples *t = memory_new(sizeof *t);
  if (!t) return NULL;
  *t = (tuples){.n = a[3], .payload = a[4], .ts = memory_new((size_t)a[3] * sizeof *t->ts)};
  for (int64_t i = 0; t->ts && i < t->n; i++) {
    WRITES(t->ts[i]);
    t->ts[i] = a[1] + i * a[2];
  }
  if (t->ts) return t;
  memory_free(t);
  return NULL;
}

static ps_code insert(object *o, int32_t input, const int64_t *a) {
  run *r = run_gate_reserve(&o->gate);
  tuples *t = r ? tuples_new(a) : NULL;
  if (!t) {
    memory_free(r);
    return PS_NO_MEMORY;
  }
  t->next = o->made[input];
  o->made[input] = t;
  run_gate_insert_run(&o->gate, input, r, t->ts, t->n, t);
  return PS_OK;
}

static ps_code promise(object *o, int32_t operation, const int64_t *a) {
  run *r = run_gate_reserve(&o->gate);
  if (!r) return PS_NO_MEMORY;
  if (operation == CLOSE) {
    run_gate_close(&o->gate, (int32_t)a[0], r);
  } else {
    run_gate_heartbeat(&o->gate, (int32_t)a[0], r, a[1]);
  }
  return PS_OK;
}

/* The reader has got this row. */
static void had(object *o, tuples *t, int64_t row) {
  if (o->gate.readers > 1 || row + 1 < t->n) return;
  t->gone = true;
  memory_free(t->ts);
}

static void get(object *o, int32_t reader, bool one, model_answer *answer) {
  run_slice slice;
  ps_code code = one ? run_gate_get_next_ready_tuple(&o->gate, reader, &slice)
                     : run_gate_get_next_ready_run(&o->gate, reader, &slice);
  answer_with(answer, code);
  if (code != PS_OK) return;
  tuples *t = slice.owner;
  if (!one) answer_with(answer, slice.input);
  for (int64_t i = slice.from; i < slice.from + slice.n; i++) {
    answer_with(answer, slice.ts[i]);
    if (one) answer_with(answer, slice.input);
    answer_with(answer, t->payload + i);
  }
  had(o, t, slice.from + slice.n - 1);
}

static void answer_slice(object *o, const run_slice *s, model_answer *answer) {
  tuples *t = s->owner;
  for (int64_t i = s->from; i < s->from + s->n; i++) {
    answer_with(answer, s->ts[i]);
    answer_with(answer, s->input);
    answer_with(answer, t->payload + i);
  }
  had(o, t, s->from + s->n - 1);
}

static void get_block(object *o, int32_t reader, model_answer *answer) {
  run_block block;
  ps_code code = run_gate_get_next_ready_block(&o->gate, reader, &block);
  answer_with(answer, code);
  if (code != PS_OK) return;
  if (block.n == 0) answer_slice(o, &block.slice, answer);
  while (block.n > 0) {
    run_slice slice = run_block_next(&block);
    answer_slice(o, &slice, answer);
  }
}

static void call(void *subject_object, int32_t operation, const int64_t *a, model_answer *answer) {
  object *o = subject_object;
  int32_t who = (int32_t)a[0];
  switch (operation) {
    case INSERT: answer_with(answer, insert(o, who, a)); break;
    case HEARTBEAT:
    case CLOSE: answer_with(answer, promise(o, operation, a)); break;
    case GET_BLOCK: get_block(o, who, answer); break;
    default: get(o, who, operation == GET, answer);
  }
}

static void destroy(void *subject_object) {
  object *o = subject_object;
  run_gate_free(&o->gate);
  for (int32_t i = 0; i < MODEL_THREADS_MAX; i++) {
    for (tuples *t = o->made[i], *next; t; t = next) {
      next = t->next;
      if (!t->gone) memory_free(t->ts);
      memory_free(t);
    }
  }
  memory_free(o);
}

extern const subject run_gate_subject;
const subject run_gate_subject = {"run_gate", operations, create, call, destroy};
