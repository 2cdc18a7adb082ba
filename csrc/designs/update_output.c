/* update_output.c - see update_output.h. */
#include "designs/update_output.h"

void update_output_init(update_output *u, ps_operator *op) {
  out_rows *journal = op->functions.udf >= 0 ? &op->sink.journal : NULL;
  window_list_init(&u->windows, operator_windows(op), &op->functions, journal, &op->cancelled);
}

void update_output_free(update_output *u) { window_list_free(&u->windows); }

/* ---- output ---- */

/* Emits the first winset. Settles first, because the sink may stay full for long. */
static ps_code output_first(update_output *u, ps_operator *op, ps_fault *fault) {
  if (!operator_settle(op)) return PS_NO_MEMORY;
  ps_code code = sink_lock(&op->sink);
  if (code != PS_OK) return code;
  code = list_winset_output(u->windows.first, &op->functions, op->keys, op->column_types + 1, &op->sink.rows, fault);
  sink_unlock(&op->sink);
  if (code != PS_OK) return code;
  window_list_pop(&u->windows);
  return PS_OK;
}

ps_code update_output_complete(update_output *u, ps_operator *op, int64_t ts, ps_fault *fault) {
  ps_code code = PS_OK;
  while (code == PS_OK && window_list_complete(&u->windows, ts)) code = output_first(u, op, fault);
  return code;
}

ps_code update_output_all(update_output *u, ps_operator *op, ps_fault *fault) {
  ps_code code = PS_OK;
  while (code == PS_OK && u->windows.first) code = output_first(u, op, fault);
  return code;
}

/* ---- update; with udf the journal is in the sink ---- */

ps_code update_output_begin(ps_operator *op) { return op->functions.udf >= 0 ? sink_lock(&op->sink) : PS_OK; }

void update_output_skip(ps_operator *op) {
  if (op->functions.udf >= 0) sink_unlock(&op->sink);
}

ps_code update_output_update(update_output *u, ps_operator *op, const batch *b, int64_t row) {
  ps_code code = window_list_update(&u->windows, b, row);
  update_output_skip(op);
  return code;
}

void update_output_stats(update_output *u, ps_stats *out) { out->windows = ps_counter_get(&u->windows.windows); }

/* ---- snapshots ---- */

bool update_output_save(const update_output *u, window_visit visit, void *context) {
  return window_list_each(&u->windows, visit, context);
}

ps_code update_output_load(update_output *u, int64_t start, const key *k, const uint8_t *state) {
  return window_list_load(&u->windows, start, k, state);
}

void update_output_number(update_output *u, int64_t next) { u->windows.udf_window = next; }
