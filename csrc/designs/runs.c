/* runs.c - the runs design: whole batches pass a Run-Gate; one thread updates the windows in tuple order and emits. See
   operator.h. */
#include "designs/designs.h"
#include "gates/run_gate.h"
#include "designs/update_output.h"

typedef struct {
  run_gate gate;
  update_output update_output;
  run_block block; /* output thread: ready tuples not yet in their windows; n = 0: none */
  run_slice slice; /* the next ones of these, of one input; n = 0: none */
  struct {
    run *next, *close; /* runs allocated for the next insert or heartbeat, and for the close */
  } made[];            /* by input */
} runs;

/* ---- making ---- */

static int32_t runs_workers(int32_t threads) {
  (void)threads; /* the output thread updates */
  return 1;
}

static void runs_free(ps_operator *op) {
  runs *r = op->state;
  for (int32_t i = 0; i < op->inputs; i++) {
    memory_free(r->made[i].next);
    memory_free(r->made[i].close);
  }
  run_gate_free(&r->gate);
  update_output_free(&r->update_output);
  memory_free(r);
}

static bool runs_init(ps_operator *op) {
  runs *r = op->state = memory_new(sizeof *r + (size_t)op->inputs * sizeof r->made[0]);
  if (!r) return false;
  update_output_init(&r->update_output, op);
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

/* Nothing is ready: emits the windows that promises have completed. */
static ps_code idle(runs *r, ps_operator *op, ps_code got, ps_fault *fault) {
  int64_t position = run_gate_position(&r->gate, 0);
  ps_code code = got == PS_END ? update_output_all(&r->update_output, op, fault)
                               : update_output_complete(&r->update_output, op, position, fault);
  if (code != PS_OK) return code;
  return operator_settle(op) ? got : PS_NO_MEMORY;
}

/* First emits the windows that the tuple completes, then adds it to its own windows. */
static ps_code update_output_tuple(runs *r, ps_operator *op, ps_fault *fault) {
  run_slice *s = &r->slice;
  ps_code code = update_output_complete(&r->update_output, op, s->ts[s->from], fault);
  if (code == PS_OK) code = update_output_begin(op);
  if (code != PS_OK) return code;
  code = update_output_update(&r->update_output, op, s->owner, s->from);
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
  if (code != PS_OK) return idle(r, op, code, fault);
  /* A tuple may be in many windows: a pause or cancel does not wait for the rest of the block. */
  while (code == PS_OK && r->slice.n > 0 && !ps_flag_get(&op->pause.wanted) && !ps_flag_get(&op->cancelled)) {
    code = update_output_tuple(r, op, fault);
    if (r->slice.n == 0 && r->block.n > 0) r->slice = run_block_next(&r->block);
  }
  return code;
}

static int64_t runs_oldest(ps_operator *op) { return window_list_oldest(&((runs *)op->state)->update_output.windows); }

static int64_t runs_newest(ps_operator *op) { return window_list_newest(&((runs *)op->state)->update_output.windows); }

/* ---- snapshots: tuples of the current block and slice are not passed, so they are saved as pending ---- */

static bool runs_save(ps_operator *op, window_visit visit, void *context) {
  return update_output_save(&((runs *)op->state)->update_output, visit, context);
}

static ps_code runs_load(ps_operator *op, int64_t start, const key *k, const uint8_t *state) {
  return update_output_load(&((runs *)op->state)->update_output, start, k, state);
}

static void runs_number(ps_operator *op, int64_t next) {
  update_output_number(&((runs *)op->state)->update_output, next);
}

static void runs_stats(ps_operator *op, ps_stats *out) {
  update_output_stats(&((runs *)op->state)->update_output, out);
}

const design runs_design = {
    .ordered = true,
    .workers = runs_workers,
    .init = runs_init,
    .free = runs_free,
    .reserve = runs_reserve,
    .add = runs_add,
    .heartbeat = runs_heartbeat,
    .piles = runs_piles,
    .close = runs_close,
    .step = runs_step,
    .oldest = runs_oldest,
    .newest = runs_newest,
    .save = runs_save,
    .load = runs_load,
    .number = runs_number,
    .stats = runs_stats,
};
