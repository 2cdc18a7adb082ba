/*
 * sums.c - sum and avg, of integers and of floats.
 *
 * States, partials and entries are alike. Sums are exact: of integers 128 bits, which hold 2^64 values of 64 bits, so
 * only the final result can be too large; of floats see exact_sum.h. So whatever enters a total can leave it again.
 */
#include "base/exact_means.h"
#include "base/exact_sum.h"
#include "aggregates/partial.h"
#include "aggregates/state_bytes.h"
#include "aggregates/wide_bytes.h"

typedef struct {
  int128 sum;
  int64_t n;
} integer_state;

typedef ps_exact_sum float_state;

#define NARROW_BYTES 16 /* of sums that travel */

static inline int128 integer_of(uint64_t bits, bool is_unsigned) {
  return is_unsigned ? (int128)bits : (int128)(int64_t)bits;
}

/* ---- integers: a window's state ---- */

static bool integer_add(const aggregate *a, void *state, const column *c, int64_t row) {
  integer_state *s = state;
  s->sum += integer_of(column_bits(c, row), type_is_unsigned(a->type));
  s->n++;
  return true;
}

static bool integer_combine(const aggregate *a, void *state, void *other) {
  (void)a;
  integer_state *s = state;
  const integer_state *o = other;
  s->sum += o->sum;
  s->n += o->n;
  return true;
}

static ps_code integer_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  (void)fault;
  const integer_state *s = state;
  if (s->n == 0) return kernel_put_null(rows, to);
  if (a->kernel->mean) return kernel_put_bits(rows, to, double_bits(exact_mean(s->sum, s->n, 0)));
  if (s->sum > INT64_MAX || s->sum < INT64_MIN) return PS_OVERFLOW;
  return kernel_put_bits(rows, to, (uint64_t)(int64_t)s->sum);
}

static bool integer_write(const aggregate *a, const void *state, byte_buffer *to) {
  (void)a;
  const integer_state *s = state;
  return state_put_int128(to, s->sum) && state_put_word(to, (uint64_t)s->n);
}

static void integer_read(const aggregate *a, void *state, state_reader *from) {
  (void)a;
  integer_state *s = state;
  s->sum = state_get_int128(from);
  s->n = state_get_count(from);
  int128 most = (int128)s->n << 64; /* every value is below 2^64 */
  state_require(from, -most <= s->sum && s->sum <= most);
}

/* ---- integers: slices ---- */

static ps_code integer_fold(const kernel_target *t, const counted_rows *c) {
  integer_state *states = t->states;
  bool is_unsigned = type_is_unsigned(t->a->type);
  assert(c->bits);
  for (int64_t i = 0; i < c->n; i++) {
    integer_state *s = &states[c->entry[i]];
    s->sum += integer_of(c->bits[i], is_unsigned);
    s->n++;
  }
  return PS_OK;
}

/* Loops over plain sums; `unfolded` is known where they are called. */
static inline void integer_plain(integer_state *total, const partial_list *list, bool unfolded, int sign) {
  const uint32_t *keys = list->keys;
  const int128 *from = list->partials;
  const int64_t *rows = list->rows;
  for (int64_t i = 0, n = list->n; i < n; i++) {
    integer_state *to = &total[keys[i]];
    to->sum += sign * from[i];
    to->n += sign * (unfolded ? 1 : rows[i]);
  }
}

static inline bool integer_move(const partial_totals *t, const partial_list *list, int sign) {
  integer_state *total = t->total;
  const integer_state *from = list->partials;
  if (list->plain && list->rows) integer_plain(total, list, false, sign);
  if (list->plain && !list->rows) integer_plain(total, list, true, sign);
  for (int64_t i = 0; !list->plain && i < list->n; i++) {
    integer_state *to = &total[list->keys[i]];
    to->sum += sign * from[i].sum;
    to->n += sign * from[i].n;
  }
  return true;
}

static bool integer_enter(const partial_totals *t, const partial_list *list) { return integer_move(t, list, 1); }

static bool integer_leave(const partial_totals *t, const partial_list *list) { return integer_move(t, list, -1); }

static ps_code integer_finish_many(const partial_results *r) {
  const integer_state *total = r->t->total;
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  bool sum = !r->a->kernel->mean;
  for (int64_t i = 0; i < r->keys->n; i++) {
    const integer_state *s = &total[r->keys->keys[i]];
    if (s->n == 0 && !out_put_null_at(r->rows, r->to, i)) return PS_NO_MEMORY;
    if (sum && (s->sum > INT64_MAX || s->sum < INT64_MIN)) {
      *r->failed = i;
      return PS_OVERFLOW;
    }
    out[i] = sum || s->n == 0 ? (uint64_t)(int64_t)s->sum : double_bits(exact_mean(s->sum, s->n, 0));
  }
  return PS_OK;
}

static bool integer_is_plain(const void *partials, const int64_t *rows, int64_t n) {
  const integer_state *s = partials;
  bool plain = true;
  for (int64_t i = 0; i < n; i++) plain &= s[i].n == rows[i];
  return plain;
}

static void integer_pack_plain(const void *partials, int64_t n, int128 *to) {
  const integer_state *s = partials;
  for (int64_t i = 0; i < n; i++) to[i] = s[i].sum;
}

static bool integer_unfold(const aggregate *a, const uint64_t *bits, int64_t n, int128 *to) {
  bool is_unsigned = type_is_unsigned(a->type);
  for (int64_t i = 0; i < n; i++) to[i] = integer_of(bits[i], is_unsigned);
  return true;
}

/* ---- integers: folds, which travel as how many values, and the sum in 16 bytes ---- */

static bool integer_export(const kernel_output *o) {
  const integer_state *s = o->states;
  uint64_t *n = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; n && i < o->n; i++) {
    const integer_state *x = &s[output_entry(o, i)];
    n[i] = (uint64_t)x->n;
    uint8_t *space = out_put_space_at(o->rows, o->to + 1, i, NARROW_BYTES);
    if (!space) return false;
    bytes_put_int128(space, x->sum);
  }
  return n != NULL;
}

/* What so many values of the type can add up to. */
static bool integer_sum_possible(bytes x, int64_t n, ps_type type) {
  if (x.length != NARROW_BYTES) return false;
  int128 sum = bytes_int128(x.data);
  if (type_is_unsigned(type)) return sum >= 0 && sum <= (int128)n * (int128)UINT64_MAX;
  return sum >= (int128)n * INT64_MIN && sum <= (int128)n * INT64_MAX;
}

static ps_code integer_import(const kernel_target *t, const kernel_input *in) {
  integer_state *states = t->states;
  for (int64_t i = 0; i < in->n; i++) {
    integer_state *s = &states[in->entry[i]];
    s->sum += bytes_int128(column_bytes(&in->b->columns[in->from + 1], in->row + i).data);
    s->n += input_integer(in, in->from, in->row + i);
  }
  return PS_OK;
}

/* ---- floats: a window's state ---- */

static bool float_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  float_state *s = state;
  if (!exact_sum_add(s, bits_double(column_bits(c, row)))) return false;
  s->n++;
  return true;
}

static bool float_reserve(void *state, const column *c, int64_t row) {
  return exact_sum_reserve(state, bits_double(column_bits(c, row)));
}

static bool float_combine(const aggregate *a, void *state, void *other) {
  (void)a;
  float_state *s = state;
  const float_state *o = other;
  if (!exact_sum_combine(s, o)) return false;
  s->n += o->n;
  return true;
}

static uint64_t float_result(const aggregate *a, const float_state *s) {
  return double_bits(a->kernel->mean ? exact_sum_mean(s, s->n) : exact_sum_round(s));
}

static ps_code float_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  (void)fault;
  const float_state *s = state;
  return s->n ? kernel_put_bits(rows, to, float_result(a, s)) : kernel_put_null(rows, to);
}

static void float_drop(void *state) { exact_sum_clear(state); }

static bool float_write(const aggregate *a, const void *state, byte_buffer *to) {
  (void)a;
  const float_state *s = state;
  uint8_t wide[WIDE_BYTES];
  if (!state_put_int128(to, s->narrow) || !state_put_word(to, (uint64_t)s->n)) return false;
  if (!state_put_flag(to, s->wide != NULL)) return false;
  if (!s->wide) return true;
  put_wide(wide, s->wide);
  return state_put(to, wide, sizeof wide);
}

static void float_read(const aggregate *a, void *state, state_reader *from) {
  (void)a;
  float_state *s = state;
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

/* ---- floats: slices; in line while both sums are narrow ---- */

/* The sum was wide before, or not, and may have become so. */
static void count_wide(kernel_store *store, const float_state *s, bool before) {
  if (s->wide && !before) store->wide += (int64_t)sizeof *s->wide;
}

/* A value that the narrow sum does not take. */
static bool fold_rare(kernel_store *store, float_state *s, uint64_t bits) {
  bool wide = s->wide != NULL;
  if (!exact_sum_add_rare(s, bits_double(bits))) return false;
  count_wide(store, s, wide);
  return true;
}

static ps_code float_fold(const kernel_target *t, const counted_rows *c) {
  float_state *states = t->states;
  assert(c->bits);
  for (int64_t i = 0, n = c->n; i < n; i++) {
    float_state *s = &states[c->entry[i]];
    uint64_t x = c->bits[i];
    s->n++;
    if (__builtin_expect(!exact_sum_add_narrow(s, x), 0) && !fold_rare(t->store, s, x)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

/* Whether it enters or leaves is known where these are called, and whether slices are unfolded. */
static inline bool float_move_one(float_state *to, const ps_exact_sum *from, int64_t n, bool leave) {
  int128 sum;
  if (from->wide || (leave ? __builtin_sub_overflow(to->narrow, from->narrow, &sum)
                           : __builtin_add_overflow(to->narrow, from->narrow, &sum))) {
    if (!(leave ? exact_sum_subtract(to, from) : exact_sum_combine(to, from))) return false;
  } else {
    to->narrow = sum;
  }
  to->n += leave ? -n : n;
  if (leave && to->n == 0 && to->wide) exact_sum_clear(to);
  return true;
}

static inline bool float_plain(float_state *total, const partial_list *list, bool unfolded, bool leave) {
  const uint32_t *keys = list->keys;
  const int128 *from = list->partials;
  const int64_t *rows = list->rows;
  for (int64_t i = 0, n = list->n; i < n; i++) {
    float_state *to = &total[keys[i]];
    int64_t tuples = unfolded ? 1 : rows[i];
    int128 sum;
    bool beyond = leave ? __builtin_sub_overflow(to->narrow, from[i], &sum) || to->wide
                        : __builtin_add_overflow(to->narrow, from[i], &sum);
    if (__builtin_expect(beyond, 0)) {
      if (!float_move_one(to, &(ps_exact_sum){.narrow = from[i]}, tuples, leave)) return false;
      continue;
    }
    to->narrow = sum;
    to->n += leave ? -tuples : tuples;
  }
  return true;
}

static inline bool float_move(const partial_totals *t, const partial_list *list, bool leave) {
  float_state *total = t->total;
  const float_state *from = list->partials;
  if (list->plain) return list->rows ? float_plain(total, list, false, leave) : float_plain(total, list, true, leave);
  for (int64_t i = 0; i < list->n; i++) {
    if (!float_move_one(&total[list->keys[i]], &from[i], from[i].n, leave)) return false;
  }
  return true;
}

static bool float_enter(const partial_totals *t, const partial_list *list) { return float_move(t, list, false); }

static bool float_leave(const partial_totals *t, const partial_list *list) { return float_move(t, list, true); }

/* One result, or null. False when out of memory. */
static bool put_float(const partial_results *r, const float_state *s, int64_t row, uint64_t *out) {
  *out = s->n ? float_result(r->a, s) : 0;
  return s->n || out_put_null_at(r->rows, r->to, row);
}

static ps_code sum_finish_many(const partial_results *r) {
  const float_state *total = r->t->total;
  const uint32_t *keys = r->keys->keys;
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0, n = r->keys->n; i < n; i++) {
    const float_state *s = &total[keys[i]];
    if (__builtin_expect(s->n > 0 && !s->wide, 1)) {
      out[i] = double_bits(exact_sum_narrow_round(s->narrow));
    } else if (!put_float(r, s, i, &out[i])) {
      return PS_NO_MEMORY;
    }
  }
  return PS_OK;
}

/* Block by block; what a block cannot decide, one by one. */
static ps_code mean_finish_many(const partial_results *r) {
  const float_state *total = r->t->total;
  const uint32_t *keys = r->keys->keys;
  uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);
  if (!out) return PS_NO_MEMORY;
  exact_means_block b;
  for (int64_t from = 0, n = r->keys->n; from < n; from += EXACT_MEANS) {
    int64_t count = n - from < EXACT_MEANS ? n - from : EXACT_MEANS;
    uint64_t unfit = 0;
    for (int64_t i = 0; i < count; i++) unfit |= exact_means_put(&b, i, &total[keys[from + i]]);
    if (!unfit) exact_means(&b, count, (double *)(void *)(out + from));
    bool ok = true;
    for (int64_t i = from; unfit && ok && i < from + count; i++) ok = put_float(r, &total[keys[i]], i, &out[i]);
    if (!ok) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static bool float_is_plain(const void *partials, const int64_t *rows, int64_t n) {
  const float_state *s = partials;
  bool plain = true;
  for (int64_t i = 0; i < n; i++) plain &= (s[i].n == rows[i]) & (s[i].wide == NULL);
  return plain;
}

static void float_pack_plain(const void *partials, int64_t n, int128 *to) {
  const float_state *s = partials;
  for (int64_t i = 0; i < n; i++) to[i] = s[i].narrow;
}

static bool float_holds(const void *partials, int64_t n) {
  const float_state *s = partials;
  bool any = false;
  for (int64_t i = 0; i < n; i++) any |= s[i].wide != NULL;
  return any;
}

static void float_drop_many(void *partials, int64_t n) {
  float_state *s = partials;
  for (int64_t i = 0; i < n; i++) {
    if (s[i].wide) exact_sum_clear(&s[i]);
  }
}

static bool float_unfold(const aggregate *a, const uint64_t *bits, int64_t n, int128 *to) {
  (void)a;
  bool ok = true;
  for (int64_t i = 0; i < n; i++) {
    bool narrow = exact_sum_units(bits[i], &to[i]);
    if (__builtin_expect(!narrow, 0)) {
      to[i] = 0;
      ok &= bits[i] << 1 == 0; /* zero, of either sign */
    }
  }
  return ok;
}

/* ---- floats: folds, which travel as how many values, and the sum: narrow, and behind it wide if it is ---- */

static bool float_export(const kernel_output *o) {
  const float_state *s = o->states;
  uint64_t *n = out_reserve(o->rows, o->to, o->n);
  for (int64_t i = 0; n && i < o->n; i++) {
    const float_state *x = &s[output_entry(o, i)];
    n[i] = (uint64_t)x->n;
    uint8_t *space = out_put_space_at(o->rows, o->to + 1, i, NARROW_BYTES + (x->wide ? WIDE_BYTES : 0));
    if (!space) return false;
    space = bytes_put_int128(space, x->narrow);
    if (x->wide) put_wide(space, x->wide);
  }
  return n != NULL;
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

static ps_code float_import(const kernel_target *t, const kernel_input *in) {
  float_state *states = t->states;
  for (int64_t i = 0; i < in->n; i++) {
    float_state *s = &states[in->entry[i]];
    bool wide = s->wide != NULL;
    bytes x = column_bytes(&in->b->columns[in->from + 1], in->row + i);
    exact_sum_wide other_wide;
    ps_exact_sum other = {.narrow = bytes_int128(x.data)};
    if (x.length > NARROW_BYTES) {
      other_wide = wide_at(x.data + NARROW_BYTES);
      other.wide = &other_wide;
    }
    if (!exact_sum_combine(s, &other)) return PS_NO_MEMORY;
    count_wide(t->store, s, wide);
    s->n += input_integer(in, in->from, in->row + i);
  }
  return PS_OK;
}

static void float_entries_drop(kernel_store *store, void *states, int64_t n) {
  float_state *s = states;
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

#define SUMS(type)                                                                                             \
  .state_size = sizeof(type##_state), .add = type##_add, .combine = type##_combine, .finish = type##_finish,   \
  .write = type##_write, .read = type##_read, .size = sizeof(type##_state), .sums = true, .fold = type##_fold, \
  .enter = type##_enter, .leave = type##_leave, .is_plain = type##_is_plain, .pack_plain = type##_pack_plain,  \
  .unfold = type##_unfold, .entry_size = sizeof(type##_state), .fold_entries = type##_fold, .columns = 2,      \
  .types = {PS_I64, PS_BYTES32}, .export = type##_export, .check = sum_check, .import = type##_import

#define FLOAT_SUMS                                                                               \
  SUMS(float), .reserve = float_reserve, .drop = float_drop, .owns = true, .holds = float_holds, \
      .drop_many = float_drop_many, .entries_drop = float_entries_drop

const kernel kernel_sum_integers = {SUMS(integer), .finish_many = integer_finish_many};
const kernel kernel_avg_integers = {SUMS(integer), .finish_many = integer_finish_many, .mean = true};
const kernel kernel_sum_floats = {FLOAT_SUMS, .finish_many = sum_finish_many};
const kernel kernel_avg_floats = {FLOAT_SUMS, .finish_many = mean_finish_many, .mean = true};
