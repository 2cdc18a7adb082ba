/* pane_save.c - see pane_save.h. */
#include "slices/pane_save.h"

#include <stdlib.h>

/* ---- making ---- */

bool pane_saver_init(pane_saver *s, pane_hive *h, const slide_keys *keys, partial_place until) {
  *s = (pane_saver){.hive = h, .plan = pane_hive_plan(h), .until = until};
  if (!slide_init(&s->sums, s->plan->functions, keys, (slide_source){0})) return false;
  s->state = memory_new((size_t)s->plan->functions->state_size);
  s->fronts = s->state ? slide_copy_fronts(pane_window_slide(pane_hive_window(h))) : NULL;
  if (s->fronts) return true;
  pane_saver_free(s);
  return false;
}

static void source_free(const pane_saver *s, pane_source source) {
  if (source.loan == PANE_OWED) pane_drop(s->plan, source.node);
  if (source.loan != PANE_LENT) memory_free(source.node);
}

void pane_saver_free(pane_saver *s) {
  for (int64_t i = 0; i < s->n; i++) source_free(s, s->source[i]);
  slide_free_fronts(&s->sums, s->fronts);
  memory_free(s->source);
  memory_free(s->state);
  slide_free(&s->sums);
}

/* ---- collecting ---- */

/* Takes ownership of the node, also if it fails. */
static bool add(pane_saver *s, pane_source source) {
  if (source.node && memory_grow((void **)&s->source, &s->capacity, s->n + 1, sizeof *s->source)) {
    s->source[s->n++] = source;
    return true;
  }
  if (source.node) source_free(s, source);
  return false;
}

/* A copy with the fronts as its stacked partials; then removes the slice from the fronts. NULL: out of memory. */
static pane *copy_flipped(pane_saver *s, pane *from) {
  const pane_plan *plan = s->plan;
  size_t size = sizeof *from + flat_size(plan->functions, from->n, from->plain);
  pane *to = memory_new(size);
  if (!to) return NULL;
  memcpy(to, from, size);
  flat_slice own = pane_flat(from), best = pane_flat(to);
  uint8_t *own_at = own.columns, *best_at = best.columns;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    const kernel *kind = kernel_at(plan->functions, a);
    partial_list left = flat_next(&own, plan->functions, a, &own_at);
    partial_list right = flat_next(&best, plan->functions, a, &best_at);
    for (int64_t i = 0; kind->stacked && i < left.n; i++) {
      uint8_t *front = (uint8_t *)s->fronts[a] + left.keys[i] * kind->size;
      memcpy((uint8_t *)right.partials + (size_t)i * kind->size, front, kind->size);
      memcpy(front, (uint8_t *)left.partials + (size_t)i * kind->size, kind->size);
    }
  }
  return to;
}

static bool collect(void *saver, pane *node, pane_loan loan) {
  pane_saver *s = saver;
  bool flipped = loan == PANE_FLIPPED;
  return add(s, flipped ? (pane_source){copy_flipped(s, node), PANE_COPIED} : (pane_source){node, loan});
}

bool pane_saver_owe(pane_saver *s, int32_t input, const batch *b, const uint32_t *numbers, int64_t from,
                    int64_t limit) {
  const pane_plan *plan = s->plan;
  slice scratch;
  if (!slice_init(&scratch, plan->functions, input)) return false;
  bool ok = slice_expect(&scratch, (uint32_t)(limit > 0 ? limit - 1 : 0));
  for (int64_t row = from, end; ok && row < b->rows; row = end) {
    uint64_t begin = last_edge(plan->windows, (uint64_t)batch_ts(b, row));
    uint64_t edge = next_edge(plan->windows, begin);
    for (end = row + 1; end < b->rows && (uint64_t)batch_ts(b, end) < edge;) end++;
    if (!is_covered(plan->windows, begin)) continue;
    ok = slice_fold(&scratch, b, numbers, row, end, false) &&
         add(s, (pane_source){pane_of_slice(&scratch, begin, true), PANE_OWED});
  }
  slice_free(&scratch);
  return ok;
}

/* ---- saving ---- */

/* By begin; owed slices after those that they are subtracted from. */
static int compare(const void *a, const void *b) {
  const pane_source *x = a, *y = b;
  if (x->node->begin != y->node->begin) return x->node->begin < y->node->begin ? -1 : 1;
  return (x->loan == PANE_OWED) - (y->loan == PANE_OWED);
}

static slide_slice shown(const pane_saver *s, const pane_source *source) {
  slide_slice v = slide_blank(&s->sums);
  pane_window_show(s->plan, source->node, &v);
  return v;
}

/* Saves slices [from, to), all of one edge. */
static bool save_slice(pane_saver *s, int64_t from, int64_t to, window_visit visit, void *context) {
  bool ok = true;
  for (int64_t i = from; ok && i < to; i++) {
    slide_slice v = shown(s, &s->source[i]);
    bool owed = s->source[i].loan == PANE_OWED;
    ok = (owed ? slide_subtract : slide_add)(&s->sums, &v);
  }
  slide_states what = {(int64_t)s->source[from].node->begin, s->until, s->state};
  ok = ok && slide_visit(&s->sums, &what, visit, context);
  for (int64_t i = from; ok && i < to; i++) {
    slide_slice v = shown(s, &s->source[i]);
    slide_clear(&s->sums, &v);
  }
  return ok;
}

bool pane_saver_run(pane_saver *s, window_visit visit, void *context) {
  bool ok = pane_hive_visit_slices(s->hive, collect, s);
  if (ok && s->n) qsort(s->source, (size_t)s->n, sizeof *s->source, compare);
  for (int64_t from = 0, to; ok && from < s->n; from = to) {
    for (to = from; to < s->n && s->source[to].node->begin == s->source[from].node->begin;) to++;
    ok = save_slice(s, from, to, visit, context);
  }
  return ok;
}
