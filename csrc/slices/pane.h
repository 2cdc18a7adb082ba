/*
 * pane.h - how a slice of time is handed over. Window [s, s + size) is the slices that begin in it (edges.h).
 */
#pragma once

#include "base/atomics.h"
#include "windows/edges.h"
#include "slices/slice.h"

#define PANE_FOREVER UINT64_MAX

typedef struct pane_slab pane_slab;

typedef struct pane {
  _Alignas(16) cell next; /* the packed slice follows the node */
  pane_slab *slab;        /* NULL: the reader's own, from a snapshot, merged or dense (pane_window.h) */
  uint64_t begin;         /* of the slice */
  uint64_t position;      /* the edge that the input has reached; PANE_FOREVER: closed */
  int64_t through;        /* tuples of the input, from its beginning to the end of the slice */
  int64_t n;              /* keys in the slice; unfolded: tuples */
  int64_t limit;          /* above all its key numbers */
  uint64_t plain;         /* of its data: see slice.h */
  int32_t input;
  uint32_t sweep; /* later slices use key numbers learnt since that sweep began (key_sweep.h); then the reader's */
  bool owns;      /* partials hold memory */
  bool unfolded;  /* not folded: see slice_unfolded.h */
  bool dense;     /* the reader's own, with an entry for each key number: see slice_sum.h */
  bool held;      /* the reader's: the slice is still needed */
  bool guest;     /* slab is NULL: it refers to what a snapshot brought (carried.h) */
} pane;

_Static_assert(sizeof(pane) % 16 == 0, "partials hold 128-bit integers");

static inline packed pane_packed(pane *p) {
  packed data = packed_view(p + 1, p->n, p->plain, p->unfolded);
  data.dense = p->dense;
  return data;
}

/* What the windows are made of. */
typedef struct {
  pane_windows windows;
  const aggregates *functions;
  const partial_kind **kinds; /* of each function */
  bool unfolded;              /* slices may be unfolded */
  bool firsts;                /* slices may be made of firsts: slice_firsts.h */
  bool dense;                 /* slices of an edge may be added up: slice_sum.h */
  uint64_t plain;             /* those whose sums are all plain */
  bool merges;                /* they may be merged: no strings */
} pane_plan;

/* False when out of memory. */
bool pane_plan_init(pane_plan *p, pane_windows windows, const aggregates *functions);
void pane_plan_free(pane_plan *p);

/* The slice as a node of its own, which moves what partials hold and leaves the slice empty; or copies them, and such
   memory stays the slice's. NULL when out of memory; nothing has changed. */
pane *pane_pack(slice *from, uint64_t begin, bool move);

/* Frees what the partials hold, if the node owns it. */
void pane_drop(const pane_plan *p, pane *node);
