/*
 * pane_window.h - the next window to be put out, combined from slices; for one thread.
 *
 * Slices come by pane_window_take, in the order of their begins. A slice enters the totals of its keys once and leaves
 * them once (partial.h), whatever the number of windows it is in. Memory: open slices x their keys, and one total per
 * key number.
 *
 * Slices are touched again long after they came: when they leave, and where two stacks are needed, once in between. So
 * where many are held, those of all inputs that begin at one edge are merged into one, which is held when the next edge
 * comes or a window is due. So they are where all inputs together hand over more partials of an edge than there are
 * keys: then by key number (slice_sum.h), which costs less.
 *
 *   start_next          due               the slices held are those of the first window that has any and is not
 *       |--- slices held --|              delivered; it ends at `due`
 *
 * What a snapshot brings (pane_window_carry) waits in two lists, by start: windows, each of which takes part in the
 * window of the same start and no other; and slices, which are held like all others when their begin is reached. In the
 * order of tuples the windows come before the slices, and both before whatever is added later.
 *
 * Invariants
 *   I1  slices held begin at or after start_next and before due
 *   I2  carried slices that begin before due are held
 *   I3  something is merged only while slices are held that begin before it: `due` does not depend on it
 */
#pragma once

#include "slices/slice_sum.h"
#include "slices/slice_firsts.h"
#include "slices/slice_unfolded.h"
#include "slices/pane.h"
#include "keys/key_order.h"
#include "windows/window_rows.h"

/* What the windows are made of. */
typedef struct {
  pane_windows windows;
  const aggregates *functions;
  const partial_kind **kinds; /* of each function */
  bool stacked;               /* some function needs the two stacks */
  bool unfolded;              /* slices may be unfolded */
  bool firsts;                /* slices may be made of firsts: slice_firsts.h */
  bool dense;                 /* slices of an edge may be added up: slice_sum.h */
  uint64_t plain;             /* those whose sums are all plain */
  bool merges;                /* they may be merged: no strings */
} pane_plan;

bool pane_plan_init(pane_plan *p, pane_windows windows, const aggregates *functions);
void pane_plan_free(pane_plan *p);

/* The key columns. */
typedef struct {
  const key_table *table;
  int32_t columns;
  const ps_type *types;
} pane_keys;

/* States by (start, key), starts never decreasing. */
typedef struct {
  bool slices; /* or windows */
  int64_t *starts;
  uint32_t *numbers; /* of the keys */
  uint8_t *states;   /* owned */
  int64_t n, first;  /* those before `first` have been used */
  int64_t starts_capacity, numbers_capacity, states_capacity;
  uint64_t *met; /* by key number: the last start + 1 that the key came with */
  int64_t met_capacity;
} carried;

typedef struct {
  const pane_plan *plan;
  pane **held;                                 /* ring of the nodes whose slices are still needed, by begin */
  int64_t held_capacity;                       /* a power of two, or 0 */
  uint64_t held_first, held_flipped, held_end; /* those before `flipped` are in the front stacks: see partial.h */
  int64_t partials;                            /* in the nodes held */
  uint64_t due;        /* end of the first window that is not delivered and has tuples; PANE_FOREVER: none */
  uint64_t start_next; /* the lowest start of a window that is not delivered */
  int64_t *rows;       /* tuples of each key number in the window */
  partial_totals *totals;
  int64_t capacity; /* key numbers there is room for */
  key_order key_order;
  uint64_t edge;         /* where the slice began that came last */
  int64_t edge_partials; /* what has come of that edge */
  int64_t limit;         /* above all key numbers that have come with slices */
  bool crowded;          /* at the edge before, more partials came than there are key numbers */
  pane *dense;           /* slices of one edge that have come, added up; NULL: none */
  slice merged;          /* the slices of one edge that have come; empty: none */
  uint64_t merged_begin; /* that edge */
  carried windows, slices;
  int64_t guests;        /* nodes held that came from `slices` */
  pane *guest, *without; /* between open and close: the carried window, and what stacked totals were without it */
} pane_window;

/* All of these: false, or PS_NO_MEMORY, when out of memory. */
bool pane_window_init(pane_window *w, const pane_plan *plan, const pane_keys *keys);
void pane_window_free(pane_window *w); /* after all nodes that are not its own have been handed back */

/* The i-th node held, which the caller may free; NULL: it was carried here and is the window's own. */
pane *pane_window_hand_back(pane_window *w, uint64_t i);

/* The slice, which is not empty, joins those held (node->held), or is merged, and the node may go. Afterwards
   pane_window_look, unless all is settled. Seal before a window is opened: what was merged is held then. */
bool pane_window_take(pane_window *w, pane *node);
bool pane_window_seal(pane_window *w);

static inline bool pane_window_is_settled(const pane_window *w) {
  return w->due < PANE_FOREVER && w->windows.first == w->windows.n && w->slices.first == w->slices.n;
}

/* Whether anything of a snapshot is left: it refers to keys that may be in no slice held. */
static inline bool pane_window_carries(const pane_window *w) { return w->windows.n > 0 || w->slices.n > 0; }

/* The window that ends at `due` is complete: its live keys are in w->key_order.live, their number in *n. Close takes the
   carried states out of the totals again. */
bool pane_window_open(pane_window *w, int64_t *n);
bool pane_window_close(pane_window *w);

/* Puts its rows out, between open and close. */
ps_code pane_window_put(pane_window *w, int64_t n, out_rows *rows, ps_fault *fault);

/* The window is delivered: then pass, once; then leave as often as it gives a slice, which nobody needs any more (false
   in *ok: out of memory); then pane_window_look. */
void pane_window_pass(pane_window *w);
pane *pane_window_leave(pane_window *w, bool *ok);

/* Which window is due? Takes in the carried slices that it covers. */
bool pane_window_look(pane_window *w);

/* From a snapshot: a window's or a slice's state, whose bytes then belong to the window; starts never decrease.
   PS_CORRUPT: it cannot be, or is there already. After the last of them pane_window_look. */
ps_code pane_window_carry(pane_window *w, carried *to, int64_t start, const key *k, const uint8_t *state);

/* Visits the windows that were carried here and are not delivered. */
bool pane_window_each(const pane_window *w, window_visit visit, void *context);

/* The entries with the first start that is left as a node, which refers to their states. NULL when out of memory. */
pane *pane_window_guest(const pane_window *w, const carried *c);

/* Adds the slice to the totals, and takes it out. Stacked functions can only be added to. */
bool pane_window_enter(pane_window *w, pane *node);
bool pane_window_subtract(pane_window *w, pane *node);
/* Makes the totals of these keys zero again. */
void pane_window_clear(pane_window *w, const uint32_t *keys, int64_t n);

static inline pane *pane_window_held(const pane_window *w, uint64_t i) {
  return w->held[i & ((uint64_t)w->held_capacity - 1)];
}

static inline int64_t pane_window_partials(const pane_window *w) {
  return w->partials + w->merged.n + (w->dense ? w->dense->n : 0) + (w->windows.n - w->windows.first) +
         (w->slices.n - w->slices.first);
}
