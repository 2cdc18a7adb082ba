/* window_rows.h - emits the finished windows of one start as rows in key order, for window_list and win_set. */
#pragma once

#include "aggregates/aggregate.h"
#include "base/base.h"
#include "keys/key.h"

typedef struct {
  const key *key;
  const uint8_t *state;
} window_row;

/* Sorts the windows by key and appends a row for each: start, key columns, aggregates. On failure *rows gets none of
   them and *fault names the window. */
ps_code window_rows_put(window_row *windows, int64_t n, int64_t start, const aggregates *functions, int32_t keys,
                        const ps_type *key_types, out_rows *rows, ps_fault *fault);

/* A window's name as an Arrow row: start, key columns. False: out of memory. */
bool window_name(int64_t start, const key *k, int32_t keys, const ps_type *key_types, struct ArrowArray *out);

/* Called once per window; false ends the iteration. */
typedef bool (*window_visit)(void *context, int64_t start, const key *k, const uint8_t *state);
