/* fold_rows.c - folds rows into entries: see fold.h. */
#include "partials/fold.h"

static ps_code fold_column_rows(ps_fold *f, const fold_column *c, row_block *k, ps_fault *fault) {
  counted_rows rows = row_block_count(c->a, k);
  kernel_target to = {.a = c->a, .states = c->states, .store = &f->store, .fault = fault};
  return c->a->kernel->fold_entries(&to, &rows);
}

static ps_code fold_block_rows(ps_fold *f, void *context, int64_t row, int64_t n, ps_fault *fault) {
  row_block *k = context;
  k->row = row;
  k->rows = n;
  k->ts = column_integers(&k->b->columns[0], k->row);
  k->stream = f->stream < 0 ? NULL : column_integers(&k->b->columns[f->stream], k->row);
  k->position = f->position < 0 ? NULL : column_integers(&k->b->columns[f->position], k->row);
  fold_sought rows = {.n = k->rows, .ts = k->ts, .numbers = f->numbers.numbers + (f->unfolded ? 0 : k->row)};
  if (f->unfolded) {
    fold_make(f, &rows, (uint32_t)(f->keys_known + k->row), &k->all);
  } else {
    fold_find(f, &rows, &k->all);
  }
  f->total += k->all.n;
  ps_code code = PS_OK;
  for (int32_t i = 0; i < f->functions.n && code == PS_OK; i++) {
    if (f->column[i].size) code = fold_column_rows(f, &f->column[i], k, fault);
    fault->aggregate = i;
  }
  return code;
}

/* Whether no timestamp is negative. */
static bool in_range(const batch *b, ps_fault *fault) {
  const int64_t *ts = column_integers(&b->columns[0], 0);
  int64_t all = 0;
  for (int64_t i = 0; i < b->rows; i++) all |= ts[i];
  if (all >= 0) return true;
  while (ts[fault->row] >= 0) fault->row++;
  fault->ts = ts[fault->row];
  return false;
}

/* Unfolded rows are numbered consecutively, with 32 bits. False: out of numbers or memory. */
static bool number_rows(ps_fold *f, const batch *b) {
  return f->unfolded ? f->keys_known <= UINT32_MAX - b->rows : fold_number_keys(f, b);
}

static ps_code fold_batch(ps_fold *f, const batch *b, ps_fault *fault) {
  *fault = (ps_fault){0};
  if (!in_range(b, fault)) return PS_DISORDER;
  combine_end(f);
  if (!number_rows(f, b)) return PS_NO_MEMORY;
  row_block k;
  k.b = b;
  ps_code code = fold_blocks(f, b->rows, fold_block_rows, &k, fault);
  if (f->unfolded) f->keys_known += b->rows;
  return code;
}

void ps_fold_keep_rows(ps_fold *f) {
  assert(f->n == 0 && f->keys_known == 0);
  f->unfolded = true;
}

ps_code ps_fold_add_rows(ps_fold *f, const struct ArrowArray *rows, ps_fault *fault) {
  if (f->broken) return PS_CLOSED;
  batch *b = batch_new(rows, f->columns, f->column_types);
  if (!b) return PS_NO_MEMORY;
  ps_code code = fold_batch(f, b, fault);
  batch_free(b); /* the buffers stay the caller's */
  return code;
}
