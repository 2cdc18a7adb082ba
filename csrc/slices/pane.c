/* pane.c - see pane.h. */
#include "slices/pane.h"

#include "slices/slice_firsts.h"
#include "slices/slice_sum.h"
#include "slices/slice_unfolded.h"

bool pane_plan_init(pane_plan *p, pane_windows windows, const aggregates *functions) {
  *p = (pane_plan){.windows = windows, .functions = functions};
  p->kinds = memory_new((size_t)functions->n * sizeof *p->kinds);
  if (!p->kinds) return false;
  bool strings = false;
  for (int32_t a = 0; a < functions->n; a++) {
    p->kinds[a] = partial_kind_of(&functions->each[a]);
    assert(p->kinds[a] && "no user functions here");
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

pane *pane_pack(slice *from, uint64_t begin, bool move) {
  uint64_t plain;
  size_t size = slice_packed_size(from, &plain);
  pane *node = memory_resize(NULL, sizeof *node + size);
  if (!node) return NULL;
  *node = (pane){.begin = begin, .n = from->n, .limit = from->slot_capacity, .plain = plain};
  if (move) {
    slice_pack(from, node + 1, plain, &node->owns);
  } else {
    slice_pack_copy(from, node + 1, plain, &node->owns);
  }
  return node;
}

void pane_drop(const pane_plan *p, pane *node) {
  packed data = pane_packed(node);
  uint8_t *at = data.columns;
  for (int32_t a = 0; node->owns && a < p->functions->n; a++) {
    partial_list list = packed_next(&data, p->kinds[a], a, &at);
    if (!list.plain) partial_drop(p->kinds[a], list.partials, list.n);
  }
}
