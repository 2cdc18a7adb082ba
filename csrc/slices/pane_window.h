/*
 * pane_window.h - which slices make the next window, and its rows (slide.h); for one thread, the reader of a hive.
 *
 * Four calls, in this order, which assertions check:
 *
 *   take      a slice joins those held. As often as there are slices, in the order of their begins
 *   next      is a window complete? PS_OK: yes, and then
 *   emit      writes its rows (or visit: its states). After a failure it may be tried again
 *   advance   goes past it: slices that no later window needs leave and go back to the hive
 *
 *   start_next          due               the slices held are those of the first window that has any and has not been
 *       |--- slices held --|              emitted; it ends at `due`
 *
 * Memory: open slices x their keys, and one total per key number.
 *
 * Slices are touched again long after they came: when they leave, and where two stacks are needed, once in between. So
 * where many are held, those of all inputs that begin at one edge are merged into one, which is held when the next edge
 * comes or a window is due. So they are where all inputs together hand over more partials of an edge than there are
 * keys: then by key number (slice_sum.h), which costs less.
 *
 * What a snapshot brings (pane_window_carry) waits in two lists (carried.h): windows, each of which takes part in the
 * window of the same start and no other; and slices, which are held like all others when their begin is reached. In the
 * order of tuples the windows come before the slices, and both before whatever is added later.
 *
 * Invariants
 *   I1  slices held begin at or after start_next and before due
 *   I2  carried slices that begin before due are held
 *   I3  something is merged only while slices are held that begin before it: `due` does not depend on it
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
  uint64_t edge;         /* where the slice began that came last */
  int64_t edge_partials; /* what has come of that edge */
  int64_t limit;         /* above all key numbers that have come with slices */
  bool crowded;          /* at the edge before, more partials came than there are key numbers */
  pane *dense;           /* slices of one edge that have come, added up; NULL: none */
  slice merged;          /* the slices of one edge that have come; empty: none */
  uint64_t merged_begin; /* that edge */
  carried windows, slices;
  int64_t guests; /* nodes held that came from `slices` */
} pane_window;

/* Takes back a node that was given to pane_window_take and is not needed any more. */
typedef struct {
  void (*give)(void *hive, pane *node);
  void *hive;
} pane_owner;

/* All of these: false, or PS_NO_MEMORY, when out of memory; but for emit, free is all that is left then. */
bool pane_window_init(pane_window *w, const pane_plan *plan, const slide_keys *keys);
void pane_window_free(pane_window *w, pane_owner owner);

/* The slice is not empty. It is held (node->held), or it has been merged, and the node may go. */
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

/* From a snapshot, before anything is taken: begin; states of windows or slices, whose bytes then belong to the window,
   starts never decreasing; end. PS_CORRUPT: it cannot be, or is there already. */
bool pane_window_carry_begin(pane_window *w, int64_t start_next);
ps_code pane_window_carry(pane_window *w, bool slices, int64_t start, const key *k, const uint8_t *state);
bool pane_window_carry_end(pane_window *w);

/* Where the last slice begins that was carried here; -1: there is none. */
int64_t pane_window_carried_last(const pane_window *w);

/* Visits the windows that were carried here and have not been emitted. */
bool pane_window_visit_carried(const pane_window *w, window_visit visit, void *context);

/* Whether anything of a snapshot is left: it refers to keys that may be in no slice held. */
static inline bool pane_window_carries(const pane_window *w) { return w->windows.n > 0 || w->slices.n > 0; }

/* Whose a node is that a visit is given. */
typedef enum {
  PANE_LENT,    /* not the visit's */
  PANE_FLIPPED, /* the same, and its stacked partials are those of the front stacks: slide.c */
  PANE_COPIED,  /* the visit's to free, but not what its partials hold */
  PANE_OWED     /* the visit's to free, with what its partials hold */
} pane_loan;

/* False ends it. `node` NULL: out of memory. */
typedef bool (*pane_visit)(void *context, pane *node, pane_loan loan);

/* Visits all slices: those held, the oldest first, what has been merged, and what waits to be held. */
bool pane_window_visit_slices(pane_window *w, pane_visit visit, void *context);

/* Shows a node's slice to a slide. */
void pane_window_show(const pane_plan *plan, pane *node, slide_slice *to);

static inline const slide *pane_window_slide(const pane_window *w) { return &w->slide; }

/* (slice, key) pairs that it keeps. */
static inline int64_t pane_window_partials(const pane_window *w) {
  return w->partials + w->merged.n + (w->dense ? w->dense->n : 0) + carried_left(&w->windows) +
         carried_left(&w->slices);
}
