/*
 * combine.c - combines the entries of a fold into windows: see fold.h.
 *
 * A pass gathers the entries, sorted by slice, and slides a window over the slices (slices/slide.h):
 *
 *   slice   0        1     2            begin[]; entries from[i] to from[i + 1]
 *   keys    [17 4 2] [17]  [4 9]        parallel: rows, and a column of partials per aggregate
 *
 * The first `skipped` slices begin before start_next: they are in no later window and never shown to the slide. A pass
 * points into the fold, so it ends when the fold changes; the next one resumes at start_next.
 */
#include "partials/fold.h"
#include "slices/slide.h"

struct combine_pass {
  const aggregates *functions;
  int64_t slices, skipped;
  int64_t keys_known; /* when it began; later key numbers are in none of its slices */
  uint64_t *begin;
  int64_t *from;
  uint32_t *keys;
  const int64_t *rows; /* every `step`-th element; in the fold's entries if these are sorted by slice, else rows_own */
  int64_t step;
  int64_t *rows_own;
  void **columns;
  slide slide;
};

/* ---- gathering ---- */

static void show_slice(const void *pass, uint64_t number, slide_slice *to) {
  const combine_pass *p = pass;
  int64_t slice = p->skipped + (int64_t)number, from = p->from[slice];
  to->n = p->from[slice + 1] - from;
  to->limit = p->keys_known;
  to->keys = p->keys + from;
  to->rows = p->rows + from * p->step;
  to->step = p->step;
  for (int32_t a = 0; a < p->functions->n; a++) {
    uint8_t *partials = p->columns[a];
    to->partials[a] =
        (partial_list){.keys = to->keys,
                       .partials = partials ? partials + (size_t)from * kernel_at(p->functions, a)->size : NULL,
                       .n = to->n};
  }
}

/* All but the slide. */
static void gathered_free(ps_fold *f, combine_pass *p) {
  for (int32_t a = 0; p->columns && a < f->functions.n; a++) {
    if (p->columns[a] != f->column[a].states) memory_free(p->columns[a]);
  }
  memory_free(p->columns);
  memory_free(p->rows_own);
  memory_free(p->keys);
  memory_free(p->from);
  memory_free(p->begin);
  memory_free(p);
}

void combine_end(ps_fold *f) {
  if (!f->pass) return;
  slide_free(&f->pass->slide);
  gathered_free(f, f->pass);
  f->pass = NULL;
}

/* Merge sort: runs of 1, 2, 4, ... */
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

/* If the entries are sorted by slice, as they are if rows are sorted by time: counts the entries of each slice and
   copies their keys. False: they are not sorted, or there are none. */
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

/* Replaces the counts in of_slice by the first entry of each slice in the pass. */
static void place_slices(const ps_fold *f, combine_pass *p, const uint32_t *sorted, int64_t *of_slice) {
  int64_t from = 0;
  for (int64_t i = 0; i < f->slices; i++) {
    p->begin[i] = f->begin[sorted[i]];
    p->from[i] = from;
    if (p->begin[i] < f->start_next) p->skipped = i + 1;
    from += of_slice[sorted[i]];
    of_slice[sorted[i]] = p->from[i];
  }
  p->from[f->slices] = from;
  p->slices = f->slices;
}

/* For entries that are not sorted by slice: place[e] is the index of entry e in the pass. */
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

/* Copies states in the form that slices have (kernel.h). `place` NULL: in the same order. */
static void gather_column(const ps_fold *f, const fold_column *c, const uint32_t *place, void *to, size_t size) {
  if (c->a->kernel->gather) {
    c->a->kernel->gather(&(kernel_output){.a = c->a, .states = c->states, .store = &f->store, .n = f->n}, place, to);
    return;
  }
  for (int64_t e = 0, n = f->n; e < n; e++) {
    int64_t at = place ? place[e] : e;
    memcpy((uint8_t *)to + (size_t)at * size, (const uint8_t *)c->states + (size_t)e * size, size);
  }
}

/* Whether the slide can use the fold's own states. Not if stacked: a push overwrites them. */
static bool as_they_are(const kernel *kind, bool in_order) { return in_order && !kind->stacked && !kind->gather; }

static bool pass_columns(const ps_fold *f, combine_pass *p, const uint32_t *place) {
  size_t n = (size_t)f->n + 1;
  for (int32_t a = 0; a < f->functions.n; a++) {
    const kernel *kind = kernel_at(&f->functions, a);
    if (!kind->size) continue;
    bool borrowed = as_they_are(kind, !place);
    p->columns[a] = borrowed ? f->column[a].states : memory_resize(NULL, n * kind->size); /* all is written below */
    if (!p->columns[a]) return false;
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
  size_t slices = (size_t)f->slices + 1;
  uint32_t *order = memory_new(2 * slices * sizeof *order);
  int64_t *of_slice = memory_new(slices * sizeof *of_slice);
  p->begin = memory_new(slices * sizeof *p->begin);
  p->from = memory_new(slices * sizeof *p->from);
  p->keys = memory_resize(NULL, ((size_t)f->n + 1) * sizeof *p->keys);
  p->columns = memory_new((size_t)f->functions.n * sizeof *p->columns);
  bool ok = order && of_slice && p->begin && p->from && p->keys && p->columns && gather(f, p, order, of_slice);
  memory_free(order);
  memory_free(of_slice);
  return ok;
}

static bool combine_begin(ps_fold *f) {
  combine_pass *p = memory_new(sizeof *p);
  if (!p) return false;
  p->functions = &f->functions;
  p->keys_known = f->keys_known;
  slide_keys keys = {&f->table, f->keys, f->column_types + 1};
  bool ok = pass_fill(f, p) && slide_init(&p->slide, &f->functions, &keys, (slide_source){show_slice, p});
  if (!ok) {
    gathered_free(f, p);
    return false;
  }
  f->pass = p;
  return true;
}

/* ---- windows ---- */

/* The oldest slice held, or if none is, the next to enter; the next to enter. p->slices: none. */
static int64_t oldest(const combine_pass *p) { return p->skipped + (int64_t)slide_first(&p->slide); }
static int64_t next(const combine_pass *p) { return p->skipped + (int64_t)slide_end(&p->slide); }

/* The next window that has rows and ends at or before `until`: PS_OK and its start, or PS_EMPTY. */
static ps_code next_window(const ps_fold *f, const combine_pass *p, uint64_t until, uint64_t *start) {
  if (oldest(p) == p->slices) return PS_EMPTY;
  *start = first_start(f->windows, p->begin[oldest(p)]);
  if (*start < f->start_next) *start = f->start_next;
  return *start + f->windows.size <= until ? PS_OK : PS_EMPTY;
}

/* Emits the window and removes it. After PS_OVERFLOW the next call tries it again. */
static ps_code step(ps_fold *f, uint64_t start, ps_fault *fault) {
  combine_pass *p = f->pass;
  bool ok = true;
  while (ok && next(p) < p->slices && p->begin[next(p)] < start + f->windows.size) ok = slide_enter(&p->slide);
  if (!ok) return PS_NO_MEMORY;
  ps_code code = slide_emit(&p->slide, (int64_t)start, &f->rows, fault);
  if (code != PS_OK) return code;
  f->start_next = start + f->windows.advance;
  while (ok && oldest(p) < next(p) && p->begin[oldest(p)] < f->start_next) ok = slide_leave(&p->slide);
  return ok ? PS_OK : PS_NO_MEMORY;
}

/* Called when all windows up to `until` are emitted. */
static ps_code finish_pass(ps_fold *f, uint64_t until) {
  uint64_t next = until == UINT64_MAX ? UINT64_MAX : first_start(f->windows, until);
  if (next > f->start_next) f->start_next = next;
  combine_end(f);
  return fold_drop_before(f, f->start_next) ? PS_END : PS_NO_MEMORY;
}

/* Whether a call can emit rows. A pass gathers all entries, so it begins only if some window is complete. */
static bool has_work(const ps_fold *f, uint64_t until) {
  return f->pass || f->rows.rows > 0 || until == UINT64_MAX || first_start(f->windows, until) > f->start_next;
}

ps_code ps_fold_get_windows(ps_fold *f, uint64_t until, int64_t most, struct ArrowArray *out, ps_fault *fault) {
  if (f->broken) return PS_CLOSED;
  if (!has_work(f, until)) return PS_END;
  ps_code code = f->pass || combine_begin(f) ? PS_OK : PS_NO_MEMORY;
  uint64_t start = 0;
  while (code == PS_OK && f->rows.rows < most) {
    code = next_window(f, f->pass, until, &start);
    if (code == PS_OK) code = step(f, start, fault);
  }
  if (code == PS_NO_MEMORY) combine_end(f); /* the pass is undefined, the fold unchanged */
  if (code == PS_NO_MEMORY) return code;
  if (f->rows.rows == 0) return code == PS_EMPTY ? finish_pass(f, until) : code;
  if (!out_rows_shell(&f->rows, out)) return PS_NO_MEMORY;
  out_rows_move(&f->rows, out);
  return PS_OK;
}

/* At most the last start below 2^63: no row is in a later window, and the result fits int64. */
uint64_t ps_fold_start(const ps_fold *f) {
  uint64_t last = last_start(f->windows, INT64_MAX);
  return f->start_next < last || f->start_next == UINT64_MAX ? f->start_next : last;
}

ps_code ps_fold_fault_key(const ps_fold *f, const ps_fault *fault, struct ArrowArray *out) {
  return window_name(fault->ts, fault->key, f->keys, f->column_types + 1, out) ? PS_OK : PS_NO_MEMORY;
}
