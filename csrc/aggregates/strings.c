/*
 * strings.c - min, max, first, last of strings.
 *
 * Who owns the bytes differs: a window's state has a copy, since the batch goes before the window does; a partial of a
 * slice refers to the batch, to a copy of the slice's or to the block that the slice was packed in; an entry of a fold
 * has a place in the fold's store, by offset, which doubles when it is too small.
 */
#include "aggregates/place.h"
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

static bool string_reserve(void *state, const column *c, int64_t row) {
  string_state *s = state;
  return memory_grow((void **)&s->data, &s->capacity, column_bytes(c, row).length + 1, 1);
}

static bool string_add(const aggregate *a, void *state, const column *c, int64_t row) {
  string_state *s = state;
  bytes x = column_bytes(c, row);
  if (s->any && !replaces(a->kernel, x, state_string(s))) return true;
  if (!string_reserve(s, c, row)) return false;
  if (x.length) memcpy(s->data, x.data, (size_t)x.length);
  s->length = x.length;
  s->any = true;
  return true;
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
  if (!memory_grow((void **)&s->data, &s->capacity, (int64_t)length + 1, 1)) {
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

static bool string_settle(void *partials, string_copy *copies, const row_entries *rows) {
  string_partial *states = partials;
  for (int64_t i = 0; i < rows->n; i++) {
    string_partial *s = &states[rows->entry[i]];
    string_copy *copy = &copies[rows->entry[i]];
    if (!s->when || (copy->data && s->data == copy->data)) continue;
    if (!memory_grow((void **)&copy->data, &copy->capacity, s->length + 1, 1)) return false;
    if (s->length) memcpy(copy->data, s->data, (size_t)s->length);
    s->data = copy->data;
  }
  return true;
}

static int64_t string_length(const void *partials, int64_t n) {
  const string_partial *states = partials;
  int64_t total = 0;
  for (int64_t i = 0; i < n; i++) total += states[i].length;
  return total;
}

static uint8_t *string_pack(void *partials, int64_t n, uint8_t *to) {
  string_partial *states = partials;
  for (int64_t i = 0; i < n; i++) {
    if (states[i].length) memcpy(to, states[i].data, (size_t)states[i].length);
    states[i].data = to;
    to += states[i].length;
  }
  return to;
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

static ps_code string_finish_many(const partial_results *r) {
  for (int64_t i = 0; i < r->keys->n; i++) {
    const string_partial *s = string_total(r->a, r->t, r->keys->keys[i]);
    uint8_t *space = out_put_space_at(r->rows, r->to, i, s->length);
    if (!space || (!s->when && !out_put_null_at(r->rows, r->to, i))) return PS_NO_MEMORY;
    if (s->length) memcpy(space, s->data, (size_t)s->length);
  }
  return PS_OK;
}

static void string_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                        void *state) {
  (void)rows;
  const string_partial *s = string_total(a, t, k);
  if (!s->when || (a->kernel->placed && !place_is_within(s->when, s->input, until))) return;
  *(string_state *)state = (string_state){(uint8_t *)(uintptr_t)s->data, s->length, .any = true};
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
static bool entry_copy(kernel_store *store, string_entry *s, bytes x) {
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
  const string_entry *s = o->states;
  for (int64_t i = 0; i < o->n; i++) {
    const string_entry *x = &s[output_entry(o, i)];
    uint8_t *space = out_put_space_at(o->rows, o->to, i, x->length);
    if (!space || (!x->place.when && !out_put_null_at(o->rows, o->to, i))) return false;
    if (x->length) memcpy(space, entry_data(o->store, x), (size_t)x->length);
  }
  return !o->a->kernel->placed || place_export(o, sizeof *s, o->to + 1);
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
  .finish = string_finish, .write = string_write, .read = string_read, .size = sizeof(string_partial),                \
  .is_bytes = true, .fold = string_fold, .finish_many = string_finish_many, .save = string_save, .load = string_load, \
  .settle = string_settle, .length = string_length, .pack = string_pack, .entry_size = sizeof(string_entry),          \
  .fold_entries = entry_fold, .export = entry_export, .check = kernel_check_values, .import = entry_import,           \
  .gather = entry_gather, .entries_keep = entries_keep

#define EXTREME .combine = string_combine, .columns = 1, .types = {PS_TYPES}
#define PLACED .placed = true, .columns = 4, .types = {PS_TYPES, PS_I64, PS_I64, PS_I64}

const kernel kernel_min_bytes = {STRINGS, STACKED_BY(min), EXTREME};
const kernel kernel_max_bytes = {STRINGS, STACKED_BY(max), EXTREME, .greatest = true};
const kernel kernel_first_bytes = {STRINGS, STACKED_BY(first), PLACED};
const kernel kernel_last_bytes = {STRINGS, NEWEST_BY(last), PLACED, .greatest = true};
