/*
 * pane.h - slices of time, and how one is handed over.
 *
 * Slices lie between edges, and edges are the starts and the ends of windows: a window covers all tuples of a slice or
 * none. Window [s, s + size) is the slices that begin in it.
 */
#pragma once

#include "atomics.h"
#include "slice.h"

#define PANE_FOREVER UINT64_MAX

typedef struct pane_slab pane_slab;

typedef struct pane {
  _Alignas(16) cell next; /* the packed slice begins behind the node */
  pane_slab *slab;        /* NULL: it came from a snapshot (pane_window.h) */
  uint64_t begin;         /* of the slice */
  uint64_t position;      /* the edge that the input has come to; PANE_FOREVER: closed */
  int64_t through;        /* tuples of the input, from its beginning to the end of the slice */
  int64_t n;              /* keys in the slice */
  int64_t limit;          /* above all its key numbers */
  uint64_t plain;         /* of its data: see slice.h */
  int32_t input;
  bool owns; /* partials hold memory */
  bool held; /* the reader's: the slice is still needed */
} pane;

_Static_assert(sizeof(pane) % 16 == 0, "partials hold 128-bit integers");

static inline packed pane_packed(pane *p) { return packed_view(p + 1, p->n, p->plain); }

/* The windows. */
typedef struct {
  uint64_t size, advance;
} pane_windows;

/* ---- edges: below 2^64, since timestamps, size and advance are below 2^63 ---- */

static inline uint64_t pane_last_edge(pane_windows w, uint64_t ts) {
  uint64_t start = ts / w.advance * w.advance;
  uint64_t end = ts < w.size ? 0 : (ts - w.size) / w.advance * w.advance + w.size;
  return start > end ? start : end;
}

static inline uint64_t pane_next_edge(pane_windows w, uint64_t edge) {
  uint64_t start = (edge / w.advance + 1) * w.advance;
  uint64_t end = edge < w.size ? w.size : ((edge - w.size) / w.advance + 1) * w.advance + w.size;
  return start < end ? start : end;
}

/* Whether tuples of the slice that begins here are in some window. */
static inline bool pane_is_covered(pane_windows w, uint64_t begin) { return begin % w.advance < w.size; }

/* The start of the first window that covers a slice. */
static inline uint64_t pane_first_start(pane_windows w, uint64_t begin) {
  return begin < w.size ? 0 : ((begin - w.size) / w.advance + 1) * w.advance;
}
