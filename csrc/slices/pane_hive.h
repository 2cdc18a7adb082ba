/*
 * pane_hive.h - windows from slices of each input: one hand-over per slice and input, none per tuple or window.
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
 *   I4  a node does not change once it is linked, except for the reader's fields (pane.h)
 *   I5  the reader holds the slices of windows not emitted yet; besides these, one node per input is alive
 *   I6  no node is read or written after it was freed
 * Guarantees
 *   G1  linearizable to WindowOrder: a call of an input takes effect when it links its node; a winset is emitted at
 *       next_combine; PS_EMPTY takes effect at the read that found no node
 *   G2  each winset once, whole, in order; the output depends only on the tuples
 *   G3  exact: a winset is emitted as soon as it is complete, without waiting for another tuple
 * Progress   inputs are wait-free except for memory allocation; the reader never blocks.
 *
 * How the reader makes windows out of slices: pane_window.h, slide.h. Snapshots: pane_save.h.
 */
#pragma once

#include "slices/pane_window.h"
#include "base/tournament.h"

typedef struct {
  uint64_t begin, end; /* of the private slice: the position published last, and the next edge */
  slice slice;
  int64_t tuples;   /* added so far */
  int64_t limit;    /* above all its key numbers */
  int64_t keys;     /* in the last slice that was folded */
  int64_t unfolded; /* slices that may still be unfolded before one is folded to count its keys */
  uint32_t sweep;   /* pane_hive_set_sweep: see pane.h */
  pane *last;       /* the end of the list */
  pane_slab *slab;  /* being filled with nodes */
  pane_slab *spare; /* slabs for reuse */
  uint8_t apart[64];
  cell returned; /* stack of slabs: the reader pushes, the input takes all at once */
  uint8_t apart_too[64];
} pane_input;

/* Private: other files use the functions below. */
typedef struct {
  pane_plan plan;
  int32_t inputs;
  pane_input *input;
  uint8_t apart[64];  /* inputs read the fields above, the reader writes those below */
  pane **cursor;      /* the reader's, by input: the last node read */
  tournament seen;    /* the reader's, by input: that node's position */
  pane_window window; /* the reader's */
} pane_hive;

/* False when out of memory. */
bool pane_hive_init(pane_hive *h, pane_windows windows, const aggregates *functions, const slide_keys *keys,
                    int32_t inputs);
void pane_hive_free(pane_hive *h);

/* An input's thread. Expect makes room for key numbers below `limit`; false: out of memory, nothing changed. Add folds
   a batch, whose rows have the key numbers `numbers`, and publishes every slice that ends in it. Close is called once.
   Add, heartbeat, close: false: out of memory, and the input must not be used any more. */
bool pane_hive_expect(pane_hive *h, int32_t input, int64_t limit);
bool pane_hive_add(pane_hive *h, int32_t input, const batch *b, const uint32_t *numbers);
bool pane_hive_heartbeat(pane_hive *h, int32_t input, uint64_t ts);
bool pane_hive_close(pane_hive *h, int32_t input);

/* An input's thread. Sweep: the key sweep since which its key numbers were looked up (key_sweep.h). Edge: begin of
   the next slice. Last: the node handed over last. */
static inline uint32_t pane_hive_sweep(const pane_hive *h, int32_t which) { return h->input[which].sweep; }
static inline void pane_hive_set_sweep(pane_hive *h, int32_t which, uint32_t sweep) { h->input[which].sweep = sweep; }
static inline uint64_t pane_hive_edge(const pane_hive *h, int32_t which) { return h->input[which].end; }
static inline const pane *pane_hive_last(const pane_hive *h, int32_t which) { return h->input[which].last; }

/* The reader. Next: PS_OK: a window is complete; PS_EMPTY: none is; PS_END: none will be; PS_NO_MEMORY. After PS_OK,
   combine emits the window's rows, then drop removes it. */
ps_code pane_hive_next(pane_hive *h);
ps_code pane_hive_combine(pane_hive *h, out_rows *rows, ps_fault *fault);
ps_code pane_hive_drop(pane_hive *h);

/* The reader, guarded by the input's lock, after pane_hive_set_sweep: if all slices of the input are read and its
   private one is empty, the sweep counts as seen (pane_hive_has_seen). */
void pane_hive_skip(pane_hive *h, int32_t input);

/* The reader: whether it has read a slice of this sweep from the input; from every input. */
static inline bool pane_hive_has_seen(const pane_hive *h, int32_t which, uint32_t sweep) {
  return h->cursor[which]->sweep == sweep;
}
bool pane_hive_has_swept(const pane_hive *h, uint32_t sweep);

/* The reader: tuples in the input's slices read so far. */
int64_t pane_hive_through(const pane_hive *h, int32_t input);

/* The reader: position of the input's last slice read; the lowest of all inputs. */
static inline uint64_t pane_hive_position(const pane_hive *h, int32_t which) { return h->seen.score[which]; }
static inline uint64_t pane_hive_lowest(const pane_hive *h) { return tournament_lowest(&h->seen); }

static inline const pane_plan *pane_hive_plan(const pane_hive *h) { return &h->plan; }

static inline pane_window *pane_hive_window(pane_hive *h) { return &h->window; }

/* While all threads stand still: visits all slices (pane_window.h). */
bool pane_hive_visit_slices(pane_hive *h, pane_visit visit, void *context);
