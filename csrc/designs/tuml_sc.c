/* tuml_sc.c - the TuML_SC design (Alg. 3): a T-Gate; one thread updates and emits. See operator.h. */
#include "designs/designs.h"
#include "designs/t_gate_input.h"
#include "designs/update_output.h"

typedef struct {
  gate_in in;
  update_output update_output;
} tuml_sc;

static int32_t tuml_sc_workers(int32_t threads) {
  (void)threads; /* the output thread updates */
  return 1;
}

static bool tuml_sc_init(ps_operator *op) {
  tuml_sc *t = op->state = memory_new(sizeof *t);
  if (!t) return false;
  update_output_init(&t->update_output, op);
  if (gate_in_init(&t->in, op, 0, 1)) return true;
  memory_free(t);
  return false;
}

static void tuml_sc_free(ps_operator *op) {
  tuml_sc *t = op->state;
  gate_in_free(&t->in);
  update_output_free(&t->update_output);
  memory_free(t);
}

/* ---- Add ---- */

static bool tuml_sc_reserve(ps_operator *op, int32_t which, int64_t rows) {
  return t_gate_reserve(((tuml_sc *)op->state)->in.gate, which, rows);
}

static void tuml_sc_add(ps_operator *op, int32_t which, batch *b) {
  gate_in_add(&((tuml_sc *)op->state)->in, op, which, b);
}

static void tuml_sc_heartbeat(ps_operator *op, int32_t which, int64_t ts) {
  gate_in_heartbeat(&((tuml_sc *)op->state)->in, op, which, ts);
}

static bool tuml_sc_piles(ps_operator *op, int32_t which, int64_t ts) {
  (void)op, (void)which, (void)ts; /* each heartbeat is a node of the gate */
  return true;
}

static void tuml_sc_close(ps_operator *op, int32_t which) { gate_in_close(&((tuml_sc *)op->state)->in, op, which); }

/* ---- Update, Output ---- */

/* Nothing is ready: emits the windows that markers on the way have completed. */
static ps_code idle(tuml_sc *t, ps_operator *op, ps_code got, ps_fault *fault) {
  ps_code code = got == PS_END ? update_output_all(&t->update_output, op, fault)
                               : update_output_complete(&t->update_output, op, t_gate_position(t->in.gate, 0), fault);
  if (code != PS_OK) return code;
  return operator_settle(op) ? got : PS_NO_MEMORY;
}

/* Adds the tuple to its windows, then emits those that it has completed: none of its own is among them. */
static ps_code update_output_tuple(tuml_sc *t, ps_operator *op, const t_gate_tuple *next, ps_fault *fault) {
  ps_code code = update_output_update(&t->update_output, op, gate_batch(next), gate_row(next));
  if (code == PS_OK) code = update_output_complete(&t->update_output, op, next->ts, fault);
  return operator_passed(op, next->input) ? code : PS_NO_MEMORY;
}

static ps_code tuml_sc_step(ps_operator *op, int32_t number, ps_fault *fault) {
  (void)number;
  tuml_sc *t = op->state;
  ps_code code = update_output_complete(&t->update_output, op, t_gate_position(t->in.gate, 0),
                                        fault); /* what a pause has left over */
  if (code == PS_OK) code = update_output_begin(op);
  if (code != PS_OK) return code;
  t_gate_tuple next;
  ps_code got = t_gate_get_next_ready_tuple(t->in.gate, 0, &next);
  if (got == PS_OK) return update_output_tuple(t, op, &next, fault);
  update_output_skip(op);
  return idle(t, op, got, fault);
}

static int64_t tuml_sc_oldest(ps_operator *op) {
  return window_list_oldest(&((tuml_sc *)op->state)->update_output.windows);
}

static int64_t tuml_sc_newest(ps_operator *op) {
  return window_list_newest(&((tuml_sc *)op->state)->update_output.windows);
}

/* ---- snapshots ---- */

static bool tuml_sc_save(ps_operator *op, window_visit visit, void *context) {
  return update_output_save(&((tuml_sc *)op->state)->update_output, visit, context);
}

static ps_code tuml_sc_load(ps_operator *op, int64_t start, const key *k, const uint8_t *state) {
  return update_output_load(&((tuml_sc *)op->state)->update_output, start, k, state);
}

static void tuml_sc_number(ps_operator *op, int64_t next) {
  update_output_number(&((tuml_sc *)op->state)->update_output, next);
}

static void tuml_sc_stats(ps_operator *op, ps_stats *out) {
  update_output_stats(&((tuml_sc *)op->state)->update_output, out);
}

const design tuml_sc_design = {
    .ordered = true,
    .workers = tuml_sc_workers,
    .init = tuml_sc_init,
    .free = tuml_sc_free,
    .reserve = tuml_sc_reserve,
    .add = tuml_sc_add,
    .heartbeat = tuml_sc_heartbeat,
    .piles = tuml_sc_piles,
    .close = tuml_sc_close,
    .step = tuml_sc_step,
    .oldest = tuml_sc_oldest,
    .newest = tuml_sc_newest,
    .save = tuml_sc_save,
    .load = tuml_sc_load,
    .number = tuml_sc_number,
    .stats = tuml_sc_stats,
};
