/*
 * wiml.c - the WiML design (Alg. 6): the inputs' threads update the windows of a W-Hive themselves, all the same ones, in
 * atomic steps; or each in a lane of its own where a function does not allow that (win_set.h). One thread emits. Only
 * for functions that do not depend on the order of tuples. See operator.h.
 *
 * A tuple is in its windows when add returns, but is pending until it is ready, as in every design: that bounds how far
 * an input may run ahead, and with it the number of open windows. The output thread reads the progress of all inputs
 * (`promise`) and how many tuples they have added (`added`), emits what is complete, and then passes the tuples that
 * were ready.
 *
 * Memory. What an add allocates depends on what is in the windows: missing nodes, winsets, windows and states, more
 * room in the states of sums and strings, and for a later row of a batch also on the rows before it. Reserving all of
 * it would look up every window of every tuple twice, where Alg. 6 looks it up once; an upper bound is tuples times
 * overlapping windows. So nothing is reserved. One tuple is added to all of its windows or to none (w_hive.h), but a
 * batch that runs out of memory half-way cannot be undone and ends the operator (operator_fail), as an update without
 * memory does in every design.
 */
#include "designs/designs.h"
#include "designs/w_hive_output.h"

#define RING_EVERY SIZED(256, 2) /* tuples between two rings */

typedef struct {
  cell promise;      /* 0: none, ts + 1, or PROMISE_CLOSED; the windows of all tuples below it are updated */
  cell added;        /* tuples added to their windows */
  uint64_t open;     /* input's thread: start of the first window that was open when it last rang */
  int64_t tuples;    /* input's thread: value of `added` */
  int64_t seen;      /* output thread: `added` at the last look */
  int64_t passed;    /* output thread: tuples passed */
  uint8_t apart[64]; /* separates it from the next input's */
} wiml_input;

typedef struct {
  w_hive_output out;
  wiml_input *input;
} wiml;

/* Tuples up to here are ready: (ts, input). */
typedef struct {
  int64_t ts;
  int32_t input;
} frontier;

/* ---- making ---- */

static void wiml_free(ps_operator *op) {
  wiml *w = op->state;
  w_hive_output_free(op);
  memory_free(w->input);
  memory_free(w);
}

static bool wiml_init(ps_operator *op) {
  assert(op->functions.combines);
  wiml *w = op->state = memory_new(sizeof *w);
  if (!w) return false;
  w->input = memory_new((size_t)op->inputs * sizeof *w->input);
  w_hive_sharing sharing = w_hive_sharing_of(&op->functions, op->inputs);
  if (!w->input || !w_hive_output_init(op, op->inputs, sharing)) {
    wiml_free(op);
    return false;
  }
  for (int32_t i = 0; i < op->inputs; i++) {
    cell_init(&w->input[i].promise, 0);
    cell_init(&w->input[i].added, 0);
  }
  return true;
}

/* ---- Add, Update ---- */

static bool wiml_reserve(ps_operator *op, int32_t which, int64_t rows) {
  (void)op, (void)which, (void)rows; /* see Memory above */
  return true;
}

/* Publishes the input's progress, and wakes the output thread. */
static void publish(wiml_input *in, ps_operator *op, uint64_t promise, int64_t tuples) {
  AT(add_update);
  promise_write(&in->promise, promise);
  in->tuples += tuples;
  AT(add_update);
  merged_publish(&in->added, (uint64_t)in->tuples);
  operator_ring(op, 0);
}

/* A published batch may be freed at once, so nothing of it is read afterwards. */
static void wiml_add(ps_operator *op, int32_t which, batch *b) {
  wiml *w = op->state;
  wiml_input *in = &w->input[which];
  int64_t rows = b->rows, unpublished = 0;
  for (int64_t row = 0; row < rows; row++) {
    int64_t ts = batch_ts(b, row);
    ps_code code = w_hive_update_windows(w->out.hive, which, ts, b->keys[row], b, row, NULL);
    if (code != PS_OK) {
      operator_fail(op, code, &(ps_fault){0});
      return;
    }
    uint64_t open = first_start(operator_windows(op), (uint64_t)ts);
    unpublished++;
    if (open == in->open && unpublished < RING_EVERY && row + 1 < rows) continue;
    in->open = open;
    publish(in, op, (uint64_t)ts + 1, unpublished);
    unpublished = 0;
  }
}

static void wiml_heartbeat(ps_operator *op, int32_t which, int64_t ts) {
  wiml *w = op->state;
  w_hive_heartbeat(w->out.hive, which, ts);
  publish(&w->input[which], op, (uint64_t)ts + 1, 0);
}

static void wiml_close(ps_operator *op, int32_t which) {
  wiml *w = op->state;
  w_hive_close(w->out.hive, which);
  publish(&w->input[which], op, PROMISE_CLOSED, 0);
}

/* ---- Output ---- */

static frontier look(wiml *w, const ps_operator *op) {
  frontier f = {INT64_MAX, op->inputs};
  for (int32_t i = 0; i < op->inputs; i++) {
    uint64_t promise = promise_read(&w->input[i].promise);
    w->input[i].seen = (int64_t)merged_read(&w->input[i].added);
    if (promise == PROMISE_CLOSED) continue;
    int64_t ts = (int64_t)(promise - 1); /* -1: no promise yet, so nothing is ready */
    if (f.input == op->inputs || ts < f.ts) f = (frontier){ts, i};
  }
  return f;
}

/* Passes the tuples up to the frontier. */
static bool settle(wiml *w, ps_operator *op, frontier f) {
  for (int32_t i = 0; i < op->inputs; i++) {
    wiml_input *in = &w->input[i];
    if (in->seen == in->passed) continue;
    ledger_view view = ledger_count_above(&op->input[i].ledger, i <= f.input ? f.ts : f.ts - 1);
    int64_t n = view.held - view.above;
    if (n > in->seen - in->passed) n = in->seen - in->passed;
    in->passed += n;
    operator_pass(op, i, n);
  }
  return operator_settle(op);
}

static ps_code wiml_step(ps_operator *op, int32_t number, ps_fault *fault) {
  (void)number;
  wiml *w = op->state;
  frontier f = look(w, op);
  ps_code code = w_hive_output_complete(op, fault);
  if (code != PS_EMPTY && code != PS_END) return code;
  if (code == PS_END) f = look(w, op); /* a closed input has added everything */
  return settle(w, op, f) ? code : PS_NO_MEMORY;
}

/* ---- snapshots ---- */

/* Any thread will do, since lanes are combined. */
static ps_code wiml_load(ps_operator *op, int64_t start, const key *k, const uint8_t *state) {
  return w_hive_load(((wiml *)op->state)->out.hive, 0, start, k, state);
}

static int64_t wiml_absorbed(ps_operator *op, int32_t which) {
  wiml_input *in = &((wiml *)op->state)->input[which];
  return in->tuples - in->passed;
}

const design wiml_design = {
    .ordered = false,
    .init = wiml_init,
    .free = wiml_free,
    .reserve = wiml_reserve,
    .add = wiml_add,
    .heartbeat = wiml_heartbeat,
    .close = wiml_close,
    .step = wiml_step,
    .oldest = w_hive_output_oldest,
    .newest = w_hive_output_newest,
    .save = w_hive_output_save,
    .load = wiml_load,
    .absorbed = wiml_absorbed,
    .stats = w_hive_output_stats,
};
