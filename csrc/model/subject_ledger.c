/* subject_ledger.c - the ledger of one input under the model. */
#include "subject.h"

#include "ledger.h"

enum { PUT, WAIT, PASS, HELD };

static const char *const operations[] = {
    [PUT] = "put(rows)", [WAIT] = "wait(rows)", [PASS] = "pass(n)", [HELD] = "held()", NULL};

/* Parameter: held_max. */
static void *create(const int64_t *parameter) {
  ledger *l = memory_new(sizeof *l);
  return ledger_init(l, parameter[0]) ? l : NULL;
}

static void free_all(batch *b) {
  while (b) {
    batch *next = b->next;
    memory_free(b);
    b = next;
  }
}

/* As an input does: only what fits. */
static ps_code put(ledger *l, int64_t rows) {
  if (!ledger_fits(l, rows)) return PS_FULL;
  batch *b = memory_new(sizeof *b);
  if (!b) return PS_NO_MEMORY;
  b->rows = b->rows_left = rows;
  ledger_put(l, b);
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
  switch (operation) {
    case PUT: answer_with(answer, put(object, a[0])); break;
    case WAIT: answer_with(answer, wait_for(object, a[0])); break;
    case PASS: answer_with(answer, pass(object, a[0])); break;
    default: answer_with(answer, ledger_held(object));
  }
}

static void destroy(void *object) {
  free_all(ledger_free(object));
  memory_free(object);
}

extern const subject ledger_subject;
const subject ledger_subject = {"ledger", operations, create, call, destroy};
