/*
 * strings.c - min, max, first, last, arg_min, arg_max of strings.
 *
 * Who owns the bytes differs. A window's state has a copy, because the batch is freed before the window. A partial of a
 * slice refers to the batch, to a copy of the slice's, or to the block of memory in which the slice is handed over. An
 * entry of a fold has a place in the fold's store, by offset; it doubles when it is too small.
 */
#include "aggregates/rank.h"
#include "aggregates/stacked.h"
#include "aggregates/state_bytes.h"
#include "columns/utf8.h"

#define STRING_FIRST SIZED(16, 1) /* bytes of a place in the store */

/* ---- a window's state, and partials of slices ---- */

typedef struct {
  partial_place place; /* min, max: only whether there is a string */
  const uint8_t *data;
  int64_t length;
  uint64_t word; /* arg_min, arg_max: see rank.h */
} string_partial;

typedef struct {
  string_partial held;
  uint8_t *data; /* that of held, owned */
  int64_t capacity;
} string_state;

/* Whether a string that comes later, with this word, takes the place of the one held. */
static inline bool replaces(const aggregate *a, bytes x, uint64_t word, bytes held, uint64_t held_word) {
  if (a->by) return word < held_word;
  if (a->kernel->placed) return a->kernel->greatest;
  int order = bytes_compare(x, held);
  return a->kernel->greatest ? order > 0 : order < 0;
}

static bytes string_of(const string_partial *s) { return (bytes){s->data, s->length}; }

static inline bool loses(const aggregate *a, bytes x, uint64_t word, const string_partial *held) {
  return held->place.when && !replaces(a, x, word, string_of(held), held->word);
}

static bool string_grow(string_state *s, int64_t length) {
  bool ok = memory_grow((void **)&s->data, &s->capacity, length + 1, 1);
  s->held.data = s->data;
  return ok;
}

static bool string_reserve(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  return string_grow(state, column_bytes(c, row).length);
}

static bool string_add(const aggregate *a, void *state, const column *c, int64_t row) {
  string_state *s = state;
  bytes x = column_bytes(c, row);
  uint64_t word = a->by ? rank_of_row(a, c, row) : 0;
  if (loses(a, x, word, &s->held)) return true;
  if (!string_grow(s, x.length)) return false;
  if (x.length) memcpy(s->data, x.data, (size_t)x.length);
  s->held = (string_partial){{1, 0}, s->data, x.length, word};
  return true;
}

/* Swaps the two, so that nothing need be allocated; the caller drops the other one. */
static bool string_combine(const aggregate *a, void *state, void *other) {
  string_state *s = state, *o = other, kept = *s;
  if (!o->held.place.when || loses(a, string_of(&o->held), 0, &s->held)) return true;
  *s = *o;
  *o = kept;
  return true;
}

static void string_drop(void *state) { memory_free(((string_state *)state)->data); }

static bool string_write(const aggregate *a, const void *state, byte_buffer *to) {
  const string_partial *s = state;
  bool any = s->place.when != 0, ok = state_put_flag(to, any);
  if (ok && any) ok = state_put_word(to, (uint64_t)s->length) && state_put(to, s->data, s->length);
  return ok && (!a->by || rank_write(a, s->word, any, to));
}

static void read_string(const aggregate *a, string_state *s, state_reader *from) {
  uint64_t length = state_get_word(from);
  state_require(from, length <= (uint64_t)from->left);
  if (from->code != PS_OK) return;
  if (!string_grow(s, (int64_t)length)) {
    from->code = PS_NO_MEMORY;
    return;
  }
  s->held = (string_partial){{1, 0}, s->data, (int64_t)length, 0};
  state_get(from, s->data, s->held.length);
  state_require(from, string_fits(string_of(&s->held), a->strings));
}

static void string_read(const aggregate *a, void *state, state_reader *from) {
  string_state *s = state;
  if (state_get_flag(from)) read_string(a, s, from);
  if (a->by) s->held.word = rank_read(a, s->held.place.when != 0, from);
}

/* ---- slices ---- */

static ps_code string_fold(const kernel_target *t, const counted_rows *c) {
  string_partial *states = t->states;
  const row_block *k = c->block;
  uint64_t inversion = rank_inversion(t->a);
  assert(c->values);
  for (int64_t i = 0; i < c->n; i++) {
    int64_t at = counted_at(c, i);
    string_partial *s = &states[c->entry[i]];
    bytes x = column_bytes(c->values, k->row + at);
    uint64_t word = c->by ? rank_of(c->by[i], t->a->by_type, inversion) : 0;
    if (loses(t->a, x, word, s)) continue;
    *s = (string_partial){{(uint64_t)k->ts[at] + 1, k->input}, x.data, x.length, word};
  }
  return PS_OK;
}

static bool string_settle(void *partials, string_copy *copies, const row_entries *rows) {
  for (int64_t i = 0; i < rows->n; i++) {
    string_partial *s = (string_partial *)partials + rows->entry[i];
    string_copy *copy = &copies[rows->entry[i]];
    if (!s->place.when || (copy->data && s->data == copy->data)) continue;
    if (!memory_grow((void **)&copy->data, &copy->capacity, s->length + 1, 1)) return false;
    if (s->length) memcpy(copy->data, s->data, (size_t)s->length);
    s->data = copy->data;
  }
  return true;
}

static int64_t string_length(const void *partials, int64_t n) {
  const string_partial *s = partials;
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) total += s[i].length;
  return total;
}

static uint8_t *string_flatten(void *partials, int64_t n, uint8_t *to) {
  string_partial *s = partials;
  for (int64_t i = 0; i < n; i++) {
    if (s[i].length) memcpy(to, s[i].data, (size_t)s[i].length);
    s[i].data = to;
    to += s[i].length;
  }
  return to;
}

static inline bool first_better(const string_partial *a, const string_partial *b) {
  return place_is_before(a->place, b->place);
}

static inline bool last_better(const string_partial *a, const string_partial *b) {
  return place_is_after(a->place, b->place);
}

static inline bool min_better(const string_partial *a, const string_partial *b) {
  return a->place.when && (!b->place.when || bytes_compare(string_of(a), string_of(b)) < 0);
}

static inline bool max_better(const string_partial *a, const string_partial *b) {
  return a->place.when && (!b->place.when || bytes_compare(string_of(a), string_of(b)) > 0);
}

static inline bool arg_better(const string_partial *a, const string_partial *b) {
  return rank_better(a->place, a->word, b->place, b->word);
}

BETTER_OF(min, string_partial)
BETTER_OF(max, string_partial)
BETTER_OF(first, string_partial)
BETTER_OF(arg, string_partial)

STACKED(min, string_partial)
STACKED(max, string_partial)
STACKED(first, string_partial)
NEWEST(last, string_partial)
STACKED(arg, string_partial)

static ps_code string_finish_many(const partial_results *r) {
  for (int64_t i = 0; i < r->keys->n; i++) {
    const string_partial *s = r->a->kernel->total(r->t, r->keys->keys[i]);
    uint8_t *space = out_put_space_at(r->rows, r->to, i, s->length);
    if (!space || (!s->place.when && !out_put_null_at(r->rows, r->to, i))) return PS_NO_MEMORY;
    if (s->length) memcpy(space, s->data, (size_t)s->length);
  }
  return PS_OK;
}

/* ---- folds: the string, or null; the second column's value; the place ---- */

typedef struct {
  row_place place; /* min, max: only whether there is a string */
  int64_t at, length, capacity;
  uint64_t word;
} string_entry;

static uint8_t *entry_data(const kernel_store *store, const string_entry *s) { return store->strings + s->at; }

/* Copies the string. A larger one abandons the old place; sizes double, so waste never exceeds live bytes. */
static inline bool entry_copy(kernel_store *store, string_entry *s, bytes x) {
  if (x.length > s->capacity) {
    int64_t capacity = STRING_FIRST;
    while (capacity < x.length) capacity *= 2;
    if (!memory_grow((void **)&store->strings, &store->capacity, store->length + capacity, 1)) return false;
    store->in_use += capacity - s->capacity;
    s->at = store->length;
    s->capacity = capacity;
    store->length += capacity;
  }
  if (x.length) memcpy(entry_data(store, s), x.data, (size_t)x.length);
  s->length = x.length;
  return true;
}

/* A string competes with that of the entry. PS_TWICE: its row has been folded before. */
static ps_code entry_take(const kernel_target *t, string_entry *s, bytes x, const row_place *place, uint64_t word) {
  const aggregate *a = t->a;
  place_outcome outcome = PLACE_REPLACED;
  if (a->by) {
    outcome = rank_compete(&s->place, &s->word, place, word);
  } else if (a->kernel->placed) {
    outcome = place_compete(&s->place, place, a->kernel->greatest);
  } else {
    if (s->place.when && !replaces(a, x, 0, (bytes){entry_data(t->store, s), s->length}, 0)) return PS_OK;
    s->place.when = 1;
  }
  if (outcome == PLACE_TWICE) return PS_TWICE;
  return outcome == PLACE_KEPT || entry_copy(t->store, s, x) ? PS_OK : PS_NO_MEMORY;
}

static ps_code entry_fold(const kernel_target *t, const counted_rows *c) {
  string_entry *states = t->states;
  uint64_t inversion = rank_inversion(t->a);
  assert(c->values);
  for (int64_t i = 0; i < c->n; i++) {
    int64_t at = counted_at(c, i);
    row_place place = place_of(c->block, at);
    uint64_t word = c->by ? rank_of(c->by[i], t->a->by_type, inversion) : 0;
    ps_code code = entry_take(t, &states[c->entry[i]], column_bytes(c->values, c->block->row + at), &place, word);
    if (code == PS_TWICE) return place_twice(t, c, i);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

static bool entry_export(const kernel_output *o) {
  const string_entry *s = o->states;
  for (int64_t i = 0; i < o->n; i++) {
    const string_entry *x = &s[output_entry(o, i)];
    uint8_t *space = out_put_space_at(o->rows, o->to, i, x->length);
    if (!space || (!x->place.when && !out_put_null_at(o->rows, o->to, i))) return false;
    if (x->length) memcpy(space, entry_data(o->store, x), (size_t)x->length);
  }
  return !o->a->kernel->placed || place_export(o, offsetof(string_entry, word));
}

static ps_code entry_import(const kernel_target *t, const kernel_input *in) {
  string_entry *states = t->states;
  const column *c = &in->b->columns[in->from];
  for (int64_t i = 0, row = in->row; i < in->n; i++, row++) {
    if (column_is_null(c, row)) continue;
    row_place place = t->a->kernel->placed ? place_in(t->a, in, row) : (row_place){0};
    uint64_t word = t->a->by ? rank_in(t->a, in, row) : 0;
    ps_code code = entry_take(t, &states[in->entry[i]], column_bytes(c, row), &place, word);
    if (code == PS_TWICE) return place_twice_in(t, in, row);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

static void entry_gather(const kernel_output *from, const uint32_t *place, void *partials) {
  const string_entry *s = from->states;
  string_partial *to = partials;
  for (int64_t e = 0; e < from->n; e++) {
    const uint8_t *data = entry_data(from->store, &s[e]);
    to[place ? place[e] : e] = (string_partial){{s[e].place.when, 0}, data, s[e].length, s[e].word};
  }
}

static void entries_keep(const kernel_store *from, kernel_store *to, void *states, int64_t n) {
  string_entry *s = states;
  for (int64_t e = 0; e < n; e++) {
    if (s[e].length) memcpy(to->strings + to->length, entry_data(from, &s[e]), (size_t)s[e].length);
    s[e].at = to->length;
    to->length += s[e].capacity;
    to->in_use += s[e].capacity;
  }
}

#define STRINGS                                                                                                       \
  .state_size = sizeof(string_state), .add = string_add, .reserve = string_reserve, .drop = string_drop,              \
  .finish = kernel_finish, .write = string_write, .read = string_read, .size = sizeof(string_partial),                \
  .is_bytes = true, .fold = string_fold, .finish_many = string_finish_many, .settle = string_settle,                  \
  .length = string_length, .flatten = string_flatten, .entry_size = sizeof(string_entry), .fold_entries = entry_fold, \
  .export = entry_export, .import = entry_import, .gather = entry_gather, .entries_keep = entries_keep

#define EXTREME .combine = string_combine, .columns = 1, .types = {PS_TYPES}, .check = kernel_check_values
#define PLACED .placed = true, .columns = 4, .types = {PS_TYPES, PS_I64, PS_I64, PS_I64}, .check = kernel_check_values
#define ARG                                                                                             \
  STACKED_BY(arg), .placed = true, .columns = 5, .types = {PS_TYPES, PS_TYPES, PS_I64, PS_I64, PS_I64}, \
      .check = rank_check

const kernel kernel_min_bytes = {STRINGS, STACKED_BY(min), EXTREME};
const kernel kernel_max_bytes = {STRINGS, STACKED_BY(max), EXTREME, .greatest = true};
const kernel kernel_first_bytes = {STRINGS, STACKED_BY(first), PLACED};
const kernel kernel_last_bytes = {STRINGS, NEWEST_BY(last), PLACED, .greatest = true};
const kernel kernel_arg_min_bytes = {STRINGS, ARG};
const kernel kernel_arg_max_bytes = {STRINGS, ARG, .greatest = true};
