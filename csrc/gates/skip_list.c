/* skip_list.c - see skip_list.h. */
#include "gates/skip_list.h"

void skip_list_search(skip_hint *hint, int levels, skip_node *front, skip_key key) {
  skip_hint at = skip_hint_at(front);
  for (int level = levels - 1; level >= 0; level--) {
    if (skip_key_less(at.key, hint[level].key)) at = hint[level];
    skip_node *found = skip_list_walk(at.node, level, key);
    if (found != at.node) at = skip_hint_at(found);
    hint[level] = at;
  }
}

void skip_list_link(skip_hint *hint, skip_node *node) {
  for (int level = 0; level < node->height; level++) {
    skip_list_link_level(hint[level].node, level, node);
    hint[level] = (skip_hint){node->key, node};
  }
}

skip_tower skip_tower_new(int levels, int full_every, uint64_t seed) {
  uint64_t state = hash_mix(seed + 1);
  return (skip_tower){state ? state : 1, levels, full_every, 0}; /* xorshift never leaves 0 */
}

int skip_tower_draw(skip_tower *tower) {
  uint64_t x = tower->state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  tower->state = x;
  int height = 1;
  for (uint64_t bits = x >> 32; height < tower->levels && (bits & 3) == 0; bits >>= 2) height++;
  if (++tower->since_full >= tower->full_every) height = tower->levels;
  if (height == tower->levels) tower->since_full = 0;
  return height;
}
