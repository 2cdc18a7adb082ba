/* output.c - see output.h. */
#include "columns/output.h"

#include "base/memory.h"

bool out_rows_init(out_rows *rows, int32_t columns, const bool *is_bytes) {
  *rows = (out_rows){.columns = columns, .column = memory_new((size_t)columns * sizeof(out_column))};
  if (!rows->column) return false;
  for (int32_t i = 0; i < columns; i++) rows->column[i].is_bytes = is_bytes && is_bytes[i];
  return true;
}

bool out_rows_init_types(out_rows *rows, int32_t numbers, int32_t n, const ps_type *types) {
  if (!out_rows_init(rows, numbers + n, NULL)) return false;
  for (int32_t i = 0; i < n; i++) rows->column[numbers + i].is_bytes = type_is_bytes(types[i]);
  return true;
}

static size_t values_bytes(const out_column *c) { return (size_t)c->values_capacity * sizeof(uint64_t); }

static void out_column_free(out_column *c) {
  memory_free(c->validity);
  memory_free_large(c->values, values_bytes(c));
  memory_free(c->data);
}

void out_rows_free(out_rows *rows) {
  if (!rows->column) return;
  for (int32_t i = 0; i < rows->columns; i++) out_column_free(&rows->column[i]);
  memory_free(rows->column);
}

/* ---- writing ---- */

/* Extends the bitmap to `rows` rows, all valid. The bits may be stale from rows that were dropped. */
static void cover_valid(out_column *c, int64_t rows) {
  int64_t row = c->covered;
  for (; row < rows && row % 8; row++) c->validity[row / 8] |= (uint8_t)(1u << (row & 7));
  if (row < rows) memset(c->validity + row / 8, 0xff, (size_t)((rows - row + 7) / 8));
  c->covered = rows;
}

static void put_valid(out_column *c, int64_t row) {
  if (c->covered > row) c->covered = row;
}

static bool put_invalid(out_column *c, int64_t row) {
  if (!memory_grow((void **)&c->validity, &c->validity_capacity, row / 8 + 1, 1)) return false;
  put_valid(c, row);
  cover_valid(c, row + 1);
  c->validity[row / 8] &= (uint8_t)~(1u << (row & 7));
  return true;
}

static bool grow_values(out_column *c, int64_t n) {
  if (!c->values && n < c->values_expected) n = c->values_expected;
  return memory_grow_large(&c->values, &c->values_capacity, n, sizeof(uint64_t));
}

bool out_put_bits(out_rows *rows, int32_t to, uint64_t bits) {
  out_column *c = &rows->column[to];
  if (!grow_values(c, rows->rows + 1)) return false;
  put_valid(c, rows->rows);
  ((uint64_t *)c->values)[rows->rows] = bits;
  return true;
}

/* The start of the row's string is the end of the row before, so unfinished rows leave no trace. */
static int64_t string_start(const out_column *c, int64_t row) { return row ? ((const int64_t *)c->values)[row] : 0; }

uint8_t *out_put_space_at(out_rows *rows, int32_t to, int64_t at, int64_t length) {
  out_column *c = &rows->column[to];
  int64_t row = rows->rows + at, start = string_start(c, row);
  if (!grow_values(c, row + 2)) return NULL;
  if (!memory_grow((void **)&c->data, &c->data_capacity, start + length + 1, 1)) return NULL;
  put_valid(c, row);
  ((int64_t *)c->values)[row] = start;
  ((int64_t *)c->values)[row + 1] = start + length;
  return c->data + start;
}

uint8_t *out_put_space(out_rows *rows, int32_t to, int64_t length) { return out_put_space_at(rows, to, 0, length); }

bool out_put_bytes(out_rows *rows, int32_t to, const uint8_t *data, int64_t length) {
  uint8_t *space = out_put_space(rows, to, length);
  if (space && length) memcpy(space, data, (size_t)length);
  return space != NULL;
}

bool out_put_null(out_rows *rows, int32_t to) {
  out_column *c = &rows->column[to];
  bool ok = c->is_bytes ? out_put_space(rows, to, 0) != NULL : out_put_bits(rows, to, 0);
  return ok && put_invalid(c, rows->rows);
}

uint64_t *out_reserve(out_rows *rows, int32_t to, int64_t n) {
  out_column *c = &rows->column[to];
  if (!grow_values(c, rows->rows + n)) return NULL;
  put_valid(c, rows->rows);
  return (uint64_t *)c->values + rows->rows;
}

bool out_put_null_at(out_rows *rows, int32_t to, int64_t row) {
  return put_invalid(&rows->column[to], rows->rows + row);
}

/* ---- export ---- */

/* A struct's only buffer is its absent bitmap, a column has no children: one function frees both. private_data of a
   column is the size of its values in bytes. */
static void release_array(struct ArrowArray *a) {
  for (int64_t i = 0; i < a->n_children; i++) {
    if (!a->children[i]) continue;
    ps_arrow_release(a->children[i]);
    memory_free(a->children[i]);
  }
  for (int64_t i = 0; i < a->n_buffers; i++) {
    memory_free_large((void *)(uintptr_t)a->buffers[i], i == 1 ? (size_t)(uintptr_t)a->private_data : 0);
  }
  memory_free(a->children);
  memory_free(a->buffers);
  a->release = NULL;
}

/* An array with this many buffers and children, all empty. */
static bool shell(struct ArrowArray *a, int64_t rows, int64_t buffers, int64_t children) {
  *a = (struct ArrowArray){.length = rows, .n_buffers = buffers, .n_children = children};
  a->buffers = memory_new((size_t)buffers * sizeof *a->buffers);
  a->children = memory_new((size_t)children * sizeof *a->children);
  if (!a->buffers || !a->children) {
    memory_free(a->buffers);
    memory_free(a->children);
    return false;
  }
  a->release = release_array;
  return true;
}

/* Arrow needs one offset even for no strings, and a bitmap, if any, for all rows. */
static bool column_shell(out_column *c, int64_t rows, struct ArrowArray *to) {
  if (c->validity && !memory_grow((void **)&c->validity, &c->validity_capacity, rows / 8 + 1, 1)) return false;
  if (!shell(to, rows, c->is_bytes ? 3 : 2, 0)) return false;
  if (!c->is_bytes || c->values) return true;
  to->buffers[1] = memory_new(sizeof(int64_t));
  return to->buffers[1] != NULL;
}

static bool fill_shell(out_rows *rows, struct ArrowArray *to) {
  for (int32_t i = 0; i < rows->columns; i++) {
    to->children[i] = memory_new(sizeof(struct ArrowArray));
    if (!to->children[i] || !column_shell(&rows->column[i], rows->rows, to->children[i])) return false;
  }
  return true;
}

bool out_rows_shell(out_rows *rows, struct ArrowArray *to) {
  if (!shell(to, rows->rows, 1, rows->columns)) return false;
  if (fill_shell(rows, to)) return true;
  ps_arrow_release(to);
  return false;
}

static int64_t count_nulls(const uint8_t *validity, int64_t rows) {
  int64_t valid = 0, i = 0;
  for (; i + 64 <= rows; i += 64) {
    uint64_t word;
    memcpy(&word, validity + i / 8, sizeof word);
    valid += __builtin_popcountll(word);
  }
  for (; i < rows; i++) valid += bitmap_get(validity, i);
  return rows - valid;
}

/* Copies the values of a large array that is mostly empty, to free it; keeps it when out of memory. For smaller ones
   the new pages of a copy would cost more than they save. */
static void trim_values(out_column *c, int64_t n) {
  size_t used = (size_t)n * sizeof(uint64_t), held = values_bytes(c);
  if (held < MEMORY_LARGE || used > held / 4) return;
  void *smaller = memory_resize(NULL, used);
  if (!smaller) return;
  memcpy(smaller, c->values, used);
  memory_free_large(c->values, held);
  c->values = smaller;
  c->values_capacity = 0; /* not a large block any more */
}

/* release_array will free these on behalf of the receiver: they leave the account. */
static void leave(const struct ArrowArray *a) {
  for (int64_t i = 0; i < a->n_buffers; i++) {
    memory_leave(a->buffers[i], i == 1 ? (size_t)(uintptr_t)a->private_data : 0);
  }
  memory_leave(a->children, 0);
  memory_leave(a->buffers, 0);
}

void out_rows_move(out_rows *rows, struct ArrowArray *to) {
  for (int32_t i = 0; i < rows->columns; i++) {
    out_column *c = &rows->column[i];
    struct ArrowArray *child = to->children[i];
    if (c->validity) {
      put_valid(c, rows->rows);
      cover_valid(c, rows->rows);
      child->null_count = count_nulls(c->validity, rows->rows);
    }
    trim_values(c, rows->rows + c->is_bytes);
    child->buffers[0] = c->validity;
    if (c->values) child->buffers[1] = c->values;
    child->private_data = (void *)(uintptr_t)values_bytes(c);
    if (c->is_bytes) child->buffers[2] = c->data;
    *c = (out_column){.is_bytes = c->is_bytes, .values_expected = rows->rows};
    leave(child);
    memory_leave(child, 0);
  }
  rows->rows = 0;
  leave(to);
}
