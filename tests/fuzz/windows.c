/* windows.c - fuzzes ps_operator_load_windows: the windows and slices of an operator, changed in places. */
#include "fuzz.h"

#include "columns/batch.h"

enum { INPUTS = 2 };

static const ps_type saved_types[] = {PS_I64, PS_BYTES64, PS_BYTES64, PS_I64};

/* What a snapshot has of windows. */
typedef struct {
  table windows, slices;
  int64_t start_next;
} saved;

static void saved_free(saved *s) {
  table_free(&s->windows);
  table_free(&s->slices);
}

/* Nothing of an operator that has ended: one of its sums was too large. */
static saved save(ps_operator *op) {
  saved s = {.windows = table_new(0, 4), .slices = table_new(0, 4)};
  struct ArrowArray out = {0};
  if (operator_pause(op) == PS_CLOSED) return s;
  CLAIM(ps_operator_save_windows(op, &out) == PS_OK);
  table_take(&s.windows, &out);
  CLAIM(ps_operator_save_slices(op, &out, &s.start_next) == PS_OK);
  table_take(&s.slices, &out);
  ps_operator_resume(op);
  table_sort(&s.windows);
  table_sort(&s.slices);
  return s;
}

static ps_code load(ps_operator *op, const saved *s, int64_t slack) {
  ps_fault fault = {0};
  struct ArrowArray windows = table_arrow(&s->windows, saved_types, slack);
  struct ArrowArray slices = table_arrow(&s->slices, saved_types, slack);
  CLAIM(operator_pause(op) == PS_OK);
  ps_code code = ps_operator_load_windows(op, &windows, &slices, s->start_next, &fault);
  ps_operator_resume(op);
  CLAIM(code == PS_OK || code == PS_CORRUPT);
  CLAIM(fault.row >= 0 && fault.row <= s->windows.rows + s->slices.rows);
  ps_arrow_release(&windows);
  ps_arrow_release(&slices);
  return code;
}

static ps_code add_rows(ps_operator *op, const shape *s, const table *rows, int32_t input) {
  ps_fault fault;
  struct ArrowArray batch = table_arrow(rows, s->types, 0);
  ps_code code = ps_operator_add(op, input, 0, &batch, &fault);
  ps_arrow_release(&batch);
  return code;
}

/* A snapshot of an operator that some rows have been added to. */
static saved draw_saved(draw *d, const shape *s, int64_t *ts) {
  int64_t position = 0, later = 0;
  ps_operator *op = shape_operator(s, draw_design(d, s), INPUTS, 1);
  table rows = draw_rows(d, s, 1 + draw_below(d, 8), 0, ts, &position);
  CLAIM(add_rows(op, s, &rows, 0) == PS_OK);
  ps_fault fault;
  CLAIM(ps_operator_heartbeat(op, 1, draw_below(d, 2) ? *ts : later, &fault) == PS_OK);
  saved all = save(op);
  ps_operator_free(op);
  table_free(&rows);
  return all;
}

/* Where all inputs stand: no slice is later, as Python has checked. */
static int64_t latest_of(const saved *s, int64_t ts) {
  for (int64_t row = 0; row < s->slices.rows; row++) {
    int64_t start = (int64_t)table_at(&s->slices, row, 0)->word;
    ts = start > ts ? start : ts;
  }
  return ts;
}

/* Goes on from there to the end, with a few rows more. Whatever comes after a sum that is too large is refused. */
static ps_code finish(ps_operator *op, const shape *s, const table *more, int64_t latest, table *out) {
  ps_fault fault;
  ps_code code = PS_OK;
  for (int32_t i = 0; code == PS_OK && i < INPUTS; i++) code = ps_operator_heartbeat(op, i, latest, &fault);
  if (code == PS_OK && more->rows) code = add_rows(op, s, more, 1);
  for (int32_t i = 0; code == PS_OK && i < INPUTS; i++) code = ps_operator_close(op, i);
  CLAIM(code == PS_OK || code == PS_CLOSED);
  ps_code end = operator_rows(op, out);
  CLAIM(end == PS_OVERFLOW || (end == PS_OK && code == PS_OK));
  return end;
}

/* What was accepted is saved as something that is accepted, means the same, and leads to the same rows. */
static void check_round_trip(const shape *s, ps_operator *op, const table *more, int64_t latest, ps_design design) {
  table rows = {0}, same = {0};
  saved first = save(op);
  ps_operator *other = shape_operator(s, design, INPUTS, 1);
  CLAIM(load(other, &first, 0) == PS_OK);
  saved again = save(other);
  CLAIM(first.start_next == again.start_next);
  CLAIM(table_equal(&first.windows, &again.windows) && table_equal(&first.slices, &again.slices));
  ps_code code = finish(op, s, more, latest, &rows);
  CLAIM(finish(other, s, more, latest, &same) == code);
  CLAIM(table_equal(&rows, &same));
  ps_operator_free(other);
  saved_free(&first);
  saved_free(&again);
  table_free(&rows);
  table_free(&same);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  draw d = {data, size};
  shape s;
  int64_t ts = 0, position = 100;
  draw_shape(&d, &s);
  saved all = draw_saved(&d, &s, &ts);
  table_edit(&d, &all.windows, saved_types, 4);
  table_edit(&d, &all.slices, saved_types, 4);
  if (draw_below(&d, 8) == 7) all.start_next = (int64_t)((uint64_t)all.start_next + draw_word(&d));
  ps_design design = draw_design(&d, &s);
  ps_operator *op = shape_operator(&s, design, INPUTS, 1);
  if (load(op, &all, draw_below(&d, 3)) == PS_OK) {
    int64_t latest = latest_of(&all, ts);
    ts = latest;
    table more = draw_rows(&d, &s, draw_below(&d, 3), 1, &ts, &position);
    check_round_trip(&s, op, &more, latest, design);
    table_free(&more);
  }
  ps_operator_free(op);
  saved_free(&all);
  CLAIM(ps_memory_live() == 0);
  return 0;
}
