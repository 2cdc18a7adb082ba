/*
 * first_last.c - first and last of fixed-width values.
 *
 * A window's tuples come in order, so its state is a value. Slices and folds carry the place of the tuple as well
 * (place.h), each in its own form.
 */
#include "aggregates/place.h"
#include "aggregates/stacked.h"
#include "aggregates/state_bytes.h"

/* ---- a window's state ---- */

typedef struct {
  uint64_t bits;
  int64_t n;
} value_state;

static bool first_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  value_state *s = state;
  if (s->n++ == 0) s->bits = column_bits(c, row);
  return true;
}

static bool last_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  value_state *s = state;
  s->n++;
  s->bits = column_bits(c, row);
  return true;
}

static ps_code value_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  (void)a, (void)fault;
  const value_state *s = state;
  return s->n ? kernel_put_bits(rows, to, s->bits) : kernel_put_null(rows, to);
}

static bool value_write(const aggregate *a, const void *state, byte_buffer *to) {
  (void)a;
  const value_state *s = state;
  return state_put_word(to, s->bits) && state_put_word(to, (uint64_t)s->n);
}

static void value_read(const aggregate *a, void *state, state_reader *from) {
  value_state *s = state;
  s->bits = state_get_word(from);
  s->n = state_get_count(from);
  state_require(from, value_in_range(s->bits, a->type) && (s->n > 0 || s->bits == 0));
}

/* ---- slices ---- */

typedef struct {
  uint64_t when;  /* ts + 1; 0: none */
  uint64_t input; /* see partial_place */
  uint64_t bits;
} placed;

/* In a fresh block entries are numbered as their keys are met: row by row, each entry is written until its key has
   come. No branch on that, which no processor could guess. */
static void fold_fresh_first(placed *states, const counted_rows *c, const int64_t *ts, uint64_t input) {
  uint32_t next = 0;
  for (int64_t i = 0; i < c->n; i++) {
    states[next] = (placed){(uint64_t)ts[i] + 1, input, c->bits[i]};
    next += c->entry[i] == next;
  }
}

static ps_code first_fold(const kernel_target *t, const counted_rows *c) {
  placed *states = t->states;
  const int64_t *ts = c->block->ts;
  uint64_t input = c->block->input;
  assert(c->bits);
  if (c->block->fresh && !c->at) {
    fold_fresh_first(states, c, ts, input);
    return PS_OK;
  }
  for (int64_t i = 0; i < c->n; i++) {
    placed *s = &states[c->entry[i]];
    if (!s->when) *s = (placed){(uint64_t)ts[counted_at(c, i)] + 1, input, c->bits[i]};
  }
  return PS_OK;
}

static ps_code last_fold(const kernel_target *t, const counted_rows *c) {
  placed *states = t->states;
  const int64_t *ts = c->block->ts;
  uint64_t input = c->block->input;
  assert(c->bits);
  for (int64_t i = 0; i < c->n; i++) {
    states[c->entry[i]] = (placed){(uint64_t)ts[counted_at(c, i)] + 1, input, c->bits[i]};
  }
  return PS_OK;
}

static void first_pick(const uint16_t *row, int64_t n, const int64_t *ts, const uint64_t *bits, uint64_t input,
                       void *partials) {
  placed *states = partials;
  for (int64_t i = 0; i < n; i++) states[i] = (placed){(uint64_t)ts[row[i]] + 1, input, bits[row[i]]};
}

/* None, 0, becomes the largest by the subtraction. */
static inline bool first_better(const placed *a, const placed *b) {
  return (a->when - 1 < b->when - 1) | ((a->when == b->when) & (a->input < b->input));
}

static inline bool last_better(const placed *a, const placed *b) {
  return a->when > b->when || (a->when == b->when && a->input > b->input);
}

/* The better of two, without a branch, which no processor could guess where several inputs share a slice. */
static inline uint64_t choose(bool a, uint64_t x, uint64_t y) { return y ^ ((x ^ y) & (0 - (uint64_t)a)); }

static inline placed first_of(const placed *a, const placed *b) {
  bool better = first_better(a, b);
  return (placed){choose(better, a->when, b->when), choose(better, a->input, b->input),
                  choose(better, a->bits, b->bits)};
}

STACKED(first, placed)
NEWEST(last, placed)

static inline const placed *placed_total(const partial_totals *t, uint32_t k, bool last) {
  return last ? last_total(t, k) : first_total(t, k);
}

static ps_code placed_finish_many(const partial_results *r) {
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  bool last = r->a->kernel->greatest;
  for (int64_t i = 0; i < r->keys->n; i++) {
    const placed *s = placed_total(r->t, r->keys->keys[i], last);
    out[i] = s->bits;
    if (!s->when && !out_put_null_at(r->rows, r->to, i)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static void placed_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                        void *state) {
  (void)rows;
  const placed *s = placed_total(t, k, a->kernel->greatest);
  if (s->when && place_is_within(s->when, s->input, until)) *(value_state *)state = (value_state){s->bits, 1};
}

static void placed_load(const aggregate *a, const void *state, partial_place place, void *partial) {
  (void)a;
  const value_state *s = state;
  if (s->n) *(placed *)partial = (placed){place.when, place.input, s->bits};
}

/* ---- folds: the value, or null, and its place ---- */

typedef struct {
  row_place place;
  uint64_t bits;
} placed_entry;

/* `at` is c->at; whether it is NULL is known where this is called. */
static inline ps_code fold_placed(const kernel_target *t, const counted_rows *c, const uint16_t *at) {
  placed_entry *states = t->states;
  bool last = t->a->kernel->greatest;
  for (int64_t i = 0; i < c->n; i++) {
    placed_entry *s = &states[c->entry[i]];
    row_place place = place_of(c->block, at ? at[i] : i);
    place_outcome outcome = place_compete(&s->place, &place, last);
    if (outcome == PLACE_REPLACED) s->bits = c->bits[i];
    if (outcome == PLACE_TWICE) return place_twice(t, c, i);
  }
  return PS_OK;
}

static ps_code entry_fold(const kernel_target *t, const counted_rows *c) {
  assert(c->bits);
  return c->at ? fold_placed(t, c, c->at) : fold_placed(t, c, NULL);
}

static bool entry_export(const kernel_output *o) {
  const placed_entry *s = o->states;
  uint64_t *out = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; out && i < o->n; i++) {
    const placed_entry *x = &s[output_entry(o, i)];
    out[i] = x->bits;
    if (!x->place.when && !out_put_null_at(o->rows, o->to, i)) return false;
  }
  return out && place_export(o, sizeof *s, o->to + 1);
}

static ps_code entry_import(const kernel_target *t, const kernel_input *in) {
  placed_entry *states = t->states;
  const column *c = &in->b->columns[in->from];
  for (int64_t i = 0, row = in->row; i < in->n; i++, row++) {
    if (column_is_null(c, row)) continue;
    placed_entry *s = &states[in->entry[i]];
    row_place place = place_in(in, in->from + 1, row);
    place_outcome outcome = place_compete(&s->place, &place, t->a->kernel->greatest);
    if (outcome == PLACE_REPLACED) s->bits = column_bits(c, row);
    if (outcome == PLACE_TWICE) return place_twice_in(t, in, row);
  }
  return PS_OK;
}

/* Within a slice the fold has decided which row is first or last; slices differ in time, so stream and position are not
   needed any more. */
static void entry_gather(const kernel_store *store, const void *states, int64_t n, const uint32_t *place,
                         void *partials) {
  (void)store;
  const placed_entry *s = states;
  placed *to = partials;
  for (int64_t e = 0; e < n; e++) to[place ? place[e] : e] = (placed){s[e].place.when, 0, s[e].bits};
}

/* ---- places as columns: see place.h ---- */

bool place_export(const kernel_output *o, size_t size, int32_t to) {
  uint64_t *const out[3] = {out_reserve(o->rows, to, o->n), out_reserve(o->rows, to + 1, o->n),
                            out_reserve(o->rows, to + 2, o->n)};
  if (!out[0] || !out[1] || !out[2]) return false;
  for (int64_t i = 0; i < o->n; i++) {
    const row_place *p = (const void *)((const uint8_t *)o->states + (size_t)output_entry(o, i) * size);
    out[0][i] = p->when ? p->when - 1 : 0;
    out[1][i] = (uint64_t)p->stream;
    out[2][i] = (uint64_t)p->position;
    bool ok = true;
    for (int32_t c = to; !p->when && ok && c < to + 3; c++) ok = out_put_null_at(o->rows, c, i);
    if (!ok) return false;
  }
  return true;
}

_Static_assert(offsetof(placed_entry, place) == 0, "place_export relies on it");

ps_code place_twice(const kernel_target *t, const counted_rows *c, int64_t i) {
  t->fault->row = c->block->row + counted_at(c, i);
  return PS_TWICE;
}

ps_code place_twice_in(const kernel_target *t, const kernel_input *in, int64_t row) {
  t->fault->row = row;
  int32_t from = in->from + t->a->kernel->columns - 3;
  t->fault->ts = input_integer(in, from, row);
  t->fault->stream = input_integer(in, from + 1, row);
  t->fault->position = input_integer(in, from + 2, row);
  return PS_TWICE;
}

#define PLACED                                                                                                         \
  .placed = true, .state_size = sizeof(value_state), .finish = value_finish, .write = value_write, .read = value_read, \
  .size = sizeof(placed), .finish_many = placed_finish_many, .save = placed_save, .load = placed_load,                 \
  .entry_size = sizeof(placed_entry), .fold_entries = entry_fold, .columns = 4,                                        \
  .types = {PS_TYPES, PS_I64, PS_I64, PS_I64}, .export = entry_export, .check = kernel_check_values,                   \
  .import = entry_import, .gather = entry_gather

const kernel kernel_first = {PLACED, STACKED_BY(first), .add = first_add, .fold = first_fold, .pick = first_pick};
const kernel kernel_last = {PLACED, NEWEST_BY(last), .add = last_add, .fold = last_fold, .greatest = true};
