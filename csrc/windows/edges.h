/*
 * edges.h - the arithmetic of time: which windows cover a timestamp, and where slices begin. All of csrc computes
 * window starts, ends and edges here.
 *
 * An edge is the start or the end of a window, and a slice is the time between two neighbouring edges. So a window
 * covers all tuples of a slice or none, for any size and advance.
 *
 * Proved for all values by tests/proofs/test_arithmetic.py, on this text. Why nothing wraps: timestamps, starts of windows that cover one, size and advance are below 2^63, and everything here
 * is unsigned with 64 bits. So start + size and start + advance are below 2^64 - 1, and a loop over the starts from
 * first_start to last_start ends: the step after the last one does not wrap.
 *   last_start(ts) <= ts         first_start(ts) <= ts - size + advance         last_edge(ts) <= ts
 *   next_edge(edge) <= edge + advance, for an edge below 2^63
 */
#pragma once

#include "base/base.h"

/* Size and advance of the windows. */
typedef struct {
  uint64_t size, advance;
} pane_windows;

/* The last edge at or before the timestamp: the begin of its slice. */
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

/* Whether some window covers the slice that begins here. */
static inline bool is_covered(pane_windows w, uint64_t begin) {
  return w.size >= w.advance || begin % w.advance < w.size; /* no division if windows leave no gaps */
}

/* The start of the first window that ends after the timestamp. It covers ts, or the slice that begins there, if any
   window does. In a gap between two windows it is after ts, and may be above the largest timestamp. */
static inline uint64_t first_start(pane_windows w, uint64_t ts) {
  return ts < w.size ? 0 : ((ts - w.size) / w.advance + 1) * w.advance;
}

/* The start of the last window that begins at or before the timestamp. */
static inline uint64_t last_start(pane_windows w, uint64_t ts) { return ts / w.advance * w.advance; }

/* Whether no tuple at or after `ts` can be in the window; ts = -1: nothing received yet. */
static inline bool is_complete(pane_windows w, uint64_t start, int64_t ts) {
  return ts >= 0 && start + w.size <= (uint64_t)ts;
}

/* The largest timestamp in at most PS_WINDOWS_MAX windows: the limit of designs that keep every window by itself. A
   timestamp is in size / advance windows, rounded up or down, or in ts / advance + 1 if that is less. The product does
   not overflow, because advance is below size / PS_WINDOWS_MAX then. */
static inline int64_t ts_max(pane_windows w) {
  bool many = (w.size - 1) / w.advance >= PS_WINDOWS_MAX;
  return many ? (int64_t)(w.advance * PS_WINDOWS_MAX - 1) : INT64_MAX;
}
