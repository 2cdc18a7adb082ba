/* row_block.c - see row_block.h. */
#include "aggregates/row_block.h"

#include "aggregates/aggregate.h"

/* Without a branch on whether a row counts. */
static int64_t filter(const column *mask, const column *values, row_block *k) {
  bool all = k->all.n == k->rows;
  int64_t n = 0;
  for (int64_t i = 0; i < k->all.n; i++) {
    uint16_t at = all ? (uint16_t)i : k->all.at[i];
    k->counted.entry[n] = k->all.entry[i];
    k->counted.at[n] = at;
    bool counts = !mask || column_bool(mask, k->row + at);
    n += counts && !(values && column_is_null(values, k->row + at));
  }
  return n;
}

counted_rows row_block_count(const aggregate *a, row_block *k) {
  const column *mask = a->mask < 0 ? NULL : &k->b->columns[a->mask];
  const column *values = a->column < 0 ? NULL : &k->b->columns[a->column];
  counted_rows c = {.n = k->all.n, .entry = k->all.entry, .values = values, .block = k};
  if (values && !a->is_bytes) c.bits = column_widen(values, k->row, k->rows, k->bits);
  if (k->all.n < k->rows) c.at = k->all.at;
  if (mask || (values && values->validity)) {
    c.n = filter(mask, values, k);
    c.entry = k->counted.entry;
    c.at = k->counted.at;
  }
  if (!c.at || !c.bits) return c;
  for (int64_t i = 0; i < c.n; i++) k->bits[i] = c.bits[c.at[i]]; /* at[i] >= i: in place is right */
  c.bits = k->bits;
  return c;
}
