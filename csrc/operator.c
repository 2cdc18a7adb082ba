/* operator.c - making, feeding, reading and ending an operator; the designs have their own files. See operator.h. */
#include "operator.h"

#include <unistd.h>

/* ---- making ---- */

static bool copy_types(ps_operator *op, const ps_query *query) {
  size_t size = (size_t)query->columns * sizeof *op->column_types;
  op->column_types = memory_new(size);
  if (op->column_types) memcpy(op->column_types, query->column_types, size);
  return op->column_types != NULL;
}

static bool input_init(input *in, key_table *keys, int64_t max_pending) {
  if (pthread_mutex_init(&in->turn, NULL) != 0) return false;
  if (!queue_init(&in->queue, max_pending)) {
    pthread_mutex_destroy(&in->turn);
    return false;
  }
  key_cache_init(&in->keys, keys);
  return true;
}

/* Counts in op->inputs how many are ready, so that a failure half-way frees just those. */
static bool inputs_init(ps_operator *op, int32_t inputs, int64_t max_pending) {
  op->input = memory_new((size_t)inputs * sizeof *op->input);
  if (!op->input) return false;
  for (; op->inputs < inputs; op->inputs++) {
    if (!input_init(&op->input[op->inputs], &op->key_table, max_pending)) return false;
  }
  return true;
}

static bool output_init(ps_operator *op, int64_t max_pending) {
  int32_t columns = 1 + op->keys + op->functions.n;
  bool *is_bytes = memory_new((size_t)columns * sizeof *is_bytes);
  if (!is_bytes) return false;
  for (int32_t i = 0; i < op->keys; i++) is_bytes[1 + i] = type_is_bytes(op->column_types[1 + i]);
  for (int32_t i = 0; i < op->functions.n; i++) is_bytes[1 + op->keys + i] = op->functions.each[i].is_bytes;
  bool ok = sink_init(&op->sink, columns, is_bytes, op->functions.udf >= 0 ? JOURNAL_COLUMNS : 0, max_pending);
  memory_free(is_bytes);
  return ok;
}

typedef enum { MADE_NOTHING, MADE_LOCKS, MADE_KEYS, MADE_SINK, MADE_DOORBELL, MADE_THREAD } made;

static void input_free(ps_operator *op, input *in);

/* Frees what was made, latest first. */
static void unmake(ps_operator *op, made stage) {
  if (stage >= MADE_DOORBELL) doorbell_free(&op->doorbell);
  if (stage >= MADE_SINK) sink_free(&op->sink);
  for (int32_t i = 0; i < op->inputs; i++) input_free(op, &op->input[i]);
  if (stage >= MADE_KEYS) key_table_free(&op->key_table);
  if (stage >= MADE_LOCKS) {
    pthread_mutex_destroy(&op->dead_lock);
    pthread_mutex_destroy(&op->end_lock);
  }
  memory_free(op->input);
  aggregates_free(&op->functions);
  memory_free(op->column_types);
  memory_free(op);
}

static made make(ps_operator *op, const ps_query *query, int32_t inputs, int64_t max_pending) {
  if (!copy_types(op, query) || !aggregates_init(&op->functions, query)) return MADE_NOTHING;
  if (pthread_mutex_init(&op->dead_lock, NULL) != 0 || pthread_mutex_init(&op->end_lock, NULL) != 0)
    return MADE_NOTHING;
  if (!key_table_init(&op->key_table)) return MADE_LOCKS;
  if (!inputs_init(op, inputs, max_pending) || !output_init(op, max_pending)) return MADE_KEYS;
  if (!doorbell_init(&op->doorbell)) return MADE_SINK;
  window_list_init(&op->windows, query->size, query->advance, &op->functions,
                   op->functions.udf >= 0 ? &op->sink.journal : NULL);
  return pthread_create(&op->thread, NULL, mq_output_thread, op) == 0 ? MADE_THREAD : MADE_DOORBELL;
}

ps_code ps_operator_new(const ps_query *query, int32_t inputs, ps_design design, int64_t max_pending,
                        ps_operator **out) {
  assert(design == PS_MQ && inputs > 0 && max_pending > 0 && query->size > 0 && query->advance > 0);
  (void)design;
  ps_operator *op = memory_new(sizeof *op);
  if (!op) return PS_NO_MEMORY;
  op->keys = query->keys;
  op->columns = query->columns;
  op->process = getpid();
  made stage = make(op, query, inputs, max_pending);
  if (stage == MADE_THREAD) {
    *out = op;
    return PS_OK;
  }
  unmake(op, stage);
  return stage == MADE_DOORBELL ? PS_NO_THREAD : PS_NO_MEMORY;
}

/* ---- batches that are done with ---- */

void operator_retire(ps_operator *op, batch *b) {
  pthread_mutex_lock(&op->dead_lock);
  b->next = op->dead;
  op->dead = b;
  pthread_mutex_unlock(&op->dead_lock);
}

static void release_dead(ps_operator *op) {
  pthread_mutex_lock(&op->dead_lock);
  batch *b = op->dead;
  op->dead = NULL;
  pthread_mutex_unlock(&op->dead_lock);
  while (b) {
    batch *next = b->next;
    batch_free(b);
    b = next;
  }
}

/* ---- feeding ---- */

/* Whether timestamps never decrease; if not, says where. */
static bool in_order(const batch *b, int64_t latest, ps_fault *fault) {
  if (latest < 0) latest = 0; /* nothing received yet: only negative timestamps are wrong */
  for (int64_t row = 0; row < b->rows; row++) {
    int64_t ts = batch_ts(b, row);
    if (ts < latest) {
      *fault = (ps_fault){.row = row, .ts = ts, .latest = latest};
      return false;
    }
    latest = ts;
  }
  return true;
}

/* Everything that can fail, before anything is taken. */
static ps_code admit(ps_operator *op, input *in, batch *b, ps_fault *fault) {
  if (queue_closed(&in->queue)) return PS_CLOSED;
  if (!in_order(b, queue_latest(&in->queue), fault)) return PS_DISORDER;
  ps_code code = queue_reserve(&in->queue, b->rows);
  if (code != PS_OK) return code;
  return key_cache_fill(&in->keys, b, op->keys) ? PS_OK : PS_NO_MEMORY;
}

ps_code ps_operator_add(ps_operator *op, int32_t which, int64_t number, struct ArrowArray *arrow, ps_fault *fault) {
  assert(which >= 0 && which < op->inputs && arrow->n_children == op->columns);
  release_dead(op);
  batch *b = batch_new(arrow, op->columns, op->column_types);
  if (!b) return PS_NO_MEMORY;
  b->number = number;
  input *in = &op->input[which];
  pthread_mutex_lock(&in->turn);
  ps_code code = admit(op, in, b, fault);
  bool keep = code == PS_OK && b->rows > 0;
  if (keep) {
    batch_own(b, arrow);
    ps_counter_add(&op->tuples_in, b->rows);
    mq_add(op, in, b);
  }
  pthread_mutex_unlock(&in->turn);
  if (!keep) batch_free(b);
  return code;
}

ps_code ps_operator_wait_space(ps_operator *op, int32_t which, int64_t rows, int32_t ms) {
  return queue_wait_space(&op->input[which].queue, rows, ms);
}

ps_code ps_operator_heartbeat(ps_operator *op, int32_t which, int64_t ts, ps_fault *fault) {
  input *in = &op->input[which];
  ps_code code = PS_OK;
  pthread_mutex_lock(&in->turn);
  if (queue_closed(&in->queue)) {
    code = PS_CLOSED;
  } else if (ts < 0) {
    *fault = (ps_fault){.ts = ts};
    code = PS_DISORDER;
  } else {
    queue_promise(&in->queue, ts);
    doorbell_ring(&op->doorbell);
  }
  pthread_mutex_unlock(&in->turn);
  return code;
}

ps_code ps_operator_close(ps_operator *op, int32_t which) {
  input *in = &op->input[which];
  pthread_mutex_lock(&in->turn);
  queue_close(&in->queue);
  doorbell_ring(&op->doorbell);
  pthread_mutex_unlock(&in->turn);
  return ps_flag_get(&op->cancelled) ? PS_CLOSED : PS_OK;
}

/* ---- reading ---- */

ps_code ps_operator_take(ps_operator *op, int32_t ms, struct ArrowArray *rows, struct ArrowArray *journal,
                         ps_fault *fault) {
  release_dead(op);
  return sink_take(&op->sink, ms, rows, journal, fault);
}

ps_code ps_operator_fault_key(ps_operator *op, const ps_fault *fault, struct ArrowArray *out) {
  return window_name(fault->ts, fault->key, op->keys, op->column_types + 1, out) ? PS_OK : PS_NO_MEMORY;
}

ps_code ps_operator_watch(ps_operator *op, int32_t descriptor) {
  return sink_watch(&op->sink, descriptor) ? PS_OK : PS_FULL;
}

void ps_operator_stats(ps_operator *op, ps_stats *out) {
  *out = (ps_stats){.tuples_in = ps_counter_get(&op->tuples_in), .rows_out = sink_rows_out(&op->sink)};
  for (int32_t i = 0; i < op->inputs; i++) out->pending += queue_size(&op->input[i].queue);
}

/* ---- ending ---- */

/* The flag is set first; waking then passes through each lock under which somebody may be about to sleep. */
void ps_operator_cancel(ps_operator *op) {
  ps_flag_set(&op->cancelled, 1);
  for (int32_t i = 0; i < op->inputs; i++) queue_cancel(&op->input[i].queue);
  sink_cancel(&op->sink);
  doorbell_wake(&op->doorbell);
}

static void drop_queued(void *op, batch *b) {
  if (--b->rows_left == 0) operator_retire(op, b);
}

static void input_free(ps_operator *op, input *in) {
  queue_free(&in->queue, drop_queued, op);
  key_cache_free(&in->keys);
  pthread_mutex_destroy(&in->turn);
}

void ps_operator_end(ps_operator *op) {
  if (op->process != getpid()) return;
  ps_operator_cancel(op);
  pthread_mutex_lock(&op->end_lock);
  if (!op->joined) pthread_join(op->thread, NULL);
  op->joined = true;
  pthread_mutex_unlock(&op->end_lock);
}

void ps_operator_free(ps_operator *op) {
  if (!op || op->process != getpid()) return;
  ps_operator_end(op);
  window_list_free(&op->windows);
  for (int32_t i = 0; i < op->inputs; i++) input_free(op, &op->input[i]);
  op->inputs = 0;
  release_dead(op);
  unmake(op, MADE_DOORBELL);
}
