/* w_hive_output.c - see w_hive_output.h. */
#include "designs/w_hive_output.h"

bool w_hive_output_init(ps_operator *op, int32_t updaters, w_hive_sharing sharing) {
  w_hive_output *h = op->state;
  *h = (w_hive_output){.hive = w_hive_new(op->size, op->advance, &op->functions, updaters, sharing, op->levels)};
  if (h->hive) w_hive_stop_at(h->hive, &op->cancelled);
  return h->hive != NULL;
}

void w_hive_output_free(ps_operator *op) {
  w_hive_output *h = op->state;
  win_set_free(h->taken);
  w_hive_free(h->hive);
}

/* Emits the winset that was taken. */
static ps_code emit_taken(w_hive_output *h, ps_operator *op, ps_fault *fault) {
  ps_code code = sink_lock(&op->sink);
  if (code != PS_OK) return code;
  code = win_set_output(h->taken, op->keys, op->column_types + 1, &op->sink.rows, fault);
  sink_unlock(&op->sink);
  if (code != PS_OK) return code;
  win_set_free(h->taken);
  h->taken = NULL;
  return PS_OK;
}

ps_code w_hive_output_complete(ps_operator *op, ps_fault *fault) {
  w_hive_output *h = op->state;
  ps_code code = PS_OK;
  while (code == PS_OK) {
    if (!h->taken) code = w_hive_get_next_winset(h->hive, &h->taken);
    if (code == PS_OK) code = emit_taken(h, op, fault);
  }
  return code;
}

int64_t w_hive_output_oldest(ps_operator *op) {
  const w_hive_output *h = op->state;
  return h->taken ? win_set_start(h->taken) : w_hive_oldest(h->hive);
}

int64_t w_hive_output_newest(ps_operator *op) {
  const w_hive_output *h = op->state;
  int64_t start = w_hive_newest(h->hive);
  return start < 0 && h->taken ? win_set_start(h->taken) : start;
}

void w_hive_output_stats(ps_operator *op, ps_stats *out) {
  out->windows = w_hive_windows(((w_hive_output *)op->state)->hive);
}

bool w_hive_output_save(ps_operator *op, window_visit visit, void *context) {
  w_hive_output *h = op->state;
  if (h->taken && !win_set_each(h->taken, visit, context)) return false;
  return w_hive_each(h->hive, visit, context);
}
