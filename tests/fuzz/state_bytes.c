/* state_bytes.c - fuzzes state_load: the bytes of a window's state, as a snapshot has them. */
#include "fuzz.h"

#include "aggregates/state_bytes.h"

#include <stdlib.h>

static int32_t process(void *state, int64_t ts, const uint64_t *values, const uint8_t *nulls) {
  (void)values, (void)nulls;
  *(int64_t *)state = ts;
  return 0;
}

static int32_t produce(const void *state, uint64_t *result, uint8_t *null) {
  (void)null;
  memcpy(result, state, sizeof *result);
  return 0;
}

/* A state that was accepted can be worked with: rows are added, another state is combined, results come out. */
static void check_works(const aggregates *all, uint8_t *state, const batch *rows, draw *d) {
  ps_fault fault;
  out_rows out;
  bool *is_bytes = calloc((size_t)all->n, sizeof *is_bytes);
  CLAIM(is_bytes);
  for (int32_t i = 0; i < all->n; i++) is_bytes[i] = all->each[i].out_bytes;
  CLAIM(out_rows_init(&out, all->n, is_bytes));
  for (int64_t row = 0; row < rows->rows; row++) CLAIM(aggregates_add(all, state, rows, row));
  if (all->combines && draw_below(d, 2)) {
    uint8_t *other = memory_new((size_t)all->state_size);
    CLAIM(aggregates_add(all, other, rows, 0) && aggregates_combine(all, state, other));
    aggregates_drop(all, other);
    memory_free(other);
  }
  ps_code code = aggregates_finish(all, state, &out, 0, &fault);
  CLAIM(code == PS_OK || code == PS_OVERFLOW || code == PS_UDF_FAILED);
  out_rows_free(&out);
  free(is_bytes);
}

/* Whether byte i is in a word that is 1. */
static bool is_in_a_one(const byte_buffer *x, int64_t i) {
  static const uint8_t one[8] = {1};
  for (int64_t at = i < 7 ? 0 : i - 7; at <= i && at + 8 <= x->length; at++) {
    if (memcmp(x->data + at, one, sizeof one) == 0) return true;
  }
  return false;
}

/* What was accepted is written as it was; but min, max, first and last write 1 for any count. */
static void check_bytes(const aggregates *all, const uint8_t *state, bytes from) {
  byte_buffer saved = {0};
  CLAIM(state_save(all, state, &saved) && saved.length == from.length);
  for (int64_t i = 0; i < from.length; i++) CLAIM(saved.data[i] == from.data[i] || is_in_a_one(&saved, i));
  memory_free(saved.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  draw d = {data, size};
  shape s;
  draw_shape(&d, &s);
  int32_t column = 0;
  ps_native native = {process, produce, 1 + draw_below(&d, 40), 1, &column, NULL};
  if (draw_below(&d, 8) == 0) s.aggregate[0] = (ps_aggregate){.function = PS_NATIVE, .mask = -1, .native = &native};
  aggregates all;
  CLAIM(aggregates_init(&all, &s.query));
  int64_t ts = 0, position = 0;
  table rows = draw_rows(&d, &s, 2, 0, &ts, &position);
  struct ArrowArray arrow = table_arrow(&rows, s.types, 0);
  batch *b = batch_new(&arrow, s.query.columns, s.types);
  uint8_t *state = memory_new((size_t)all.state_size), *copy = malloc(d.left);
  CLAIM(b && state && copy);
  if (d.left) memcpy(copy, d.at, d.left);
  bytes from = {copy, (int64_t)d.left};
  int64_t tuples = 0;
  ps_code code = state_load(&all, from, state, &tuples);
  CLAIM(code == PS_OK || code == PS_CORRUPT);
  if (code == PS_OK) {
    check_bytes(&all, state, from);
    check_works(&all, state, b, &d);
  }
  aggregates_drop(&all, state);
  memory_free(state);
  free(copy);
  batch_free(b);
  ps_arrow_release(&arrow);
  table_free(&rows);
  aggregates_free(&all);
  CLAIM(ps_memory_live() == 0);
  return 0;
}
