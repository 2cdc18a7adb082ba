/*
 * pane_hive.h - windows from per-input slices: one hand-over per slice and input, none per tuple or window.
 *
 * Ours, not in the paper; spec/PaneHive.tla is the text to read first, and the labels there are the AT(...) here.
 *
 * Slices   lie between edges, and edges are the starts and the ends of windows: a window covers all tuples of a slice
 * or none. Window [s, s + size) is the slices that begin in it. Roles    each input has one thread at a time
 * (pane_hive_add, _heartbeat, _close); one reader (pane_hive_next, _combine, _drop). Their calls may all run together.
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
 *          A node says the slice and the input's new position, the edge that it has come to. Nodes lie in slabs.
 *
 * Invariants
 *   I1  the slices of an input lie end to end, from 0 to its position
 *   I2  a slice holds exactly its input's tuples between begin and end, but for those in no window
 *   I3  of the tuples of a slice, a window covers all or none
 *   I4  a node never changes once it is linked, but for what belongs to the reader (marked below)
 *   I5  the reader holds the slices of windows that are not delivered yet; besides these, one node per input is alive
 *   I6  nobody touches a node that has been freed
 * Guarantees
 *   G1  linearizable to WindowOrder: a call of an input takes effect when it links its node; a winset comes out at
 *       next_combine; "nothing there" holds at the read that found no node
 *   G2  each winset once, whole, in order; the output depends on the tuples alone
 *   G3  exact: what is complete is delivered, without waiting for more
 * Progress   inputs are wait-free but for memory allocation; the reader reads on only past nodes that were published.
 *
 * The reader's cost   A slice enters the totals of its keys once and leaves them once (partial.h), whatever the number
 * of windows it is in. Memory: open slices x their keys, and one total per key number.
 */
#pragma once

#include "atomics.h"
#include "edges.h"
#include "roster.h"
#include "slice.h"
#include "tournament.h"

#define PANE_FOREVER UINT64_MAX

typedef struct pane_slab pane_slab;

typedef struct pane {
  _Alignas(16) cell next; /* the packed slice begins behind the node */
  pane_slab *slab;
  uint64_t begin;    /* of the slice */
  uint64_t position; /* the edge that the input has come to; PANE_FOREVER: closed */
  int64_t through;   /* tuples of the input, from its beginning to the end of the slice */
  int64_t n;         /* keys in the slice */
  int64_t limit;     /* above all its key numbers */
  uint64_t plain;    /* of its data: see slice.h */
  int32_t input;
  bool owns; /* partials hold memory */
  bool held; /* the reader's: the slice is still needed */
} pane;

typedef struct {
  uint64_t begin, end; /* the private slice: the position that was published last, and the next edge */
  slice slice;
  int64_t tuples;   /* folded so far, or in no window */
  pane *last;       /* the end of the list */
  pane_slab *slab;  /* being filled with nodes */
  pane_slab *spare; /* slabs that wait for their turn */
  uint8_t apart[64];
  cell returned; /* slabs that the reader is done with; it alone pushes, the input takes all */
  uint8_t apart_too[64];
} pane_input;

typedef struct {
  pane **cursor;                              /* the last node that was read of each input */
  tournament seen;                            /* and its position */
  pane **held;                                /* ring of the nodes whose slices are still needed, by begin */
  int64_t held_capacity;                      /* a power of two, or 0 */
  uint64_t held_first, held_turned, held_end; /* those before `turned` are in the front stacks: see partial.h */
  int64_t partials;                           /* in the nodes held */
  uint64_t due;        /* end of the first window that is not delivered and has tuples; PANE_FOREVER: none */
  uint64_t start_next; /* the lowest start of a window that is not delivered */
  int64_t *rows;       /* tuples of each key number in the window */
  partial_totals *totals;
  int64_t capacity; /* key numbers there is room for */
  roster roster;
} pane_reader;

typedef struct {
  pane_windows windows;
  const aggregates *functions;
  const partial_kind **kinds;
  bool stacked; /* some function needs the two stacks */
  int32_t inputs;
  pane_input *input;
  pane_reader reader;
} pane_hive;

/* The key columns. */
typedef struct {
  const key_table *table;
  int32_t columns;
  const ps_type *types;
} pane_keys;

/* False when out of memory. */
bool pane_hive_init(pane_hive *h, pane_windows windows, const aggregates *functions, const pane_keys *keys,
                    int32_t inputs);
void pane_hive_free(pane_hive *h);

/* An input's thread. Expect: key numbers below `limit` may come; false when out of memory, nothing has changed. The
   others: false when out of memory; the input must not be used any more then. Add publishes every slice that ends in
   the batch; `numbers` are the key numbers of its rows. Close comes once. */
bool pane_hive_expect(pane_hive *h, int32_t input, int64_t limit);
bool pane_hive_add(pane_hive *h, int32_t input, const batch *b, const uint32_t *numbers);
bool pane_hive_heartbeat(pane_hive *h, int32_t input, uint64_t ts);
bool pane_hive_close(pane_hive *h, int32_t input);

/* The reader. Next: PS_OK, the window at *start is complete; PS_EMPTY, none is; PS_END, none will be; PS_NO_MEMORY.
   After PS_OK, combine puts the window's rows out, and drop goes on behind it; a failed combine may be repeated. */
ps_code pane_hive_next(pane_hive *h, int64_t *start);
ps_code pane_hive_combine(pane_hive *h, int64_t start, out_rows *rows, ps_fault *fault);
ps_code pane_hive_drop(pane_hive *h, int64_t start);

/* The reader: tuples of the input in the slices that have been read so far. */
int64_t pane_hive_through(const pane_hive *h, int32_t input);
