/* carried.c - see carried.h. */
#include "slices/carried.h"

static uint8_t *state_at(const carried *c, const aggregates *functions, int64_t i) {
  return c->states + i * functions->state_size;
}

void carried_free(carried *c, const aggregates *functions) {
  for (int64_t i = 0; i < c->n; i++) aggregates_drop(functions, state_at(c, functions, i));
  memory_free(c->starts);
  memory_free(c->numbers);
  memory_free(c->states);
  memory_free(c->met);
  *c = (carried){.slices = c->slices};
}

static bool reserve(carried *c, const aggregates *functions, uint32_t number) {
  int64_t known = c->met_capacity;
  bool ok = memory_grow((void **)&c->met, &c->met_capacity, (int64_t)number + 1, sizeof *c->met);
  for (int64_t i = known; i < c->met_capacity; i++) c->met[i] = 0;
  return ok && memory_grow((void **)&c->starts, &c->starts_capacity, c->n + 1, sizeof *c->starts) &&
         memory_grow((void **)&c->numbers, &c->numbers_capacity, c->n + 1, sizeof *c->numbers) &&
         memory_grow((void **)&c->states, &c->states_capacity, (c->n + 1) * functions->state_size, 1);
}

ps_code carried_add(carried *c, const aggregates *functions, int64_t start, uint32_t number, const uint8_t *state) {
  if (c->n && start < c->starts[c->n - 1]) return PS_CORRUPT;
  if (!reserve(c, functions, number)) return PS_NO_MEMORY;
  if (c->met[number] == (uint64_t)start + 1) return PS_CORRUPT;
  c->met[number] = (uint64_t)start + 1;
  c->starts[c->n] = start;
  c->numbers[c->n] = number;
  memcpy(state_at(c, functions, c->n), state, (size_t)functions->state_size);
  c->n++;
  return PS_OK;
}

/* Number of states of the first unused start. */
static int64_t same_start(const carried *c) {
  int64_t end = c->first;
  while (end < c->n && c->starts[end] == c->starts[c->first]) end++;
  return end - c->first;
}

/* Writes their partials of an aggregate. Order of places: windows of a snapshot, its slices, tuples added since. */
static void write_partials(const carried *c, const pane_plan *plan, int32_t a, const partial_list *to) {
  const aggregate *function = &plan->functions->each[a];
  size_t size = kernel_at(plan->functions, a)->size;
  partial_place place = {1, PARTIAL_OF_WINDOW}; /* lowest place */
  if (c->slices) place = (partial_place){carried_start(c) + 1, PARTIAL_OF_SLICE};
  for (int64_t i = 0; size && i < to->n; i++) {
    const uint8_t *state = state_at(c, plan->functions, c->first + i);
    partial_load(function, state + function->offset, place, (uint8_t *)to->partials + (size_t)i * size);
  }
}

/* Tuples in the state if the query counts them, else 1. */
static int64_t rows_of(const carried *c, const pane_plan *plan, int64_t i) {
  const aggregates *f = plan->functions;
  for (int32_t a = 0; a < f->n; a++) {
    if (kernel_at(plan->functions, a)->size == 0)
      return *(const int64_t *)(void *)(state_at(c, f, i) + f->each[a].offset);
  }
  return 1;
}

pane *carried_node(const carried *c, const pane_plan *plan, int64_t limit) {
  int64_t n = same_start(c);
  pane *node = memory_new(sizeof *node + flat_size(plan->functions, n, 0));
  if (!node) return NULL;
  node->begin = carried_start(c);
  node->guest = true;
  node->n = n;
  node->limit = limit;
  flat_slice p = pane_flat(node);
  assert(p.rows);
  for (int64_t i = 0; i < n; i++) {
    p.keys[i] = c->numbers[c->first + i];
    p.rows[i] = rows_of(c, plan, c->first + i);
  }
  uint8_t *at = p.columns;
  for (int32_t a = 0; a < plan->functions->n; a++) {
    partial_list list = flat_next(&p, plan->functions, a, &at);
    write_partials(c, plan, a, &list);
  }
  return node;
}

bool carried_visit(const carried *c, const aggregates *functions, const key_table *table, window_visit visit,
                   void *context) {
  for (int64_t i = c->first; i < c->n; i++) {
    const key *k = key_table_at(table, c->numbers[i]);
    if (!visit(context, c->starts[i], k, state_at(c, functions, i))) return false;
  }
  return true;
}
