/* tuml_sc.c - the TuML_SC design (Alg. 3): a T-Gate; one thread updates and emits. See operator.h. */
#include "designs/designs.h"
#include "designs/t_gate_input.h"
#include "designs/update_output.h"

typedef struct {
  update_output update_output;
  gate_in in;
} tuml_sc;

static bool tuml_sc_init(ps_operator *op) {
  tuml_sc *t = op->state = memory_new(sizeof *t);
  if (!t) return false;
  update_output_init(op);
  if (gate_in_init(&t->in, op, 0, 1)) return true;
  memory_free(t);
  return false;
}

static void tuml_sc_free(ps_operator *op) {
  tuml_sc *t = op->state;
  gate_in_free(&t->in);
  update_output_free(op);
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

static void tuml_sc_close(ps_operator *op, int32_t which) { gate_in_close(&((tuml_sc *)op->state)->in, op, which); }

/* ---- Update, Output ---- */

/* Adds the tuple to its windows, then emits those that it has completed: none of its own is among them. */
static ps_code update_output_tuple(ps_operator *op, const t_gate_tuple *next, ps_fault *fault) {
  ps_code code = update_output_update(op, gate_batch(next), gate_row(next));
  if (code == PS_OK) code = update_output_complete(op, next->ts, fault);
  return operator_passed(op, next->input) ? code : PS_NO_MEMORY;
}

static ps_code tuml_sc_step(ps_operator *op, int32_t number, ps_fault *fault) {
  (void)number;
  t_gate *gate = ((tuml_sc *)op->state)->in.gate;
  ps_code code = update_output_complete(op, t_gate_position(gate, 0), fault); /* what a pause has left over */
  if (code == PS_OK) code = update_output_begin(op);
  if (code != PS_OK) return code;
  t_gate_tuple next;
  ps_code got = t_gate_get_next_ready_tuple(gate, 0, &next);
  if (got == PS_OK) return update_output_tuple(op, &next, fault);
  update_output_skip(op);
  return update_output_idle(op, got, t_gate_position(gate, 0), fault); /* markers may have completed windows */
}

const design tuml_sc_design = {
    .ordered = true,
    .init = tuml_sc_init,
    .free = tuml_sc_free,
    .reserve = tuml_sc_reserve,
    .add = tuml_sc_add,
    .heartbeat = tuml_sc_heartbeat,
    .piles = gate_in_piles,
    .close = tuml_sc_close,
    .step = tuml_sc_step,
    .oldest = update_output_oldest,
    .newest = update_output_newest,
    .save = update_output_save,
    .load = update_output_load,
    .number = update_output_number,
    .stats = update_output_stats,
};
