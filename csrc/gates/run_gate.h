/*
 * run_gate.h - merges timestamp-sorted inputs for any number of readers, a run of tuples at a time.
 *
 * Ours, not in the paper; spec/RunGate.tla is the text to read first, and the labels there are the AT(...) here.
 *
 * Roles    each input has one thread at a time (insert_run, heartbeat, close), each reader one (get_next_ready_run,
 * get_next_ready_tuple, get_next_ready_block). Calls of different inputs and readers may all run together. Every reader
 * gets every tuple.
 *
 *              insert_run  heartbeat  close  get of this reader  get of another
 *   same input     1           1        1           yes               yes          (1: one at a time)
 *   other input   yes         yes      yes          yes               yes
 *   reader        yes         yes      yes           1                yes
 *
 * Lists    one per input. A run is a sorted array of tuples and `last`, the promise that nothing below follows; it is
 *          published by one store to the `next` of the run before it.
 *
 *   input 0   dummy -> [3 3 5 | 5] -> [5 8 | 8]
 *                            ^ cursor: exhausted, position (5, 0)
 *   input 1   dummy -> [4 5 9 | 9]
 *                         ^ cursor: head, position (5, 1)
 *
 * A reader looks at the input with the smallest position (a tournament). If it is a head, that tuple is ready, and so
 * are those behind it in the run with the same timestamp, and all that are below the second smallest position: they are
 * given as a slice of the run, without a copy. If it is exhausted, the reader reads `next` of that run, nothing else.
 *
 * When inputs interleave, slices are short. Then a block pays: all that is at or below the smallest promise of the runs
 * at the cursors is ready, whatever input it is of, and is merged as a whole (block_merge.h).
 *
 * Invariants
 *   I1  along a list, timestamps and promises never decrease
 *   I2  from the dummy, the list is all that has been published, in order
 *   I3  of each input a reader has had all tuples before its cursor and none behind
 *   I4  positions and promises never go down
 *   I5  no run is freed while a cursor stands on it or its input will still store its next
 *   I6  `holders` counts the readers yet to leave a run; who takes it to 0 frees it
 *   I7  the smallest position is at the end: all inputs are closed and this reader has had everything
 * Guarantees
 *   G1  linearizable to ReadyOrder, a run being the insertion of its tuples and its promise at one point
 *   G2  who sees a run sees what is in it: insert_publish releases, next_read_next acquires
 *   G3  all that a reader did with a run comes before another one frees it: next_leave
 * Progress   inputs are wait-free but for memory allocation; get is lock-free.
 *
 * The gate does not own the tuples: `ts` of a run must stay until every reader has had its last tuple.
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
  void *owner; /* the caller's: what the tuples belong to */
} run;

#define RUN_FOREVER UINT64_MAX

typedef struct {
  run *at;
  const int64_t *head, *stop; /* timestamps of the tuples to come; none: exhausted */
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
  int32_t before;      /* the input of the last answer; -1: none, or a block */
  int32_t rest;        /* so many calls answer with slices before a block is tried again */
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

/* Tuples of many inputs in their order, as slices, each with one timestamp: see run_block_next. Or, with n = 0, tuples
   of one input: one slice. */
typedef struct {
  int64_t n; /* slices left */
  const uint64_t *key;
  run_reader *reader;
  run_slice slice;
} run_block;

/* The next of a block's slices; n must be above 0. (Read a block that lies in a local variable: its fields are then in
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

/* An input's thread. Reserve makes the run that the next insert, heartbeat or close publishes, so that these cannot
   fail; false when out of memory. */
run *run_gate_reserve(run_gate *g);
void run_gate_insert_run(run_gate *g, int32_t input, run *r, const int64_t *ts, int64_t n, void *owner);
void run_gate_heartbeat(run_gate *g, int32_t input, run *r, int64_t ts); /* above all that the input has promised */
void run_gate_close(run_gate *g, int32_t input, run *r);

/* A reader: PS_OK, the next ready tuples; PS_EMPTY, none is ready; PS_END, none will be. What they give stays until the
   reader's next call. */
ps_code run_gate_get_next_ready_run(run_gate *g, int32_t reader, run_slice *out);
ps_code run_gate_get_next_ready_tuple(run_gate *g, int32_t reader, run_slice *out);
ps_code run_gate_get_next_ready_block(run_gate *g, int32_t reader, run_block *out);

/* A reader: nothing that it has yet to get is below this timestamp; -1: an input has not begun; INT64_MAX: the end. */
int64_t run_gate_position(const run_gate *g, int32_t reader);
