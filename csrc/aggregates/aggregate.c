/* aggregate.c - see aggregate.h. */
#include "aggregates/aggregate.h"

/* ---- count ---- */

static bool count_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a, (void)c, (void)row;
  ++*(int64_t *)state;
  return true;
}

static bool count_combine(const aggregate *a, void *state, void *other) {
  (void)a;
  *(int64_t *)state += *(int64_t *)other;
  return true;
}

static ps_code put_bits(out_rows *rows, int32_t to, uint64_t bits) {
  return out_put_bits(rows, to, bits) ? PS_OK : PS_NO_MEMORY;
}

static ps_code put_null(out_rows *rows, int32_t to) { return out_put_null(rows, to) ? PS_OK : PS_NO_MEMORY; }

static ps_code count_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to) {
  (void)a;
  return put_bits(rows, to, *(const uint64_t *)state);
}

/* ---- sum and avg of integers ---- */

static bool integer_add(const aggregate *a, void *state, const column *c, int64_t row) {
  integer_state *s = state;
  uint64_t bits = column_bits(c, row);
  s->sum += type_is_unsigned(a->type) ? (int128)bits : (int128)(int64_t)bits;
  s->n++;
  return true;
}

static bool integer_combine(const aggregate *a, void *state, void *other) {
  (void)a;
  integer_state *s = state;
  const integer_state *o = other;
  s->sum += o->sum;
  s->n += o->n;
  return true;
}

static ps_code integer_sum_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to) {
  (void)a;
  const integer_state *s = state;
  if (s->n == 0) return put_null(rows, to);
  if (s->sum > INT64_MAX || s->sum < INT64_MIN) return PS_OVERFLOW;
  return put_bits(rows, to, (uint64_t)(int64_t)s->sum);
}

static ps_code integer_avg_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to) {
  (void)a;
  const integer_state *s = state;
  return s->n ? put_bits(rows, to, double_bits(exact_mean(s->sum, s->n, 0))) : put_null(rows, to);
}

/* ---- sum and avg of floats ---- */

static bool float_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  float_state *s = state;
  if (!exact_sum_add(s, bits_double(column_bits(c, row)))) return false;
  s->n++;
  return true;
}

static bool float_reserve(void *state, const column *c, int64_t row) {
  return exact_sum_reserve(state, bits_double(column_bits(c, row)));
}

static bool float_combine(const aggregate *a, void *state, void *other) {
  (void)a;
  float_state *s = state;
  const float_state *o = other;
  if (!exact_sum_combine(s, o)) return false;
  s->n += o->n;
  return true;
}

static ps_code float_sum_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to) {
  (void)a;
  const float_state *s = state;
  return s->n ? put_bits(rows, to, double_bits(exact_sum_round(s))) : put_null(rows, to);
}

static ps_code float_avg_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to) {
  (void)a;
  const float_state *s = state;
  if (s->n == 0) return put_null(rows, to);
  return put_bits(rows, to, double_bits(exact_sum_mean(s, s->n)));
}

static void float_drop(void *state) { exact_sum_clear(state); }

/* ---- min, max, first, last of fixed-width values ---- */

static bool min_add(const aggregate *a, void *state, const column *c, int64_t row) {
  value_state *s = state;
  uint64_t bits = value_canonical(column_bits(c, row), a->type);
  if (s->n++ == 0 || value_ordered(bits, a->type) < value_ordered(s->bits, a->type)) s->bits = bits;
  return true;
}

static bool max_add(const aggregate *a, void *state, const column *c, int64_t row) {
  value_state *s = state;
  uint64_t bits = value_canonical(column_bits(c, row), a->type);
  if (s->n++ == 0 || value_ordered(bits, a->type) > value_ordered(s->bits, a->type)) s->bits = bits;
  return true;
}

/* The other's value takes part as one more. */
static bool value_combine(value_state *s, const value_state *o, bool better) {
  if (o->n && (s->n == 0 || better)) s->bits = o->bits;
  s->n += o->n;
  return true;
}

static bool min_combine(const aggregate *a, void *state, void *other) {
  const value_state *s = state, *o = other;
  return value_combine(state, other, value_ordered(o->bits, a->type) < value_ordered(s->bits, a->type));
}

static bool max_combine(const aggregate *a, void *state, void *other) {
  const value_state *s = state, *o = other;
  return value_combine(state, other, value_ordered(o->bits, a->type) > value_ordered(s->bits, a->type));
}

static bool first_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  value_state *s = state;
  if (s->n++ == 0) s->bits = column_bits(c, row);
  return true;
}

static bool last_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  value_state *s = state;
  s->n++;
  s->bits = column_bits(c, row);
  return true;
}

static ps_code value_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to) {
  (void)a;
  const value_state *s = state;
  return s->n ? put_bits(rows, to, s->bits) : put_null(rows, to);
}

/* ---- min, max, first, last of strings ---- */

static bool bytes_keep(bytes_state *s, bytes b) {
  if (!memory_grow((void **)&s->data, &s->capacity, b.length + 1, 1)) return false;
  if (b.length) memcpy(s->data, b.data, (size_t)b.length);
  s->length = b.length;
  s->any = true;
  return true;
}

static bool bytes_reserve(void *state, const column *c, int64_t row) {
  bytes_state *s = state;
  return memory_grow((void **)&s->data, &s->capacity, column_bytes(c, row).length + 1, 1);
}

static int bytes_compare(bytes x, const bytes_state *y) {
  int64_t shorter = x.length < y->length ? x.length : y->length;
  int order = shorter ? memcmp(x.data, y->data, (size_t)shorter) : 0;
  return order ? order : (x.length > y->length) - (x.length < y->length);
}

static bool bytes_min_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  bytes_state *s = state;
  bytes b = column_bytes(c, row);
  return s->any && bytes_compare(b, s) >= 0 ? true : bytes_keep(s, b);
}

static bool bytes_max_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  bytes_state *s = state;
  bytes b = column_bytes(c, row);
  return s->any && bytes_compare(b, s) <= 0 ? true : bytes_keep(s, b);
}

/* Swaps the two, so that nothing need be allocated; the caller drops the other one. */
static bool bytes_swap(bytes_state *s, bytes_state *o) {
  bytes_state kept = *s;
  *s = *o;
  *o = kept;
  return true;
}

static bool bytes_min_combine(const aggregate *a, void *state, void *other) {
  (void)a;
  const bytes_state *s = state, *o = other;
  bool better = o->any && (!s->any || bytes_compare((bytes){o->data, o->length}, s) < 0);
  return better ? bytes_swap(state, other) : true;
}

static bool bytes_max_combine(const aggregate *a, void *state, void *other) {
  (void)a;
  const bytes_state *s = state, *o = other;
  bool better = o->any && (!s->any || bytes_compare((bytes){o->data, o->length}, s) > 0);
  return better ? bytes_swap(state, other) : true;
}

static bool bytes_first_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  bytes_state *s = state;
  return s->any ? true : bytes_keep(s, column_bytes(c, row));
}

static bool bytes_last_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a;
  return bytes_keep(state, column_bytes(c, row));
}

static ps_code bytes_finish(const aggregate *a, const void *state, out_rows *rows, int32_t to) {
  (void)a;
  const bytes_state *s = state;
  if (!s->any) return put_null(rows, to);
  return out_put_bytes(rows, to, s->data, s->length) ? PS_OK : PS_NO_MEMORY;
}

static void bytes_drop(void *state) { memory_free(((bytes_state *)state)->data); }

/* ---- udf: the state is the window's number; the user's objects live in Python ---- */

static bool udf_add(const aggregate *a, void *state, const column *c, int64_t row) {
  (void)a, (void)state, (void)c, (void)row;
  return true;
}

/* ---- native udf: its column is 0, never null, so `c` is where the batch's columns start ---- */

static bool native_add(const aggregate *a, void *state, const column *c, int64_t row) {
  native_udf_add(a->native, state, c, row);
  return true;
}

/* ---- which code runs for which function and type ---- */

typedef struct {
  bool (*add)(const aggregate *, void *, const column *, int64_t);
  bool (*combine)(const aggregate *, void *, void *);
  ps_code (*finish)(const aggregate *, const void *, out_rows *, int32_t);
  bool (*reserve)(void *, const column *, int64_t);
  void (*drop)(void *);
  size_t size;
} routine;

static const routine integer_code[PS_FUNCTIONS] = {
    [PS_COUNT] = {count_add, count_combine, count_finish, NULL, NULL, sizeof(int64_t)},
    [PS_SUM] = {integer_add, integer_combine, integer_sum_finish, NULL, NULL, sizeof(integer_state)},
    [PS_AVG] = {integer_add, integer_combine, integer_avg_finish, NULL, NULL, sizeof(integer_state)},
    [PS_MIN] = {min_add, min_combine, value_finish, NULL, NULL, sizeof(value_state)},
    [PS_MAX] = {max_add, max_combine, value_finish, NULL, NULL, sizeof(value_state)},
    [PS_FIRST] = {first_add, NULL, value_finish, NULL, NULL, sizeof(value_state)},
    [PS_LAST] = {last_add, NULL, value_finish, NULL, NULL, sizeof(value_state)},
    [PS_UDF] = {udf_add, NULL, count_finish, NULL, NULL, sizeof(int64_t)},
    [PS_NATIVE] = {native_add, NULL, NULL, NULL, NULL, 0}, /* native_udf_finish, native_udf_size */
};

static const routine float_code[PS_FUNCTIONS] = {
    [PS_SUM] = {float_add, float_combine, float_sum_finish, float_reserve, float_drop, sizeof(float_state)},
    [PS_AVG] = {float_add, float_combine, float_avg_finish, float_reserve, float_drop, sizeof(float_state)},
    [PS_MIN] = {min_add, min_combine, value_finish, NULL, NULL, sizeof(value_state)},
    [PS_MAX] = {max_add, max_combine, value_finish, NULL, NULL, sizeof(value_state)},
    [PS_FIRST] = {first_add, NULL, value_finish, NULL, NULL, sizeof(value_state)},
    [PS_LAST] = {last_add, NULL, value_finish, NULL, NULL, sizeof(value_state)},
};

static const routine bytes_code[PS_FUNCTIONS] = {
    [PS_MIN] = {bytes_min_add, bytes_min_combine, bytes_finish, bytes_reserve, bytes_drop, sizeof(bytes_state)},
    [PS_MAX] = {bytes_max_add, bytes_max_combine, bytes_finish, bytes_reserve, bytes_drop, sizeof(bytes_state)},
    [PS_FIRST] = {bytes_first_add, NULL, bytes_finish, bytes_reserve, bytes_drop, sizeof(bytes_state)},
    [PS_LAST] = {bytes_last_add, NULL, bytes_finish, bytes_reserve, bytes_drop, sizeof(bytes_state)},
};

static const routine *routine_for(ps_function function, ps_type type) {
  if (type_is_bytes(type)) return &bytes_code[function];
  return type_is_float(type) ? &float_code[function] : &integer_code[function];
}

/* ---- all aggregates of a query ---- */

/* The next aggregate. False when out of memory. */
static bool aggregate_init(aggregates *all, const ps_query *query) {
  const ps_aggregate *from = &query->aggregate[all->n];
  ps_type type = from->column < 0 ? PS_I64 : query->column_types[from->column];
  const routine *run = routine_for(from->function, type);
  assert(run->add && "pystream/_engine/plan.py lets no other function and type through");
  aggregate *a = &all->each[all->n];
  *a = (aggregate){.function = from->function,
                   .column = from->column,
                   .mask = from->mask,
                   .type = type,
                   .offset = all->state_size,
                   .is_bytes = type_is_bytes(type),
                   .is_text = type_is_bytes(type) && query->text && query->text[from->column],
                   .add = run->add,
                   .finish = run->finish,
                   .drop = run->drop,
                   .reserve = run->reserve,
                   .combine = run->combine,
                   .size = run->size};
  if (from->function == PS_NATIVE) {
    a->native = native_udf_new(from->native);
    if (!a->native) return false;
    a->size = native_udf_size(a->native);
  }
  all->combines = all->combines && run->combine;
  all->reserves = all->reserves || run->reserve;
  if (from->function == PS_UDF) all->udf = all->n;
  all->state_size += (int64_t)((a->size + 15) / 16 * 16);
  all->n++;
  return true;
}

bool aggregates_init(aggregates *all, const ps_query *query) {
  *all = (aggregates){.udf = -1, .combines = true};
  all->each = memory_new((size_t)query->aggregates * sizeof *all->each);
  if (!all->each) return false;
  while (all->n < query->aggregates) {
    if (!aggregate_init(all, query)) return false;
  }
  return true;
}

void aggregates_free(aggregates *all) {
  for (int32_t i = 0; i < all->n; i++) native_udf_free(all->each[i].native);
  memory_free(all->each);
}

/* Whether the row counts for this aggregate. */
static bool counts(const aggregate *a, const batch *b, int64_t row) {
  if (a->mask >= 0 && !column_bool(&b->columns[a->mask], row)) return false;
  return a->column < 0 || !column_is_null(&b->columns[a->column], row);
}

bool aggregates_add(const aggregates *all, uint8_t *state, const batch *b, int64_t row) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    const column *c = a->column < 0 ? NULL : &b->columns[a->column];
    if (counts(a, b, row) && !a->add(a, state + a->offset, c, row)) return false;
  }
  return true;
}

void aggregates_drop(const aggregates *all, uint8_t *state) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (a->drop) a->drop(state + a->offset);
  }
}

bool aggregates_reserve(const aggregates *all, uint8_t *state, const batch *b, int64_t row) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (!a->reserve || a->column < 0 || !counts(a, b, row)) continue;
    if (!a->reserve(state + a->offset, &b->columns[a->column], row)) return false;
  }
  return true;
}

/* What has moved leaves an empty state behind, which adds nothing when it is moved again. */
bool aggregates_combine(const aggregates *all, uint8_t *state, uint8_t *other) {
  assert(all->combines);
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (!a->combine(a, state + a->offset, other + a->offset)) return false;
    if (a->drop) a->drop(other + a->offset);
    memset(other + a->offset, 0, a->size);
  }
  return true;
}

ps_code aggregates_finish(const aggregates *all, const uint8_t *state, out_rows *rows, int32_t to, ps_fault *fault) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    const uint8_t *own = state + a->offset;
    ps_code code = a->native ? native_udf_finish(a->native, own, rows, to + i, fault) : a->finish(a, own, rows, to + i);
    if (code != PS_OK) {
      fault->aggregate = i;
      return code;
    }
  }
  return PS_OK;
}

int64_t *aggregates_udf_window(const aggregates *all, uint8_t *state) {
  return (int64_t *)(void *)(state + all->each[all->udf].offset);
}
