/*
 * placed.c - first, last, arg_min and arg_max of fixed-width values; and what strings.c shares with them.
 *
 * first and last are decided by the place of a tuple in the order of tuples (place.h), arg_min and arg_max by a word of
 * the second column (rank.h) and, of equal words, by the place. So the latter have what the former have, and the word
 * after it. A window's tuples come in order: its state needs no place, only whether there is a tuple. Slices and folds
 * carry the place, each in its own form.
 */
#include "aggregates/rank.h"
#include "aggregates/stacked.h"
#include "aggregates/state_bytes.h"

/* ---- a window's state, and partials of slices ---- */

typedef struct {
  partial_place place;
  uint64_t bits;
} placed;

typedef struct {
  placed value;
  uint64_t word;
} ranked;

/* The place of a value in a window's state. */
#define SOMEWHERE ((partial_place){1, 0})

static bool first_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  placed *s = state;
  if (!s->place.when) *s = (placed){SOMEWHERE, column_bits(c, row)};
  return true;
}

static bool last_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  *(placed *)state = (placed){SOMEWHERE, column_bits(c, row)};
  return true;
}

static bool arg_add(const aggregate *a, void *state, const column *c, int64_t row) {
  ranked *s = state;
  uint64_t word = rank_of_row(a, c, row);
  if (!s->value.place.when || word < s->word) *s = (ranked){{SOMEWHERE, column_bits(c, row)}, word};
  return true;
}

static bool placed_write(const aggregate *a, const void *state, byte_buffer *to) {
  const placed *s = state;
  bool any = s->place.when != 0;
  if (!state_put_word(to, s->bits) || !state_put_word(to, any)) return false;
  return !a->by || rank_write(a, ((const ranked *)state)->word, any, to);
}

static void placed_read(const aggregate *a, void *state, state_reader *from) {
  placed *s = state;
  s->bits = state_get_word(from);
  bool any = state_get_count(from) > 0;
  if (any) s->place = SOMEWHERE;
  if (a->by) ((ranked *)state)->word = rank_read(a, any, from);
  state_require(from, value_in_range(s->bits, a->type) && (any || s->bits == 0));
}

/* ---- slices ---- */

/* In a fresh block entries are numbered as their keys are met: row by row, each entry is written until its key has
   come. No branch on that, which no processor could predict. */
static void fold_fresh_first(placed *states, const counted_rows *c, const int64_t *ts, uint64_t input) {
  uint32_t next = 0;
  for (int64_t i = 0; i < c->n; i++) {
    states[next] = (placed){{(uint64_t)ts[i] + 1, input}, c->bits[i]};
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
    if (!s->place.when) *s = (placed){{(uint64_t)ts[counted_at(c, i)] + 1, input}, c->bits[i]};
  }
  return PS_OK;
}

static ps_code last_fold(const kernel_target *t, const counted_rows *c) {
  placed *states = t->states;
  const int64_t *ts = c->block->ts;
  uint64_t input = c->block->input;
  assert(c->bits);
  for (int64_t i = 0; i < c->n; i++) {
    states[c->entry[i]] = (placed){{(uint64_t)ts[counted_at(c, i)] + 1, input}, c->bits[i]};
  }
  return PS_OK;
}

/* Of one input's tuples, which come in order, the first of the least stays. */
static ps_code arg_fold(const kernel_target *t, const counted_rows *c) {
  ranked *states = t->states;
  const int64_t *ts = c->block->ts;
  uint64_t input = c->block->input, inversion = rank_inversion(t->a);
  ps_type type = t->a->by_type;
  assert(c->bits && c->by);
  for (int64_t i = 0; i < c->n; i++) {
    ranked *s = &states[c->entry[i]];
    uint64_t word = rank_of(c->by[i], type, inversion);
    if (s->value.place.when && word >= s->word) continue;
    *s = (ranked){{{(uint64_t)ts[counted_at(c, i)] + 1, input}, c->bits[i]}, word};
  }
  return PS_OK;
}

static void first_pick(const uint16_t *row, int64_t n, const int64_t *ts, const uint64_t *bits, uint64_t input,
                       void *partials) {
  placed *states = partials;
  for (int64_t i = 0; i < n; i++) states[i] = (placed){{(uint64_t)ts[row[i]] + 1, input}, bits[row[i]]};
}

static inline bool first_better(const placed *a, const placed *b) { return place_is_before(a->place, b->place); }

static inline bool last_better(const placed *a, const placed *b) { return place_is_after(a->place, b->place); }

static inline bool arg_better(const ranked *a, const ranked *b) {
  return rank_better(a->value.place, a->word, b->value.place, b->word);
}

/* The better of two without a branch, which no processor could predict where several inputs share a slice. */
static inline uint64_t choose(bool a, uint64_t x, uint64_t y) { return y ^ ((x ^ y) & (0 - (uint64_t)a)); }

static inline placed first_of(const placed *a, const placed *b) {
  bool better = first_better(a, b);
  partial_place place = {choose(better, a->place.when, b->place.when), choose(better, a->place.input, b->place.input)};
  return (placed){place, choose(better, a->bits, b->bits)};
}

BETTER_OF(arg, ranked)
STACKED(first, placed)
NEWEST(last, placed)
STACKED(arg, ranked)
RESULTS(first, placed, s->bits, !s->place.when)
RESULTS(last, placed, s->bits, !s->place.when)
RESULTS(arg, placed, s->bits, !s->place.when)

/* ---- folds: the value, or null, that of the second column, and the place ---- */

static const void *entry_in(const kernel_output *o, int64_t e) {
  return (const uint8_t *)o->states + (size_t)e * o->a->kernel->entry_size;
}

typedef struct {
  row_place place;
  uint64_t bits;
} placed_entry;

typedef struct {
  placed_entry value;
  uint64_t word;
} ranked_entry;

/* A value competes with that of the entry; `by`: a ranked_entry. A constant where this is called. */
INLINED place_outcome take(const aggregate *a, placed_entry *s, bool by, const row_place *place, uint64_t word,
                           uint64_t bits) {
  uint64_t *held_word = &((ranked_entry *)(void *)s)->word;
  place_outcome outcome =
      by ? rank_compete(&s->place, held_word, place, word) : place_compete(&s->place, place, a->kernel->greatest);
  if (outcome == PLACE_REPLACED) s->bits = bits;
  return outcome;
}

static inline placed_entry *entry_at(void *states, bool by, int64_t e) {
  return (placed_entry *)(void *)((uint8_t *)states + (size_t)e * (by ? sizeof(ranked_entry) : sizeof(placed_entry)));
}

/* `at` is c->at. */
INLINED ps_code fold_by(const kernel_target *t, const counted_rows *c, const uint16_t *at, bool by) {
  uint64_t inversion = rank_inversion(t->a);
  for (int64_t i = 0; i < c->n; i++) {
    row_place place = place_of(c->block, at ? at[i] : i);
    uint64_t word = by ? rank_of(c->by[i], t->a->by_type, inversion) : 0;
    place_outcome outcome = take(t->a, entry_at(t->states, by, c->entry[i]), by, &place, word, c->bits[i]);
    if (outcome == PLACE_TWICE) return place_twice(t, c, i);
  }
  return PS_OK;
}

static ps_code entry_fold(const kernel_target *t, const counted_rows *c) {
  assert(c->bits);
  if (t->a->by) return fold_by(t, c, c->at, true);
  return c->at ? fold_by(t, c, c->at, false) : fold_by(t, c, NULL, false);
}

INLINED ps_code import_by(const kernel_target *t, const kernel_input *in, bool by) {
  const column *c = &in->b->columns[in->from];
  for (int64_t i = 0, row = in->row; i < in->n; i++, row++) {
    if (column_is_null(c, row)) continue;
    row_place place = place_in(t->a, in, row);
    uint64_t word = by ? rank_in(t->a, in, row) : 0;
    place_outcome outcome = take(t->a, entry_at(t->states, by, in->entry[i]), by, &place, word, column_bits(c, row));
    if (outcome == PLACE_TWICE) return place_twice_in(t, in, row);
  }
  return PS_OK;
}

static ps_code entry_import(const kernel_target *t, const kernel_input *in) {
  return t->a->by ? import_by(t, in, true) : import_by(t, in, false);
}

static bool entry_export(const kernel_output *o) {
  uint64_t *out = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; out && i < o->n; i++) {
    const placed_entry *x = entry_in(o, output_entry(o, i));
    out[i] = x->bits;
    if (!x->place.when && !out_put_null_at(o->rows, o->to, i)) return false;
  }
  return out && place_export(o, offsetof(ranked_entry, word));
}

/* Within a slice the fold has decided which row wins; slices differ in time, so stream and position are not needed. */
static void entry_gather(const kernel_output *from, const uint32_t *place, void *partials) {
  bool by = from->a->by;
  for (int64_t e = 0; e < from->n; e++) {
    int64_t at = place ? place[e] : e;
    const placed_entry *s = entry_in(from, e);
    if (by) {
      uint64_t word = ((const ranked_entry *)(const void *)s)->word;
      ((ranked *)partials)[at] = (ranked){{{s->place.when, 0}, s->bits}, word};
    } else {
      ((placed *)partials)[at] = (placed){{s->place.when, 0}, s->bits};
    }
  }
}

/* ---- places and ranks as columns and bytes: see place.h, rank.h ---- */

static bool rank_export(const kernel_output *o, size_t offset) {
  int32_t to = o->to + 1;
  uint64_t *out = out_reserve(o->rows, to, o->n), inversion = rank_inversion(o->a);
  for (int64_t i = 0; out && i < o->n; i++) {
    const row_place *x = entry_in(o, output_entry(o, i));
    bool any = x->when != 0;
    uint64_t word = *(const uint64_t *)(const void *)((const uint8_t *)x + offset);
    out[i] = any ? rank_value(word, o->a->by_type, inversion) : 0;
    if (!any && !out_put_null_at(o->rows, to, i)) return false;
  }
  return out != NULL;
}

bool place_export(const kernel_output *o, size_t word_offset) {
  int32_t to = o->to + place_column(o->a);
  if (o->a->by && !rank_export(o, word_offset)) return false;
  uint64_t *const out[3] = {out_reserve(o->rows, to, o->n), out_reserve(o->rows, to + 1, o->n),
                            out_reserve(o->rows, to + 2, o->n)};
  if (!out[0] || !out[1] || !out[2]) return false;
  for (int64_t i = 0; i < o->n; i++) {
    const row_place *p = entry_in(o, output_entry(o, i));
    out[0][i] = p->when ? p->when - 1 : 0;
    out[1][i] = (uint64_t)p->stream;
    out[2][i] = (uint64_t)p->position;
    bool ok = true;
    for (int32_t c = to; !p->when && ok && c < to + 3; c++) ok = out_put_null_at(o->rows, c, i);
    if (!ok) return false;
  }
  return true;
}

ps_code place_twice(const kernel_target *t, const counted_rows *c, int64_t i) {
  t->fault->row = c->block->row + counted_at(c, i);
  return PS_TWICE;
}

ps_code place_twice_in(const kernel_target *t, const kernel_input *in, int64_t row) {
  row_place p = place_in(t->a, in, row);
  t->fault->row = row;
  t->fault->ts = (int64_t)(p.when - 1);
  t->fault->stream = p.stream;
  t->fault->position = p.position;
  return PS_TWICE;
}

bool rank_write(const aggregate *a, uint64_t word, bool any, byte_buffer *to) {
  return state_put_word(to, any ? rank_value(word, a->by_type, rank_inversion(a)) : 0);
}

/* No column leads to a NaN that is not the canonical one. */
uint64_t rank_read(const aggregate *a, bool any, state_reader *from) {
  uint64_t by = state_get_word(from);
  state_require(from, value_in_range(by, a->by_type) && value_canonical(by, a->by_type) == by);
  state_require(from, any || by == 0);
  return any ? rank_of(by, a->by_type, rank_inversion(a)) : 0;
}

uint64_t rank_in(const aggregate *a, const kernel_input *in, int64_t row) {
  return rank_of(column_bits(&in->b->columns[in->from + 1], row), a->by_type, rank_inversion(a));
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

#define EITHER                                                                                                     \
  .placed = true, .finish = kernel_finish, .write = placed_write, .read = placed_read, .fold_entries = entry_fold, \
  .export = entry_export, .import = entry_import, .gather = entry_gather

#define PLACED(name)                                                                                    \
  EITHER, .state_size = sizeof(placed), .add = name##_add, .size = sizeof(placed), .fold = name##_fold, \
      .finish_many = name##_finish_many, .entry_size = sizeof(placed_entry), .columns = 4,              \
      .types = {PS_TYPES, PS_I64, PS_I64, PS_I64}, .check = kernel_check_values

#define ARG                                                                                                        \
  EITHER, .state_size = sizeof(ranked), .add = arg_add, .size = sizeof(ranked), .fold = arg_fold, STACKED_BY(arg), \
      .finish_many = arg_finish_many, .entry_size = sizeof(ranked_entry), .columns = 5,                            \
      .types = {PS_TYPES, PS_TYPES, PS_I64, PS_I64, PS_I64}, .check = rank_check

const kernel kernel_first = {PLACED(first), STACKED_BY(first), .pick = first_pick};
const kernel kernel_last = {PLACED(last), NEWEST_BY(last), .greatest = true};
const kernel kernel_arg_min = {ARG};
const kernel kernel_arg_max = {ARG, .greatest = true};
