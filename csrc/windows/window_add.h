/*
 * window_add.h - adds one tuple to the windows that a call of W-Hive has found, all of them or none.
 *
 * First everything that can fail, window by window (find, reserve); then the adding, which cannot (window_process of
 * spec/WHive.tla). How a window holds its tuples is said by the winset's shape: in lanes or in words (win_set.h). In line,
 * because it runs for each window of each tuple.
 */
#pragma once

#include "windows/win_set.h"
#include "windows/window_list.h"

/* A window that the current call adds its tuple to. */
typedef struct {
  win_set *set;
  window *window;
  uint8_t *state; /* in lanes: the lane's state, or the one it will get */
} target;

/* What the calls of one thread have in common. */
typedef struct {
  int32_t thread;
  int64_t udf_window; /* next number; numbers of a thread differ by the number of threads */
} adder;

/* The tuple of one call. */
typedef struct {
  const batch *b;
  int64_t row;
  out_rows *journal; /* NULL: no udf */
} added;

static inline bool target_in_words(const win_set_shape *shape) { return shape->lanes == 0; }

/* ---- find ---- */

/* The thread's lane of the window, or a state for it. */
static inline bool target_lane_find(const win_set_shape *shape, adder *by, target *to) {
  uint8_t **lane = win_set_lane(shape, to->window, by->thread);
  to->state = *lane ? *lane : win_set_state_new(to->set, by->thread);
  if (!to->state || *lane || shape->functions->udf < 0) return to->state != NULL;
  *aggregates_udf_window(shape->functions, to->state) = by->udf_window;
  by->udf_window += shape->threads;
  return true;
}

/* The key's window, and what adding to it needs. False: out of memory. */
static inline bool target_find(const win_set_shape *shape, adder *by, win_set *set, const key *k, target *to) {
  *to = (target){.set = set, .window = win_set_find_or_insert(set, by->thread, k)};
  return to->window && (target_in_words(shape) || target_lane_find(shape, by, to));
}

/* Returns what target_find took. */
static inline void target_drop(const win_set_shape *shape, const adder *by, const target *t) {
  if (target_in_words(shape) || *win_set_lane(shape, t->window, by->thread)) return;
  win_set_state_return(t->set, by->thread); /* at most one new state per winset, so it is the newest there */
}

/* ---- reserve ---- */

/* Whether adding wants target_reserve first; the same for all windows. */
static inline bool target_is_rare(const win_set_shape *shape, const added *what) {
  return target_in_words(shape) ? shared_is_rare(shape->functions, what->b, what->row) : shape->functions->reserves;
}

/* Everything that can fail for a window once it is found. */
static inline bool target_reserve(const win_set_shape *shape, const target *t, const added *what, bool rare) {
  const aggregates *functions = shape->functions;
  if (target_in_words(shape)) return !rare || shared_reserve(functions, win_set_words(t->window), what->b, what->row);
  if (rare && !aggregates_reserve(functions, t->state, what->b, what->row)) return false;
  if (!what->journal) return true;
  int64_t number = *aggregates_udf_window(functions, t->state);
  return journal_put(what->journal, number, win_set_start(t->set), what->b->number, what->row);
}

/* ---- add ---- */

static inline void target_lane_set(const win_set_shape *shape, const adder *by, const target *t) {
  uint8_t **lane = win_set_lane(shape, t->window, by->thread);
  if (*lane) return;
  WRITES(*lane);
  *lane = t->state;
  win_set_used(t->set, by->thread, t->window);
}

static inline void target_add(const win_set_shape *shape, const adder *by, const target *t, const added *what) {
  if (target_in_words(shape)) {
    shared_row(shape->functions, win_set_words(t->window), what->b, what->row);
    return;
  }
  WRITES(*t->state);
  bool done = aggregates_add(shape->functions, t->state, what->b, what->row);
  assert(done && "what it needs has been reserved");
  (void)done;
  target_lane_set(shape, by, t);
}

/* ---- snapshots ---- */

static inline ps_code target_words_load(const win_set_shape *shape, cell *words, const uint8_t *state) {
  if (!shared_is_empty(words)) return PS_CORRUPT;
  if (!shared_put(shape->functions, words, state)) return PS_NO_MEMORY;
  aggregates_drop(shape->functions, (uint8_t *)(uintptr_t)state);
  return PS_OK;
}

/* The window, which is new, gets this state, whose bytes then belong to it. */
static inline ps_code target_load(const win_set_shape *shape, const adder *by, const target *t, const uint8_t *state) {
  if (target_in_words(shape)) return target_words_load(shape, win_set_words(t->window), state);
  uint8_t **lane = win_set_lane(shape, t->window, by->thread);
  if (*lane) return PS_CORRUPT;
  memcpy(t->state, state, (size_t)shape->functions->state_size);
  *lane = t->state;
  return PS_OK;
}
