/*
 * run_gate.h - Run-Gate: merges timestamp-sorted inputs for any number of readers, a run of tuples at a time.
 *
 * Ours, not in the paper. Specified in spec/RunGate.tla; read that first: its labels are the AT(...) here.
 *
 * Roles    one thread at a time per input: insert_run, heartbeat, close. One per reader: get_next_ready_run,
 *          get_next_ready_tuple, get_next_ready_block. Every reader gets every tuple.
 *
 *              insert_run  heartbeat  close  get of this reader  get of another
 *   same input     1           1        1           yes               yes          (1: one at a time)
 *   other input   yes         yes      yes          yes               yes
 *   reader        yes         yes      yes           1                yes
 *
 * Lists    one per input. A run is a sorted array of tuples and `last`, the promise that nothing below it follows. It
 *          is published by one store to `next` of its predecessor.
 *
 *   input 0   dummy -> [3 3 5 | 5] -> [5 8 | 8]
 *                            ^ cursor: exhausted, position (5, 0)
 *   input 1   dummy -> [4 5 9 | 9]
 *                         ^ cursor: head, position (5, 1)
 *
 * A reader looks at the input with the smallest position (a tournament). If that is a head, its tuple is ready, as are
 * the following ones of the run with the same timestamp, and all that are below the second smallest position: they are
 * returned as a slice of the run, without a copy. If it is exhausted, the reader reads only `next` of that run.
 *
 * When inputs interleave, slices are short, and a block is faster: all tuples at or below the smallest promise of the
 * runs at the cursors are ready, of whatever input, and are merged together (block_merge.h).
 *
 * Invariants
 *   I1  along a list, timestamps and promises never decrease
 *   I2  from the dummy, the list is all that has been published, in order
 *   I3  a reader has got, of each input, all tuples before its cursor and none after
 *   I4  positions and promises never decrease
 *   I5  no run is freed while a cursor is on it or its input will still store its next
 *   I6  `holders` counts the readers that have not left a run; the one that makes it 0 frees the run
 *   I7  if the smallest position is RUN_FOREVER, all inputs are closed and this reader has got everything
 * Guarantees
 *   G1  linearizable to ReadyOrder; a run inserts its tuples and its promise at one point
 *   G2  a reader that sees a run sees its contents: insert_publish releases, next_read_next acquires
 *   G3  all reads of a run happen before another reader frees it: next_leave
 * Progress   inputs are wait-free except for memory allocation; get is lock-free.
 *
 * The gate does not own the tuples: `ts` of a run must stay valid until every reader has got its last tuple.
 */
#pragma once

#include "base/atomics.h"
#include "gates/block_merge.h"
#include "base/tournament.h"

typedef struct {
  cell next;
  cell holders;
  uint64_t end; /* last + 1; 0: nothing promised yet; RUN_FOREVER: closed */
  const int64_t *ts;
  int64_t n;
  void *owner; /* the caller's: owner of the tuples */
} run;

#define RUN_FOREVER UINT64_MAX

typedef struct {
  run *at;
  const int64_t *head, *stop; /* timestamps of the tuples not returned yet; empty: exhausted */
} run_cursor;

/* Tuples from .. from + n - 1 of a run. */
typedef struct {
  int32_t input;
  void *owner;
  const int64_t *ts;
  int64_t from, n;
} run_slice;

typedef struct {
  run_cursor *cursor;  /* by input */
  tournament position; /* ts + 1 of the head, or `end` */
  int32_t before;      /* the input of the last slice; -1: none, or a block */
  int32_t rest;        /* this many calls return slices before a block is tried again */
  block_merge merge;
  run_slice *share; /* by input: its tuples in a block */
} run_reader;

typedef struct {
  run *tail;
  uint8_t apart[64 - sizeof(run *)]; /* one cache line each: every input writes its own */
} run_input;

typedef struct {
  int32_t inputs, readers;
  run_input *input;
  run_reader *reader;
} run_gate;

/* Tuples of several inputs in order, as slices of one timestamp each (run_block_next). With n = 0: tuples of one input,
   in `slice`. */
typedef struct {
  int64_t n; /* slices left */
  const uint64_t *key;
  run_reader *reader;
  run_slice slice;
} run_block;

/* The next slice of a block; n must be above 0. (Keep the block in a local variable: its fields are then in
   registers.) */
static inline run_slice run_block_next(run_block *b) {
  const block_merge *m = &b->reader->merge;
  uint64_t next = *b->key++;
  b->n--;
  int32_t which = block_merge_number(m, next);
  const run_slice *share = &b->reader->share[which];
  return (run_slice){which, share->owner, share->ts, share->from + block_merge_place(m, next),
                     block_merge_size(m, next)};
}

bool run_gate_init(run_gate *g, int32_t inputs, int32_t readers);
void run_gate_free(run_gate *g); /* no other call may run */

/* Input's thread. run_gate_reserve allocates the run that the next insert, heartbeat or close publishes, so that these
   cannot fail. NULL: out of memory. */
run *run_gate_reserve(run_gate *g);
void run_gate_insert_run(run_gate *g, int32_t input, run *r, const int64_t *ts, int64_t n, void *owner);
void run_gate_heartbeat(run_gate *g, int32_t input, run *r, int64_t ts); /* above all that the input has promised */
void run_gate_close(run_gate *g, int32_t input, run *r);

/* A reader. PS_OK: the next ready tuples; PS_EMPTY: none is ready; PS_END: none will be. The result is valid until the
   reader's next call. */
ps_code run_gate_get_next_ready_run(run_gate *g, int32_t reader, run_slice *out);
ps_code run_gate_get_next_ready_tuple(run_gate *g, int32_t reader, run_slice *out);
ps_code run_gate_get_next_ready_block(run_gate *g, int32_t reader, run_block *out);

/* A reader: lower bound of the timestamps that it has yet to get; -1: an input has not begun; INT64_MAX: the end. */
int64_t run_gate_position(const run_gate *g, int32_t reader);
