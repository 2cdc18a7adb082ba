/*
 * slide.c - see slide.h.
 *
 * Why a slice costs O(1) per key, whatever the number of windows it is in. How it leaves depends on the function:
 *
 *   Sums and counts are subtracted. That is exact: counts are integers, sums are integers or exact sums (exact_sum.h),
 *   so x + y - y is x to the bit. Only partial_finish rounds.
 *
 *   Last is the newest tuple so far. When its slice leaves, all older slices have left.
 *
 *   The others (kernel.stacked) cannot be subtracted. Their slices are in two stacks, the older ones in the front:
 *
 *           oldest                            newest
 *           [ a ] [ b ] [ c ]  |  [ d ] [ e ]
 *           <----- front        back ------->
 *
 *   Each stack has one value per key: the best of a, b, c and the best of d, e. A window's value is the better of the
 *   two. A slice enters the back: one comparison per key. The slice that leaves is the top of the front: its partials
 *   hold the front's value without it, so leaving is one copy per key. When the front is empty, the stacks flip: all
 *   slices are pushed from the back to the front, newest first. A push saves the front's value in the slice's partials:
 *
 *                            front      a's place   b's place   c's place
 *           push c           c                                  none
 *           push b           b+c                    c           none
 *           push a           a+b+c      b+c         c           none          (+: the better one)
 *
 *   A slice is pushed once and popped once, so per key it costs an enter, a push and a pop.
 *
 * What is skipped if no key changed. Overlapping windows often have the same keys. `changed` is set when a key appears
 * (it had 0 tuples) or disappears (it has 0 now). While it is not set, key_order.live is valid without a pass over all
 * listed keys; and if the rows before are those of the previous window, their key columns are copied as a block.
 */
#include "slices/slide.h"

/* ---- making ---- */

bool slide_init(slide *s, const aggregates *functions, const slide_keys *keys, slide_source source) {
  *s = (slide){.functions = functions, .source = source, .changed = true};
  for (int32_t a = 0; a < functions->n; a++) s->stacked |= kernel_at(functions, a)->stacked;
  s->totals = memory_new((size_t)functions->n * sizeof *s->totals);
  s->partials = memory_new((size_t)functions->n * sizeof *s->partials);
  if (s->totals && s->partials && key_order_init(&s->key_order, keys->table, keys->columns, keys->types)) return true;
  memory_free(s->totals);
  memory_free(s->partials);
  return false;
}

void slide_free(slide *s) {
  for (int32_t a = 0; a < s->functions->n; a++) {
    if (s->totals[a].total) partial_drop(kernel_at(s->functions, a), s->totals[a].total, s->capacity);
    memory_free(s->totals[a].total);
    memory_free(s->totals[a].front);
  }
  memory_free(s->totals);
  memory_free(s->partials);
  memory_free(s->rows);
  memory_free(s->came);
  key_order_free(&s->key_order);
}

bool slide_expect(slide *s, int64_t limit) {
  if (limit <= s->capacity) return true;
  if (limit < 2 * s->capacity) limit = 2 * s->capacity; /* amortized: keys may appear one at a time */
  bool ok = key_order_expect(&s->key_order, limit) &&
            memory_extend((void **)&s->rows, s->capacity, limit, sizeof *s->rows) &&
            memory_extend((void **)&s->came, s->capacity, limit, sizeof *s->came);
  for (int32_t a = 0; ok && a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    size_t size = kind->size;
    if (size) ok = memory_extend(&s->totals[a].total, s->capacity, limit, size);
    if (ok && kind->stacked) ok = memory_extend(&s->totals[a].front, s->capacity, limit, size);
  }
  if (ok) s->capacity = limit;
  return ok;
}

/* ---- tuples per key ---- */

/* Layout of a slice's rows: a constant of each call of the loops below, except for the step of folds. */
typedef struct {
  bool unfolded; /* no array: one tuple each */
  bool dense;    /* entry i is of key number i, which has no tuples if its rows are 0 */
  int64_t step;
} rows_form;

/* Lists in s->came the keys that appear, and returns their number: mostly none, or all. */
static inline int64_t rows_enter_by(const slide *s, const slide_slice *v, rows_form form) {
  const uint32_t *keys = v->keys;
  const int64_t *own = v->rows;
  uint32_t *came = s->came;
  int64_t *rows = s->rows, n_came = 0;
  for (int64_t i = 0, n = v->n; i < n; i++) {
    uint32_t k = form.dense ? (uint32_t)i : keys[i];
    int64_t more = form.unfolded ? 1 : own[i * form.step];
    if (__builtin_expect(rows[k] == 0 && (!form.dense || more), 0)) came[n_came++] = k;
    rows[k] += more;
  }
  return n_came;
}

/* Returns whether a key disappears. */
static inline bool rows_leave_by(const slide *s, const slide_slice *v, rows_form form) {
  const uint32_t *keys = v->keys;
  const int64_t *own = v->rows;
  int64_t *rows = s->rows;
  bool went = false;
  for (int64_t i = 0, n = v->n; i < n; i++) {
    uint32_t k = form.dense ? (uint32_t)i : keys[i];
    int64_t fewer = form.unfolded ? 1 : own[i * form.step], left = rows[k] - fewer;
    rows[k] = left;
    if (!form.dense) went |= left == 0;
    if (form.dense && __builtin_expect(left == 0, 0)) went |= fewer > 0; /* few keys have no tuples */
  }
  return went;
}

static bool rows_enter(slide *s, const slide_slice *v) {
  int64_t came = !v->rows       ? rows_enter_by(s, v, (rows_form){.unfolded = true})
                 : v->dense     ? rows_enter_by(s, v, (rows_form){.dense = true, .step = 1})
                 : v->step == 1 ? rows_enter_by(s, v, (rows_form){.step = 1})
                                : rows_enter_by(s, v, (rows_form){.step = v->step});
  s->changed |= came > 0;
  return key_order_list(&s->key_order, s->came, came); /* the other keys are listed already */
}

static void rows_leave(slide *s, const slide_slice *v) {
  s->changed |= !v->rows       ? rows_leave_by(s, v, (rows_form){.unfolded = true})
                : v->dense     ? rows_leave_by(s, v, (rows_form){.dense = true, .step = 1})
                : v->step == 1 ? rows_leave_by(s, v, (rows_form){.step = 1})
                               : rows_leave_by(s, v, (rows_form){.step = v->step});
}

/* ---- slices ---- */

bool slide_add(slide *s, const slide_slice *v) {
  bool ok = slide_expect(s, v->limit) && rows_enter(s, v);
  for (int32_t a = 0; ok && a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    if (kind->size) ok = kind->enter(&s->totals[a], &v->partials[a]);
  }
  return ok;
}

bool slide_subtract(slide *s, const slide_slice *v) {
  bool ok = true;
  rows_leave(s, v);
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    if (kind->leave) ok = kind->leave(&s->totals[a], &v->partials[a]) && ok;
  }
  return ok;
}

static slide_slice show(const slide *s, uint64_t number) {
  slide_slice v = slide_blank(s);
  s->source.show(s->source.driver, number, &v);
  return v;
}

/* Called when the front is empty. */
static void flip(slide *s) {
  for (uint64_t number = s->end; number-- > s->first;) {
    slide_slice v = show(s, number);
    for (int32_t a = 0; a < s->functions->n; a++) {
      const kernel *kind = kernel_at(s->functions, a);
      if (kind->stacked) kind->push(&s->totals[a], &v.partials[a]);
    }
  }
  s->flipped = s->end;
}

bool slide_enter(slide *s) {
  slide_slice v = show(s, s->end);
  if (!slide_add(s, &v)) return false;
  s->end++;
  return true;
}

bool slide_leave(slide *s) {
  assert(!slide_is_empty(s));
  if (s->stacked && s->first == s->flipped) flip(s);
  slide_slice v = show(s, s->first++);
  for (int32_t a = 0; s->stacked && a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    if (kind->stacked) kind->pop(&s->totals[a], &v.partials[a]);
  }
  return slide_subtract(s, &v);
}

/* ---- slices that are not held ---- */

void slide_copy_back(const slide *s, const slide_slice *v) {
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    size_t size = kind->size;
    const uint8_t *back = s->totals[a].total;
    uint8_t *to = v->partials[a].partials;
    for (int64_t i = 0; kind->stacked && i < v->n; i++) {
      memcpy(to + (size_t)i * size, back + v->keys[i] * size, size);
    }
  }
}

void slide_restore_back(slide *s, const slide_slice *v) {
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    partial_totals back = {.front = s->totals[a].total};
    if (kind->stacked) kind->pop(&back, &v->partials[a]);
  }
}

void slide_clear(slide *s, const slide_slice *v) {
  s->changed = true;
  for (int64_t i = 0; i < v->n; i++) s->rows[v->keys[i]] = 0;
  for (int32_t a = 0; a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    for (int64_t i = 0; kind->size && i < v->n; i++) {
      uint8_t *total = (uint8_t *)s->totals[a].total + v->keys[i] * kind->size;
      partial_drop(kind, total, 1);
      memset(total, 0, kind->size);
    }
  }
}

void **slide_copy_fronts(const slide *s) {
  void **fronts = memory_new((size_t)s->functions->n * sizeof *fronts);
  for (int32_t a = 0; fronts && a < s->functions->n; a++) {
    const kernel *kind = kernel_at(s->functions, a);
    if (!kind->stacked || s->capacity == 0) continue;
    size_t size = (size_t)s->capacity * kind->size;
    fronts[a] = memory_new(size);
    if (!fronts[a]) {
      slide_free_fronts(s, fronts);
      return NULL;
    }
    memcpy(fronts[a], s->totals[a].front, size);
  }
  return fronts;
}

void slide_free_fronts(const slide *s, void **fronts) {
  for (int32_t a = 0; fronts && a < s->functions->n; a++) memory_free(fronts[a]);
  memory_free(fronts);
}

/* ---- the window ---- */

/* Number of keys with tuples; -1: out of memory. */
static int64_t live_keys(slide *s) { return s->changed ? key_order_live(&s->key_order, s->rows) : s->live; }

bool slide_visit(slide *s, const slide_states *what, window_visit visit, void *context) {
  const aggregates *f = s->functions;
  int64_t n = live_keys(s);
  for (int64_t i = 0; i < n; i++) {
    uint32_t k = s->key_order.live[i];
    for (int32_t a = 0; a < f->n; a++) {
      partial_save(&f->each[a], &s->totals[a], k, s->rows[k], what->until, what->state + f->each[a].offset);
    }
    if (!visit(context, what->start, key_table_at(s->key_order.table, k), what->state)) return false;
  }
  return n >= 0;
}

/* The columns of the aggregates. */
static ps_code emit_results(const slide *s, int64_t start, int64_t n, out_rows *rows, ps_fault *fault) {
  partial_list keys = {.keys = s->key_order.live, .n = n};
  int64_t failed_row = INT64_MAX;
  for (int32_t a = 0; a < s->functions->n; a++) {
    int64_t row = 0;
    int32_t to = 1 + s->key_order.columns + a;
    ps_code code = partial_finish(&s->functions->each[a], &s->totals[a], &keys, s->rows, rows, to, &row);
    if (code == PS_NO_MEMORY) return code;
    if (code != PS_OK && row < failed_row) { /* name the first row that fails, in it the first aggregate */
      failed_row = row;
      *fault = (ps_fault){.ts = start, .aggregate = a, .key = key_table_at(s->key_order.table, keys.keys[row])};
    }
  }
  return failed_row < INT64_MAX ? PS_OVERFLOW : PS_OK;
}

ps_code slide_emit(slide *s, int64_t start, out_rows *rows, ps_fault *fault) {
  bool again = !s->changed && rows->rows >= s->live; /* the rows before are of the previous window: the same keys */
  int64_t n = live_keys(s);
  uint64_t *starts = n < 0 ? NULL : out_reserve(rows, 0, n);
  if (!starts || !key_order_put(&s->key_order, n, again, rows)) return PS_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) starts[i] = (uint64_t)start;
  ps_code code = emit_results(s, start, n, rows, fault);
  if (code != PS_OK) return code;
  out_end_rows(rows, n);
  s->live = n;
  s->changed = false;
  return PS_OK;
}
