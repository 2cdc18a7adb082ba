/* batch.c - see batch.h. */
#include "columns/batch.h"

#include "base/memory.h"
#include "base/poison.h"

static column view(const struct ArrowArray *a, ps_type type) {
  column c = {.type = type, .first = a->offset};
  if (a->null_count != 0) c.validity = a->buffers[0];
  c.values = a->buffers[type_is_bytes(type) ? 2 : 1];
  if (type_is_bytes(type)) c.offsets = a->buffers[1];
  return c;
}

static int64_t offset_at(const column *c, int64_t i) {
  return c->type == PS_BYTES32 ? ((const int32_t *)c->offsets)[i] : ((const int64_t *)c->offsets)[i];
}

int64_t type_bits(ps_type type) {
  static const int64_t bits[PS_TYPES] = {1, 8, 16, 32, 64, 8, 16, 32, 64, 32, 64, 32, 64};
  return bits[type];
}

/* Bytes that the rows take, roughly. */
static int64_t column_size(const column *c, int64_t rows) {
  int64_t size = rows * type_bits(c->type) / 8;
  if (type_is_bytes(c->type) && rows > 0) size += offset_at(c, c->first + rows) - offset_at(c, c->first);
  return size;
}

batch *batch_new(const struct ArrowArray *arrow, int32_t columns, const ps_type *types) {
  batch *b = memory_resize(NULL, sizeof *b + (size_t)columns * sizeof(column));
  if (b) batch_view(b, arrow, columns, types);
  return b;
}

void batch_view(batch *b, const struct ArrowArray *arrow, int32_t columns, const ps_type *types) {
  *b = (batch){.rows = arrow->length};
  for (int32_t i = 0; i < columns; i++) {
    b->columns[i] = view(arrow->children[i], types[i]);
    b->columns[i].first += arrow->offset;
    b->bytes += column_size(&b->columns[i], b->rows);
  }
}

void batch_own(batch *b, struct ArrowArray *arrow) {
  b->arrow = *arrow;
  arrow->release = NULL;
}

void batch_empty(batch *b) {
  ps_arrow_release(&b->arrow);
  memory_free(b->keys);
  b->keys = NULL;
  poison_freed(&b->rows, sizeof b->rows);
  poison_freed(b->columns, sizeof b->columns[0]); /* the timestamps: every batch has them */
}

void batch_free(batch *b) {
  if (!b) return;
  batch_empty(b);
  memory_free(b);
}

void ps_arrow_release(struct ArrowArray *array) {
  if (!array->release) return;
  ps_counter *before = memory_enter(NULL); /* not counted: the owner of the memory is unknown */
  array->release(array);
  memory_enter(before);
}

uint64_t column_bits(const column *c, int64_t row) {
  int64_t i = c->first + row;
  switch (c->type) {
    case PS_BOOL: return bitmap_get(c->values, i);
    case PS_I8: return (uint64_t)(int64_t)((const int8_t *)c->values)[i];
    case PS_I16: return (uint64_t)(int64_t)((const int16_t *)c->values)[i];
    case PS_I32: return (uint64_t)(int64_t)((const int32_t *)c->values)[i];
    case PS_U8: return ((const uint8_t *)c->values)[i];
    case PS_U16: return ((const uint16_t *)c->values)[i];
    case PS_U32: return ((const uint32_t *)c->values)[i];
    case PS_F32: return double_bits((double)((const float *)c->values)[i]);
    case PS_I64:
    case PS_U64:
    case PS_F64: return ((const uint64_t *)c->values)[i];
    case PS_BYTES32:
    case PS_BYTES64:
    case PS_TYPES: break;
  }
  assert(false && "column_bits wants a fixed-width column");
  return 0;
}

bytes column_bytes(const column *c, int64_t row) {
  int64_t i = c->first + row;
  const int32_t *narrow = c->offsets;
  const int64_t *wide = c->offsets;
  int64_t from = c->type == PS_BYTES32 ? narrow[i] : wide[i];
  int64_t to = c->type == PS_BYTES32 ? narrow[i + 1] : wide[i + 1];
  return (bytes){(const uint8_t *)c->values + from, to - from};
}

#define WIDEN(type, to)                                          \
  do {                                                           \
    const type *from = (const type *)c->values + c->first + row; \
    for (int64_t i = 0; i < n; i++) bits[i] = to;                \
  } while (0)

const uint64_t *column_widen(const column *c, int64_t row, int64_t n, uint64_t *bits) {
  switch (c->type) {
    case PS_BOOL:
      for (int64_t i = 0; i < n; i++) bits[i] = column_bool(c, row + i);
      break;
    case PS_I8: WIDEN(int8_t, (uint64_t)from[i]); break;
    case PS_I16: WIDEN(int16_t, (uint64_t)from[i]); break;
    case PS_I32: WIDEN(int32_t, (uint64_t)from[i]); break;
    case PS_U8: WIDEN(uint8_t, from[i]); break;
    case PS_U16: WIDEN(uint16_t, from[i]); break;
    case PS_U32: WIDEN(uint32_t, from[i]); break;
    case PS_F32: WIDEN(float, double_bits((double)from[i])); break;
    case PS_I64:
    case PS_U64:
    case PS_F64: return (const uint64_t *)c->values + c->first + row;
    case PS_BYTES32:
    case PS_BYTES64:
    case PS_TYPES: break;
  }
  return bits;
}
