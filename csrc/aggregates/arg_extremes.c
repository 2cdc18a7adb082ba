/*
 * arg_extremes.c - arg_min and arg_max of fixed-width values.
 *
 * The second column decides, as a word (rank.h); of equal words the place of the tuple does. A window's tuples come in
 * order, so its state needs no place: what comes later must be less. Slices and folds carry the place (place.h), each in
 * its own form.
 */
#include "aggregates/rank.h"
#include "aggregates/stacked.h"
#include "aggregates/state_bytes.h"

/* ---- a window's state ---- */

typedef struct {
  uint64_t word;
  uint64_t bits;
  int64_t n;
} arg_state;

static bool arg_add(const aggregate *a, void *state, const column *c, int64_t row) {
  arg_state *s = state;
  uint64_t word = rank_of_row(a, c, row);
  if (s->n++ == 0 || word < s->word) {
    s->word = word;
    s->bits = column_bits(c, row);
  }
  return true;
}

static ps_code arg_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  (void)a, (void)fault;
  const arg_state *s = state;
  return s->n ? kernel_put_bits(rows, to, s->bits) : kernel_put_null(rows, to);
}

static bool arg_write(const aggregate *a, const void *state, byte_buffer *to) {
  const arg_state *s = state;
  return state_put_word(to, s->bits) && state_put_word(to, (uint64_t)s->n) && rank_write(a, s->word, s->n > 0, to);
}

static void arg_read(const aggregate *a, void *state, state_reader *from) {
  arg_state *s = state;
  s->bits = state_get_word(from);
  s->n = state_get_count(from);
  s->word = rank_read(a, s->n > 0, from);
  state_require(from, value_in_range(s->bits, a->type) && (s->n > 0 || s->bits == 0));
}

/* ---- slices ---- */

typedef struct {
  rank rank;
  uint64_t bits;
} arg;

/* Of one input's tuples, which come in order, the first of the least stays. */
static ps_code arg_fold(const kernel_target *t, const counted_rows *c) {
  arg *states = t->states;
  const int64_t *ts = c->block->ts;
  uint64_t input = c->block->input, flip = rank_flip(t->a);
  ps_type type = t->a->by_type;
  assert(c->bits && c->by);
  for (int64_t i = 0; i < c->n; i++) {
    arg *s = &states[c->entry[i]];
    uint64_t word = rank_of(c->by[i], type, flip);
    if (s->rank.when && word >= s->rank.word) continue;
    *s = (arg){{word, (uint64_t)ts[counted_at(c, i)] + 1, input}, c->bits[i]};
  }
  return PS_OK;
}

static inline bool arg_better(const arg *a, const arg *b) { return rank_better(a->rank, b->rank); }

BETTER_OF(arg, arg)
STACKED(arg, arg)

static ps_code arg_finish_many(const partial_results *r) {
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0; i < r->keys->n; i++) {
    const arg *s = arg_total(r->t, r->keys->keys[i]);
    out[i] = s->bits;
    if (!s->rank.when && !out_put_null_at(r->rows, r->to, i)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

/* One behind `until` is left out: it will be added again, and wins over all others of the slice. */
static void arg_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                     void *state) {
  (void)a, (void)rows;
  const arg *s = arg_total(t, k);
  if (!s->rank.when || !place_is_within(s->rank.when, s->rank.input, until)) return;
  *(arg_state *)state = (arg_state){s->rank.word, s->bits, 1};
}

static void arg_load(const aggregate *a, const void *state, partial_place place, void *partial) {
  (void)a;
  const arg_state *s = state;
  if (s->n) *(arg *)partial = (arg){{s->word, place.when, place.input}, s->bits};
}

/* ---- folds: the value, or null, that of the second column, and its place ---- */

typedef struct {
  row_place place;
  uint64_t word;
  uint64_t bits;
} arg_entry;

_Static_assert(offsetof(arg_entry, place) == 0, "place_export relies on it");

static ps_code entry_fold(const kernel_target *t, const counted_rows *c) {
  arg_entry *states = t->states;
  uint64_t flip = rank_flip(t->a);
  assert(c->bits && c->by);
  for (int64_t i = 0; i < c->n; i++) {
    arg_entry *s = &states[c->entry[i]];
    row_place place = place_of(c->block, counted_at(c, i));
    place_outcome outcome = rank_compete(&s->place, &s->word, &place, rank_of(c->by[i], t->a->by_type, flip));
    if (outcome == PLACE_REPLACED) s->bits = c->bits[i];
    if (outcome == PLACE_TWICE) return place_twice(t, c, i);
  }
  return PS_OK;
}

static bool entry_export(const kernel_output *o) {
  const arg_entry *s = o->states;
  uint64_t *out = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; out && i < o->n; i++) {
    const arg_entry *x = &s[output_entry(o, i)];
    out[i] = x->bits;
    if (!x->place.when && !out_put_null_at(o->rows, o->to, i)) return false;
  }
  return out && rank_export(o, sizeof *s, offsetof(arg_entry, word), o->to + 1) &&
         place_export(o, sizeof *s, o->to + 2);
}

static ps_code entry_import(const kernel_target *t, const kernel_input *in) {
  arg_entry *states = t->states;
  const column *c = &in->b->columns[in->from];
  for (int64_t i = 0, row = in->row; i < in->n; i++, row++) {
    if (column_is_null(c, row)) continue;
    arg_entry *s = &states[in->entry[i]];
    row_place place = place_in(in, in->from + 2, row);
    place_outcome outcome = rank_compete(&s->place, &s->word, &place, rank_in(t->a, in, row));
    if (outcome == PLACE_REPLACED) s->bits = column_bits(c, row);
    if (outcome == PLACE_TWICE) return place_twice_in(t, in, row);
  }
  return PS_OK;
}

/* As in first_last.c: slices differ in time, so stream and position are not needed any more. */
static void entry_gather(const kernel_store *store, const void *states, int64_t n, const uint32_t *place,
                         void *partials) {
  (void)store;
  const arg_entry *s = states;
  arg *to = partials;
  for (int64_t e = 0; e < n; e++) to[place ? place[e] : e] = (arg){{s[e].word, s[e].place.when, 0}, s[e].bits};
}

/* ---- the second column as bytes and as a column: see rank.h ---- */

bool rank_write(const aggregate *a, uint64_t word, bool any, byte_buffer *to) {
  return state_put_word(to, any ? rank_value(word, a->by_type, rank_flip(a)) : 0);
}

/* No column leads to a NaN that is not the canonical one. */
uint64_t rank_read(const aggregate *a, bool any, state_reader *from) {
  uint64_t by = state_get_word(from);
  state_require(from, value_in_range(by, a->by_type) && value_canonical(by, a->by_type) == by);
  state_require(from, any || by == 0);
  return any ? rank_of(by, a->by_type, rank_flip(a)) : 0;
}

bool rank_export(const kernel_output *o, size_t size, size_t offset, int32_t to) {
  uint64_t *out = out_reserve(o->rows, to, o->n), flip = rank_flip(o->a);
  for (int64_t i = 0; out && i < o->n; i++) {
    const uint8_t *x = (const uint8_t *)o->states + (size_t)output_entry(o, i) * size;
    bool any = ((const row_place *)(const void *)x)->when != 0;
    out[i] = any ? rank_value(*(const uint64_t *)(const void *)(x + offset), o->a->by_type, flip) : 0;
    if (!any && !out_put_null_at(o->rows, to, i)) return false;
  }
  return out != NULL;
}

uint64_t rank_in(const aggregate *a, const kernel_input *in, int64_t row) {
  return rank_of(column_bits(&in->b->columns[in->from + 1], row), a->by_type, rank_flip(a));
}

bool rank_check(const aggregate *a, const kernel_input *in) {
  const column *c = &in->b->columns[in->from], *by = c + 1;
  for (int64_t row = 0; row < in->n; row++) {
    if (column_is_null(c, row)) continue;
    bool ok = !column_is_null(by, row) && (!in->packed || value_in_range(column_bits(by, row), a->by_type));
    if (!ok) return kernel_refuse(in, row, PS_BAD_BY);
  }
  return kernel_check_values(a, in);
}

#define ARG                                                                                                      \
  .placed = true, .state_size = sizeof(arg_state), .add = arg_add, .finish = arg_finish, .write = arg_write,     \
  .read = arg_read, .size = sizeof(arg), .fold = arg_fold, STACKED_BY(arg), .finish_many = arg_finish_many,      \
  .save = arg_save, .load = arg_load, .entry_size = sizeof(arg_entry), .fold_entries = entry_fold, .columns = 5, \
  .types = {PS_TYPES, PS_TYPES, PS_I64, PS_I64, PS_I64}, .export = entry_export, .check = rank_check,            \
  .import = entry_import, .gather = entry_gather

const kernel kernel_arg_min = {ARG};
const kernel kernel_arg_max = {ARG, .greatest = true};
