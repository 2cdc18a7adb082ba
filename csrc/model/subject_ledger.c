/* subject_ledger.c - the ledger of one input, under the model. */
#include "model/subject.h"

#include "operator/ledger.h"

enum { PUT, WAIT, PASS, READY, HELD };

static const char *const operations[] = {[PUT] = "put(rows)", [WAIT] = "wait(rows)",
                                         [PASS] = "pass(n)",  [READY] = "ready(ts)", /* timestamps are 1, 2, 3, ... */
                                         [HELD] = "held()",   NULL};

typedef struct {
  ledger ledger;
  batch *open;    /* adder: the open batch; NULL: none */
  int64_t put;    /* adder: rows so far */
  cell added;     /* published to the passer */
  int64_t passed; /* used by the passer */
} gathering;

/* Parameter: held_max. */
static void *create(const int64_t *parameter) {
  gathering *g = memory_new(sizeof *g);
  cell_init(&g->added, 0);
  return ledger_init(&g->ledger, parameter[0]) ? g : NULL;
}

static void free_all(batch *b) {
  while (b) {
    batch *next = b->next;
    memory_free(b);
    b = next;
  }
}

enum { ROOM = 2, MOST = 8 }; /* rows of an open batch when it is full, and rows that fit into its memory */

static batch *batch_of_times(void) {
  batch *b = memory_new(sizeof *b + sizeof(column) + MOST * sizeof(int64_t));
  if (!b) return NULL;
  b->room = ROOM;
  b->columns[0] = (column){.type = PS_I64, .values = &b->columns[1]};
  return b;
}

/* Writes the timestamps of the next rows. */
static void write_times(gathering *g, batch *b, int64_t rows) {
  int64_t *ts = (int64_t *)(void *)&b->columns[1] + b->rows;
  for (int64_t i = 0; i < rows; i++) {
    WRITES(ts[i]);
    ts[i] = ++g->put;
  }
}

static ps_code put_new(gathering *g, int64_t rows) {
  batch *b = batch_of_times();
  if (!b) return PS_NO_MEMORY;
  write_times(g, b, rows);
  b->rows = rows;
  g->open = rows < ROOM ? b : NULL; /* once it is full it may be freed */
  ledger_put(&g->ledger, b);
  return PS_OK;
}

/* Adds to the open batch, if that has room. */
static ps_code put_some(gathering *g, int64_t rows) {
  batch *open = g->open;
  if (open) READS(open->rows); /* the adder's own, but the passer may have freed it (ledger.h) */
  if (!open || rows > ROOM - open->rows) return put_new(g, rows);
  if (rows == ROOM - open->rows) g->open = NULL;
  write_times(g, open, rows);
  ledger_extend(&g->ledger, open, rows);
  return PS_OK;
}

/* As an input does: adds only what fits, then publishes it. */
static ps_code put(gathering *g, int64_t rows) {
  assert(rows <= MOST);
  if (!ledger_fits(&g->ledger, rows)) return PS_FULL;
  ps_code code = put_some(g, rows);
  if (code != PS_OK) return code;
  AT(add_promise);
  merged_publish(&g->added, (uint64_t)g->put);
  return PS_OK;
}

/* How many tuples the passer knows of and has not passed, as in the output thread. */
static int64_t heard(gathering *g) {
  AT(output_look);
  return (int64_t)merged_read(&g->added) - g->passed;
}

static int64_t pass(gathering *g, int64_t n) {
  int64_t left = heard(g);
  if (n > left) n = left;
  free_all(ledger_pass(&g->ledger, n));
  g->passed += n;
  return n;
}

static int64_t ready(gathering *g, int64_t ts) {
  int64_t left = heard(g), n = ledger_ready(&g->ledger, ts);
  return n < left ? n : left;
}

/* PS_EMPTY: there is room, but the waiter was not woken in time. */
static ps_code wait_for(ledger *l, int64_t rows) {
  ps_code code = ledger_wait(l, rows, 1);
  return code == PS_OK && model_late() ? PS_EMPTY : code;
}

static void call(void *object, int32_t operation, const int64_t *a, model_answer *answer) {
  ledger *l = &((gathering *)object)->ledger;
  switch (operation) {
    case PUT: answer_with(answer, put(object, a[0])); break;
    case WAIT: answer_with(answer, wait_for(l, a[0])); break;
    case PASS: answer_with(answer, pass(object, a[0])); break;
    case READY: answer_with(answer, ready(object, a[0])); break;
    default: answer_with(answer, ledger_held(l));
  }
}

static void destroy(void *object) {
  free_all(ledger_free(&((gathering *)object)->ledger));
  memory_free(object);
}

extern const subject ledger_subject;
const subject ledger_subject = {"ledger", operations, create, call, destroy};
