/* slice_sum.c - see slice_sum.h. */
#include "slices/slice_sum.h"

bool slice_sum_suits(const aggregates *functions) {
  bool suits = functions->n <= FLAT_PLAIN_MAX;
  for (int32_t a = 0; a < functions->n; a++) {
    const kernel *kind = kernel_at(functions, a);
    suits &= !kind->is_bytes && (kind->sums || !kind->owns);
  }
  return suits;
}

uint64_t slice_sum_plain(const aggregates *functions) {
  uint64_t plain = 0;
  for (int32_t a = 0; a < functions->n && a < FLAT_PLAIN_MAX; a++)
    plain |= (uint64_t)kernel_at(functions, a)->sums << a;
  return plain;
}

pane *slice_sum_new(const aggregates *functions, uint64_t begin, int64_t limit) {
  uint64_t plain = slice_sum_plain(functions);
  pane *node = memory_new(sizeof *node + flat_size(functions, limit, plain));
  if (!node) return NULL;
  node->begin = begin;
  node->n = node->limit = limit;
  node->plain = plain;
  node->dense = true;
  uint32_t *keys = pane_flat(node).keys;
  for (int64_t i = 0; i < limit; i++) keys[i] = (uint32_t)i;
  return node;
}

static void add_rows(const flat_slice *to, const flat_slice *from) {
  assert(to->rows);
  for (int64_t i = 0; from->rows && i < from->n; i++) to->rows[from->keys[i]] += from->rows[i];
  for (int64_t i = 0; !from->rows && i < from->n; i++) to->rows[from->keys[i]]++;
}

/* An aggregate's partials on both sides. */
typedef struct {
  void *to;
  partial_list from;
} pair;

/* To be called for all aggregates in order; at[] starts at both sides' columns and advances. */
static pair next_pair(const flat_slice *to, const flat_slice *from, const aggregates *functions, int32_t a,
                      uint8_t *at[2]) {
  void *partials = flat_next(to, functions, a, &at[0]).partials;
  return (pair){partials, flat_next(from, functions, a, &at[1])};
}

/* Adds all sums or none. */
static bool add_sums(const flat_slice *to, const flat_slice *from, const aggregates *functions) {
  uint8_t *at[] = {to->columns, from->columns}, *again[] = {to->columns, from->columns};
  for (int32_t a = 0; a < functions->n; a++) {
    pair p = next_pair(to, from, functions, a, at);
    if (!kernel_at(functions, a)->sums || partial_add_plain(p.to, &p.from)) continue;
    for (int32_t done = 0; done < a; done++) {
      p = next_pair(to, from, functions, done, again);
      if (kernel_at(functions, done)->sums) partial_subtract_plain(p.to, &p.from, p.from.n);
    }
    return false;
  }
  return true;
}

static void add_others(const flat_slice *to, const flat_slice *from, const aggregates *functions) {
  uint8_t *at[] = {to->columns, from->columns};
  for (int32_t a = 0; a < functions->n; a++) {
    const kernel *kind = kernel_at(functions, a);
    pair p = next_pair(to, from, functions, a, at);
    if (kind->size && !kind->sums) kind->enter(&(partial_totals){.total = p.to}, &p.from);
  }
}

bool slice_sum_add(pane *node, pane *other, const aggregates *functions) {
  assert(other->plain == node->plain);
  flat_slice to = pane_flat(node), from = pane_flat(other);
  if (!add_sums(&to, &from, functions)) return false;
  add_others(&to, &from, functions);
  add_rows(&to, &from);
  return true;
}
