/* user_functions.c - see user_functions.h. */
#include "aggregates/user_functions.h"

#include "aggregates/aggregate.h"
#include "aggregates/state_bytes.h"

/* ---- udf ---- */

static bool udf_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a, (void)state, (void)c, (void)row;
  return true;
}

static ps_code udf_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  (void)a, (void)fault;
  return out_put_bits(rows, to, *(const uint64_t *)state) ? PS_OK : PS_NO_MEMORY;
}

const kernel kernel_udf = {.state_size = sizeof(int64_t), .add = udf_add, .finish = udf_finish};

/* ---- native udf ---- */

struct native_udf {
  ps_native_process process;
  ps_native_produce produce;
  ps_native_combine combine;
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
  *u = (native_udf){from->process, from->produce, from->combine, from->state_size, from->columns};
  if (numbers) memcpy(u->column, from->column, numbers);
  return u;
}

void native_udf_free(native_udf *u) { memory_free(u); }

size_t native_udf_size(const native_udf *u) { return sizeof(native_state) + (size_t)u->state_size; }

bool native_udf_combines(const native_udf *u) { return u->combine != NULL; }

_Static_assert(sizeof(bytes) == sizeof(ps_native_string), "strings are handed over as they are");

/* The value in 64 bits; a string through `string`. */
static uint64_t value_of(const column *c, int64_t row, bytes *string) {
  if (!type_is_bytes(c->type)) return column_bits(c, row);
  *string = column_bytes(c, row);
  return (uint64_t)(uintptr_t)string;
}

/* Its column is 0, never null, so `columns` is where the batch's columns start. */
static bool native_add(const aggregate *a, void *state, const column *columns, int64_t row) {
  const native_udf *u = a->native;
  native_state *s = state;
  if (s->failed) return true;
  uint64_t values[PS_NATIVE_COLUMNS];
  uint8_t nulls[PS_NATIVE_COLUMNS];
  bytes strings[PS_NATIVE_COLUMNS];
  for (int32_t i = 0; i < u->columns; i++) {
    const column *c = &columns[u->column[i]];
    nulls[i] = column_is_null(c, row);
    values[i] = nulls[i] ? 0 : value_of(c, row, &strings[i]);
  }
  s->failed = u->process(s->user, (int64_t)column_bits(&columns[0], row), values, nulls);
  return true;
}

static bool native_combine(const aggregate *a, void *state, void *other) {
  native_state *s = state;
  const native_state *o = other;
  if (!s->failed) s->failed = o->failed ? o->failed : a->native->combine(s->user, o->user);
  return true;
}

/* PS_UDF_FAILED with the user's code in *fault. */
static ps_code native_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to, ps_fault *fault) {
  const native_state *s = state;
  uint64_t result = 0;
  uint8_t null = 0;
  fault->code = s->failed ? s->failed : a->native->produce(s->user, &result, &null);
  if (fault->code) return PS_UDF_FAILED;
  bool ok = null ? out_put_null(rows, to) : out_put_bits(rows, to, result);
  return ok ? PS_OK : PS_NO_MEMORY;
}

static bool native_write(const aggregate *a, const void *state, byte_buffer *to) {
  const native_state *s = state;
  return state_put_word(to, (uint64_t)(int64_t)s->failed) && state_put(to, s->user, a->native->state_size);
}

static void native_read(const aggregate *a, void *state, state_reader *from) {
  native_state *s = state;
  int64_t failed = (int64_t)state_get_word(from);
  state_require(from, failed >= INT32_MIN && failed <= INT32_MAX);
  if (from->code != PS_OK) return;
  s->failed = (int32_t)failed;
  state_get(from, s->user, a->native->state_size);
}

const kernel kernel_native = {
    .add = native_add, .combine = native_combine, .finish = native_finish, .write = native_write, .read = native_read};
