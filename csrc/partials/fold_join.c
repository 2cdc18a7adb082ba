/*
 * fold_join.c - adds partials to entries; their columns are listed in fold_export.c. See fold.h.
 *
 * Partials are not trusted: a batch is checked as a whole before any row of it is added.
 */
#include "partials/fold.h"

/* ---- checks ---- */

/* A slice must be in some window, and in none that is emitted; `held` ones, of the fold that emitted it, may be. */
static bool check_slices(const ps_fold *f, const kernel_input *in, bool held) {
  pane_windows w = f->windows;
  uint64_t known = 0; /* most rows are of the previous row's slice */
  for (int64_t row = 0; row < in->n; row++) {
    uint64_t begin = (uint64_t)input_integer(in, 0, row);
    if (row > 0 && begin == known) continue;
    if (begin > INT64_MAX || last_edge(w, begin) != begin || !is_covered(w, begin)) {
      return kernel_refuse(in, row, PS_BAD_SLICE);
    }
    if ((held ? begin : first_start(w, begin)) < f->start_next) return kernel_refuse(in, row, PS_BAD_LATE);
    known = begin;
  }
  return true;
}

static bool check_rows(const ps_fold *f, const kernel_input *in) {
  int64_t total = f->total;
  for (int64_t row = 0; row < in->n; row++) {
    int64_t rows = input_integer(in, in->rows, row);
    if (rows < 1 || rows > FOLD_ROWS_MAX - total) return kernel_refuse(in, row, PS_BAD_ROWS);
    total += rows;
  }
  return true;
}

/* Every value must have a place, in the columns from `from` on, whose timestamp is in the slice. */
static bool check_places(const ps_fold *f, const kernel_input *in, int32_t from) {
  const column *c = &in->b->columns[in->from], *place = &in->b->columns[from];
  for (int64_t row = 0; row < in->n; row++) {
    if (column_is_null(c, row)) continue;
    bool ok = true;
    for (int32_t i = 0; i < 3; i++) ok = ok && !column_is_null(place + i, row);
    uint64_t begin = (uint64_t)input_integer(in, 0, row), ts = ok ? (uint64_t)input_integer(in, from, row) : 0;
    ok = ok && ts >= begin && ts < next_edge(f->windows, begin) && ts <= INT64_MAX;
    if (!ok) return kernel_refuse(in, row, PS_BAD_PLACE);
  }
  return true;
}

static bool check_partials(const ps_fold *f, const batch *b, bool held, bool packed, ps_fault *fault) {
  kernel_input in = {.b = b, .n = b->rows, .rows = 1 + f->keys, .number = -1, .packed = packed, .fault = fault};
  in.from = in.rows + 1;
  if (!check_slices(f, &in, held) || !check_rows(f, &in)) return false;
  for (int32_t i = 0; i < f->functions.n; i++) {
    const aggregate *a = f->column[i].a;
    in.number = i;
    if (a->kernel->check && !a->kernel->check(a, &in)) return false;
    if (a->kernel->placed && !check_places(f, &in, in.from + a->kernel->columns - 3)) return false;
    in.from += a->kernel->columns;
  }
  return true;
}

/* ---- adding ---- */

/* A checked batch. */
typedef struct {
  const batch *b;
  const uint32_t *numbers; /* key numbers */
  row_entries all;         /* of a block; no row is skipped, as every slice is in some window */
} joined;

static ps_code join_block(ps_fold *f, void *context, int64_t row, int64_t n, ps_fault *fault) {
  joined *j = context;
  fold_sought rows = {.n = n,
                      .ts = column_integers(&j->b->columns[0], row),
                      .numbers = j->numbers + row,
                      .weights = column_integers(&j->b->columns[1 + f->keys], row)};
  fold_find(f, &rows, &j->all);
  assert(j->all.n == n);
  for (int64_t i = 0; i < n; i++) f->total += rows.weights[i];
  ps_code code = PS_OK;
  kernel_input in = {.b = j->b, .row = row, .n = n, .from = 2 + f->keys, .entry = j->all.entry};
  for (int32_t i = 0; i < f->functions.n && code == PS_OK; i++) {
    const fold_column *c = &f->column[i];
    kernel_target to = {.a = c->a, .states = c->states, .store = &f->store, .fault = fault};
    if (c->size) code = c->a->kernel->import(&to, &in);
    fault->aggregate = i;
    in.from += c->a->kernel->columns;
  }
  return code;
}

ps_code fold_join(ps_fold *f, const batch *b, bool held, const uint32_t *numbers, ps_fault *fault) {
  *fault = (ps_fault){0};
  if (!check_partials(f, b, held, numbers != NULL, fault)) return PS_CORRUPT;
  combine_end(f);
  if (!numbers && !fold_number_keys(f, b)) return PS_NO_MEMORY;
  joined j;
  j.b = b;
  j.numbers = numbers ? numbers : f->numbers.numbers;
  return fold_blocks(f, b->rows, join_block, &j, fault);
}

ps_code ps_fold_add_partials(ps_fold *f, const struct ArrowArray *partials, int32_t held, ps_fault *fault) {
  if (f->broken) return PS_CLOSED;
  batch *b = batch_new(partials, f->partial_columns, f->partial_types);
  if (!b) return PS_NO_MEMORY;
  ps_code code = fold_join(f, b, held != 0, NULL, fault);
  batch_free(b); /* the buffers stay the caller's */
  return code;
}
