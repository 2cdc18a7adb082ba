/*
 * edges.h - the arithmetic of time: which windows cover a timestamp, and where slices lie. All of csrc computes window
 * starts, ends and edges here.
 *
 * Slices lie between edges, and edges are the starts and the ends of windows and nothing else, so a window covers all
 * tuples of a slice or none, whatever its size and advance.
 *
 * Why nothing wraps: timestamps, starts of windows that cover one, size and advance are below 2^63, and everything here
 * is unsigned with 64 bits. So start + size and start + advance are below 2^64 - 1, and a loop over the starts from
 * first_start to last_start ends: the step behind the last one does not wrap.
 *   last_start(ts) <= ts         first_start(ts) <= ts - size + advance         last_edge(ts) <= ts
 *   next_edge(edge) <= edge + advance, for an edge below 2^63
 */
#pragma once

#include "base/base.h"

/* The windows. */
typedef struct {
  uint64_t size, advance;
} pane_windows;

/* The beginning of the slice that the timestamp lies in. */
static inline uint64_t last_edge(pane_windows w, uint64_t ts) {
  uint64_t start = ts / w.advance * w.advance;
  uint64_t end = ts < w.size ? 0 : (ts - w.size) / w.advance * w.advance + w.size;
  return start > end ? start : end;
}

static inline uint64_t next_edge(pane_windows w, uint64_t edge) {
  uint64_t start = (edge / w.advance + 1) * w.advance;
  uint64_t end = edge < w.size ? w.size : ((edge - w.size) / w.advance + 1) * w.advance + w.size;
  return start < end ? start : end;
}

/* Whether tuples of the slice that begins here are in some window. */
static inline bool is_covered(pane_windows w, uint64_t begin) {
  return w.size >= w.advance || begin % w.advance < w.size; /* without a division where windows leave no gaps */
}

/* The start of the first window that ends after the timestamp: it covers it, or the slice that begins there, if any
   does. Between two windows it is behind the timestamp, and then maybe beyond the largest one. */
static inline uint64_t first_start(pane_windows w, uint64_t ts) {
  return ts < w.size ? 0 : ((ts - w.size) / w.advance + 1) * w.advance;
}

/* The start of the last window that begins at the timestamp or before. */
static inline uint64_t last_start(pane_windows w, uint64_t ts) { return ts / w.advance * w.advance; }

/* Whether nothing from `ts` on can fall into the window; -1: nothing has come yet. */
static inline bool is_complete(pane_windows w, uint64_t start, int64_t ts) {
  return ts >= 0 && start + w.size <= (uint64_t)ts;
}

/* Designs that keep every window by itself take a tuple that lies in no more than PS_WINDOWS_MAX of them. A timestamp
   lies in size / advance windows, rounded up or down, or in ts / advance + 1 if that is less: the largest one that is
   in few enough. The product does not overflow: the advance is below size / PS_WINDOWS_MAX. */
static inline int64_t ts_max(pane_windows w) {
  bool many = (w.size - 1) / w.advance >= PS_WINDOWS_MAX;
  return many ? (int64_t)(w.advance * PS_WINDOWS_MAX - 1) : INT64_MAX;
}
