/*
 * skip_list.h - the skip list in T-Gate and W-Hive (section 4.1 of the paper, spec/SkipList.tla).
 *
 *   level 1   front ----------------> n3 ------------> tail      a node of height h is linked on levels 0 .. h-1;
 *   level 0   front -> n1 -> n2 ----> n3 -> n4 ------> tail      the tail is a null link
 *
 * Nodes are ordered by a key of two words. T-Gate: (ts, input and position), all keys different. W-Hive: (window start,
 * 0), one node per key. Keys, heights and payloads are written before a node is linked and do not change while it is.
 *
 * Roles       any number of threads search and link concurrently, each with nodes and hints of its own.
 * Invariants  I1 every level is ascending in the key;
 *             I2 every level is a sublist of the level below, because nodes are linked from level 0 up;
 *             I3 a linked node stays linked: only whole prefixes are removed, from the front (reclaim.h).
 * Guarantees  G1 a thread that finds a node sees its fields, and its link on the level where it found the node
 *                (link_swap releases, link_read acquires).
 * Progress    lock-free: link_swap fails only because another one succeeded. A search ends, because levels ascend.
 *
 * The labels here are those of TGate. WHive and Reclaim name the same steps differently: spec/mirror.toml.
 */
#pragma once

#include "base/atomics.h"
#include "base/base.h"

/* More than 8 levels pay only for walks over more than 4^8 nodes, which no list here holds between two readers. */
enum { SKIP_LEVELS_MAX = PS_LEVELS_MAX };

typedef struct {
  int64_t ts;
  uint64_t order;
} skip_key;

/* What a search reads, key and links, is adjacent. */
typedef struct skip_node {
  uint64_t payload[2]; /* the user's */
  uint8_t kind;        /* the user's */
  bool last;           /* of its slab: slab.h */
  uint8_t height;      /* 1 .. levels of the list */
  skip_key key;
  cell next[]; /* `height` links */
} skip_node;

static inline size_t skip_node_bytes(int height) { return sizeof(skip_node) + (size_t)height * sizeof(cell); }

static inline bool skip_key_less(skip_key a, skip_key b) { return a.ts < b.ts || (a.ts == b.ts && a.order < b.order); }

static inline bool skip_key_equal(skip_key a, skip_key b) { return a.ts == b.ts && a.order == b.order; }

/* Whether a search for the last node not after `wanted` advances to n. */
static inline bool skip_list_passes(const skip_node *n, skip_key wanted) {
  if (!n) return false;
  READS(n->key);
  return !skip_key_less(wanted, n->key);
}

/* The last node on `level` that is not after `wanted`, from `cur` on, which is linked there and not after it. */
static inline skip_node *skip_list_walk(skip_node *cur, int level, skip_key wanted) {
  for (;;) {
    AT(insert_search_next);
    skip_node *n = link_read(&cur->next[level]);
    if (!skip_list_passes(n, wanted)) return cur;
    cur = n;
  }
}

/* Links `node` on one level after `cur` or a later node, since other threads may have linked here after the search.
   Returns when it is linked. The callers define the linearization points. */
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

/* The same on level 0, for lists with one node per key. Returns the node that now has the key: `node`, or one that
   another thread linked first (then `node` is still the caller's). */
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

/* A thread's last place on a level: a node, and its key, because the node may have been freed since. */
typedef struct {
  skip_key key;
  skip_node *node;
} skip_hint;

static inline skip_hint skip_hint_at(skip_node *node) {
  READS(node->key);
  return (skip_hint){node->key, node};
}

/* Sets hint[level], for every level, to the last node not after `key`. Searches from the top level down, from `front`
   (of full height, not freed) or from the hint if that is after it. A hint at or before `front` is not followed, so its
   node may have been freed. */
void skip_list_search(skip_hint *hint, int levels, skip_node *front, skip_key key);

/* Links the node on all its levels after the hints that the search has set, from level 0 up. Sets the hints to it. */
void skip_list_link(skip_hint *hint, skip_node *node);

/* Draws heights: h with probability 3/4 * 4^(1-h), the same sequence for the same seed; and full height at least every
   `full_every` draws, so that a node from which all levels can be entered is never far (reclaim.h). */
typedef struct {
  uint64_t state;
  int32_t levels;
  int32_t full_every;
  int32_t since_full;
} skip_tower;

skip_tower skip_tower_new(int levels, int full_every, uint64_t seed);
int skip_tower_draw(skip_tower *tower);
