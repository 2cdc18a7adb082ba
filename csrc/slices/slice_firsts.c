/* slice_firsts.c - see slice_firsts.h. */
#include "slices/slice_firsts.h"

bool slice_firsts_suit(const aggregates *functions) {
  bool suit = functions->n > 0;
  for (int32_t a = 0; a < functions->n; a++) suit &= kernel_at(functions, a)->pick && functions->each[a].mask < 0;
  return suit;
}

static bool any_nulls(const aggregates *functions, const batch *b) {
  bool any = false;
  for (int32_t a = 0; a < functions->n; a++) any |= b->columns[functions->each[a].column].validity != NULL;
  return any;
}

int64_t slice_firsts_flatten(slice *s, const batch *b, const uint32_t *numbers, int64_t from, int64_t to, void *place) {
  uint16_t row[SLICE_FIRSTS_ROWS_MAX];
  uint64_t room[SLICE_FIRSTS_ROWS_MAX];
  assert(s->n == 0 && to - from <= SLICE_FIRSTS_ROWS_MAX);
  if (any_nulls(s->functions, b)) return -1;
  int64_t n = slice_find_first(s, numbers + from, to - from, row);
  if (n < 0) return -1;
  flat_slice p = flat_view(place, n, 0, false);
  memcpy(p.keys, s->keys, (size_t)n * sizeof *p.keys);
  memcpy(p.rows, s->rows, (size_t)n * sizeof *p.rows);
  uint8_t *at = p.columns;
  const int64_t *ts = column_integers(&b->columns[0], from);
  for (int32_t a = 0; a < s->functions->n; a++) {
    const uint64_t *bits = column_widen(&b->columns[s->functions->each[a].column], from, to - from, room);
    kernel_at(s->functions, a)->pick(row, n, ts, bits, s->input, flat_next(&p, s->functions, a, &at).partials);
  }
  return n;
}
