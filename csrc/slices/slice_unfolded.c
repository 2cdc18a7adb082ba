/* slice_unfolded.c - see slice_unfolded.h. */
#include "slices/slice_unfolded.h"

#define BLOCK SIZED(256, 2) /* rows: their widened values, 2 KB, stay in the first-level cache */

bool slice_unfolded_suits(const aggregates *functions) {
  bool suits = functions->n <= FLAT_PLAIN_MAX;
  for (int32_t a = 0; a < functions->n; a++) {
    const kernel *kind = kernel_at(functions, a);
    suits &= kind->size == 0 || (kind->sums && functions->each[a].mask < 0);
  }
  return suits;
}

size_t slice_unfolded_size(const aggregates *functions, int64_t n, uint64_t *plain) {
  size_t size = flat_round((size_t)n * sizeof(uint32_t));
  *plain = 0;
  for (int32_t a = 0; a < functions->n; a++) {
    if (kernel_at(functions, a)->size == 0) continue;
    *plain |= UINT64_C(1) << a;
    size += flat_round((size_t)n * sizeof(int128));
  }
  return size;
}

static bool flatten_sums(const aggregate *a, const batch *b, int64_t from, int64_t n, int128 *to) {
  const column *c = &b->columns[a->column];
  uint64_t room[BLOCK];
  if (c->validity) return false;
  for (int64_t row = 0; row < n; row += BLOCK) {
    int64_t rows = n - row < BLOCK ? n - row : BLOCK;
    const uint64_t *bits = column_widen(c, from + row, rows, room);
    if (!a->kernel->unfold(a, bits, rows, to + row)) return false;
  }
  return true;
}

bool slice_unfolded_flatten(const aggregates *functions, const batch *b, const uint32_t *numbers, int64_t from,
                            int64_t to, void *place) {
  int64_t n = to - from;
  flat_slice p = flat_view(place, n, UINT64_MAX, true);
  memcpy(p.keys, numbers + from, (size_t)n * sizeof *p.keys);
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < functions->n; a++) {
    if (kernel_at(functions, a)->size == 0) continue;
    if (!flatten_sums(&functions->each[a], b, from, n, (int128 *)(void *)at)) return false;
    at += flat_round((size_t)n * sizeof(int128));
  }
  return true;
}
