/* subject_ledger.c - the ledger of one input under the model. */
#include "subject.h"

#include "ledger.h"

enum { PUT, WAIT, PASS, HELD };

static const char *const operations[] = {
    [PUT] = "put(rows)", [WAIT] = "wait(rows)", [PASS] = "pass(n)", [HELD] = "held()", NULL};

typedef struct {
  ledger ledger;
  batch *open; /* the adder's: it gathers rows; NULL: there is none */
} gathering;

/* Parameter: held_max. */
static void *create(const int64_t *parameter) {
  gathering *g = memory_new(sizeof *g);
  return ledger_init(&g->ledger, parameter[0]) ? g : NULL;
}

static void free_all(batch *b) {
  while (b) {
    batch *next = b->next;
    memory_free(b);
    b = next;
  }
}

#define ROOM 2 /* rows that a batch gathers */

static ps_code put_new(gathering *g, int64_t rows) {
  batch *b = memory_new(sizeof *b);
  if (!b) return PS_NO_MEMORY;
  b->rows = rows;
  b->room = ROOM;
  g->open = rows < ROOM ? b : NULL; /* once it is full it may go */
  ledger_put(&g->ledger, b);
  return PS_OK;
}

/* As an input does: only what fits; in the batch that is open, if that has room. */
static ps_code put(gathering *g, int64_t rows) {
  if (!ledger_fits(&g->ledger, rows)) return PS_FULL;
  if (!g->open || rows > ROOM - g->open->rows) return put_new(g, rows);
  if (rows == ROOM - g->open->rows) g->open = NULL;
  ledger_extend(&g->ledger, rows, 0);
  return PS_OK;
}

/* At most as many as there are. */
static int64_t pass(ledger *l, int64_t n) {
  int64_t held = ledger_held(l);
  if (n > held) n = held;
  free_all(ledger_pass(l, n));
  return n;
}

/* PS_EMPTY: there is room, but nobody said so in time. */
static ps_code wait_for(ledger *l, int64_t rows) {
  ps_code code = ledger_wait(l, rows, 1);
  return code == PS_OK && model_late() ? PS_EMPTY : code;
}

static void call(void *object, int32_t operation, const int64_t *a, model_answer *answer) {
  ledger *l = &((gathering *)object)->ledger;
  switch (operation) {
    case PUT: answer_with(answer, put(object, a[0])); break;
    case WAIT: answer_with(answer, wait_for(l, a[0])); break;
    case PASS: answer_with(answer, pass(l, a[0])); break;
    default: answer_with(answer, ledger_held(l));
  }
}

static void destroy(void *object) {
  free_all(ledger_free(&((gathering *)object)->ledger));
  memory_free(object);
}

extern const subject ledger_subject;
const subject ledger_subject = {"ledger", operations, create, call, destroy};
