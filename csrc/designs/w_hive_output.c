/* w_hive_output.c - see w_hive_output.h. */
#include "designs/w_hive_output.h"

bool hive_out_init(hive_out *h, ps_operator *op, int32_t updaters, bool own_keys) {
  *h = (hive_out){.hive = w_hive_new(op->size, op->advance, &op->functions, updaters, own_keys, op->levels)};
  if (h->hive) w_hive_stop_at(h->hive, &op->cancelled);
  return h->hive != NULL;
}

void hive_out_free(hive_out *h) {
  win_set_free(h->taken);
  w_hive_free(h->hive);
}

/* Puts out the winset that has been taken. */
static ps_code put(hive_out *h, ps_operator *op, ps_fault *fault) {
  ps_code code = sink_lock(&op->sink);
  if (code != PS_OK) return code;
  code = win_set_output(h->taken, op->keys, op->column_types + 1, &op->sink.rows, fault);
  sink_unlock(&op->sink);
  if (code != PS_OK) return code;
  win_set_free(h->taken);
  h->taken = NULL;
  return PS_OK;
}

ps_code hive_out_complete(hive_out *h, ps_operator *op, ps_fault *fault) {
  ps_code code = PS_OK;
  while (code == PS_OK) {
    if (!h->taken) code = w_hive_get_next_winset(h->hive, &h->taken);
    if (code == PS_OK) code = put(h, op, fault);
  }
  return code;
}

int64_t hive_out_oldest(const hive_out *h) { return h->taken ? win_set_start(h->taken) : w_hive_oldest(h->hive); }

int64_t hive_out_newest(const hive_out *h) {
  int64_t start = w_hive_newest(h->hive);
  return start < 0 && h->taken ? win_set_start(h->taken) : start;
}

void hive_out_stats(hive_out *h, ps_stats *out) { out->windows = w_hive_windows(h->hive); }

bool hive_out_save(hive_out *h, window_visit visit, void *context) {
  if (h->taken && !win_set_each(h->taken, visit, context)) return false;
  return w_hive_each(h->hive, visit, context);
}
