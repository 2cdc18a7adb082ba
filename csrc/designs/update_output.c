/* update_output.c - see update_output.h. */
#include "designs/update_output.h"

static window_list *windows_of(ps_operator *op) { return &((update_output *)op->state)->windows; }

void update_output_init(ps_operator *op) {
  out_rows *journal = op->functions.udf >= 0 ? &op->sink.journal : NULL;
  window_list_init(windows_of(op), operator_windows(op), &op->functions, journal, &op->cancelled);
}

void update_output_free(ps_operator *op) { window_list_free(windows_of(op)); }

/* ---- output ---- */

/* Emits the first winset. Settles first, because the sink may stay full for long. */
static ps_code output_first(ps_operator *op, ps_fault *fault) {
  window_list *windows = windows_of(op);
  if (!operator_settle(op)) return PS_NO_MEMORY;
  ps_code code = sink_lock(&op->sink);
  if (code != PS_OK) return code;
  code = list_winset_output(windows->first, &op->functions, op->keys, op->column_types + 1, &op->sink.rows, fault);
  sink_unlock(&op->sink);
  if (code != PS_OK) return code;
  window_list_pop(windows);
  return PS_OK;
}

ps_code update_output_complete(ps_operator *op, int64_t ts, ps_fault *fault) {
  ps_code code = PS_OK;
  while (code == PS_OK && window_list_complete(windows_of(op), ts)) code = output_first(op, fault);
  return code;
}

ps_code update_output_all(ps_operator *op, ps_fault *fault) {
  ps_code code = PS_OK;
  while (code == PS_OK && windows_of(op)->first) code = output_first(op, fault);
  return code;
}

ps_code update_output_idle(ps_operator *op, ps_code got, int64_t position, ps_fault *fault) {
  ps_code code = got == PS_END ? update_output_all(op, fault) : update_output_complete(op, position, fault);
  if (code != PS_OK) return code;
  return operator_settle(op) ? got : PS_NO_MEMORY;
}

/* ---- update; with udf the journal is in the sink ---- */

ps_code update_output_begin(ps_operator *op) { return op->functions.udf >= 0 ? sink_lock(&op->sink) : PS_OK; }

void update_output_skip(ps_operator *op) {
  if (op->functions.udf >= 0) sink_unlock(&op->sink);
}

ps_code update_output_update(ps_operator *op, const batch *b, int64_t row) {
  ps_code code = window_list_update(windows_of(op), b, row);
  update_output_skip(op);
  return code;
}

/* ---- entries of the table of functions ---- */

int64_t update_output_oldest(ps_operator *op) { return window_list_oldest(windows_of(op)); }

int64_t update_output_newest(ps_operator *op) { return window_list_newest(windows_of(op)); }

bool update_output_save(ps_operator *op, window_visit visit, void *context) {
  return window_list_each(windows_of(op), visit, context);
}

ps_code update_output_load(ps_operator *op, int64_t start, const key *k, const uint8_t *state) {
  return window_list_load(windows_of(op), start, k, state);
}

void update_output_number(ps_operator *op, int64_t next) { windows_of(op)->udf_window = next; }

void update_output_stats(ps_operator *op, ps_stats *out) { out->windows = ps_counter_get(&windows_of(op)->windows); }
