/* mq.c - the MQ designs (Alg. 2): a queue per input; one thread merges, updates and emits. See operator.h. */
#include "designs/designs.h"
#include "gates/queue.h"
#include "designs/update_output.h"

#define RING_EVERY SIZED(256, 2) /* tuples between two rings: a sleeping consumer starts early on a long batch */

typedef struct {
  update_output update_output;
  int32_t queues; /* made so far */
  queue queue[];  /* one per input */
} mq;

/* ---- making ---- */

static void mq_free(ps_operator *op) {
  mq *m = op->state;
  for (int32_t i = 0; i < m->queues; i++) queue_free(&m->queue[i]);
  update_output_free(op);
  memory_free(m);
}

static bool init(ps_operator *op, queue_kind kind) {
  mq *m = op->state = memory_new(sizeof *m + (size_t)op->inputs * sizeof(queue));
  if (!m) return false;
  update_output_init(op);
  for (; m->queues < op->inputs; m->queues++) {
    if (!queue_init(&m->queue[m->queues], kind)) {
      mq_free(op);
      return false;
    }
  }
  return true;
}

static bool mq_init(ps_operator *op) { return init(op, QUEUE_MUTEX); }

static bool mq_lf_init(ps_operator *op) { return init(op, QUEUE_LOCK_FREE); }

/* ---- Add ---- */

static bool mq_reserve(ps_operator *op, int32_t which, int64_t rows) {
  mq *m = op->state;
  return queue_reserve(&m->queue[which], ledger_held(&op->input[which].ledger) + rows);
}

static void mq_add(ps_operator *op, int32_t which, batch *b) {
  mq *m = op->state;
  int64_t rows = b->rows; /* after the last enqueue b may be freed */
  for (int64_t row = 0; row < rows; row++) {
    queue_enqueue(&m->queue[which], b, row);
    if (row % RING_EVERY == 0) operator_ring(op, 0);
  }
  operator_ring(op, 0);
}

static void mq_heartbeat(ps_operator *op, int32_t which, int64_t ts) {
  mq *m = op->state;
  queue_promise(&m->queue[which], ts);
  operator_ring(op, 0);
}

static void mq_close(ps_operator *op, int32_t which) {
  mq *m = op->state;
  queue_close(&m->queue[which]);
  operator_ring(op, 0);
}

/* ---- S-Merge, Update, Output ---- */

/* The lowest (ts, input) over all inputs. Reading the queues one after the other is sound because positions only
   increase: a tuple that is lowest stays lowest, and a promise that is lowest was so when it was read. */
static position lowest(ps_operator *op, int32_t *which) {
  mq *m = op->state;
  position best = {QUEUE_DRAINED, INT64_MAX};
  for (int32_t i = 0; i < op->inputs; i++) {
    position p = queue_peek(&m->queue[i]);
    if (p.state == QUEUE_DRAINED) continue;
    if (best.state == QUEUE_DRAINED || p.ts < best.ts) {
      best = p;
      *which = i;
    }
  }
  return best;
}

static ps_code mq_step(ps_operator *op, int32_t number, ps_fault *fault) {
  (void)number;
  mq *m = op->state;
  int32_t which = 0;
  position p = lowest(op, &which);
  bool drained = p.state == QUEUE_DRAINED;
  ps_code code = drained ? update_output_all(op, fault) : update_output_complete(op, p.ts, fault);
  if (code != PS_OK) return code;
  if (p.state != QUEUE_TUPLE) {
    if (!operator_settle(op)) return PS_NO_MEMORY;
    return drained ? PS_END : PS_EMPTY;
  }
  code = update_output_begin(op);
  if (code != PS_OK) return code;
  tuple t = queue_dequeue(&m->queue[which]);
  code = update_output_update(op, t.batch, t.row);
  return operator_passed(op, which) ? code : PS_NO_MEMORY;
}

/* The two designs differ only in their queues. */
#define MQ_DESIGN(queues_init)        \
  {                                   \
      .ordered = true,                \
      .init = (queues_init),          \
      .free = mq_free,                \
      .reserve = mq_reserve,          \
      .add = mq_add,                  \
      .heartbeat = mq_heartbeat,      \
      .close = mq_close,              \
      .step = mq_step,                \
      .oldest = update_output_oldest, \
      .newest = update_output_newest, \
      .save = update_output_save,     \
      .load = update_output_load,     \
      .number = update_output_number, \
      .stats = update_output_stats,   \
  }

const design mq_design = MQ_DESIGN(mq_init);
const design mq_lf_design = MQ_DESIGN(mq_lf_init);
