/* mq.c - the MQ design (Alg. 2): queues in, one thread that merges, updates and puts out. See operator.h. */
#include "operator.h"

#define RING_EVERY                                                                                  \
  256 /* tuples between two looks at the doorbell: a sleeping consumer starts early on a long batch \
       */

void mq_add(ps_operator *op, input *in, batch *b) {
  int64_t rows = b->rows; /* the last enqueue gives b away */
  for (int64_t row = 0; row < rows; row++) {
    queue_enqueue(&in->queue, (tuple){batch_ts(b, row), row, b});
    if (row % RING_EVERY == 0) doorbell_ring(&op->doorbell);
  }
  doorbell_ring(&op->doorbell);
}

/* The lowest (ts, input) over all inputs, and which input it is. Looking at the queues one after the other is sound:
   positions only move up, so what is lowest and a tuple stays lowest, and what is lowest and a promise was so when it
   was read. */
static position lowest(ps_operator *op, int32_t *which) {
  position best = {QUEUE_DRAINED, INT64_MAX};
  for (int32_t i = 0; i < op->inputs; i++) {
    position p = queue_peek(&op->input[i].queue);
    if (p.state == QUEUE_DRAINED) continue;
    if (best.state == QUEUE_DRAINED || p.ts < best.ts) {
      best = p;
      *which = i;
    }
  }
  return best;
}

/* Puts out the first winset. */
static ps_code output_first(ps_operator *op, ps_fault *fault) {
  if (!sink_lock(&op->sink)) return PS_CLOSED;
  ps_code code =
      winset_output(op->windows.first, &op->functions, op->keys, op->column_types + 1, &op->sink.rows, fault);
  sink_unlock(&op->sink);
  if (code == PS_OK) window_list_pop(&op->windows);
  return code;
}

static ps_code output_complete(ps_operator *op, int64_t ts, ps_fault *fault) {
  ps_code code = PS_OK;
  while (code == PS_OK && window_list_complete(&op->windows, ts)) code = output_first(op, fault);
  return code;
}

static ps_code output_all(ps_operator *op, ps_fault *fault) {
  ps_code code = PS_OK;
  while (code == PS_OK && op->windows.first) code = output_first(op, fault);
  return code;
}

static ps_code update(ps_operator *op, tuple t) {
  bool udf = op->functions.udf >= 0; /* the journal lies in the sink */
  if (udf && !sink_lock(&op->sink)) return PS_CLOSED;
  bool ok = window_list_update(&op->windows, t.batch, t.row);
  bool done = --t.batch->rows_left == 0;
  if (udf && done) ok = ok && journal_put(&op->sink.journal, -1, 0, t.batch->number, 0);
  if (udf) sink_unlock(&op->sink);
  if (done) operator_retire(op, t.batch);
  return ok ? PS_OK : PS_NO_MEMORY;
}

/* Nothing is ready: sleep, unless something came between the last look and now. */
static void rest(ps_operator *op, position seen, int32_t which) {
  doorbell_prepare(&op->doorbell);
  int32_t again = which;
  position p = lowest(op, &again);
  bool changed = p.state != seen.state || p.ts != seen.ts || again != which;
  if (changed || ps_flag_get(&op->cancelled)) {
    doorbell_skip(&op->doorbell);
  } else {
    doorbell_sleep(&op->doorbell);
  }
}

/* One S-Merge, Update and Output. PS_END when all inputs are drained. */
static ps_code step(ps_operator *op, ps_fault *fault) {
  int32_t which = 0;
  position p = lowest(op, &which);
  if (p.state == QUEUE_DRAINED) {
    ps_code code = output_all(op, fault);
    return code == PS_OK ? PS_END : code;
  }
  ps_code code = output_complete(op, p.ts, fault);
  if (code != PS_OK) return code;
  if (p.state == QUEUE_TUPLE) return update(op, queue_dequeue(&op->input[which].queue));
  rest(op, p, which);
  return PS_OK;
}

void *mq_output_thread(void *argument) {
  ps_operator *op = argument;
  name_thread("pystream-output");
  ps_fault fault = {0};
  ps_code code = PS_OK;
  while (code == PS_OK && !ps_flag_get(&op->cancelled)) code = step(op, &fault);
  if (code == PS_OK) code = PS_CLOSED;
  sink_end(&op->sink, code == PS_END ? PS_OK : code, &fault);
  if (code != PS_END) ps_operator_cancel(op);
  return NULL;
}
