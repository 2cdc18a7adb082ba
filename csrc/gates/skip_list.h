/*
 * skip_list.h - the levelled list under T-Gate and W-Hive (section 4.1 of the paper, spec/SkipList.tla).
 *
 *   level 1   front ----------------> n3 ------------> tail      a node of height h is linked on levels 0 .. h-1;
 *   level 0   front -> n1 -> n2 ----> n3 -> n4 ------> tail      the tail is a null link
 *
 * Nodes are ordered by a key of two words. T-Gate: (ts, input and position), all keys different. W-Hive: (window start,
 * 0), one node per key. Keys, heights and payloads are written before a node is linked and never change while it is.
 *
 * Roles       any number of threads search and link at the same time, each with nodes and hints of its own.
 * Invariants  I1 every level is ascending in the key; I2 every level is a sublist of the level below, because nodes are
 *             linked from the ground up; I3 a linked node stays linked: only whole prefixes leave, from the front
 *             (reclaim.h says when).
 * Guarantees  G1 who finds a node sees its fields, and its link on the level on which he found it (link_swap releases,
 *             link_read acquires).
 * Progress    lock-free: link_swap fails only because another one succeeded. A search ends: levels ascend.
 *
 * The labels here are those of TGate. WHive and Reclaim name the same steps differently: spec/mirror.toml.
 */
#pragma once

#include "base/atomics.h"
#include "base/base.h"

/* Levels beyond 8 would shorten walks over more than 4^8 nodes: more than any list here holds between two readers. */
enum { SKIP_LEVELS_MAX = PS_LEVELS_MAX };

typedef struct {
  int64_t ts;
  uint64_t order;
} skip_key;

/* What a search reads, key and links, lies together. */
typedef struct skip_node {
  uint64_t payload[2]; /* the user's */
  uint8_t kind;        /* the user's */
  bool last;           /* of its slab, see slab.h */
  uint8_t height;      /* 1 .. levels of the list */
  skip_key key;
  cell next[]; /* `height` links */
} skip_node;

static inline size_t skip_node_bytes(int height) { return sizeof(skip_node) + (size_t)height * sizeof(cell); }

static inline bool skip_key_less(skip_key a, skip_key b) { return a.ts < b.ts || (a.ts == b.ts && a.order < b.order); }

static inline bool skip_key_equal(skip_key a, skip_key b) { return a.ts == b.ts && a.order == b.order; }

/* Must whoever looks for the last node not after `wanted` step on to n? */
static inline bool skip_list_passes(const skip_node *n, skip_key wanted) {
  if (!n) return false;
  READS(n->key);
  return !skip_key_less(wanted, n->key);
}

/* From `cur`, which is not after `wanted` and linked on `level`: the last node on that level that is not after it. */
static inline skip_node *skip_list_walk(skip_node *cur, int level, skip_key wanted) {
  for (;;) {
    AT(insert_search_next);
    skip_node *n = link_read(&cur->next[level]);
    if (!skip_list_passes(n, wanted)) return cur;
    cur = n;
  }
}

/* Links `node` on one level behind `cur` or a later node: others may have linked here since the search. Returns when it
   is linked. Linearization points are the callers'. */
static inline void skip_list_link_level(skip_node *cur, int level, skip_node *node) {
  for (;;) {
    AT(insert_link_next);
    skip_node *found = link_read(&cur->next[level]);
    if (skip_list_passes(found, node->key)) {
      cur = found;
      continue;
    }
    link_init(&node->next[level], found);
    AT(insert_link_cas);
    if (link_swap(&cur->next[level], found, node)) return;
  }
}

/* The same on the ground, for lists with one node per key: the node that has the key now, `node` itself or another
   thread's that came first (then `node` is still the caller's). */
static inline skip_node *skip_list_link_unique(skip_node *cur, skip_node *node) {
  for (;;) {
    AT(insert_link_next);
    skip_node *found = link_read(&cur->next[0]);
    if (skip_list_passes(found, node->key)) {
      if (skip_key_equal(found->key, node->key)) return found;
      cur = found;
      continue;
    }
    link_init(&node->next[0], found);
    AT(insert_link_cas);
    if (link_swap(&cur->next[0], found, node)) return node;
  }
}

/* Where a thread was on a level: a node, and its key, because the node may have been freed since. */
typedef struct {
  skip_key key;
  skip_node *node;
} skip_hint;

static inline skip_hint skip_hint_at(skip_node *node) {
  READS(node->key);
  return (skip_hint){node->key, node};
}

/* For every level the last node not after `key` into hint[level], from the top down, starting at `front` (of full
   height, not freed) or at the hint if that is further on. A hint at or before `front` is not followed, so it may be
   of a node that has gone. */
void skip_list_search(skip_hint *hint, int levels, skip_node *front, skip_key key);

/* Links the node on all its levels behind the hints that the search left, from the ground up; they move to it. */
void skip_list_link(skip_hint *hint, skip_node *node);

/* Draws heights: h with probability 3/4 * 4^(1-h), always the same sequence for the same seed; and full height at least
   every `full_every` draws, so that there is always a node soon from which all levels can be entered (reclaim.h). */
typedef struct {
  uint64_t state;
  int32_t levels;
  int32_t full_every;
  int32_t since_full;
} skip_tower;

skip_tower skip_tower_new(int levels, int full_every, uint64_t seed);
int skip_tower_draw(skip_tower *tower);
