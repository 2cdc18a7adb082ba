/*
 * pane_window.h - the slices of the next window, and its rows (slide.h). For one thread, the hive's reader.
 *
 * Four calls, in this order, checked by assertions:
 *
 *   take      holds a slice; once per slice, in the order of their begins
 *   next      PS_OK: a window is complete; then
 *   emit      writes its rows (visit: its states); after a failure it may be called again
 *   advance   removes it, and gives slices that no later window covers back to the hive
 *
 *   start_next          due               the slices held are those of the first window that has any and was not
 *       |--- slices held --|              emitted; it ends at `due`
 *
 * Memory: open slices x their keys, and one total per key number.
 *
 * A held slice is read again much later, when it has left the cache: when it leaves and, with stacks, once before. So
 * when many are held, the inputs' slices of one edge are merged into one, which is held when the next edge is reached
 * or a window is due. If the inputs' slices of an edge have more partials than there are keys, they are added up by key
 * number instead (slice_sum.h), which costs less.
 *
 * States of a snapshot (pane_window_carry) are in two lists (carried.h): windows, each added only to the window of the
 * same start; and slices, held like others when their begin is reached. In the order of tuples: these windows, these
 * slices, what is added later.
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

/* Private: other files use the functions below. */
typedef struct {
  const pane_plan *plan;
  slide slide;
  pane **held;           /* ring of the nodes held, by their slices' numbers in the slide */
  int64_t held_capacity; /* a power of two, or 0 */
  int64_t partials;      /* in the nodes held */
  uint64_t due;          /* end of the first window that is not emitted and has tuples; PANE_FOREVER: none */
  uint64_t start_next;   /* the lowest start of a window that is not emitted */
  uint64_t edge;         /* begin of the slice taken last */
  int64_t edge_partials; /* partials of that edge taken so far */
  int64_t limit;         /* above all key numbers of slices taken */
  bool crowded;          /* the previous edge had more partials than there are key numbers */
  pane *dense;           /* slices of one edge, added up; NULL: none */
  slice merged;          /* slices of one edge, merged; empty: none */
  uint64_t merged_begin; /* that edge */
  carried windows, slices;
  int64_t guests; /* nodes held that came from `slices` */
} pane_window;

/* Gives back a node of pane_window_take that is not needed any more. */
typedef struct {
  void (*give)(void *hive, pane *node);
  void *hive;
} pane_owner;

/* False or PS_NO_MEMORY: out of memory. Then, except after emit, only free may be called. */
bool pane_window_init(pane_window *w, const pane_plan *plan, const slide_keys *keys);
void pane_window_free(pane_window *w, pane_owner owner);

/* The slice is not empty. Afterwards it is held (node->held); or it was copied and the caller may free the node. */
bool pane_window_take(pane_window *w, pane *node);

/* Slices that begin before `position` have all been taken. PS_OK: a window is complete; PS_EMPTY: none is; PS_END: none
   will be. */
ps_code pane_window_next(pane_window *w, uint64_t position);
static inline int64_t pane_window_start(const pane_window *w) { return (int64_t)(w->due - w->plan->windows.size); }

/* The lowest start of a window that is not emitted. */
static inline uint64_t pane_window_start_next(const pane_window *w) { return w->start_next; }

/* Emits its rows; visits its states, `state` having room for one: see slide_visit. */
ps_code pane_window_emit(pane_window *w, out_rows *rows, ps_fault *fault);
bool pane_window_visit(pane_window *w, uint8_t *state, window_visit visit, void *context);

bool pane_window_advance(pane_window *w, pane_owner owner);

/* Loads a snapshot, before any slice is taken: begin; for each state of a window or slice, starts never decreasing,
   carry, which takes ownership of the state; end. PS_CORRUPT: impossible start, or duplicate (start, key). */
bool pane_window_carry_begin(pane_window *w, int64_t start_next);
ps_code pane_window_carry(pane_window *w, bool slices, int64_t start, const key *k, const uint8_t *state);
bool pane_window_carry_end(pane_window *w);

/* Begin of the last slice carried; -1: none. */
int64_t pane_window_carried_last(const pane_window *w);

/* Visits the carried windows that are not emitted. */
bool pane_window_visit_carried(const pane_window *w, window_visit visit, void *context);

/* Whether states of a snapshot are left; their keys may be in no slice held. */
static inline bool pane_window_carries(const pane_window *w) { return w->windows.n > 0 || w->slices.n > 0; }

/* Who frees the node that is visited. */
typedef enum {
  PANE_LENT,    /* its owner */
  PANE_FLIPPED, /* its owner; it is in the front stacks, which changed its stacked partials: slide.c */
  PANE_COPIED,  /* the visitor, but not memory that its partials refer to */
  PANE_OWED     /* the visitor, with that memory */
} pane_loan;

/* False ends the visit. `node` NULL: out of memory. */
typedef bool (*pane_visit)(void *context, pane *node, pane_loan loan);

/* Visits all slices: those held, oldest first; merged ones; carried ones that are not held yet. */
bool pane_window_visit_slices(pane_window *w, pane_visit visit, void *context);

/* Shows a node's slice to a slide. */
void pane_window_show(const pane_plan *plan, pane *node, slide_slice *to);

static inline const slide *pane_window_slide(const pane_window *w) { return &w->slide; }

/* Number of (slice, key) pairs in memory. */
static inline int64_t pane_window_partials(const pane_window *w) {
  return w->partials + w->merged.n + (w->dense ? w->dense->n : 0) + carried_left(&w->windows) +
         carried_left(&w->slices);
}
