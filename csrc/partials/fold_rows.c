/* fold_rows.c - rows into entries: see fold.h. */
#include "partials/fold.h"

/* A block of rows of a batch. */
typedef struct {
  const batch *b;
  int64_t row, rows;
  fold_picked all;    /* the rows in some window */
  fold_picked picked; /* those of them that count for an aggregate */
  uint64_t bits[FOLD_BLOCK];
  const int64_t *ts, *stream, *position; /* of the block's rows; stream and position may be missing */
} block;

static const int64_t *numbers_at(const column *c, int64_t row) { return (const int64_t *)c->values + c->first + row; }

/* The rows that count for the aggregate, without a branch on it. */
static const fold_picked *pick(const aggregate *a, block *k) {
  const column *mask = a->mask < 0 ? NULL : &k->b->columns[a->mask];
  const column *values = a->column < 0 ? NULL : &k->b->columns[a->column];
  if (!mask && !(values && values->validity)) return &k->all;
  int64_t n = 0;
  for (int64_t i = 0; i < k->all.n; i++) {
    int64_t row = k->row + k->all.at[i];
    k->picked.entry[n] = k->all.entry[i];
    k->picked.at[n] = k->all.at[i];
    n += (!mask || column_bool(mask, row)) && !(values && column_is_null(values, row));
  }
  k->picked.n = n;
  return &k->picked;
}

static void fold_counts(int64_t *count, const fold_picked *p) {
  for (int64_t i = 0; i < p->n; i++) count[p->entry[i]]++;
}

static void fold_integers(integer_state *states, const fold_picked *p, const uint64_t *bits, bool is_unsigned) {
  for (int64_t i = 0; i < p->n; i++) {
    integer_state *s = &states[p->entry[i]];
    uint64_t x = bits[p->at[i]];
    s->sum += is_unsigned ? (int128)x : (int128)(int64_t)x;
    s->n++;
  }
}

/* A value that the narrow sum does not take. */
static bool fold_float_rare(ps_fold *f, float_state *s, uint64_t bits) {
  bool wide = s->wide != NULL;
  if (!exact_sum_add_rare(s, bits_double(bits))) return false;
  f->wide += (s->wide != NULL) - wide;
  return true;
}

static bool fold_floats(ps_fold *f, float_state *states, const fold_picked *p, const uint64_t *bits) {
  for (int64_t i = 0, n = p->n; i < n; i++) {
    float_state *s = &states[p->entry[i]];
    uint64_t x = bits[p->at[i]];
    s->n++;
    if (__builtin_expect(!exact_sum_add_narrow(s, x), 0) && !fold_float_rare(f, s, x)) return false;
  }
  return true;
}

static void fold_least(const aggregate *a, least_partial *states, const fold_picked *p, const uint64_t *bits) {
  uint64_t flip = a->function == PS_MAX ? UINT64_MAX : 0;
  for (int64_t i = 0; i < p->n; i++) {
    least_partial *s = &states[p->entry[i]];
    uint64_t word = value_ordered(value_canonical(bits[p->at[i]], a->type), a->type) ^ flip;
    uint64_t least = s->present ? s->word : UINT64_MAX;
    s->word = word < least ? word : least;
    s->present = 1;
  }
}

static fold_place place_of(const block *k, int64_t at) {
  return (fold_place){(uint64_t)k->ts[at] + 1, k->stream ? k->stream[at] : 0, k->position ? k->position[at] : 0};
}

static ps_code fold_placed(const aggregate *a, placed_state *states, const fold_picked *p, const uint64_t *bits,
                           const block *k, ps_fault *fault) {
  bool first = a->function == PS_FIRST;
  for (int64_t i = 0; i < p->n; i++) {
    placed_state *s = &states[p->entry[i]];
    fold_place place = place_of(k, p->at[i]);
    fold_outcome outcome = fold_compete(&s->place, &place, first);
    if (outcome == FOLD_REPLACED) s->bits = bits[p->at[i]];
    if (outcome != FOLD_TWICE) continue;
    fault->row = k->row + p->at[i];
    return PS_TWICE;
  }
  return PS_OK;
}

static ps_code fold_strings(ps_fold *f, const fold_column *c, const fold_picked *p, const block *k, ps_fault *fault) {
  string_state *states = c->states;
  ps_function function = c->a->function;
  assert(c->a->column >= 0);
  bool placed = function == PS_FIRST || function == PS_LAST;
  for (int64_t i = 0; i < p->n; i++) {
    string_state *s = &states[p->entry[i]];
    bytes x = column_bytes(&k->b->columns[c->a->column], k->row + p->at[i]);
    fold_place place = place_of(k, p->at[i]);
    fold_outcome outcome = FOLD_KEPT;
    if (placed) {
      outcome = fold_compete(&s->place, &place, function == PS_FIRST);
    } else if (fold_string_wins(f, s, x, function == PS_MIN)) {
      s->place.when = 1;
      outcome = FOLD_REPLACED;
    }
    if (outcome == FOLD_REPLACED && !fold_keep_string(f, s, x)) return PS_NO_MEMORY;
    if (outcome != FOLD_TWICE) continue;
    fault->row = k->row + p->at[i];
    return PS_TWICE;
  }
  return PS_OK;
}

static ps_code fold_column_rows(ps_fold *f, const fold_column *c, block *k, ps_fault *fault) {
  const aggregate *a = c->a;
  const fold_picked *p = pick(a, k);
  const uint64_t *bits = NULL;
  if (a->column >= 0 && !type_is_bytes(a->type))
    bits = column_widen(&k->b->columns[a->column], k->row, k->rows, k->bits);
  assert(bits || c->kind < FOLD_INTEGER || c->kind == FOLD_STRING);
  switch (c->kind) {
    case FOLD_ROWS: break;
    case FOLD_COUNT: fold_counts(c->states, p); break;
    case FOLD_INTEGER: fold_integers(c->states, p, bits, type_is_unsigned(a->type)); break;
    case FOLD_FLOAT: return fold_floats(f, c->states, p, bits) ? PS_OK : PS_NO_MEMORY;
    case FOLD_LEAST: fold_least(a, c->states, p, bits); break;
    case FOLD_PLACED: return fold_placed(a, c->states, p, bits, k, fault);
    case FOLD_STRING: return fold_strings(f, c, p, k, fault);
  }
  return PS_OK;
}

static ps_code fold_block_rows(ps_fold *f, block *k, ps_fault *fault) {
  if (!fold_reserve(f)) return PS_NO_MEMORY;
  k->ts = numbers_at(&k->b->columns[0], k->row);
  k->stream = f->stream < 0 ? NULL : numbers_at(&k->b->columns[f->stream], k->row);
  k->position = f->position < 0 ? NULL : numbers_at(&k->b->columns[f->position], k->row);
  fold_find(f, &(fold_sought){.n = k->rows, .ts = k->ts, .numbers = f->numbers.numbers + k->row}, &k->all);
  f->total += k->all.n;
  ps_code code = PS_OK;
  for (int32_t i = 0; i < f->functions.n && code == PS_OK; i++) {
    if (f->column[i].kind != FOLD_ROWS) code = fold_column_rows(f, &f->column[i], k, fault);
    fault->aggregate = i;
  }
  return code;
}

/* Whether no timestamp is negative. */
static bool in_range(const batch *b, ps_fault *fault) {
  const int64_t *ts = numbers_at(&b->columns[0], 0);
  int64_t all = 0;
  for (int64_t i = 0; i < b->rows; i++) all |= ts[i];
  if (all >= 0) return true;
  while (ts[fault->row] >= 0) fault->row++;
  fault->ts = ts[fault->row];
  return false;
}

static ps_code fold_batch(ps_fold *f, const batch *b, ps_fault *fault) {
  *fault = (ps_fault){0};
  if (!in_range(b, fault)) return PS_DISORDER;
  combine_end(f);
  if (!fold_number_keys(f, b)) return PS_NO_MEMORY;
  block k; /* not cleared: it is large */
  k.b = b;
  for (k.row = 0; k.row < b->rows; k.row += k.rows) {
    k.rows = b->rows - k.row < FOLD_BLOCK ? b->rows - k.row : FOLD_BLOCK;
    ps_code code = fold_block_rows(f, &k, fault);
    f->broken = code != PS_OK;
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

ps_code ps_fold_add_rows(ps_fold *f, const struct ArrowArray *rows, ps_fault *fault) {
  if (f->broken) return PS_CLOSED;
  batch *b = batch_new(rows, f->columns, f->column_types);
  if (!b) return PS_NO_MEMORY;
  ps_code code = fold_batch(f, b, fault);
  batch_free(b); /* the buffers stay the caller's */
  return code;
}
