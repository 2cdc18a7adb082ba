/* shape.c - queries drawn from the fuzzer's bytes, and their rows: see fuzz.h. */
#include "fuzz.h"

#include "base/value.h"
#include "partials/fold.h"

/* Several sizes and advances: divided by each other or not, overlapping or with gaps. */
static const int64_t windows[][2] = {
    {10, 4}, {10, 10}, {3, 7}, {1, 1}, {12, 4}, {7, 3}, {INT64_C(1) << 40, INT64_C(1) << 36}, {5, INT64_C(1) << 50}};

/* Functions that share the bytes of an older one: so inputs that were kept are still read as they were. */
static const ps_function newer[PS_FUNCTIONS] = {
    [PS_SUM] = PS_VAR, [PS_AVG] = PS_STD, [PS_MIN] = PS_ARG_MIN, [PS_MAX] = PS_ARG_MAX};
static const ps_function newest[PS_FUNCTIONS] = {
    [PS_SUM] = PS_COVAR, [PS_AVG] = PS_SLOPE, [PS_FIRST] = PS_INTERCEPT, [PS_LAST] = PS_CORR};

static bool is_ordered(ps_function f) { return f == PS_FIRST || f == PS_LAST || f == PS_ARG_MIN || f == PS_ARG_MAX; }

static bool takes_two(ps_function f) { return f >= PS_ARG_MIN && f <= PS_CORR; }

/* And those that take the bytes from SETS_FROM on. */
#define SETS_FROM 236
static const ps_function sets[] = {PS_N_UNIQUE, PS_QUANTILE, PS_APPROX_QUANTILE, PS_TOP_K, PS_BOTTOM_K, PS_HISTOGRAM};
static const uint64_t edges[] = {VALUE_SIGN - 3, VALUE_SIGN, VALUE_SIGN + (UINT64_C(1) << 40)};
static const ps_set options[] = {{0.3, PS_LINEAR, 6, 2, 4, 3, edges}, {1, PS_HIGHER, 0, 1, 5, 2, edges}};

static ps_aggregate draw_aggregate(draw *d, const shape *s, int32_t values) {
  uint8_t byte = draw_byte(d);
  ps_aggregate a = {.function = (ps_function)(byte % (PS_LAST + 1)), .column = -1, .mask = -1};
  if (byte >= 192 && newer[a.function]) a.function = newer[a.function];
  if (byte >= 224 && newest[byte % (PS_LAST + 1)]) a.function = newest[byte % (PS_LAST + 1)];
  if (byte >= SETS_FROM) a.function = sets[byte % 6];
  if (draw_below(d, 3) == 0) a.mask = s->mask;
  if (a.function == PS_COUNT) return a;
  a.column = 1 + (int32_t)draw_below(d, s->query.keys + values); /* keys may be values, too */
  if (!kernel_of(a.function, s->types[a.column], true)) a.function = PS_MAX;
  if (takes_two(a.function)) a.by = 1 + byte % s->mask; /* or the mask */
  if (a.by && type_is_bytes(s->types[a.by])) a.by = s->mask;
  if (byte >= SETS_FROM && a.function != PS_MAX) a.set = &options[byte % 4 / 2];
  if (a.function == PS_VAR || a.function == PS_STD || a.function == PS_COVAR) a.parameter = byte % 3;
  return a;
}

void draw_shape(draw *d, shape *s) {
  *s = (shape){0};
  int32_t keys = (int32_t)draw_below(d, SHAPE_KEYS + 1), values = 1 + (int32_t)draw_below(d, SHAPE_VALUES);
  size_t which = (size_t)draw_below(d, sizeof windows / sizeof *windows);
  s->mask = 1 + keys + values;
  s->stream = s->mask + 1;
  s->position = s->mask + 2;
  for (int32_t i = 0; i <= s->position; i++) s->types[i] = PS_I64;
  for (int32_t i = 1; i < s->mask; i++) s->types[i] = (ps_type)draw_below(d, PS_TYPES);
  s->types[s->mask] = PS_BOOL;
  s->query = (ps_query){.size = windows[which][0],
                        .advance = windows[which][1],
                        .columns = s->position + 1,
                        .column_types = s->types,
                        .keys = keys,
                        .aggregates = 1 + (int32_t)draw_below(d, SHAPE_AGGREGATES),
                        .aggregate = s->aggregate};
  for (int32_t i = 0; i < s->query.aggregates; i++) {
    s->aggregate[i] = draw_aggregate(d, s, values);
    s->ordered = s->ordered || is_ordered(s->aggregate[i].function);
  }
}

/* Steps in time: none, small ones, and now and then into another window of the largest. */
static int64_t draw_step(draw *d) {
  uint8_t step = draw_byte(d);
  if (step < 128) return step % 4;
  return step < 250 ? step % 32 : (int64_t)draw_byte(d) << 32;
}

table draw_rows(draw *d, const shape *s, int64_t rows, int64_t stream, int64_t *ts, int64_t *position) {
  table t = table_new(rows, s->query.columns);
  for (int64_t row = 0; row < rows; row++) {
    *ts += draw_step(d);
    table_at(&t, row, 0)->word = (uint64_t)*ts;
    for (int32_t c = 1; c < s->mask; c++) *table_at(&t, row, c) = draw_field(d, s->types[c], true);
    table_at(&t, row, s->mask)->word = draw_byte(d) & 1;
    table_at(&t, row, s->stream)->word = (uint64_t)stream;
    table_at(&t, row, s->position)->word = (uint64_t)(*position)++;
  }
  return t;
}

ps_fold *shape_fold(const shape *s) {
  ps_fold *f;
  CLAIM(ps_fold_new(&s->query, s->stream, s->position, 0, &f) == PS_OK);
  return f;
}

ps_code fold_windows(ps_fold *f, table *out) {
  ps_fault fault;
  struct ArrowArray rows = {0};
  ps_code code;
  while ((code = ps_fold_get_windows(f, UINT64_MAX, 3, &rows, &fault)) == PS_OK) table_take(out, &rows);
  return code == PS_END ? PS_OK : code;
}

ps_code fold_partials(ps_fold *f, table *out) {
  struct ArrowArray rows = {0};
  ps_code code;
  while ((code = ps_fold_get_partials(f, out->rows, 5, &rows)) == PS_OK) table_take(out, &rows);
  return code == PS_END ? PS_OK : code;
}

/* ---- operators ---- */

ps_design draw_design(draw *d, const shape *s) {
  ps_design design = (ps_design)draw_below(d, PS_DESIGNS);
  return s->ordered && design == PS_WIML ? PS_MQ : design; /* the one that keeps no order */
}

ps_operator *shape_operator(const shape *s, ps_design design, int32_t inputs, int32_t threads) {
  ps_operator *op;
  CLAIM(ps_operator_new(&s->query, inputs, design, threads, 0, 1 << 20, &op) == PS_OK);
  return op;
}

ps_code operator_rows(ps_operator *op, table *out) {
  for (;;) {
    struct ArrowArray rows = {0}, journal = {0};
    ps_fault fault;
    ps_code code = ps_operator_take(op, 1000, &rows, &journal, &fault);
    if (code == PS_OK) table_take(out, &rows);
    ps_arrow_release(&journal);
    if (code != PS_OK && code != PS_EMPTY) return code == PS_END ? PS_OK : code;
  }
}

ps_code operator_pause(ps_operator *op) {
  ps_code code = PS_EMPTY;
  while (code == PS_EMPTY) code = ps_operator_pause(op, 1000);
  return code;
}
