/*
 * moments.c - var and std, of integers and of floats; ddof is the aggregate's parameter.
 *
 * States, partials and entries are alike: n, the exact sum of the values and that of their squares (exact_moments.h).
 * So what enters a total can leave it again, and the tables differ only in their results.
 *
 * As bytes, in snapshots and partials: the narrow sum, 16; the narrow words of the squares, 8 each; if there is one,
 * the wide sum (wide_bytes.h); if there are any, the wide limbs of the squares, 8 each. The length tells which are
 * there.
 */
#include "base/exact_deviations.h"
#include "aggregates/partial.h"
#include "aggregates/state_bytes.h"
#include "aggregates/wide_bytes.h"

typedef ps_exact_moments moments;

#define NARROW_BYTES (16 + INT64_C(8) * EXACT_PRODUCT_WORDS)
#define SQUARES_BYTES (INT64_C(8) * EXACT_PRODUCT_LIMBS)
#define MOST_BYTES (NARROW_BYTES + WIDE_BYTES + SQUARES_BYTES)

static exact_unit unit_of(const aggregate *a) { return type_is_float(a->type) ? EXACT_DOUBLES : EXACT_INTEGERS; }

/* ---- as bytes ---- */

static int64_t length_of(const moments *m) {
  return NARROW_BYTES + (m->sum.wide ? WIDE_BYTES : 0) + (m->squares.wide ? SQUARES_BYTES : 0);
}

static uint8_t *put_limbs(uint8_t *to, const uint64_t *limb, int n) {
  for (int i = 0; i < n; i++) to = bytes_put_word(to, limb[i]);
  return to;
}

static const uint8_t *get_limbs(const uint8_t *from, uint64_t *limb, int n) {
  for (int i = 0; i < n; i++, from += 8) limb[i] = bytes_word(from);
  return from;
}

static void put_moments(uint8_t *to, const moments *m) {
  to = bytes_put_int128(to, m->sum.narrow);
  to = put_limbs(to, m->squares.word, EXACT_PRODUCT_WORDS);
  if (m->sum.wide) to = put_wide(to, m->sum.wide);
  if (m->squares.wide) put_limbs(to, m->squares.wide->limb, EXACT_PRODUCT_LIMBS);
}

/* Moments read from bytes, with room for their wide parts. */
typedef struct {
  moments m;
  exact_sum_wide sum;
  exact_product_wide squares;
} moments_got;

/* False: these are not the bytes of any moments. */
static bool get_moments(moments_got *to, bytes x, int64_t n) {
  int64_t more = x.length - NARROW_BYTES;
  bool both = more == WIDE_BYTES + SQUARES_BYTES, sum = both || more == WIDE_BYTES,
       squares = both || more == SQUARES_BYTES;
  if (more != 0 && !sum && !squares) return false;
  to->m = (moments){.sum = {.narrow = bytes_int128(x.data), .n = n}};
  const uint8_t *at = get_limbs(x.data + 16, to->m.squares.word, EXACT_PRODUCT_WORDS);
  if (sum) {
    to->sum = wide_at(at);
    to->m.sum.wide = &to->sum;
    at += WIDE_BYTES;
  }
  if (squares) {
    get_limbs(at, to->squares.limb, EXACT_PRODUCT_LIMBS);
    to->m.squares.wide = &to->squares;
  }
  return true;
}

/* ---- a window's state ---- */

static bool integer_add(const aggregate *a, void *state, const column *c, int64_t row) {
  exact_moments_add_integer(state, column_bits(c, row), type_is_unsigned(a->type));
  return true;
}

static bool float_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  return exact_moments_add(state, bits_double(column_bits(c, row)));
}

static bool float_reserve(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  return exact_moments_reserve(state, bits_double(column_bits(c, row)));
}

static void float_drop(void *state) { exact_moments_clear(state); }

static bool moments_write(const aggregate *a, const void *state, byte_buffer *to) {
  (void)a;
  const moments *m = state;
  uint8_t x[MOST_BYTES];
  put_moments(x, m);
  return state_put_word(to, (uint64_t)m->sum.n) && state_put_flag(to, m->sum.wide != NULL) &&
         state_put_flag(to, m->squares.wide != NULL) && state_put(to, x, length_of(m));
}

static void moments_read(const aggregate *a, void *state, state_reader *from) {
  uint8_t x[MOST_BYTES];
  moments_got got;
  int64_t n = state_get_count(from), length = NARROW_BYTES;
  if (state_get_flag(from)) length += WIDE_BYTES;
  if (state_get_flag(from)) length += SQUARES_BYTES;
  if (!state_get(from, x, length)) return;
  bool ok = get_moments(&got, (bytes){x, length}, n) && exact_moments_possible(&got.m, unit_of(a));
  state_require(from, ok);
  if (ok && !exact_moments_combine(state, &got.m, LIMBS_PLUS)) from->code = PS_NO_MEMORY;
}

/* ---- slices ---- */

static inline ps_code integer_fold_as(moments *states, const counted_rows *c, bool is_unsigned) {
  for (int64_t i = 0, n = c->n; i < n; i++) exact_moments_add_integer(&states[c->entry[i]], c->bits[i], is_unsigned);
  return PS_OK;
}

static ps_code integer_fold(const kernel_target *t, const counted_rows *c) {
  assert(c->bits);
  return type_is_unsigned(t->a->type) ? integer_fold_as(t->states, c, true) : integer_fold_as(t->states, c, false);
}

/* Bytes that moments own. */
static int64_t held_by(const moments *m) {
  return (m->sum.wide ? (int64_t)sizeof *m->sum.wide : 0) + (m->squares.wide ? (int64_t)sizeof *m->squares.wide : 0);
}

/* A value that the narrow sums do not take. */
__attribute__((noinline)) static bool fold_rare(kernel_store *store, moments *m, uint64_t bits) {
  int64_t before = held_by(m);
  if (!exact_moments_add_rare(m, bits_double(bits))) return false;
  store->wide += held_by(m) - before;
  return true;
}

static ps_code float_fold(const kernel_target *t, const counted_rows *c) {
  moments *states = t->states;
  assert(c->bits);
  for (int64_t i = 0, n = c->n; i < n; i++) {
    moments *m = &states[c->entry[i]];
    uint64_t x = c->bits[i];
    if (__builtin_expect(!exact_moments_add_narrow(m, x), 0) && !fold_rare(t->store, m, x)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static bool moments_enter(const partial_totals *t, const partial_list *list) {
  moments *total = t->total;
  const moments *from = list->partials;
  for (int64_t i = 0, n = list->n; i < n; i++) {
    if (!exact_moments_combine(&total[list->keys[i]], &from[i], LIMBS_PLUS)) return false;
  }
  return true;
}

static bool moments_leave(const partial_totals *t, const partial_list *list) {
  moments *total = t->total;
  const moments *from = list->partials;
  for (int64_t i = 0, n = list->n; i < n; i++) {
    moments *to = &total[list->keys[i]];
    if (!exact_moments_combine(to, &from[i], LIMBS_MINUS)) return false;
    if (__builtin_expect(!exact_moments_are_narrow(to), 0) && to->sum.n == 0) exact_moments_clear(to);
  }
  return true;
}

/* In blocks. Moments without a result are replaced by `none`, whose result is 0. */
static ps_code moments_finish_many(const partial_results *r) {
  const moments *total = r->t->total;
  const uint32_t *keys = r->keys->keys;
  int64_t ddof = r->a->parameter;
  const moments none = {.sum = {.n = ddof + 1}};
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  exact_deviations b;
  exact_deviations_init(&b, unit_of(r->a), ddof, r->a->kernel->root);
  for (int64_t from = 0, n = r->keys->n; from < n; from += EXACT_DEVIATIONS) {
    int64_t count = n - from < EXACT_DEVIATIONS ? n - from : EXACT_DEVIATIONS;
    for (int64_t i = 0; i < count; i++) {
      const moments *m = &total[keys[from + i]];
      bool null = m->sum.n <= ddof;
      if (__builtin_expect(null, 0) && !out_put_null_at(r->rows, r->to, from + i)) return PS_NO_MEMORY;
      exact_deviations_put(&b, i, null ? &none : m);
    }
    exact_deviations_results(&b, count, (double *)(void *)(out + from));
  }
  return PS_OK;
}

static bool float_holds(const void *partials, int64_t n) {
  const moments *m = partials;
  bool any = false;
  for (int64_t i = 0; i < n; i++) any |= !exact_moments_are_narrow(&m[i]);
  return any;
}

static void float_drop_many(void *partials, int64_t n) {
  moments *m = partials;
  for (int64_t i = 0; i < n; i++) {
    if (!exact_moments_are_narrow(&m[i])) exact_moments_clear(&m[i]);
  }
}

/* ---- folds: n, and the moments as bytes ---- */

static bool moments_export(const kernel_output *o) {
  const moments *m = o->states;
  uint64_t *n = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; n && i < o->n; i++) {
    const moments *x = &m[output_entry(o, i)];
    n[i] = (uint64_t)x->sum.n;
    uint8_t *space = out_put_space_at(o->rows, o->to + 1, i, length_of(x));
    if (!space) return false;
    put_moments(space, x);
  }
  return n != NULL;
}

static bool moments_at(moments_got *to, const kernel_input *in, int64_t row) {
  return get_moments(to, column_bytes(&in->b->columns[in->from + 1], row), input_integer(in, in->from, row));
}

static bool moments_check(const aggregate *a, const kernel_input *in) {
  moments_got got;
  if (!kernel_check_counts(a, in)) return false;
  for (int64_t row = 0; row < in->n; row++) {
    bool ok = moments_at(&got, in, row) && exact_moments_possible(&got.m, unit_of(a));
    if (!ok) return kernel_refuse(in, row, PS_BAD_MOMENTS);
  }
  return true;
}

static ps_code moments_import(const kernel_target *t, const kernel_input *in) {
  moments *states = t->states;
  moments_got got;
  for (int64_t i = 0; i < in->n; i++) {
    moments *m = &states[in->entry[i]];
    int64_t before = held_by(m);
    bool known = moments_at(&got, in, in->row + i);
    assert(known && "moments_check has seen it");
    (void)known;
    if (!exact_moments_combine(m, &got.m, LIMBS_PLUS)) return PS_NO_MEMORY;
    t->store->wide += held_by(m) - before;
  }
  return PS_OK;
}

static void float_entries_drop(kernel_store *store, void *states, int64_t n) {
  moments *m = states;
  for (int64_t i = 0; store->wide && i < n; i++) {
    store->wide -= held_by(&m[i]);
    exact_moments_clear(&m[i]);
  }
}

/* ---- the tables ---- */

#define MOMENTS(type)                                                                                                 \
  .state_size = sizeof(moments), .add = type##_add, .combine = kernel_combine, .finish = kernel_finish,               \
  .write = moments_write, .read = moments_read, .size = sizeof(moments), .fold = type##_fold, .enter = moments_enter, \
  .leave = moments_leave, .finish_many = moments_finish_many, .entry_size = sizeof(moments),                          \
  .fold_entries = type##_fold, .columns = 2, .types = {PS_I64, PS_BYTES32}, .export = moments_export,                 \
  .check = moments_check, .import = moments_import

#define FLOAT_MOMENTS                                                                               \
  MOMENTS(float), .reserve = float_reserve, .drop = float_drop, .owns = true, .holds = float_holds, \
      .drop_many = float_drop_many, .entries_drop = float_entries_drop

const kernel kernel_var_integers = {MOMENTS(integer)};
const kernel kernel_std_integers = {MOMENTS(integer), .root = true};
const kernel kernel_var_floats = {FLOAT_MOMENTS};
const kernel kernel_std_floats = {FLOAT_MOMENTS, .root = true};
