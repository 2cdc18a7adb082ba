/* operator.c - making, reading and ending an operator, the same for all designs. See operator.h. */
#include "operator/operator.h"

#include <unistd.h>

#include "operator/design.h"
#include "base/memory.h"
#include "windows/window_rows.h"

/* ---- making ---- */

static bool copy_types(ps_operator *op, const ps_query *query) {
  size_t size = (size_t)query->columns * sizeof *op->column_types;
  op->column_types = memory_new(size);
  op->strings = memory_new((size_t)query->columns * sizeof *op->strings);
  if (!op->column_types || !op->strings) return false;
  memcpy(op->column_types, query->column_types, size);
  for (int32_t i = 0; i < query->columns; i++) op->strings[i] = query->strings ? query->strings[i] : PS_ANY_BYTES;
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

typedef enum { MADE_NOTHING, MADE_LOCKS, MADE_KEYS, MADE_WORKERS, MADE_SINK, MADE_DESIGN, MADE_THREADS } made;

/* Frees what was made, in reverse order. */
static void unmake(ps_operator *op, made stage) {
  if (stage >= MADE_DESIGN) op->design->free(op);
  if (stage >= MADE_SINK) sink_free(&op->sink);
  if (stage >= MADE_WORKERS) workers_free(op);
  inputs_free(op);
  if (stage >= MADE_KEYS) key_table_free(&op->key_table);
  if (stage >= MADE_LOCKS) {
    pthread_mutex_destroy(&op->dead_lock);
    pthread_mutex_destroy(&op->end_lock);
  }
  aggregates_free(&op->functions);
  memory_free(op->column_types);
  memory_free(op->strings);
  memory_free(op);
}

static made make(ps_operator *op, const ps_query *query, int32_t inputs, int32_t threads, int64_t max_pending) {
  if (!copy_types(op, query) || !aggregates_init(&op->functions, query)) return MADE_NOTHING;
  if (pthread_mutex_init(&op->dead_lock, NULL) != 0 || pthread_mutex_init(&op->end_lock, NULL) != 0)
    return MADE_NOTHING;
  if (!key_table_init(&op->key_table)) return MADE_LOCKS;
  key_sweep_init(&op->forget.sweep, &op->key_table);
  if (!inputs_init(op, inputs, max_pending)) return MADE_KEYS;
  if (!workers_init(op, 1 + (op->design->updates ? threads : 0))) return MADE_KEYS;
  if (!output_init(op, max_pending)) return MADE_WORKERS;
  if (!op->design->init(op)) return MADE_SINK;
  return workers_start(op) ? MADE_THREADS : MADE_DESIGN;
}

/* Whether small batches may be copied into one: the design keeps no reference to batches, and no column has strings. */
static bool coalesces(const design *d, const ps_query *query) {
  bool ok = d->folds;
  for (int32_t i = 0; i < query->columns; i++) ok = ok && !type_is_bytes(query->column_types[i]);
  return ok;
}

ps_code ps_operator_new(const ps_query *query, int32_t inputs, ps_design which, int32_t threads, int32_t levels,
                        int64_t max_pending, ps_operator **out) {
  assert(inputs > 0 && threads > 0 && max_pending > 0 && query->size > 0 && query->advance > 0);
  assert(levels >= 0 && levels <= PS_LEVELS_MAX);
  ps_operator *op = memory_new(sizeof *op);
  if (!op) return PS_NO_MEMORY;
  op->design = design_of(which);
  op->size = query->size;
  op->advance = query->advance;
  op->ts_max = op->design->load_slice ? INT64_MAX : ts_max(operator_windows(op)); /* slices: one for all windows */
  op->keys = query->keys;
  op->columns = query->columns;
  op->levels = levels;
  op->coalesces = coalesces(op->design, query);
  op->process = getpid();
  ps_counter *before = memory_enter(&op->bytes);
  made stage = make(op, query, inputs, threads, max_pending);
  memory_enter(before);
  if (stage == MADE_THREADS) {
    *out = op;
    return PS_OK;
  }
  unmake(op, stage);
  return stage == MADE_DESIGN ? PS_NO_THREAD : PS_NO_MEMORY;
}

/* ---- reading ---- */

ps_code ps_operator_take(ps_operator *op, int32_t ms, struct ArrowArray *rows, struct ArrowArray *journal,
                         ps_fault *fault) {
  ps_counter *before = memory_enter(&op->bytes);
  inputs_release(op);
  ps_code code = sink_take(&op->sink, ms, rows, journal, fault);
  memory_enter(before);
  return code;
}

void ps_operator_bulk(ps_operator *op, int64_t rows) { sink_bulk(&op->sink, rows); }

ps_code ps_operator_fault_key(ps_operator *op, const ps_fault *fault, struct ArrowArray *out) {
  return window_name(fault->ts, fault->key, op->keys, op->column_types + 1, out) ? PS_OK : PS_NO_MEMORY;
}

ps_code ps_operator_watch(ps_operator *op, int32_t descriptor) {
  return sink_watch(&op->sink, descriptor) ? PS_OK : PS_FULL;
}

void ps_operator_unwatch(ps_operator *op, int32_t descriptor) {
  if (op->process == getpid()) sink_unwatch(&op->sink, descriptor);
}

void ps_operator_input_stats(ps_operator *op, int32_t which, ps_input_stats *out) {
  input *in = &op->input[which];
  *out = (ps_input_stats){.latest = ps_counter_get(&in->latest),
                          .tuples_in = ps_counter_get(&in->tuples_in),
                          .pending = ledger_held(&in->ledger),
                          .closed = ps_flag_get(&in->closed)};
  if (out->pending > 0) operator_ring(op, 0); /* settles what is ready, for the next call */
}

void ps_operator_stats(ps_operator *op, ps_stats *out) {
  *out = (ps_stats){.rows_out = sink_rows_out(&op->sink), .bytes = ps_counter_get(&op->bytes)};
  for (int32_t i = 0; i < op->workers; i++) out->bytes += ps_counter_get(&op->worker[i].bytes);
  out->keys = ps_counter_get(&op->key_table.known);
  for (int32_t i = 0; i < op->inputs; i++) {
    input *in = &op->input[i];
    out->tuples_in += ps_counter_get(&in->tuples_in);
    out->pending += ledger_held(&in->ledger);
    out->bytes += ps_counter_get(&in->bytes) + ps_counter_get(&in->bytes_in) - ps_counter_get(&in->bytes_out);
  }
  if (out->pending > 0) operator_ring(op, 0); /* as above */
  op->design->stats(op, out);
}

void ps_operator_unread(ps_operator *op, int32_t ms, ps_unread *out) { *out = sink_unread(&op->sink, ms); }

/* The open input with the lowest (latest, number). */
static ps_stall slowest(ps_operator *op) {
  ps_stall s = {.input = -1, .latest = INT64_MAX, .next = INT64_MAX, .first = INT64_MAX};
  for (int32_t i = 0; i < op->inputs; i++) {
    input *in = &op->input[i];
    int64_t latest = ps_counter_get(&in->latest);
    if (ps_flag_get(&in->closed)) continue;
    if (s.input < 0 || latest < s.latest) {
      s.next = s.latest;
      s.latest = latest;
      s.input = i;
    } else if (latest < s.next) {
      s.next = latest;
    }
  }
  return s;
}

void ps_operator_stall(ps_operator *op, ps_stall *out) {
  ps_stall s = slowest(op);
  for (int32_t i = 0; i < op->inputs && s.input >= 0; i++) {
    bool before = i <= s.input; /* then a tuple at the same timestamp is ready */
    ledger_view view = ledger_count_above(&op->input[i].ledger, before ? s.latest : s.latest - 1);
    s.waiting += view.above;
    if (view.above == 0) continue;
    int64_t needs = before || view.first == INT64_MAX ? view.first : view.first + 1;
    if (needs < s.first) s.first = needs;
  }
  *out = s;
}

/* ---- ending ---- */

void operator_fail(ps_operator *op, ps_code failure, const ps_fault *fault) {
  sink_end(&op->sink, failure, fault);
  ps_operator_cancel(op);
}

/* Sets the flag first. Then takes each lock with which a thread may be about to sleep, and rings the workers, which
   test the flag after they prepared to sleep. */
void ps_operator_cancel(ps_operator *op) {
  ps_flag_set(&op->cancelled, 1);
  for (int32_t i = 0; i < op->inputs; i++) ledger_cancel(&op->input[i].ledger);
  sink_cancel(&op->sink);
  workers_cancel(op);
}

void ps_operator_end(ps_operator *op) {
  if (op->process != getpid()) return;
  ps_operator_cancel(op);
  pthread_mutex_lock(&op->end_lock);
  if (!op->joined) workers_join(op);
  op->joined = true;
  pthread_mutex_unlock(&op->end_lock);
}

void ps_operator_free(ps_operator *op) {
  if (!op || op->process != getpid()) return;
  ps_operator_end(op);
  unmake(op, MADE_DESIGN);
}
