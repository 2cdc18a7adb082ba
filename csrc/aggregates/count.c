/* count.c - count: with a filter a number; without one the rows of the key, which slices and folds count in any case. */
#include "aggregates/aggregate.h"
#include "aggregates/shared_kinds.h"
#include "aggregates/state_bytes.h"

/* ---- a window's state ---- */

static bool count_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a, (void)c, (void)row;
  ++*(int64_t *)state;
  return true;
}

static bool count_write(const aggregate *a, const void *state, byte_buffer *to) {
  (void)a;
  return state_put_word(to, *(const uint64_t *)state);
}

/* Without a filter every tuple counts, and no window is without a tuple. */
static void count_read(const aggregate *a, void *state, state_reader *from) {
  int64_t n = *(int64_t *)state = state_get_count(from);
  state_require(from, n > 0 || a->mask >= 0);
}

/* ---- slices ---- */

static ps_code count_fold(const kernel_target *t, const counted_rows *c) {
  int64_t *count = t->states;
  for (int64_t i = 0; i < c->n; i++) count[c->entry[i]]++;
  return PS_OK;
}

static inline bool count_move(const partial_totals *t, const partial_list *list, int sign) {
  int64_t *total = t->total;
  const int64_t *from = list->partials;
  for (int64_t i = 0; i < list->n; i++) total[list->keys[i]] += sign * from[i];
  return true;
}

static bool count_enter(const partial_totals *t, const partial_list *list) { return count_move(t, list, 1); }

static bool count_leave(const partial_totals *t, const partial_list *list) { return count_move(t, list, -1); }

static ps_code put_counts(const partial_results *r, const int64_t *counts) {
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0; i < r->keys->n; i++) out[i] = (uint64_t)counts[r->keys->keys[i]];
  return PS_OK;
}

static ps_code count_finish_many(const partial_results *r) { return put_counts(r, r->t->total); }

static ps_code rows_finish_many(const partial_results *r) { return put_counts(r, r->rows_of); }

/* ---- folds: the number ---- */

static bool count_export(const kernel_output *o) {
  const int64_t *counts = o->states;
  uint64_t *out = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; out && i < o->n; i++) out[i] = (uint64_t)counts[output_entry(o, i)];
  return out != NULL;
}

static ps_code count_import(const kernel_target *t, const kernel_input *in) {
  int64_t *counts = t->states;
  for (int64_t i = 0; i < in->n; i++) counts[in->entry[i]] += input_integer(in, in->from, in->row + i);
  return PS_OK;
}

#define COUNT_STATE                                                                                    \
  .state_size = sizeof(int64_t), .add = count_add, .combine = kernel_combine, .finish = kernel_finish, \
  .write = count_write, .read = count_read, .shared = &shared_count, .enter = count_enter

const kernel kernel_count_rows = {COUNT_STATE, .finish_many = rows_finish_many};

const kernel kernel_count = {COUNT_STATE,
                             .size = sizeof(int64_t),
                             .fold = count_fold,
                             .leave = count_leave,
                             .finish_many = count_finish_many,
                             .entry_size = sizeof(int64_t),
                             .fold_entries = count_fold,
                             .columns = 1,
                             .types = {PS_I64},
                             .export = count_export,
                             .check = kernel_check_counts,
                             .import = count_import};
