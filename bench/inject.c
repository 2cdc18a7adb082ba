/*
 * inject.c - a whole operator fed and read from C, for bench_latency.py: no Python and no lock of Python's in the way.
 *
 *   inject DATA DESIGN SIZE ADVANCE FUNCTION INPUTS THREADS RATE BATCH_ROWS SECONDS STEP ROWS_FILE
 *
 * DATA       a lap of each input, as bench_latency.py writes it: rows of an input and the seconds that a lap spans,
 *            then for each input the columns ts (int64), meter (int32) and cons (double)
 * DESIGN     of the operator; "none": there is no operator, and the rows are how late (ns) the first injector woke up
 * FUNCTION   count, first or avg (of cons); by meter
 * THREADS    inject; input k belongs to thread k % THREADS
 * RATE       tuples per second over all inputs; 0: as fast as they are taken
 * STEP       of the rows out, every so-manieth goes to ROWS_FILE: three int64 each, arrival in ns, window, key
 *
 * Batch number n of input k is due at start + ((n + 1) * BATCH_ROWS + BATCH_ROWS * t / THREADS) * INPUTS / RATE, t
 * being its thread: when its last tuple is, and the threads take turns. That is Schedule.due, with as many turns as
 * threads, of pystream/lab/evaluation/workload.py. Laps follow each other, with their timestamps moved on.
 *
 * Prints as JSON: start (ns), seconds, tuples added, rows out, processor time of injectors, reader and output thread,
 * and how often threads gave up the processor. Ends with 1 if windows come out of order.
 */
#include "base/base.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

enum { INPUTS_MAX = 64, COLUMNS = 3, PENDING = 1 << 14, AHEAD_NS = 20000000 };

static const char *const DESIGNS[PS_DESIGNS] = {"mq", "mq-lf", "tuml-sc", "tuml-mc", "wiml", "sliced", "runs"};

/* What one thread writes shares no cache line with what another one reads for every tuple. */
typedef struct {
  _Alignas(128) int64_t *ts; /* the lap */
  int64_t *ring;             /* the timestamps of batches under way, moved on */
  int32_t *meter;
  double *cons;
  int64_t number, lap;     /* of the next batch, and which lap it is in */
  int64_t first, slot;     /* its first row in the lap, and the place of its timestamps in the ring */
  struct ArrowArray batch; /* the same shell for every batch: the operator copies what it needs */
  struct ArrowArray child[COLUMNS], *children[COLUMNS];
  const void *buffer[COLUMNS][2];
} source;

typedef struct {
  ps_operator *op;
  int32_t inputs, threads, columns;
  double rate;
  int64_t lap_rows, span, batch_rows, ring_batches, start, step;
  _Atomic bool stop;
  source source[INPUTS_MAX];
  _Atomic int64_t tuples, injectors_ns;
  int64_t rows, kept, room, reader_ns, *out;
} contest;

static contest r;

static void check(bool right, const char *what) {
  if (right) return;
  fprintf(stderr, "%s\n", what);
  exit(1);
}

static void *need(size_t size) {
  void *place = calloc(1, size ? size : 1);
  check(place != NULL, "no memory");
  return place;
}

static int64_t clock_ns(clockid_t which) {
  struct timespec now;
  clock_gettime(which, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---- the tuples ---- */

static void read_exactly(void *to, size_t size, FILE *file) { check(fread(to, 1, size, file) == size, "short data"); }

static void *read_column(size_t width, FILE *file) {
  void *place = need((size_t)r.lap_rows * width);
  read_exactly(place, (size_t)r.lap_rows * width, file);
  return place;
}

static void release_nothing(struct ArrowArray *array) { array->release = NULL; }

static void make_shell(source *s) {
  for (int32_t c = 0; c < COLUMNS; c++) {
    s->child[c] = (struct ArrowArray){.n_buffers = 2, .buffers = s->buffer[c]};
    s->children[c] = &s->child[c];
  }
  s->batch = (struct ArrowArray){.n_children = r.columns, .children = s->children};
  s->buffer[0][1] = s->ring;
  s->buffer[1][1] = s->meter;
  s->buffer[2][1] = s->cons;
}

/* A batch's timestamps stay until it has been passed: no more than PENDING tuples and this batch are under way. */
static void read_data(const char *path) {
  FILE *file = fopen(path, "rb");
  check(file != NULL, "no data");
  int64_t head[2];
  read_exactly(head, sizeof head, file);
  r.lap_rows = head[0];
  r.span = head[1];
  if (r.batch_rows > r.lap_rows) r.batch_rows = r.lap_rows;
  r.ring_batches = PENDING / r.batch_rows + PENDING / r.lap_rows + 4; /* each lap may end with a shorter one */
  for (int32_t k = 0; k < r.inputs; k++) {
    source *s = &r.source[k];
    s->ts = read_column(sizeof *s->ts, file);
    s->meter = read_column(sizeof *s->meter, file);
    s->cons = read_column(sizeof *s->cons, file);
    s->ring = need((size_t)(r.ring_batches * r.batch_rows) * sizeof *s->ring);
    make_shell(s);
  }
  fclose(file);
}

/* ---- injectors ---- */

/* The last batch of a lap is shorter, if need be. */
static int64_t cut(source *s) {
  int64_t left = r.lap_rows - s->first, rows = left < r.batch_rows ? left : r.batch_rows;
  for (int64_t i = 0; i < rows; i++) s->ring[s->slot + i] = s->ts[s->first + i] + s->lap * r.span;
  s->batch.length = rows;
  s->batch.release = release_nothing;
  for (int32_t c = 0; c < r.columns; c++) {
    s->child[c].length = rows;
    s->child[c].offset = c == 0 ? s->slot : s->first;
  }
  return s->lap * r.lap_rows + s->first + rows; /* how many the input has sent then */
}

/* Goes on to the next batch, without a division: with batches of one row that would be much of what is measured. */
static void move_on(source *s) {
  s->number++;
  s->first += r.batch_rows;
  s->slot += r.batch_rows;
  if (s->slot == r.ring_batches * r.batch_rows) s->slot = 0;
  if (s->first < r.lap_rows) return;
  s->first = 0;
  s->lap++;
}

static int64_t due_ns(int32_t k, int64_t sent) {
  double tuples = (double)sent + (double)r.batch_rows * (k % r.threads) / r.threads;
  return r.start + (int64_t)(1e9 * tuples * r.inputs / r.rate);
}

static void wait_until_due(int32_t k, int64_t sent) {
  int64_t due = due_ns(k, sent);
  struct timespec at = {.tv_sec = due / 1000000000, .tv_nsec = due % 1000000000};
  if (clock_ns(CLOCK_MONOTONIC) < due) clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
}

/* False: the operator has ended. */
static bool add(int32_t k) {
  source *s = &r.source[k];
  ps_fault fault;
  int64_t rows = s->batch.length;
  for (;;) {
    ps_code code = ps_operator_add(r.op, k, s->number, &s->batch, &fault);
    if (code == PS_OK) break;
    if (code == PS_FULL) code = ps_operator_wait_space(r.op, k, rows, 1000);
    if (code == PS_CLOSED) return false;
    check(code == PS_OK || code == PS_FULL, "not added");
  }
  move_on(s);
  return true;
}

static void keep(int64_t at, int64_t window, int64_t key) {
  if (r.kept == r.room) {
    r.room = r.room ? 2 * r.room : 65536;
    r.out = realloc(r.out, (size_t)r.room * 3 * sizeof *r.out);
    check(r.out != NULL, "no memory");
  }
  memcpy(r.out + 3 * r.kept++, (int64_t[]){at, window, key}, 3 * sizeof *r.out);
}

/* A batch that is due goes nowhere. */
static void note_lateness(int32_t k, int64_t sent) {
  if (k == 0) keep(clock_ns(CLOCK_MONOTONIC) - due_ns(k, sent), 0, 0);
  move_on(&r.source[k]);
}

static void *inject(void *argument) {
  int32_t first = (int32_t)(intptr_t)argument;
  int64_t tuples = 0;
  prctl(PR_SET_TIMERSLACK, 1000L, 0L, 0L, 0L); /* else sleeps end up to 50 us late */
  for (bool open = true; open && !atomic_load(&r.stop);) {
    for (int32_t k = first; open && k < r.inputs; k += r.threads) {
      int64_t sent = cut(&r.source[k]);
      if (r.rate > 0) wait_until_due(k, sent);
      tuples += r.source[k].batch.length;
      if (r.op) {
        open = add(k);
      } else {
        note_lateness(k, sent);
      }
    }
  }
  atomic_fetch_add(&r.tuples, tuples);
  atomic_fetch_add(&r.injectors_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
  return NULL;
}

/* ---- reader ---- */

static void keep_some(const struct ArrowArray *rows) {
  int64_t at = clock_ns(CLOCK_MONOTONIC);
  const int64_t *window = rows->children[0]->buffers[1], *key = rows->children[1]->buffers[1];
  int64_t i = (r.step - r.rows % r.step) % r.step;
  for (; i < rows->length; i += r.step) keep(at, window[i], key[i]);
  r.rows += rows->length;
}

static void *read_rows(void *unused) {
  (void)unused;
  int64_t before = 0;
  for (;;) {
    struct ArrowArray rows, journal;
    ps_fault fault;
    ps_code code = ps_operator_take(r.op, 1000, &rows, &journal, &fault);
    if (code == PS_EMPTY) continue;
    if (code != PS_OK) break;
    const int64_t *window = rows.children[0]->buffers[1];
    check(rows.length == 0 || window[0] >= before, "windows out of order");
    if (rows.length > 0) before = window[rows.length - 1];
    keep_some(&rows);
    ps_arrow_release(&rows);
    ps_arrow_release(&journal);
  }
  r.reader_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  return NULL;
}

/* ---- a run ---- */

static void make(const char *design, int64_t size, int64_t advance, const char *function) {
  static const ps_type types[COLUMNS] = {PS_I64, PS_I32, PS_F64};
  ps_function f = !strcmp(function, "count") ? PS_COUNT : !strcmp(function, "first") ? PS_FIRST : PS_AVG;
  ps_aggregate aggregate = {.function = f, .column = f == PS_COUNT ? -1 : 2, .mask = -1};
  r.columns = f == PS_COUNT ? 2 : COLUMNS; /* as in the library: those that the query reads */
  if (!strcmp(design, "none")) return;
  ps_query query = {size, advance, r.columns, types, 1, 1, &aggregate};
  int32_t which = 0;
  while (which < PS_DESIGNS && strcmp(design, DESIGNS[which]) != 0) which++;
  check(which < PS_DESIGNS, "no such design");
  check(ps_operator_new(&query, r.inputs, (ps_design)which, 1, 0, PENDING, &r.op) == PS_OK, "no operator");
}

static void report(double took, int64_t all_ns) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  int64_t injectors = atomic_load(&r.injectors_ns);
  printf(
      "{\"start\": %lld, \"seconds\": %.6f, \"tuples\": %lld, \"rows\": %lld, \"injectors_s\": %.6f, "
      "\"reader_s\": %.6f, \"output_s\": %.6f, \"switches\": %ld}\n",
      (long long)r.start, took, (long long)atomic_load(&r.tuples), (long long)r.rows, 1e-9 * (double)injectors,
      1e-9 * (double)r.reader_ns, 1e-9 * (double)(all_ns - injectors - r.reader_ns), used.ru_nvcsw + used.ru_nivcsw);
}

static void run_for(double seconds) {
  pthread_t reader, injector[INPUTS_MAX];
  int64_t before = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
  r.start = clock_ns(CLOCK_MONOTONIC) + AHEAD_NS;
  check(!r.op || pthread_create(&reader, NULL, read_rows, NULL) == 0, "no thread");
  for (int32_t i = 0; i < r.threads; i++) {
    check(pthread_create(&injector[i], NULL, inject, (void *)(intptr_t)i) == 0, "no thread");
  }
  struct timespec span = {(time_t)seconds, (long)(1e9 * (seconds - (double)(time_t)seconds))};
  nanosleep(&span, NULL);
  atomic_store(&r.stop, true);
  double took = 1e-9 * (double)(clock_ns(CLOCK_MONOTONIC) - r.start);
  if (r.op)
    ps_operator_cancel(r.op); /* an injector may wait for room that only another one, which has stopped, would make */
  for (int32_t i = 0; i < r.threads; i++) pthread_join(injector[i], NULL);
  if (r.op) ps_operator_end(r.op);
  if (r.op) pthread_join(reader, NULL);
  report(took, clock_ns(CLOCK_PROCESS_CPUTIME_ID) - before);
  ps_operator_free(r.op);
}

int main(int argc, char **argv) {
  if (argc != 13) return 2;
  r.inputs = atoi(argv[6]);
  r.threads = atoi(argv[7]);
  r.rate = atof(argv[8]);
  r.batch_rows = atoll(argv[9]);
  r.step = atoll(argv[11]);
  if (r.inputs < 1 || r.inputs > INPUTS_MAX || r.threads < 1 || r.threads > r.inputs || r.batch_rows < 1) return 2;
  make(argv[2], atoll(argv[3]), atoll(argv[4]), argv[5]);
  read_data(argv[1]);
  run_for(atof(argv[10]));
  FILE *file = fopen(argv[12], "wb");
  check(file && fwrite(r.out, 3 * sizeof *r.out, (size_t)r.kept, file) == (size_t)r.kept && fclose(file) == 0,
        "rows not written");
  return 0;
}
