/* reclaim.c - see reclaim.h. */
#include "gates/reclaim.h"

#define NOT_LOOKED UINT64_MAX /* above any count of entries */

bool reclaim_init(reclaim *r, int32_t inputs, int32_t readers, int32_t levels, skip_node *first) {
  *r = (reclaim){.inputs = inputs, .readers = readers, .levels = levels};
  r->active = memory_new((size_t)inputs * sizeof *r->active);
  r->passed = memory_new((size_t)readers * sizeof *r->passed);
  r->waiting = memory_new((size_t)inputs * sizeof *r->waiting);
  if (!r->active || !r->passed || !r->waiting) return false;
  for (int32_t i = 0; i < inputs; i++) cell_init(&r->active[i].word, 0);
  for (int32_t i = 0; i < readers; i++) cell_init(&r->passed[i].word, 0);
  cell_init(&r->front, (uintptr_t)first);
  r->moved = r->oldest = r->trail = r->best = first;
  return true;
}

void reclaim_end(reclaim *r) {
  memory_free(r->active);
  memory_free(r->passed);
  memory_free(r->waiting);
}

skip_node *reclaim_enter(reclaim *r, int32_t input, uint64_t *entry) {
  AT(insert_enter);
  *entry = active_enter(&r->active[input].word);
  AT(insert_read_front);
  return front_read(&r->front);
}

void reclaim_leave(reclaim *r, int32_t input, uint64_t entry) {
  AT(insert_leave);
  active_leave(&r->active[input].word, entry + 1);
}

void reclaim_count(reclaim *r, int32_t reader, uint64_t nodes) {
  AT(next_count);
  passed_count(&r->passed[reader].word, nodes);
}

static uint64_t slowest_reader(const reclaim *r, uint64_t least) {
  for (int32_t other = 1; other < r->readers; other++) {
    AT(reclaim_read_passed);
    uint64_t nodes = passed_read(&r->passed[other].word);
    if (nodes < least) least = nodes;
  }
  return least;
}

/* Advances trail to the slowest reader, and best to the last node of full height on the way. */
static void follow(reclaim *r, uint64_t least) {
  while (r->rank < least) {
    AT(reclaim_read_next);
    r->trail = link_read(&r->trail->next[0]);
    r->rank++;
    READS(r->trail->height);
    if (r->trail->height == r->levels) r->best = r->trail;
  }
}

static bool move_front(reclaim *r, uint64_t nodes) {
  follow(r, slowest_reader(r, nodes));
  if (r->best == r->moved) return false;
  for (int32_t i = 0; i < r->inputs; i++) r->waiting[i] = NOT_LOOKED;
  AT(reclaim_set_front);
  front_move(&r->front, r->best);
  r->moved = r->best;
  return true;
}

/* Whether the calls under way when front advanced have ended. Reads each input once, never waits. */
static bool calls_ended(reclaim *r) {
  bool ended = true;
  for (int32_t i = 0; i < r->inputs; i++) {
    AT(reclaim_read_active);
    uint64_t now = active_read(&r->active[i].word);
    if (r->waiting[i] == NOT_LOOKED) {
      r->waiting[i] = now % 2 ? now : 0;
    } else if (r->waiting[i] != now) {
      r->waiting[i] = 0;
    }
    ended = ended && r->waiting[i] == 0;
  }
  return ended;
}

bool reclaim_advance(reclaim *r, uint64_t nodes, skip_node **first, skip_node **end) {
  bool moving = r->oldest != r->moved; /* front has advanced, but not all calls of that time had ended */
  if (!moving && !move_front(r, nodes)) return false;
  if (!calls_ended(r)) return false;
  *first = r->oldest;
  *end = r->oldest = r->moved;
  return true;
}
