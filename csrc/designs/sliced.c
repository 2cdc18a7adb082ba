/* sliced.c - the sliced design: inputs' threads fold their batches into slices, the output thread combines slices into
   windows. See operator.h and pane_hive.h. */
#include "designs/designs.h"
#include "keys/key_numbers.h"
#include "keys/key_sweep.h"
#include "slices/pane_hive.h"
#include "slices/pane_save.h"
#include "operator/promises.h"
#include "slices/wake_marks.h"

typedef struct {
  key_numbers numbers;
  int64_t tuples;    /* tuples folded */
  int64_t quiet;     /* tuples folded since the output thread was rung */
  uint8_t apart[64]; /* separates what the output thread reads from what it does not */
  cell promise;      /* 0: none, ts + 1, or PROMISE_CLOSED; all tuples below it are folded */
  cell added;        /* tuples folded */
  cell wake;         /* set by the output thread: wake_marks.h */
  uint8_t apart_too[64];
  uint64_t looked; /* output thread: `promise` at the last look */
  int64_t changed; /* output thread: value of `clock` when it last found `promise` changed */
  int64_t seen;    /* output thread: `added` at the last look */
  int64_t passed;  /* output thread: tuples passed */
  uint64_t marks;  /* output thread: the marks now in `wake` */
} sliced_input;

typedef struct {
  pane_hive hive;
  ps_counter open;   /* partials held for windows not yet emitted: (slice, key) */
  int64_t unsettled; /* windows emitted since tuples were last passed */
  int64_t clock;     /* number of changes of promises that the output thread has found */
  key_sweep sweep;
  sliced_input input[];
} sliced;

#define SETTLE_WINDOWS SIZED(16, 1) /* settling costs about as much as emitting a small window */

/* An input rings at this many tuples held, even if the output thread does not wait for it, so that batches are
   released: few enough to bound memory, many enough to amortize waking the output thread (about 10 us in total). */
#define QUIET_TUPLES SIZED(4096, 1)

/* ---- making ---- */

static slide_keys keys_of(const ps_operator *op) {
  return (slide_keys){&op->key_table, op->keys, op->column_types + 1};
}

static bool sliced_init(ps_operator *op) {
  sliced *s = op->state = memory_new(sizeof *s + (size_t)op->inputs * sizeof s->input[0]);
  if (!s) return false;
  pane_windows windows = {(uint64_t)op->size, (uint64_t)op->advance};
  slide_keys keys = keys_of(op);
  if (!pane_hive_init(&s->hive, windows, &op->functions, &keys, op->inputs)) {
    memory_free(s);
    return false;
  }
  key_sweep_init(&s->sweep, &op->key_table);
  for (int32_t i = 0; i < op->inputs; i++) {
    key_numbers_init(&s->input[i].numbers, &op->input[i].keys, op->keys);
    cell_init(&s->input[i].promise, 0);
    cell_init(&s->input[i].added, 0);
    cell_init(&s->input[i].wake, WAKE_NONE);
  }
  return true;
}

static void sliced_free(ps_operator *op) {
  sliced *s = op->state;
  pane_hive_free(&s->hive);
  for (int32_t i = 0; i < op->inputs; i++) key_numbers_free(&s->input[i].numbers);
  memory_free(s);
}

/* ---- inputs ---- */

/* Guarded by in->lock, before a key number is used: forgets all numbers if a new sweep has begun. */
static void keep_up(sliced *s, int32_t which) {
  uint32_t sweep = key_sweep_current(&s->sweep);
  if (sweep == pane_hive_sweep(&s->hive, which)) return;
  key_numbers_forget(&s->input[which].numbers);
  pane_hive_set_sweep(&s->hive, which, sweep);
}

static bool sliced_find_keys(ps_operator *op, int32_t which, const batch *b) {
  sliced *s = op->state;
  keep_up(s, which);
  key_numbers *n = &s->input[which].numbers;
  return key_numbers_fill(n, b) && pane_hive_expect(&s->hive, which, n->limit);
}

static bool sliced_reserve(ps_operator *op, int32_t which, int64_t rows) {
  (void)op, (void)which, (void)rows; /* find_keys has reserved */
  return true;
}

/* Whether many tuples were added since the input last rang, and many are held. */
static bool is_overdue(const sliced_input *in, ledger *l) {
  return in->quiet >= QUIET_TUPLES && ledger_held(l) >= QUIET_TUPLES;
}

/* Publishes the input's progress, and wakes the output thread if it waits for this. `edge`: a slice was handed over.
   Not ok: memory ran out and tuples are lost. Then the operator ends and nothing is published, because the output
   thread would look for a slice that does not exist. */
static void publish(ps_operator *op, int32_t which, bool ok, bool edge, uint64_t promise, int64_t tuples) {
  sliced_input *in = &((sliced *)op->state)->input[which];
  if (!ok) {
    operator_fail(op, PS_NO_MEMORY, &(ps_fault){0});
    return;
  }
  AT(add_promise);
  promise_write(&in->promise, promise);
  in->tuples += tuples;
  AT(add_promise);
  merged_publish(&in->added, (uint64_t)in->tuples);
  in->quiet += tuples;
  bool meant = wake_marks_draw(&in->wake, edge) || promise == PROMISE_CLOSED;
  if (!meant && !is_overdue(in, &op->input[which].ledger)) return;
  in->quiet = 0;
  operator_ring(op, 0);
}

static void sliced_add(ps_operator *op, int32_t which, batch *b) {
  sliced *s = op->state;
  int64_t rows = b->rows, last = batch_ts(b, rows - 1); /* the batch may be freed once published */
  const pane *before = pane_hive_last(&s->hive, which);
  bool ok = pane_hive_add(&s->hive, which, b, s->input[which].numbers.numbers);
  publish(op, which, ok, pane_hive_last(&s->hive, which) != before, (uint64_t)last + 1, rows);
}

static void sliced_heartbeat(ps_operator *op, int32_t which, int64_t ts) {
  pane_hive *h = &((sliced *)op->state)->hive;
  keep_up(op->state, which);
  const pane *before = pane_hive_last(h, which);
  bool ok = pane_hive_heartbeat(h, which, (uint64_t)ts);
  publish(op, which, ok, pane_hive_last(h, which) != before, (uint64_t)ts + 1, 0);
}

/* A heartbeat at or after the next edge hands over a slice. */
static bool sliced_piles(ps_operator *op, int32_t which, int64_t ts) {
  return (uint64_t)ts >= pane_hive_edge(&((sliced *)op->state)->hive, which);
}

static void sliced_close(ps_operator *op, int32_t which) {
  bool ok = pane_hive_close(&((sliced *)op->state)->hive, which);
  publish(op, which, ok, true, PROMISE_CLOSED, 0);
}

/* ---- output ---- */

/* Tuples up to here are ready: (ts, input). */
typedef struct {
  int64_t ts;
  int32_t input;
} frontier;

static frontier look(sliced *s, const ps_operator *op) {
  frontier f = {INT64_MAX, op->inputs};
  for (int32_t i = 0; i < op->inputs; i++) {
    sliced_input *in = &s->input[i];
    AT(output_look);
    uint64_t promise = promise_read(&in->promise);
    if (promise != in->looked) in->changed = ++s->clock;
    in->looked = promise;
    AT(output_look);
    in->seen = (int64_t)merged_read(&in->added);
    if (promise == PROMISE_CLOSED) continue;
    int64_t ts = (int64_t)(promise - 1); /* -1: no promise yet, so nothing is ready */
    if (f.input == op->inputs || ts < f.ts) f = (frontier){ts, i};
  }
  return f;
}

static void pass_to(ps_operator *op, int32_t i, int64_t tuples) {
  sliced_input *in = &((sliced *)op->state)->input[i];
  if (tuples <= in->passed) return;
  operator_pass(op, i, tuples - in->passed);
  in->passed = tuples;
}

/* Nothing more can be emitted: passes the tuples up to the frontier, in whatever slice they are. */
static bool settle_ready(ps_operator *op, frontier f) {
  sliced *s = op->state;
  for (int32_t i = 0; i < op->inputs; i++) {
    sliced_input *in = &s->input[i];
    if (in->seen == in->passed) continue;
    int64_t ready = in->passed + ledger_ready(&op->input[i].ledger, i <= f.input ? f.ts : f.ts - 1);
    pass_to(op, i, ready < in->seen ? ready : in->seen);
  }
  return operator_settle(op);
}

/* Whether max_pending is so small that inputs may wait for single tuples. */
static bool is_small(const ps_operator *op) {
  return op->input[0].ledger.held_max < (int64_t)SETTLE_EVERY * SETTLE_WINDOWS;
}

/* More can be emitted: passes the tuples of the slices that were read. */
static bool settle_read(ps_operator *op) {
  sliced *s = op->state;
  if (++s->unsettled < SETTLE_WINDOWS && !is_small(op)) return true;
  s->unsettled = 0;
  for (int32_t i = 0; i < op->inputs; i++) pass_to(op, i, pane_hive_through(&s->hive, i));
  return operator_settle(op);
}

/* A sweep waits for all inputs, and an input without calls would delay it. Only tries the lock: a thread that pauses
   the operator holds all input locks and waits for this thread. */
static void keep_up_silent(ps_operator *op, uint32_t sweep) {
  sliced *s = op->state;
  for (int32_t i = 0; i < op->inputs; i++) {
    if (pane_hive_has_seen(&s->hive, i, sweep) || pthread_mutex_trylock(&op->input[i].lock) != 0) continue;
    keep_up(s, i);
    pane_hive_skip(&s->hive, i);
    pthread_mutex_unlock(&op->input[i].lock);
  }
}

/* Removes unused keys, a share per window. Not while windows of a snapshot are held: they are not in the key order. */
static void sweep(ps_operator *op) {
  sliced *s = op->state;
  const pane_window *w = pane_hive_window(&s->hive);
  if (pane_window_carries(w)) return;
  bool awaited = key_sweep_awaited(&s->sweep) != 0;
  if (awaited) keep_up_silent(op, s->sweep.number);
  key_sweep_step(&s->sweep, slide_listed(pane_window_slide(w)),
                 awaited && pane_hive_has_swept(&s->hive, s->sweep.number));
}

static ps_code emit_window(ps_operator *op, ps_fault *fault) {
  sliced *s = op->state;
  if (!settle_read(op)) return PS_NO_MEMORY;
  ps_code code = sink_lock(&op->sink);
  if (code != PS_OK) return code;
  code = pane_hive_combine(&s->hive, &op->sink.rows, fault);
  sink_unlock(&op->sink);
  if (code == PS_OK) code = pane_hive_drop(&s->hive);
  if (code != PS_OK) return code;
  sweep(op);
  ps_counter_set(&s->open, pane_window_partials(pane_hive_window(&s->hive)));
  return code;
}

/* The input whose next slice to wait for: of the inputs at the lowest position that are not past the next edge, the one
   whose promise changed last, since it will probably be last again. By then the others at that position are past the
   edge too, and one ring serves for all. An input that owes a promise is not waited for. -1: an input has advanced
   since the look; op->inputs: all of them owe. */
static int32_t target(const sliced *s, const ps_operator *op) {
  uint64_t lowest = pane_hive_lowest(&s->hive), edge = next_edge(pane_hive_plan(&s->hive)->windows, lowest);
  int32_t best = -1;
  bool owe = false;
  for (int32_t i = 0; i < op->inputs; i++) {
    const sliced_input *in = &s->input[i];
    bool lags = pane_hive_position(&s->hive, i) == lowest && in->looked <= edge && in->looked != PROMISE_CLOSED;
    bool owes = lags && promises_owes(&op->input[i]);
    owe = owe || owes;
    if (lags && !owes && (best < 0 || in->changed > s->input[best].changed)) best = i;
  }
  return best < 0 && owe ? op->inputs : best;
}

static bool is_pressed(ps_operator *op) {
  bool pressed = is_small(op);
  for (int32_t i = 0; i < op->inputs && !pressed; i++) {
    AT(output_pressed);
    pressed = ledger_pressed(&op->input[i].ledger);
  }
  return pressed;
}

/* Nothing can be emitted: marks what the output thread waits for. True: the marks were set before, so the look that
   found nothing came after them. */
static bool mark_inputs(ps_operator *op) {
  sliced *s = op->state;
  int32_t who = target(s, op);
  if (who < 0) return false;
  uint64_t all = is_pressed(op) ? WAKE_ANY : 0;
  bool same = true;
  for (int32_t i = 0; i < op->inputs; i++) {
    sliced_input *in = &s->input[i];
    uint64_t marks = i == who ? all | WAKE_EDGE : all;
    same = same && marks == in->marks;
    wake_marks_set(&in->wake, in->marks, marks);
    in->marks = marks;
  }
  return same;
}

static ps_code sliced_step(ps_operator *op, int32_t number, ps_fault *fault) {
  (void)number;
  sliced *s = op->state;
  ps_code code = pane_hive_next(&s->hive);
  while (code == PS_EMPTY || code == PS_END) {
    frontier f = look(s, op);
    code = pane_hive_next(&s->hive); /* again, for what was published before the look */
    if (code == PS_OK || code == PS_NO_MEMORY) break;
    if (!settle_ready(op, f)) return PS_NO_MEMORY;
    ps_counter_set(&s->open, pane_window_partials(pane_hive_window(&s->hive)));
    if (code == PS_END || mark_inputs(op)) return code;
  }
  return code == PS_OK ? emit_window(op, fault) : code;
}

/* ---- snapshots: ready tuples are saved in slices, the others as pending although they are folded (pane_save.h)
   ---- */

static int64_t sliced_absorbed(ps_operator *op, int32_t which) {
  frontier f = look(op->state, op);
  ledger_view view = ledger_count_above(&op->input[which].ledger, which <= f.input ? f.ts : f.ts - 1);
  return view.held - view.above - op->input[which].passed;
}

static bool owe(ps_operator *op, pane_saver *saver, int32_t which) {
  key_numbers *n = &((sliced *)op->state)->input[which].numbers;
  int64_t ready = op->input[which].passed + sliced_absorbed(op, which);
  for (const batch *b = op->input[which].ledger.first; b; b = b->next) {
    int64_t left = b->rows - b->passed, skip = ready < left ? ready : left, from = b->passed + skip;
    ready -= skip;
    if (from == b->rows) continue;
    if (!key_numbers_fill(n, b) || !pane_saver_owe(saver, which, b, n->numbers, from, n->limit)) return false;
  }
  return true;
}

static bool sliced_save_slices(ps_operator *op, window_visit visit, void *context) {
  sliced *s = op->state;
  frontier f = look(s, op);
  pane_saver saver;
  slide_keys keys = keys_of(op);
  partial_place until = {(uint64_t)f.ts + 1, PARTIAL_INPUT + (uint64_t)f.input};
  if (!pane_saver_init(&saver, &s->hive, &keys, until)) return false;
  bool ok = true;
  for (int32_t i = 0; ok && i < op->inputs; i++) ok = owe(op, &saver, i);
  ok = ok && pane_saver_run(&saver, visit, context);
  pane_saver_free(&saver);
  return ok;
}

static pane_window *sliced_window(ps_operator *op) { return pane_hive_window(&((sliced *)op->state)->hive); }

/* Windows loaded from a snapshot and not emitted yet. */
static bool sliced_save(ps_operator *op, window_visit visit, void *context) {
  return pane_window_visit_carried(sliced_window(op), visit, context);
}

static uint64_t sliced_start_next(ps_operator *op) { return pane_window_start_next(sliced_window(op)); }

static bool sliced_load_begin(ps_operator *op, int64_t start_next) {
  return pane_window_carry_begin(sliced_window(op), start_next);
}

static ps_code sliced_load(ps_operator *op, int64_t start, const key *k, const uint8_t *state) {
  return pane_window_carry(sliced_window(op), false, start, k, state);
}

static ps_code sliced_load_slice(ps_operator *op, int64_t start, const key *k, const uint8_t *state) {
  return pane_window_carry(sliced_window(op), true, start, k, state);
}

static bool sliced_load_end(ps_operator *op) { return pane_window_carry_end(sliced_window(op)); }

static void sliced_stats(ps_operator *op, ps_stats *out) {
  sliced *s = op->state;
  out->windows = ps_counter_get(&s->open);
}

const design sliced_design = {
    .ordered = false,
    .folds = true,
    .init = sliced_init,
    .free = sliced_free,
    .reserve = sliced_reserve,
    .find_keys = sliced_find_keys,
    .add = sliced_add,
    .heartbeat = sliced_heartbeat,
    .piles = sliced_piles,
    .close = sliced_close,
    .step = sliced_step,
    .save = sliced_save,
    .load = sliced_load,
    .absorbed = sliced_absorbed,
    .save_slices = sliced_save_slices,
    .start_next = sliced_start_next,
    .load_begin = sliced_load_begin,
    .load_slice = sliced_load_slice,
    .load_end = sliced_load_end,
    .stats = sliced_stats,
};
