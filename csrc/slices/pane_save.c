/* pane_save.c - see pane_save.h. */
#include "slices/pane_save.h"

#include <stdlib.h>

/* ---- making ---- */

static bool fronts_init(pane_saver *s) {
  const pane_window *w = &s->hive->window;
  const pane_plan *plan = &s->hive->plan;
  s->fronts = memory_new((size_t)plan->functions->n * sizeof *s->fronts);
  if (!s->fronts) return false;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    if (!plan->kinds[a]->stacked || w->capacity == 0) continue;
    size_t size = (size_t)w->capacity * plan->kinds[a]->size;
    s->fronts[a] = memory_new(size);
    if (!s->fronts[a]) return false;
    memcpy(s->fronts[a], w->totals[a].front, size);
  }
  return true;
}

bool pane_saver_init(pane_saver *s, pane_hive *h, const pane_keys *keys, partial_place until) {
  *s = (pane_saver){.hive = h, .until = until};
  if (!pane_window_init(&s->sums, &h->plan, keys)) return false;
  s->state = memory_new((size_t)h->plan.functions->state_size);
  if (s->state && fronts_init(s)) return true;
  pane_saver_free(s);
  return false;
}

static void source_free(pane_saver *s, pane_source source) {
  const pane_plan *plan = &s->hive->plan;
  packed p = pane_packed(source.node);
  uint8_t *at = p.columns;
  for (int32_t a = 0; source.kind == PANE_OWED && a < plan->functions->n; a++) {
    partial_list list = packed_next(&p, plan->kinds[a], a, &at);
    if (!list.plain) partial_drop(plan->kinds[a], list.partials, list.n);
  }
  if (source.kind != PANE_LENT) memory_free(source.node);
}

void pane_saver_free(pane_saver *s) {
  for (int64_t i = 0; i < s->n; i++) source_free(s, s->source[i]);
  for (int32_t a = 0; s->fronts && a < s->hive->plan.functions->n; a++) memory_free(s->fronts[a]);
  memory_free(s->fronts);
  memory_free(s->source);
  memory_free(s->state);
  pane_window_free(&s->sums);
}

/* ---- collecting ---- */

/* Takes the node over, also when out of memory. */
static bool put(pane_saver *s, pane_source source) {
  if (source.node && memory_grow((void **)&s->source, &s->capacity, s->n + 1, sizeof *s->source)) {
    s->source[s->n++] = source;
    return true;
  }
  if (source.node) source_free(s, source);
  return false;
}

/* A copy whose stacked partials are the fronts, from which the slice then leaves. NULL when out of memory. */
static pane *copy_flipped(pane_saver *s, pane *from) {
  const pane_plan *plan = &s->hive->plan;
  size_t size = sizeof *from + packed_size(plan->functions, plan->kinds, from->n, from->plain);
  pane *to = memory_new(size);
  if (!to) return NULL;
  memcpy(to, from, size);
  packed own = pane_packed(from), best = pane_packed(to);
  uint8_t *own_at = own.columns, *best_at = best.columns;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    size_t each = plan->kinds[a]->size;
    partial_list left = packed_next(&own, plan->kinds[a], a, &own_at);
    partial_list right = packed_next(&best, plan->kinds[a], a, &best_at);
    for (int64_t i = 0; plan->kinds[a]->stacked && i < left.n; i++) {
      uint8_t *front = (uint8_t *)s->fronts[a] + left.keys[i] * each;
      memcpy((uint8_t *)right.partials + (size_t)i * each, front, each);
      memcpy(front, (uint8_t *)left.partials + (size_t)i * each, each);
    }
  }
  return to;
}

/* The slice as a node of its own. NULL when out of memory. */
static pane *pack(slice *from, uint64_t begin, bool move) {
  uint64_t plain;
  bool owns;
  size_t size = slice_packed_size(from, &plain);
  pane *node = memory_new(sizeof *node + size);
  if (!node) return NULL;
  node->begin = begin;
  node->n = from->n;
  node->limit = from->slot_capacity;
  node->plain = plain;
  if (move) {
    slice_pack(from, node + 1, plain, &owns);
  } else {
    slice_pack_copy(from, node + 1, plain, &owns);
  }
  return node;
}

bool pane_saver_owe(pane_saver *s, int32_t input, const batch *b, const uint32_t *numbers, int64_t from,
                    int64_t limit) {
  const pane_plan *plan = &s->hive->plan;
  slice scratch;
  if (!slice_init(&scratch, plan->functions, plan->kinds, input)) return false;
  bool ok = slice_expect(&scratch, (uint32_t)(limit > 0 ? limit - 1 : 0));
  for (int64_t row = from, end; ok && row < b->rows; row = end) {
    uint64_t begin = last_edge(plan->windows, (uint64_t)batch_ts(b, row));
    uint64_t edge = next_edge(plan->windows, begin);
    for (end = row + 1; end < b->rows && (uint64_t)batch_ts(b, end) < edge;) end++;
    if (!is_covered(plan->windows, begin)) continue;
    ok = slice_fold(&scratch, b, numbers, row, end, false) &&
         put(s, (pane_source){pack(&scratch, begin, true), PANE_OWED});
  }
  slice_free(&scratch);
  return ok;
}

/* What the reader holds, and what waits to be held. */
static bool collect_window(pane_saver *s) {
  const pane_window *w = &s->hive->window;
  bool ok = true;
  for (uint64_t i = w->held_first; ok && i < w->held_end; i++) {
    pane *node = pane_window_held(w, i);
    bool flipped = w->plan->stacked && i < w->held_flipped;
    ok = put(s, flipped ? (pane_source){copy_flipped(s, node), PANE_COPIED} : (pane_source){node, PANE_LENT});
  }
  if (w->dense) ok = ok && put(s, (pane_source){w->dense, PANE_LENT});
  if (w->merged.n) ok = ok && put(s, (pane_source){pack(&s->hive->window.merged, w->merged_begin, false), PANE_COPIED});
  carried rest = w->slices;
  while (ok && rest.first < rest.n) {
    pane *node = pane_window_guest(w, &rest);
    if (node) rest.first += node->n;
    ok = put(s, (pane_source){node, PANE_COPIED});
  }
  return ok;
}

/* What the input has published and the reader not read, and what it has not published. */
static bool collect_input(pane_saver *s, int32_t i) {
  pane_input *in = &s->hive->input[i];
  bool ok = true;
  for (pane *node = pane_link_read(&s->hive->cursor[i]->next); ok && node; node = pane_link_read(&node->next)) {
    if (node->n) ok = put(s, (pane_source){node, PANE_LENT});
  }
  return ok && (in->slice.n == 0 || put(s, (pane_source){pack(&in->slice, in->begin, false), PANE_COPIED}));
}

/* ---- saving ---- */

/* By begin; what is owed, behind what it is owed to. */
static int compare(const void *a, const void *b) {
  const pane_source *x = a, *y = b;
  if (x->node->begin != y->node->begin) return x->node->begin < y->node->begin ? -1 : 1;
  return (x->kind == PANE_OWED) - (y->kind == PANE_OWED);
}

static bool visit_slice(pane_saver *s, uint64_t begin, window_visit visit, void *context) {
  const aggregates *f = s->hive->plan.functions;
  const pane_window *w = &s->sums;
  int64_t n = key_order_live(&s->sums.key_order, w->rows);
  for (int64_t i = 0; i < n; i++) {
    uint32_t k = w->key_order.live[i];
    for (int32_t a = 0; a < f->n; a++) {
      partial_save(&f->each[a], &w->totals[a], k, w->rows[k], s->until, s->state + f->each[a].offset);
    }
    if (!visit(context, (int64_t)begin, key_table_at(w->key_order.table, k), s->state)) return false;
  }
  return n >= 0;
}

/* The slices from `from` to `to` begin at the same edge. */
static bool save_slice(pane_saver *s, int64_t from, int64_t to, window_visit visit, void *context) {
  bool ok = true;
  for (int64_t i = from; ok && i < to; i++) {
    bool owed = s->source[i].kind == PANE_OWED;
    ok = (owed ? pane_window_subtract : pane_window_enter)(&s->sums, s->source[i].node);
  }
  ok = ok && visit_slice(s, s->source[from].node->begin, visit, context);
  for (int64_t i = from; ok && i < to; i++) {
    packed p = pane_packed(s->source[i].node);
    pane_window_clear(&s->sums, p.keys, p.n);
  }
  return ok;
}

bool pane_saver_run(pane_saver *s, window_visit visit, void *context) {
  bool ok = collect_window(s);
  for (int32_t i = 0; ok && i < s->hive->inputs; i++) ok = collect_input(s, i);
  if (ok && s->n) qsort(s->source, (size_t)s->n, sizeof *s->source, compare);
  for (int64_t from = 0, to; ok && from < s->n; from = to) {
    for (to = from; to < s->n && s->source[to].node->begin == s->source[from].node->begin;) to++;
    ok = save_slice(s, from, to, visit, context);
  }
  return ok;
}
