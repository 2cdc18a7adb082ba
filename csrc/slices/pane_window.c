/* pane_window.c - see pane_window.h. */
#include "slices/pane_window.h"

#include "slices/slice_sum.h"

#define MERGE_FROM SIZED(512, 2) /* slices held: fewer stay in the cache, and merging them costs more than it saves */
#define HELD_FIRST SIZED(64, 1)  /* slices */

/* Partials of an edge above which adding them up is worth it. */
#define CROWD(keys) SIZED(keys, ((void)(keys), INT64_C(1)))

static inline pane *held(const pane_window *w, uint64_t number) {
  return w->held[number & ((uint64_t)w->held_capacity - 1)];
}

static inline pane *oldest(const pane_window *w) { return held(w, slide_first(&w->slide)); }

/* ---- making ---- */

void pane_window_show(const pane_plan *plan, pane *node, slide_slice *to) {
  flat_slice p = pane_flat(node);
  to->n = p.n;
  to->limit = node->limit;
  to->keys = p.keys;
  to->rows = p.rows;
  to->step = 1;
  to->dense = p.dense;
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < plan->functions->n; a++) to->partials[a] = flat_next(&p, plan->functions, a, &at);
}

static void show_held(const void *window, uint64_t number, slide_slice *to) {
  const pane_window *w = window;
  pane_window_show(w->plan, held(w, number), to);
}

bool pane_window_init(pane_window *w, const pane_plan *plan, const slide_keys *keys) {
  *w = (pane_window){.plan = plan, .due = PANE_FOREVER, .slices = {.slices = true}};
  if (!slice_init(&w->merged, plan->functions, 0)) return false;
  if (slide_init(&w->slide, plan->functions, keys, (slide_source){show_held, w})) return true;
  slice_free(&w->merged);
  return false;
}

/* Frees a node that the window made. */
static void own_free(const pane_plan *plan, pane *node) {
  pane_drop(plan, node);
  memory_free(node);
}

void pane_window_free(pane_window *w, pane_owner owner) {
  for (uint64_t i = slide_first(&w->slide); i < slide_end(&w->slide); i++) {
    pane *node = held(w, i);
    if (node->slab) {
      owner.give(owner.hive, node);
    } else {
      own_free(w->plan, node);
    }
  }
  if (w->dense) own_free(w->plan, w->dense);
  slice_free(&w->merged);
  slide_free(&w->slide);
  carried_free(&w->windows, w->plan->functions);
  carried_free(&w->slices, w->plan->functions);
  memory_free(w->held);
}

/* ---- slices held ---- */

static bool ring_reserve(pane_window *w) {
  uint64_t first = slide_first(&w->slide), end = slide_end(&w->slide);
  if ((int64_t)(end - first) < w->held_capacity) return true;
  int64_t capacity = w->held_capacity ? 2 * w->held_capacity : HELD_FIRST;
  pane **ring = memory_new((size_t)capacity * sizeof(pane *));
  if (!ring) return false;
  for (uint64_t i = first; i < end; i++) ring[i & ((uint64_t)capacity - 1)] = held(w, i);
  memory_free(w->held);
  w->held = ring;
  w->held_capacity = capacity;
  return true;
}

static bool hold(pane_window *w, pane *node) {
  if (!ring_reserve(w)) return false;
  w->held[slide_end(&w->slide) & ((uint64_t)w->held_capacity - 1)] = node;
  if (!slide_enter(&w->slide)) return false;
  node->held = true;
  w->partials += node->n;
  return true;
}

/* Holds a node that the window made. */
static bool hold_own(pane_window *w, pane *node) {
  if (node && hold(w, node)) return true;
  if (node) own_free(w->plan, node);
  return false;
}

/* Whether the inputs' slices of one edge have more partials than there are keys: estimated from the previous edge. */
static bool is_crowded(pane_window *w, const pane *node) {
  if (node->begin != w->edge) {
    w->crowded = w->edge_partials > CROWD(w->limit);
    w->edge_partials = 0;
    w->edge = node->begin;
  }
  w->edge_partials += node->n;
  if (node->limit > w->limit) w->limit = node->limit;
  return w->crowded;
}

/* Adds the slice to others of its edge if possible; returns whether it did. */
static bool goes_dense(pane_window *w, pane *node) {
  const pane_plan *p = w->plan;
  if (!p->dense || !is_crowded(w, node) || slide_is_empty(&w->slide) || node->plain != p->plain) return false;
  if (!w->dense) w->dense = slice_sum_new(p->functions, node->begin, w->limit);
  return w->dense && node->limit <= w->dense->limit && slice_sum_add(w->dense, node, p->functions);
}

/* Holds the slices that were added up or merged. */
static bool seal(pane_window *w) {
  pane *dense = w->dense;
  w->dense = NULL;
  if (dense && !hold_own(w, dense)) return false;
  return w->merged.n == 0 || hold_own(w, pane_of_slice(&w->merged, w->merged_begin, true));
}

static bool is_sealed(const pane_window *w) { return !w->dense && w->merged.n == 0; }

/* Whether slices of another edge are being merged or added up. */
static bool is_of_another_edge(const pane_window *w, uint64_t begin) {
  return (w->dense && w->dense->begin != begin) || (w->merged.n > 0 && w->merged_begin != begin);
}

static bool merge(pane_window *w, pane *node) {
  w->merged_begin = node->begin;
  flat_slice p = pane_flat(node);
  return slice_expect(&w->merged, (uint32_t)(node->limit - 1)) && slice_merge(&w->merged, &p);
}

/* ---- which window is due ---- */

/* Holds the next carried slice. */
static bool hold_carried(pane_window *w) {
  pane *node = carried_node(&w->slices, w->plan, slide_limit(&w->slide));
  if (!hold_own(w, node)) return false;
  w->slices.first += node->n;
  w->guests++;
  return true;
}

/* The end of the first window from start_next on that covers the slice. */
static uint64_t end_of_first(const pane_window *w, uint64_t begin) {
  uint64_t start = first_start(w->plan->windows, begin);
  return (start < w->start_next ? w->start_next : start) + w->plan->windows.size;
}

/* Restores I1 and I2 after a change of the slices held. */
static bool find_due(pane_window *w) {
  uint64_t due = PANE_FOREVER, other = PANE_FOREVER;
  if (!slide_is_empty(&w->slide)) due = end_of_first(w, oldest(w)->begin);
  if (carried_left(&w->windows)) other = carried_start(&w->windows) + w->plan->windows.size;
  due = other < due ? other : due;
  other = carried_left(&w->slices) ? end_of_first(w, carried_start(&w->slices)) : PANE_FOREVER;
  w->due = other < due ? other : due;
  while (carried_left(&w->slices) && carried_start(&w->slices) < w->due) {
    if (!hold_carried(w)) return false;
  }
  return true;
}

/* Slices are taken in the order of their begins: once one is held, later ones do not change `due`. */
static bool is_due_known(const pane_window *w) {
  return w->due < PANE_FOREVER && !carried_left(&w->windows) && !carried_left(&w->slices);
}

bool pane_window_take(pane_window *w, pane *node) {
  if (is_of_another_edge(w, node->begin) && !seal(w)) return false;
  if (!goes_dense(w, node)) {
    bool merges = w->plan->merges && slide_end(&w->slide) - slide_first(&w->slide) >= MERGE_FROM;
    if (!(merges ? merge(w, node) : hold(w, node))) return false;
  }
  return is_due_known(w) || find_due(w);
}

ps_code pane_window_next(pane_window *w, uint64_t position) {
  if (position < w->due) return PS_EMPTY;
  if (w->due == PANE_FOREVER) return PS_END;
  return is_sealed(w) || seal(w) ? PS_OK : PS_NO_MEMORY;
}

/* ---- the window ---- */

/* The carried window of this start; it is in the totals between guest_open and guest_close. */
typedef struct {
  pane *node;    /* NULL: none */
  pane *without; /* stacked totals of its keys without it */
} guest;

static void guest_free(guest *g) {
  memory_free(g->node);
  memory_free(g->without);
}

static bool guest_enter(pane_window *w, guest *g) {
  const pane_plan *plan = w->plan;
  slide_slice v = slide_blank(&w->slide);
  size_t size = sizeof(pane) + flat_size(plan->functions, g->node->n, 0);
  g->without = memory_new(size);
  if (!g->without) return false;
  memcpy(g->without, g->node, size);
  pane_window_show(plan, g->without, &v);
  slide_copy_back(&w->slide, &v);
  pane_window_show(plan, g->node, &v);
  return slide_add(&w->slide, &v);
}

static bool guest_leave(pane_window *w, guest *g) {
  slide_slice v = slide_blank(&w->slide);
  pane_window_show(w->plan, g->node, &v);
  bool ok = slide_subtract(&w->slide, &v);
  pane_window_show(w->plan, g->without, &v);
  slide_restore_back(&w->slide, &v);
  return ok;
}

static bool guest_open(pane_window *w, guest *g) {
  assert(is_sealed(w) && w->due < PANE_FOREVER);
  *g = (guest){0};
  if (!carried_left(&w->windows) || carried_start(&w->windows) + w->plan->windows.size != w->due) return true;
  g->node = carried_node(&w->windows, w->plan, slide_limit(&w->slide));
  if (g->node && guest_enter(w, g)) return true;
  guest_free(g);
  return false;
}

static bool guest_close(pane_window *w, guest *g) {
  bool ok = !g->node || guest_leave(w, g);
  guest_free(g);
  return ok;
}

ps_code pane_window_emit(pane_window *w, out_rows *rows, ps_fault *fault) {
  guest g;
  if (!guest_open(w, &g)) return PS_NO_MEMORY;
  ps_code code = slide_emit(&w->slide, pane_window_start(w), rows, fault);
  return guest_close(w, &g) ? code : PS_NO_MEMORY;
}

bool pane_window_visit(pane_window *w, uint8_t *state, window_visit visit, void *context) {
  guest g;
  if (!guest_open(w, &g)) return false;
  slide_states what = {pane_window_start(w), {UINT64_MAX, UINT64_MAX}, state};
  bool ok = slide_visit(&w->slide, &what, visit, context);
  return guest_close(w, &g) && ok;
}

/* Called when the slice has left: gives its node back to the hive, or frees it. */
static void let_go(pane_window *w, pane *node, pane_owner owner) {
  w->partials -= node->n;
  node->held = false;
  if (node->slab) {
    owner.give(owner.hive, node);
    return;
  }
  bool last = node->guest && --w->guests == 0 && !carried_left(&w->slices);
  own_free(w->plan, node);
  if (last) carried_free(&w->slices, w->plan->functions);
}

bool pane_window_advance(pane_window *w, pane_owner owner) {
  assert(is_sealed(w) && w->due < PANE_FOREVER);
  bool ok = true;
  uint64_t start = w->due - w->plan->windows.size;
  while (carried_left(&w->windows) && carried_start(&w->windows) <= start) w->windows.first++;
  if (w->windows.n && !carried_left(&w->windows)) carried_free(&w->windows, w->plan->functions);
  w->start_next = start + w->plan->windows.advance;
  while (!slide_is_empty(&w->slide) && oldest(w)->begin < w->start_next) {
    pane *node = oldest(w);
    ok = slide_leave(&w->slide) && ok;
    let_go(w, node, owner);
  }
  return find_due(w) && ok;
}

/* ---- snapshots ---- */

bool pane_window_carry_begin(pane_window *w, int64_t start_next) {
  assert(slide_is_empty(&w->slide) && is_sealed(w));
  if (start_next < 0 || (uint64_t)start_next % w->plan->windows.advance != 0) return false;
  w->start_next = (uint64_t)start_next;
  return true;
}

static bool can_begin(const pane_window *w, bool slices, int64_t start) {
  uint64_t begin = (uint64_t)start;
  if (start < 0 || begin < w->start_next) return false;
  pane_windows windows = w->plan->windows;
  if (!slices) return begin % windows.advance == 0;
  return last_edge(windows, begin) == begin && is_covered(windows, begin);
}

ps_code pane_window_carry(pane_window *w, bool slices, int64_t start, const key *k, const uint8_t *state) {
  if (!can_begin(w, slices, start)) return PS_CORRUPT;
  if (!slide_expect(&w->slide, (int64_t)k->number + 1)) return PS_NO_MEMORY;
  return carried_add(slices ? &w->slices : &w->windows, w->plan->functions, start, k->number, state);
}

bool pane_window_carry_end(pane_window *w) { return find_due(w); }

int64_t pane_window_carried_last(const pane_window *w) { return w->slices.n ? w->slices.starts[w->slices.n - 1] : -1; }

bool pane_window_visit_carried(const pane_window *w, window_visit visit, void *context) {
  return carried_visit(&w->windows, w->plan->functions, slide_listed(&w->slide)->table, visit, context);
}

bool pane_window_visit_slices(pane_window *w, pane_visit visit, void *context) {
  bool ok = true;
  for (uint64_t i = slide_first(&w->slide); ok && i < slide_end(&w->slide); i++) {
    ok = visit(context, held(w, i), slide_has_flipped(&w->slide, i) ? PANE_FLIPPED : PANE_LENT);
  }
  if (ok && w->dense) ok = visit(context, w->dense, PANE_LENT);
  if (ok && w->merged.n) ok = visit(context, pane_of_slice(&w->merged, w->merged_begin, false), PANE_COPIED);
  carried rest = w->slices;
  while (ok && carried_left(&rest)) {
    pane *node = carried_node(&rest, w->plan, slide_limit(&w->slide));
    if (node) rest.first += node->n;
    ok = visit(context, node, PANE_COPIED);
  }
  return ok;
}
