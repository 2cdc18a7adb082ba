/* pane_window.c - see pane_window.h. */
#include "slices/pane_window.h"

#define MERGE_FROM SIZED(512, 2) /* slices held: fewer stay in the cache, and merging them costs more than it saves */
#define HELD_FIRST SIZED(64, 1)  /* slices */

/* Partials of an edge that are worth adding up, if there are more. */
#define CROWD(keys) SIZED(keys, ((void)(keys), INT64_C(1)))

/* ---- making ---- */

bool pane_plan_init(pane_plan *p, pane_windows windows, const aggregates *functions) {
  *p = (pane_plan){.windows = windows, .functions = functions};
  p->kinds = memory_new((size_t)functions->n * sizeof *p->kinds);
  if (!p->kinds) return false;
  bool strings = false;
  for (int32_t a = 0; a < functions->n; a++) {
    p->kinds[a] = partial_kind_of(&functions->each[a]);
    assert(p->kinds[a] && "no user functions here");
    p->stacked |= p->kinds[a]->stacked;
    strings |= p->kinds[a]->is_bytes;
  }
  p->merges = !strings;
  p->dense = slice_sum_suits(functions, p->kinds);
  p->plain = slice_sum_plain(functions, p->kinds);
  p->unfolded = slice_unfolded_suits(functions, p->kinds);
  p->firsts = slice_firsts_suit(functions, p->kinds);
  return true;
}

void pane_plan_free(pane_plan *p) { memory_free(p->kinds); }

bool pane_window_init(pane_window *w, const pane_plan *plan, const pane_keys *keys) {
  *w = (pane_window){.plan = plan, .due = PANE_FOREVER, .slices = {.slices = true}};
  if (!slice_init(&w->merged, plan->functions, plan->kinds, 0)) return false;
  w->totals = memory_new((size_t)plan->functions->n * sizeof *w->totals);
  if (w->totals && key_order_init(&w->key_order, keys->table, keys->columns, keys->types)) return true;
  memory_free(w->totals);
  slice_free(&w->merged);
  return false;
}

/* A node of the window's own. */
static void own_free(const pane_plan *plan, pane *node) {
  packed p = pane_packed(node);
  uint8_t *at = p.columns;
  for (int32_t a = 0; node->owns && a < plan->functions->n; a++) {
    partial_list list = packed_next(&p, plan->kinds[a], a, &at);
    if (!list.plain) partial_drop(plan->kinds[a], list.partials, list.n);
  }
  memory_free(node);
}

static uint8_t *carried_state(const carried *c, const aggregates *functions, int64_t i) {
  return c->states + i * functions->state_size;
}

static void carried_free(carried *c, const aggregates *functions) {
  for (int64_t i = 0; i < c->n; i++) aggregates_drop(functions, carried_state(c, functions, i));
  memory_free(c->starts);
  memory_free(c->numbers);
  memory_free(c->states);
  memory_free(c->met);
  *c = (carried){.slices = c->slices};
}

pane *pane_window_hand_back(pane_window *w, uint64_t i) {
  pane **place = &w->held[i & ((uint64_t)w->held_capacity - 1)], *node = *place;
  if (!node->slab) return NULL;
  *place = NULL;
  return node;
}

void pane_window_free(pane_window *w) {
  const pane_plan *p = w->plan;
  for (uint64_t i = w->held_first; i < w->held_end; i++) {
    if (pane_window_held(w, i)) own_free(p, pane_window_held(w, i));
  }
  if (w->dense) own_free(p, w->dense);
  slice_free(&w->merged);
  for (int32_t a = 0; a < p->functions->n; a++) {
    if (w->totals[a].total) partial_drop(p->kinds[a], w->totals[a].total, w->capacity);
    memory_free(w->totals[a].total);
    memory_free(w->totals[a].front);
  }
  carried_free(&w->windows, p->functions);
  carried_free(&w->slices, p->functions);
  memory_free(w->guest);
  memory_free(w->without);
  memory_free(w->totals);
  memory_free(w->rows);
  memory_free(w->held);
  key_order_free(&w->key_order);
}

/* ---- totals ---- */

static bool resize(void **array, int64_t from, int64_t to, size_t element) {
  uint8_t *bigger = memory_resize(*array, (size_t)to * element);
  if (!bigger) return false;
  memset(bigger + (size_t)from * element, 0, (size_t)(to - from) * element);
  *array = bigger;
  return true;
}

/* Room for key numbers below `limit`. */
static bool reserve_totals(pane_window *w, int64_t limit) {
  const pane_plan *p = w->plan;
  if (limit <= w->capacity) return true;
  if (limit < 2 * w->capacity) limit = 2 * w->capacity; /* keys may come one at a time */
  bool ok = key_order_expect(&w->key_order, limit) && resize((void **)&w->rows, w->capacity, limit, sizeof *w->rows);
  for (int32_t a = 0; ok && a < p->functions->n; a++) {
    size_t size = p->kinds[a]->size;
    if (size) ok = resize(&w->totals[a].total, w->capacity, limit, size);
    if (ok && p->kinds[a]->stacked) ok = resize(&w->totals[a].front, w->capacity, limit, size);
  }
  if (ok) w->capacity = limit;
  return ok;
}

/* `unfolded` is known where it is called. */
static inline bool enter_rows(pane_window *w, const packed *p, bool unfolded) {
  const uint32_t *keys = p->keys;
  const int64_t *own = p->rows;
  int64_t *rows = w->rows;
  for (int64_t i = 0, n = p->n; i < n; i++) {
    uint32_t k = keys[i]; /* keys with rows are listed: those without may have been struck off */
    if (__builtin_expect(rows[k] == 0, 0) && (unfolded || own[i]) && !key_order_list(&w->key_order, &k, 1))
      return false;
    rows[k] += unfolded ? 1 : own[i];
  }
  return true;
}

bool pane_window_enter(pane_window *w, pane *node) {
  const pane_plan *plan = w->plan;
  packed p = pane_packed(node);
  if (!reserve_totals(w, node->limit)) return false;
  if (!(p.rows ? enter_rows(w, &p, false) : enter_rows(w, &p, true))) return false;
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    partial_list list = packed_next(&p, plan->kinds[a], a, &at);
    if (plan->kinds[a]->size && !plan->kinds[a]->enter(&w->totals[a], &list)) return false;
  }
  return true;
}

bool pane_window_subtract(pane_window *w, pane *node) {
  const pane_plan *plan = w->plan;
  packed p = pane_packed(node);
  int64_t *rows = w->rows;
  for (int64_t i = 0; p.rows && i < p.n; i++) rows[p.keys[i]] -= p.rows[i];
  for (int64_t i = 0; !p.rows && i < p.n; i++) rows[p.keys[i]]--;
  uint8_t *at = p.columns;
  bool ok = true;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    partial_list list = packed_next(&p, plan->kinds[a], a, &at);
    if (plan->kinds[a]->leave) ok = plan->kinds[a]->leave(&w->totals[a], &list) && ok;
  }
  return ok;
}

/* Calls one of `push` and `pop` for all stacked functions. */
static void stack(pane_window *w, pane *node, bool push) {
  const pane_plan *plan = w->plan;
  packed p = pane_packed(node);
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    const partial_kind *kind = plan->kinds[a];
    partial_list list = packed_next(&p, kind, a, &at);
    if (kind->stacked) (push ? kind->push : kind->pop)(&w->totals[a], &list);
  }
}

void pane_window_clear(pane_window *w, const uint32_t *keys, int64_t n) {
  for (int64_t i = 0; i < n; i++) w->rows[keys[i]] = 0;
  for (int32_t a = 0; a < w->plan->functions->n; a++) {
    const partial_kind *kind = w->plan->kinds[a];
    for (int64_t i = 0; kind->size && i < n; i++) {
      uint8_t *total = (uint8_t *)w->totals[a].total + keys[i] * kind->size;
      partial_drop(kind, total, 1);
      memset(total, 0, kind->size);
    }
  }
}

/* ---- slices held ---- */

/* The front stacks are empty: everything goes there, the newest slice first. */
static void flip(pane_window *w) {
  for (uint64_t i = w->held_end; i-- > w->held_first;) stack(w, pane_window_held(w, i), true);
  w->held_flipped = w->held_end;
}

static bool hold(pane_window *w, pane *node) {
  if ((int64_t)(w->held_end - w->held_first) == w->held_capacity) {
    int64_t capacity = w->held_capacity ? 2 * w->held_capacity : HELD_FIRST;
    pane **ring = memory_new((size_t)capacity * sizeof(pane *));
    if (!ring) return false;
    for (uint64_t i = w->held_first; i < w->held_end; i++) ring[i & ((uint64_t)capacity - 1)] = pane_window_held(w, i);
    memory_free(w->held);
    w->held = ring;
    w->held_capacity = capacity;
  }
  w->held[w->held_end++ & ((uint64_t)w->held_capacity - 1)] = node;
  node->held = true;
  w->partials += node->n;
  return true;
}

static bool take(pane_window *w, pane *node) { return pane_window_enter(w, node) && hold(w, node); }

/* Whether what all inputs hand over of one edge is more than there are keys: it was so at the edge before. */
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

/* Whether the slice has been added up with others of its edge. */
static bool goes_dense(pane_window *w, pane *node) {
  const pane_plan *p = w->plan;
  if (!p->dense || !is_crowded(w, node) || w->held_first == w->held_end || node->plain != p->plain) return false;
  if (!w->dense) w->dense = slice_sum_new(p->functions, p->kinds, node->begin, w->limit);
  return w->dense && node->limit <= w->dense->limit && slice_sum_add(w->dense, node, p->functions, p->kinds);
}

/* A node of the window's own is held. */
static bool take_own(pane_window *w, pane *node) {
  if (take(w, node)) return true;
  own_free(w->plan, node);
  return false;
}

bool pane_window_seal(pane_window *w) {
  pane *dense = w->dense;
  w->dense = NULL;
  if (dense && !take_own(w, dense)) return false;
  if (w->merged.n == 0) return true;
  uint64_t plain;
  size_t size = slice_packed_size(&w->merged, &plain);
  pane *node = memory_resize(NULL, sizeof *node + size);
  if (!node) return false;
  *node = (pane){.begin = w->merged_begin, .n = w->merged.n, .limit = w->merged.slot_capacity, .plain = plain};
  slice_pack(&w->merged, node + 1, plain, &node->owns);
  return take_own(w, node);
}

/* Whether what has been merged or added up begins elsewhere. */
static bool is_of_another_edge(const pane_window *w, uint64_t begin) {
  return (w->dense && w->dense->begin != begin) || (w->merged.n > 0 && w->merged_begin != begin);
}

bool pane_window_take(pane_window *w, pane *node) {
  if (is_of_another_edge(w, node->begin) && !pane_window_seal(w)) return false;
  if (goes_dense(w, node)) return true;
  bool merges = w->plan->merges && w->held_end - w->held_first >= MERGE_FROM;
  if (!merges) return take(w, node);
  w->merged_begin = node->begin;
  packed p = pane_packed(node);
  return slice_expect(&w->merged, (uint32_t)(node->limit - 1)) && slice_merge(&w->merged, &p);
}

void pane_window_pass(pane_window *w) {
  uint64_t start = w->due - w->plan->windows.size;
  carried *c = &w->windows;
  while (c->first < c->n && (uint64_t)c->starts[c->first] <= start) c->first++;
  if (c->n && c->first == c->n) carried_free(c, w->plan->functions);
  w->start_next = start + w->plan->windows.advance;
}

pane *pane_window_leave(pane_window *w, bool *ok) {
  while (w->held_first < w->held_end && pane_window_held(w, w->held_first)->begin < w->start_next) {
    if (w->plan->stacked && w->held_first == w->held_flipped) flip(w);
    pane *node = pane_window_held(w, w->held_first++);
    *ok = pane_window_subtract(w, node) && *ok;
    stack(w, node, false);
    w->partials -= node->n;
    node->held = false;
    if (node->slab) return node;
    bool guest = node->guest;
    own_free(w->plan, node);
    if (guest && --w->guests == 0 && w->slices.first == w->slices.n) carried_free(&w->slices, w->plan->functions);
  }
  return NULL;
}

/* ---- what a snapshot brought ---- */

/* How many entries have the first start. */
static int64_t carried_same(const carried *c) {
  int64_t end = c->first;
  while (end < c->n && c->starts[end] == c->starts[c->first]) end++;
  return end - c->first;
}

/* Their partials of an aggregate. */
static void carried_partials(const pane_window *w, const carried *c, int64_t n, int32_t a, void *to) {
  const aggregate *function = &w->plan->functions->each[a];
  size_t size = w->plan->kinds[a]->size;
  partial_place place = {1, PARTIAL_OF_WINDOW}; /* before all */
  if (c->slices) place = (partial_place){(uint64_t)c->starts[c->first] + 1, PARTIAL_OF_SLICE};
  for (int64_t i = 0; size && i < n; i++) {
    const uint8_t *state = carried_state(c, w->plan->functions, c->first + i);
    partial_load(function, state + function->offset, place, (uint8_t *)to + (size_t)i * size);
  }
}

/* How many tuples a state has taken in, if there is a count; else it counts as one. */
static int64_t carried_rows(const pane_window *w, const carried *c, int64_t i) {
  const aggregates *f = w->plan->functions;
  for (int32_t a = 0; a < f->n; a++) {
    if (w->plan->kinds[a]->size == 0) return *(const int64_t *)(void *)(carried_state(c, f, i) + f->each[a].offset);
  }
  return 1;
}

pane *pane_window_guest(const pane_window *w, const carried *c) {
  const pane_plan *plan = w->plan;
  int64_t n = carried_same(c);
  pane *node = memory_new(sizeof *node + packed_size(plan->functions, plan->kinds, n, 0));
  if (!node) return NULL;
  node->begin = (uint64_t)c->starts[c->first];
  node->guest = true;
  node->n = n;
  node->limit = w->capacity;
  packed p = pane_packed(node);
  assert(p.rows);
  for (int64_t i = 0; i < n; i++) {
    p.keys[i] = c->numbers[c->first + i];
    p.rows[i] = carried_rows(w, c, c->first + i);
  }
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    partial_list list = packed_next(&p, plan->kinds[a], a, &at);
    carried_partials(w, c, n, a, list.partials);
  }
  return node;
}

/* The next slice of the list is held. */
static bool carried_take(pane_window *w) {
  pane *node = pane_window_guest(w, &w->slices);
  if (!node) return false;
  if (!pane_window_enter(w, node) || !hold(w, node)) {
    memory_free(node);
    return false;
  }
  w->slices.first += node->n;
  w->guests++;
  return true;
}

/* The end of the first window from start_next on that covers the slice. */
static uint64_t end_of_first(const pane_window *w, uint64_t begin) {
  uint64_t start = first_start(w->plan->windows, begin);
  return (start < w->start_next ? w->start_next : start) + w->plan->windows.size;
}

bool pane_window_look(pane_window *w) {
  const carried *windows = &w->windows, *slices = &w->slices;
  uint64_t due = PANE_FOREVER, other = PANE_FOREVER;
  if (w->held_first < w->held_end) due = end_of_first(w, pane_window_held(w, w->held_first)->begin);
  if (windows->first < windows->n) other = (uint64_t)windows->starts[windows->first] + w->plan->windows.size;
  due = other < due ? other : due;
  other = slices->first < slices->n ? end_of_first(w, (uint64_t)slices->starts[slices->first]) : PANE_FOREVER;
  w->due = other < due ? other : due;
  while (slices->first < slices->n && (uint64_t)slices->starts[slices->first] < w->due) {
    if (!carried_take(w)) return false;
  }
  return true;
}

static bool can_begin(const pane_window *w, const carried *c, int64_t start) {
  uint64_t begin = (uint64_t)start;
  if (start < 0 || begin < w->start_next || (c->n && start < c->starts[c->n - 1])) return false;
  pane_windows windows = w->plan->windows;
  if (!c->slices) return begin % windows.advance == 0;
  return last_edge(windows, begin) == begin && is_covered(windows, begin);
}

ps_code pane_window_carry(pane_window *w, carried *c, int64_t start, const key *k, const uint8_t *state) {
  const aggregates *f = w->plan->functions;
  if (!can_begin(w, c, start)) return PS_CORRUPT;
  int64_t known = c->met_capacity;
  bool ok = reserve_totals(w, (int64_t)k->number + 1) &&
            memory_grow((void **)&c->met, &c->met_capacity, (int64_t)k->number + 1, sizeof *c->met);
  for (int64_t i = known; i < c->met_capacity; i++) c->met[i] = 0;
  ok = ok && memory_grow((void **)&c->starts, &c->starts_capacity, c->n + 1, sizeof *c->starts) &&
       memory_grow((void **)&c->numbers, &c->numbers_capacity, c->n + 1, sizeof *c->numbers) &&
       memory_grow((void **)&c->states, &c->states_capacity, (c->n + 1) * f->state_size, 1);
  if (!ok) return PS_NO_MEMORY;
  if (c->met[k->number] == (uint64_t)start + 1) return PS_CORRUPT;
  c->met[k->number] = (uint64_t)start + 1;
  c->starts[c->n] = start;
  c->numbers[c->n] = k->number;
  memcpy(carried_state(c, f, c->n), state, (size_t)f->state_size);
  c->n++;
  return PS_OK;
}

bool pane_window_each(const pane_window *w, window_visit visit, void *context) {
  const carried *c = &w->windows;
  for (int64_t i = c->first; i < c->n; i++) {
    const key *k = key_table_at(w->key_order.table, c->numbers[i]);
    if (!visit(context, c->starts[i], k, carried_state(c, w->plan->functions, i))) return false;
  }
  return true;
}

/* ---- the window ---- */

/* The stacked totals of the guest's keys, to be put back when it leaves. */
static bool keep_totals(pane_window *w) {
  const pane_plan *plan = w->plan;
  size_t size = sizeof(pane) + packed_size(plan->functions, plan->kinds, w->guest->n, 0);
  w->without = memory_new(size);
  if (!w->without) return false;
  memcpy(w->without, w->guest, size);
  packed p = pane_packed(w->without);
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    size_t each = plan->kinds[a]->size;
    partial_list list = packed_next(&p, plan->kinds[a], a, &at);
    for (int64_t i = 0; plan->kinds[a]->stacked && i < list.n; i++) {
      memcpy((uint8_t *)list.partials + (size_t)i * each, (uint8_t *)w->totals[a].total + list.keys[i] * each, each);
    }
  }
  return true;
}

bool pane_window_open(pane_window *w, int64_t *n) {
  const carried *c = &w->windows;
  if (c->first < c->n && (uint64_t)c->starts[c->first] + w->plan->windows.size == w->due) {
    w->guest = pane_window_guest(w, c);
    if (!w->guest || !keep_totals(w) || !pane_window_enter(w, w->guest)) return false;
  }
  *n = key_order_live(&w->key_order, w->rows);
  return *n >= 0;
}

bool pane_window_close(pane_window *w) {
  if (!w->guest) return true;
  bool ok = pane_window_subtract(w, w->guest);
  packed p = pane_packed(w->without);
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < w->plan->functions->n; a++) {
    partial_list list = packed_next(&p, w->plan->kinds[a], a, &at);
    partial_totals back = {.front = w->totals[a].total};
    if (w->plan->kinds[a]->stacked) w->plan->kinds[a]->pop(&back, &list);
  }
  memory_free(w->guest);
  memory_free(w->without);
  w->guest = w->without = NULL;
  return ok;
}

ps_code pane_window_put(pane_window *w, int64_t n, out_rows *rows, ps_fault *fault) {
  int64_t start = (int64_t)(w->due - w->plan->windows.size), failed_row = INT64_MAX;
  uint64_t *starts = out_reserve(rows, 0, n);
  if (!starts || !key_order_put(&w->key_order, n, false, rows)) return PS_NO_MEMORY;
  for (int64_t i = 0; i < n; i++) starts[i] = (uint64_t)start;
  partial_list keys = {.keys = w->key_order.live, .n = n};
  for (int32_t a = 0; a < w->plan->functions->n; a++) {
    int64_t row = 0;
    const aggregate *f = &w->plan->functions->each[a];
    ps_code code = partial_finish(f, &w->totals[a], &keys, w->rows, rows, 1 + w->key_order.columns + a, &row);
    if (code == PS_NO_MEMORY) return code;
    if (code != PS_OK && row < failed_row) { /* the first row that fails is named, in it the first aggregate */
      failed_row = row;
      *fault = (ps_fault){.ts = start, .aggregate = a, .key = key_table_at(w->key_order.table, keys.keys[row])};
    }
  }
  if (failed_row < INT64_MAX) return PS_OVERFLOW;
  out_end_rows(rows, n);
  return PS_OK;
}
