/*
 * values_stress.c - an operator under real threads on what users have, for the sanitizer builds: string keys with
 * nulls, strings, doubles whose sums need the wide accumulator, narrow integers and masks, in batches that begin
 * anywhere in their buffers. One thread adds for each input, one reads, and one takes snapshots, each of which is
 * loaded into an operator of the next design, which is run to its end.
 *
 *   values_stress DESIGN THREADS INPUTS TUPLES ROUNDS       DESIGN: its number in ps_design
 */
#include "arrow_batch.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

enum { TS, KEY, FLOAT, STRING, MASK, NARROW, COLUMNS };
enum { SIZE = 12, BATCH_MAX = 40, WORD_MAX = 24 };

static const ps_type types[COLUMNS] = {PS_I64, PS_BYTES32, PS_F64, PS_BYTES64, PS_BOOL, PS_I32};
static const double doubles[] = {0.0, -0.0, 1.5, 1e300, -1e300, 5e-324, 1e16, -3.25};

static const ps_aggregate unordered[] = {
    {PS_COUNT, -1, -1, NULL},    {PS_COUNT, -1, MASK, NULL}, {PS_SUM, NARROW, -1, NULL},   {PS_SUM, FLOAT, -1, NULL},
    {PS_AVG, FLOAT, MASK, NULL}, {PS_MIN, STRING, -1, NULL}, {PS_MAX, STRING, MASK, NULL}, {PS_MAX, FLOAT, -1, NULL}};
static const ps_aggregate ordered[] = {{PS_COUNT, -1, -1, NULL},     {PS_COUNT, -1, MASK, NULL},
                                       {PS_SUM, NARROW, -1, NULL},   {PS_SUM, FLOAT, -1, NULL},
                                       {PS_FIRST, STRING, -1, NULL}, {PS_LAST, STRING, MASK, NULL},
                                       {PS_FIRST, FLOAT, -1, NULL},  {PS_LAST, NARROW, -1, NULL}};
enum { AGGREGATES = sizeof unordered / sizeof unordered[0] };

static ps_query query_for(ps_design a, ps_design b) {
  bool order = a != PS_WIML && b != PS_WIML;
  return (ps_query){SIZE, SIZE, COLUMNS, types, 1, AGGREGATES, order ? ordered : unordered};
}

/* ---- batches: what tuple i of any input is follows from i ---- */

static bool masked(int64_t i) { return hash_mix((uint64_t)i) % 3 == 0; }
static int32_t narrow(int64_t i) { return (int32_t)(i % 7) - 2; }

/* Every third row or so is null. */
static void put_nulls(struct ArrowArray *a, int64_t first, uint64_t salt) {
  uint8_t *bitmap = calloc((size_t)(a->offset + a->length + 7) / 8, 1);
  for (int64_t r = 0; r < a->length; r++) {
    bool null = hash_mix((uint64_t)(first + r) ^ salt) % 4 == 0;
    a->null_count += null;
    if (!null) bitmap[(a->offset + r) / 8] |= (uint8_t)(1u << ((a->offset + r) & 7));
  }
  a->buffers[0] = bitmap;
}

/* Words of any length, zero bytes among them. */
static void put_words(struct ArrowArray *a, int64_t first, bool wide, uint64_t words) {
  int64_t n = a->offset + a->length + 1, used = 0;
  int32_t *offset = wide ? NULL : calloc((size_t)n, sizeof *offset);
  int64_t *wide_offset = wide ? calloc((size_t)n, sizeof *wide_offset) : NULL;
  uint8_t *text = calloc((size_t)(a->length * WORD_MAX + 1), 1);
  for (int64_t r = 0; r < a->length; r++) {
    uint64_t word = hash_mix((uint64_t)(first + r)) % words;
    for (uint64_t c = 0; c < word % WORD_MAX; c++) text[used++] = (uint8_t)(c == 3 ? 0 : 'a' + word % 26);
    if (wide) wide_offset[a->offset + r + 1] = used;
    if (!wide) offset[a->offset + r + 1] = (int32_t)used;
  }
  a->buffers[1] = wide ? (void *)wide_offset : (void *)offset;
  a->buffers[2] = realloc(text, (size_t)used + 1);
}

static struct ArrowArray batch(int64_t first, int64_t rows) {
  struct ArrowArray a = batch_with(rows, COLUMNS);
  for (int c = 0; c < COLUMNS; c++) a.children[c] = column(rows, (first + c) % 9, c == KEY || c == STRING ? 3 : 2);
  int64_t *ts = values_of(a.children[TS], sizeof *ts);
  double *f = values_of(a.children[FLOAT], sizeof *f);
  int32_t *i32 = values_of(a.children[NARROW], sizeof *i32);
  struct ArrowArray *mask = a.children[MASK];
  uint8_t *bits = calloc((size_t)(mask->offset + rows + 7) / 8, 1);
  mask->buffers[1] = bits;
  for (int64_t r = 0; r < rows; r++) {
    ts[a.children[TS]->offset + r] = (first + r) / 5;
    f[a.children[FLOAT]->offset + r] = doubles[hash_mix((uint64_t)(first + r)) % 8];
    i32[a.children[NARROW]->offset + r] = narrow(first + r);
    if (masked(first + r)) bits[(mask->offset + r) / 8] |= (uint8_t)(1u << ((mask->offset + r) & 7));
  }
  put_words(a.children[KEY], first, false, 9);
  put_words(a.children[STRING], first, true, 1000);
  put_nulls(a.children[KEY], first, 1);
  put_nulls(a.children[FLOAT], first, 2);
  put_nulls(a.children[STRING], first, 3);
  return a;
}

/* ---- threads ---- */

typedef struct {
  ps_operator *op;
  int32_t input, inputs;
  int64_t tuples;
  ps_design design;
  atomic_bool done;
} actor;

_Noreturn static void fail(const char *what, int64_t at) {
  printf("%s: %lld\n", what, (long long)at);
  fflush(stdout);
  _Exit(1);
}

static void *feed(void *argument) {
  actor *f = argument;
  ps_fault fault;
  for (int64_t i = 0, rows; i < f->tuples; i += rows) {
    rows = 1 + (int64_t)(hash_mix((uint64_t)(i + f->input)) % BATCH_MAX);
    if (rows > f->tuples - i) rows = f->tuples - i;
    struct ArrowArray a = batch(i, rows);
    ps_code code;
    while ((code = ps_operator_add(f->op, f->input, 0, &a, &fault)) == PS_FULL) {
      ps_operator_wait_space(f->op, f->input, rows, 10);
    }
    ps_arrow_release(&a);
    if (code != PS_OK) fail("add", code);
  }
  ps_operator_close(f->op, f->input);
  return NULL;
}

/* What all rows say of tuples, of masked tuples, and of the narrow integers. */
typedef struct {
  int64_t n, some, sum;
} totals;

static totals add_up(const struct ArrowArray *rows, totals t) {
  const int64_t *n = rows->children[2]->buffers[1], *some = rows->children[3]->buffers[1];
  const int64_t *sum = rows->children[4]->buffers[1];
  for (int64_t i = 0; i < rows->length; i++) t = (totals){t.n + n[i], t.some + some[i], t.sum + sum[i]};
  return t;
}

static totals read_all(ps_operator *op) {
  totals t = {0};
  for (;;) {
    struct ArrowArray rows = {0}, journal = {0};
    ps_fault fault;
    ps_code code = ps_operator_take(op, 10, &rows, &journal, &fault);
    if (code == PS_END) return t;
    if (code == PS_EMPTY) continue;
    if (code != PS_OK) fail("take", code);
    t = add_up(&rows, t);
    ps_arrow_release(&rows);
    ps_arrow_release(&journal);
  }
}

/* In short waits, as Python does; false: the operator has ended. */
static bool pause_all(ps_operator *op) {
  ps_code code = PS_EMPTY;
  while (code == PS_EMPTY) code = ps_operator_pause(op, 1);
  return code == PS_OK;
}

/* The operator of the next design, with these windows and slices, run to its end; how many tuples were in them. */
static int64_t restored(const actor *run, const struct ArrowArray *windows, const struct ArrowArray *slices,
                        int64_t start_next) {
  ps_design next = (ps_design)((run->design + 1) % PS_DESIGNS);
  ps_query query = query_for(run->design, next);
  ps_operator *op;
  ps_fault fault;
  if (ps_operator_new(&query, run->inputs, next, 2, 0, 1000, &op) != PS_OK) fail("new", next);
  if (!pause_all(op)) fail("pause", next);
  ps_code code = ps_operator_load_windows(op, windows, slices, start_next, &fault);
  if (code != PS_OK) fail("load", code);
  ps_operator_resume(op);
  for (int32_t i = 0; i < run->inputs; i++) ps_operator_close(op, i);
  int64_t tuples = read_all(op).n;
  ps_operator_free(op);
  return tuples;
}

static void save_once(const actor *run) {
  struct ArrowArray windows = {0}, slices = {0};
  int64_t start_next, pending = 0;
  ps_stats stats;
  ps_operator_stats(run->op, &stats);
  if (ps_operator_save_windows(run->op, &windows) != PS_OK) fail("save", 0);
  if (ps_operator_save_slices(run->op, &slices, &start_next) != PS_OK) fail("save", 1);
  for (int32_t i = 0; i < run->inputs; i++) {
    struct ArrowArray out = {0};
    if (ps_operator_save_pending(run->op, i, &out) != PS_OK) fail("save", 2);
    pending += out.length;
    ps_arrow_release(&out);
  }
  ps_operator_resume(run->op);
  int64_t tuples = restored(run, &windows, &slices, start_next);
  if (tuples > stats.tuples_in - pending) fail("more tuples in windows than were added", tuples);
  ps_arrow_release(&windows);
  ps_arrow_release(&slices);
}

static void *save(void *argument) {
  actor *run = argument;
  while (!atomic_load(&run->done) && pause_all(run->op)) save_once(run);
  return NULL;
}

static void round_once(ps_design design, int32_t threads, int32_t inputs, int64_t tuples) {
  ps_query query = query_for(design, (ps_design)((design + 1) % PS_DESIGNS));
  ps_operator *op;
  if (ps_operator_new(&query, inputs, design, threads, 0, 64, &op) != PS_OK) fail("new", design);
  pthread_t *thread = calloc((size_t)inputs + 1, sizeof *thread);
  actor *actors = calloc((size_t)inputs + 1, sizeof *actors);
  for (int32_t i = 0; i <= inputs; i++) {
    actors[i] = (actor){.op = op, .input = i, .inputs = inputs, .tuples = tuples, .design = design};
    pthread_create(&thread[i], NULL, i < inputs ? feed : save, &actors[i]);
  }
  totals got = read_all(op), expected = {0};
  atomic_store(&actors[inputs].done, true);
  for (int32_t i = 0; i <= inputs; i++) pthread_join(thread[i], NULL);
  ps_operator_free(op);
  for (int64_t i = 0; i < tuples; i++) {
    expected = (totals){expected.n + 1, expected.some + masked(i), expected.sum + narrow(i)};
  }
  if (got.n != inputs * expected.n) fail("tuples", got.n);
  if (got.some != inputs * expected.some) fail("masked tuples", got.some);
  if (got.sum != inputs * expected.sum) fail("sum", got.sum);
  free(thread);
  free(actors);
}

int main(int argc, char **argv) {
  if (argc != 6) return 2;
  int rounds = atoi(argv[5]);
  for (int i = 0; i < rounds; i++) round_once((ps_design)atoi(argv[1]), atoi(argv[2]), atoi(argv[3]), atoll(argv[4]));
  if (ps_memory_live() != 0) fail("allocations left", ps_memory_live());
  printf("%d rounds of %s x %s tuples\n", rounds, argv[3], argv[4]);
  return 0;
}
