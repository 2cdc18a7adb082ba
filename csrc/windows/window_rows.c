/* window_rows.c - see window_rows.h. */
#include "windows/window_rows.h"

#include <stdlib.h>

static bool put_key(const key *k, int32_t keys, const ps_type *types, out_rows *rows) {
  const uint8_t *at = k->data;
  for (int32_t i = 0; i < keys; i++) {
    key_part part;
    at = key_decode(at, types[i], &part);
    int32_t to = 1 + i;
    if (part.null) {
      if (!out_put_null(rows, to)) return false;
    } else if (type_is_bytes(types[i])) {
      uint8_t *space = out_put_space(rows, to, part.length);
      if (!space) return false;
      key_unescape(&part, space);
    } else if (!out_put_bits(rows, to, part.bits)) {
      return false;
    }
  }
  return true;
}

static bool put_name(int64_t start, const key *k, int32_t keys, const ps_type *types, out_rows *rows) {
  return out_put_bits(rows, 0, (uint64_t)start) && put_key(k, keys, types, rows);
}

bool window_name(int64_t start, const key *k, int32_t keys, const ps_type *key_types, struct ArrowArray *out) {
  out_rows rows;
  if (!out_rows_init_types(&rows, 1, keys, key_types)) return false;
  bool ok = put_name(start, k, keys, key_types, &rows);
  if (ok) out_end_row(&rows);
  ok = ok && out_rows_shell(&rows, out);
  if (ok) out_rows_move(&rows, out);
  out_rows_free(&rows);
  return ok;
}

static int by_key(const void *a, const void *b) {
  return key_compare(((const window_row *)a)->key, ((const window_row *)b)->key);
}

ps_code window_rows_put(window_row *windows, int64_t n, int64_t start, const aggregates *functions, int32_t keys,
                        const ps_type *key_types, out_rows *rows, ps_fault *fault) {
  qsort(windows, (size_t)n, sizeof *windows, by_key);
  int64_t rows_before = rows->rows;
  ps_code code = PS_OK;
  for (int64_t i = 0; i < n && code == PS_OK; i++) {
    bool ok = put_name(start, windows[i].key, keys, key_types, rows);
    code = ok ? aggregates_finish(functions, windows[i].state, rows, 1 + keys, fault) : PS_NO_MEMORY;
    fault->key = windows[i].key;
    if (code == PS_OK) out_end_row(rows);
  }
  if (code != PS_OK) {
    rows->rows = rows_before;
    fault->ts = start;
  }
  return code;
}
