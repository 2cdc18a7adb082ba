/*
 * watch.h - what the output thread wants to hear of from one input. Spec: spec/Watch.tla.
 *
 * One word per input. The output thread marks what it waits for (watch_mark) and looks once more; the input draws the
 * marks after each add (watch_tell) and rings only if it is meant. Both are read-modify-writes of the same word, so one
 * of them comes first: either the input finds the mark, or the look that follows the mark finds the add (G1 there).
 * Without marks an add costs one such operation on a word in the input's own cache, and nobody is woken.
 */
#pragma once

#include "atomics.h"
#include "base.h"

#define WATCH_EDGE UINT64_C(1) /* the next slice */
#define WATCH_ANY UINT64_C(2)  /* every add: somebody waits for room */
#define WATCH_TOLD INT64_C(4)  /* added with each add: the marks stay as they are */

#define WATCH_NONE SIZED(0, UINT64_MAX - 7) /* no mark, and any count: it may wrap */

/* tickets_draw: its two sides are the input, which has made its add visible, and the output thread, which then looks.
 */

/* The input: whether to ring. `edge`: it has handed over a slice. */
static inline bool watch_tell(cell *watch, bool edge) {
  AT(add_watch);
  uint64_t marks = tickets_draw(watch, WATCH_TOLD);
  return (marks & WATCH_ANY) || (edge && (marks & WATCH_EDGE));
}

/* The output thread: the marks as they are and as they should be. */
static inline void watch_mark(cell *watch, uint64_t now, uint64_t then) {
  if (now == then) return;
  AT(output_mark);
  tickets_draw(watch, (int64_t)then - (int64_t)now);
}
