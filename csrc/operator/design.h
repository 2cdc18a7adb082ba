/*
 * design.h - what operator.c asks of a design: one table of functions each, listed in designs.c.
 *
 * The operator does what all designs share. It checks and counts tuples, finds their keys, keeps `latest`, and holds
 * back inputs that are ahead; it starts, wakes, pauses and ends the threads (workers); it owns the sink. A design says
 * how tuples travel from an input's thread to the windows, and which worker does which part of that.
 *
 * Worker 0 is the output thread: it alone puts rows out (update_output.h, or sink_lock ... sink_unlock) and alone calls
 * operator_pass and operator_settle. Workers 1, 2, ... are update threads.
 */
#pragma once

#include "operator/operator.h"
#include "windows/window_rows.h"

struct design {
  bool ordered; /* tuples reach the windows in their order: it can run first, last and udf */
  bool folds;   /* add leaves nothing behind that refers to the batch */

  /* How many workers the design runs when the caller asks for so many update threads. */
  int32_t (*workers)(int32_t threads);

  /* Makes op->state; everything else in op is ready, but no worker runs yet. False: out of memory, nothing made. */
  bool (*init)(ps_operator *op);
  void (*free)(ps_operator *op); /* no worker runs any more; batches are the operator's to drop */

  /* The input's thread, one call at a time for each input (in->lock). Reserve does all that may fail before the `rows`
     tuples of a batch (1: or a heartbeat) are taken; in->ledger does not count them yet. False: out of memory, nothing
     changed, and the caller may try again. Add takes the tuples. Heartbeats come only when they promise something new,
     a close comes once. Each rings the workers that it has something for (operator_ring); where heartbeats pile up, add
     and close ring the output thread whenever that may wait for the input.

     Updating windows is no part of what reserve answers for, whoever does it: a worker in its step, or, in designs
     without update threads (wiml, sliced), the input's thread in add. If the memory ends there, the operator ends with
     PS_NO_MEMORY: add calls operator_fail, and returns as if it had taken the tuples. The reader gets the rows that
     were out and then the failure; every later call of an input is refused with PS_CLOSED. */
  bool (*reserve)(ps_operator *op, int32_t which, int64_t rows);

  /* Before reserve: finds the keys of the batch in the design's own way; b->keys stays empty then. NULL: the operator
     fills b->keys. */
  bool (*find_keys)(ps_operator *op, int32_t which, const batch *b);

  void (*add)(ps_operator *op, int32_t which, batch *b);
  void (*heartbeat)(ps_operator *op, int32_t which, int64_t ts);

  /* Under in->lock: whether a heartbeat would leave something behind that is held until all inputs have passed it
     (promises.h). It then comes from the output thread, under in->lock. NULL: none ever does. */
  bool (*piles)(ps_operator *op, int32_t which, int64_t ts);
  void (*close)(ps_operator *op, int32_t which);

  /* One step of a worker: PS_OK: go on; PS_EMPTY: nothing to do now; PS_END: nothing ever again; anything else is a
     failure and ends the operator. The operator calls it again after PS_EMPTY, and lets the worker sleep if that gives
     PS_EMPTY once more. The step that gives PS_EMPTY has put out all rows that are complete and settled. */
  ps_code (*step)(ps_operator *op, int32_t number, ps_fault *fault);

  /* The output thread: where the oldest and the newest of the windows start that are held; INT64_MAX and -1: none is.
     All tuples that have been passed are in these windows or in none. NULL: the design sees to keys that nothing refers
     to itself. */
  int64_t (*oldest)(ps_operator *op);
  int64_t (*newest)(ps_operator *op);

  /* While paused (worker.h). Save calls `visit` for every window, starts never decreasing, until it gives false. Load
     takes a window with this state, whose bytes then belong to the design, starts never decreasing: PS_OK,
     PS_NO_MEMORY, or PS_CORRUPT if the window is there already. Number says which udf window is the next. Absorbed: how
     many tuples of the input, from the oldest that was not passed on, are in their windows; NULL: none. */
  bool (*save)(ps_operator *op, window_visit visit, void *context);
  ps_code (*load)(ps_operator *op, int64_t start, const key *k, const uint8_t *state);
  void (*number)(ps_operator *op, int64_t next);
  int64_t (*absorbed)(ps_operator *op, int32_t which);

  /* Designs that keep slices; NULL: the others. Save_slices visits slices as save does windows; what they hold is in no
     window that is saved; start_next is the lowest start of a window that has not been emitted. Back again, in this
     order: load_begin with start_next (false: it cannot be one), load for the windows, load_slice for the slices, and
     load_end (false: out of memory). */
  bool (*save_slices)(ps_operator *op, window_visit visit, void *context);
  uint64_t (*start_next)(ps_operator *op);
  bool (*load_begin)(ps_operator *op, int64_t start_next);
  ps_code (*load_slice)(ps_operator *op, int64_t start, const key *k, const uint8_t *state);
  bool (*load_end)(ps_operator *op);

  /* Any thread: fills in out->windows, from counters. */
  void (*stats)(ps_operator *op, ps_stats *out);
};

/* The design of this number: designs/designs.c. The only way from here to a room above. */
const design *design_of(ps_design which);
