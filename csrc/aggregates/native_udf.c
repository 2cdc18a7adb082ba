/* native_udf.c - see native_udf.h. */
#include "aggregates/native_udf.h"

struct native_udf {
  ps_native_process process;
  ps_native_produce produce;
  int64_t state_size;
  int32_t columns;
  int32_t column[];
};

typedef struct {
  _Alignas(16) int32_t failed; /* so the user's bytes are aligned to 16 too, as pystream.h promises */
  _Alignas(16) uint8_t user[];
} native_state;

native_udf *native_udf_new(const ps_native *from) {
  assert(from->columns >= 0 && from->columns <= PS_NATIVE_COLUMNS && from->state_size >= 0);
  size_t numbers = (size_t)from->columns * sizeof(int32_t);
  native_udf *u = memory_new(sizeof *u + numbers);
  if (!u) return NULL;
  *u = (native_udf){from->process, from->produce, from->state_size, from->columns};
  if (numbers) memcpy(u->column, from->column, numbers);
  return u;
}

void native_udf_free(native_udf *u) { memory_free(u); }

size_t native_udf_size(const native_udf *u) { return sizeof(native_state) + (size_t)u->state_size; }

int32_t native_udf_failed(const void *state) { return ((const native_state *)state)->failed; }

bytes native_udf_bytes(const native_udf *u, const void *state) {
  return (bytes){((const native_state *)state)->user, u->state_size};
}

uint8_t *native_udf_load(void *state, int32_t failed) {
  native_state *s = state;
  s->failed = failed;
  return s->user;
}

void native_udf_add(const native_udf *u, void *state, const column *columns, int64_t row) {
  native_state *s = state;
  if (s->failed) return;
  uint64_t values[PS_NATIVE_COLUMNS];
  uint8_t nulls[PS_NATIVE_COLUMNS];
  for (int32_t i = 0; i < u->columns; i++) {
    const column *c = &columns[u->column[i]];
    nulls[i] = column_is_null(c, row);
    values[i] = nulls[i] ? 0 : column_bits(c, row);
  }
  s->failed = u->process(s->user, (int64_t)column_bits(&columns[0], row), values, nulls);
}

ps_code native_udf_finish(const native_udf *u, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  const native_state *s = state;
  uint64_t result = 0;
  uint8_t null = 0;
  fault->code = s->failed ? s->failed : u->produce(s->user, &result, &null);
  if (fault->code) return PS_UDF_FAILED;
  bool ok = null ? out_put_null(rows, to) : out_put_bits(rows, to, result);
  return ok ? PS_OK : PS_NO_MEMORY;
}
