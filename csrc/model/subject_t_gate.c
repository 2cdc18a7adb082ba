/* subject_t_gate.c - T-Gate, under the model: its operations as named in spec/ReadyOrder.tla. */
#include "model/subject.h"

#include "gates/t_gate.h"

enum { INSERT, HEARTBEAT, CLOSE, GET };

static const char *const operations[] = {
    [INSERT] = "insert(input, ts, payload)",
    [HEARTBEAT] = "heartbeat(input, ts)",
    [CLOSE] = "close(input)",
    [GET] = "get(reader)",
    NULL,
};

static int64_t given(int64_t parameter, int64_t usual) { return parameter ? parameter : usual; }

/* Parameters: inputs, readers, levels, full_every, count_every, slab_bytes, slab_spares; 0: the users' default,
   although T-Gate's own defaults are small in this build (SIZED). */
static void *create(const int64_t *parameter) {
  t_gate_options options = {
      .inputs = (int32_t)parameter[0],
      .readers = (int32_t)parameter[1],
      .levels = (int32_t)parameter[2],
      .full_every = (int32_t)given(parameter[3], 256),
      .count_every = (int32_t)given(parameter[4], 128),
      .slab_bytes = given(parameter[5], 4064),
      .slab_spares = given(parameter[6], 16),
  };
  t_gate *gate;
  return t_gate_new(&options, &gate) == PS_OK ? gate : NULL;
}

static void get(t_gate *gate, int32_t reader, model_answer *answer) {
  t_gate_tuple tuple;
  ps_code code = t_gate_get_next_ready_tuple(gate, reader, &tuple);
  answer_with(answer, code);
  if (code != PS_OK) return;
  answer_with(answer, tuple.ts);
  answer_with(answer, tuple.input);
  answer_with(answer, (int64_t)tuple.payload[0]);
}

static void call(void *object, int32_t operation, const int64_t *a, model_answer *answer) {
  ps_fault fault;
  int32_t who = (int32_t)a[0];
  uint64_t payload[2] = {(uint64_t)a[2], 0};
  switch (operation) {
    case INSERT: answer_with(answer, t_gate_insert_tuple(object, who, a[1], payload, &fault)); break;
    case HEARTBEAT: answer_with(answer, t_gate_heartbeat(object, who, a[1], &fault)); break;
    case CLOSE:
      t_gate_close(object, who);
      answer_with(answer, PS_OK);
      break;
    default: get(object, who, answer);
  }
}

static void destroy(void *object) { t_gate_free(object); }

extern const subject t_gate_subject;
const subject t_gate_subject = {"t_gate", operations, create, call, destroy};
