/* runs.c - the runs design: whole batches pass a Run-Gate; one thread updates the windows in tuple order and emits. See
   operator.h. */
#include "designs/designs.h"
#include "gates/run_gate.h"
#include "designs/update_output.h"

typedef struct {
  update_output update_output;
  run_gate gate;
  run_block block; /* output thread: ready tuples not yet in their windows; n = 0: none */
  run_slice slice; /* the next ones of these, of one input; n = 0: none */
  struct {
    run *next, *close; /* runs allocated for the next insert or heartbeat, and for the close */
  } made[];            /* by input */
} runs;

/* ---- making ---- */

static void runs_free(ps_operator *op) {
  runs *r = op->state;
  for (int32_t i = 0; i < op->inputs; i++) {
    memory_free(r->made[i].next);
    memory_free(r->made[i].close);
  }
  run_gate_free(&r->gate);
  update_output_free(op);
  memory_free(r);
}

static bool runs_init(ps_operator *op) {
  runs *r = op->state = memory_new(sizeof *r + (size_t)op->inputs * sizeof r->made[0]);
  if (!r) return false;
  update_output_init(op);
  if (!run_gate_init(&r->gate, op->inputs, 1)) {
    memory_free(r);
    return false;
  }
  bool ok = true; /* a close must not fail, so its run is allocated here */
  for (int32_t i = 0; ok && i < op->inputs; i++) ok = (r->made[i].close = run_gate_reserve(&r->gate)) != NULL;
  if (!ok) runs_free(op);
  return ok;
}

/* ---- Add ---- */

static bool runs_reserve(ps_operator *op, int32_t which, int64_t rows) {
  (void)rows;
  runs *r = op->state;
  if (!r->made[which].next) r->made[which].next = run_gate_reserve(&r->gate);
  return r->made[which].next != NULL;
}

static run *take(run **made) {
  run *taken = *made;
  *made = NULL;
  return taken;
}

static void runs_add(ps_operator *op, int32_t which, batch *b) {
  runs *r = op->state;
  const int64_t *ts = (const int64_t *)b->columns[0].values + b->columns[0].first;
  run_gate_insert_run(&r->gate, which, take(&r->made[which].next), ts, b->rows, b);
  operator_ring(op, 0);
}

static void runs_heartbeat(ps_operator *op, int32_t which, int64_t ts) {
  runs *r = op->state;
  run_gate_heartbeat(&r->gate, which, take(&r->made[which].next), ts);
  operator_ring(op, 0);
}

static bool runs_piles(ps_operator *op, int32_t which, int64_t ts) {
  (void)op, (void)which, (void)ts; /* each heartbeat is a run */
  return true;
}

static void runs_close(ps_operator *op, int32_t which) {
  runs *r = op->state;
  run_gate_close(&r->gate, which, take(&r->made[which].close));
  operator_ring(op, 0);
}

/* ---- Update, Output ---- */

/* First emits the windows that the tuple completes, then adds it to its own windows. */
static ps_code update_output_tuple(runs *r, ps_operator *op, ps_fault *fault) {
  run_slice *s = &r->slice;
  ps_code code = update_output_complete(op, s->ts[s->from], fault);
  if (code == PS_OK) code = update_output_begin(op);
  if (code != PS_OK) return code;
  code = update_output_update(op, s->owner, s->from);
  s->from++;
  s->n--;
  return operator_passed(op, s->input) ? code : PS_NO_MEMORY;
}

/* The next slice of the current block, or of a new one. */
static ps_code next_slice(runs *r) {
  if (r->block.n == 0) {
    ps_code code = run_gate_get_next_ready_block(&r->gate, 0, &r->block);
    if (code != PS_OK) return code;
  }
  r->slice = r->block.n > 0 ? run_block_next(&r->block) : r->block.slice;
  return PS_OK;
}

static ps_code runs_step(ps_operator *op, int32_t number, ps_fault *fault) {
  (void)number;
  runs *r = op->state;
  ps_code code = r->slice.n > 0 ? PS_OK : next_slice(r);
  if (code != PS_OK) return update_output_idle(op, code, run_gate_position(&r->gate, 0), fault);
  /* A tuple may be in many windows: a pause or cancel does not wait for the rest of the block. */
  while (code == PS_OK && r->slice.n > 0 && !ps_flag_get(&op->pause.wanted) && !ps_flag_get(&op->cancelled)) {
    code = update_output_tuple(r, op, fault);
    if (r->slice.n == 0 && r->block.n > 0) r->slice = run_block_next(&r->block);
  }
  return code;
}

/* Snapshots: tuples of the current block and slice are not passed, so they are saved as pending. */
const design runs_design = {
    .ordered = true,
    .init = runs_init,
    .free = runs_free,
    .reserve = runs_reserve,
    .add = runs_add,
    .heartbeat = runs_heartbeat,
    .piles = runs_piles,
    .close = runs_close,
    .step = runs_step,
    .oldest = update_output_oldest,
    .newest = update_output_newest,
    .save = update_output_save,
    .load = update_output_load,
    .number = update_output_number,
    .stats = update_output_stats,
};
