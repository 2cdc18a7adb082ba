/* slab.c - see slab.h. */
#include "gates/slab.h"

_Static_assert(sizeof(slab) % sizeof(cell) == 0, "nodes begin on an aligned place");

static slab *slab_new(size_t bytes) { return memory_new(sizeof(slab) + bytes); }

static void fill_next(slab_taker *taker, slab *s) {
  s->next = NULL;
  taker->filling = s;
  taker->free = s->nodes;
  taker->end = s->nodes + taker->bytes;
}

bool slab_init(slab_taker *taker, slab_giver *giver, int64_t bytes, int64_t spares_max, int levels) {
  size_t node_max = skip_node_bytes(levels);
  size_t wanted = bytes < (int64_t)node_max ? node_max : (size_t)bytes / sizeof(cell) * sizeof(cell);
  *taker = (slab_taker){.bytes = wanted, .node_max = node_max, .giver = giver};
  slab *first = slab_new(wanted);
  if (!first) return false;
  cell_init(&giver->returned, 0);
  giver->oldest = first;
  giver->spares_max = spares_max;
  fill_next(taker, first);
  return true;
}

static void free_chain(slab *s) {
  while (s) {
    slab *next = s->next;
    memory_free(s);
    s = next;
  }
}

void slab_free_all(slab_taker *taker, slab_giver *giver) {
  if (!taker->filling) return; /* slab_init failed or was never called */
  free_chain(giver->oldest);
  free_chain(taker->spare);
  free_chain((slab *)(uintptr_t)cell_last(&giver->returned));
}

static size_t room(const slab_taker *taker) { return (size_t)(taker->end - taker->free); }

/* Number of slabs, beyond `filling`, that `nodes` nodes will need. */
static int64_t slabs_needed(const slab_taker *taker, skip_tower tower, int64_t nodes) {
  size_t left = room(taker);
  int64_t needed = 0;
  for (int64_t i = 0; i < nodes; i++) {
    if (left < taker->node_max) {
      needed++;
      left = taker->bytes;
    }
    left -= skip_node_bytes(skip_tower_draw(&tower));
  }
  return needed;
}

static void add_spares(slab_taker *taker, slab *s) {
  while (s) {
    slab *next = s->next;
    s->next = taker->spare;
    taker->spare = s;
    taker->spares++;
    s = next;
  }
}

static void take_returned(slab_taker *taker) {
  cell *returned = &taker->giver->returned;
  for (;;) {
    AT(insert_take_node);
    slab *top = returned_read(returned);
    if (!top) return;
    AT(insert_take_node);
    if (returned_take(returned, top)) {
      add_spares(taker, top);
      return;
    }
  }
}

bool slab_reserve(slab_taker *taker, skip_tower tower, int64_t nodes) {
  if (nodes == 1 && room(taker) >= taker->node_max) return true;
  int64_t needed = slabs_needed(taker, tower, nodes);
  if (taker->spares < needed) take_returned(taker);
  while (taker->spares < needed) {
    slab *s = slab_new(taker->bytes);
    if (!s) return false;
    add_spares(taker, s);
  }
  return true;
}

skip_node *slab_take(slab_taker *taker, int height) {
  if (room(taker) < taker->node_max) {
    slab *s = taker->spare;
    assert(s);
    taker->spare = s->next;
    taker->spares--;
    WRITES(taker->filling->next);
    taker->filling->next = s;
    fill_next(taker, s);
  }
  skip_node *node = (void *)taker->free;
  taker->free += skip_node_bytes(height);
  WRITES(*node);
  node->height = (uint8_t)height;
  node->last = room(taker) < taker->node_max;
  return node;
}

void slab_return(slab_giver *giver) {
  slab *s = giver->oldest;
  READS(s->next);
  giver->oldest = s->next;
  for (;;) {
    AT(reclaim_free);
    slab *top = returned_read(&giver->returned);
    s->next = top;
    s->depth = top ? top->depth + 1 : 1;
    if (s->depth > giver->spares_max) {
      memory_free(s);
      return;
    }
    AT(reclaim_free);
    if (returned_push(&giver->returned, top, s)) return;
  }
}
