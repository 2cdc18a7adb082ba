/* aggregate.c - see aggregate.h. */
#include "aggregates/aggregate.h"

#include "aggregates/shared_kinds.h"
#include "aggregates/user_functions.h"

/* The next aggregate. False when out of memory. */
static bool aggregate_init(aggregates *all, const ps_query *query) {
  const ps_aggregate *from = &query->aggregate[all->n];
  ps_type type = from->column < 0 ? PS_I64 : query->column_types[from->column];
  const kernel *k = kernel_of(from->function, type, from->mask >= 0);
  assert(k && "pystream/_engine/plan.py lets no other function and type through");
  aggregate *a = &all->each[all->n];
  *a = (aggregate){.kernel = k,
                   .column = from->column,
                   .mask = from->mask,
                   .by = from->by,
                   .parameter = from->parameter,
                   .type = type,
                   .by_type = query->column_types[from->by],
                   .offset = all->state_size,
                   .size = k->state_size,
                   .is_bytes = type_is_bytes(type),
                   .strings = type_is_bytes(type) && query->strings ? query->strings[from->column] : PS_ANY_BYTES};
  if (k == &kernel_native) {
    a->native = native_udf_new(from->native);
    if (!a->native) return false;
    a->size = native_udf_size(a->native);
  }
  all->combines = all->combines && (a->native ? native_udf_combines(a->native) : k->combine != NULL);
  all->reserves = all->reserves || k->reserve;
  if (k == &kernel_udf) all->udf = all->n;
  all->state_size += (int64_t)((a->size + 15) / 16 * 16);
  a->word = all->words;
  all->words = all->words && k->shared ? all->words + k->shared->words : 0;
  all->n++;
  return true;
}

bool aggregates_init(aggregates *all, const ps_query *query) {
  *all = (aggregates){.udf = -1, .combines = true, .words = 1}; /* the first one says whether a tuple came */
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

bool aggregates_add(const aggregates *all, uint8_t *state, const batch *b, int64_t row) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    const column *c = a->column < 0 ? NULL : &b->columns[a->column];
    if (aggregate_counts(a, b, row) && !a->kernel->add(a, state + a->offset, c, row)) return false;
  }
  return true;
}

void aggregates_drop(const aggregates *all, uint8_t *state) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (a->kernel->drop) a->kernel->drop(state + a->offset);
  }
}

bool aggregates_reserve(const aggregates *all, uint8_t *state, const batch *b, int64_t row) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (!a->kernel->reserve || a->column < 0 || !aggregate_counts(a, b, row)) continue;
    if (!a->kernel->reserve(a, state + a->offset, &b->columns[a->column], row)) return false;
  }
  return true;
}

/* A state that has moved is cleared, so that moving it again adds nothing. */
bool aggregates_combine(const aggregates *all, uint8_t *state, uint8_t *other) {
  assert(all->combines);
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    if (!a->kernel->combine(a, state + a->offset, other + a->offset)) return false;
    if (a->kernel->drop) a->kernel->drop(other + a->offset);
    memset(other + a->offset, 0, a->size);
  }
  return true;
}

ps_code aggregates_finish(const aggregates *all, const uint8_t *state, out_rows *rows, int32_t to, ps_fault *fault) {
  for (int32_t i = 0; i < all->n; i++) {
    const aggregate *a = &all->each[i];
    ps_code code = a->kernel->finish(a, state + a->offset, rows, to + i, fault);
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
