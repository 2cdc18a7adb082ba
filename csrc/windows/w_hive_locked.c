/*
 * w_hive_locked.c - a W-Hive for callers that do not keep to one thread per number, such as Python's threads.
 *
 * One mutex per updater and one for the reader, each held for one call. Inside only the key table's mutex is taken,
 * when an updater finds a new key. Calls of the same updater run one after the other, others concurrently. w_hive.c
 * itself has no lock.
 */
#include "windows/w_hive.h"

#include <pthread.h>

#include "windows/edges.h"

/* Columns of the batches that updaters pass. An integer value is in two columns: exact while the window has only
   integers, and as the nearest double once it has others too. */
enum { COLUMN_TS, COLUMN_KEY, COLUMN_INTEGER, COLUMN_REAL, COLUMN_IS_REAL, COLUMNS };

static const ps_type column_types[COLUMNS] = {PS_I64, PS_I64, PS_I64, PS_F64, PS_I64};

typedef struct {
  pthread_mutex_t lock;
  int64_t latest;
  bool closed;
  key_cache keys;
  int64_t keys_capacity; /* of batch->keys */
  batch *batch;          /* a view of the caller's arrays, set for each call */
} line;

struct ps_w_hive {
  aggregates functions;
  key_table keys;
  w_hive *hive;
  int64_t ts_max; /* largest timestamp of a tuple: edges.h */
  int32_t lines;  /* number made */
  line *line;     /* per updater */
  pthread_mutex_t reading;
  win_set *taken; /* delivered and not emitted yet, because memory ran out */
  out_rows rows;
};

/* ---- making and freeing ---- */

/* count; or the function over integers, the function over all values as doubles, and the count of non-integers. */
static bool functions_init(aggregates *functions, ps_function function) {
  const ps_aggregate count = {.function = PS_COUNT, .column = -1, .mask = -1};
  const ps_aggregate both[] = {{.function = function, .column = COLUMN_INTEGER, .mask = -1},
                               {.function = function, .column = COLUMN_REAL, .mask = -1},
                               {.function = PS_COUNT, .column = COLUMN_IS_REAL, .mask = -1}};
  ps_query query = {.columns = COLUMNS, .column_types = column_types, .keys = 1, .aggregates = 3, .aggregate = both};
  if (function == PS_COUNT) {
    query.aggregates = 1;
    query.aggregate = &count;
  }
  return aggregates_init(functions, &query);
}

static bool line_init(line *l, key_table *keys) {
  *l = (line){.latest = -1};
  l->batch = memory_new(sizeof *l->batch + COLUMNS * sizeof(column));
  if (!l->batch) return false;
  if (pthread_mutex_init(&l->lock, NULL) != 0) {
    memory_free(l->batch);
    return false;
  }
  key_cache_init(&l->keys, keys);
  return true;
}

static void line_free(line *l) {
  pthread_mutex_destroy(&l->lock);
  key_cache_free(&l->keys);
  batch_free(l->batch);
}

static bool lines_init(ps_w_hive *h, int32_t threads) {
  h->line = memory_new((size_t)threads * sizeof *h->line);
  if (!h->line) return false;
  for (; h->lines < threads; h->lines++) {
    if (!line_init(&h->line[h->lines], &h->keys)) return false;
  }
  return true;
}

ps_code ps_w_hive_new(int64_t size, int64_t advance, ps_function function, int32_t threads, ps_w_hive **out) {
  ps_w_hive *h = memory_new(sizeof *h);
  if (!h) return PS_NO_MEMORY;
  if (!key_table_init(&h->keys)) {
    memory_free(h);
    return PS_NO_MEMORY;
  }
  if (pthread_mutex_init(&h->reading, NULL) != 0) {
    key_table_free(&h->keys);
    memory_free(h);
    return PS_NO_MEMORY;
  }
  bool ok = functions_init(&h->functions, function) && out_rows_init(&h->rows, 2 + h->functions.n, NULL) &&
            lines_init(h, threads);
  h->ts_max = ts_max((pane_windows){(uint64_t)size, (uint64_t)advance});
  if (ok) h->hive = w_hive_new(size, advance, &h->functions, threads, w_hive_sharing_of(&h->functions, threads), 0);
  if (!ok || !h->hive) {
    ps_w_hive_free(h);
    return PS_NO_MEMORY;
  }
  *out = h;
  return PS_OK;
}

void ps_w_hive_free(ps_w_hive *h) {
  if (!h) return;
  win_set_free(h->taken);
  w_hive_free(h->hive);
  for (int32_t i = 0; i < h->lines; i++) line_free(&h->line[i]);
  memory_free(h->line);
  out_rows_free(&h->rows);
  aggregates_free(&h->functions);
  pthread_mutex_destroy(&h->reading);
  key_table_free(&h->keys);
  memory_free(h);
}

/* ---- updaters ---- */

/* Points the batch at the caller's arrays and looks up the keys of its rows. */
static bool view(line *l, const ps_w_hive_tuples *tuples) {
  batch *b = l->batch;
  if (!memory_grow((void **)&b->keys, &l->keys_capacity, tuples->rows, sizeof *b->keys)) return false;
  b->rows = tuples->rows;
  b->columns[COLUMN_TS] = (column){.type = PS_I64, .values = tuples->ts};
  b->columns[COLUMN_KEY] = (column){.type = PS_I64, .values = tuples->key};
  b->columns[COLUMN_INTEGER] = (column){.type = PS_I64, .values = tuples->integer, .validity = tuples->is_integer};
  b->columns[COLUMN_REAL] = (column){.type = PS_F64, .values = tuples->real, .validity = tuples->is_value};
  b->columns[COLUMN_IS_REAL] = (column){.type = PS_I64, .values = tuples->integer, .validity = tuples->is_real};
  return key_cache_fill(&l->keys, b, 1);
}

static ps_code check_order(const line *l, const int64_t *ts, int64_t rows, ps_fault *fault) {
  if (l->closed) return PS_CLOSED;
  int64_t latest = l->latest < 0 ? 0 : l->latest; /* nothing received yet: only negative timestamps are wrong */
  for (int64_t row = 0; row < rows; row++) {
    if (ts[row] < latest) {
      *fault = (ps_fault){.row = row, .ts = ts[row], .latest = latest};
      return PS_DISORDER;
    }
    latest = ts[row];
  }
  return PS_OK;
}

/* The first row that is in too many windows; timestamps do not decrease. */
static ps_code check_overlap(const ps_w_hive *h, const int64_t *ts, int64_t rows, ps_fault *fault) {
  int64_t row = 0;
  if (rows == 0 || ts[rows - 1] <= h->ts_max) return PS_OK;
  while (ts[row] <= h->ts_max) row++;
  *fault = (ps_fault){.row = row, .ts = ts[row], .latest = h->ts_max};
  return PS_OVERLAP;
}

static ps_code update(ps_w_hive *h, int32_t thread, const ps_w_hive_tuples *tuples, ps_fault *fault) {
  line *l = &h->line[thread];
  ps_code code = check_order(l, tuples->ts, tuples->rows, fault);
  if (code == PS_OK) code = check_overlap(h, tuples->ts, tuples->rows, fault);
  if (code != PS_OK) return code;
  *fault = (ps_fault){.row = 0};
  if (!view(l, tuples)) return PS_NO_MEMORY;
  for (int64_t row = 0; row < tuples->rows; row++) {
    l->latest = tuples->ts[row]; /* also if memory runs out: the timestamp acts as a heartbeat */
    fault->row = row;
    code = w_hive_update_windows(h->hive, thread, tuples->ts[row], l->batch->keys[row], l->batch, row, NULL);
    if (code != PS_OK) return code;
  }
  return PS_OK;
}

ps_code ps_w_hive_update_windows(ps_w_hive *h, int32_t thread, const ps_w_hive_tuples *tuples, ps_fault *fault) {
  pthread_mutex_lock(&h->line[thread].lock);
  ps_code code = update(h, thread, tuples, fault);
  pthread_mutex_unlock(&h->line[thread].lock);
  return code;
}

ps_code ps_w_hive_heartbeat(ps_w_hive *h, int32_t thread, int64_t ts, ps_fault *fault) {
  line *l = &h->line[thread];
  ps_code code = PS_OK;
  pthread_mutex_lock(&l->lock);
  if (l->closed) {
    code = PS_CLOSED;
  } else if (ts < 0) {
    *fault = (ps_fault){.ts = ts};
    code = PS_DISORDER;
  } else if (ts > l->latest) { /* else nothing new */
    l->latest = ts;
    w_hive_heartbeat(h->hive, thread, ts);
  }
  pthread_mutex_unlock(&l->lock);
  return code;
}

void ps_w_hive_close(ps_w_hive *h, int32_t thread) {
  line *l = &h->line[thread];
  pthread_mutex_lock(&l->lock);
  if (!l->closed) w_hive_close(h->hive, thread);
  l->closed = true;
  pthread_mutex_unlock(&l->lock);
}

/* ---- the reader ---- */

/* Moves the rows of one winset into *out. When memory runs out the winset is kept for the next call; one whose sum does
   not fit is dropped, since it would block all later ones. */
static ps_code emit_winset(ps_w_hive *h, struct ArrowArray *out, ps_fault *fault) {
  const ps_type key_type = PS_I64;
  h->rows.rows = 0;
  ps_code code = win_set_output(h->taken, 1, &key_type, &h->rows, fault);
  if (code == PS_OK && !out_rows_shell(&h->rows, out)) code = PS_NO_MEMORY;
  if (code == PS_OK) out_rows_move(&h->rows, out);
  if (code == PS_NO_MEMORY) return code;
  win_set_free(h->taken);
  h->taken = NULL;
  return code;
}

ps_code ps_w_hive_get_next_winset(ps_w_hive *h, struct ArrowArray *out, ps_fault *fault) {
  pthread_mutex_lock(&h->reading);
  ps_code code = h->taken ? PS_OK : w_hive_get_next_winset(h->hive, &h->taken);
  if (code == PS_OK) code = emit_winset(h, out, fault);
  pthread_mutex_unlock(&h->reading);
  return code;
}

uint64_t ps_w_hive_limit(ps_w_hive *h) { return w_hive_limit(h->hive); }
