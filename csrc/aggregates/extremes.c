/*
 * extremes.c - min and max of fixed-width values.
 *
 * States, partials and entries are alike: the value as a word in whose unsigned order the least wins (rank.h).
 */
#include "aggregates/rank.h"
#include "aggregates/stacked.h"
#include "aggregates/state_bytes.h"

typedef struct {
  uint64_t word;
  uint64_t present; /* 0: none; windows count their values here */
} least;

static inline uint64_t value_of(const least *s, ps_type type, uint64_t flip) {
  return s->present ? rank_value(s->word, type, flip) : 0;
}

/* ---- a window's state ---- */

static bool least_add(const aggregate *a, void *state, const column *c, int64_t row) {
  least *s = state;
  uint64_t word = rank_of(column_bits(c, row), a->type, rank_flip(a));
  if (s->present++ == 0 || word < s->word) s->word = word;
  return true;
}

/* The other's value takes part as one more. */
static bool least_combine(const aggregate *a, void *state, void *other) {
  (void)a;
  least *s = state;
  const least *o = other;
  if (o->present && (!s->present || o->word < s->word)) s->word = o->word;
  s->present += o->present;
  return true;
}

static ps_code least_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  (void)fault;
  const least *s = state;
  return s->present ? kernel_put_bits(rows, to, value_of(s, a->type, rank_flip(a))) : kernel_put_null(rows, to);
}

static bool least_write(const aggregate *a, const void *state, byte_buffer *to) {
  const least *s = state;
  return state_put_word(to, value_of(s, a->type, rank_flip(a))) && state_put_word(to, s->present);
}

/* No column leads to a NaN that is not the canonical one. */
static void least_read(const aggregate *a, void *state, state_reader *from) {
  uint64_t bits = state_get_word(from), n = (uint64_t)state_get_count(from);
  state_require(from, value_in_range(bits, a->type) && value_canonical(bits, a->type) == bits);
  state_require(from, n > 0 || bits == 0);
  if (n) *(least *)state = (least){rank_of(bits, a->type, rank_flip(a)), n};
}

/* ---- slices ---- */

static ps_code least_fold(const kernel_target *t, const counted_rows *c) {
  least *states = t->states;
  ps_type type = t->a->type;
  uint64_t flip = rank_flip(t->a);
  assert(c->bits);
  for (int64_t i = 0; i < c->n; i++) {
    least *s = &states[c->entry[i]];
    uint64_t word = rank_of(c->bits[i], type, flip);
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

static ps_code least_finish_many(const partial_results *r) {
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n), flip = rank_flip(r->a);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0; i < r->keys->n; i++) {
    const least *s = least_total(r->t, r->keys->keys[i]);
    out[i] = value_of(s, r->a->type, flip);
    if (!s->present && !out_put_null_at(r->rows, r->to, i)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static void least_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                       void *state) {
  (void)a, (void)rows, (void)until;
  *(least *)state = *least_total(t, k);
}

static void least_load(const aggregate *a, const void *state, partial_place place, void *partial) {
  (void)a, (void)place;
  const least *s = state;
  *(least *)partial = (least){s->word, s->present != 0};
}

/* ---- folds: the value, or null ---- */

static bool least_export(const kernel_output *o) {
  const least *s = o->states;
  uint64_t *out = out_reserve(o->rows, o->to, o->n), flip = rank_flip(o->a);
  for (int64_t i = 0; out && i < o->n; i++) {
    const least *x = &s[output_entry(o, i)];
    out[i] = value_of(x, o->a->type, flip);
    if (!x->present && !out_put_null_at(o->rows, o->to, i)) return false;
  }
  return out != NULL;
}

static ps_code least_import(const kernel_target *t, const kernel_input *in) {
  least *states = t->states;
  const column *c = &in->b->columns[in->from];
  uint64_t flip = rank_flip(t->a);
  for (int64_t i = 0; i < in->n; i++) {
    if (column_is_null(c, in->row + i)) continue;
    least *s = &states[in->entry[i]];
    uint64_t word = rank_of(column_bits(c, in->row + i), t->a->type, flip);
    if (!s->present || word < s->word) s->word = word;
    s->present = 1;
  }
  return PS_OK;
}

#define LEAST                                                                                                          \
  .state_size = sizeof(least), .add = least_add, .combine = least_combine, .finish = least_finish,                     \
  .write = least_write, .read = least_read, .size = sizeof(least), .fold = least_fold, STACKED_BY(least),              \
  .finish_many = least_finish_many, .save = least_save, .load = least_load, .entry_size = sizeof(least),               \
  .fold_entries = least_fold, .columns = 1, .types = {PS_TYPES}, .export = least_export, .check = kernel_check_values, \
  .import = least_import

const kernel kernel_min = {LEAST};
const kernel kernel_max = {LEAST, .greatest = true};
