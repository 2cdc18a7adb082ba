/* slice_sum.c - see slice_sum.h. */
#include "slices/slice_sum.h"

bool slice_sum_suits(const aggregates *functions, const partial_kind *const *kinds) {
  bool suits = functions->n <= PACKED_PLAIN_MAX;
  for (int32_t a = 0; a < functions->n; a++) suits &= !kinds[a]->is_bytes && (kinds[a]->sums || !kinds[a]->owns);
  return suits;
}

uint64_t slice_sum_plain(const aggregates *functions, const partial_kind *const *kinds) {
  uint64_t plain = 0;
  for (int32_t a = 0; a < functions->n && a < PACKED_PLAIN_MAX; a++) plain |= (uint64_t)kinds[a]->sums << a;
  return plain;
}

pane *slice_sum_new(const aggregates *functions, const partial_kind *const *kinds, uint64_t begin, int64_t limit) {
  uint64_t plain = slice_sum_plain(functions, kinds);
  pane *node = memory_new(sizeof *node + packed_size(functions, kinds, limit, plain));
  if (!node) return NULL;
  node->begin = begin;
  node->n = node->limit = limit;
  node->plain = plain;
  node->dense = true;
  uint32_t *keys = pane_packed(node).keys;
  for (int64_t i = 0; i < limit; i++) keys[i] = (uint32_t)i;
  return node;
}

static void add_rows(const packed *to, const packed *from) {
  assert(to->rows);
  for (int64_t i = 0; from->rows && i < from->n; i++) to->rows[from->keys[i]] += from->rows[i];
  for (int64_t i = 0; !from->rows && i < from->n; i++) to->rows[from->keys[i]]++;
}

/* An aggregate's partials on both sides. */
typedef struct {
  void *to;
  partial_list from;
} pair;

/* Going through all of them, `at` starts at the columns of both and moves on. */
static pair next_pair(const packed *to, const packed *from, const partial_kind *kind, int32_t a, uint8_t *at[2]) {
  void *partials = packed_next(to, kind, a, &at[0]).partials;
  return (pair){partials, packed_next(from, kind, a, &at[1])};
}

/* All sums or none. */
static bool add_sums(const packed *to, const packed *from, const aggregates *functions,
                     const partial_kind *const *kinds) {
  uint8_t *at[] = {to->columns, from->columns}, *again[] = {to->columns, from->columns};
  for (int32_t a = 0; a < functions->n; a++) {
    pair p = next_pair(to, from, kinds[a], a, at);
    if (!kinds[a]->sums || partial_add_plain(p.to, &p.from)) continue;
    for (int32_t done = 0; done < a; done++) {
      p = next_pair(to, from, kinds[done], done, again);
      if (kinds[done]->sums) partial_subtract_plain(p.to, &p.from, p.from.n);
    }
    return false;
  }
  return true;
}

static void add_others(const packed *to, const packed *from, const aggregates *functions,
                       const partial_kind *const *kinds) {
  uint8_t *at[] = {to->columns, from->columns};
  for (int32_t a = 0; a < functions->n; a++) {
    pair p = next_pair(to, from, kinds[a], a, at);
    if (kinds[a]->size && !kinds[a]->sums) kinds[a]->enter(&(partial_totals){.total = p.to}, &p.from);
  }
}

bool slice_sum_add(pane *node, pane *other, const aggregates *functions, const partial_kind *const *kinds) {
  assert(other->plain == node->plain);
  packed to = pane_packed(node), from = pane_packed(other);
  if (!add_sums(&to, &from, functions, kinds)) return false;
  add_others(&to, &from, functions, kinds);
  add_rows(&to, &from);
  return true;
}
