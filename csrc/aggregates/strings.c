/*
 * strings.c - min, max, first, last, arg_min, arg_max of strings.
 *
 * Who owns the bytes differs: a window's state has a copy, since the batch goes before the window does; a partial of a
 * slice refers to the batch, to a copy of the slice's or to the block that the slice was packed in; an entry of a fold
 * has a place in the fold's store, by offset, which doubles when it is too small.
 *
 * States, partials and entries of arg_min and arg_max begin with those of the others, and have the word of the second
 * column (rank.h) behind. Loops that serve both take the size, a constant where they are called.
 */
#include "aggregates/rank.h"
#include "aggregates/stacked.h"
#include "aggregates/state_bytes.h"
#include "columns/utf8.h"

#define STRING_FIRST SIZED(16, 1) /* bytes of a place in the store */

/* Whether a string that comes later takes the place of the one held. */
static inline bool replaces(const kernel *k, bytes x, bytes held) {
  if (k->placed) return k->greatest;
  int order = bytes_compare(x, held);
  return k->greatest ? order > 0 : order < 0;
}

/* ---- a window's state ---- */

typedef struct {
  uint8_t *data;
  int64_t length, capacity;
  bool any; /* false: none yet */
} string_state;

static bytes state_string(const string_state *s) { return (bytes){s->data, s->length}; }

static bool string_grow(string_state *s, int64_t length) {
  return memory_grow((void **)&s->data, &s->capacity, length + 1, 1);
}

static bool string_reserve(void *state, const column *c, int64_t row) {
  return string_grow(state, column_bytes(c, row).length);
}

static bool string_set(string_state *s, bytes x) {
  if (!string_grow(s, x.length)) return false;
  if (x.length) memcpy(s->data, x.data, (size_t)x.length);
  s->length = x.length;
  s->any = true;
  return true;
}

static bool string_add(const aggregate *a, void *state, const column *c, int64_t row) {
  string_state *s = state;
  bytes x = column_bytes(c, row);
  if (s->any && !replaces(a->kernel, x, state_string(s))) return true;
  return string_set(s, x);
}

/* Swaps the two, so that nothing need be allocated; the caller drops the other one. */
static bool string_combine(const aggregate *a, void *state, void *other) {
  string_state *s = state, *o = other, kept = *s;
  if (!o->any || (s->any && !replaces(a->kernel, state_string(o), state_string(s)))) return true;
  *s = *o;
  *o = kept;
  return true;
}

static ps_code string_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  (void)a, (void)fault;
  const string_state *s = state;
  if (!s->any) return kernel_put_null(rows, to);
  return out_put_bytes(rows, to, s->data, s->length) ? PS_OK : PS_NO_MEMORY;
}

static void string_drop(void *state) { memory_free(((string_state *)state)->data); }

static bool string_write(const aggregate *a, const void *state, byte_buffer *to) {
  (void)a;
  const string_state *s = state;
  if (!state_put_flag(to, s->any)) return false;
  if (!s->any) return true;
  return state_put_word(to, (uint64_t)s->length) && state_put(to, s->data, s->length);
}

static void string_read(const aggregate *a, void *state, state_reader *from) {
  string_state *s = state;
  if (!state_get_flag(from)) return;
  uint64_t length = state_get_word(from);
  state_require(from, length <= (uint64_t)from->left);
  if (from->code != PS_OK) return;
  if (!string_grow(s, (int64_t)length)) {
    from->code = PS_NO_MEMORY;
    return;
  }
  s->any = true;
  s->length = (int64_t)length;
  state_get(from, s->data, s->length);
  state_require(from, string_fits(state_string(s), a->strings));
}

/* ---- slices ---- */

typedef struct {
  uint64_t when;  /* ts + 1; 0: none */
  uint64_t input; /* see partial_place */
  const uint8_t *data;
  int64_t length;
} string_partial;

static bytes partial_string(const string_partial *s) { return (bytes){s->data, s->length}; }

static inline void *sized_at(void *states, size_t size, int64_t i) { return (uint8_t *)states + (size_t)i * size; }
static inline const void *sized_in(const void *states, size_t size, int64_t i) {
  return (const uint8_t *)states + (size_t)i * size;
}

static ps_code string_fold(const kernel_target *t, const counted_rows *c) {
  string_partial *states = t->states;
  const row_block *k = c->block;
  assert(c->values);
  for (int64_t i = 0; i < c->n; i++) {
    int64_t at = counted_at(c, i);
    string_partial *s = &states[c->entry[i]];
    bytes x = column_bytes(c->values, k->row + at);
    if (s->when && !replaces(t->a->kernel, x, partial_string(s))) continue;
    *s = (string_partial){(uint64_t)k->ts[at] + 1, k->input, x.data, x.length};
  }
  return PS_OK;
}

static inline bool settle(void *partials, size_t size, string_copy *copies, const row_entries *rows) {
  for (int64_t i = 0; i < rows->n; i++) {
    string_partial *s = sized_at(partials, size, rows->entry[i]);
    string_copy *copy = &copies[rows->entry[i]];
    if (!s->when || (copy->data && s->data == copy->data)) continue;
    if (!memory_grow((void **)&copy->data, &copy->capacity, s->length + 1, 1)) return false;
    if (s->length) memcpy(copy->data, s->data, (size_t)s->length);
    s->data = copy->data;
  }
  return true;
}

static inline int64_t length(const void *partials, size_t size, int64_t n) {
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) total += ((const string_partial *)sized_in(partials, size, i))->length;
  return total;
}

static inline uint8_t *pack(void *partials, size_t size, int64_t n, uint8_t *to) {
  for (int64_t i = 0; i < n; i++) {
    string_partial *s = sized_at(partials, size, i);
    if (s->length) memcpy(to, s->data, (size_t)s->length);
    s->data = to;
    to += s->length;
  }
  return to;
}

static bool string_settle(void *partials, string_copy *copies, const row_entries *rows) {
  return settle(partials, sizeof(string_partial), copies, rows);
}

static int64_t string_length(const void *partials, int64_t n) { return length(partials, sizeof(string_partial), n); }

static uint8_t *string_pack(void *partials, int64_t n, uint8_t *to) {
  return pack(partials, sizeof(string_partial), n, to);
}

static inline bool first_better(const string_partial *a, const string_partial *b) {
  return a->when - 1 < b->when - 1 || (a->when == b->when && a->input < b->input);
}

static inline bool last_better(const string_partial *a, const string_partial *b) {
  return a->when > b->when || (a->when == b->when && a->input > b->input);
}

static inline bool min_better(const string_partial *a, const string_partial *b) {
  return a->when && (!b->when || bytes_compare(partial_string(a), partial_string(b)) < 0);
}

static inline bool max_better(const string_partial *a, const string_partial *b) {
  return a->when && (!b->when || bytes_compare(partial_string(a), partial_string(b)) > 0);
}

BETTER_OF(min, string_partial)
BETTER_OF(max, string_partial)
BETTER_OF(first, string_partial)

STACKED(min, string_partial)
STACKED(max, string_partial)
STACKED(first, string_partial)
NEWEST(last, string_partial)

static const string_partial *string_total(const aggregate *a, const partial_totals *t, uint32_t k) {
  if (a->kernel->placed) return a->kernel->greatest ? last_total(t, k) : first_total(t, k);
  return a->kernel->greatest ? max_total(t, k) : min_total(t, k);
}

/* As result number i. False when out of memory. */
static inline bool put_total(const partial_results *r, int64_t i, const string_partial *s) {
  uint8_t *space = out_put_space_at(r->rows, r->to, i, s->length);
  if (!space || (!s->when && !out_put_null_at(r->rows, r->to, i))) return false;
  if (s->length) memcpy(space, s->data, (size_t)s->length);
  return true;
}

static ps_code string_finish_many(const partial_results *r) {
  for (int64_t i = 0; i < r->keys->n; i++) {
    if (!put_total(r, i, string_total(r->a, r->t, r->keys->keys[i]))) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static inline void save_total(const aggregate *a, const string_partial *s, partial_place until, string_state *state) {
  if (!s->when || (a->kernel->placed && !place_is_within(s->when, s->input, until))) return;
  *state = (string_state){(uint8_t *)(uintptr_t)s->data, s->length, .any = true};
}

static void string_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                        void *state) {
  (void)rows;
  save_total(a, string_total(a, t, k), until, state);
}

static void string_load(const aggregate *a, const void *state, partial_place place, void *partial) {
  (void)a;
  const string_state *s = state;
  if (s->any) *(string_partial *)partial = (string_partial){place.when, place.input, s->data, s->length};
}

/* ---- folds: the string, or null; first and last: and its place ---- */

typedef struct {
  row_place place; /* min, max: `when` says whether there is one */
  int64_t at, length, capacity;
} string_entry;

_Static_assert(offsetof(string_entry, place) == 0, "place_export relies on it");

static uint8_t *entry_data(const kernel_store *store, const string_entry *s) { return store->strings + s->at; }

/* Gives the entry a copy. A larger string abandons the old place; sizes double, so waste never exceeds live bytes. */
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

/* A string takes part, whose place matters to first and last alone. PS_TWICE: it was there. */
static ps_code entry_take(const kernel_target *t, string_entry *s, bytes x, const row_place *place) {
  const kernel *k = t->a->kernel;
  if (k->placed) {
    place_outcome outcome = place_compete(&s->place, place, k->greatest);
    if (outcome == PLACE_TWICE) return PS_TWICE;
    if (outcome == PLACE_KEPT) return PS_OK;
  } else {
    if (s->place.when && !replaces(k, x, (bytes){entry_data(t->store, s), s->length})) return PS_OK;
    s->place.when = 1;
  }
  return entry_copy(t->store, s, x) ? PS_OK : PS_NO_MEMORY;
}

static ps_code entry_fold(const kernel_target *t, const counted_rows *c) {
  string_entry *states = t->states;
  assert(c->values);
  for (int64_t i = 0; i < c->n; i++) {
    int64_t at = counted_at(c, i);
    row_place place = place_of(c->block, at);
    ps_code code = entry_take(t, &states[c->entry[i]], column_bytes(c->values, c->block->row + at), &place);
    if (code == PS_TWICE) return place_twice(t, c, i);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

static bool entry_export(const kernel_output *o) {
  size_t size = o->a->kernel->entry_size;
  for (int64_t i = 0; i < o->n; i++) {
    const string_entry *x = sized_in(o->states, size, output_entry(o, i));
    uint8_t *space = out_put_space_at(o->rows, o->to, i, x->length);
    if (!space || (!x->place.when && !out_put_null_at(o->rows, o->to, i))) return false;
    if (x->length) memcpy(space, entry_data(o->store, x), (size_t)x->length);
  }
  if (o->a->by && !rank_export(o, size, sizeof(string_entry), o->to + 1)) return false;
  return !o->a->kernel->placed || place_export(o, size, o->to + o->a->kernel->columns - 3);
}

static ps_code entry_import(const kernel_target *t, const kernel_input *in) {
  string_entry *states = t->states;
  const column *c = &in->b->columns[in->from];
  bool placed = t->a->kernel->placed;
  for (int64_t i = 0, row = in->row; i < in->n; i++, row++) {
    if (column_is_null(c, row)) continue;
    row_place place = placed ? place_in(in, in->from + 1, row) : (row_place){0};
    ps_code code = entry_take(t, &states[in->entry[i]], column_bytes(c, row), &place);
    if (code == PS_TWICE) return place_twice_in(t, in, row);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

static void entry_gather(const kernel_store *store, const void *states, int64_t n, const uint32_t *place,
                         void *partials) {
  const string_entry *s = states;
  string_partial *to = partials;
  for (int64_t e = 0; e < n; e++) {
    to[place ? place[e] : e] = (string_partial){s[e].place.when, 0, entry_data(store, &s[e]), s[e].length};
  }
}

static inline void keep(const kernel_store *from, kernel_store *to, void *states, size_t size, int64_t n) {
  for (int64_t e = 0; e < n; e++) {
    string_entry *s = sized_at(states, size, e);
    if (s->length) memcpy(to->strings + to->length, entry_data(from, s), (size_t)s->length);
    s->at = to->length;
    to->length += s->capacity;
    to->in_use += s->capacity;
  }
}

static void entries_keep(const kernel_store *from, kernel_store *to, void *states, int64_t n) {
  keep(from, to, states, sizeof(string_entry), n);
}

/* ---- arg_min, arg_max: windows ---- */

typedef struct {
  string_state string;
  uint64_t word;
} arg_state;

static bool arg_add(const aggregate *a, void *state, const column *c, int64_t row) {
  arg_state *s = state;
  uint64_t word = rank_of_row(a, c, row);
  if (s->string.any && word >= s->word) return true;
  if (!string_set(&s->string, column_bytes(c, row))) return false;
  s->word = word;
  return true;
}

static bool arg_write(const aggregate *a, const void *state, byte_buffer *to) {
  const arg_state *s = state;
  return string_write(a, &s->string, to) && rank_write(a, s->word, s->string.any, to);
}

static void arg_read(const aggregate *a, void *state, state_reader *from) {
  arg_state *s = state;
  string_read(a, &s->string, from);
  s->word = rank_read(a, s->string.any, from);
}

/* ---- slices ---- */

typedef struct {
  string_partial string;
  uint64_t word;
} arg_partial;

static inline rank arg_rank(const arg_partial *s) { return (rank){s->word, s->string.when, s->string.input}; }

static inline bool arg_better(const arg_partial *a, const arg_partial *b) {
  return rank_better(arg_rank(a), arg_rank(b));
}

BETTER_OF(arg, arg_partial)
STACKED(arg, arg_partial)

static ps_code arg_fold(const kernel_target *t, const counted_rows *c) {
  arg_partial *states = t->states;
  const row_block *k = c->block;
  uint64_t flip = rank_flip(t->a);
  assert(c->values && c->by);
  for (int64_t i = 0; i < c->n; i++) {
    int64_t at = counted_at(c, i);
    arg_partial *s = &states[c->entry[i]];
    uint64_t word = rank_of(c->by[i], t->a->by_type, flip);
    if (s->string.when && word >= s->word) continue;
    bytes x = column_bytes(c->values, k->row + at);
    *s = (arg_partial){{(uint64_t)k->ts[at] + 1, k->input, x.data, x.length}, word};
  }
  return PS_OK;
}

static bool arg_settle(void *partials, string_copy *copies, const row_entries *rows) {
  return settle(partials, sizeof(arg_partial), copies, rows);
}

static int64_t arg_length(const void *partials, int64_t n) { return length(partials, sizeof(arg_partial), n); }

static uint8_t *arg_pack(void *partials, int64_t n, uint8_t *to) { return pack(partials, sizeof(arg_partial), n, to); }

static ps_code arg_finish_many(const partial_results *r) {
  for (int64_t i = 0; i < r->keys->n; i++) {
    if (!put_total(r, i, &arg_total(r->t, r->keys->keys[i])->string)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static void arg_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                     void *state) {
  (void)rows;
  arg_state *s = state;
  const arg_partial *from = arg_total(t, k);
  save_total(a, &from->string, until, &s->string);
  if (s->string.any) s->word = from->word;
}

static void arg_load(const aggregate *a, const void *state, partial_place place, void *partial) {
  arg_partial *to = partial;
  string_load(a, state, place, &to->string);
  to->word = ((const arg_state *)state)->word;
}

/* ---- folds: the string, or null, the second column's value, and the place ---- */

typedef struct {
  string_entry string;
  uint64_t word;
} arg_entry;

_Static_assert(offsetof(arg_entry, word) == sizeof(string_entry), "entry_export relies on it");

/* The string of a row that was found to win or not; PS_TWICE: the row was there. */
static ps_code arg_take(const kernel_target *t, arg_entry *s, uint64_t word, bytes x, const row_place *place) {
  place_outcome outcome = rank_compete(&s->string.place, &s->word, place, word);
  if (outcome == PLACE_TWICE) return PS_TWICE;
  return outcome == PLACE_KEPT || entry_copy(t->store, &s->string, x) ? PS_OK : PS_NO_MEMORY;
}

static ps_code arg_fold_entries(const kernel_target *t, const counted_rows *c) {
  arg_entry *states = t->states;
  uint64_t flip = rank_flip(t->a);
  assert(c->values && c->by);
  for (int64_t i = 0; i < c->n; i++) {
    int64_t at = counted_at(c, i);
    row_place place = place_of(c->block, at);
    uint64_t word = rank_of(c->by[i], t->a->by_type, flip);
    ps_code code = arg_take(t, &states[c->entry[i]], word, column_bytes(c->values, c->block->row + at), &place);
    if (code == PS_TWICE) return place_twice(t, c, i);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

static ps_code arg_import(const kernel_target *t, const kernel_input *in) {
  arg_entry *states = t->states;
  const column *c = &in->b->columns[in->from];
  for (int64_t i = 0, row = in->row; i < in->n; i++, row++) {
    if (column_is_null(c, row)) continue;
    row_place place = place_in(in, in->from + 2, row);
    ps_code code = arg_take(t, &states[in->entry[i]], rank_in(t->a, in, row), column_bytes(c, row), &place);
    if (code == PS_TWICE) return place_twice_in(t, in, row);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

static void arg_gather(const kernel_store *store, const void *states, int64_t n, const uint32_t *place,
                       void *partials) {
  const arg_entry *s = states;
  arg_partial *to = partials;
  for (int64_t e = 0; e < n; e++) {
    const string_entry *x = &s[e].string;
    to[place ? place[e] : e] = (arg_partial){{x->place.when, 0, entry_data(store, x), x->length}, s[e].word};
  }
}

static void arg_keep(const kernel_store *from, kernel_store *to, void *states, int64_t n) {
  keep(from, to, states, sizeof(arg_entry), n);
}

#define EITHER \
  .reserve = string_reserve, .drop = string_drop, .finish = string_finish, .is_bytes = true, .export = entry_export

#define STRINGS                                                                                                    \
  EITHER, .state_size = sizeof(string_state), .add = string_add, .write = string_write, .read = string_read,       \
      .size = sizeof(string_partial), .fold = string_fold, .finish_many = string_finish_many, .save = string_save, \
      .load = string_load, .settle = string_settle, .length = string_length, .pack = string_pack,                  \
      .entry_size = sizeof(string_entry), .fold_entries = entry_fold, .check = kernel_check_values,                \
      .import = entry_import, .gather = entry_gather, .entries_keep = entries_keep

#define EXTREME .combine = string_combine, .columns = 1, .types = {PS_TYPES}
#define PLACED .placed = true, .columns = 4, .types = {PS_TYPES, PS_I64, PS_I64, PS_I64}

#define ARG                                                                                                            \
  EITHER, .state_size = sizeof(arg_state), .add = arg_add, .write = arg_write, .read = arg_read,                       \
      .size = sizeof(arg_partial), .fold = arg_fold, .finish_many = arg_finish_many, .save = arg_save,                 \
      .load = arg_load, .settle = arg_settle, .length = arg_length, .pack = arg_pack, .entry_size = sizeof(arg_entry), \
      .fold_entries = arg_fold_entries, .check = rank_check, .import = arg_import, .gather = arg_gather,               \
      .entries_keep = arg_keep, STACKED_BY(arg), .placed = true, .columns = 5,                                         \
      .types = {PS_TYPES, PS_TYPES, PS_I64, PS_I64, PS_I64}

const kernel kernel_min_bytes = {STRINGS, STACKED_BY(min), EXTREME};
const kernel kernel_max_bytes = {STRINGS, STACKED_BY(max), EXTREME, .greatest = true};
const kernel kernel_first_bytes = {STRINGS, STACKED_BY(first), PLACED};
const kernel kernel_last_bytes = {STRINGS, NEWEST_BY(last), PLACED, .greatest = true};
const kernel kernel_arg_min_bytes = {ARG};
const kernel kernel_arg_max_bytes = {ARG, .greatest = true};
