/*
 * fold_export.c - entries as rows of Arrow columns: see fold.h, and fold_join.c for the way back.
 *
 * The columns, in this order; numbers are int64, and the same rows mean the same on every machine:
 *   slice                          where the slice begins
 *   the key columns
 *   rows                           how many rows fell into the slice
 *   for each aggregate
 *     count                        nothing: it is `rows`; with a filter: how many rows passed it
 *     sum, avg                     how many values;  the sum in 16 bytes, little-endian two's complement: of integers
 *                                  itself; of floats the narrow sum, behind which the wide one may follow: its limbs, 8
 *                                  bytes each, and how many NaN, +inf and -inf, 8 bytes each (exact_sum.h)
 *     min, max                     the value; null: there is none
 *     first, last                  the same, and the ts, stream and position of the row it comes from
 */
#include "partials/fold.h"

#include "columns/output.h"

int32_t fold_columns_of(const fold_column *c) {
  switch (c->kind) {
    case FOLD_ROWS: return 0;
    case FOLD_COUNT:
    case FOLD_LEAST: return 1;
    case FOLD_INTEGER:
    case FOLD_FLOAT: return 2;
    case FOLD_PLACED: return 4;
    case FOLD_STRING: return fold_is_placed(c->a) ? 4 : 1;
  }
  return 0;
}

bool fold_init_partials(ps_fold *f) {
  f->partial_columns = 2 + f->keys;
  for (int32_t i = 0; i < f->functions.n; i++) f->partial_columns += fold_columns_of(&f->column[i]);
  f->partial_types = memory_new((size_t)f->partial_columns * sizeof *f->partial_types);
  if (!f->partial_types) return false;
  for (int32_t i = 0; i < f->partial_columns; i++) f->partial_types[i] = PS_I64;
  for (int32_t i = 1; i <= f->keys; i++) f->partial_types[i] = f->column_types[i];
  int32_t to = 2 + f->keys;
  for (int32_t i = 0; i < f->functions.n; to += fold_columns_of(&f->column[i++])) {
    const fold_column *c = &f->column[i];
    if (c->kind == FOLD_INTEGER || c->kind == FOLD_FLOAT) f->partial_types[to + 1] = PS_BYTES32;
    if (c->kind >= FOLD_LEAST) f->partial_types[to] = c->a->type;
  }
  return true;
}

/* ---- numbers as bytes ---- */

static uint8_t *put_word(uint8_t *to, uint64_t word) {
  for (int i = 0; i < 8; i++) *to++ = (uint8_t)(word >> (8 * i));
  return to;
}

static uint8_t *put_narrow(uint8_t *to, int128 x) {
  return put_word(put_word(to, (uint64_t)(uint128)x), (uint64_t)((uint128)x >> 64));
}

static void put_wide(uint8_t *to, const exact_sum_wide *w) {
  for (int i = 0; i < EXACT_SUM_LIMBS; i++) to = put_word(to, w->limb[i]);
  to = put_word(to, (uint64_t)w->nan);
  to = put_word(to, (uint64_t)w->plus_inf);
  put_word(to, (uint64_t)w->minus_inf);
}

/* ---- out ---- */

typedef fold_output output;

static inline int64_t entry_at(const output *o, int64_t i) { return o->order ? o->order[i] : o->from + i; }

static uint32_t number_at(const output *o, int64_t i) {
  return o->keys ? (uint32_t)(o->from + i) : (uint32_t)o->f->entry[entry_at(o, i)].pair;
}

static bool put_key(const output *o, int32_t which) {
  bool strings = type_is_bytes(o->f->column_types[which]);
  uint64_t *out = strings ? NULL : out_reserve(o->rows, which, o->n);
  if (!strings && !out) return false;
  for (int64_t i = 0; i < o->n; i++) {
    const uint8_t *at = key_table_at(&o->f->table, number_at(o, i))->data;
    key_part part = {0};
    for (int32_t k = 1; k <= which; k++) at = key_decode(at, o->f->column_types[k], &part);
    if (strings) {
      uint8_t *space = out_put_space_at(o->rows, which, i, part.length);
      if (!space) return false;
      key_unescape(&part, space);
    } else {
      out[i] = part.bits;
    }
    if (part.null && !out_put_null_at(o->rows, which, i)) return false;
  }
  return true;
}

static bool put_entries(const output *o) {
  int32_t rows = 1 + o->f->keys;
  uint64_t *begin = out_reserve(o->rows, 0, o->n), *count = out_reserve(o->rows, rows, o->n);
  if (!begin || !count) return false;
  for (int64_t i = 0; i < o->n; i++) {
    fold_entry e = o->f->entry[entry_at(o, i)];
    begin[i] = o->f->begin[e.pair >> 32];
    count[i] = (uint64_t)e.rows;
  }
  return true;
}

static bool put_keys(const output *o) {
  for (int32_t k = 1; k <= o->f->keys; k++) {
    if (!put_key(o, k)) return false;
  }
  return true;
}

static bool put_integers(const output *o, const integer_state *s, int32_t to) {
  uint64_t *n = out_reserve(o->rows, to, o->n);
  for (int64_t i = 0; n && i < o->n; i++) {
    const integer_state *x = &s[entry_at(o, i)];
    n[i] = (uint64_t)x->n;
    uint8_t *space = out_put_space_at(o->rows, to + 1, i, FOLD_NARROW_BYTES);
    if (!space) return false;
    put_narrow(space, x->sum);
  }
  return n != NULL;
}

static bool put_floats(const output *o, const float_state *s, int32_t to) {
  uint64_t *n = out_reserve(o->rows, to, o->n);
  for (int64_t i = 0; n && i < o->n; i++) {
    const float_state *x = &s[entry_at(o, i)];
    n[i] = (uint64_t)x->n;
    uint8_t *space = out_put_space_at(o->rows, to + 1, i, x->wide ? FOLD_WIDE_BYTES : FOLD_NARROW_BYTES);
    if (!space) return false;
    space = put_narrow(space, x->narrow);
    if (x->wide) put_wide(space, x->wide);
  }
  return n != NULL;
}

static bool put_least(const output *o, const fold_column *c, int32_t to) {
  const least_partial *s = c->states;
  uint64_t *out = out_reserve(o->rows, to, o->n), flip = c->a->function == PS_MAX ? UINT64_MAX : 0;
  for (int64_t i = 0; out && i < o->n; i++) {
    const least_partial *x = &s[entry_at(o, i)];
    out[i] = x->present ? value_unordered(x->word ^ flip, c->a->type) : 0;
    if (!x->present && !out_put_null_at(o->rows, to, i)) return false;
  }
  return out != NULL;
}

/* The three columns that say where a value comes from. */
static bool put_place(const output *o, int64_t i, const fold_place *p, uint64_t *const out[3], int32_t to) {
  out[0][i] = p->when ? p->when - 1 : 0;
  out[1][i] = (uint64_t)p->stream;
  out[2][i] = (uint64_t)p->position;
  if (p->when) return true;
  return out_put_null_at(o->rows, to, i) && out_put_null_at(o->rows, to + 1, i) && out_put_null_at(o->rows, to + 2, i);
}

static bool put_places(const output *o, const fold_column *c, int32_t to) {
  uint64_t *const out[3] = {out_reserve(o->rows, to, o->n), out_reserve(o->rows, to + 1, o->n),
                            out_reserve(o->rows, to + 2, o->n)};
  if (!out[0] || !out[1] || !out[2]) return false;
  for (int64_t i = 0; i < o->n; i++) { /* the place comes first in both kinds of states */
    const fold_place *p = (const void *)((const uint8_t *)c->states + (size_t)entry_at(o, i) * c->size);
    if (!put_place(o, i, p, out, to)) return false;
  }
  return true;
}

_Static_assert(offsetof(placed_state, place) == 0 && offsetof(string_state, place) == 0, "put_places relies on it");

static bool put_placed(const output *o, const fold_column *c, int32_t to) {
  const placed_state *s = c->states;
  uint64_t *out = out_reserve(o->rows, to, o->n);
  for (int64_t i = 0; out && i < o->n; i++) {
    const placed_state *x = &s[entry_at(o, i)];
    out[i] = x->bits;
    if (!x->place.when && !out_put_null_at(o->rows, to, i)) return false;
  }
  return out && put_places(o, c, to + 1);
}

static bool put_strings(const output *o, const fold_column *c, int32_t to) {
  const string_state *s = c->states;
  for (int64_t i = 0; i < o->n; i++) {
    const string_state *x = &s[entry_at(o, i)];
    uint8_t *space = out_put_space_at(o->rows, to, i, x->length);
    if (!space || (!x->place.when && !out_put_null_at(o->rows, to, i))) return false;
    if (x->length) memcpy(space, fold_string(o->f, x), (size_t)x->length);
  }
  return !fold_is_placed(c->a) || put_places(o, c, to + 1);
}

static bool put_column(const output *o, const fold_column *c, int32_t to) {
  const int64_t *counts = c->states;
  uint64_t *out;
  switch (c->kind) {
    case FOLD_ROWS: return true;
    case FOLD_COUNT:
      out = out_reserve(o->rows, to, o->n);
      for (int64_t i = 0; out && i < o->n; i++) out[i] = (uint64_t)counts[entry_at(o, i)];
      return out != NULL;
    case FOLD_INTEGER: return put_integers(o, c->states, to);
    case FOLD_FLOAT: return put_floats(o, c->states, to);
    case FOLD_LEAST: return put_least(o, c, to);
    case FOLD_PLACED: return put_placed(o, c, to);
    case FOLD_STRING: return put_strings(o, c, to);
  }
  return false;
}

bool fold_put(const output *o) {
  int32_t to = 2 + o->f->keys;
  bool ok = put_entries(o);
  for (int32_t i = 0; ok && i < o->f->functions.n; i++) {
    ok = put_column(o, &o->f->column[i], to);
    to += fold_columns_of(&o->f->column[i]);
  }
  return ok;
}

bool fold_init_output(const ps_fold *f, out_rows *rows) {
  bool *is_bytes = memory_new((size_t)f->partial_columns * sizeof *is_bytes);
  if (!is_bytes) return false;
  for (int32_t i = 0; i < f->partial_columns; i++) is_bytes[i] = type_is_bytes(f->partial_types[i]);
  bool ok = out_rows_init(rows, f->partial_columns, is_bytes);
  memory_free(is_bytes);
  return ok;
}

static ps_code hand_over(const output *o, bool ok, struct ArrowArray *out) {
  if (ok) {
    out_end_rows(o->rows, o->n);
    ok = out_rows_shell(o->rows, out);
  }
  if (ok) out_rows_move(o->rows, out);
  out_rows_free(o->rows);
  return ok ? PS_OK : PS_NO_MEMORY;
}

ps_code ps_fold_get_partials(ps_fold *f, int64_t from, int64_t most, struct ArrowArray *out) {
  if (f->broken) return PS_CLOSED;
  if (from == 0) {
    combine_end(f);
    if (!fold_drop_before(f, f->start_next)) return PS_NO_MEMORY;
  }
  if (from >= f->n) return PS_END;
  out_rows rows;
  if (!fold_init_output(f, &rows)) return PS_NO_MEMORY;
  output o = {.f = f, .from = from, .n = f->n - from < most ? f->n - from : most, .rows = &rows};
  return hand_over(&o, fold_put(&o) && put_keys(&o), out);
}

ps_code ps_fold_get_keys(const ps_fold *f, struct ArrowArray *out) {
  if (f->broken) return PS_CLOSED;
  assert(f->keys_known > 0);
  bool *is_bytes = memory_new((size_t)(1 + f->keys) * sizeof *is_bytes);
  if (!is_bytes) return PS_NO_MEMORY;
  for (int32_t i = 1; i <= f->keys; i++) is_bytes[i] = type_is_bytes(f->column_types[i]);
  out_rows rows;
  bool ok = out_rows_init(&rows, 1 + f->keys, is_bytes);
  memory_free(is_bytes);
  if (!ok) return PS_NO_MEMORY;
  output o = {.f = f, .n = f->keys_known, .keys = true, .rows = &rows};
  uint64_t *numbers = out_reserve(&rows, 0, o.n);
  for (int64_t i = 0; numbers && i < o.n; i++) numbers[i] = (uint64_t)i;
  return hand_over(&o, numbers && put_keys(&o), out);
}
