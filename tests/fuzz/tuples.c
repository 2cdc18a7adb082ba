/* tuples.c - fuzzes ps_operator_add and ps_fold_add_rows: Arrow columns of every type and layout. Two designs and a
   fold must agree on every row, and the operator must refuse what the order of time says, and nothing else. */
#include "fuzz.h"

enum { INPUTS_MAX = 3, STEPS_MAX = 8 };

/* What is done to an operator. */
typedef struct {
  enum { ADD, HEARTBEAT, CLOSE } what;
  int32_t input;
  int64_t ts, slack;
  table rows;
} step;

typedef struct {
  int32_t inputs, n;
  step steps[STEPS_MAX];
} program;

static program draw_program(draw *d, const shape *s) {
  program p = {.inputs = 1 + (int32_t)draw_below(d, INPUTS_MAX), .n = (int32_t)draw_below(d, STEPS_MAX + 1)};
  int64_t ts[INPUTS_MAX] = {0}, position[INPUTS_MAX] = {0};
  for (int32_t i = 0; i < p.n; i++) {
    step *one = &p.steps[i];
    uint8_t what = draw_byte(d);
    one->what = what < 200 ? ADD : what < 240 ? HEARTBEAT : CLOSE;
    one->input = what % p.inputs;
    one->slack = draw_below(d, 4);
    if (draw_below(d, 16) == 15) ts[one->input] -= draw_below(d, 8); /* back in time */
    if (one->what == HEARTBEAT) one->ts = ts[one->input] += draw_below(d, 16);
    if (one->what != ADD) continue;
    one->rows = draw_rows(d, s, draw_below(d, 6), one->input, &ts[one->input], &position[one->input]);
  }
  return p;
}

static void program_free(program *p) {
  for (int32_t i = 0; i < p->n; i++) table_free(&p->steps[i].rows);
}

/* What a plain reading of the contract says. */
static ps_code expected(const step *one, int64_t *latest, bool *closed) {
  if (one->what == CLOSE) {
    *closed = true;
    return PS_OK;
  }
  if (*closed) return PS_CLOSED;
  int64_t last = *latest;
  for (int64_t row = 0; row < one->rows.rows; row++) {
    int64_t ts = (int64_t)table_at(&one->rows, row, 0)->word;
    if (ts < last || ts < 0) return PS_DISORDER;
    last = ts;
  }
  if (one->what == HEARTBEAT && one->ts < 0) return PS_DISORDER;
  *latest = one->what == HEARTBEAT && one->ts > last ? one->ts : last; /* a promise that says less is none */
  return PS_OK;
}

static ps_code take_step(ps_operator *op, const shape *s, const step *one) {
  ps_fault fault;
  if (one->what == HEARTBEAT) return ps_operator_heartbeat(op, one->input, one->ts, &fault);
  if (one->what == CLOSE) return ps_operator_close(op, one->input);
  struct ArrowArray batch = table_arrow(&one->rows, s->types, one->slack);
  ps_code code = ps_operator_add(op, one->input, 0, &batch, &fault);
  CLAIM(code == PS_OK || batch.release); /* refused, it is still the caller's */
  ps_arrow_release(&batch);
  return code;
}

static bool is_over(ps_code code) { return code == PS_OVERFLOW; }

/* The rows of the program in a design. An operator that has failed may refuse any step after that. */
static ps_code run(const shape *s, const program *p, ps_design design, int32_t threads, table *out) {
  ps_operator *op = shape_operator(s, design, p->inputs, threads);
  int64_t latest[INPUTS_MAX] = {-1, -1, -1};
  bool closed[INPUTS_MAX] = {false}, failed = false;
  for (int32_t i = 0; i < p->n; i++) {
    const step *one = &p->steps[i];
    ps_code code = take_step(op, s, one), right = expected(one, &latest[one->input], &closed[one->input]);
    failed = failed || (code == PS_CLOSED && right != PS_CLOSED); /* whatever is wrong with the step */
    CLAIM(code == right || failed);
  }
  for (int32_t i = 0; i < p->inputs; i++) ps_operator_close(op, i);
  ps_code code = operator_rows(op, out);
  CLAIM(code == PS_OK || is_over(code));
  CLAIM(is_over(code) || !failed);
  ps_operator_free(op);
  return code;
}

/* The same by folding whatever was accepted. */
static ps_code run_fold(const shape *s, const program *p, table *out) {
  ps_fold *f = shape_fold(s);
  ps_fault fault;
  int64_t latest[INPUTS_MAX] = {-1, -1, -1};
  bool closed[INPUTS_MAX] = {false};
  for (int32_t i = 0; i < p->n; i++) {
    const step *one = &p->steps[i];
    ps_code right = expected(one, &latest[one->input], &closed[one->input]);
    if (right != PS_OK || one->what != ADD) continue;
    struct ArrowArray batch = table_arrow(&one->rows, s->types, one->slack);
    CLAIM(ps_fold_add_rows(f, &batch, &fault) == PS_OK);
    ps_arrow_release(&batch);
  }
  ps_code code = fold_windows(f, out);
  ps_fold_free(f);
  return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  draw d = {data, size};
  shape s;
  table first = {0}, second = {0}, folded = {0};
  draw_shape(&d, &s);
  ps_design one = draw_design(&d, &s), other = draw_design(&d, &s);
  int32_t threads = 1 + (int32_t)draw_below(&d, 3);
  program p = draw_program(&d, &s);
  ps_code code = run(&s, &p, one, one == PS_TUML_MC ? threads : 1, &first);
  if (other != one) {
    CLAIM(run(&s, &p, other, other == PS_TUML_MC ? threads : 1, &second) == code);
    CLAIM(table_equal(&first, &second));
  }
  CLAIM(run_fold(&s, &p, &folded) == code);
  CLAIM(table_equal(&first, &folded));
  table_free(&first);
  table_free(&second);
  table_free(&folded);
  program_free(&p);
  CLAIM(ps_memory_live() == 0);
  return 0;
}
