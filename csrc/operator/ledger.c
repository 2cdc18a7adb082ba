/* ledger.c - see ledger.h. */
#include "operator/ledger.h"

#include "base/wait.h"

bool ledger_init(ledger *l, int64_t held_max) {
  *l = (ledger){.held_max = held_max};
  cell_init(&l->held, 0);
  cell_init(&l->last_rows, 0);
  if (pthread_mutex_init(&l->lock, NULL) != 0) return false;
  if (wait_init(&l->freed)) return true;
  pthread_mutex_destroy(&l->lock);
  return false;
}

batch *ledger_free(ledger *l) {
  pthread_cond_destroy(&l->freed);
  pthread_mutex_destroy(&l->lock);
  return l->first;
}

/* ---- adder ---- */

static bool fits(const ledger *l, uint64_t word, int64_t rows) {
  int64_t held = (int64_t)(word >> 1);
  return held == 0 || rows <= l->held_max - held;
}

bool ledger_fits(ledger *l, int64_t rows) {
  AT(add_room);
  return fits(l, held_read(&l->held), rows);
}

/* If the last batch views the same buffers, moves their count to the new one. */
static int64_t take_unseen(batch *last, const batch *b) {
  if (!last || last->room || b->room || last->columns[0].values != b->columns[0].values) return 0;
  int64_t unseen = last->unseen;
  last->unseen = 0;
  return unseen;
}

int64_t ledger_put(ledger *l, batch *b) {
  b->next = NULL;
  pthread_mutex_lock(&l->lock);
  int64_t taken = take_unseen(l->last, b);
  if (l->last) {
    l->last->next = b;
  } else {
    l->first = b;
  }
  l->last = b;
  AT(add_enqueue);
  held_change(&l->held, 2 * b->rows);
  AT(add_enqueue);
  last_rows_publish(&l->last_rows, (uint64_t)b->rows);
  pthread_mutex_unlock(&l->lock);
  return b->unseen - taken;
}

void ledger_extend(ledger *l, batch *open, int64_t rows) {
  assert(rows <= open->room - open->rows);
  WRITES(open->rows);
  open->rows += rows;
  AT(add_enqueue);
  held_change(&l->held, 2 * rows); /* first, so that rows seen in last_rows are held already */
  AT(add_enqueue);
  last_rows_publish(&l->last_rows, (uint64_t)open->rows);
}

/* The first of the batch's first `rows` rows with a timestamp above `ts`; `rows` if there is none. */
static int64_t first_above(const batch *b, int64_t rows, int64_t ts) {
  int64_t low = 0, high = rows;
  while (low < high) {
    int64_t middle = low + (high - low) / 2;
    if (batch_ts(b, middle) > ts) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

/* ---- passer ---- */

/* The batches at one moment, and the rows of the last one. They stay valid without the lock: only the passer removes
   batches, and the adder changes only the last batch's `next` and rows (I3). */
typedef struct {
  batch *first, *last;
  int64_t last_rows;
} batches;

static batches look_locked(ledger *l) {
  AT(output_look);
  return (batches){l->first, l->last, l->last ? (int64_t)last_rows_read(&l->last_rows) : 0};
}

static batches look(ledger *l) {
  pthread_mutex_lock(&l->lock);
  batches now = look_locked(l);
  pthread_mutex_unlock(&l->lock);
  return now;
}

static int64_t rows_of(const batches *all, const batch *b) {
  if (b == all->last) return all->last_rows;
  READS(b->rows);
  return b->rows;
}

/* Whether the batch may still grow. */
static bool is_open(const batches *all, const batch *b) { return b == all->last && all->last_rows < b->room; }

/* Removes the batches up to and including `end`. */
static void cut_behind(ledger *l, batch *end) {
  pthread_mutex_lock(&l->lock);
  l->first = end->next;
  if (!l->first) l->last = NULL;
  pthread_mutex_unlock(&l->lock);
  end->next = NULL;
}

static void wake(ledger *l) {
  pthread_mutex_lock(&l->lock);
  AT(output_space);
  if (l->waiting_for && fits(l, held_read(&l->held), l->waiting_for)) {
    l->waiting_for = 0;
    AT(output_space_ring);
    held_change(&l->held, -1);
    pthread_cond_broadcast(&l->freed);
  }
  pthread_mutex_unlock(&l->lock);
}

batch *ledger_pass(ledger *l, int64_t n) {
  if (n == 0) return NULL;
  batches all = look(l);
  batch *b = all.first, *done = NULL;
  for (int64_t left = n; left > 0;) {
    int64_t here = rows_of(&all, b) - b->passed, step = left < here ? left : here;
    b->passed += step;
    left -= step;
    if (step < here || is_open(&all, b)) break;
    done = b;
    if (b != all.last) b = b->next;
    assert(left == 0 || done != all.last);
  }
  if (done) cut_behind(l, done);
  AT(output_space);
  if (held_change(&l->held, -2 * n) & 1) wake(l);
  return done ? all.first : NULL;
}

int64_t ledger_ready(ledger *l, int64_t ts) {
  batches all = look(l);
  batch *b = all.first;
  int64_t ready = 0;
  for (; b && batch_ts(b, rows_of(&all, b) - 1) <= ts; b = b->next) {
    ready += rows_of(&all, b) - b->passed;
    if (b == all.last) return ready;
  }
  if (!b) return ready;
  int64_t here = first_above(b, rows_of(&all, b), ts) - b->passed;
  return here > 0 ? ready + here : ready;
}

/* ---- any thread ---- */

int64_t ledger_held(ledger *l) {
  AT(add_room);
  return (int64_t)(held_count(&l->held) >> 1);
}

ledger_view ledger_count_above(ledger *l, int64_t ts) {
  ledger_view view = {.first = INT64_MAX};
  pthread_mutex_lock(&l->lock);
  batches all = look_locked(l);
  view.held = ledger_held(l); /* after the count of rows: see ledger_extend */
  for (const batch *b = all.first; b; b = b->next) {
    int64_t rows = rows_of(&all, b), row = first_above(b, rows, ts);
    if (view.above == 0 && row < rows) view.first = batch_ts(b, row);
    view.above += rows - row;
  }
  pthread_mutex_unlock(&l->lock);
  return view;
}

/* Guarded by lock: marks that a thread waits for room. Returns the count that the same operation found. */
static uint64_t mark(ledger *l, int64_t rows) {
  bool marked = l->waiting_for != 0;
  if (!marked || rows < l->waiting_for) l->waiting_for = rows;
  if (marked) {
    AT(add_room);
    return held_read(&l->held);
  }
  AT(add_full_arm);
  return held_change(&l->held, 1);
}

bool ledger_want(ledger *l, int64_t rows) {
  pthread_mutex_lock(&l->lock);
  bool wants = !l->cancelled && !ledger_fits(l, rows) && !fits(l, mark(l, rows), rows);
  pthread_mutex_unlock(&l->lock);
  return wants;
}

bool ledger_pressed(ledger *l) { return held_read(&l->held) & 1; }

ps_code ledger_wait(ledger *l, int64_t rows, int32_t ms) {
  if (rows < 1) rows = 1;
  moment until = moment_in(ms);
  pthread_mutex_lock(&l->lock);
  bool in_time = true;
  while (!l->cancelled && in_time && !ledger_fits(l, rows) && !fits(l, mark(l, rows), rows)) {
    in_time = wait_until(&l->freed, &l->lock, until);
  }
  ps_code code = l->cancelled ? PS_CLOSED : ledger_fits(l, rows) ? PS_OK : PS_FULL;
  pthread_mutex_unlock(&l->lock);
  return code;
}

void ledger_cancel(ledger *l) {
  pthread_mutex_lock(&l->lock);
  l->cancelled = true;
  pthread_cond_broadcast(&l->freed);
  pthread_mutex_unlock(&l->lock);
}

void ledger_limit(ledger *l, int64_t held_max) {
  pthread_mutex_lock(&l->lock);
  l->held_max = held_max;
  pthread_mutex_unlock(&l->lock);
}
