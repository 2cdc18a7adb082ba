/*
 * fold_join.c - partials, whose columns fold_export.c lists, into entries: see fold.h.
 *
 * Partials come from elsewhere. A batch of them is checked from end to end before any of it is taken in.
 */
#include "partials/fold.h"
#include "aggregates/state_bytes.h"
#include "columns/utf8.h"

/* ---- numbers of bytes ---- */

static uint64_t word_at(const uint8_t *from) {
  uint64_t word = 0;
  for (int i = 7; i >= 0; i--) word = word << 8 | from[i];
  return word;
}

static int128 narrow_at(const uint8_t *from) { return (int128)((uint128)word_at(from + 8) << 64 | word_at(from)); }

static exact_sum_wide wide_at(const uint8_t *from) {
  exact_sum_wide w;
  for (int i = 0; i < EXACT_SUM_LIMBS; i++, from += 8) w.limb[i] = word_at(from);
  w.nan = (int64_t)word_at(from);
  w.plus_inf = (int64_t)word_at(from + 8);
  w.minus_inf = (int64_t)word_at(from + 16);
  return w;
}

/* ---- checking what comes in ---- */

typedef struct {
  const ps_fold *f;
  const batch *b;
  ps_fault *fault;
} intake;

static const int64_t *numbers_at(const batch *b, int32_t which, int64_t row) {
  const column *c = &b->columns[which];
  return (const int64_t *)c->values + c->first + row;
}

static int64_t number_at(const batch *b, int32_t which, int64_t row) { return *numbers_at(b, which, row); }

static bool refuse(const intake *in, int64_t row, int32_t a, ps_partial_fault what) {
  *in->fault = (ps_fault){.row = row, .aggregate = a, .code = (int32_t)what};
  return false;
}

/* Slices are slices of some window, and of none that has been put out, unless `held`: then they were with those who put
   it out. */
static bool check_slices(const intake *in, bool held) {
  pane_windows w = in->f->windows;
  uint64_t known = 0; /* most rows are of the same slice as the row before */
  for (int64_t row = 0; row < in->b->rows; row++) {
    uint64_t begin = (uint64_t)number_at(in->b, 0, row);
    if (row > 0 && begin == known) continue;
    if (begin > INT64_MAX || last_edge(w, begin) != begin || !is_covered(w, begin)) {
      return refuse(in, row, -1, PS_BAD_SLICE);
    }
    if ((held ? begin : first_start(w, begin)) < in->f->start_next) return refuse(in, row, -1, PS_BAD_LATE);
    known = begin;
  }
  return true;
}

static bool check_rows(const intake *in) {
  int64_t total = in->f->total;
  for (int64_t row = 0; row < in->b->rows; row++) {
    int64_t rows = number_at(in->b, 1 + in->f->keys, row);
    if (rows < 1 || rows > FOLD_ROWS_MAX - total) return refuse(in, row, -1, PS_BAD_ROWS);
    total += rows;
  }
  return true;
}

static bool check_counts(const intake *in, int32_t a, int32_t from) {
  for (int64_t row = 0; row < in->b->rows; row++) {
    int64_t n = number_at(in->b, from, row);
    if (n < 0 || n > number_at(in->b, 1 + in->f->keys, row)) return refuse(in, row, a, PS_BAD_COUNT);
  }
  return true;
}

/* What so many values of the type can add up to. */
static bool integer_sum_possible(int128 sum, int64_t n, ps_type type) {
  if (type_is_unsigned(type)) return sum >= 0 && sum <= (int128)n * (int128)UINT64_MAX;
  return sum >= (int128)n * INT64_MIN && sum <= (int128)n * INT64_MAX;
}

/* A value is below 2^1024, bit 2098 of the wide sum; that many bits and more are those of limb 32 above its 50th. */
static bool wide_sum_possible(const exact_sum_wide *w, int64_t n) {
  _Static_assert(EXACT_SUM_LIMBS == 35, "the limbs below are the upper ones");
  int128 high = (int128)((uint128)w->limb[33] << 64 | w->limb[32]);
  if (w->limb[34] != (high < 0 ? UINT64_MAX : 0)) return false;
  high >>= 2098 - 2048;
  if (high > n || high < -(int128)n - 1) return false;
  if (w->nan < 0 || w->nan > n || w->plus_inf < 0 || w->plus_inf > n) return false;
  return w->minus_inf >= 0 && w->minus_inf <= n;
}

static bool float_sum_possible(bytes x, int64_t n) {
  if (x.length != FOLD_NARROW_BYTES && x.length != FOLD_WIDE_BYTES) return false;
  if (n == 0 && (x.length != FOLD_NARROW_BYTES || narrow_at(x.data) != 0)) return false;
  if (x.length == FOLD_NARROW_BYTES) return true;
  exact_sum_wide w = wide_at(x.data + FOLD_NARROW_BYTES);
  return wide_sum_possible(&w, n);
}

static bool check_sums(const intake *in, int32_t a, int32_t from) {
  const fold_column *c = &in->f->column[a];
  for (int64_t row = 0; row < in->b->rows; row++) {
    int64_t n = number_at(in->b, from, row);
    bytes x = column_bytes(&in->b->columns[from + 1], row);
    bool ok = c->kind == FOLD_FLOAT
                  ? float_sum_possible(x, n)
                  : x.length == FOLD_NARROW_BYTES && integer_sum_possible(narrow_at(x.data), n, c->a->type);
    if (!ok) return refuse(in, row, a, PS_BAD_SUM);
  }
  return true;
}

/* A value has a place, and its timestamp lies in the slice. */
static bool check_places(const intake *in, int32_t a, int32_t from) {
  const batch *b = in->b;
  for (int64_t row = 0; row < b->rows; row++) {
    if (column_is_null(&b->columns[from], row)) continue;
    bool ok = true;
    for (int32_t i = 1; i <= 3; i++) ok = ok && !column_is_null(&b->columns[from + i], row);
    uint64_t begin = (uint64_t)number_at(b, 0, row), ts = ok ? (uint64_t)number_at(b, from + 1, row) : 0;
    ok = ok && ts >= begin && ts < next_edge(in->f->windows, begin) && ts <= INT64_MAX;
    if (!ok) return refuse(in, row, a, PS_BAD_PLACE);
  }
  return true;
}

/* Values that were packed have 64 bits, and strings are bytes, whatever the type of their column. */
static bool check_values(const intake *in, int32_t a, int32_t from) {
  const aggregate *own = in->f->column[a].a;
  const column *c = &in->b->columns[from];
  if (own->is_bytes && own->strings == PS_ANY_BYTES) return true;
  for (int64_t row = 0; row < in->b->rows; row++) {
    if (column_is_null(c, row)) continue;
    bool ok = own->is_bytes ? string_fits(column_bytes(c, row), own->strings)
                            : value_in_range(column_bits(c, row), own->type);
    if (!ok) return refuse(in, row, a, PS_BAD_VALUE);
  }
  return true;
}

static bool check_partials(const intake *in, bool held, bool packed) {
  if (!check_slices(in, held) || !check_rows(in)) return false;
  int32_t at = 2 + in->f->keys;
  for (int32_t i = 0; i < in->f->functions.n; at += fold_columns_of(&in->f->column[i++])) {
    const fold_column *c = &in->f->column[i];
    bool counts = c->kind == FOLD_COUNT || c->kind == FOLD_INTEGER || c->kind == FOLD_FLOAT;
    if (counts && !check_counts(in, i, at)) return false;
    if (counts && c->kind != FOLD_COUNT && !check_sums(in, i, at)) return false;
    if (c->kind >= FOLD_LEAST && packed && !check_values(in, i, at)) return false;
    if (c->kind >= FOLD_LEAST && fold_is_placed(c->a) && !check_places(in, i, at)) return false;
  }
  return true;
}

/* ---- in ---- */

/* A block of rows of a batch; every slice is in some window, so no row is left out. */
typedef struct {
  const batch *b;
  const uint32_t *numbers; /* of the batch's keys */
  int64_t row, rows;
  fold_picked all;
} block;

static bool join_floats(ps_fold *f, float_state *states, const block *k, int32_t from) {
  for (int64_t i = 0; i < k->rows; i++) {
    float_state *s = &states[k->all.entry[i]];
    bool wide = s->wide != NULL;
    bytes x = column_bytes(&k->b->columns[from + 1], k->row + i);
    exact_sum_wide other_wide;
    ps_exact_sum other = {.narrow = narrow_at(x.data)};
    if (x.length == FOLD_WIDE_BYTES) {
      other_wide = wide_at(x.data + FOLD_NARROW_BYTES);
      other.wide = &other_wide;
    }
    if (!exact_sum_combine(s, &other)) return false;
    f->wide += (s->wide != NULL) - wide;
    s->n += number_at(k->b, from, k->row + i);
  }
  return true;
}

static void join_integers(integer_state *states, const block *k, int32_t from) {
  for (int64_t i = 0; i < k->rows; i++) {
    integer_state *s = &states[k->all.entry[i]];
    s->sum += narrow_at(column_bytes(&k->b->columns[from + 1], k->row + i).data);
    s->n += number_at(k->b, from, k->row + i);
  }
}

static void join_least(const aggregate *a, least_partial *states, const block *k, int32_t from) {
  const column *c = &k->b->columns[from];
  uint64_t flip = a->function == PS_MAX ? UINT64_MAX : 0;
  for (int64_t i = 0; i < k->rows; i++) {
    if (column_is_null(c, k->row + i)) continue;
    least_partial *s = &states[k->all.entry[i]];
    uint64_t word = value_ordered(value_canonical(column_bits(c, k->row + i), a->type), a->type) ^ flip;
    if (!s->present || word < s->word) s->word = word;
    s->present = 1;
  }
}

static fold_place place_at(const block *k, int32_t from, int64_t row) {
  return (fold_place){(uint64_t)number_at(k->b, from, row) + 1, number_at(k->b, from + 1, row),
                      number_at(k->b, from + 2, row)};
}

static ps_code twice(const block *k, int32_t from, int64_t row, ps_fault *fault) {
  fault->row = row;
  fault->ts = number_at(k->b, from, row);
  fault->stream = number_at(k->b, from + 1, row);
  fault->position = number_at(k->b, from + 2, row);
  return PS_TWICE;
}

static ps_code join_placed(const aggregate *a, placed_state *states, const block *k, int32_t from, ps_fault *fault) {
  const column *c = &k->b->columns[from];
  for (int64_t i = 0; i < k->rows; i++) {
    int64_t row = k->row + i;
    if (column_is_null(c, row)) continue;
    placed_state *s = &states[k->all.entry[i]];
    fold_place place = place_at(k, from + 1, row);
    fold_outcome outcome = fold_compete(&s->place, &place, a->function == PS_FIRST);
    if (outcome == FOLD_REPLACED) s->bits = column_bits(c, row);
    if (outcome != FOLD_TWICE) continue;
    return twice(k, from + 1, row, fault);
  }
  return PS_OK;
}

static ps_code join_strings(ps_fold *f, const fold_column *c, const block *k, int32_t from, ps_fault *fault) {
  string_state *states = c->states;
  for (int64_t i = 0; i < k->rows; i++) {
    int64_t row = k->row + i;
    if (column_is_null(&k->b->columns[from], row)) continue;
    string_state *s = &states[k->all.entry[i]];
    bytes x = column_bytes(&k->b->columns[from], row);
    fold_outcome outcome = FOLD_KEPT;
    if (fold_is_placed(c->a)) {
      fold_place place = place_at(k, from + 1, row);
      outcome = fold_compete(&s->place, &place, c->a->function == PS_FIRST);
    } else if (fold_string_wins(f, s, x, c->a->function == PS_MIN)) {
      s->place.when = 1;
      outcome = FOLD_REPLACED;
    }
    if (outcome == FOLD_REPLACED && !fold_keep_string(f, s, x)) return PS_NO_MEMORY;
    if (outcome != FOLD_TWICE) continue;
    return twice(k, from + 1, row, fault);
  }
  return PS_OK;
}

static ps_code join_column(ps_fold *f, const fold_column *c, const block *k, int32_t from, ps_fault *fault) {
  int64_t *counts = c->states;
  switch (c->kind) {
    case FOLD_ROWS: break;
    case FOLD_COUNT:
      for (int64_t i = 0; i < k->rows; i++) counts[k->all.entry[i]] += number_at(k->b, from, k->row + i);
      break;
    case FOLD_INTEGER: join_integers(c->states, k, from); break;
    case FOLD_FLOAT: return join_floats(f, c->states, k, from) ? PS_OK : PS_NO_MEMORY;
    case FOLD_LEAST: join_least(c->a, c->states, k, from); break;
    case FOLD_PLACED: return join_placed(c->a, c->states, k, from, fault);
    case FOLD_STRING: return join_strings(f, c, k, from, fault);
  }
  return PS_OK;
}

static ps_code join_block(ps_fold *f, block *k, ps_fault *fault) {
  if (!fold_reserve(f)) return PS_NO_MEMORY;
  fold_sought rows = {.n = k->rows,
                      .ts = numbers_at(k->b, 0, k->row),
                      .numbers = k->numbers + k->row,
                      .weights = numbers_at(k->b, 1 + f->keys, k->row)};
  fold_find(f, &rows, &k->all);
  assert(k->all.n == k->rows);
  for (int64_t i = 0; i < k->rows; i++) f->total += rows.weights[i];
  ps_code code = PS_OK;
  int32_t from = 2 + f->keys;
  for (int32_t i = 0; i < f->functions.n && code == PS_OK; from += fold_columns_of(&f->column[i++])) {
    code = join_column(f, &f->column[i], k, from, fault);
    fault->aggregate = i;
  }
  return code;
}

ps_code fold_join(ps_fold *f, const batch *b, bool held, const uint32_t *numbers, ps_fault *fault) {
  intake in = {f, b, fault};
  *fault = (ps_fault){0};
  if (!check_partials(&in, held, numbers != NULL)) return PS_CORRUPT;
  combine_end(f);
  if (!numbers && !fold_number_keys(f, b)) return PS_NO_MEMORY;
  block k;
  k.b = b;
  k.numbers = numbers ? numbers : f->numbers.numbers;
  for (k.row = 0; k.row < b->rows; k.row += k.rows) {
    k.rows = b->rows - k.row < FOLD_BLOCK ? b->rows - k.row : FOLD_BLOCK;
    ps_code code = join_block(f, &k, fault);
    f->broken = code != PS_OK;
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

ps_code ps_fold_add_partials(ps_fold *f, const struct ArrowArray *partials, int32_t held, ps_fault *fault) {
  if (f->broken) return PS_CLOSED;
  batch *b = batch_new(partials, f->partial_columns, f->partial_types);
  if (!b) return PS_NO_MEMORY;
  ps_code code = fold_join(f, b, held != 0, NULL, fault);
  batch_free(b); /* the buffers stay the caller's */
  return code;
}
