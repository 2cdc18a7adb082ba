/*
 * wake_marks.h - which adds wake the output thread. Spec: spec/WakeMarks.tla.
 *
 * One word per input. The output thread marks what it waits for (wake_marks_set) and looks once more. The input draws
 * the marks after each add (wake_marks_draw) and rings only if one matches. Both are read-modify-writes of the same
 * word, so either the input finds the mark, or the look after the mark finds the add (G1 there). Without marks an add
 * costs one such operation, on a word in the input's own cache, and wakes no thread.
 */
#pragma once

#include "base/atomics.h"
#include "base/base.h"

#define WAKE_EDGE UINT64_C(1) /* the next slice */
#define WAKE_ANY UINT64_C(2)  /* every add: an input waits for room */
#define WAKE_TOLD INT64_C(4)  /* added by each add; leaves the marks unchanged */

#define WAKE_NONE SIZED(0, UINT64_MAX - 7) /* no mark, and any count: it may wrap */

/* The two sides of tickets_draw: the input, whose add is visible by then, and the output thread, which looks next. */

/* The input's thread: whether to ring. `edge`: it has handed over a slice. */
static inline bool wake_marks_draw(cell *word, bool edge) {
  AT(add_watch);
  uint64_t marks = tickets_draw(word, WAKE_TOLD);
  return (marks & WAKE_ANY) || (edge && (marks & WAKE_EDGE));
}

/* The output thread: replaces the marks `now` by `then`. */
static inline void wake_marks_set(cell *word, uint64_t now, uint64_t then) {
  if (now == then) return;
  AT(output_mark);
  tickets_draw(word, (int64_t)then - (int64_t)now);
}
