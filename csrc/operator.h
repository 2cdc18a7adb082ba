/*
 * operator.h - the multiway aggregate: who runs Add, S-Merge, Update and Output.
 *
 * MQ (Alg. 2)   Add            the caller's thread of each input: tuple by tuple into the input's queue
 *               S-Merge,       the output thread: looks at the front of every queue, takes the lowest (ts, input),
 *               Update,        adds it to each of its windows, and puts out the winsets that no input
 *               Output         can contribute to any more
 *
 * Which calls may run together:
 *               add  heartbeat  close  wait_space  take  cancel  end  stats  free
 *   same input   1       1        1        yes      yes   yes    yes   yes    no    (1: by turns, input->turn)
 *   other input yes     yes      yes       yes      yes   yes    yes   yes    no
 *
 * Locks, none held while taking another: input->turn and then queue.lock; queue.lock, sink.lock, doorbell.lock,
 * key_table.lock, op->dead_lock are leaves. Arrow buffers are released with no lock held, by the callers' threads,
 * because releasing may need Python's GIL and the output thread must never wait for that.
 */
#pragma once

#include <sys/types.h>

#include "aggregate.h"
#include "doorbell.h"
#include "key.h"
#include "queue.h"
#include "sink.h"
#include "wait.h"
#include "window_list.h"

typedef struct {
  pthread_mutex_t turn; /* one add, heartbeat or close at a time */
  queue queue;
  key_cache keys;
} input;

struct ps_operator {
  int32_t inputs;
  int32_t keys;
  int32_t columns;
  ps_type *column_types;
  aggregates functions;
  key_table key_table;
  input *input;
  window_list windows; /* output thread only */
  sink sink;
  doorbell doorbell; /* the output thread sleeps here */
  ps_flag cancelled; /* set with every lock passed once after it: see ps_operator_cancel */
  ps_counter tuples_in;
  pthread_mutex_t dead_lock;
  batch *dead; /* batches to release */
  pthread_mutex_t end_lock;
  bool joined; /* behind end_lock */
  pthread_t thread;
  pid_t process; /* that has the thread */
};

/* mq.c: the output thread of MQ; returns when the sink has ended or the operator is cancelled. */
void *mq_output_thread(void *op);
/* mq.c: Add of MQ. Room for b->rows tuples has been reserved. */
void mq_add(ps_operator *op, input *in, batch *b);

/* The batch is done with; some caller's thread will release it. */
void operator_retire(ps_operator *op, batch *b);
