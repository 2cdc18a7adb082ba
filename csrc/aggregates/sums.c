/*
 * sums.c - sum and avg, of integers and of floats.
 *
 * States, partials and entries are alike: an exact sum (exact_sum.h) and n. So whatever enters a total can leave it
 * again. Integers count units of 1 in the narrow sum alone: its 128 bits hold 2^63 values of 64 bits, so only the final
 * result can be too large.
 */
#include "base/exact_means.h"
#include "base/exact_sum.h"
#include "base/limbs.h"
#include "aggregates/partial.h"
#include "aggregates/shared_kinds.h"
#include "aggregates/state_bytes.h"
#include "aggregates/wide_bytes.h"

typedef ps_exact_sum state;

#define NARROW_BYTES 16 /* of sums that travel */

static inline int128 integer_of(uint64_t bits, bool is_unsigned) {
  return is_unsigned ? (int128)bits : (int128)(int64_t)bits;
}

/* ---- a window's state ---- */

static bool integer_add(const aggregate *a, void *to, const column *c, int64_t row) {
  state *s = to;
  s->narrow += integer_of(column_bits(c, row), type_is_unsigned(a->type));
  s->n++;
  return true;
}

static bool float_add(const aggregate *a, void *to, const column *c, int64_t row) {
  (void)a;
  state *s = to;
  if (!exact_sum_add(s, bits_double(column_bits(c, row)))) return false;
  s->n++;
  return true;
}

static bool float_reserve(const aggregate *a, void *to, const column *c, int64_t row) {
  (void)a;
  return exact_sum_reserve(to, bits_double(column_bits(c, row)));
}

static void float_drop(void *x) { exact_sum_clear(x); }

/* Of integers without the flag. */
static bool sum_write(const aggregate *a, const void *from, byte_buffer *to) {
  const state *s = from;
  uint8_t wide[WIDE_BYTES];
  if (!state_put_int128(to, s->narrow) || !state_put_word(to, (uint64_t)s->n)) return false;
  if (!type_is_float(a->type)) return true;
  if (!state_put_flag(to, s->wide != NULL)) return false;
  if (!s->wide) return true;
  put_wide(wide, s->wide);
  return state_put(to, wide, sizeof wide);
}

static void integer_read(const aggregate *a, void *to, state_reader *from) {
  (void)a;
  state *s = to;
  s->narrow = state_get_int128(from);
  s->n = state_get_count(from);
  int128 most = (int128)s->n << 64; /* every value is below 2^64 */
  state_require(from, -most <= s->narrow && s->narrow <= most);
}

static void float_read(const aggregate *a, void *to, state_reader *from) {
  (void)a;
  state *s = to;
  uint8_t wide[WIDE_BYTES];
  s->narrow = state_get_int128(from);
  s->n = state_get_count(from);
  state_require(from, s->n > 0 || s->narrow == 0);
  if (!state_get_flag(from) || !state_get(from, wide, sizeof wide)) return;
  s->wide = memory_new(sizeof *s->wide);
  if (!s->wide) {
    from->code = PS_NO_MEMORY;
    return;
  }
  *s->wide = wide_at(wide);
  state_count(from, (uint64_t)s->wide->nan);
  state_count(from, (uint64_t)s->wide->plus_inf);
  state_count(from, (uint64_t)s->wide->minus_inf);
}

/* ---- slices ---- */

static ps_code integer_fold(const kernel_target *t, const counted_rows *c) {
  state *states = t->states;
  bool is_unsigned = type_is_unsigned(t->a->type);
  assert(c->bits);
  for (int64_t i = 0; i < c->n; i++) {
    state *s = &states[c->entry[i]];
    s->narrow += integer_of(c->bits[i], is_unsigned);
    s->n++;
  }
  return PS_OK;
}

/* Counts the block of memory if the sum has become wide. */
static void count_wide(kernel_store *store, const state *s, bool before) {
  if (s->wide && !before) store->wide += (int64_t)sizeof *s->wide;
}

/* A value that the narrow sum does not take. */
static bool fold_rare(kernel_store *store, state *s, uint64_t bits) {
  bool wide = s->wide != NULL;
  if (!exact_sum_add_rare(s, bits_double(bits))) return false;
  count_wide(store, s, wide);
  return true;
}

static ps_code float_fold(const kernel_target *t, const counted_rows *c) {
  state *states = t->states;
  assert(c->bits);
  for (int64_t i = 0, n = c->n; i < n; i++) {
    state *s = &states[c->entry[i]];
    uint64_t x = c->bits[i];
    s->n++;
    if (__builtin_expect(!exact_sum_add_narrow(s, x), 0) && !fold_rare(t->store, s, x)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

/* What of a move is known where the loops below are called. */
typedef struct {
  bool leave;    /* or enter */
  bool unfolded; /* one tuple each */
  bool exact;    /* integers: nothing overflows or is wide */
} move_form;

static inline bool move_one(state *to, const state *from, int64_t n, bool leave) {
  int128 sum;
  if (from->wide || (leave ? __builtin_sub_overflow(to->narrow, from->narrow, &sum)
                           : __builtin_add_overflow(to->narrow, from->narrow, &sum))) {
    if (!exact_sum_combine(to, from, leave ? LIMBS_MINUS : LIMBS_PLUS)) return false;
  } else {
    to->narrow = sum;
  }
  to->n += leave ? -n : n;
  if (leave && to->n == 0 && to->wide) exact_sum_clear(to);
  return true;
}

INLINED bool move_plain(state *total, const partial_list *list, move_form form) {
  const uint32_t *keys = list->keys;
  const int128 *from = list->partials;
  const int64_t *rows = list->rows;
  for (int64_t i = 0, n = list->n; i < n; i++) {
    state *to = &total[keys[i]];
    int64_t tuples = form.unfolded ? 1 : rows[i];
    int128 sum;
    bool beyond = form.leave ? __builtin_sub_overflow(to->narrow, from[i], &sum) || to->wide
                             : __builtin_add_overflow(to->narrow, from[i], &sum);
    if (__builtin_expect(!form.exact && beyond, 0)) {
      if (!move_one(to, &(state){.narrow = from[i]}, tuples, form.leave)) return false;
      continue;
    }
    to->narrow = sum;
    to->n += form.leave ? -tuples : tuples;
  }
  return true;
}

INLINED bool move_sums(const partial_totals *t, const partial_list *list, bool leave, bool exact) {
  state *total = t->total;
  const state *from = list->partials;
  if (list->plain && list->rows) return move_plain(total, list, (move_form){leave, false, exact});
  if (list->plain) return move_plain(total, list, (move_form){leave, true, exact});
  for (int64_t i = 0; i < list->n; i++) {
    if (!move_one(&total[list->keys[i]], &from[i], from[i].n, leave)) return false;
  }
  return true;
}

static bool integer_enter(const partial_totals *t, const partial_list *list) { return move_sums(t, list, false, true); }
static bool integer_leave(const partial_totals *t, const partial_list *list) { return move_sums(t, list, true, true); }
static bool float_enter(const partial_totals *t, const partial_list *list) { return move_sums(t, list, false, false); }
static bool float_leave(const partial_totals *t, const partial_list *list) { return move_sums(t, list, true, false); }

static ps_code integer_finish_many(const partial_results *r) {
  const state *total = r->t->total;
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  bool sum = !r->a->kernel->mean;
  for (int64_t i = 0; i < r->keys->n; i++) {
    const state *s = &total[r->keys->keys[i]];
    if (s->n == 0 && !out_put_null_at(r->rows, r->to, i)) return PS_NO_MEMORY;
    if (sum && (s->narrow > INT64_MAX || s->narrow < INT64_MIN)) {
      *r->failed = i;
      return PS_OVERFLOW;
    }
    out[i] = sum || s->n == 0 ? (uint64_t)(int64_t)s->narrow : double_bits(exact_mean(s->narrow, s->n, 0));
  }
  return PS_OK;
}

/* One float result, or null. False: out of memory. */
static bool put_float(const partial_results *r, const state *s, int64_t row, uint64_t *out) {
  *out = s->n ? double_bits(r->a->kernel->mean ? exact_sum_mean(s, s->n) : exact_sum_round(s)) : 0;
  return s->n || out_put_null_at(r->rows, r->to, row);
}

static ps_code sum_finish_many(const partial_results *r) {
  const state *total = r->t->total;
  const uint32_t *keys = r->keys->keys;
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0, n = r->keys->n; i < n; i++) {
    const state *s = &total[keys[i]];
    if (__builtin_expect(s->n > 0 && !s->wide, 1)) {
      out[i] = double_bits(exact_sum_narrow_round(s->narrow));
    } else if (!put_float(r, s, i, &out[i])) {
      return PS_NO_MEMORY;
    }
  }
  return PS_OK;
}

/* In blocks; what a block cannot decide, and the single result of a window, one by one. */
static ps_code mean_finish_many(const partial_results *r) {
  const state *total = r->t->total;
  const uint32_t *keys = r->keys->keys;
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  exact_means_block b;
  for (int64_t from = 0, n = r->keys->n; from < n; from += EXACT_MEANS) {
    int64_t count = n - from < EXACT_MEANS ? n - from : EXACT_MEANS;
    uint64_t unfit = n == 1;
    for (int64_t i = 0; i < count; i++) unfit |= exact_means_put(&b, i, &total[keys[from + i]]);
    if (!unfit) exact_means(&b, count, (double *)(void *)(out + from));
    bool ok = true;
    for (int64_t i = from; unfit && ok && i < from + count; i++) ok = put_float(r, &total[keys[i]], i, &out[i]);
    if (!ok) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static bool sum_is_plain(const void *partials, const int64_t *rows, int64_t n) {
  const state *s = partials;
  bool plain = true;
  for (int64_t i = 0; i < n; i++) plain &= (s[i].n == rows[i]) & (s[i].wide == NULL);
  return plain;
}

static void sum_flatten_plain(const void *partials, int64_t n, int128 *to) {
  const state *s = partials;
  for (int64_t i = 0; i < n; i++) to[i] = s[i].narrow;
}

static bool float_holds(const void *partials, int64_t n) {
  const state *s = partials;
  bool any = false;
  for (int64_t i = 0; i < n; i++) any |= s[i].wide != NULL;
  return any;
}

static void float_drop_many(void *partials, int64_t n) {
  state *s = partials;
  for (int64_t i = 0; i < n; i++) {
    if (s[i].wide) exact_sum_clear(&s[i]);
  }
}

static bool integer_unfold(const aggregate *a, const uint64_t *bits, int64_t n, int128 *to) {
  bool is_unsigned = type_is_unsigned(a->type);
  for (int64_t i = 0; i < n; i++) to[i] = integer_of(bits[i], is_unsigned);
  return true;
}

static bool float_unfold(const aggregate *a, const uint64_t *bits, int64_t n, int128 *to) {
  (void)a;
  bool ok = true;
  for (int64_t i = 0; i < n; i++) {
    bool narrow = exact_sum_units(bits[i], &to[i]);
    if (__builtin_expect(!narrow, 0)) {
      to[i] = 0;
      ok &= bits_are_zero(bits[i]);
    }
  }
  return ok;
}

/* ---- folds: n, and the sum as bytes, narrow and, if it is wide, the rest ---- */

static bool sum_export(const kernel_output *o) {
  const state *s = o->states;
  uint64_t *n = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; n && i < o->n; i++) {
    const state *x = &s[output_entry(o, i)];
    n[i] = (uint64_t)x->n;
    uint8_t *space = out_put_space_at(o->rows, o->to + 1, i, NARROW_BYTES + (x->wide ? WIDE_BYTES : 0));
    if (!space) return false;
    space = bytes_put_int128(space, x->narrow);
    if (x->wide) put_wide(space, x->wide);
  }
  return n != NULL;
}

/* Whether n values of the type can have this sum. */
static bool integer_sum_possible(bytes x, int64_t n, ps_type type) {
  if (x.length != NARROW_BYTES) return false;
  int128 sum = bytes_int128(x.data);
  if (type_is_unsigned(type)) return sum >= 0 && sum <= (int128)n * (int128)UINT64_MAX;
  return sum >= (int128)n * INT64_MIN && sum <= (int128)n * INT64_MAX;
}

static bool float_sum_possible(bytes x, int64_t n) {
  if (x.length != NARROW_BYTES && x.length != NARROW_BYTES + WIDE_BYTES) return false;
  if (n == 0 && (x.length != NARROW_BYTES || bytes_int128(x.data) != 0)) return false;
  if (x.length == NARROW_BYTES) return true;
  exact_sum_wide w = wide_at(x.data + NARROW_BYTES);
  return exact_sum_wide_possible(&w, n);
}

static bool sum_check(const aggregate *a, const kernel_input *in) {
  if (!kernel_check_counts(a, in)) return false;
  for (int64_t row = 0; row < in->n; row++) {
    int64_t n = input_integer(in, in->from, row);
    bytes x = column_bytes(&in->b->columns[in->from + 1], row);
    bool ok = type_is_float(a->type) ? float_sum_possible(x, n) : integer_sum_possible(x, n, a->type);
    if (!ok) return kernel_refuse(in, row, PS_BAD_SUM);
  }
  return true;
}

static ps_code sum_import(const kernel_target *t, const kernel_input *in) {
  state *states = t->states;
  for (int64_t i = 0; i < in->n; i++) {
    state *s = &states[in->entry[i]];
    bool wide = s->wide != NULL;
    bytes x = column_bytes(&in->b->columns[in->from + 1], in->row + i);
    exact_sum_wide other_wide;
    state other = {.narrow = bytes_int128(x.data)};
    if (x.length > NARROW_BYTES) {
      other_wide = wide_at(x.data + NARROW_BYTES);
      other.wide = &other_wide;
    }
    if (!move_one(s, &other, input_integer(in, in->from, in->row + i), false)) return PS_NO_MEMORY;
    count_wide(t->store, s, wide);
  }
  return PS_OK;
}

static void float_entries_drop(kernel_store *store, void *states, int64_t n) {
  state *s = states;
  for (int64_t i = 0; store->wide && i < n; i++) {
    if (!s[i].wide) continue;
    store->wide -= (int64_t)sizeof *s[i].wide;
    exact_sum_clear(&s[i]);
  }
}

/* ---- plain sums, of integers or floats ---- */

bool partial_add_plain(int128 *to, const partial_list *list) {
  const uint32_t *keys = list->keys;
  const int128 *from = list->partials;
  int64_t done = 0, n = list->n;
  while (done < n && !__builtin_add_overflow(to[keys[done]], from[done], &to[keys[done]])) done++;
  if (done == n) return true;
  partial_subtract_plain(to, list, done + 1);
  return false;
}

/* What was added last may have wrapped, and does so again. */
void partial_subtract_plain(int128 *to, const partial_list *list, int64_t n) {
  const int128 *from = list->partials;
  for (int64_t i = 0; i < n; i++) {
    int128 *sum = &to[list->keys[i]];
    *sum = (int128)((uint128)*sum - (uint128)from[i]);
  }
}

/* ---- the tables ---- */

#define SUMS(type)                                                                                                    \
  .state_size = sizeof(state), .add = type##_add, .combine = kernel_combine, .finish = kernel_finish,                 \
  .write = sum_write, .read = type##_read, .shared = &shared_##type##s, .size = sizeof(state), .sums = true,          \
  .fold = type##_fold, .enter = type##_enter, .leave = type##_leave, .is_plain = sum_is_plain,                        \
  .flatten_plain = sum_flatten_plain, .unfold = type##_unfold, .entry_size = sizeof(state),                           \
  .fold_entries = type##_fold, .columns = 2, .types = {PS_I64, PS_BYTES32}, .export = sum_export, .check = sum_check, \
  .import = sum_import

#define FLOAT_SUMS                                                                               \
  SUMS(float), .reserve = float_reserve, .drop = float_drop, .owns = true, .holds = float_holds, \
      .drop_many = float_drop_many, .entries_drop = float_entries_drop

const kernel kernel_sum_integers = {SUMS(integer), .finish_many = integer_finish_many};
const kernel kernel_avg_integers = {SUMS(integer), .finish_many = integer_finish_many, .mean = true};
const kernel kernel_sum_floats = {FLOAT_SUMS, .finish_many = sum_finish_many};
const kernel kernel_avg_floats = {FLOAT_SUMS, .finish_many = mean_finish_many, .mean = true};
