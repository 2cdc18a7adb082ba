/*
 * extremes.c - min and max of fixed-width values.
 *
 * States, partials and entries are alike: the value as a word in whose unsigned order the least wins (rank.h).
 */
#include "aggregates/rank.h"
#include "aggregates/shared_kinds.h"
#include "aggregates/stacked.h"
#include "aggregates/state_bytes.h"

static inline uint64_t value_of(const least *s, ps_type type, uint64_t inversion) {
  return s->present ? rank_value(s->word, type, inversion) : 0;
}

/* ---- a window's state ---- */

static bool least_add(const aggregate *a, void *state, const column *c, int64_t row) {
  least *s = state;
  uint64_t word = rank_of(column_bits(c, row), a->type, rank_inversion(a));
  if (!s->present || word < s->word) *s = (least){word, 1};
  return true;
}

static bool least_write(const aggregate *a, const void *state, byte_buffer *to) {
  const least *s = state;
  return state_put_word(to, value_of(s, a->type, rank_inversion(a))) && state_put_word(to, s->present);
}

/* No column leads to a NaN that is not the canonical one. */
static void least_read(const aggregate *a, void *state, state_reader *from) {
  uint64_t bits = state_get_word(from);
  bool any = state_get_count(from) > 0;
  state_require(from, value_in_range(bits, a->type) && value_canonical(bits, a->type) == bits);
  state_require(from, any || bits == 0);
  if (any) *(least *)state = (least){rank_of(bits, a->type, rank_inversion(a)), 1};
}

/* ---- slices ---- */

static ps_code least_fold(const kernel_target *t, const counted_rows *c) {
  least *states = t->states;
  ps_type type = t->a->type;
  uint64_t inversion = rank_inversion(t->a);
  assert(c->bits);
  for (int64_t i = 0; i < c->n; i++) {
    least *s = &states[c->entry[i]];
    uint64_t word = rank_of(c->bits[i], type, inversion);
    uint64_t now = s->present ? s->word : UINT64_MAX;
    s->word = word < now ? word : now;
    s->present = 1;
  }
  return PS_OK;
}

static inline bool least_better(const least *a, const least *b) {
  return a->present && (!b->present || a->word < b->word);
}

BETTER_OF(least, least)
STACKED(least, least)

RESULTS(least, least, value_of(s, r->a->type, rank_inversion(r->a)), !s->present)

/* ---- folds: the value, or null ---- */

static bool least_export(const kernel_output *o) {
  const least *s = o->states;
  uint64_t *out = out_reserve(o->rows, o->to, o->n), inversion = rank_inversion(o->a);
  for (int64_t i = 0; out && i < o->n; i++) {
    const least *x = &s[output_entry(o, i)];
    out[i] = value_of(x, o->a->type, inversion);
    if (!x->present && !out_put_null_at(o->rows, o->to, i)) return false;
  }
  return out != NULL;
}

static ps_code least_import(const kernel_target *t, const kernel_input *in) {
  least *states = t->states;
  const column *c = &in->b->columns[in->from];
  uint64_t inversion = rank_inversion(t->a);
  for (int64_t i = 0; i < in->n; i++) {
    if (column_is_null(c, in->row + i)) continue;
    least *s = &states[in->entry[i]];
    uint64_t word = rank_of(column_bits(c, in->row + i), t->a->type, inversion);
    if (!s->present || word < s->word) s->word = word;
    s->present = 1;
  }
  return PS_OK;
}

#define LEAST                                                                                                   \
  .state_size = sizeof(least), .add = least_add, .combine = kernel_combine, .finish = kernel_finish,            \
  .write = least_write, .read = least_read, .shared = &shared_least, .size = sizeof(least), .fold = least_fold, \
  STACKED_BY(least), .finish_many = least_finish_many, .entry_size = sizeof(least), .fold_entries = least_fold, \
  .columns = 1, .types = {PS_TYPES}, .export = least_export, .check = kernel_check_values, .import = least_import

const kernel kernel_min = {LEAST};
const kernel kernel_max = {LEAST, .greatest = true};
