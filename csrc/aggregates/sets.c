/*
 * sets.c - n_unique, median, quantile, approx_quantile, top_k, bottom_k, histogram: see sets.h.
 *
 * States, partials and entries are alike: a multiset. As bytes, in snapshots and partials: for each word, in ascending
 * order, what it is above the one before (the first: above 0) and its count, each in groups of 7 bits, lowest first, the
 * last one without the 8th bit. There is one way to write a set, and nothing else is taken.
 */
#include "aggregates/sets.h"

#include "aggregates/partial.h"
#include "aggregates/state_bytes.h"

#define GROUPS 10 /* of 7 bits, in a word */

ps_set *set_new(const ps_set *from) {
  size_t edges = (size_t)from->edges * sizeof *from->edge;
  ps_set *s = memory_resize(NULL, sizeof *s + edges);
  if (!s) return NULL;
  *s = *from;
  s->edge = (uint64_t *)(s + 1);
  if (edges) memcpy(s + 1, from->edge, edges);
  return s;
}

void set_free(ps_set *s) { memory_free(s); }

/* ---- as bytes ---- */

static inline int64_t groups_of(uint64_t x) { return x ? (70 - __builtin_clzll(x)) / 7 : 1; }

static inline uint8_t *put_groups(uint8_t *to, uint64_t x) {
  for (; x >= 128; x >>= 7) *to++ = (uint8_t)(x | 128);
  *to++ = (uint8_t)x;
  return to;
}

/* False: the bytes end too early, or are not the shortest for their number. */
static inline bool get_groups(bytes *from, uint64_t *x) {
  *x = 0;
  for (int i = 0; i < GROUPS && i < from->length; i++) {
    uint8_t group = from->data[i];
    *x |= (uint64_t)(group & 127) << (7 * i);
    if (group & 128) continue;
    from->data += i + 1;
    from->length -= i + 1;
    return i == 0 || (group > 0 && (i < GROUPS - 1 || group == 1));
  }
  return false;
}

static int64_t length_of(const multiset *m) {
  uint64_t last = 0;
  int64_t length = 0;
  for (int32_t r = 0; r < multiset_runs(m); r++) {
    multiset_run run = multiset_run_at(m, r);
    for (int64_t i = 0; i < run.n; i++) {
      length += groups_of(run.at[i].word - last) + groups_of((uint64_t)run.at[i].count);
      last = run.at[i].word;
    }
  }
  return length;
}

static void put_set(uint8_t *to, const multiset *m) {
  uint64_t last = 0;
  for (int32_t r = 0; r < multiset_runs(m); r++) {
    multiset_run run = multiset_run_at(m, r);
    for (int64_t i = 0; i < run.n; i++) {
      to = put_groups(put_groups(to, run.at[i].word - last), (uint64_t)run.at[i].count);
      last = run.at[i].word;
    }
  }
}

/* Reads words one after the other. */
typedef struct {
  bytes rest;
  uint64_t last;
  bool any;
} set_reader;

/* False: these are not the bytes of any set. */
static bool get_word(set_reader *r, counted_word *to) {
  uint64_t more, count;
  if (!get_groups(&r->rest, &more) || !get_groups(&r->rest, &count)) return false;
  to->word = r->last + more;
  to->count = (int64_t)count;
  bool ascends = !r->any || to->word > r->last;
  r->last = to->word;
  r->any = true;
  return ascends && to->count > 0;
}

/* Whether a value of the aggregate's column has this word. */
typedef bool (*word_check)(const aggregate *a, uint64_t word);

/* Whether these are the bytes of a set of n values. */
static bool set_possible(const aggregate *a, bytes x, int64_t n, word_check fits) {
  set_reader r = {.rest = x};
  counted_word next;
  while (r.rest.length > 0) {
    if (!get_word(&r, &next) || !fits(a, next.word) || next.count > n) return false;
    n -= next.count;
  }
  return n == 0;
}

/* Adds a set of which the bytes were checked. */
static bool add_set(multiset *m, bytes x) {
  set_reader r = {.rest = x};
  counted_word next = {0};
  while (r.rest.length > 0) {
    bool known = get_word(&r, &next);
    assert(known && "set_possible has seen it");
    (void)known;
    if (!multiset_insert(m, next.word, next.count)) return false;
  }
  return true;
}

static bool key_fits(const aggregate *a, uint64_t word) {
  uint64_t value = value_unordered(word, a->type);
  return value_in_range(value, a->type) && key_word(a, value) == word;
}

static bool ordered_fits(const aggregate *a, uint64_t word) {
  uint64_t value = value_unordered(word, a->type);
  return value_in_range(value, a->type) && ordered_word(a, value) == word;
}

static bool bucket_fits(const aggregate *a, uint64_t word) {
  if (word == BUCKET_NAN) return type_is_float(a->type);
  uint64_t bucket = word < BUCKET_ZERO ? BUCKET_ZERO - word : word - BUCKET_ZERO;
  if (bucket == 0) return true;
  return bucket >= UINT64_C(1) << a->set->bits && bucket <= bucket_infinite(a->set->bits);
}

static bool bin_fits(const aggregate *a, uint64_t word) { return word <= (uint64_t)a->set->edges; }

/* ---- a window's state ---- */

static void set_drop(void *state) { multiset_clear(state); }

static bool set_write(const aggregate *a, const void *state, byte_buffer *to) {
  (void)a;
  const multiset *m = state;
  int64_t length = length_of(m), at = to->length + 16;
  if (!state_put_word(to, (uint64_t)m->values) || !state_put_word(to, (uint64_t)length)) return false;
  if (!memory_grow((void **)&to->data, &to->capacity, at + length, 1)) return false;
  put_set(to->data + at, m);
  to->length += length;
  return true;
}

static void read_set(const aggregate *a, multiset *m, state_reader *from, word_check fits) {
  int64_t n = state_get_count(from);
  uint64_t length = state_get_word(from);
  state_require(from, length <= (uint64_t)from->left);
  if (from->code != PS_OK) return;
  bytes x = {from->at, (int64_t)length};
  from->at += length;
  from->left -= (int64_t)length;
  bool ok = set_possible(a, x, n, fits);
  state_require(from, ok);
  if (ok && !add_set(m, x)) from->code = PS_NO_MEMORY;
}

/* ---- slices ---- */

static bool set_enter(const partial_totals *t, const partial_list *list) {
  multiset *total = t->total;
  const multiset *from = list->partials;
  for (int64_t i = 0, n = list->n; i < n; i++) {
    if (!multiset_plus(&total[list->keys[i]], &from[i])) return false;
  }
  return true;
}

static bool set_leave(const partial_totals *t, const partial_list *list) {
  multiset *total = t->total;
  const multiset *from = list->partials;
  for (int64_t i = 0, n = list->n; i < n; i++) multiset_minus(&total[list->keys[i]], &from[i]);
  return true;
}

static bool set_holds(const void *partials, int64_t n) {
  const multiset *m = partials;
  bool any = false;
  for (int64_t i = 0; i < n; i++) any |= m[i].blocks > 0;
  return any;
}

static void set_drop_many(void *partials, int64_t n) {
  multiset *m = partials;
  for (int64_t i = 0; i < n; i++) {
    if (m[i].blocks) multiset_clear(&m[i]);
  }
}

/* ---- folds: how many values, and the set as bytes ---- */

static bool set_export(const kernel_output *o) {
  const multiset *m = o->states;
  uint64_t *n = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; n && i < o->n; i++) {
    const multiset *x = &m[output_entry(o, i)];
    n[i] = (uint64_t)x->values;
    uint8_t *space = out_put_space_at(o->rows, o->to + 1, i, length_of(x));
    if (!space) return false;
    put_set(space, x);
  }
  return n != NULL;
}

static bytes set_bytes(const kernel_input *in, int64_t row) { return column_bytes(&in->b->columns[in->from + 1], row); }

static bool check_sets(const aggregate *a, const kernel_input *in, word_check fits) {
  if (!kernel_check_counts(a, in)) return false;
  for (int64_t row = 0; row < in->n; row++) {
    bool ok = set_possible(a, set_bytes(in, row), input_integer(in, in->from, row), fits);
    if (!ok) return kernel_refuse(in, row, PS_BAD_SET);
  }
  return true;
}

static ps_code set_import(const kernel_target *t, const kernel_input *in) {
  multiset *states = t->states;
  for (int64_t i = 0; i < in->n; i++) {
    multiset *m = &states[in->entry[i]];
    int64_t before = m->held;
    bool ok = add_set(m, set_bytes(in, in->row + i));
    t->store->wide += m->held - before;
    if (!ok) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static void set_entries_drop(kernel_store *store, void *states, int64_t n) {
  multiset *m = states;
  for (int64_t i = 0; store->wide && i < n; i++) {
    store->wide -= m[i].held;
    multiset_clear(&m[i]);
  }
}

/* ---- the loops, one of each for every kind of word ---- */

#define LOOPS(kind)                                                                           \
  static bool kind##_add(const aggregate *a, void *state, const column *c, int64_t row) {     \
    return multiset_add(state, kind##_word(a, column_bits(c, row)));                          \
  }                                                                                           \
  static bool kind##_reserve(const aggregate *a, void *state, const column *c, int64_t row) { \
    return multiset_reserve(state, kind##_word(a, column_bits(c, row)));                      \
  }                                                                                           \
  static void kind##_read(const aggregate *a, void *state, state_reader *from) {              \
    read_set(a, state, from, kind##_fits);                                                    \
  }                                                                                           \
  static ps_code kind##_fold(const kernel_target *t, const counted_rows *c) {                 \
    multiset *states = t->states;                                                             \
    assert(c->bits);                                                                          \
    for (int64_t i = 0, n = c->n; i < n; i++) {                                               \
      multiset *m = &states[c->entry[i]];                                                     \
      int64_t before = m->held;                                                               \
      bool ok = multiset_add(m, kind##_word(t->a, c->bits[i]));                               \
      t->store->wide += m->held - before;                                                     \
      if (!ok) return PS_NO_MEMORY;                                                           \
    }                                                                                         \
    return PS_OK;                                                                             \
  }                                                                                           \
  static bool kind##_check(const aggregate *a, const kernel_input *in) { return check_sets(a, in, kind##_fits); }

LOOPS(key)
LOOPS(ordered)
LOOPS(bucket)
LOOPS(bin)

#define SET(kind)                                                                                               \
  .state_size = sizeof(multiset), .add = kind##_add, .combine = kernel_combine, .reserve = kind##_reserve,      \
  .drop = set_drop, .finish = kernel_finish, .write = set_write, .read = kind##_read, .size = sizeof(multiset), \
  .owns = true, .fold = kind##_fold, .enter = set_enter, .leave = set_leave, .holds = set_holds,                \
  .drop_many = set_drop_many, .entry_size = sizeof(multiset), .fold_entries = kind##_fold, .columns = 2,        \
  .types = {PS_I64, PS_BYTES64}, .export = set_export, .check = kind##_check, .import = set_import,             \
  .entries_drop = set_entries_drop

const kernel kernel_n_unique = {SET(key), .finish_many = distinct_finish_many};
const kernel kernel_quantile = {SET(ordered), .finish_many = quantile_finish_many};
const kernel kernel_approx_quantile = {SET(bucket), .finish_many = bucket_finish_many};
const kernel kernel_bottom_k = {SET(ordered), .finish_many = best_finish_many, .lists = true};
const kernel kernel_top_k = {SET(ordered), .finish_many = best_finish_many, .lists = true, .greatest = true};
const kernel kernel_histogram = {SET(bin), .finish_many = bins_finish_many, .lists = true};
