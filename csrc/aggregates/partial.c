/* partial.c - see partial.h. */
#include "aggregates/partial.h"

/* Whether the tuple came with a snapshot, or is not after `until`. */
static bool is_within(partial_place x, partial_place until) {
  return x.input < PARTIAL_INPUT || x.when < until.when || (x.when == until.when && x.input <= until.input);
}

void partial_save(const aggregate *a, const partial_totals *t, uint32_t k, int64_t rows, partial_place until,
                  void *state) {
  const kernel *kind = a->kernel;
  memset(state, 0, a->size);
  if (kind->size == 0) {
    *(int64_t *)state = rows;
    return;
  }
  const void *total = kind->total ? kind->total(t, k) : (const uint8_t *)t->total + k * kind->size;
  if (!kind->placed || is_within(*(const partial_place *)total, until)) memcpy(state, total, kind->size);
}

void partial_load(const aggregate *a, const void *state, partial_place place, void *partial) {
  partial_place *own = partial;
  memcpy(partial, state, a->kernel->size);
  if (a->kernel->placed && own->when) *own = place;
}
