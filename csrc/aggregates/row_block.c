/* row_block.c - see row_block.h. */
#include "aggregates/row_block.h"

#include "aggregates/aggregate.h"

/* Without a branch on whether a row counts. */
static int64_t filter(const column *mask, const column *values, const column *by, row_block *k) {
  bool all = k->all.n == k->rows;
  int64_t n = 0;
  for (int64_t i = 0; i < k->all.n; i++) {
    uint16_t at = all ? (uint16_t)i : k->all.at[i];
    k->counted.entry[n] = k->all.entry[i];
    k->counted.at[n] = at;
    bool counts = !mask || column_bool(mask, k->row + at);
    counts = counts && !(by && column_is_null(by, k->row + at));
    n += counts && !(values && column_is_null(values, k->row + at));
  }
  return n;
}

/* Moves the values of the rows that count together. In place: at[i] >= i. */
static const uint64_t *compact(uint64_t *to, const uint64_t *from, const counted_rows *c) {
  for (int64_t i = 0; i < c->n; i++) to[i] = from[c->at[i]];
  return to;
}

counted_rows row_block_count(const aggregate *a, row_block *k) {
  const column *mask = a->mask < 0 ? NULL : &k->b->columns[a->mask];
  const column *values = a->column < 0 ? NULL : &k->b->columns[a->column];
  const column *by = a->by ? &k->b->columns[a->by] : NULL;
  counted_rows c = {.n = k->all.n, .entry = k->all.entry, .values = values, .block = k};
  if (values && !a->is_bytes) c.bits = column_widen(values, k->row, k->rows, k->bits);
  if (by) c.by = column_widen(by, k->row, k->rows, k->by);
  if (k->all.n < k->rows) c.at = k->all.at;
  if (mask || (values && values->validity) || (by && by->validity)) {
    c.n = filter(mask, values, by, k);
    c.entry = k->counted.entry;
    c.at = k->counted.at;
  }
  if (c.at && c.bits) c.bits = compact(k->bits, c.bits, &c);
  if (c.at && c.by) c.by = compact(k->by, c.by, &c);
  return c;
}
