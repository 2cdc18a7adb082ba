/*
 * operator.h - the multiway aggregate: who runs Add, S-Merge, Update and Output. Spec: spec/Operator.tla.
 *
 *                  input's thread (add)      update threads            output thread
 * MQ (Alg. 2)      Add: tuple into queue     -                         S-Merge, Update, Output
 * MQ_LF            the same, without locks   -                         S-Merge, Update, Output
 * TuML_SC (Alg. 3) Add, S-Merge: into        -                         Update, Output
 *                  the T-Gate
 * TuML_MC          Add, S-Merge: into        Update: of their keys,    Output
 *                  the T-Gate                in the W-Hive
 * WiML (Alg. 6)    Add, Update: of all       -                         Output
 *                  windows in the W-Hive
 *
 * What all designs share is in operator.c, the designs are tables of functions (design.h).
 *
 * Which calls may run together:
 *               add  heartbeat  close  wait_space  take  cancel  end  stats  free
 *   same input   1       1        1        yes      yes   yes    yes   yes    no    (1: one at a time, input->lock)
 *   other input yes     yes      yes       yes      yes   yes    yes   yes    no
 *
 * A pause (worker.h; snapshot.c uses it) takes the locks of all inputs, in their order. The output thread of the sliced
 * design tries an input's lock now and then, and goes on without it if it is taken.
 *
 * Locks: input->lock, and then any one of the others; ledger.lock, pause.lock, queue.lock, doorbell.lock,
 * key_table.lock, op->dead_lock are leaves, and so is sink.lock but for op->dead_lock. Arrow buffers are released with
 * no lock held, by the callers' threads, because releasing may need Python's GIL and no worker must ever wait for that.
 */
#pragma once

#include <sys/types.h>

#include "aggregates/aggregate.h"
#include "operator/coalesce.h"
#include "keys/key_sweep.h"
#include "operator/ledger.h"
#include "operator/sink.h"
#include "base/wait.h"
#include "windows/window_list.h"
#include "windows/window_rows.h"
#include "operator/worker.h"

typedef struct design design;

typedef struct {
  pthread_mutex_t lock; /* one add, heartbeat or close at a time */
  ps_counter latest;    /* of tuples and heartbeats; -1: nothing received yet; changed under in->lock */
  ps_counter told;      /* as much of it as the design knows: promises.h; changed under in->lock */
  ps_flag owes;         /* the rest; changed under in->lock. A doorbell orders what the output thread must not miss */
  ps_flag closed;       /* changed under in->lock */
  key_cache keys;       /* under in->lock */
  ps_counter tuples_in; /* changed under in->lock */
  ps_counter bytes_in;  /* of all batches; changed under in->lock */
  ps_counter bytes;     /* that the input's thread has taken for the operator: memory.h */
  batch *spare;         /* under in->lock: batches that are empty, for the next ones */
  int32_t spares;       /* under in->lock */
  coalescer coalescer;  /* under in->lock: small batches, if they are copied */
  uint32_t sweep;       /* under in->lock: for which the keys were forgotten last: key_forget.h */
  batch *kept;          /* behind op->dead_lock: empty, but for the buffers that pieces of a batch refer to */
  uint8_t apart[64];    /* what the input's thread writes from what the output thread does */
  ledger ledger;
  int64_t passed;       /* the output thread's: tuples passed and not yet settled */
  uint32_t swept;       /* the output thread's: `sweep` of the batch that was settled last */
  ps_counter bytes_out; /* the output thread's: of the batches that it is done with */
  batch *dead;          /* behind op->dead_lock: batches to release */
  ps_flag any_dead;     /* changed behind op->dead_lock; who finds it unset too early leaves them to the next call */
  uint8_t apart_too[64];
} input;

/* The output thread's, but for what it says in sweep.word: key_forget.h. */
typedef struct {
  key_sweep sweep;
  bool all_swept; /* all inputs have, and their tuples from before it are in windows: */
  int64_t newest; /* the start of the last of these */
} key_forgetting;

struct ps_operator {
  const design *design;
  void *state; /* the design's own */
  int64_t size, advance;
  int64_t ts_max; /* the largest timestamp that the design takes: see edges.h */
  int32_t levels; /* of the design's lists; 0: what suits them */
  int32_t inputs;
  int32_t keys;
  int32_t columns;
  bool coalesces; /* small batches are copied: coalesce.h */
  ps_type *column_types;
  uint8_t *text; /* by column: whether its strings are UTF-8 */
  aggregates functions;
  key_table key_table;
  key_forgetting forget;
  input *input;
  int32_t workers;
  worker *worker;
  pause_state pause;
  sink sink;
  ps_counter bytes;  /* that other threads have taken: memory.h */
  ps_counter owing;  /* inputs that owe a promise */
  ps_flag cancelled; /* set before every doorbell is rung and every lock passed: see ps_operator_cancel */
  int64_t unsettled; /* the output thread's: tuples passed and not yet settled, over all inputs */
  pthread_mutex_t dead_lock;
  pthread_mutex_t end_lock;
  bool joined;   /* behind end_lock */
  pid_t process; /* that has the threads */
};

static inline pane_windows operator_windows(const ps_operator *op) {
  return (pane_windows){(uint64_t)op->size, (uint64_t)op->advance};
}

/* Any thread, after making something visible that the worker may wait for. */
static inline void operator_ring(ps_operator *op, int32_t number) { doorbell_ring(&op->worker[number].doorbell); }

/* An input's thread: as ps_operator_add. `size` is that of the buffers; 0: at least what the batch views; PIECE:
   they are not this batch's alone, so that they must not be released before others that it has added are passed. */
#define PIECE INT64_C(-1)
ps_code operator_add(ps_operator *op, int32_t which, int64_t number, struct ArrowArray *arrow, int64_t size,
                     ps_fault *fault);

/* Any thread: the operator cannot go on. The rows that are out stay out; then the reader gets the failure. */
void operator_fail(ps_operator *op, ps_code failure, const ps_fault *fault);

/* The output thread: n tuples of the input, the oldest ones, are in their windows (operator_pass), and the rows that
   they completed are out (operator_settle): they no longer count as pending. False: out of memory. */
static inline void operator_pass(ps_operator *op, int32_t which, int64_t n) {
  op->input[which].passed += n;
  op->unsettled += n;
}
bool operator_settle(ps_operator *op);

/* The same for one tuple after the other: settles now and then, when it is worth its price. */
#define SETTLE_EVERY SIZED(256, 1)
static inline bool operator_passed(ps_operator *op, int32_t which) {
  operator_pass(op, which, 1);
  return op->unsettled < SETTLE_EVERY || operator_settle(op);
}
