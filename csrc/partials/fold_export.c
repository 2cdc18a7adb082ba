/*
 * fold_export.c - writes entries as rows of Arrow columns; fold_join.c reads them. See fold.h.
 *
 * The columns, in this order, the same on every machine; numbers are int64:
 *   slice                          begin of the slice
 *   the key columns
 *   rows                           number of rows in the slice
 *   for each aggregate
 *     count                        none, as it is `rows`; with a filter: number of rows that passed it
 *     sum, avg                     number of values;  the sum in 16 bytes, little-endian two's complement: of integers
 *                                  the sum itself; of floats the narrow sum, after which the wide one may follow: its
 *                                  limbs and the numbers of NaN, +inf and -inf, 8 bytes each (exact_sum.h)
 *     var, std                     number of values;  the moments as bytes (moments.c)
 *     covar, slope, intercept,     number of pairs;  the pairs as bytes (pairs.c)
 *     corr
 *     n_unique, quantile, ...      number of values;  the set as bytes (sets.c)
 *     min, max                     the value; null: none
 *     first, last                  the value;  ts, stream and position of its row
 *     arg_min, arg_max             the value;  the value of the second column;  ts, stream and position of their row
 */
#include "partials/fold.h"

#include "columns/output.h"

bool fold_init_partials(ps_fold *f) {
  f->partial_columns = 2 + f->keys;
  for (int32_t i = 0; i < f->functions.n; i++) f->partial_columns += f->column[i].a->kernel->columns;
  f->partial_types = memory_new((size_t)f->partial_columns * sizeof *f->partial_types);
  if (!f->partial_types) return false;
  ps_type *to = f->partial_types;
  *to++ = PS_I64;
  for (int32_t i = 1; i <= f->keys; i++) *to++ = f->column_types[i];
  *to++ = PS_I64;
  for (int32_t i = 0; i < f->functions.n; i++) {
    const aggregate *a = f->column[i].a;
    for (int32_t c = 0; c < a->kernel->columns; c++) {
      ps_type type = a->kernel->types[c];
      *to++ = type != PS_TYPES ? type : c == 0 ? a->type : a->by_type;
    }
  }
  return true;
}

/* ---- out ---- */

/* Key number of row i. `keys`: rows are keys, by number; else entries. */
static uint32_t number_at(const ps_fold *f, const kernel_output *o, bool keys, int64_t i) {
  return keys ? (uint32_t)(o->from + i) : (uint32_t)f->entry[output_entry(o, i)].pair;
}

static bool put_key(const ps_fold *f, const kernel_output *o, bool keys, int32_t which) {
  bool strings = type_is_bytes(f->column_types[which]);
  uint64_t *out = strings ? NULL : out_reserve(o->rows, which, o->n);
  if (!strings && !out) return false;
  for (int64_t i = 0; i < o->n; i++) {
    const uint8_t *at = key_table_at(&f->table, number_at(f, o, keys, i))->data;
    key_part part = {0};
    for (int32_t k = 1; k <= which; k++) at = key_decode(at, f->column_types[k], &part);
    if (strings) {
      uint8_t *space = out_put_space_at(o->rows, which, i, part.length);
      if (!space) return false;
      key_unescape(&part, space);
    } else {
      out[i] = part.bits;
    }
    if (part.null && !out_put_null_at(o->rows, which, i)) return false;
  }
  return true;
}

static bool put_keys(const ps_fold *f, const kernel_output *o, bool keys) {
  bool ok = true;
  for (int32_t k = 1; ok && k <= f->keys; k++) ok = put_key(f, o, keys, k);
  return ok;
}

static bool put_entries(const ps_fold *f, const kernel_output *o) {
  uint64_t *begin = out_reserve(o->rows, 0, o->n), *count = out_reserve(o->rows, 1 + f->keys, o->n);
  if (!begin || !count) return false;
  for (int64_t i = 0; i < o->n; i++) {
    fold_entry e = f->entry[output_entry(o, i)];
    begin[i] = f->begin[e.pair >> 32];
    count[i] = (uint64_t)e.rows;
  }
  return true;
}

bool fold_put(const ps_fold *f, kernel_output o) {
  bool ok = put_entries(f, &o);
  o.store = &f->store;
  o.to = 2 + f->keys;
  for (int32_t i = 0; ok && i < f->functions.n; i++) {
    o.a = f->column[i].a;
    o.states = f->column[i].states;
    if (o.a->kernel->columns) ok = o.a->kernel->export(&o);
    o.to += o.a->kernel->columns;
  }
  return ok;
}

bool fold_init_output(const ps_fold *f, out_rows *rows) {
  return out_rows_init_types(rows, 0, f->partial_columns, f->partial_types);
}

static ps_code hand_over(const kernel_output *o, bool ok, struct ArrowArray *out) {
  if (ok) {
    out_end_rows(o->rows, o->n);
    ok = out_rows_shell(o->rows, out);
  }
  if (ok) out_rows_move(o->rows, out);
  out_rows_free(o->rows);
  return ok ? PS_OK : PS_NO_MEMORY;
}

ps_code ps_fold_get_partials(ps_fold *f, int64_t from, int64_t most, struct ArrowArray *out) {
  if (f->broken) return PS_CLOSED;
  if (from == 0) {
    combine_end(f);
    if (!fold_drop_before(f, f->start_next)) return PS_NO_MEMORY;
  }
  if (from >= f->n) return PS_END;
  out_rows rows;
  if (!fold_init_output(f, &rows)) return PS_NO_MEMORY;
  kernel_output o = {.from = from, .n = f->n - from < most ? f->n - from : most, .rows = &rows};
  return hand_over(&o, fold_put(f, o) && put_keys(f, &o, false), out);
}

ps_code ps_fold_get_keys(const ps_fold *f, struct ArrowArray *out) {
  if (f->broken) return PS_CLOSED;
  assert(f->keys_known > 0);
  out_rows rows;
  if (!out_rows_init_types(&rows, 1, f->keys, f->column_types + 1)) return PS_NO_MEMORY;
  kernel_output o = {.n = f->keys_known, .rows = &rows};
  uint64_t *numbers = out_reserve(&rows, 0, o.n);
  for (int64_t i = 0; numbers && i < o.n; i++) numbers[i] = (uint64_t)i;
  return hand_over(&o, numbers && put_keys(f, &o, true), out);
}
