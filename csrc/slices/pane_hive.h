/*
 * pane_hive.h - windows from per-input slices: one hand-over per slice and input, none per tuple or window.
 *
 * Ours, not in the paper. Specified in spec/PaneHive.tla; read that first: its labels are the AT(...) here.
 *
 * Slices   are between edges, the starts and ends of windows (pane.h).
 * Roles    each input has one thread at a time (pane_hive_add, _heartbeat, _close); one reader (pane_hive_next,
 *          _combine, _drop). Their calls may all run together.
 *
 *            add  heartbeat  close  next  combine  drop
 *   an input  1       1        1    yes     yes     yes     (1: one at a time)
 *   reader   yes     yes      yes    1       1       1
 *
 * Lists    each input publishes its finished slices in a list of its own:
 *
 *            o ---> [0,2) ---> [2,3) ---> [3,6) ---> null
 *                      ^ cursor              ^ last
 *
 *          A node holds the slice and the input's new position, the edge that it has reached. Nodes are in slabs.
 *
 * Invariants
 *   I1  the slices of an input lie end to end, from 0 to its position
 *   I2  a slice holds exactly its input's tuples between begin and end, except those in no window
 *   I3  a window covers all tuples of a slice or none
 *   I4  a node does not change once it is linked, except for fields of the reader (marked below)
 *   I5  the reader holds the slices of windows not delivered yet; besides these, one node per input is alive
 *   I6  no node is read or written after it was freed
 * Guarantees
 *   G1  linearizable to WindowOrder: a call of an input takes effect when it links its node; a winset comes out at
 *       next_combine; "nothing there" holds at the read that found no node
 *   G2  each winset once, whole, in order; the output depends on the tuples alone
 *   G3  exact: what is complete is delivered, without waiting for more
 * Progress   inputs are wait-free except for memory allocation; the reader advances only over nodes that were
 * published.
 *
 * How the reader makes windows of slices, and at what cost: pane_window.h, slide.h. Snapshots: pane_save.h.
 */
#pragma once

#include "slices/pane_window.h"
#include "base/tournament.h"

typedef struct {
  uint64_t begin, end; /* of the private slice: the position published last, and the next edge */
  slice slice;
  int64_t tuples;   /* so far: handed over, folded, or in no window */
  int64_t limit;    /* above all its key numbers */
  int64_t keys;     /* in the slice folded last */
  int64_t unfolded; /* slices that may be unfolded until one is folded again, to count its keys */
  uint32_t sweep;   /* pane_hive_set_sweep: see pane.h */
  pane *last;       /* the end of the list */
  pane_slab *slab;  /* being filled with nodes */
  pane_slab *spare; /* slabs for reuse */
  uint8_t apart[64];
  cell returned; /* slabs freed by the reader: only it pushes, the input takes all */
  uint8_t apart_too[64];
} pane_input;

/* Other files use the functions below alone. */
typedef struct {
  pane_plan plan;
  int32_t inputs;
  pane_input *input;
  uint8_t apart[64];  /* separates what the inputs read from what the reader writes */
  pane **cursor;      /* the reader's: the last node read of each input */
  tournament seen;    /* the reader's: and its position */
  pane_window window; /* the reader's */
} pane_hive;

/* False when out of memory. */
bool pane_hive_init(pane_hive *h, pane_windows windows, const aggregates *functions, const slide_keys *keys,
                    int32_t inputs);
void pane_hive_free(pane_hive *h);

/* An input's thread. Expect makes room for key numbers below `limit`; false: out of memory, nothing has changed. The
   others: false: out of memory; the input must not be used any more. Add publishes every slice that ends in the batch;
   `numbers` are the key numbers of its rows. Close is called once. */
bool pane_hive_expect(pane_hive *h, int32_t input, int64_t limit);
bool pane_hive_add(pane_hive *h, int32_t input, const batch *b, const uint32_t *numbers);
bool pane_hive_heartbeat(pane_hive *h, int32_t input, uint64_t ts);
bool pane_hive_close(pane_hive *h, int32_t input);

/* An input's thread. Sweep: its key numbers were learned since that key sweep began (key_sweep.h). Edge: begin of the
   next slice. Last: the node handed over last. */
static inline uint32_t pane_hive_sweep(const pane_hive *h, int32_t which) { return h->input[which].sweep; }
static inline void pane_hive_set_sweep(pane_hive *h, int32_t which, uint32_t sweep) { h->input[which].sweep = sweep; }
static inline uint64_t pane_hive_edge(const pane_hive *h, int32_t which) { return h->input[which].end; }
static inline const pane *pane_hive_last(const pane_hive *h, int32_t which) { return h->input[which].last; }

/* The reader. Next: PS_OK, a window is complete; PS_EMPTY, none is; PS_END, none will be; PS_NO_MEMORY. After PS_OK,
   combine emits the window's rows, and drop advances past it. */
ps_code pane_hive_next(pane_hive *h);
ps_code pane_hive_combine(pane_hive *h, out_rows *rows, ps_fault *fault);
ps_code pane_hive_drop(pane_hive *h);

/* The reader, while the input stands still and its sweep has been set: if nothing of it is unread or begun, it counts
   as if a slice of that sweep had been read. */
void pane_hive_skip(pane_hive *h, int32_t input);

/* The reader: whether a slice of this sweep has been read of the input; of every input. */
static inline bool pane_hive_has_seen(const pane_hive *h, int32_t which, uint32_t sweep) {
  return h->cursor[which]->sweep == sweep;
}
bool pane_hive_has_swept(const pane_hive *h, uint32_t sweep);

/* The reader: tuples of the input in the slices read so far. */
int64_t pane_hive_through(const pane_hive *h, int32_t input);

/* The reader: the position of the input in the slices read, and the lowest of all. */
static inline uint64_t pane_hive_position(const pane_hive *h, int32_t which) { return h->seen.score[which]; }
static inline uint64_t pane_hive_lowest(const pane_hive *h) { return tournament_lowest(&h->seen); }

static inline const pane_plan *pane_hive_plan(const pane_hive *h) { return &h->plan; }

/* The reader: its window. */
static inline pane_window *pane_hive_window(pane_hive *h) { return &h->window; }

/* While all stand still: visits all slices (pane_window.h). */
bool pane_hive_visit_slices(pane_hive *h, pane_visit visit, void *context);
