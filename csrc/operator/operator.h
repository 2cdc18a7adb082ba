/*
 * operator.h - the multiway aggregate: which thread runs Add, S-Merge, Update and Output. Spec: spec/Operator.tla.
 *
 *                    input's thread (add)            update threads             output thread
 *   MQ (Alg. 2)      Add: tuples into a queue        -                          S-Merge, Update, Output
 *   MQ_LF            Add: the same, lock-free        -                          S-Merge, Update, Output
 *   TuML_SC (Alg. 3) Add, S-Merge: into the T-Gate   -                          Update, Output
 *   TuML_MC          Add, S-Merge: into the T-Gate   Update: of their own keys, Output
 *                                                    in the W-Hive
 *   WiML (Alg. 6)    Add, Update: all windows,       -                          Output
 *                    in the W-Hive
 *   runs (ours)      Add: batches into a Run-Gate    -                          S-Merge, Update, Output
 *   sliced (ours)    Add, Update: folds slices       -                          S-Merge of slices, Output
 *
 * operator.c and inputs.c hold what all designs share; a design is a table of functions (design.h).
 *
 * Which calls may run together:
 *               add  heartbeat  close  wait_space  take  cancel  end  stats  free
 *   same input   1       1        1        yes      yes   yes    yes   yes    no    (1: one at a time, input->lock)
 *   other input yes     yes      yes       yes      yes   yes    yes   yes    no
 *
 * A pause (worker.h, snapshot.c) takes the locks of all inputs, in order. The output thread only tries an input's lock
 * (promises.c, key_forget.c, sliced.c) and continues without it if it is taken.
 *
 * Lock order: input->lock before any other. ledger.lock, pause.lock, queue.lock, doorbell.lock, key_table.lock and
 * op->dead_lock are leaves; inside sink.lock only queue.lock is taken (MQ with a udf). op->end_lock is taken alone and
 * held while the workers are joined. Arrow buffers are released with no lock held, by callers' threads, because
 * releasing may need Python's GIL, for which no worker may wait.
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
  ps_counter latest;    /* highest timestamp of tuples and heartbeats; -1: none yet; writes guarded by lock */
  ps_counter told;      /* how much of `latest` the design knows (promises.h); writes guarded by lock */
  ps_flag owes;         /* told < latest; writes guarded by lock. A doorbell orders it for the output thread */
  ps_flag closed;       /* writes guarded by lock */
  key_cache keys;       /* guarded by lock */
  ps_counter tuples_in; /* writes guarded by lock */
  ps_counter bytes_in;  /* bytes of all batches added; writes guarded by lock */
  ps_counter bytes;     /* allocated by the input's thread (memory.h) */
  batch *spare;         /* guarded by lock: empty batches for reuse */
  int32_t spares;       /* guarded by lock */
  coalescer coalescer;  /* guarded by lock; used if op->coalesces */
  uint32_t sweep;       /* guarded by lock: the sweep for which `keys` was emptied last (key_forget.h) */
  batch *kept;          /* guarded by op->dead_lock: owners of buffers that pieces of a batch refer to */
  uint8_t apart[64];    /* separates the cache lines of the input's thread from the output thread's */
  ledger ledger;
  int64_t passed;       /* output thread: tuples passed and not yet settled */
  uint32_t swept;       /* output thread: `sweep` of the batch settled last */
  ps_counter bytes_out; /* output thread: bytes of the batches that are done */
  batch *dead;          /* guarded by op->dead_lock: batches to release */
  ps_flag any_dead;     /* writes guarded by op->dead_lock; a stale 0 only delays the release by one call */
  uint8_t apart_too[64];
} input;

/* Owned by the output thread, except sweep.word: key_forget.h. */
typedef struct {
  key_sweep sweep;
  bool all_swept; /* every input has a settled batch of this sweep, or no tuples */
  int64_t newest; /* set with all_swept: start of the newest window at that time */
} key_forgetting;

struct ps_operator {
  const design *design;
  void *state; /* of the design */
  int64_t size, advance;
  int64_t ts_max; /* largest timestamp that the design takes: edges.h */
  int32_t levels; /* of the design's skip lists; 0: its default */
  int32_t inputs;
  int32_t keys;
  int32_t columns;
  bool coalesces; /* small batches are copied: coalesce.h */
  ps_type *column_types;
  int32_t *strings; /* by column: see ps_query */
  aggregates functions;
  key_table key_table;
  key_forgetting forget;
  input *input;
  int32_t workers;
  worker *worker;
  pause_state pause;
  sink sink;
  ps_counter bytes;  /* allocated by other threads than workers and inputs (memory.h) */
  ps_counter owing;  /* number of inputs with `owes` */
  ps_flag cancelled; /* set before any doorbell is rung or lock taken: see ps_operator_cancel */
  int64_t unsettled; /* output thread: sum of input[].passed */
  pthread_mutex_t dead_lock;
  pthread_mutex_t end_lock;
  bool joined;   /* guarded by end_lock */
  pid_t process; /* that started the threads; calls in a forked child have no effect */
};

static inline pane_windows operator_windows(const ps_operator *op) {
  return (pane_windows){(uint64_t)op->size, (uint64_t)op->advance};
}

/* Any thread, after publishing something that the worker may wait for. */
static inline void operator_ring(ps_operator *op, int32_t number) { doorbell_ring(&op->worker[number].doorbell); }

/* Making, freeing: op->inputs counts the inputs made, so that a failure half-way frees just those. False: out of memory.
   Release frees the batches that are done; by a caller's thread. */
bool inputs_init(ps_operator *op, int32_t inputs, int64_t max_pending);
void inputs_free(ps_operator *op);
void inputs_release(ps_operator *op);

/* Input's thread: as ps_operator_add. `size`: bytes of the buffers; 0: what the batch views; PIECE: several batches
   share them, so this one must not be copied, which would release them. */
#define PIECE INT64_C(-1)
ps_code operator_add(ps_operator *op, int32_t which, int64_t number, struct ArrowArray *arrow, int64_t size,
                     ps_fault *fault);

/* Any thread: ends the operator. The reader gets the rows emitted so far, then the failure. */
void operator_fail(ps_operator *op, ps_code failure, const ps_fault *fault);

/* Output thread. operator_pass: the n oldest tuples of the input are in their windows. operator_settle: the rows that
   passed tuples completed are emitted, so these tuples are no longer pending. False: out of memory. */
static inline void operator_pass(ps_operator *op, int32_t which, int64_t n) {
  op->input[which].passed += n;
  op->unsettled += n;
}
bool operator_settle(ps_operator *op);

/* Passes one tuple, and settles once per SETTLE_EVERY tuples. */
#define SETTLE_EVERY SIZED(256, 1)
static inline bool operator_passed(ps_operator *op, int32_t which) {
  operator_pass(op, which, 1);
  return op->unsettled < SETTLE_EVERY || operator_settle(op);
}
