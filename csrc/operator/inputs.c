/* inputs.c - the inputs of an operator, the same for all designs: add, heartbeat, close, and batches that are done. See
   operator.h. */
#include "operator/design.h"
#include "operator/key_forget.h"
#include "base/memory.h"
#include "operator/promises.h"

/* ---- batches that are done ---- */

/* Adds to a counter with a single writer. */
static void count(ps_counter *c, int64_t n) { ps_counter_set(c, ps_counter_get(c) + n); }

/* Queues batches for release by a caller's thread. */
static void retire(ps_operator *op, input *in, batch *list) {
  if (!list) return;
  batch *last = list;
  int64_t total = last->bytes + last->unseen;
  for (; last->next; total += last->bytes + last->unseen) last = last->next;
  count(&in->bytes_out, total);
  pthread_mutex_lock(&op->dead_lock);
  last->next = in->dead;
  in->dead = list;
  ps_flag_set(&in->any_dead, 1);
  pthread_mutex_unlock(&op->dead_lock);
}

/* Removes the input's batches that are to be released. */
static batch *take_dead(ps_operator *op, input *in) {
  if (!ps_flag_get(&in->any_dead)) return NULL;
  pthread_mutex_lock(&op->dead_lock);
  batch *b = in->dead;
  in->dead = NULL;
  ps_flag_set(&in->any_dead, 0);
  pthread_mutex_unlock(&op->dead_lock);
  return b;
}

static void free_all(batch *b) {
  while (b) {
    batch *next = b->next;
    batch_free(b);
    b = next;
  }
}

void inputs_release(ps_operator *op) {
  for (int32_t i = 0; i < op->inputs; i++) free_all(take_dead(op, &op->input[i]));
}

/* About as many as an input settles at once with batches of one tuple; 1 MB with three columns. */
#define SPARES_MAX SIZED(4096, 1)

/* Guarded by in->lock: keeps empty batches for reuse. Returns those that are too many, or hold copied rows. */
static batch *spares_put(input *in, batch *list) {
  batch *rest = NULL;
  while (list) {
    batch *b = list, **to = in->spares < SPARES_MAX && b->room == 0 ? &in->spare : &rest;
    list = list->next;
    in->spares += to == &in->spare;
    b->next = *to;
    *to = b;
  }
  return rest;
}

/* Guarded by in->lock: a batch that views *arrow. NULL: out of memory. */
static batch *batch_for(ps_operator *op, input *in, const struct ArrowArray *arrow) {
  batch *b = in->spare;
  if (!b) return batch_new(arrow, op->columns, op->column_types);
  in->spare = b->next;
  in->spares--;
  batch_view(b, arrow, op->columns, op->column_types);
  return b;
}

/* Notes in the udf journal that these batches are done. */
static bool journal_done(ps_operator *op, const batch *list) {
  if (op->functions.udf < 0 || !list) return true;
  bool ok = true;
  sink_lock_now(&op->sink);
  for (; list && ok; list = list->next) ok = journal_put(&op->sink.journal, -1, 0, list->number, 0);
  sink_unlock(&op->sink);
  return ok;
}

bool operator_settle(ps_operator *op) {
  bool ok = true;
  for (int32_t i = 0; i < op->inputs && op->unsettled > 0; i++) {
    input *in = &op->input[i];
    if (in->passed == 0) continue;
    batch *done = ledger_pass(&in->ledger, in->passed);
    op->unsettled -= in->passed;
    in->passed = 0;
    ok = journal_done(op, done) && ok;
    key_forget_settled(in, done);
    retire(op, in, done);
  }
  key_forget_step(op);
  return ok;
}

/* ---- adding ---- */

/* The first row of the block [row, end) with a timestamp below its predecessor's; `end` if there is none. A block in
   order, the common case, costs no branch per row. */
static int64_t first_fall(const int64_t *ts, int64_t latest, int64_t row, int64_t end) {
  bool falls = ts[row] < latest;
  for (int64_t i = row + 1; i < end; i++) falls |= ts[i] < ts[i - 1];
  if (!falls) return end;
  for (; ts[row] >= latest; row++) latest = ts[row];
  return row;
}

#define ORDER_BLOCK SIZED(1024, 2)

/* Whether timestamps never decrease; if not, fault is the first place. */
static bool in_order(const batch *b, int64_t latest, ps_fault *fault) {
  const int64_t *ts = (const int64_t *)b->columns[0].values + b->columns[0].first;
  if (latest < 0) latest = 0; /* nothing received yet: only negative timestamps are wrong */
  for (int64_t row = 0; row < b->rows; row += ORDER_BLOCK) {
    int64_t end = row + ORDER_BLOCK < b->rows ? row + ORDER_BLOCK : b->rows;
    int64_t fall = first_fall(ts, latest, row, end);
    if (fall < end) {
      *fault = (ps_fault){.row = fall, .ts = ts[fall], .latest = fall > 0 ? ts[fall - 1] : latest};
      return false;
    }
    latest = ts[end - 1];
  }
  return true;
}

/* Whether no tuple is in too many windows; if one is, fault is the first. Timestamps do not decrease. */
static bool in_few_windows(const ps_operator *op, const batch *b, ps_fault *fault) {
  if (b->rows == 0 || batch_ts(b, b->rows - 1) <= op->ts_max) return true;
  int64_t row = 0;
  while (batch_ts(b, row) <= op->ts_max) row++;
  *fault = (ps_fault){.row = row, .ts = batch_ts(b, row), .latest = op->ts_max};
  return false;
}

static bool is_closed(ps_operator *op, input *in) { return ps_flag_get(&in->closed) || ps_flag_get(&op->cancelled); }

static bool find_keys(ps_operator *op, int32_t which, batch *b) {
  if (op->design->find_keys) return op->design->find_keys(op, which, b);
  input *in = &op->input[which];
  key_forget_keep_up(op, in);
  b->sweep = in->sweep;
  return key_cache_fill(&in->keys, b, op->keys);
}

/* Does everything that can fail, before anything is taken. */
static ps_code admit(ps_operator *op, int32_t which, batch *b, ps_fault *fault) {
  input *in = &op->input[which];
  if (is_closed(op, in)) return PS_CLOSED;
  if (!in_order(b, ps_counter_get(&in->latest), fault)) return PS_DISORDER;
  if (!in_few_windows(op, b, fault)) return PS_OVERLAP;
  if (!ledger_fits(&in->ledger, b->rows)) {
    operator_ring(op, 0); /* it may settle tuples that have become ready */
    return PS_FULL;
  }
  bool ok = find_keys(op, which, b) && op->design->reserve(op, which, b->rows);
  return ok ? PS_OK : PS_NO_MEMORY;
}

/* Takes the batch, which is not empty and which the ledger holds. */
static void accept(ps_operator *op, int32_t which, batch *b) {
  input *in = &op->input[which];
  count(&in->tuples_in, b->rows);
  int64_t last = batch_ts(b, b->rows - 1);
  ps_counter_set(&in->latest, last);
  promises_kept(op, in, last);
  op->design->add(op, which, b);
}

/* Guarded by in->lock: add for a few rows, which are copied; the buffers stay the caller's. PS_EMPTY: they cannot be
   copied, nothing changed. */
static ps_code add_small(ps_operator *op, int32_t which, const struct ArrowArray *arrow, ps_fault *fault) {
  input *in = &op->input[which];
  ps_code code = coalesce_copy(&in->coalescer, arrow);
  if (code == PS_OK) code = admit(op, which, in->coalescer.view, fault);
  if (code != PS_OK) return code;
  coalesce_hold(&in->coalescer, &in->ledger);
  accept(op, which, in->coalescer.view);
  return PS_OK;
}

/* Guarded by in->lock. */
static ps_code add(ps_operator *op, int32_t which, int64_t number, struct ArrowArray *arrow, int64_t size,
                   ps_fault *fault) {
  input *in = &op->input[which];
  batch *b = batch_for(op, in, arrow);
  if (!b) return PS_NO_MEMORY;
  b->number = number;
  ps_code code = admit(op, which, b, fault);
  if (code == PS_OK && b->rows > 0) {
    batch_own(b, arrow);
    if (op->coalesces) coalesce_close(&in->coalescer);
    if (size > b->bytes) b->unseen = size - b->bytes;
    count(&in->bytes_in, b->bytes + ledger_put(&in->ledger, b));
    accept(op, which, b);
  } else {
    batch_empty(b); /* the buffers are still the caller's */
    free_all(spares_put(in, b));
  }
  return code;
}

ps_code operator_add(ps_operator *op, int32_t which, int64_t number, struct ArrowArray *arrow, int64_t size,
                     ps_fault *fault) {
  assert(which >= 0 && which < op->inputs && arrow->n_children == op->columns);
  input *in = &op->input[which];
  ps_counter *before = memory_enter(&in->bytes);
  batch *dead = take_dead(op, in);
  for (batch *b = dead; b; b = b->next) batch_empty(b);
  bool small = size != PIECE && op->coalesces && arrow->length > 0 && arrow->length <= COALESCE_ROWS;
  ps_code code = PS_EMPTY;
  pthread_mutex_lock(&in->lock);
  bool owed = promises_owes(in);
  dead = spares_put(in, dead);
  if (small) code = add_small(op, which, arrow, fault);
  bool copied = code == PS_OK;
  if (code == PS_EMPTY) code = add(op, which, number, arrow, size, fault);
  pthread_mutex_unlock(&in->lock);
  if (owed) operator_ring(op, 0);
  free_all(dead);
  if (copied) ps_arrow_release(arrow);
  memory_enter(before);
  return code;
}

ps_code ps_operator_add(ps_operator *op, int32_t which, int64_t number, struct ArrowArray *arrow, ps_fault *fault) {
  return operator_add(op, which, number, arrow, 0, fault);
}

ps_code ps_operator_add_view(ps_operator *op, int32_t which, int64_t number, int64_t size, struct ArrowArray *arrow,
                             ps_fault *fault) {
  return operator_add(op, which, number, arrow, size, fault);
}

ps_code ps_operator_wait_space(ps_operator *op, int32_t which, int64_t rows, int32_t ms) {
  ledger *l = &op->input[which].ledger;
  if (ledger_want(l, rows < 1 ? 1 : rows)) operator_ring(op, 0);
  return ledger_wait(l, rows, ms);
}

ps_code ps_operator_heartbeat(ps_operator *op, int32_t which, int64_t ts, ps_fault *fault) {
  input *in = &op->input[which];
  ps_code code = PS_OK;
  ps_counter *before = memory_enter(&in->bytes);
  pthread_mutex_lock(&in->lock);
  if (is_closed(op, in)) {
    code = PS_CLOSED;
  } else if (ts < 0) {
    *fault = (ps_fault){.ts = ts};
    code = PS_DISORDER;
  } else if (ts > ps_counter_get(&in->latest) && !op->design->reserve(op, which, 1)) {
    code = PS_NO_MEMORY;
  } else if (ts > ps_counter_get(&in->latest)) {
    promises_note(op, which, ts);
  }
  bool owes = promises_owes(in);
  pthread_mutex_unlock(&in->lock);
  if (owes) operator_ring(op, 0);
  memory_enter(before);
  return code;
}

ps_code ps_operator_close(ps_operator *op, int32_t which) {
  input *in = &op->input[which];
  bool owed = false;
  ps_counter *before = memory_enter(&in->bytes);
  pthread_mutex_lock(&in->lock);
  if (!is_closed(op, in)) {
    ps_flag_set(&in->closed, 1);
    owed = promises_kept(op, in, INT64_MAX);
    op->design->close(op, which);
  }
  pthread_mutex_unlock(&in->lock);
  if (owed) operator_ring(op, 0);
  memory_enter(before);
  return ps_flag_get(&op->cancelled) ? PS_CLOSED : PS_OK;
}

/* ---- making and freeing ---- */

static bool input_init(ps_operator *op, input *in, int64_t max_pending) {
  if (op->coalesces && !coalesce_init(&in->coalescer, op->columns, op->column_types)) return false;
  if (pthread_mutex_init(&in->lock, NULL) == 0) {
    if (ledger_init(&in->ledger, max_pending)) {
      ps_counter_set(&in->latest, -1);
      ps_counter_set(&in->told, -1);
      key_cache_init(&in->keys, &op->key_table);
      return true;
    }
    pthread_mutex_destroy(&in->lock);
  }
  coalesce_free(&in->coalescer);
  return false;
}

bool inputs_init(ps_operator *op, int32_t inputs, int64_t max_pending) {
  op->input = memory_new((size_t)inputs * sizeof *op->input);
  if (!op->input) return false;
  for (; op->inputs < inputs; op->inputs++) {
    if (!input_init(op, &op->input[op->inputs], max_pending)) return false;
  }
  return true;
}

static void input_free(input *in) {
  coalesce_free(&in->coalescer); /* reads its open batch, which the ledger may hold */
  free_all(ledger_free(&in->ledger));
  free_all(in->dead);
  free_all(in->spare);
  free_all(in->kept);
  key_cache_free(&in->keys);
  pthread_mutex_destroy(&in->lock);
}

void inputs_free(ps_operator *op) {
  for (int32_t i = 0; i < op->inputs; i++) input_free(&op->input[i]);
  memory_free(op->input);
}
