/* fuzz.c - see fuzz.h. */
#include "fuzz.h"

#include "base/value.h"

#include <stdio.h>
#include <stdlib.h>

void claim_failed(const char *truth, const char *file, int line) {
  fprintf(stderr, "%s:%d: not true: %s\n", file, line, truth);
  abort();
}

static void *allocate(size_t bytes) {
  void *block = malloc(bytes);
  CLAIM(block);
  return block;
}

/* ---- drawing ---- */

uint8_t draw_byte(draw *d) {
  if (d->left == 0) return 0;
  d->left--;
  return *d->at++;
}

int64_t draw_below(draw *d, int64_t n) { return draw_byte(d) % n; }

static const uint64_t borders[] = {0,
                                   UINT64_MAX,
                                   INT64_MAX,
                                   VALUE_SIGN,
                                   UINT32_MAX,
                                   UINT64_C(1) << 32,
                                   UINT64_C(1) << 62,
                                   INT8_MAX,
                                   INT16_MAX,
                                   INT32_MAX,
                                   (uint64_t)INT8_MIN,
                                   (uint64_t)INT32_MIN,
                                   VALUE_NAN,
                                   UINT64_C(0x7ff0000000000000),  /* inf */
                                   UINT64_C(0xfff0000000000000),  /* -inf */
                                   UINT64_C(0x7fefffffffffffff),  /* the largest double */
                                   UINT64_C(0x42b0000000000000),  /* 2^44 */
                                   UINT64_C(0xc2b0000000000000),  /* -2^44 */
                                   UINT64_C(0x3ff0000000000000)}; /* 1.0 */

uint64_t draw_word(draw *d) {
  uint8_t form = draw_byte(d);
  if (form < 160) return form % 16;
  if (form < 192) return 0 - (uint64_t)(form % 16);
  if (form < 240) {
    size_t which = draw_byte(d) % (sizeof borders / sizeof *borders);
    return borders[which] + (uint64_t)(form % 3) - 1;
  }
  uint64_t word = 0;
  for (int i = 0; i < 8; i++) word = word << 8 | draw_byte(d);
  return word;
}

/* A word as a column of the type can have it. */
static uint64_t fit(uint64_t word, ps_type type) {
  switch (type) {
    case PS_BOOL: return word & 1;
    case PS_I8: return (uint64_t)(int64_t)(int8_t)word;
    case PS_I16: return (uint64_t)(int64_t)(int16_t)word;
    case PS_I32: return (uint64_t)(int64_t)(int32_t)word;
    case PS_U8: return (uint8_t)word;
    case PS_U16: return (uint16_t)word;
    case PS_U32: return (uint32_t)word;
    case PS_F32: return double_bits((double)(float)bits_double(word));
    default: return word;
  }
}

field draw_field(draw *d, ps_type type, bool nulls) {
  field c = {0};
  if (nulls && draw_below(d, 8) == 0) {
    c.null = true;
    return c;
  }
  if (!type_is_bytes(type)) {
    c.word = fit(draw_word(d), type);
    return c;
  }
  uint8_t text[32];
  int64_t length = draw_below(d, 4);
  if (length == 3) length = draw_below(d, sizeof text); /* usually short: many are equal then */
  for (int64_t i = 0; i < length; i++) text[i] = draw_byte(d);
  field_set(&c, text, length);
  return c;
}

/* ---- tables ---- */

table table_new(int64_t rows, int32_t columns) {
  table t = {rows, columns, calloc((size_t)(rows * columns + 1), sizeof(field))};
  CLAIM(t.fields);
  return t;
}

void table_free(table *t) {
  for (int64_t i = 0; i < t->rows * t->columns; i++) free(t->fields[i].data);
  free(t->fields);
  *t = (table){0};
}

field *table_at(const table *t, int64_t row, int32_t column) { return &t->fields[row * t->columns + column]; }

void field_set(field *c, const uint8_t *data, int64_t length) {
  uint8_t *own = allocate((size_t)length + 1);
  if (length) memcpy(own, data, (size_t)length);
  free(c->data);
  *c = (field){.data = own, .length = length};
}

static void table_resize(table *t, int64_t rows, int32_t columns) {
  t->columns = columns;
  t->fields = realloc(t->fields, (size_t)(rows * columns + 1) * sizeof *t->fields);
  CLAIM(t->fields);
  if (rows > t->rows) memset(table_at(t, t->rows, 0), 0, (size_t)((rows - t->rows) * columns) * sizeof *t->fields);
  t->rows = rows;
}

static void take_field(field *to, const struct ArrowArray *from, int64_t row) {
  const uint8_t *validity = from->buffers[0];
  to->null = from->null_count != 0 && validity && !(validity[row / 8] >> (row % 8) & 1);
  if (to->null) return;
  const uint64_t *words = from->buffers[1];
  if (from->n_buffers == 2) {
    to->word = words[row];
    return;
  }
  field_set(to, (const uint8_t *)from->buffers[2] + words[row], (int64_t)(words[row + 1] - words[row]));
}

void table_take(table *t, struct ArrowArray *wide) {
  int64_t before = t->rows;
  CLAIM(!t->fields || t->columns == wide->n_children);
  table_resize(t, before + wide->length, (int32_t)wide->n_children);
  for (int32_t c = 0; c < t->columns; c++) {
    for (int64_t row = 0; row < wide->length; row++) take_field(table_at(t, before + row, c), wide->children[c], row);
  }
  ps_arrow_release(wide);
}

static int field_order(const field *a, const field *b) {
  if (a->null != b->null) return a->null ? 1 : -1;
  if (a->null) return 0;
  if (a->word != b->word) return a->word < b->word ? -1 : 1;
  if (a->length != b->length) return a->length < b->length ? -1 : 1;
  return a->length ? memcmp(a->data, b->data, (size_t)a->length) : 0;
}

bool table_equal(const table *a, const table *b) {
  if (a->rows != b->rows) return false;
  for (int64_t i = 0; i < a->rows * a->columns; i++) {
    if (field_order(&a->fields[i], &b->fields[i]) != 0) return false;
  }
  return true;
}

static void swap_rows(table *t, int64_t a, int64_t b) {
  for (int32_t c = 0; c < t->columns; c++) {
    field kept = *table_at(t, a, c);
    *table_at(t, a, c) = *table_at(t, b, c);
    *table_at(t, b, c) = kept;
  }
}

static int row_order(const table *t, int64_t a, int64_t b) {
  int order = 0;
  for (int32_t c = 0; c < t->columns && order == 0; c++) order = field_order(table_at(t, a, c), table_at(t, b, c));
  return order;
}

void table_sort(table *t) {
  for (int64_t i = 1; i < t->rows; i++) {
    for (int64_t j = i; j > 0 && row_order(t, j, j - 1) < 0; j--) swap_rows(t, j, j - 1);
  }
}

/* ---- changing them ---- */

/* Other bytes within the string, or another length. */
static void edit_string(draw *d, field *c) {
  int64_t at = draw_byte(d) | draw_byte(d) << 8, count = 1 + draw_below(d, 8);
  if (draw_below(d, 4) == 0) {
    int64_t length = at % (c->length + 9);
    uint8_t *longer = calloc((size_t)length + 1, 1);
    CLAIM(longer);
    if (c->length) memcpy(longer, c->data, (size_t)(length < c->length ? length : c->length));
    free(c->data);
    c->data = longer;
    c->length = length;
  }
  uint64_t word = draw_word(d);
  for (int64_t i = 0; i < count && c->length; i++) c->data[(at + i) % c->length] = (uint8_t)(word >> (8 * (i % 8)));
}

static void copy_row(table *t, int64_t from) {
  int64_t to = t->rows;
  table_resize(t, to + 1, t->columns);
  for (int32_t i = 0; i < t->columns; i++) {
    const field *c = table_at(t, from, i);
    *table_at(t, to, i) = *c;
    table_at(t, to, i)->data = NULL;
    if (c->data) field_set(table_at(t, to, i), c->data, c->length);
  }
  for (int64_t row = to; row > from + 1; row--) swap_rows(t, row, row - 1);
}

static void drop_row(table *t, int64_t row) {
  for (; row + 1 < t->rows; row++) swap_rows(t, row, row + 1);
  for (int32_t c = 0; c < t->columns; c++) free(table_at(t, row, c)->data);
  t->rows--;
}

static void edit_field(draw *d, field *c, ps_type type) {
  if (type_is_bytes(type)) {
    edit_string(d, c);
  } else {
    c->word = fit(draw_byte(d) % 2 ? c->word + draw_word(d) : draw_word(d), type);
  }
}

void table_edit(draw *d, table *t, const ps_type *types, int64_t most) {
  for (int64_t edits = draw_below(d, most + 1); edits > 0 && t->rows > 0; edits--) {
    int64_t row = draw_byte(d) % t->rows;
    int32_t column = (int32_t)draw_below(d, t->columns);
    switch (draw_below(d, 8)) {
      case 0: copy_row(t, row); break;
      case 1: drop_row(t, row); break;
      case 2: swap_rows(t, row, draw_byte(d) % t->rows); break;
      default: edit_field(d, table_at(t, row, column), types[column]); break;
    }
  }
}

/* ---- to Arrow ---- */

static void release(struct ArrowArray *a) {
  for (int64_t i = 0; i < a->n_children; i++) {
    ps_arrow_release(a->children[i]);
    free(a->children[i]);
  }
  for (int64_t i = 0; i < a->n_buffers; i++) free((void *)(uintptr_t)a->buffers[i]);
  free(a->children);
  free(a->buffers);
  a->release = NULL;
}

static struct ArrowArray array_new(int64_t rows, int64_t buffers, int64_t children) {
  struct ArrowArray a = {.length = rows, .n_buffers = buffers, .n_children = children, .release = release};
  a.buffers = calloc((size_t)buffers + 1, sizeof *a.buffers);
  a.children = calloc((size_t)children + 1, sizeof *a.children);
  CLAIM(a.buffers && a.children);
  return a;
}

static void write_value(uint8_t *to, ps_type type, int64_t i, uint64_t word) {
  float narrow = (float)bits_double(word);
  switch (type) {
    case PS_BOOL: to[i / 8] = (uint8_t)((to[i / 8] & ~(1u << (i & 7))) | (unsigned)(word & 1) << (i & 7)); break;
    case PS_I8:
    case PS_U8: to[i] = (uint8_t)word; break;
    case PS_I16:
    case PS_U16: memcpy(to + 2 * i, &(uint16_t){(uint16_t)word}, 2); break;
    case PS_I32:
    case PS_U32:
    case PS_BYTES32: memcpy(to + 4 * i, &(uint32_t){(uint32_t)word}, 4); break;
    case PS_F32: memcpy(to + 4 * i, &narrow, 4); break;
    default: memcpy(to + 8 * i, &word, 8); break;
  }
}

static size_t width_bits(ps_type type) {
  static const size_t bits[PS_TYPES] = {1, 8, 16, 32, 64, 8, 16, 32, 64, 32, 64, 32, 64};
  return bits[type];
}

/* A buffer of so many values, filled with rubbish. */
static uint8_t *rubbish(size_t bits) {
  uint8_t *block = allocate((bits + 7) / 8);
  memset(block, 0xa5, (bits + 7) / 8);
  return block;
}

static void fill_strings(struct ArrowArray *a, const table *t, int32_t column, ps_type type, int64_t slack) {
  uint64_t total = 0;
  for (int64_t row = 0; row < t->rows; row++) total += (uint64_t)table_at(t, row, column)->length;
  uint8_t *offsets = rubbish((size_t)(slack + t->rows + 1) * width_bits(type)), *data = rubbish(8 * total), *at = data;
  for (int64_t i = 0; i <= slack; i++) write_value(offsets, type, i, 0);
  for (int64_t row = 0; row < t->rows; row++) {
    const field *c = table_at(t, row, column);
    if (c->length) memcpy(at, c->data, (size_t)c->length);
    at += c->length;
    write_value(offsets, type, slack + row + 1, (uint64_t)(at - data));
  }
  a->buffers[1] = offsets;
  a->buffers[2] = data;
}

static void fill_numbers(struct ArrowArray *a, const table *t, int32_t column, ps_type type, int64_t slack) {
  uint8_t *values = rubbish((size_t)(slack + t->rows) * width_bits(type));
  for (int64_t row = 0; row < t->rows; row++) write_value(values, type, slack + row, table_at(t, row, column)->word);
  a->buffers[1] = values;
}

static void fill_nulls(struct ArrowArray *a, const table *t, int32_t column, int64_t slack) {
  for (int64_t row = 0; row < t->rows; row++) a->null_count += table_at(t, row, column)->null;
  if (a->null_count == 0) return;
  uint8_t *validity = rubbish((size_t)(slack + t->rows));
  for (int64_t row = 0; row < t->rows; row++) {
    write_value(validity, PS_BOOL, slack + row, !table_at(t, row, column)->null);
  }
  a->buffers[0] = validity;
}

struct ArrowArray table_arrow(const table *t, const ps_type *types, int64_t slack) {
  struct ArrowArray all = array_new(t->rows, 1, t->columns);
  for (int32_t i = 0; i < t->columns; i++) {
    bool strings = type_is_bytes(types[i]);
    struct ArrowArray *a = all.children[i] = allocate(sizeof *a);
    *a = array_new(t->rows, strings ? 3 : 2, 0);
    a->offset = slack;
    (strings ? fill_strings : fill_numbers)(a, t, i, types[i], slack);
    fill_nulls(a, t, i, slack);
  }
  return all;
}
