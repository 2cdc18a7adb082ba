/* sliced.c - the sliced design: inputs' threads fold their batches into slices, the output thread combines these into
   windows. See operator.h and pane_hive.h. */
#include "design.h"
#include "key_number.h"
#include "pane_hive.h"

typedef struct {
  key_numbers numbers;
  int64_t merged; /* the output thread's: tuples passed so far */
} sliced_input;

typedef struct {
  pane_hive hive;
  ps_counter open; /* partials of open windows: (slice, key) */
  sliced_input input[];
} sliced;

/* ---- making ---- */

static int32_t sliced_workers(int32_t threads) {
  (void)threads; /* the inputs' threads do the updates */
  return 1;
}

static bool sliced_init(ps_operator *op) {
  sliced *s = op->state = memory_new(sizeof *s + (size_t)op->inputs * sizeof s->input[0]);
  if (!s) return false;
  pane_windows windows = {(uint64_t)op->size, (uint64_t)op->advance};
  pane_keys keys = {&op->key_table, op->keys, op->column_types + 1};
  if (!pane_hive_init(&s->hive, windows, &op->functions, &keys, op->inputs)) {
    memory_free(s);
    return false;
  }
  for (int32_t i = 0; i < op->inputs; i++) key_numbers_init(&s->input[i].numbers, &op->input[i].keys, op->keys);
  return true;
}

static void sliced_free(ps_operator *op) {
  sliced *s = op->state;
  pane_hive_free(&s->hive);
  for (int32_t i = 0; i < op->inputs; i++) key_numbers_free(&s->input[i].numbers);
  memory_free(s);
}

/* ---- inputs ---- */

static bool sliced_find_keys(ps_operator *op, int32_t which, const batch *b) {
  sliced *s = op->state;
  key_numbers *n = &s->input[which].numbers;
  return key_numbers_fill(n, b) && pane_hive_expect(&s->hive, which, n->limit);
}

static bool sliced_reserve(ps_operator *op, int32_t which, int64_t rows) {
  (void)op, (void)which, (void)rows; /* find_keys has done it */
  return true;
}

/* What was published is of use even if memory ran out behind it; but the input has lost tuples, so it is the end. */
static void published(ps_operator *op, bool ok) {
  if (!ok) operator_fail(op, PS_NO_MEMORY, &(ps_fault){0});
  operator_ring(op, 0);
}

static void sliced_add(ps_operator *op, int32_t which, batch *b) {
  sliced *s = op->state;
  published(op, pane_hive_add(&s->hive, which, b, s->input[which].numbers.numbers));
}

static void sliced_heartbeat(ps_operator *op, int32_t which, int64_t ts) {
  sliced *s = op->state;
  published(op, pane_hive_heartbeat(&s->hive, which, (uint64_t)ts));
}

static void sliced_close(ps_operator *op, int32_t which) {
  sliced *s = op->state;
  published(op, pane_hive_close(&s->hive, which));
}

/* ---- output ---- */

/* Tuples that are not held back count as passed, even those in a private slice: they take no memory of their own. But
   an input that has not begun holds everything back. */
static bool pass(ps_operator *op, bool all_read) {
  sliced *s = op->state;
  bool begun = true;
  for (int32_t i = 0; i < op->inputs && all_read && begun; i++) {
    begun = ps_counter_get(&op->input[i].latest) >= 0 || ps_flag_get(&op->input[i].closed);
  }
  for (int32_t i = 0; i < op->inputs; i++) {
    int64_t merged = all_read && begun ? pane_hive_merged(&s->hive, i) : s->hive.reader.cursor[i]->through;
    if (merged <= s->input[i].merged) continue;
    operator_pass(op, i, merged - s->input[i].merged);
    s->input[i].merged = merged;
  }
  return operator_settle(op);
}

static ps_code sliced_step(ps_operator *op, int32_t number, ps_fault *fault) {
  (void)number;
  sliced *s = op->state;
  int64_t start = 0;
  ps_code code = pane_hive_next(&s->hive, &start);
  if (code == PS_NO_MEMORY || !pass(op, code != PS_OK)) return PS_NO_MEMORY;
  if (code != PS_OK) return code;
  code = sink_lock(&op->sink);
  if (code != PS_OK) return code;
  code = pane_hive_combine(&s->hive, start, &op->sink.rows, fault);
  sink_unlock(&op->sink);
  return code == PS_OK ? pane_hive_drop(&s->hive, start) : code;
}

static void sliced_stats(ps_operator *op, ps_stats *out) {
  sliced *s = op->state;
  out->windows = ps_counter_get(&s->open);
}

const design sliced_design = {
    .ordered = false,
    .workers = sliced_workers,
    .init = sliced_init,
    .free = sliced_free,
    .reserve = sliced_reserve,
    .find_keys = sliced_find_keys,
    .add = sliced_add,
    .heartbeat = sliced_heartbeat,
    .close = sliced_close,
    .step = sliced_step,
    .stats = sliced_stats,
};
