/*
 * design.h - the interface of a design: one table of functions per design, listed in designs/designs.c.
 *
 * The operator does what all designs share: checks and counts tuples, looks up keys, keeps `latest`, blocks inputs that
 * are ahead, starts, wakes, pauses and ends the workers, and owns the sink. A design moves tuples from an input's
 * thread to the windows, and assigns the parts of that to workers.
 *
 * Worker 0 is the output thread: the only one that emits rows (update_output.h, or sink_lock ... sink_unlock) and that
 * calls operator_pass and operator_settle. Workers 1, 2, ... are update threads.
 */
#pragma once

#include "operator/operator.h"
#include "windows/window_rows.h"

struct design {
  bool ordered; /* tuples reach the windows in order: the design supports first, last, arg_min, arg_max and udf */
  bool folds;   /* add keeps no reference to the batch */
  bool updates; /* in update threads, as many as the caller requests; else there are none */

  /* Makes op->state. The rest of op is ready, no worker runs yet. False: out of memory, nothing made. */
  bool (*init)(ps_operator *op);
  void (*free)(ps_operator *op); /* no worker runs any more; does not free batches */

  /* Called by the input's thread, guarded by in->lock. reserve does everything that may fail before the `rows` tuples
     of a batch, or a heartbeat (rows = 1), are taken; in->ledger does not count them yet. False: out of memory, nothing
     changed, the caller may retry. add takes the tuples. heartbeat is called only for a timestamp above all before it,
     close at most once. Each rings the workers that it has work for (operator_ring). In designs with `piles`, add and
     close ring the output thread whenever it may wait for this input.

     reserve does not cover updating windows, which happens in a worker's step or, in designs where the input's thread
     updates (wiml, sliced), in add. Out of memory there ends the operator with PS_NO_MEMORY: add calls operator_fail
     and returns as if it had taken the tuples. The reader gets the rows emitted before, then the failure; every later
     call on an input returns PS_CLOSED. */
  bool (*reserve)(ps_operator *op, int32_t which, int64_t rows);

  /* Called before reserve. Looks up the keys of the batch in the design's own way and leaves b->keys empty. NULL: the
     operator fills b->keys. */
  bool (*find_keys)(ps_operator *op, int32_t which, const batch *b);

  void (*add)(ps_operator *op, int32_t which, batch *b);
  void (*heartbeat)(ps_operator *op, int32_t which, int64_t ts);

  /* Guarded by in->lock: whether a heartbeat at ts would add something that is held until all inputs are past it
     (promises.h). Such a heartbeat is delivered later, by the output thread, guarded by in->lock. NULL: never. */
  bool (*piles)(ps_operator *op, int32_t which, int64_t ts);
  void (*close)(ps_operator *op, int32_t which);

  /* One step of a worker. PS_OK: call again; PS_EMPTY: nothing to do now; PS_END: nothing to do ever again; other codes
     end the operator. After PS_EMPTY the operator calls once more, and the worker sleeps if that gives PS_EMPTY too. A
     step of the output thread that gives PS_EMPTY has emitted all complete rows and settled. */
  ps_code (*step)(ps_operator *op, int32_t number, ps_fault *fault);

  /* Output thread: starts of the oldest and the newest window held; INT64_MAX and -1 if there is none. Each tuple
     passed so far is in these windows or in none. NULL: the design removes unused keys itself. */
  int64_t (*oldest)(ps_operator *op);
  int64_t (*newest)(ps_operator *op);

  /* While paused (worker.h). save calls `visit` for every window, starts not decreasing, until visit returns false.
     load adds a window with this state, whose bytes then belong to the design, starts not decreasing: PS_OK,
     PS_NO_MEMORY, or PS_CORRUPT if the window exists. number sets the number of the next udf window. absorbed: of the
     input's tuples that are not passed, how many, oldest first, are in their windows already; NULL: none. */
  bool (*save)(ps_operator *op, window_visit visit, void *context);
  ps_code (*load)(ps_operator *op, int64_t start, const key *k, const uint8_t *state);
  void (*number)(ps_operator *op, int64_t next);
  int64_t (*absorbed)(ps_operator *op, int32_t which);

  /* Only in designs that keep slices, else NULL. save_slices visits slices as save visits windows; what slices hold is
     in no window that save visits; start_next is the lowest start of a window that was not emitted. To load, in this
     order: load_begin with start_next (false: impossible value), load for the windows, load_slice for the slices,
     load_end (false: out of memory). */
  bool (*save_slices)(ps_operator *op, window_visit visit, void *context);
  uint64_t (*start_next)(ps_operator *op);
  bool (*load_begin)(ps_operator *op, int64_t start_next);
  ps_code (*load_slice)(ps_operator *op, int64_t start, const key *k, const uint8_t *state);
  bool (*load_end)(ps_operator *op);

  /* Any thread: fills in out->windows from counters. */
  void (*stats)(ps_operator *op, ps_stats *out);
};

/* The design with this number; defined in designs/designs.c. The only call from this room to a higher one. */
const design *design_of(ps_design which);
