/*
 * tuml_mc.c - the TuML_MC design (Alg. 3 and 6): a T-Gate, update threads that share the keys, a W-Hive. See
 * operator.h.
 *
 * Every update thread reads every tuple and adds those of its own keys to their windows. It publishes its progress for
 * all tuples: in the hive its position (the printed algorithm does so only for the thread's own tuples, and stalls),
 * and in `merged` how many tuples of each input it has read.
 *
 * The output thread reads `merged` first, then emits what is complete, then settles what it has read in `merged`. So
 * when a tuple is no longer pending, every row that it completed is emitted. A stalled reader blocks the output thread,
 * hence the ledgers, hence the inputs, although update threads continue.
 */
#include "designs/designs.h"
#include "designs/t_gate_input.h"
#include "designs/w_hive_output.h"

enum { RUN = SIZED(64, 2) }; /* tuples read per call */

typedef struct {
  int64_t *read;  /* tuples read, by input */
  int64_t ts;     /* of the last tuple or marker; -1: none */
  uint64_t open;  /* start of the first window that was open when the output thread was last rung */
  int64_t unrung; /* tuples since then */
  t_gate_tuple run[RUN];
} updater;

typedef struct {
  w_hive_output out;
  gate_in in;
  int32_t updaters;
  updater *updater;
  cell *merged;    /* per updater and input: tuples read */
  int64_t *seen;   /* per input, output thread: tuples that all updaters had read at the last look */
  int64_t *passed; /* per input, output thread: tuples passed */
} tuml_mc;

/* ---- making ---- */

static void tuml_mc_free(ps_operator *op) {
  tuml_mc *t = op->state;
  gate_in_free(&t->in);
  w_hive_output_free(op);
  for (int32_t u = 0; t->updater && u < t->updaters; u++) memory_free(t->updater[u].read);
  memory_free(t->updater);
  memory_free(t->merged);
  memory_free(t->seen);
  memory_free(t->passed);
  memory_free(t);
}

static bool updaters_init(tuml_mc *t, ps_operator *op) {
  size_t inputs = (size_t)op->inputs, updaters = (size_t)t->updaters;
  t->updater = memory_new(updaters * sizeof *t->updater);
  t->merged = memory_new(updaters * inputs * sizeof *t->merged);
  t->seen = memory_new(inputs * sizeof *t->seen);
  t->passed = memory_new(inputs * sizeof *t->passed);
  if (!t->updater || !t->merged || !t->seen || !t->passed) return false;
  for (size_t i = 0; i < updaters * inputs; i++) cell_init(&t->merged[i], 0);
  for (int32_t u = 0; u < t->updaters; u++) {
    t->updater[u] = (updater){.read = memory_new(inputs * sizeof(int64_t)), .ts = -1};
    if (!t->updater[u].read) return false;
  }
  return true;
}

static bool tuml_mc_init(ps_operator *op) {
  tuml_mc *t = op->state = memory_new(sizeof *t);
  if (!t) return false;
  t->updaters = op->workers - 1;
  if (gate_in_init(&t->in, op, 1, t->updaters) && w_hive_output_init(op, t->updaters, W_HIVE_OWN_KEYS) &&
      updaters_init(t, op)) {
    return true;
  }
  tuml_mc_free(op);
  return false;
}

/* ---- Add ---- */

static bool tuml_mc_reserve(ps_operator *op, int32_t which, int64_t rows) {
  return t_gate_reserve(((tuml_mc *)op->state)->in.gate, which, rows);
}

static void tuml_mc_add(ps_operator *op, int32_t which, batch *b) {
  gate_in_add(&((tuml_mc *)op->state)->in, op, which, b);
  operator_ring(op, 0); /* others may owe promises that are needed now */
}

static void tuml_mc_heartbeat(ps_operator *op, int32_t which, int64_t ts) {
  gate_in_heartbeat(&((tuml_mc *)op->state)->in, op, which, ts);
}

static void tuml_mc_close(ps_operator *op, int32_t which) {
  gate_in_close(&((tuml_mc *)op->state)->in, op, which);
  operator_ring(op, 0);
}

/* ---- Update ---- */

/* hashToThread. Uses other bits than the buckets of hash tables, which use the low ones. */
static int32_t owner(const tuml_mc *t, const key *k) { return (int32_t)((k->hash >> 32) % (uint64_t)t->updaters); }

/* Adds a tuple of one of the updater's own keys. With udf, the journal is in the sink. */
static ps_code update_own(tuml_mc *t, ps_operator *op, int32_t u, const t_gate_tuple *next) {
  const batch *b = gate_batch(next);
  int64_t row = gate_row(next);
  bool udf = op->functions.udf >= 0;
  ps_code code = udf ? sink_lock_through(&op->sink) : PS_OK;
  if (code != PS_OK) return code;
  code = w_hive_update_windows(t->out.hive, u, next->ts, b->keys[row], b, row, udf ? &op->sink.journal : NULL);
  if (udf) sink_unlock(&op->sink);
  return code;
}

static ps_code update(tuml_mc *t, ps_operator *op, int32_t u, const t_gate_tuple *next) {
  updater *self = &t->updater[u];
  if (owner(t, gate_batch(next)->keys[gate_row(next)]) == u) {
    ps_code code = update_own(t, op, u, next);
    if (code != PS_OK) return code;
  } else if (next->ts > self->ts) {
    w_hive_heartbeat(t->out.hive, u, next->ts); /* the position advances for tuples of others, too */
  }
  self->ts = next->ts;
  AT(update_publish);
  merged_publish(&t->merged[(int64_t)u * op->inputs + next->input], (uint64_t)++self->read[next->input]);
  self->unrung++;
  return PS_OK;
}

/* Wakes the output thread if a window may be complete or there are tuples to settle. */
static void ring_output(updater *self, ps_operator *op, bool all) {
  uint64_t open = self->ts < 0 ? 0 : first_start(operator_windows(op), (uint64_t)self->ts);
  if (open == self->open && self->unrung < (all ? 1 : SETTLE_EVERY)) return;
  self->open = open;
  self->unrung = 0;
  operator_ring(op, 0);
}

/* Nothing is ready, but markers may have advanced the position. */
static ps_code update_idle(tuml_mc *t, ps_operator *op, int32_t u, ps_code got) {
  updater *self = &t->updater[u];
  if (got == PS_END) {
    w_hive_close(t->out.hive, u);
    operator_ring(op, 0);
    return PS_END;
  }
  int64_t reached = t_gate_position(t->in.gate, u);
  if (reached > self->ts) {
    w_hive_heartbeat(t->out.hive, u, reached);
    self->ts = reached;
  }
  ring_output(self, op, true);
  return PS_EMPTY;
}

static ps_code update_step(tuml_mc *t, ps_operator *op, int32_t u) {
  updater *self = &t->updater[u];
  int64_t n;
  ps_code code = t_gate_get_ready_tuples(t->in.gate, u, RUN, self->run, &n);
  if (code != PS_OK) return update_idle(t, op, u, code);
  for (int64_t i = 0; i < n && code == PS_OK; i++) code = update(t, op, u, &self->run[i]);
  ring_output(self, op, false);
  return code;
}

/* ---- Output ---- */

static void look(tuml_mc *t, const ps_operator *op) {
  for (int32_t i = 0; i < op->inputs; i++) {
    int64_t least = INT64_MAX;
    for (int32_t u = 0; u < t->updaters; u++) {
      int64_t n = (int64_t)merged_read(&t->merged[(int64_t)u * op->inputs + i]);
      if (n < least) least = n;
    }
    t->seen[i] = least;
  }
}

static bool settle(tuml_mc *t, ps_operator *op) {
  for (int32_t i = 0; i < op->inputs; i++) {
    operator_pass(op, i, t->seen[i] - t->passed[i]);
    t->passed[i] = t->seen[i];
  }
  return operator_settle(op);
}

static ps_code output_step(tuml_mc *t, ps_operator *op, ps_fault *fault) {
  look(t, op);
  ps_code code = w_hive_output_complete(op, fault);
  if (code != PS_EMPTY && code != PS_END) return code;
  if (code == PS_END) look(t, op); /* a closed updater has read everything */
  return settle(t, op) ? code : PS_NO_MEMORY;
}

static ps_code tuml_mc_step(ps_operator *op, int32_t number, ps_fault *fault) {
  return number == 0 ? output_step(op->state, op, fault) : update_step(op->state, op, number - 1);
}

/* ---- snapshots ---- */

static ps_code tuml_mc_load(ps_operator *op, int64_t start, const key *k, const uint8_t *state) {
  tuml_mc *t = op->state;
  return w_hive_load(t->out.hive, owner(t, k), start, k, state);
}

static void tuml_mc_number(ps_operator *op, int64_t next) { w_hive_number(((tuml_mc *)op->state)->out.hive, next); }

static int64_t tuml_mc_absorbed(ps_operator *op, int32_t which) {
  tuml_mc *t = op->state;
  return t->updater[0].read[which] - t->passed[which]; /* while paused, all updaters have read the same */
}

const design tuml_mc_design = {
    .ordered = true,
    .updates = true,
    .init = tuml_mc_init,
    .free = tuml_mc_free,
    .reserve = tuml_mc_reserve,
    .add = tuml_mc_add,
    .heartbeat = tuml_mc_heartbeat,
    .piles = gate_in_piles,
    .close = tuml_mc_close,
    .step = tuml_mc_step,
    .oldest = w_hive_output_oldest,
    .newest = w_hive_output_newest,
    .save = w_hive_output_save,
    .load = tuml_mc_load,
    .number = tuml_mc_number,
    .absorbed = tuml_mc_absorbed,
    .stats = w_hive_output_stats,
};
