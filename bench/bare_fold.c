/*
 * bare_fold.c - the limit that bench_partials.py compares with: one thread, rows that are sorted by time, keys that are
 * small integers, one function, slices of one advance, no nulls, no checks, sums of plain doubles. What a programmer
 * would write by hand for just this query.
 *
 * Partials come out as arrays slice, key, rows, value; their number is returned.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { COUNT, AVG, FIRST };

typedef struct {
  int function;
  int64_t n;
  const int64_t *ts;
  const int32_t *key;
  const double *value;
  int64_t advance, keys;
  int64_t *out_slice;
  int32_t *out_key;
  int64_t *out_rows;
  double *out_value;
} bare_rows;

/* The rows from i on that lie before `end`; gives the first that does not. */
static int64_t fold(const bare_rows *r, int64_t *rows, double *value, int64_t i, int64_t end) {
  for (; i < r->n && r->ts[i] < end; i++) {
    int32_t k = r->key[i];
    if (r->function == AVG) value[k] += r->value[i];
    if (r->function == FIRST && rows[k] == 0) value[k] = r->value[i];
    rows[k]++;
  }
  return i;
}

int64_t bare_fold(const bare_rows *r) {
  size_t keys = (size_t)r->keys;
  int64_t *rows = calloc(keys, sizeof *rows), out = 0;
  double *value = calloc(keys, sizeof *value);
  for (int64_t i = 0, slice = 0; i < r->n; slice += r->advance) {
    i = fold(r, rows, value, i, slice + r->advance);
    for (int64_t k = 0; k < r->keys; k++) {
      r->out_slice[out] = slice;
      r->out_key[out] = (int32_t)k;
      r->out_rows[out] = rows[k];
      r->out_value[out] = value[k];
      out += rows[k] != 0;
    }
    memset(rows, 0, keys * sizeof *rows);
    memset(value, 0, keys * sizeof *value);
  }
  free(rows);
  free(value);
  return out;
}
