/* partials.c - fuzzes ps_fold_add_partials: the partials of some rows, changed in places. */
#include "fuzz.h"

#include "partials/fold.h"

/* The partials of some rows of the query. */
static void make_partials(draw *d, const shape *s, table *out) {
  int64_t ts = 0, position = 0;
  ps_fault fault;
  ps_fold *f = shape_fold(s);
  table rows = draw_rows(d, s, draw_below(d, 12), 0, &ts, &position);
  struct ArrowArray batch = table_arrow(&rows, s->types, draw_below(d, 4));
  CLAIM(ps_fold_add_rows(f, &batch, &fault) == PS_OK);
  CLAIM(fold_partials(f, out) == PS_OK);
  ps_arrow_release(&batch);
  table_free(&rows);
  ps_fold_free(f);
}

/* What the fold holds means the same in another fold: its partials, and its windows. */
static void check_round_trip(const shape *s, ps_fold *f) {
  table partials = {0}, again = {0}, windows = {0}, same = {0};
  CLAIM(fold_partials(f, &partials) == PS_OK);
  CLAIM(partials.rows == ps_fold_entries(f));
  ps_fold *g = shape_fold(s);
  ps_fault fault;
  struct ArrowArray batch = table_arrow(&partials, f->partial_types, 1);
  CLAIM(ps_fold_add_partials(g, &batch, 0, &fault) == PS_OK);
  CLAIM(fold_partials(g, &again) == PS_OK);
  CLAIM(table_equal(&partials, &again));
  ps_code code = fold_windows(f, &windows);
  CLAIM(code == PS_OK || code == PS_OVERFLOW);
  CLAIM(fold_windows(g, &same) == code);
  CLAIM(table_equal(&windows, &same));
  ps_arrow_release(&batch);
  ps_fold_free(g);
  table_free(&partials);
  table_free(&again);
  table_free(&windows);
  table_free(&same);
}

/* A batch that is refused leaves the fold as it was. */
static ps_code add(draw *d, ps_fold *f, const table *partials) {
  table before = {0}, after = {0};
  ps_fault fault;
  struct ArrowArray batch = table_arrow(partials, f->partial_types, draw_below(d, 4));
  CLAIM(fold_partials(f, &before) == PS_OK);
  ps_code code = ps_fold_add_partials(f, &batch, 0, &fault);
  CLAIM(code == PS_OK || code == PS_CORRUPT || code == PS_TWICE);
  if (code == PS_CORRUPT) {
    CLAIM(fold_partials(f, &after) == PS_OK);
    CLAIM(table_equal(&before, &after));
  }
  if (code == PS_TWICE) CLAIM(ps_fold_add_partials(f, &batch, 0, &fault) == PS_CLOSED);
  ps_arrow_release(&batch);
  table_free(&before);
  table_free(&after);
  return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  draw d = {data, size};
  shape s;
  table partials = {0};
  ps_code code = PS_OK;
  draw_shape(&d, &s);
  make_partials(&d, &s, &partials);
  ps_fold *f = shape_fold(&s);
  for (int64_t times = draw_below(&d, 4); times > 0 && code != PS_TWICE && partials.rows > 0; times--) {
    table_edit(&d, &partials, f->partial_types, 6);
    code = add(&d, f, &partials);
  }
  if (code != PS_TWICE && ps_fold_entries(f) > 0) check_round_trip(&s, f);
  ps_fold_free(f);
  table_free(&partials);
  CLAIM(ps_memory_live() == 0);
  return 0;
}
