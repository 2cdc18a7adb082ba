/*
 * memory.c - fuzzes what happens when memory ends: after any number of allocations, in any call.
 *
 * The job is done once with memory enough, and once more without. A call that fails for want of memory and is made
 * again must then succeed, or say that the operator has ended. Whatever is read is right as far as it goes; a job that
 * ends well has the right result.
 */
#include "fuzz.h"

#include "partials/fold.h"

enum { BATCHES = 3 };

typedef struct {
  shape s;
  ps_design design;
  table rows[BATCHES];
  bool saves;
} job;

/* Memory is there again, and the call is made once more. */
#define AGAIN(code, call)          \
  do {                             \
    (code) = (call);               \
    if ((code) == PS_NO_MEMORY) {  \
      ps_memory_fail_after(0);     \
      (code) = (call);             \
    }                              \
    CLAIM((code) != PS_NO_MEMORY); \
  } while (0)

/* ---- an operator ---- */

static ps_code add(ps_operator *op, const job *j, const table *rows) {
  ps_fault fault;
  ps_code code;
  struct ArrowArray batch = table_arrow(rows, j->s.types, 0);
  AGAIN(code, ps_operator_add(op, 0, 0, &batch, &fault));
  ps_arrow_release(&batch);
  return code;
}

/* A snapshot, which changes nothing; and another operator that goes on from it. NULL: memory has ended there. */
static ps_operator *copy_of(ps_operator *op, const job *j) {
  struct ArrowArray windows = {0}, slices = {0}, pending = {0};
  ps_operator *other = NULL;
  ps_fault fault = {0};
  int64_t start_next;
  ps_code code;
  if (operator_pause(op) != PS_OK) return NULL;
  AGAIN(code, ps_operator_save_windows(op, &windows));
  AGAIN(code, ps_operator_save_slices(op, &slices, &start_next));
  AGAIN(code, ps_operator_save_pending(op, 0, &pending));
  ps_operator_resume(op);
  if (ps_operator_new(&j->s.query, 1, j->design, 1, 0, 1 << 20, &other) == PS_OK) {
    CLAIM(operator_pause(other) == PS_OK);
    code = ps_operator_load_windows(other, &windows, &slices, start_next, &fault);
    ps_operator_resume(other);
    CLAIM(code == PS_OK || code == PS_NO_MEMORY);
  }
  ps_arrow_release(&windows);
  ps_arrow_release(&slices);
  ps_arrow_release(&pending);
  return other;
}

/* The rows until the end, or until the operator has no memory itself. A take that has none is made again with it. */
static ps_code read_all(ps_operator *op, table *out) {
  ps_code code = operator_rows(op, out);
  if (code != PS_NO_MEMORY) return code;
  ps_memory_fail_after(0);
  return operator_rows(op, out);
}

static ps_code run_operator(const job *j, table *out) {
  ps_operator *op;
  ps_code code = PS_OK;
  AGAIN(code, ps_operator_new(&j->s.query, 1, j->design, 1, 0, 1 << 20, &op));
  for (int i = 0; code == PS_OK && i < BATCHES; i++) code = add(op, j, &j->rows[i]);
  if (j->saves) ps_operator_free(copy_of(op, j));
  if (code == PS_OK) AGAIN(code, ps_operator_close(op, 0));
  CLAIM(code == PS_OK || code == PS_CLOSED);
  code = read_all(op, out);
  ps_operator_free(op);
  return code;
}

/* ---- a fold ---- */

/* The keys and blocks of `f` into `g`. */
static ps_code move_packed(ps_fold *f, ps_fold *g) {
  uint16_t shards[256] = {0};
  uint32_t numbers[256];
  table keys = {0};
  struct ArrowArray array = {0};
  ps_pack *pack = NULL;
  const uint8_t *data;
  int64_t length;
  ps_fault fault;
  ps_code code = ps_fold_get_keys(f, &array);
  if (code != PS_OK) return code;
  table_take(&keys, &array);
  array = table_arrow(&keys, f->column_types, 0);
  code = ps_pack_new(f, shards, 1, 1, &pack);
  if (code == PS_OK) code = ps_pack_get(pack, 0, &data, &length);
  if (code == PS_OK) code = ps_fold_number_keys(g, &array, numbers);
  if (code == PS_OK) code = ps_fold_add_packed(g, numbers, keys.rows, data, length, 0, &fault);
  ps_pack_free(pack);
  ps_arrow_release(&array);
  table_free(&keys);
  return code;
}

static ps_code move_partials(ps_fold *f, ps_fold *g) {
  table partials = {0};
  ps_fault fault;
  ps_code code = fold_partials(f, &partials);
  if (code == PS_OK && partials.rows > 0) {
    struct ArrowArray batch = table_arrow(&partials, f->partial_types, 0);
    code = ps_fold_add_partials(g, &batch, 0, &fault);
    ps_arrow_release(&batch);
  }
  table_free(&partials);
  return code;
}

/* Rows are folded, moved to another fold, and its windows read. */
static ps_code run_fold(const job *j, table *out) {
  ps_fold *f = NULL, *g = NULL;
  ps_fault fault;
  ps_code code = ps_fold_new(&j->s.query, j->s.stream, j->s.position, 0, &f);
  if (code == PS_OK) code = ps_fold_new(&j->s.query, j->s.stream, j->s.position, 0, &g);
  for (int i = 0; code == PS_OK && i < BATCHES; i++) {
    struct ArrowArray batch = table_arrow(&j->rows[i], j->s.types, 0);
    code = ps_fold_add_rows(f, &batch, &fault);
    ps_arrow_release(&batch);
  }
  if (code == PS_OK && ps_fold_keys(f) > 0) code = (j->saves ? move_packed : move_partials)(f, g);
  if (code == PS_OK) code = fold_windows(g, out);
  ps_fold_free(f);
  ps_fold_free(g);
  return code;
}

/* ---- both ---- */

static bool is_prefix(const table *part, const table *whole) {
  if (part->rows > whole->rows) return false;
  table front = *whole;
  front.rows = part->rows;
  return table_equal(part, &front);
}

static void check(const job *j, int64_t after, ps_code (*run)(const job *, table *)) {
  table right = {0}, got = {0};
  ps_code wanted = run(j, &right);
  CLAIM(wanted == PS_OK || wanted == PS_OVERFLOW);
  ps_memory_fail_after(after);
  ps_code code = run(j, &got);
  ps_memory_fail_after(0);
  CLAIM(code == wanted || code == PS_NO_MEMORY || code == PS_CLOSED);
  CLAIM(is_prefix(&got, &right));
  if (code == wanted) CLAIM(table_equal(&got, &right));
  table_free(&right);
  table_free(&got);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  draw d = {data, size};
  job j = {0};
  int64_t ts = 0, position = 0, after = 1 + draw_byte(&d);
  if (after > 200) after += draw_byte(&d);
  bool folds = draw_below(&d, 2);
  draw_shape(&d, &j.s);
  j.design = draw_design(&d, &j.s);
  j.saves = draw_below(&d, 2);
  for (int i = 0; i < BATCHES; i++) j.rows[i] = draw_rows(&d, &j.s, draw_below(&d, 8), 0, &ts, &position);
  check(&j, after, folds ? run_fold : run_operator);
  for (int i = 0; i < BATCHES; i++) table_free(&j.rows[i]);
  CLAIM(ps_memory_live() == 0);
  return 0;
}
