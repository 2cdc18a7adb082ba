/*
 * combine.c - windows out of the entries of a fold: see fold.h.
 *
 * A pass gathers the entries in the order of their slices and lets the slices enter and leave the totals of their keys,
 * as pane_hive.h does with the slices of its inputs: each once (partial.h), however many windows it is in.
 *
 *   slice   0        1     2            begin[], and where its entries lie: from[i] to from[i + 1]
 *   keys    [17 4 2] [17]  [4 9]        beside it rows, and a column of partials per aggregate
 *
 *           first ... flipped ... end    slices [first, end) are in the totals, those before `flipped` in the front
 * stacks
 *
 * What a pass gathers refers to the fold, so it ends when the fold changes; the next one goes on at start_next.
 */
#include "partials/fold.h"
#include "columns/output.h"
#include "keys/key_order.h"
#include "windows/window_rows.h"

struct combine_pass {
  int64_t slices;
  int64_t keys_known; /* when it began: what is indexed by key has as many elements, though the fold may learn more */
  uint64_t *begin;
  int64_t *from;
  uint32_t *keys;
  const int64_t *rows; /* each `step` behind the one before: read from the fold's entries, if they lie in that order */
  int64_t step;
  int64_t *rows_own; /* if they do not */
  void **columns;
  const partial_kind **kinds;
  bool stacked; /* some function needs the two stacks */
  int64_t first, flipped, end;
  int64_t *rows_of; /* by key number: rows in the window */
  uint32_t *came;   /* keys that were not in it before a slice entered */
  bool changed;     /* other keys have rows than at the last window */
  int64_t live;     /* how many had then */
  partial_totals *totals;
  key_order key_order;
};

/* ---- gathering ---- */

static void pass_free(ps_fold *f, combine_pass *p) {
  for (int32_t a = 0; a < f->functions.n; a++) {
    if (p->totals && p->totals[a].total) partial_drop(p->kinds[a], p->totals[a].total, p->keys_known);
    if (p->totals) memory_free(p->totals[a].total);
    if (p->totals) memory_free(p->totals[a].front);
    if (p->columns && p->columns[a] != f->column[a].states) memory_free(p->columns[a]);
  }
  key_order_free(&p->key_order);
  memory_free(p->totals);
  memory_free(p->columns);
  memory_free(p->kinds);
  memory_free(p->rows_of);
  memory_free(p->came);
  memory_free(p->rows_own);
  memory_free(p->keys);
  memory_free(p->from);
  memory_free(p->begin);
  memory_free(p);
}

void combine_end(ps_fold *f) {
  if (f->pass) pass_free(f, f->pass);
  f->pass = NULL;
}

/* Merges runs of 1, 2, 4, ... */
uint32_t *fold_sort_slices(const ps_fold *f, uint32_t *order) {
  uint32_t *here = order, *there = order + f->slices;
  for (int64_t i = 0; i < f->slices; i++) here[i] = (uint32_t)i;
  for (int64_t run = 1; run < f->slices; run *= 2) {
    for (int64_t a = 0; a < f->slices; a += 2 * run) {
      int64_t b = a + run < f->slices ? a + run : f->slices, c = b + run < f->slices ? b + run : f->slices;
      for (int64_t i = a, j = b, k = a; k < c; k++) {
        bool left = j == c || (i < b && f->begin[here[i]] < f->begin[here[j]]);
        there[k] = left ? here[i++] : here[j++];
      }
    }
    uint32_t *other = here;
    here = there;
    there = other;
  }
  return here;
}

/* How many entries each slice has, and their keys, if they lie in the order of their slices: as a rule, since rows come
   mostly in the order of time. False: they do not, or there are none. */
static bool count_in_order(const ps_fold *f, combine_pass *p, int64_t *of_slice) {
  uint64_t last = 0;
  for (int64_t e = 0; e < f->n;) {
    uint64_t number = f->entry[e].pair >> 32, begin = f->begin[number];
    if (e > 0 && begin <= last) return false;
    last = begin;
    int64_t from = e;
    for (; e < f->n && f->entry[e].pair >> 32 == number; e++) p->keys[e] = (uint32_t)f->entry[e].pair;
    of_slice[number] = e - from;
  }
  return f->n > 0;
}

static void count_any(const ps_fold *f, int64_t *of_slice) {
  memset(of_slice, 0, (size_t)f->slices * sizeof *of_slice);
  for (int64_t e = 0; e < f->n; e++) of_slice[f->entry[e].pair >> 32]++;
}

/* Where the entries of each slice go; from then on of_slice says so, too. Slices that begin before start_next are in no
   window to come; they come first, and the pass begins behind them. */
static void place_slices(const ps_fold *f, combine_pass *p, const uint32_t *sorted, int64_t *of_slice) {
  int64_t from = 0;
  for (int64_t i = 0; i < f->slices; i++) {
    p->begin[i] = f->begin[sorted[i]];
    p->from[i] = from;
    if (p->begin[i] < f->start_next) p->first = i + 1;
    from += of_slice[sorted[i]];
    of_slice[sorted[i]] = p->from[i];
  }
  p->from[f->slices] = from;
  p->slices = f->slices;
  p->flipped = p->end = p->first;
}

/* Entries that do not lie in the order of their slices: place[e] is where each one goes. */
static bool place_entries(const ps_fold *f, combine_pass *p, int64_t *of_slice, uint32_t **place) {
  size_t n = (size_t)f->n + 1;
  p->rows_own = memory_resize(NULL, n * sizeof *p->rows_own);
  *place = memory_resize(NULL, n * sizeof **place);
  if (!p->rows_own || !*place) return false;
  for (int64_t e = 0; e < f->n; e++) {
    uint32_t to = (*place)[e] = (uint32_t)of_slice[f->entry[e].pair >> 32]++;
    p->keys[to] = (uint32_t)f->entry[e].pair;
    p->rows_own[to] = f->entry[e].rows;
  }
  p->rows = p->rows_own;
  p->step = 1;
  return true;
}

/* States in the form of partial.h. Within a slice the fold has decided which row is first or last; slices differ in
   time, so stream and position are not needed any more. No `place`: they stay where they are. */
static void gather_column(const ps_fold *f, const fold_column *c, const uint32_t *place, void *to, size_t size) {
  const placed_state *placed = c->states;
  const string_state *strings = c->states;
  fold_kind kind = c->kind;
  for (int64_t e = 0, n = f->n; e < n; e++) {
    int64_t at = place ? place[e] : e;
    if (kind == FOLD_PLACED) {
      ((placed_partial *)to)[at] = (placed_partial){placed[e].place.when, 0, placed[e].bits};
    } else if (kind == FOLD_STRING) {
      const string_state *s = &strings[e];
      ((bytes_partial *)to)[at] = (bytes_partial){s->place.when, 0, fold_string(f, s), s->length};
    } else {
      memcpy((uint8_t *)to + (size_t)at * size, (const uint8_t *)c->states + (size_t)e * size, size);
    }
  }
}

/* Whether the states of the fold can be read where they are. Stacks change theirs. */
static bool as_they_are(const fold_column *c, const partial_kind *kind, bool in_order) {
  return in_order && !kind->stacked && c->kind != FOLD_PLACED && c->kind != FOLD_STRING;
}

static bool pass_columns(const ps_fold *f, combine_pass *p, const uint32_t *place) {
  size_t n = (size_t)f->n + 1, keys = (size_t)f->keys_known + 1;
  for (int32_t a = 0; a < f->functions.n; a++) {
    const partial_kind *kind = p->kinds[a] = partial_kind_of(&f->functions.each[a]);
    p->stacked |= kind->stacked;
    if (!kind->size) continue;
    bool borrowed = as_they_are(&f->column[a], kind, !place);
    p->columns[a] = borrowed ? f->column[a].states : memory_resize(NULL, n * kind->size); /* all is written below */
    p->totals[a].total = memory_new(keys * kind->size);
    if (kind->stacked) p->totals[a].front = memory_new(keys * kind->size);
    if (!p->columns[a] || !p->totals[a].total || (kind->stacked && !p->totals[a].front)) return false;
    if (!borrowed) gather_column(f, &f->column[a], place, p->columns[a], kind->size);
  }
  return true;
}

static bool gather(const ps_fold *f, combine_pass *p, uint32_t *order, int64_t *of_slice) {
  uint32_t *place = NULL;
  bool in_order = count_in_order(f, p, of_slice);
  if (!in_order) count_any(f, of_slice);
  place_slices(f, p, fold_sort_slices(f, order), of_slice);
  if (in_order) {
    p->rows = &f->entry->rows;
    p->step = sizeof *f->entry / sizeof *p->rows;
  }
  bool ok = (in_order || place_entries(f, p, of_slice, &place)) && pass_columns(f, p, place);
  memory_free(place);
  return ok;
}

static bool pass_fill(const ps_fold *f, combine_pass *p) {
  size_t slices = (size_t)f->slices + 1, functions = (size_t)f->functions.n, keys = (size_t)f->keys_known + 1;
  uint32_t *order = memory_new(2 * slices * sizeof *order);
  int64_t *of_slice = memory_new(slices * sizeof *of_slice);
  p->begin = memory_new(slices * sizeof *p->begin);
  p->from = memory_new(slices * sizeof *p->from);
  p->keys = memory_resize(NULL, ((size_t)f->n + 1) * sizeof *p->keys);
  p->rows_of = memory_new(keys * sizeof *p->rows_of);
  p->came = memory_resize(NULL, keys * sizeof *p->came);
  p->kinds = memory_new(functions * sizeof *p->kinds);
  p->columns = memory_new(functions * sizeof *p->columns);
  p->totals = memory_new(functions * sizeof *p->totals);
  bool ok = order && of_slice && p->begin && p->from && p->keys && p->rows_of && p->came && p->kinds && p->columns &&
            p->totals && key_order_expect(&p->key_order, f->keys_known) && gather(f, p, order, of_slice);
  memory_free(order);
  memory_free(of_slice);
  return ok;
}

static bool combine_begin(ps_fold *f) {
  combine_pass *p = memory_new(sizeof *p);
  if (!p) return false;
  p->changed = true;
  p->keys_known = f->keys_known;
  bool ok = key_order_init(&p->key_order, &f->table, f->keys, f->column_types + 1) && pass_fill(f, p);
  if (ok) {
    f->pass = p;
  } else {
    pass_free(f, p);
  }
  return ok;
}

/* ---- slices enter and leave ---- */

static partial_list slice_list(const combine_pass *p, int32_t a, int64_t slice) {
  int64_t from = p->from[slice];
  uint8_t *partials = p->columns[a];
  return (partial_list){.keys = p->keys + from,
                        .partials = partials ? partials + (size_t)from * p->kinds[a]->size : NULL,
                        .n = p->from[slice + 1] - from};
}

/* Rows of a slice enter; gives how many keys came with them. */
static int64_t rows_enter(combine_pass *p, int64_t slice) {
  const uint32_t *keys = p->keys;
  const int64_t *rows = p->rows;
  int64_t *rows_of = p->rows_of, step = p->step, came = 0;
  for (int64_t i = p->from[slice], end = p->from[slice + 1]; i < end; i++) {
    uint32_t k = p->came[came] = keys[i];
    came += rows_of[k] == 0;
    rows_of[k] += rows[i * step];
  }
  p->changed |= came > 0;
  return came;
}

static void rows_leave(combine_pass *p, int64_t slice) {
  const uint32_t *keys = p->keys;
  const int64_t *rows = p->rows;
  int64_t *rows_of = p->rows_of, step = p->step;
  bool gone = false;
  for (int64_t i = p->from[slice], end = p->from[slice + 1]; i < end; i++) {
    uint32_t k = keys[i];
    rows_of[k] -= rows[i * step];
    gone |= rows_of[k] == 0;
  }
  p->changed |= gone;
}

static bool enter(const ps_fold *f, combine_pass *p) {
  int64_t slice = p->end++;
  bool ok = key_order_list(&p->key_order, p->came, rows_enter(p, slice)); /* the others are listed */
  for (int32_t a = 0; ok && a < f->functions.n; a++) {
    partial_list list = slice_list(p, a, slice);
    if (p->kinds[a]->size) ok = p->kinds[a]->enter(&p->totals[a], &list);
  }
  return ok;
}

/* The front stacks are empty: everything goes there, the newest slice first. */
static void flip(const ps_fold *f, combine_pass *p) {
  for (int64_t slice = p->end; slice-- > p->first;) {
    for (int32_t a = 0; a < f->functions.n; a++) {
      partial_list list = slice_list(p, a, slice);
      if (p->kinds[a]->stacked) p->kinds[a]->push(&p->totals[a], &list);
    }
  }
  p->flipped = p->end;
}

static bool leave(const ps_fold *f, combine_pass *p) {
  if (p->stacked && p->first == p->flipped) flip(f, p);
  int64_t slice = p->first++;
  rows_leave(p, slice);
  bool ok = true;
  for (int32_t a = 0; a < f->functions.n; a++) {
    partial_list list = slice_list(p, a, slice);
    if (p->kinds[a]->stacked) {
      p->kinds[a]->pop(&p->totals[a], &list);
    } else if (p->kinds[a]->size) {
      ok = p->kinds[a]->leave(&p->totals[a], &list) && ok;
    }
  }
  return ok;
}

/* ---- windows ---- */

/* The keys that have rows in the window: how many, or -1 when out of memory. */
static int64_t live_keys(combine_pass *p) {
  if (p->changed) p->live = key_order_live(&p->key_order, p->rows_of);
  p->changed = p->live < 0;
  return p->live;
}

/* A row for each key that has rows in the window. */
static ps_code put_window(ps_fold *f, combine_pass *p, uint64_t start, ps_fault *fault) {
  bool again = !p->changed && f->rows.rows >= p->live; /* the window before is still there, with the same keys */
  int64_t n = live_keys(p), failed_row = INT64_MAX;
  uint64_t *starts = n < 0 ? NULL : out_reserve(&f->rows, 0, n);
  if (!starts || !key_order_put(&p->key_order, n, again, &f->rows)) return PS_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) starts[i] = start;
  partial_list keys = {.keys = p->key_order.live, .n = n};
  for (int32_t a = 0; a < f->functions.n; a++) {
    int64_t row = 0;
    const aggregate *function = &f->functions.each[a];
    ps_code code = partial_finish(function, &p->totals[a], &keys, p->rows_of, &f->rows, 1 + f->keys + a, &row);
    if (code == PS_NO_MEMORY) return code;
    if (code != PS_OK && row < failed_row) { /* the first row that fails is named, in it the first aggregate */
      failed_row = row;
      *fault = (ps_fault){.ts = (int64_t)start, .aggregate = a, .key = key_table_at(&f->table, keys.keys[row])};
    }
  }
  if (failed_row < INT64_MAX) return PS_OVERFLOW;
  out_end_rows(&f->rows, n);
  return PS_OK;
}

/* The next window that has rows and ends at `until` or before: PS_OK and its start, or PS_EMPTY. */
static ps_code next_window(const ps_fold *f, const combine_pass *p, uint64_t until, uint64_t *start) {
  if (p->first == p->slices) return PS_EMPTY;
  *start = first_start(f->windows, p->begin[p->first]);
  if (*start < f->start_next) *start = f->start_next;
  return *start + f->windows.size <= until ? PS_OK : PS_EMPTY;
}

/* Puts it out. PS_OVERFLOW: it comes again. */
static ps_code step(ps_fold *f, uint64_t start, ps_fault *fault) {
  combine_pass *p = f->pass;
  bool ok = true;
  while (ok && p->end < p->slices && p->begin[p->end] < start + f->windows.size) ok = enter(f, p);
  if (!ok) return PS_NO_MEMORY;
  ps_code code = put_window(f, p, start, fault);
  if (code != PS_OK) return code;
  f->start_next = start + f->windows.advance;
  while (ok && p->first < p->end && p->begin[p->first] < f->start_next) ok = leave(f, p);
  return ok ? PS_OK : PS_NO_MEMORY;
}

/* All windows up to `until` are out. */
static ps_code finish_pass(ps_fold *f, uint64_t until) {
  uint64_t next = until == UINT64_MAX ? UINT64_MAX : first_start(f->windows, until);
  if (next > f->start_next) f->start_next = next;
  combine_end(f);
  return fold_drop_before(f, f->start_next) ? PS_END : PS_NO_MEMORY;
}

ps_code ps_fold_get_windows(ps_fold *f, uint64_t until, int64_t most, struct ArrowArray *out, ps_fault *fault) {
  if (f->broken) return PS_CLOSED;
  ps_code code = f->pass || combine_begin(f) ? PS_OK : PS_NO_MEMORY;
  uint64_t start = 0;
  while (code == PS_OK && f->rows.rows < most) {
    code = next_window(f, f->pass, until, &start);
    if (code == PS_OK) code = step(f, start, fault);
  }
  if (code == PS_NO_MEMORY) combine_end(f); /* it may have been half-way; the fold is as it was */
  if (code == PS_NO_MEMORY) return code;
  if (f->rows.rows == 0) return code == PS_EMPTY ? finish_pass(f, until) : code;
  if (!out_rows_shell(&f->rows, out)) return PS_NO_MEMORY;
  out_rows_move(&f->rows, out);
  return PS_OK;
}

/* No window starts behind the last start, and no row will be in that one: then this will do, and fits int64. */
uint64_t ps_fold_start(const ps_fold *f) {
  uint64_t last = last_start(f->windows, INT64_MAX);
  return f->start_next < last || f->start_next == UINT64_MAX ? f->start_next : last;
}

ps_code ps_fold_fault_key(const ps_fold *f, const ps_fault *fault, struct ArrowArray *out) {
  return window_name(fault->ts, fault->key, f->keys, f->column_types + 1, out) ? PS_OK : PS_NO_MEMORY;
}
