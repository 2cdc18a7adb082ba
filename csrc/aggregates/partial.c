/* partial.c - see partial.h. */
#include "aggregates/partial.h"

#include "base/exact_means.h"

/* ---- count: an integer ---- */

static bool count_enter(const partial_totals *t, const partial_list *list) {
  int64_t *total = t->total;
  const int64_t *from = list->partials;
  for (int64_t i = 0; i < list->n; i++) total[list->keys[i]] += from[i];
  return true;
}

static bool count_leave(const partial_totals *t, const partial_list *list) {
  int64_t *total = t->total;
  const int64_t *from = list->partials;
  for (int64_t i = 0; i < list->n; i++) total[list->keys[i]] -= from[i];
  return true;
}

/* ---- sum and avg of integers ---- */

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

static bool integer_enter(const partial_totals *t, const partial_list *list) {
  integer_state *total = t->total;
  const integer_state *from = list->partials;
  if (list->plain && list->rows) integer_plain(total, list, false, 1);
  if (list->plain && !list->rows) integer_plain(total, list, true, 1);
  for (int64_t i = 0; !list->plain && i < list->n; i++) {
    integer_state *to = &total[list->keys[i]];
    to->sum += from[i].sum;
    to->n += from[i].n;
  }
  return true;
}

static bool integer_leave(const partial_totals *t, const partial_list *list) {
  integer_state *total = t->total;
  const integer_state *from = list->partials;
  if (list->plain && list->rows) integer_plain(total, list, false, -1);
  if (list->plain && !list->rows) integer_plain(total, list, true, -1);
  for (int64_t i = 0; !list->plain && i < list->n; i++) {
    integer_state *to = &total[list->keys[i]];
    to->sum -= from[i].sum;
    to->n -= from[i].n;
  }
  return true;
}

/* ---- sum and avg of floats: in line while both sums are narrow ---- */

static bool float_join(float_state *to, const ps_exact_sum *from, int64_t n) {
  int128 sum;
  if (from->wide || __builtin_add_overflow(to->narrow, from->narrow, &sum)) {
    if (!exact_sum_combine(to, from)) return false;
  } else {
    to->narrow = sum;
  }
  to->n += n;
  return true;
}

static bool float_part(float_state *to, const ps_exact_sum *from, int64_t n) {
  int128 sum;
  if (from->wide || __builtin_sub_overflow(to->narrow, from->narrow, &sum)) {
    if (!exact_sum_subtract(to, from)) return false;
  } else {
    to->narrow = sum;
  }
  to->n -= n;
  if (to->n == 0 && to->wide) exact_sum_clear(to);
  return true;
}

static inline bool float_enter_plain(float_state *total, const partial_list *list, bool unfolded) {
  const uint32_t *keys = list->keys;
  const int128 *from = list->partials;
  const int64_t *rows = list->rows;
  for (int64_t i = 0, n = list->n; i < n; i++) {
    float_state *to = &total[keys[i]];
    int128 sum;
    if (__builtin_expect(__builtin_add_overflow(to->narrow, from[i], &sum), 0)) {
      if (!float_join(to, &(ps_exact_sum){.narrow = from[i]}, unfolded ? 1 : rows[i])) return false;
      continue;
    }
    to->narrow = sum;
    to->n += unfolded ? 1 : rows[i];
  }
  return true;
}

static inline bool float_leave_plain(float_state *total, const partial_list *list, bool unfolded) {
  const uint32_t *keys = list->keys;
  const int128 *from = list->partials;
  const int64_t *rows = list->rows;
  for (int64_t i = 0, n = list->n; i < n; i++) {
    float_state *to = &total[keys[i]];
    int128 sum;
    bool beyond = __builtin_sub_overflow(to->narrow, from[i], &sum);
    if (__builtin_expect(beyond || to->wide, 0)) {
      if (!float_part(to, &(ps_exact_sum){.narrow = from[i]}, unfolded ? 1 : rows[i])) return false;
      continue;
    }
    to->narrow = sum;
    to->n -= unfolded ? 1 : rows[i];
  }
  return true;
}

static bool float_enter(const partial_totals *t, const partial_list *list) {
  float_state *total = t->total;
  const float_state *from = list->partials;
  if (list->plain) return list->rows ? float_enter_plain(total, list, false) : float_enter_plain(total, list, true);
  for (int64_t i = 0; i < list->n; i++) {
    if (!float_join(&total[list->keys[i]], &from[i], from[i].n)) return false;
  }
  return true;
}

static bool float_leave(const partial_totals *t, const partial_list *list) {
  float_state *total = t->total;
  const float_state *from = list->partials;
  if (list->plain) return list->rows ? float_leave_plain(total, list, false) : float_leave_plain(total, list, true);
  for (int64_t i = 0; i < list->n; i++) {
    if (!float_part(&total[list->keys[i]], &from[i], from[i].n)) return false;
  }
  return true;
}

/* ---- min, max, first, last: whichever is better ---- */

static inline bool least_better(const least_partial *a, const least_partial *b) {
  return a->present && (!b->present || a->word < b->word);
}

/* None, 0, becomes the largest by the subtraction. */
static inline bool first_better(const placed_partial *a, const placed_partial *b) {
  return (a->when - 1 < b->when - 1) | ((a->when == b->when) & (a->input < b->input));
}

static inline bool last_better(const placed_partial *a, const placed_partial *b) {
  return a->when > b->when || (a->when == b->when && a->input > b->input);
}

static inline bool bytes_first_better(const bytes_partial *a, const bytes_partial *b) {
  return a->when - 1 < b->when - 1 || (a->when == b->when && a->input < b->input);
}

static inline bool bytes_last_better(const bytes_partial *a, const bytes_partial *b) {
  return a->when > b->when || (a->when == b->when && a->input > b->input);
}

static int bytes_order(const bytes_partial *a, const bytes_partial *b) {
  int64_t shorter = a->length < b->length ? a->length : b->length;
  int order = shorter ? memcmp(a->data, b->data, (size_t)shorter) : 0;
  return order ? order : (a->length > b->length) - (a->length < b->length);
}

static inline bool bytes_min_better(const bytes_partial *a, const bytes_partial *b) {
  return a->when && (!b->when || bytes_order(a, b) < 0);
}

static inline bool bytes_max_better(const bytes_partial *a, const bytes_partial *b) {
  return a->when && (!b->when || bytes_order(a, b) > 0);
}

/* The better of two, without a branch, which no processor could guess where several inputs share a slice. */
static inline uint64_t choose(bool a, uint64_t x, uint64_t y) { return y ^ ((x ^ y) & (0 - (uint64_t)a)); }

static inline placed_partial first_of(const placed_partial *a, const placed_partial *b) {
  bool better = first_better(a, b);
  return (placed_partial){choose(better, a->when, b->when), choose(better, a->input, b->input),
                          choose(better, a->bits, b->bits)};
}

/* NOLINTBEGIN(bugprone-macro-parentheses): `state` is a type */
#define STACKED(name, state)                                                                         \
  static bool name##_enter(const partial_totals *t, const partial_list *list) {                      \
    state *back = t->total;                                                                          \
    const state *from = list->partials;                                                              \
    for (int64_t i = 0; i < list->n; i++) {                                                          \
      state *to = &back[list->keys[i]];                                                              \
      *to = name##_of(&from[i], to);                                                                 \
    }                                                                                                \
    return true;                                                                                     \
  }                                                                                                  \
  static inline void name##_push_by(const partial_totals *t, const partial_list *list, bool dense) { \
    state *back = t->total, *front = t->front, *own = list->partials;                                \
    for (int64_t i = 0, n = list->n; i < n; i++) {                                                   \
      uint32_t k = dense ? (uint32_t)i : list->keys[i];                                              \
      state without = front[k];                                                                      \
      front[k] = name##_of(&own[i], &without);                                                       \
      own[i] = without;                                                                              \
      back[k] = (state){0};                                                                          \
    }                                                                                                \
  }                                                                                                  \
  static void name##_push(const partial_totals *t, const partial_list *list) {                       \
    if (list->dense) {                                                                               \
      name##_push_by(t, list, true);                                                                 \
    } else {                                                                                         \
      name##_push_by(t, list, false);                                                                \
    }                                                                                                \
  }                                                                                                  \
  static void name##_pop(const partial_totals *t, const partial_list *list) {                        \
    state *front = t->front;                                                                         \
    const state *own = list->partials;                                                               \
    if (list->dense) {                                                                               \
      memcpy(front, own, (size_t)list->n * sizeof *own);                                             \
      return;                                                                                        \
    }                                                                                                \
    for (int64_t i = 0; i < list->n; i++) front[list->keys[i]] = own[i];                             \
  }                                                                                                  \
  static inline const state *name##_total(const partial_totals *t, uint32_t k) {                     \
    const state *back = (const state *)t->total + k, *front = (const state *)t->front + k;           \
    return name##_better(back, front) ? back : front;                                                \
  }

/* The last is of the newest slice that has one: when that leaves, none is left. */
#define NEWEST(name, state)                                                         \
  static bool name##_enter(const partial_totals *t, const partial_list *list) {     \
    state *total = t->total;                                                        \
    const state *from = list->partials;                                             \
    for (int64_t i = 0; i < list->n; i++) {                                         \
      state *to = &total[list->keys[i]];                                            \
      if (name##_better(&from[i], to)) *to = from[i];                               \
    }                                                                               \
    return true;                                                                    \
  }                                                                                 \
  static bool name##_leave(const partial_totals *t, const partial_list *list) {     \
    state *total = t->total;                                                        \
    const state *from = list->partials;                                             \
    for (int64_t i = 0; i < list->n; i++) {                                         \
      state *to = &total[list->keys[i]];                                            \
      if (to->when == from[i].when && to->input == from[i].input) *to = (state){0}; \
    }                                                                               \
    return true;                                                                    \
  }

#define OF(name, state) \
  static inline state name##_of(const state *a, const state *b) { return name##_better(a, b) ? *a : *b; }

OF(least, least_partial)
OF(bytes_first, bytes_partial)
OF(bytes_min, bytes_partial)
OF(bytes_max, bytes_partial)

STACKED(least, least_partial)
STACKED(first, placed_partial)
NEWEST(last, placed_partial)
STACKED(bytes_first, bytes_partial)
NEWEST(bytes_last, bytes_partial)
STACKED(bytes_min, bytes_partial)
STACKED(bytes_max, bytes_partial)
/* NOLINTEND(bugprone-macro-parentheses) */

/* ---- which kind ---- */

#define STACKED_KIND(name, state, bytes) \
  {.size = sizeof(state),                \
   .stacked = true,                      \
   .is_bytes = (bytes),                  \
   .enter = name##_enter,                \
   .push = name##_push,                  \
   .pop = name##_pop}

#define NEWEST_KIND(name, state, bytes) \
  {.size = sizeof(state), .is_bytes = (bytes), .enter = name##_enter, .leave = name##_leave}

static const partial_kind rows_kind = {0};
static const partial_kind count_kind = {.size = sizeof(int64_t), .enter = count_enter, .leave = count_leave};
static const partial_kind integer_kind = {
    .size = sizeof(integer_state), .sums = true, .enter = integer_enter, .leave = integer_leave};
static const partial_kind float_kind = {
    .size = sizeof(float_state), .sums = true, .owns = true, .enter = float_enter, .leave = float_leave};

static const partial_kind value_kinds[PS_FUNCTIONS] = {[PS_MIN] = STACKED_KIND(least, least_partial, false),
                                                       [PS_MAX] = STACKED_KIND(least, least_partial, false),
                                                       [PS_FIRST] = STACKED_KIND(first, placed_partial, false),
                                                       [PS_LAST] = NEWEST_KIND(last, placed_partial, false)};

static const partial_kind bytes_kinds[PS_FUNCTIONS] = {[PS_MIN] = STACKED_KIND(bytes_min, bytes_partial, true),
                                                       [PS_MAX] = STACKED_KIND(bytes_max, bytes_partial, true),
                                                       [PS_FIRST] = STACKED_KIND(bytes_first, bytes_partial, true),
                                                       [PS_LAST] = NEWEST_KIND(bytes_last, bytes_partial, true)};

const partial_kind *partial_kind_of(const aggregate *a) {
  switch (a->function) {
    case PS_COUNT: return a->mask < 0 ? &rows_kind : &count_kind;
    case PS_SUM:
    case PS_AVG: return type_is_float(a->type) ? &float_kind : &integer_kind;
    case PS_MIN:
    case PS_MAX:
    case PS_FIRST:
    case PS_LAST: return type_is_bytes(a->type) ? &bytes_kinds[a->function] : &value_kinds[a->function];
    case PS_UDF:
    case PS_NATIVE:
    case PS_FUNCTIONS: break;
  }
  return NULL;
}

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

void partial_drop(const partial_kind *kind, void *partials, int64_t n) {
  if (!kind->owns) return;
  float_state *states = partials;
  for (int64_t i = 0; i < n; i++) {
    if (states[i].wide) exact_sum_clear(&states[i]);
  }
}

/* ---- results ---- */

/* What the finishers below share. */
typedef struct {
  const aggregate *a;
  const partial_totals *t;
  const partial_list *keys;
  out_rows *rows;
  int32_t to;
  int64_t failed; /* row; -1: none */
} finish;

static ps_code finish_counts(const finish *f, const int64_t *counts) {
  uint64_t *out = out_reserve(f->rows, f->to, f->keys->n);
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0; i < f->keys->n; i++) out[i] = (uint64_t)counts[f->keys->keys[i]];
  return PS_OK;
}

static ps_code finish_integers(finish *f) {
  const integer_state *total = f->t->total;
  uint64_t *out = out_reserve(f->rows, f->to, f->keys->n);
  if (!out) return PS_NO_MEMORY;
  bool sum = f->a->function == PS_SUM;
  for (int64_t i = 0; i < f->keys->n; i++) {
    const integer_state *s = &total[f->keys->keys[i]];
    if (s->n == 0 && !out_put_null_at(f->rows, f->to, i)) return PS_NO_MEMORY;
    if (sum && (s->sum > INT64_MAX || s->sum < INT64_MIN)) {
      f->failed = i;
      return PS_OVERFLOW;
    }
    out[i] = sum || s->n == 0 ? (uint64_t)(int64_t)s->sum : double_bits(exact_mean(s->sum, s->n, 0));
  }
  return PS_OK;
}

/* One float result, or null. False when out of memory. */
static bool finish_float(const finish *f, const float_state *s, int64_t row, uint64_t *out) {
  if (s->n == 0) {
    *out = 0;
    return out_put_null_at(f->rows, f->to, row);
  }
  *out = double_bits(f->a->function == PS_AVG ? exact_sum_mean(s, s->n) : exact_sum_round(s));
  return true;
}

static ps_code finish_sums(const finish *f, uint64_t *out) {
  const float_state *total = f->t->total;
  const uint32_t *keys = f->keys->keys;
  for (int64_t i = 0, n = f->keys->n; i < n; i++) {
    const float_state *s = &total[keys[i]];
    if (__builtin_expect(s->n > 0 && !s->wide, 1)) {
      out[i] = double_bits(exact_sum_narrow_round(s->narrow));
    } else if (!finish_float(f, s, i, &out[i])) {
      return PS_NO_MEMORY;
    }
  }
  return PS_OK;
}

/* Block by block; what a block cannot decide, one by one. */
static ps_code finish_means(const finish *f, uint64_t *out) {
  const float_state *total = f->t->total;
  const uint32_t *keys = f->keys->keys;
  exact_means_block b;
  for (int64_t from = 0, n = f->keys->n; from < n; from += EXACT_MEANS) {
    int64_t count = n - from < EXACT_MEANS ? n - from : EXACT_MEANS;
    uint64_t unfit = 0;
    for (int64_t i = 0; i < count; i++) unfit |= exact_means_put(&b, i, &total[keys[from + i]]);
    if (!unfit) exact_means(&b, count, (double *)(void *)(out + from));
    bool ok = true;
    for (int64_t i = from; unfit && ok && i < from + count; i++) ok = finish_float(f, &total[keys[i]], i, &out[i]);
    if (!ok) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static ps_code finish_floats(const finish *f) {
  uint64_t *out = out_reserve(f->rows, f->to, f->keys->n);
  if (!out) return PS_NO_MEMORY;
  return f->a->function == PS_AVG ? finish_means(f, out) : finish_sums(f, out);
}

static ps_code finish_least(const finish *f) {
  uint64_t *out = out_reserve(f->rows, f->to, f->keys->n), flip = f->a->function == PS_MAX ? UINT64_MAX : 0;
  if (!out) return PS_NO_MEMORY;
  for (int64_t i = 0; i < f->keys->n; i++) {
    const least_partial *s = least_total(f->t, f->keys->keys[i]);
    out[i] = s->present ? value_unordered(s->word ^ flip, f->a->type) : 0;
    if (!s->present && !out_put_null_at(f->rows, f->to, i)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static ps_code finish_placed(const finish *f) {
  uint64_t *out = out_reserve(f->rows, f->to, f->keys->n);
  if (!out) return PS_NO_MEMORY;
  bool first = f->a->function == PS_FIRST;
  for (int64_t i = 0; i < f->keys->n; i++) {
    uint32_t k = f->keys->keys[i];
    const placed_partial *s = first ? first_total(f->t, k) : (const placed_partial *)f->t->total + k;
    out[i] = s->bits;
    if (!s->when && !out_put_null_at(f->rows, f->to, i)) return PS_NO_MEMORY;
  }
  return PS_OK;
}

static const bytes_partial *bytes_total(const finish *f, uint32_t k) {
  if (f->a->function == PS_MIN) return bytes_min_total(f->t, k);
  if (f->a->function == PS_MAX) return bytes_max_total(f->t, k);
  return f->a->function == PS_FIRST ? bytes_first_total(f->t, k) : (const bytes_partial *)f->t->total + k;
}

static ps_code finish_bytes(const finish *f) {
  for (int64_t i = 0; i < f->keys->n; i++) {
    const bytes_partial *s = bytes_total(f, f->keys->keys[i]);
    uint8_t *space = out_put_space_at(f->rows, f->to, i, s->length);
    if (!space || (!s->when && !out_put_null_at(f->rows, f->to, i))) return PS_NO_MEMORY;
    if (s->length) memcpy(space, s->data, (size_t)s->length);
  }
  return PS_OK;
}

ps_code partial_finish(const aggregate *a, const partial_totals *t, const partial_list *keys, const int64_t *rows_of,
                       out_rows *rows, int32_t to, int64_t *row) {
  finish f = {a, t, keys, rows, to, -1};
  const partial_kind *kind = partial_kind_of(a);
  if (kind->size == 0) return finish_counts(&f, rows_of);
  if (kind == &count_kind) return finish_counts(&f, t->total);
  if (kind == &float_kind) return finish_floats(&f);
  if (kind->is_bytes) return finish_bytes(&f);
  if (kind == &integer_kind) {
    ps_code code = finish_integers(&f);
    *row = f.failed;
    return code;
  }
  return a->function == PS_MIN || a->function == PS_MAX ? finish_least(&f) : finish_placed(&f);
}

/* ---- snapshots ---- */

static bool is_within(uint64_t when, uint64_t input, partial_place until) {
  return input < PARTIAL_INPUT || when < until.when || (when == until.when && input <= until.input);
}

static void placed_save(const placed_partial *s, partial_place until, value_state *to) {
  if (s->when && is_within(s->when, s->input, until)) *to = (value_state){.bits = s->bits, .n = 1};
}

static void bytes_save(const aggregate *a, const partial_totals *t, uint32_t k, partial_place until, bytes_state *to) {
  finish f = {.a = a, .t = t};
  const bytes_partial *s = bytes_total(&f, k);
  bool placed = a->function == PS_FIRST || a->function == PS_LAST;
  if (!s->when || (placed && !is_within(s->when, s->input, until))) return;
  *to = (bytes_state){.data = (uint8_t *)(uintptr_t)s->data, .length = s->length, .any = true};
}

static void least_save(const aggregate *a, const least_partial *s, value_state *to) {
  uint64_t flip = a->function == PS_MAX ? UINT64_MAX : 0;
  if (s->present) *to = (value_state){.bits = value_unordered(s->word ^ flip, a->type), .n = 1};
}

void partial_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                  void *state) {
  const partial_kind *kind = partial_kind_of(a);
  memset(state, 0, a->size);
  if (kind->size == 0) {
    *(int64_t *)state = rows;
  } else if (kind->is_bytes) {
    bytes_save(a, t, k, until, state);
  } else if (a->function == PS_MIN || a->function == PS_MAX) {
    least_save(a, least_total(t, k), state);
  } else if (a->function == PS_FIRST) {
    placed_save(first_total(t, k), until, state);
  } else if (a->function == PS_LAST) {
    placed_save((const placed_partial *)t->total + k, until, state);
  } else {
    assert(a->size == kind->size);
    memcpy(state, (const uint8_t *)t->total + k * kind->size, kind->size);
  }
}

static void value_load(const aggregate *a, const value_state *s, partial_place place, void *partial) {
  if (!s->n) return;
  if (a->function == PS_MIN || a->function == PS_MAX) {
    uint64_t flip = a->function == PS_MAX ? UINT64_MAX : 0;
    *(least_partial *)partial = (least_partial){value_ordered(value_canonical(s->bits, a->type), a->type) ^ flip, 1};
  } else {
    *(placed_partial *)partial = (placed_partial){place.when, place.input, s->bits};
  }
}

void partial_load(const aggregate *a, const void *state, partial_place place, void *partial) {
  const partial_kind *kind = partial_kind_of(a);
  const bytes_state *string = state;
  memset(partial, 0, kind->size);
  if (kind->is_bytes) {
    if (string->any) *(bytes_partial *)partial = (bytes_partial){place.when, place.input, string->data, string->length};
  } else if (a->function >= PS_MIN) {
    value_load(a, state, place, partial);
  } else {
    memcpy(partial, state, kind->size);
  }
}
