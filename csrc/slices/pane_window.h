/*
 * pane_window.h - which slices make the next window, and its rows (slide.h); for one thread, the reader of a hive.
 *
 * Four calls, in this order, which assertions check:
 *
 *   take      adds a slice to those held. Once per slice, in the order of their begins
 *   next      PS_OK: a window is complete, then
 *   emit      writes its rows (visit: its states). After a failure it may be called again
 *   advance   removes it: slices that no later window needs leave and are given back to the hive
 *
 *   start_next          due               the slices held are those of the first window that has any and was not
 *       |--- slices held --|              emitted; it ends at `due`
 *
 * Memory: open slices x their keys, and one total per key number.
 *
 * A slice held is read again much later: when it leaves and, with stacks, once in between. So when many are held, the
 * slices of all inputs that begin at one edge are merged into one, which is held when the next edge is reached or a
 * window is due. If all inputs together hand over more partials of an edge than there are keys, they are added up by
 * key number instead (slice_sum.h), which costs less.
 *
 * States from a snapshot (pane_window_carry) wait in two lists (carried.h): windows, each added to the window of the
 * same start only; and slices, which are held like others when their begin is reached. In the order of tuples: windows,
 * slices, whatever is added later.
 *
 * Invariants
 *   I1  slices held begin at or after start_next and before due
 *   I2  carried slices that begin before due are held
 *   I3  slices are merged only while an earlier slice is held: `due` does not depend on them
 */
#pragma once

#include "slices/carried.h"
#include "slices/pane.h"
#include "slices/slide.h"

/* Other files use the functions below alone. */
typedef struct {
  const pane_plan *plan;
  slide slide;
  pane **held;           /* ring of the nodes whose slices are held, by their numbers in the slide */
  int64_t held_capacity; /* a power of two, or 0 */
  int64_t partials;      /* in the nodes held */
  uint64_t due;          /* end of the first window that is not emitted and has tuples; PANE_FOREVER: none */
  uint64_t start_next;   /* the lowest start of a window that is not emitted */
  uint64_t edge;         /* begin of the slice taken last */
  int64_t edge_partials; /* partials taken of that edge */
  int64_t limit;         /* above all key numbers of slices taken */
  bool crowded;          /* the edge before had more partials than there are key numbers */
  pane *dense;           /* slices of one edge, added up; NULL: none */
  slice merged;          /* slices of one edge, merged; empty: none */
  uint64_t merged_begin; /* that edge */
  carried windows, slices;
  int64_t guests; /* nodes held that came from `slices` */
} pane_window;

/* Gives back a node that pane_window_take was given and that is not needed any more. */
typedef struct {
  void (*give)(void *hive, pane *node);
  void *hive;
} pane_owner;

/* All of these: false, or PS_NO_MEMORY, if out of memory. Then, except after emit, only free may be called. */
bool pane_window_init(pane_window *w, const pane_plan *plan, const slide_keys *keys);
void pane_window_free(pane_window *w, pane_owner owner);

/* The slice is not empty. Afterwards it is held (node->held), or merged, and the node may be freed. */
bool pane_window_take(pane_window *w, pane *node);

/* Slices that begin before `position` have all been taken. PS_OK: a window is complete; PS_EMPTY: none is; PS_END: none
   will be. */
ps_code pane_window_next(pane_window *w, uint64_t position);
static inline int64_t pane_window_start(const pane_window *w) { return (int64_t)(w->due - w->plan->windows.size); }

/* The lowest start of a window that is not emitted. */
static inline uint64_t pane_window_start_next(const pane_window *w) { return w->start_next; }

/* Its rows; or its states, for which `state` has room for one: see slide_visit. */
ps_code pane_window_emit(pane_window *w, out_rows *rows, ps_fault *fault);
bool pane_window_visit(pane_window *w, uint8_t *state, window_visit visit, void *context);

bool pane_window_advance(pane_window *w, pane_owner owner);

/* From a snapshot, before any slice is taken: begin; states of windows or slices, which the window then owns, starts
   never decreasing; end. PS_CORRUPT: an impossible start, or (start, key) is there already. */
bool pane_window_carry_begin(pane_window *w, int64_t start_next);
ps_code pane_window_carry(pane_window *w, bool slices, int64_t start, const key *k, const uint8_t *state);
bool pane_window_carry_end(pane_window *w);

/* The begin of the last slice carried; -1: there is none. */
int64_t pane_window_carried_last(const pane_window *w);

/* Visits the carried windows that were not emitted. */
bool pane_window_visit_carried(const pane_window *w, window_visit visit, void *context);

/* Whether states of a snapshot are left: they refer to keys that may be in no slice held. */
static inline bool pane_window_carries(const pane_window *w) { return w->windows.n > 0 || w->slices.n > 0; }

/* Who frees the node that is visited. */
typedef enum {
  PANE_LENT,    /* its owner */
  PANE_FLIPPED, /* its owner; its stacked partials are those of the front stacks: slide.c */
  PANE_COPIED,  /* the visitor; but not memory that its partials refer to */
  PANE_OWED     /* the visitor, with that memory */
} pane_loan;

/* False ends the visit. `node` NULL: out of memory. */
typedef bool (*pane_visit)(void *context, pane *node, pane_loan loan);

/* Visits all slices: those held, oldest first; merged; carried and not held yet. */
bool pane_window_visit_slices(pane_window *w, pane_visit visit, void *context);

/* Shows a node's slice to a slide. */
void pane_window_show(const pane_plan *plan, pane *node, slide_slice *to);

static inline const slide *pane_window_slide(const pane_window *w) { return &w->slide; }

/* Number of (slice, key) pairs in memory. */
static inline int64_t pane_window_partials(const pane_window *w) {
  return w->partials + w->merged.n + (w->dense ? w->dense->n : 0) + carried_left(&w->windows) +
         carried_left(&w->slices);
}
