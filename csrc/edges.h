/*
 * edges.h - where slices lie: between edges, and edges are the starts and the ends of windows and nothing else, so a
 * window covers all tuples of a slice or none, whatever its size and advance.
 *
 * Everything stays below 2^64, since timestamps, size and advance are below 2^63.
 */
#pragma once

#include "base.h"

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

/* The start of the first window that covers a slice. */
static inline uint64_t first_start(pane_windows w, uint64_t begin) {
  return begin < w.size ? 0 : ((begin - w.size) / w.advance + 1) * w.advance;
}
