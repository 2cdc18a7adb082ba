/*
 * stacked.h - enter, leave, push, pop, total and results of functions that keep the better of two partials (partial.h).
 *
 * `name`_better(a, b): whether a wins over b; `name`_of(a, b): the winner. Both are inlined, so that each function has
 * loops of its own without calls.
 */
#pragma once

#include "aggregates/kernel.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): `state` is a type */
#define BETTER_OF(name, state) \
  static inline state name##_of(const state *a, const state *b) { return name##_better(a, b) ? *a : *b; }

#define STACKED(name, state)                                                                         \
  static bool name##_enter(const partial_totals *t, const partial_list *list) {                      \
    state *back = t->total;                                                                          \
    const state *from = list->partials;                                                              \
    for (int64_t i = 0; i < list->n; i++) {                                                          \
      state *to = &back[list->keys[i]];                                                              \
      *to = name##_of(&from[i], to);                                                                 \
    }                                                                                                \
    return true;                                                                                     \
  }                                                                                                  \
  static inline void name##_push_by(const partial_totals *t, const partial_list *list, bool dense) { \
    state *back = t->total, *front = t->front, *own = list->partials;                                \
    for (int64_t i = 0, n = list->n; i < n; i++) {                                                   \
      uint32_t k = dense ? (uint32_t)i : list->keys[i];                                              \
      state without = front[k];                                                                      \
      front[k] = name##_of(&own[i], &without);                                                       \
      own[i] = without;                                                                              \
      back[k] = (state){0};                                                                          \
    }                                                                                                \
  }                                                                                                  \
  static void name##_push(const partial_totals *t, const partial_list *list) {                       \
    if (list->dense) {                                                                               \
      name##_push_by(t, list, true);                                                                 \
    } else {                                                                                         \
      name##_push_by(t, list, false);                                                                \
    }                                                                                                \
  }                                                                                                  \
  static void name##_pop(const partial_totals *t, const partial_list *list) {                        \
    state *front = t->front;                                                                         \
    const state *own = list->partials;                                                               \
    if (list->dense) {                                                                               \
      memcpy(front, own, (size_t)list->n * sizeof *own);                                             \
      return;                                                                                        \
    }                                                                                                \
    for (int64_t i = 0; i < list->n; i++) front[list->keys[i]] = own[i];                             \
  }                                                                                                  \
  static const void *name##_total(const partial_totals *t, uint32_t k) {                             \
    const state *back = (const state *)t->total + k, *front = (const state *)t->front + k;           \
    return name##_better(back, front) ? back : front;                                                \
  }

/* The total of `last` is of the newest slice that has a tuple. When that slice leaves, all older ones have left. */
#define NEWEST(name, state)                                                                                 \
  static bool name##_enter(const partial_totals *t, const partial_list *list) {                             \
    state *total = t->total;                                                                                \
    const state *from = list->partials;                                                                     \
    for (int64_t i = 0; i < list->n; i++) {                                                                 \
      state *to = &total[list->keys[i]];                                                                    \
      if (name##_better(&from[i], to)) *to = from[i];                                                       \
    }                                                                                                       \
    return true;                                                                                            \
  }                                                                                                         \
  static bool name##_leave(const partial_totals *t, const partial_list *list) {                             \
    state *total = t->total;                                                                                \
    const state *from = list->partials;                                                                     \
    for (int64_t i = 0; i < list->n; i++) {                                                                 \
      state *to = &total[list->keys[i]];                                                                    \
      if (to->place.when == from[i].place.when && to->place.input == from[i].place.input) *to = (state){0}; \
    }                                                                                                       \
    return true;                                                                                            \
  }                                                                                                         \
  static const void *name##_total(const partial_totals *t, uint32_t k) { return (const state *)t->total + k; }

/* Fixed-width results: `value` of each key's total *s, or null if `missing`. */
#define RESULTS(name, state, value, missing)                                     \
  static ps_code name##_finish_many(const partial_results *r) {                  \
    uint64_t *out = out_reserve(r->rows, r->to, r->keys->n);                     \
    if (!out) return PS_NO_MEMORY;                                               \
    for (int64_t i = 0; i < r->keys->n; i++) {                                   \
      const state *s = name##_total(r->t, r->keys->keys[i]);                     \
      out[i] = value;                                                            \
      if ((missing) && !out_put_null_at(r->rows, r->to, i)) return PS_NO_MEMORY; \
    }                                                                            \
    return PS_OK;                                                                \
  }
/* NOLINTEND(bugprone-macro-parentheses) */

#define STACKED_BY(name) \
  .stacked = true, .enter = name##_enter, .push = name##_push, .pop = name##_pop, .total = name##_total
#define NEWEST_BY(name) .enter = name##_enter, .leave = name##_leave, .total = name##_total
