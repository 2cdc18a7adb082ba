/* pane.c - see pane.h. */
#include "slices/pane.h"

#include "slices/slice_firsts.h"
#include "slices/slice_sum.h"
#include "slices/slice_unfolded.h"

pane_plan pane_plan_of(pane_windows windows, const aggregates *functions) {
  bool strings = false;
  for (int32_t a = 0; a < functions->n; a++) {
    assert(partial_exists(&functions->each[a]) && "no user functions here");
    strings |= kernel_at(functions, a)->is_bytes;
  }
  return (pane_plan){.windows = windows,
                     .functions = functions,
                     .unfolded = slice_unfolded_suits(functions),
                     .firsts = slice_firsts_suit(functions),
                     .dense = slice_sum_suits(functions),
                     .plain = slice_sum_plain(functions),
                     .merges = !strings};
}

pane *pane_of_slice(slice *from, uint64_t begin, bool move) {
  uint64_t plain;
  size_t size = slice_flat_size(from, &plain);
  pane *node = memory_resize(NULL, sizeof *node + size);
  if (!node) return NULL;
  *node = (pane){.begin = begin, .n = from->n, .limit = from->slot_capacity, .plain = plain};
  if (move) {
    slice_flatten(from, node + 1, plain, &node->owns);
  } else {
    slice_flatten_copy(from, node + 1, plain, &node->owns);
  }
  return node;
}

void pane_drop(const pane_plan *p, pane *node) {
  flat_slice data = pane_flat(node);
  uint8_t *at = data.columns;
  for (int32_t a = 0; node->owns && a < p->functions->n; a++) {
    partial_list list = flat_next(&data, p->functions, a, &at);
    if (!list.plain) partial_drop(kernel_at(p->functions, a), list.partials, list.n);
  }
}
