/* pane.h - a node with a flat slice, as it is handed over. Window [s, s + size) consists of the slices that begin in it
   (edges.h). */
#pragma once

#include "base/atomics.h"
#include "windows/edges.h"
#include "slices/slice.h"

#define PANE_FOREVER UINT64_MAX

typedef struct pane_slab pane_slab;

typedef struct pane {
  _Alignas(16) cell next; /* the flat slice follows the node */
  pane_slab *slab;        /* NULL: made by the reader, in pane_window.c */
  uint64_t begin;         /* of the slice */
  uint64_t position;      /* the edge that the input has reached; PANE_FOREVER: closed */
  int64_t through;        /* tuples of the input so far, those of this slice included */
  int64_t n;              /* keys in the slice; unfolded: tuples */
  int64_t limit;          /* above all its key numbers */
  uint64_t plain;         /* of its data: see slice.h */
  int32_t input;
  uint32_t sweep; /* later slices have key numbers looked up in this sweep (key_sweep.h); once read, the reader's */
  bool owns;      /* partials own memory */
  bool unfolded;  /* not folded: see slice_unfolded.h */
  bool dense;     /* an entry for each key number: see slice_sum.h */
  bool held;      /* the reader's: in some window not emitted yet */
  bool guest;     /* slab is NULL: refers to states of a snapshot (carried.h) */
} pane;

_Static_assert(sizeof(pane) % 16 == 0, "partials hold 128-bit integers");

static inline flat_slice pane_flat(pane *p) {
  flat_slice data = flat_view(p + 1, p->n, p->plain, p->unfolded);
  data.dense = p->dense;
  return data;
}

/* The query, and which shortcuts its functions allow. */
typedef struct {
  pane_windows windows;
  const aggregates *functions;
  bool unfolded;  /* slices may be unfolded */
  bool firsts;    /* slice_firsts.h applies */
  bool dense;     /* slice_sum.h applies */
  uint64_t plain; /* then: `plain` of slices that may be added up */
  bool merges;    /* slices of an edge may be merged: no strings */
} pane_plan;

pane_plan pane_plan_of(pane_windows windows, const aggregates *functions);

/* A new node for the slice. `move`: the slice is empty afterwards, and the node owns the memory of partials; else the
   slice keeps both. NULL: out of memory, nothing changed. */
pane *pane_of_slice(slice *from, uint64_t begin, bool move);

/* Frees the memory of partials that the node owns. */
void pane_drop(const pane_plan *p, pane *node);
