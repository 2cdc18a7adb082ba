/* sink.c - see sink.h. */
#include "operator/sink.h"

#include <unistd.h>

#include "base/wait.h"

/* The reader is woken for JOURNAL_WORTH journal steps although no row is finished, and for ROWS_WORTH rows, or after
   PATIENCE_MS, although more may follow. A take costs Python about 0.1 ms, for any number of rows. */
#define JOURNAL_WORTH SIZED(4096, 1)
#define ROWS_WORTH SIZED(32768, 1)
#define PATIENCE_MS 1

bool sink_init(sink *s, int32_t columns, const bool *is_bytes, int32_t journal_columns, int64_t rows_max) {
  *s = (sink){.rows_max = rows_max, .watcher = -1};
  if (pthread_mutex_init(&s->lock, NULL) != 0) return false;
  bool filled = wait_init(&s->filled), taken = wait_init(&s->taken);
  if (filled && taken && out_rows_init(&s->rows, columns, is_bytes) &&
      out_rows_init(&s->journal, journal_columns, NULL)) {
    return true;
  }
  out_rows_free(&s->rows);
  if (taken) pthread_cond_destroy(&s->taken);
  if (filled) pthread_cond_destroy(&s->filled);
  pthread_mutex_destroy(&s->lock);
  return false;
}

void sink_free(sink *s) {
  out_rows_free(&s->journal);
  out_rows_free(&s->rows);
  pthread_cond_destroy(&s->taken);
  pthread_cond_destroy(&s->filled);
  pthread_mutex_destroy(&s->lock);
}

/* ---- output thread ---- */

static bool full(const sink *s) { return s->kept + s->rows.rows >= s->rows_max || s->journal.rows >= s->rows_max; }

static ps_code lock(sink *s, bool through) {
  pthread_mutex_lock(&s->lock);
  while (full(s) && !s->cancelled && !s->pausing) pthread_cond_wait(&s->taken, &s->lock);
  ps_code code = s->cancelled ? PS_CLOSED : full(s) && !through ? PS_PAUSED : PS_OK;
  if (code != PS_OK) pthread_mutex_unlock(&s->lock);
  return code;
}

ps_code sink_lock(sink *s) { return lock(s, false); }

ps_code sink_lock_through(sink *s) { return lock(s, true); }

void sink_lock_now(sink *s) { pthread_mutex_lock(&s->lock); }

static bool worth_taking(const sink *s) { return s->posted || s->journal.rows >= JOURNAL_WORTH || full(s); }

/* Rows were added: decides whether to wake the reader. */
static void judge(sink *s) {
  if (s->posted || s->rows.rows == 0) return;
  if (s->bulk) {
    s->posted = s->rows.rows >= s->bulk || full(s);
    return;
  }
  if (s->patience.ns == 0) s->patience = moment_in(PATIENCE_MS);
  s->posted = s->rows.rows >= ROWS_WORTH || full(s) || moment_passed(s->patience);
}

/* Wakes the threads that wait for rows. The pipe is empty, so the byte fits; if not, it holds a wake-up already. */
static void announce(sink *s) {
  pthread_cond_broadcast(&s->filled);
  if (s->watcher < 0) return;
  ssize_t written = write(s->watcher, "", 1);
  (void)written;
  s->watcher = -1;
}

void sink_unlock(sink *s) {
  judge(s);
  if (worth_taking(s)) announce(s);
  pthread_mutex_unlock(&s->lock);
}

void sink_post(sink *s) {
  pthread_mutex_lock(&s->lock);
  if (s->bulk == 0) s->posted = s->rows.rows > 0;
  if (s->posted) announce(s);
  pthread_mutex_unlock(&s->lock);
}

void sink_end(sink *s, ps_code failure, const ps_fault *fault) {
  pthread_mutex_lock(&s->lock);
  if (!s->ended) {
    s->ended = true;
    s->failure = failure;
    s->fault = *fault;
  }
  announce(s);
  pthread_mutex_unlock(&s->lock);
}

/* ---- reader ---- */

static ps_code take_all(sink *s, struct ArrowArray *rows, struct ArrowArray *journal) {
  if (!out_rows_shell(&s->rows, rows)) return PS_NO_MEMORY;
  if (!out_rows_shell(&s->journal, journal)) {
    ps_arrow_release(rows);
    return PS_NO_MEMORY;
  }
  s->rows_out += s->rows.rows;
  s->posted = false;
  s->patience = (moment){0};
  out_rows_move(&s->rows, rows);
  out_rows_move(&s->journal, journal);
  pthread_cond_broadcast(&s->taken);
  return PS_OK;
}

static ps_code verdict(const sink *s, ps_fault *fault) {
  if (s->failure != PS_OK) *fault = s->fault;
  if (s->failure != PS_OK) return s->failure;
  if (s->ended) return PS_END;
  return s->cancelled ? PS_CLOSED : PS_EMPTY;
}

static bool is_due(const sink *s) { return worth_taking(s) || s->ended || s->cancelled; }

ps_code sink_take(sink *s, int32_t ms, struct ArrowArray *rows, struct ArrowArray *journal, ps_fault *fault) {
  moment until = moment_in(ms);
  pthread_mutex_lock(&s->lock);
  bool in_time = ms > 0;
  while (!is_due(s) && in_time) in_time = wait_until(&s->filled, &s->lock, until);
  bool any = (s->rows.rows || s->journal.rows) && (!s->bulk || is_due(s));
  ps_code code = any ? take_all(s, rows, journal) : verdict(s, fault);
  pthread_mutex_unlock(&s->lock);
  return code;
}

void sink_cancel(sink *s) {
  pthread_mutex_lock(&s->lock);
  s->cancelled = true;
  announce(s);
  pthread_cond_broadcast(&s->taken);
  pthread_mutex_unlock(&s->lock);
}

bool sink_watch(sink *s, int descriptor) {
  pthread_mutex_lock(&s->lock);
  bool free = s->watcher < 0;
  if (free) s->watcher = descriptor;
  if (free && is_due(s)) announce(s);
  pthread_mutex_unlock(&s->lock);
  return free;
}

void sink_unwatch(sink *s, int descriptor) {
  pthread_mutex_lock(&s->lock);
  if (s->watcher == descriptor) s->watcher = -1;
  pthread_mutex_unlock(&s->lock);
}

void sink_pause(sink *s, bool pausing) {
  pthread_mutex_lock(&s->lock);
  s->pausing = pausing;
  pthread_cond_broadcast(&s->taken);
  pthread_mutex_unlock(&s->lock);
}

void sink_limit(sink *s, int64_t rows_max) {
  pthread_mutex_lock(&s->lock);
  s->rows_max = rows_max;
  pthread_mutex_unlock(&s->lock);
}

void sink_bulk(sink *s, int64_t rows) {
  pthread_mutex_lock(&s->lock);
  s->bulk = rows;
  if (s->rows_max < 2 * rows) s->rows_max = 2 * rows;
  pthread_mutex_unlock(&s->lock);
}

void sink_keep(sink *s, int64_t rows) {
  pthread_mutex_lock(&s->lock);
  s->kept = rows;
  pthread_cond_broadcast(&s->taken);
  pthread_mutex_unlock(&s->lock);
}

int64_t sink_rows_out(sink *s) {
  pthread_mutex_lock(&s->lock);
  int64_t n = s->rows_out + s->rows.rows;
  pthread_mutex_unlock(&s->lock);
  return n;
}

ps_unread sink_unread(sink *s, int32_t ms) {
  moment until = moment_in(ms);
  pthread_mutex_lock(&s->lock);
  bool in_time = ms > 0;
  while (s->rows.rows == 0 && !full(s) && !s->ended && !s->cancelled && in_time) {
    in_time = wait_until(&s->filled, &s->lock, until);
  }
  bool over = s->ended || s->cancelled;
  ps_unread out = {.rows = s->cancelled ? 0 : s->rows.rows, .full = full(s) && !over, .over = over};
  pthread_mutex_unlock(&s->lock);
  return out;
}
